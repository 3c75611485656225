-- Todos: one list for each session, in a panel that is kept up to date.

local T = require("harness")

---@param todos table[]
---@param merge boolean
---@return table step
local function update(todos, merge)
  return { request = { method = "cursor/update_todos", params = { toolCallId = "u", merge = merge, todos = todos } } }
end

T.case("a panel shows them, merged and replaced, beside the work", { width = 80, height = 20 }, function(nvim)
  local agent = T.agent({
    turns = {
      {
        update({
          { id = "a", content = "Read the grammar", status = "completed" },
          { id = "b", content = "Accept trailing commas", status = "in_progress" },
          { id = "c", content = "Write tests for lists, maps and calls, with and without a comma", status = "pending" },
        }, false),
        { expect = "session/set_mode" },
        update({ { id = "b", status = "completed" }, { id = "d", content = "Leave it", status = "cancelled" } }, true),
        { expect = "session/set_mode" },
        update({ { id = "x", content = "Something new", status = "pending" } }, false),
      },
    },
  })
  nvim:use(agent, { attention = { notify = false } })
  nvim:lua("vim.o.statusline = '%{%v:lua.require(\"cursor_agent\").statusline()%}' vim.o.laststatus = 2")
  nvim:prompt("go", { open = false })
  nvim:wait("#require('cursor_agent').status().todos == 3", "the todos")
  nvim:keys(":CursorAgent todos<CR>")
  nvim:wait_screen("Todos 1/3")
  nvim:wait_screen("1/3")
  T.eq(nvim:lua("return vim.bo.filetype"), "", "the panel is not entered")
  nvim:lua("vim.o.statusline = ' '")
  nvim:expect_screen("decide-todos")
  nvim:lua("require('cursor_agent').set_mode('plan')")
  nvim:wait_screen("Todos 2/3")
  nvim:wait_screen("– Leave it")
  nvim:cmd("tabnew")
  nvim:wait("#vim.api.nvim_tabpage_list_wins(0) == 2", "the panel to follow")
  nvim:cmd("tabclose")
  nvim:wait_screen("Todos 2/3")
  nvim:lua("require('cursor_agent').set_mode('agent')")
  nvim:wait_screen("Todos 0/1")
  nvim:wait("require('cursor_agent').statusline() == 'test 0/1'", "the end of the turn in the statusline")
  nvim:keys("<C-w>w")
  nvim:wait("vim.bo.filetype == 'cursoragent-todos'", "the panel to be entered")
  nvim:keys("<CR>")
  nvim:wait("vim.bo.filetype == 'cursoragent'", "the way to the chat")
  T.contains(nvim:api("nvim_get_current_line"), "Todos")
  nvim:keys(":CursorAgent todos<CR>")
  nvim:wait_screen_without("Todos 0/1 ─")
end)

T.case("an agent's ACP plan feeds the same list", { width = 80 }, function(nvim)
  local agent = T.agent({
    profile = "plain",
    turns = {
      {
        {
          update = {
            sessionUpdate = "plan",
            entries = {
              { content = "One", priority = "high", status = "completed" },
              { content = "Two", priority = "low", status = "pending" },
            },
          },
        },
      },
    },
  })
  nvim:use(agent, { attention = { notify = false } })
  nvim:keys(":CursorAgent todos<CR>")
  nvim:wait_screen("no chat in this tab")
  nvim:prompt("go", { open = false })
  nvim:wait_turns(1)
  nvim:keys(":CursorAgent todos<CR>")
  nvim:wait_screen("✓ One")
  nvim:wait_screen("· Two")
end)
