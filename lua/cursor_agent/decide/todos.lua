-- A small panel with the current session's todos, updated while it is open.

local chats = require("cursor_agent.chat.registry")
local config = require("cursor_agent.config")
local events = require("cursor_agent.bridge.events")
local format = require("cursor_agent.render.format")
local paint = require("cursor_agent.decide.paint")
local rendered = require("cursor_agent.render.todos")
local blocks = require("cursor_agent.render.block")
local layout = require("cursor_agent.chat.layout")
local window = require("cursor_agent.window.quiet")

local M = {}

local listens = false

local MAX_WIDTH = 50

local win ---@type integer?
local buf ---@type integer?
local key ---@type cursor_agent.Key? the session that is shown

---@param todos cursor_agent.Todo[]
---@return cursor_agent.render.Builder
function M.draw(todos)
  local b = blocks.builder()
  local icons = require("cursor_agent.render.icons").pick(config.get().chat.icons)
  for _, todo in ipairs(todos) do
    local icon, hl = rendered.state(todo.status, icons)
    local finished = todo.status == "completed" or todo.status == "cancelled"
    b:line({
      { icon .. " ", hl },
      {
        todo.content,
        finished and "CursorAgentTodoDone" or todo.status == "in_progress" and "CursorAgentTodoActive" or nil,
      },
    })
  end
  return b
end

---@return boolean
local function is_open()
  return win ~= nil and vim.api.nvim_win_is_valid(win)
end

---@param lines string[]
---@param title string
---@return vim.api.keyset.win_config
local function win_config(lines, title)
  local width = format.width(title) + 2
  for _, line in ipairs(lines) do
    width = math.max(width, format.width(line))
  end
  width = math.max(math.min(width, MAX_WIDTH, vim.o.columns - 4), 10)
  local height = 0
  for _, line in ipairs(lines) do
    height = height + math.max(1, math.ceil(format.width(line) / width))
  end
  local border = window.border()
  return {
    relative = "editor",
    anchor = "NE",
    row = 1,
    col = vim.o.columns,
    width = width,
    height = math.max(math.min(height, math.floor(vim.o.lines / 2)), 1),
    border = border == "none" and "solid" or border,
    title = title,
    style = "minimal",
    zindex = 40,
  }
end

local function draw()
  local chat = chats.get(key)
  if not chat or not is_open() or not buf then
    return
  end
  local todos = chat.status.todos or {}
  local block = M.draw(todos)
  local done, all = rendered.progress(todos)
  paint.fill(buf, block)
  vim.api.nvim_win_set_config(win --[[@as integer]], win_config(block.lines, (" Todos %d/%d "):format(done, all)))
end

---Closes the panel.
---@return boolean
function M.close()
  if is_open() then
    pcall(vim.api.nvim_win_close, win --[[@as integer]], true)
  end
  win, key = nil, nil
  return true
end

---Opens the panel next to the work, or closes it.
---@param chat cursor_agent.Chat
---@return boolean?, string?
function M.toggle(chat)
  if is_open() then
    return M.close()
  end
  local status = require("cursor_agent.bridge").status(chat.key) or chat.status
  if #(status.todos or {}) == 0 then
    return nil, "no todos yet"
  end
  chat.status = status
  key = chat.key
  if not buf or not vim.api.nvim_buf_is_loaded(buf) then
    buf = vim.api.nvim_create_buf(false, true)
    vim.bo[buf].bufhidden = "hide"
    vim.bo[buf].filetype = "cursoragent-todos"
    require("cursor_agent.keys").map(buf, "todos")
  end
  win = vim.api.nvim_open_win(buf, false, win_config({}, " Todos "))
  local options = { wrap = true, linebreak = true, breakindent = true, breakindentopt = "shift:2", winfixbuf = true }
  for name, value in pairs(options) do
    vim.api.nvim_set_option_value(name, value, { win = win, scope = "local" })
  end
  draw()
  if not listens then
    listens = true
    events.on("chat status", "cursor_agent.decide.todos", "on_status")
  end
  return true
end

---Updates a session's todos if they are shown.
---@param chat cursor_agent.Chat
function M.on_status(chat)
  if chat.key == key then
    draw()
  end
end

---Goes to the plan the todos belong to, else to their place in the chat.
---@return boolean?, string?
function M.go()
  local chat = chats.get(key)
  if not chat then
    return nil, "the session has ended"
  end
  local path = require("cursor_agent.decide.plan").path_of(chat.key)
  if path and vim.uv.fs_stat(path) then
    return layout.edit(path)
  end
  local entry ---@type integer?
  for index, item in ipairs(chat.transcript.items) do
    entry = item.kind == "plan" and index or entry
  end
  layout.open(chat)
  local chat_win = layout.chat_window(chat)
  if not entry or not chat_win then
    return nil, "the todos are not in the chat"
  end
  vim.api.nvim_set_current_win(chat_win)
  local first = chat.transcript:range(entry)
  vim.api.nvim_win_set_cursor(chat_win, { first + chat.transcript.items[entry].gap + 1, 0 })
  return true
end

local GROUP = vim.api.nvim_create_augroup("cursor_agent_todos", {})

---A floating window belongs to one tab page, so it follows the user and must not close with a tab page.
local function follow_user()
  local chat = chats.get(key)
  if not chat then
    return
  end
  local tab = is_open() and vim.api.nvim_win_get_tabpage(win --[[@as integer]])
  if tab == vim.api.nvim_get_current_tabpage() then
    draw()
  else
    M.close()
    M.toggle(chat)
  end
end

vim.api.nvim_create_autocmd({ "VimResized", "TabEnter" }, {
  group = GROUP,
  desc = "cursor-agent: reposition the todos",
  callback = follow_user,
})

vim.api.nvim_create_autocmd("WinClosed", {
  group = GROUP,
  desc = "cursor-agent: note that the todos were closed",
  callback = function(event)
    if key and tonumber(event.match) == win then
      local tabs = #vim.api.nvim_list_tabpages()
      vim.schedule(function()
        if #vim.api.nvim_list_tabpages() < tabs then
          follow_user()
        elseif not is_open() then
          key = nil
        end
      end)
    end
  end,
})

return M
