-- Keeps the windows of a chat for the chat: a buffer that is opened in one, by `:edit` or by a plugin, moves to the code window.

local chats = require("cursor_agent.chat.registry")
local dress = require("cursor_agent.chat.dress")
local layout = require("cursor_agent.chat.layout")
local window = require("cursor_agent.window.quiet")

local M = {}

---The buffer of ours a window is for; nil where it is for none, or that is gone.
---@param win integer
---@return integer? buf
---@return cursor_agent.Chat? chat
local function own_buffer(win)
  local buf = vim.w[win].cursor_agent_dressed ---@type integer?
  local chat = buf and vim.api.nvim_buf_is_loaded(buf) and chats.of_buffer(buf) or nil
  if chat then
    return buf, chat
  end
end

---Whether a window of ours shows what is not ours. A session that is loaded may put anything anywhere.
---@param win integer
---@return boolean
local function is_taken(win)
  local own = own_buffer(win)
  return own ~= nil
    and vim.g.SessionLoad ~= 1
    and not layout.is_closing()
    and not chats.of_buffer(vim.api.nvim_win_get_buf(win))
end

---Moves the buffer in a window of ours to the code window, and brings ours back.
---@param win integer
local function move(win)
  if not vim.api.nvim_win_is_valid(win) or not is_taken(win) then
    return
  end
  local own, chat = own_buffer(win)
  if not own or not chat then
    return
  end
  local buf = vim.api.nvim_win_get_buf(win)
  local here = vim.api.nvim_get_current_win() == win
  local view = vim.api.nvim_win_call(win, vim.fn.winsaveview)
  -- The buffer has to be shown somewhere all the time: some are deleted when they are not.
  local kept = vim.bo[buf].bufhidden
  vim.bo[buf].bufhidden = "hide"
  window.despite_autocommands(vim.api.nvim_win_set_buf, win, own)
  dress.dress(chat, win, own == chat.buf and "chat" or "prompt")
  if own == chat.buf and vim.api.nvim_win_get_cursor(win)[1] >= vim.api.nvim_buf_line_count(own) then
    chat.transcript.tail:go(win)
  end
  if window.is_float(win) then
    -- It lies over the code.
    layout.close(chat)
  end
  local target = layout.window_for(buf)
  window.despite_autocommands(vim.api.nvim_win_set_buf, target, buf)
  vim.bo[buf].bufhidden = kept
  vim.api.nvim_win_call(target, function()
    vim.fn.winrestview(view)
  end)
  if here then
    if vim.api.nvim_get_mode().mode:sub(1, 1) == "i" then
      vim.cmd.stopinsert()
    end
    window.despite_autocommands(vim.api.nvim_set_current_win, target)
  end
end

function M.setup()
  vim.api.nvim_create_autocmd({ "BufWinEnter", "BufEnter" }, {
    group = vim.api.nvim_create_augroup("cursor_agent_foreign", {}),
    desc = "cursor-agent: what is opened in a window of the chat belongs in the code window",
    callback = function()
      local win = vim.api.nvim_get_current_win()
      if is_taken(win) then
        -- After whatever opened it has put its cursor.
        vim.schedule(function()
          move(win)
        end)
      end
    end,
  })
end

return M
