-- What the plugin writes is for the user alone, from its first byte and whatever the umask is.

local T = require("harness")

local PLAN = { toolCallId = "p1", name = "Private", plan = "Tell no one." }

---Those below `dir` that others could read or write.
---@param dir string
---@return string[] open
---@return string[] all
local function look(dir)
  local open, all = {}, {}
  for name in vim.fs.dir(dir, { depth = 20 }) do
    local stat = assert(vim.uv.fs_lstat(dir .. "/" .. name))
    all[#all + 1] = name
    -- The last six bits: group and others.
    if stat.mode % 64 ~= 0 then
      open[#open + 1] = ("%s %o"):format(name, stat.mode)
    end
  end
  table.sort(all)
  return open, all
end

for _, umask in ipairs({ "0", "18" }) do
  local init = ('local ffi = require("ffi"); ffi.cdef("unsigned umask(unsigned)"); ffi.C.umask(%s)'):format(umask)
  T.case(("under umask %03o"):format(tonumber(umask)), { width = 100, init = init }, function(nvim)
    local agent = T.agent({
      turns = {
        { { text = "An answer." }, { request = { method = "cursor/create_plan", params = PLAN } } },
        { { stderr = "gone\n" }, { exit = 3 } },
      },
    })
    nvim:use(agent)
    nvim:cmd("CursorAgent")
    nvim:wait_state("idle")
    local pasted = table.concat(vim.fn.map(vim.fn.range(1, 100), "'pasted ' . v:val"), "\n")
    nvim:keys("Look at ")
    nvim:api("nvim_paste", pasted .. "\n", true, -1)
    nvim:wait_screen("[paste 1: 100 lines]")
    nvim:keys("<C-s>")
    nvim:wait("#require('cursor_agent').pending() == 1", "the plan")
    nvim:lua("require('cursor_agent').accept()")
    nvim:wait_turns(1)
    nvim:prompt("and fail")
    nvim:wait_state("failed")
    nvim:cmd("CursorAgent log save")
    nvim:cmd("CursorAgent log save saved/deep/log.jsonl")
    nvim:cmd("CursorAgent export talk.md")
    nvim:keys("ihalf a thought<Esc>")
    nvim:quit("qa!")
    local open, all = look(nvim.dir .. "/home/.local/state/nvim/cursor-agent")
    for _, name in ipairs({ "history.json", "drafts.json", "last-failure.json", "logs", "pastes" }) do
      T.ok(vim.tbl_contains(all, name), name .. " is missing among " .. vim.inspect(all))
    end
    T.eq(open, {})
    open, all = look(nvim.work)
    for _, name in ipairs({ ".cursor/plans/private.md", "saved/deep/log.jsonl", "talk.md" }) do
      T.ok(vim.tbl_contains(all, name), name .. " is missing among " .. vim.inspect(all))
    end
    T.eq(open, {})
    local log = assert(vim.uv.fs_stat(nvim.dir .. "/home/.local/state/nvim/cursor-agent.log"))
    T.eq(("%o"):format(log.mode), "100600")
  end)
end

T.case("a link planted where a log is saved is not followed", function(nvim)
  nvim:use(T.agent({ turns = { { { text = "An answer." } } } }))
  nvim:prompt("hello")
  nvim:wait_turns(1)
  for _, name in ipairs({ "log.jsonl", "talk.md" }) do
    assert(vim.uv.fs_symlink(nvim.work .. "/elsewhere", nvim.work .. "/" .. name))
  end
  nvim:cmd("CursorAgent log save log.jsonl")
  nvim:cmd("CursorAgent export talk.md")
  T.eq(vim.uv.fs_stat(nvim.work .. "/elsewhere"), nil)
end)
