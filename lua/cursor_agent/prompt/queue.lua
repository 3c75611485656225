-- The prompts queued until the running turn ends: a list to edit, reorder and send from.

local format = require("cursor_agent.render.format")
local bridge = require("cursor_agent.bridge")

local M = {}

---@type table<cursor_agent.Key, integer> buffers of the lists that are open
local buffers = {}

---@param chat cursor_agent.Chat
---@return { id: integer, text: string }? prompt
---@return integer at
local function under_cursor(chat)
  local line = vim.api.nvim_win_get_cursor(0)[1]
  return (chat.status.queue or {})[line], line
end

---@param chat cursor_agent.Chat
local function draw(chat)
  local buf = buffers[chat.key]
  if not buf or not vim.api.nvim_buf_is_valid(buf) then
    buffers[chat.key] = nil
    return
  end
  local lines = {} ---@type string[]
  for i, prompt in ipairs(chat.status.queue or {}) do
    lines[i] = ("%d. %s"):format(i, format.first_line(prompt.text, 200))
  end
  if #lines == 0 then
    M.close(chat)
    return
  end
  vim.bo[buf].modifiable = true
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.bo[buf].modifiable = false
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    vim.api.nvim_win_set_height(win, math.min(#lines, 10) + 1)
  end
end

---Above the prompt: a split, or a float over the end of a chat that is itself a float.
---@param chat cursor_agent.Chat
---@return vim.api.keyset.win_config
local function place(chat)
  local layout = require("cursor_agent.chat.layout")
  local window = require("cursor_agent.window.quiet")
  local chat_win = layout.chat_window(chat)
  if not chat_win or not window.is_float(chat_win) then
    return { split = "above", win = layout.prompt_window(chat) or -1, height = 3 }
  end
  return {
    relative = "win",
    win = chat_win,
    anchor = "SW",
    row = vim.fn.getwininfo(chat_win)[1].height,
    col = 0,
    width = math.max(vim.api.nvim_win_get_width(chat_win) - 2, 1),
    height = 3,
    border = window.border(),
    zindex = 36,
  }
end

---Opens the list above the prompt.
---@param chat cursor_agent.Chat
---@return boolean?, string?
function M.open(chat)
  if #(chat.status.queue or {}) == 0 then
    return nil, "no prompt is queued"
  end
  local buf = buffers[chat.key]
  if not buf or not vim.api.nvim_buf_is_valid(buf) then
    buf = vim.api.nvim_create_buf(false, true)
    vim.b[buf].cursor_agent_key = chat.key
    vim.bo[buf].bufhidden = "wipe"
    vim.bo[buf].filetype = "cursoragent-queue"
    require("cursor_agent.keys").map(buf, "queue")
    buffers[chat.key] = buf
  end
  local win = vim.fn.win_findbuf(buf)[1]
  if win then
    vim.api.nvim_set_current_win(win)
  else
    win = vim.api.nvim_open_win(buf, true, place(chat))
    local options = {
      number = false,
      relativenumber = false,
      signcolumn = "no",
      wrap = false,
      cursorline = true,
      winfixheight = true,
      winbar = "%#CursorAgentQueued# queued  %=%#CursorAgentDetail#<CR> edit · dd · J K move · <C-s> now · q %<",
      statusline = " ",
      statuscolumn = " ",
    }
    for name, value in pairs(options) do
      vim.api.nvim_set_option_value(name, value, { win = win, scope = "local" })
    end
  end
  draw(chat)
  return true
end

---Updates the queue if it is shown.
---@param chat cursor_agent.Chat
function M.refresh(chat)
  if buffers[chat.key] then
    draw(chat)
  end
end

---@param chat cursor_agent.Chat
---@return boolean
function M.close(chat)
  local buf = buffers[chat.key]
  buffers[chat.key] = nil
  local back = vim.api.nvim_get_current_buf() == buf and require("cursor_agent.chat.layout").prompt_window(chat)
  for _, win in ipairs(buf and vim.fn.win_findbuf(buf) or {}) do
    pcall(vim.api.nvim_win_close, win, true)
  end
  if back then
    -- When the list closes by itself, a key meant for it must not reach the chat.
    vim.api.nvim_set_current_win(back)
  end
  return true
end

---Runs a change of the queue on the prompt under the cursor.
---@param chat cursor_agent.Chat
---@param work fun(prompt: { id: integer, text: string }, at: integer): boolean?, string?
---@return boolean?, string?
local function on_prompt(chat, work)
  local prompt, at = under_cursor(chat)
  if not prompt then
    return nil, "no prompt is queued here"
  end
  return work(prompt, at)
end

---@param chat cursor_agent.Chat
---@return boolean?, string?
function M.edit(chat)
  local prompt = under_cursor(chat)
  if not prompt then
    return nil, "no prompt is queued here"
  end
  M.close(chat)
  chat.prompt:edit_queued(prompt.id, prompt.text)
  require("cursor_agent.chat.layout").enter_prompt(chat)
  return true
end

---@param chat cursor_agent.Chat
---@return boolean?, string?
function M.remove(chat)
  return on_prompt(chat, function(prompt)
    return bridge.queue_remove(chat.key, prompt.id)
  end)
end

---@param chat cursor_agent.Chat
---@param step -1|1
---@return boolean?, string?
function M.move(chat, step)
  return on_prompt(chat, function(prompt, at)
    local to = at + step
    if to < 1 or to > #chat.status.queue then
      return true
    end
    local moved, why = bridge.queue_move(chat.key, prompt.id, to)
    if moved then
      vim.api.nvim_win_set_cursor(0, { to, 0 })
    end
    return moved, why
  end)
end

---@param chat cursor_agent.Chat
---@return boolean?, string?
function M.send_now(chat)
  return on_prompt(chat, function(prompt)
    return bridge.queue_send_now(chat.key, prompt.id)
  end)
end

return M
