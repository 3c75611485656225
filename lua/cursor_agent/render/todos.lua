-- Draws the todos: how many are done, then one line each.

local blocks = require("cursor_agent.render.block")

local M = {}

---The sign of a todo's state.
---@param status string
---@param icons cursor_agent.Icons
---@return string icon
---@return string hl
function M.state(status, icons)
  if status == "completed" then
    return icons.done, "CursorAgentDone"
  elseif status == "in_progress" then
    return icons.active, "CursorAgentRunning"
  elseif status == "cancelled" then
    return icons.cancelled, "CursorAgentCancelled"
  end
  return icons.pending, "CursorAgentPending"
end

---How many are done, of how many that count.
---@param todos cursor_agent.Todo[]
---@return integer done
---@return integer all
function M.progress(todos)
  local done, all = 0, 0
  for _, todo in ipairs(todos) do
    if todo.status ~= "cancelled" then
      all = all + 1
      done = done + (todo.status == "completed" and 1 or 0)
    end
  end
  return done, all
end

---@param todo cursor_agent.Todo
---@return string?
local function text_hl(todo)
  if todo.status == "completed" or todo.status == "cancelled" then
    return "CursorAgentTodoDone"
  elseif todo.status == "in_progress" then
    return "CursorAgentTodoActive"
  end
end

---@param entry cursor_agent.Entry
---@param context cursor_agent.render.Context
---@return cursor_agent.render.Block
function M.render(entry, context)
  local b = blocks.builder()
  local todos = entry.todos or {}
  local nested = blocks.indent(entry)
  local done, all = M.progress(todos)
  local head = {
    { nested .. "Todos ", "CursorAgentVerb" },
    { ("%d/%d"):format(done, all), "CursorAgentDetail" },
  } ---@type cursor_agent.render.Chunk[]
  b:line(head)
  for _, todo in ipairs(todos) do
    local icon, hl = M.state(todo.status, context.icons)
    b:line({ { nested .. "  " }, { icon .. " ", hl }, { todo.content, text_hl(todo) } })
  end
  return b
end

return M
