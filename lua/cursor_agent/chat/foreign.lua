-- Keeps a chat's windows for the chat: a buffer opened in one, by `:edit` or by a plugin, moves to the code window.

local chats = require("cursor_agent.chat.registry")
local code = require("cursor_agent.window.code")
local dress = require("cursor_agent.chat.dress")
local layout = require("cursor_agent.chat.layout")
local window = require("cursor_agent.window.quiet")

local M = {}

---The buffer of ours that a window is meant for; nil if there is none, or if it is gone.
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

---Whether a window of ours shows a foreign buffer. Not while a session loads: that may put anything anywhere.
---@param win integer
---@return boolean
local function is_taken(win)
  local own = own_buffer(win)
  return own ~= nil
    and vim.g.SessionLoad ~= 1
    and not layout.is_closing()
    and not chats.of_buffer(vim.api.nvim_win_get_buf(win))
end

---Shows a buffer in the code window without ever hiding it: some buffers are deleted when hidden, and others by a
---user's autocommand.
---@param buf integer
---@param leave fun(): boolean gives up its current window; false if that was not possible
---@return integer? win
local function take_along(buf, leave)
  local kept = vim.bo[buf].bufhidden
  vim.bo[buf].bufhidden = "hide"
  local left = leave()
  local target ---@type integer?
  if left and vim.api.nvim_buf_is_valid(buf) then
    target = layout.window_for(buf)
    code.borrow(target, buf)
    window.despite_autocommands(vim.api.nvim_win_set_buf, target, buf)
  end
  if vim.api.nvim_buf_is_valid(buf) then
    vim.bo[buf].bufhidden = kept
  end
  return target and vim.api.nvim_win_is_valid(target) and vim.api.nvim_win_get_buf(target) == buf and target or nil
end

---Insert mode was meant for the prompt.
local function stop_typing()
  if vim.api.nvim_get_mode().mode:sub(1, 1) == "i" then
    vim.cmd.stopinsert()
  end
end

---Moves a foreign buffer in one of our windows to the code window, and restores ours.
---@param win integer
local function move(win)
  if not vim.api.nvim_win_is_valid(win) or not is_taken(win) then
    return
  end
  local own, chat = own_buffer(win)
  if not own or not chat then
    return
  end
  local here = vim.api.nvim_get_current_win() == win
  local view = vim.api.nvim_win_call(win, vim.fn.winsaveview)
  local target = take_along(vim.api.nvim_win_get_buf(win), function()
    window.despite_autocommands(vim.api.nvim_win_set_buf, win, own)
    if not vim.api.nvim_win_is_valid(win) or vim.api.nvim_win_get_buf(win) ~= own then
      return false
    end
    dress.dress(chat, win, own == chat.buf and "chat" or "prompt")
    if own == chat.buf and vim.api.nvim_win_get_cursor(win)[1] >= vim.api.nvim_buf_line_count(own) then
      chat.transcript.tail:go(win)
    end
    if window.is_float(win) then
      -- The float covers the code.
      layout.close(chat)
    end
    return true
  end)
  if not target then
    return
  end
  vim.api.nvim_win_call(target, function()
    vim.fn.winrestview(view)
  end)
  if here then
    stop_typing()
    window.despite_autocommands(vim.api.nvim_set_current_win, target)
  end
end

---Moves a file opened in a split of one of our windows (`:split`, a picker's split key) next to the code.
---@param win integer
local function move_split(win)
  local from = vim.api.nvim_win_is_valid(win) and vim.w[win].cursor_agent_split ---@type integer?
  local at = code.current()
  if not from or not at or at == win or not vim.api.nvim_win_is_valid(from) then
    return
  end
  local buf = vim.api.nvim_win_get_buf(win)
  if vim.bo[buf].buftype ~= "" or chats.of_buffer(buf) then
    return
  end
  local here = vim.api.nvim_get_current_win() == win
  local view = vim.api.nvim_win_call(win, vim.fn.winsaveview)
  local stacked = vim.fn.win_screenpos(win)[2] == vim.fn.win_screenpos(from)[2]
  local side = stacked and (vim.o.splitbelow and "below" or "above") or (vim.o.splitright and "right" or "left")
  window.undisturbed(function()
    local ok, new = window.despite_autocommands(vim.api.nvim_open_win, buf, here, { split = side, win = at })
    if ok then
      vim.api.nvim_win_call(new, function()
        vim.fn.winrestview(view)
      end)
      window.close(win)
    end
  end)
  if here then
    stop_typing()
  end
end

---File browsers replace a directory's buffer with their own, in the window it is in. Wait this long for one to do so.
local BROWSER_MS = 150

---Whether a window shows a directory that no file browser has taken over yet.
---@param win integer
---@return boolean
local function is_bare_directory(win)
  local buf = vim.api.nvim_win_get_buf(win)
  return vim.bo[buf].buftype == ""
    and vim.bo[buf].filetype == ""
    and vim.fn.isdirectory(vim.api.nvim_buf_get_name(buf)) == 1
end

function M.setup()
  local group = vim.api.nvim_create_augroup("cursor_agent_foreign", {})
  vim.api.nvim_create_autocmd("WinNew", {
    group = group,
    desc = "cursor-agent: note windows split from the chat",
    callback = function()
      local win, from = vim.api.nvim_get_current_win(), vim.fn.win_getid(vim.fn.winnr("#"))
      if from ~= 0 and from ~= win and own_buffer(from) and not window.is_float(win) then
        vim.w[win].cursor_agent_split = vim.api.nvim_win_get_buf(win) == vim.api.nvim_win_get_buf(from) and from or nil
      end
    end,
  })
  vim.api.nvim_create_autocmd({ "BufWinEnter", "BufEnter" }, {
    group = group,
    desc = "cursor-agent: move files opened in the chat to the code window",
    callback = function()
      local win = vim.api.nvim_get_current_win()
      if vim.w[win].cursor_agent_split and vim.g.SessionLoad ~= 1 then
        vim.schedule(function()
          move_split(win)
        end)
      elseif is_taken(win) then
        -- Deferred until whatever opened it has placed its cursor.
        vim.defer_fn(function()
          move(win)
        end, is_bare_directory(win) and BROWSER_MS or 0)
      end
    end,
  })
end

return M
