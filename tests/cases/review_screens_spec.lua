-- What undecided changes look like in the code and in their list, and beside the signs of others.

local T = require("harness")

local OLD = [[
local M = {}

---Adds two numbers.
function M.add(a, b)
  return a + b
end

function M.unused()
  return nil
end

return M
]]

local NEW = [[
local M = {}

---Adds two numbers, or joins two texts.
function M.add(a, b)
  if type(a) == "string" then
    return a .. b
  end
  return a + b
end

return M
]]

---@return table[]
local function turn()
  local steps = {}
  for i, path in ipairs({ "lua/sum.lua", "notes.md" }) do
    local old, new = i == 1 and OLD or nil, i == 1 and NEW or "# Notes\n\nNothing yet.\n"
    table.insert(steps, { write_file = { path = path, text = new } })
    table.insert(steps, {
      update = {
        sessionUpdate = "tool_call",
        toolCallId = "edit-" .. i,
        title = "Edit " .. path,
        kind = "edit",
        status = "completed",
        content = { { type = "diff", path = path, oldText = old, newText = new } },
      },
    })
  end
  return steps
end

---@param nvim table
local function start(nvim)
  nvim:use(T.agent({ turns = { turn() } }))
  nvim:cmd("edit lua/sum.lua")
  nvim:lua("require('cursor_agent').prompt('edit it', { open = false })")
  nvim:wait_turns(1)
  nvim:wait_screen("− function M.unused()")
end

for _, width in ipairs({ 80, 120 }) do
  T.case(
    ("looks at %d columns"):format(width),
    { width = width, height = 30, files = { ["lua/sum.lua"] = OLD } },
    function(nvim)
      start(nvim)
      nvim:keys("gg]h")
      nvim:wait_screen("1/3 ·")
      nvim:expect_screen(("review-hunks-%d"):format(width))
      nvim:keys(":CursorAgent review<CR>")
      nvim:wait("vim.bo.filetype == 'cursoragent-review'", "the list")
      nvim:expect_screen(("review-list-%d"):format(width))
    end
  )
end

T.case(
  "signs of gitsigns stay in sight, and so do keys of others",
  { files = { ["lua/sum.lua"] = OLD } },
  function(nvim)
    nvim:cmd("edit lua/sum.lua")
    nvim:lua([[
    vim.keymap.set("n", "]h", "<Cmd>let g:theirs = 1<CR>", { buffer = true })
  ]])
    start(nvim)
    nvim:lua([[
    local ns = vim.api.nvim_create_namespace("gitsigns_signs_")
    vim.api.nvim_buf_set_extmark(0, ns, 2, 0, { sign_text = "G", priority = 6 })
  ]])
    nvim:wait_screen("G ---Adds two numbers, or joins")
    nvim:keys("gg]h")
    T.eq(nvim:lua("return vim.fn.line('.')"), 3, "ours where there are changes")
    nvim:keys(":CursorAgent keep all<CR>")
    nvim:wait("#require('cursor_agent').hunks() == 0", "all decided")
    T.ok(nvim:sees("G ---Adds two numbers, or joins"), "the sign of the other")
    nvim:keys("]h")
    nvim:wait("vim.g.theirs == 1", "the key of the other, again")
  end
)
