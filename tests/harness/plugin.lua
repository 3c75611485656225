-- A copy of the plugin in a directory of the case, as a plugin manager would have put it there.

local T = require("harness")
local sha256 = dofile(T.root .. "/lua/cursor_agent/install/sha256.lua")
local disk = require("harness.file")

local read, write = disk.read, disk.write

---@class harness.Plugin
---@field root string
local Plugin = {}
Plugin.__index = Plugin

-- The mode 0755.
local EXECUTABLE = 493

-- What a clone has and an installation may look at. `lib/` is what the cases are about.
local PARTS = { "build.lua", "checksums.txt", "Cargo.toml", "Cargo.lock", ".cargo", "lua", "plugin", "doc", "src" }

---@param child harness.Child
---@return harness.Plugin
function Plugin.copy(child)
  local self = setmetatable({ root = child.dir .. "/home/.local/share/nvim/lazy/cursor-agent.nvim" }, Plugin)
  vim.fn.mkdir(self.root, "p")
  local command = { "cp", "-R" }
  for _, part in ipairs(PARTS) do
    if vim.uv.fs_stat(T.root .. "/" .. part) then
      table.insert(command, T.root .. "/" .. part)
    end
  end
  local copied = vim.system(vim.list_extend(command, { self.root })):wait()
  T.eq(copied.code, 0, copied.stderr)
  for crate in vim.fs.dir(T.root .. "/crates") do
    local to = self.root .. "/crates/" .. crate
    vim.fn.mkdir(to, "p")
    local from = T.root .. "/crates/" .. crate
    copied = vim.system({ "cp", "-R", from .. "/Cargo.toml", from .. "/src", to }):wait()
    T.eq(copied.code, 0, copied.stderr)
  end
  -- The plugin under test is the copy alone.
  child:lua("vim.opt.runtimepath:remove((...))", T.root)
  return self
end

---@param name string
---@return string
function Plugin:read(name)
  return read(self.root .. "/" .. name)
end

---@param name string
---@param text string
function Plugin:write(name, text)
  write(self.root .. "/" .. name, text)
end

---Whether a file is there, by its number: a renamed file has another one than that which it replaced.
---@param name string
---@return integer?
function Plugin:inode(name)
  local stat = vim.uv.fs_stat(self.root .. "/" .. name)
  return stat and stat.ino
end

---Replaces a text in a file of the copy; it must be there.
---@param name string
---@param from string
---@param to string
function Plugin:edit(name, from, to)
  local text = self:read(name)
  local first, last = text:find(from, 1, true)
  if not first or not last then
    error(("%s has no %q"):format(name, from))
  end
  self:write(name, text:sub(1, first - 1) .. to .. text:sub(last + 1))
end

---Puts the built files into the copy.
function Plugin:install_built()
  local platform = dofile(T.root .. "/lua/cursor_agent/install/platform.lua")
  for _, file in ipairs(platform.files(assert(platform.triple()))) do
    local name = file.name
    self:write("lib/" .. name, read(T.root .. "/lib/" .. name))
    assert(vim.uv.fs_chmod(self.root .. "/lib/" .. name, EXECUTABLE))
  end
end

---The files of a release of this version for this platform: what it is made of, by asset.
---@param child harness.Child
---@return table<string, string>
function Plugin:release_files(child)
  local files = child:lua(
    [[
    local platform = dofile(... .. "/lua/cursor_agent/install/platform.lua")
    return platform.files(platform.triple())
  ]],
    self.root
  )
  local bytes = {}
  for _, file in ipairs(files) do
    bytes[file.asset] = read(T.root .. "/lib/" .. file.name)
  end
  return bytes
end

---Writes the list of checksums that the sources of a release carry.
---@param files table<string, string>
---@param said? { version: string?, source: string? }
function Plugin:write_checksums(files, said)
  said = said or {}
  local source = vim.system({ T.root .. "/scripts/source-id", self.root }):wait()
  T.eq(source.code, 0, source.stderr)
  local lines = {
    "# version: " .. (said.version or self:read("Cargo.toml"):match('\nversion = "([^"]+)"')),
    "# source: " .. (said.source or vim.trim(source.stdout or "")),
  }
  for asset, bytes in vim.spairs(files) do
    lines[#lines + 1] = ("%s  %s"):format(sha256.hex(bytes), asset)
  end
  self:write("checksums.txt", table.concat(lines, "\n") .. "\n")
end

---Makes only these programs findable in the child: a path to link to, or the text of a script.
---@param child harness.Child
---@param programs table<string, string>
function Plugin.programs(child, programs)
  local bin = child.dir .. "/bin"
  vim.fn.mkdir(bin, "p")
  for name, what in pairs(programs) do
    if what:sub(1, 2) == "#!" then
      write(bin .. "/" .. name, what)
      assert(vim.uv.fs_chmod(bin .. "/" .. name, EXECUTABLE))
    else
      assert(vim.uv.fs_symlink(what, bin .. "/" .. name))
    end
  end
  child:lua("vim.env.PATH, vim.env.CARGO_HOME = ..., ...", bin)
end

---Takes the copy into the runtimepath and runs its `plugin/` files, as a plugin manager does.
---@param child harness.Child
function Plugin:load(child)
  child:lua(
    [[
      local root = ...
      vim.g.loaded_cursor_agent = nil
      vim.opt.runtimepath:prepend(root)
      for _, file in ipairs(vim.fn.glob(root .. "/plugin/*.lua", true, true)) do
        vim.cmd.source(file)
      end
    ]],
    self.root
  )
end

---Runs `build.lua` as lazy.nvim does: in a coroutine that is resumed from the main loop, yields with a text shown as progress.
---@param child harness.Child
---@return { ok: boolean, error: string?, said: string[] }
function Plugin:build(child)
  child:lua(
    [[
      local file = ...
      local said = {}
      _G.build_result = nil
      local thread = coroutine.create(function()
        local ok, problem = pcall(function()
          assert(loadfile(file))()
        end)
        _G.build_result = { ok = ok, error = problem, said = said }
      end)
      local check = assert(vim.uv.new_check())
      check:start(vim.schedule_wrap(function()
        if coroutine.status(thread) == "suspended" then
          local _, message = coroutine.resume(thread)
          if message then
            table.insert(said, message)
          end
        elseif not check:is_closing() then
          check:close()
        end
      end))
    ]],
    self.root .. "/build.lua"
  )
  return child:wait("_G.build_result", "build.lua to end", 30000)
end

return Plugin
