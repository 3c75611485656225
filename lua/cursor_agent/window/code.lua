-- The window that holds the user's code: which one it is, and whether it may show something else.

local window = require("cursor_agent.window.quiet")

local M = {}

---@type table<integer, integer> by tab page: the code window the user was in last
local last_code = {}

---Records that a code window is about to show something else for a while, such as a file browser: what is opened next
---belongs there too.
---@param win integer
---@param buf integer
function M.borrow(win, buf)
  if M.is_code(win) then
    vim.w[win].cursor_agent_borrowed = { buf = buf, filetype = vim.bo[buf].filetype }
  end
end

---Whether a window still shows what it was borrowed for: the buffer, or another one of the same plugin.
---@param win integer
---@param buf integer
---@return boolean
local function is_borrowed(win, buf)
  local borrowed = vim.w[win].cursor_agent_borrowed ---@type { buf: integer, filetype: string }?
  return borrowed ~= nil
    and (borrowed.buf == buf or (borrowed.filetype ~= "" and borrowed.filetype == vim.bo[buf].filetype))
end

---Whether a window holds the user's own work: not ours, not a float, not a special buffer.
---@param win integer
---@return boolean
function M.is_code(win)
  if not vim.api.nvim_win_is_valid(win) or window.is_float(win) then
    return false
  end
  local buf = vim.api.nvim_win_get_buf(win)
  return (vim.bo[buf].buftype == "" or is_borrowed(win, buf)) and vim.fn.win_gettype(win) == ""
end

---Records that the user is in a window, if it holds code.
---@param win integer
function M.remember(win)
  if M.is_code(win) then
    last_code[vim.api.nvim_win_get_tabpage(win)] = win
  end
end

---The window to open code in: the one the user was in last, or any that holds code.
---@return integer?
function M.current()
  local tab = vim.api.nvim_get_current_tabpage()
  local win = last_code[tab]
  if win and M.is_code(win) and vim.api.nvim_win_get_tabpage(win) == tab then
    return win
  end
  for _, other in ipairs(vim.api.nvim_tabpage_list_wins(tab)) do
    if M.is_code(other) then
      return other
    end
  end
end

---Whether a window may show another buffer than the one it has.
---@param win integer
---@return boolean
function M.may_change(win)
  local buf = vim.api.nvim_win_get_buf(win)
  local keeps = vim.o.hidden or vim.bo[buf].bufhidden == "hide" or #vim.fn.win_findbuf(buf) > 1
  return not vim.wo[win].winfixbuf and (keeps or not vim.bo[buf].modified)
end

vim.api.nvim_create_autocmd("WinLeave", {
  group = vim.api.nvim_create_augroup("cursor_agent_code_window", {}),
  desc = "cursor-agent: remember the code window",
  callback = function()
    M.remember(vim.api.nvim_get_current_win())
  end,
})

return M
