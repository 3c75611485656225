-- Draws the todos: on one line while they fit, else one line each.

local format = require("cursor_agent.render.format")
local blocks = require("cursor_agent.render.block")

local M = {}

---This many characters fit on one line of a narrow chat.
local ONE_LINE_CHARS = 60

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

  local line = vim.deepcopy(head)
  local chars = 0
  for _, todo in ipairs(todos) do
    local icon, hl = M.state(todo.status, context.icons)
    chars = chars + format.chars(todo.content) + 4
    -- A space at which no line is broken: the sign stays with its todo.
    vim.list_extend(line, { { "  " }, { icon .. "\194\160", hl }, { todo.content, text_hl(todo) } })
  end
  if chars <= ONE_LINE_CHARS then
    b:line(line)
    return b
  end
  b:line(head)
  for _, todo in ipairs(todos) do
    local icon, hl = M.state(todo.status, context.icons)
    b:line({ { nested .. "  " }, { icon .. " ", hl }, { todo.content, text_hl(todo) } })
  end
  return b
end

return M
