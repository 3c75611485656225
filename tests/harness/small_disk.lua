-- A disk so small that it is full soon: a file system mounted for a case, or where that is not allowed, a limit on files.

local BYTES = 65536

---Runs a part of a case with a small disk at a directory. `fill` makes it small, once all that has to fit is written and
---the agent runs: it writes down more than fits.
---@param nvim harness.Child it is stopped afterwards: what is mounted may be in use
---@param dir string
---@param work fun(fill: fun())
return function(nvim, dir, work)
  vim.fn.mkdir(dir, "p")
  local mounted = vim.system({ "mount", "-t", "tmpfs", "-o", "size=" .. BYTES, "none", dir }):wait().code == 0
  local ok, problem = pcall(work, function()
    if not mounted then
      nvim:lua(
        [[
          local ffi = require("ffi")
          ffi.cdef("struct limit { unsigned long cur, max; }; int setrlimit(int, struct limit *); void *signal(int, void *);")
          -- A write beyond the limit fails instead of killing Neovim.
          ffi.C.signal(25, ffi.cast("void *", 1))
          ffi.C.setrlimit(1, ffi.new("struct limit", { ..., ... }))
        ]],
        BYTES
      )
    end
  end)
  nvim:stop()
  if mounted then
    vim.system({ "umount", "-l", dir }):wait()
  end
  if not ok then
    error(problem, 0)
  end
end
