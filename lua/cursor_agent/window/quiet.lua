-- Opens and closes windows so that nothing else on the screen moves, and classifies windows.

local M = {}

---@param win integer
---@return boolean
function M.is_float(win)
  return vim.api.nvim_win_get_config(win).relative ~= ""
end

---Changes a window although the user's autocommands may fail. A failing one is reported, and stops nothing.
---@param change fun(...: any): any
---@param ... any
---@return boolean ok
---@return any result
function M.despite_autocommands(change, ...)
  local ok, result = pcall(change, ...)
  if not ok and tostring(result):find("Autocommands for", 1, true) then
    require("cursor_agent.notify").once(vim.split(tostring(result), "\n")[1], "warn")
  end
  return ok, result
end

---Whether a window still exists, in the same tab page as another.
---@param win integer?
---@param other integer
---@return boolean
function M.shares_tab(win, other)
  return win ~= nil
    and vim.api.nvim_win_is_valid(win)
    and vim.api.nvim_win_get_tabpage(win) == vim.api.nvim_win_get_tabpage(other)
end

---The windows of a tab page that show a buffer.
---@param buf integer
---@param tab? integer
---@return integer[]
function M.showing(buf, tab)
  return vim.tbl_filter(function(win)
    return vim.api.nvim_win_get_buf(win) == buf
  end, vim.api.nvim_tabpage_list_wins(tab or 0))
end

---Runs something that opens or closes windows without scrolling the text of the others.
---@generic T
---@param work fun(): T
---@return T
function M.undisturbed(work)
  local keep = vim.o.splitkeep
  vim.o.splitkeep = "screen"
  local ok, result = pcall(work)
  vim.o.splitkeep = keep
  if not ok then
    error(result, 0)
  end
  return result
end

---Closes a window and gives its room to a neighbour; the other windows keep their sizes.
---@param win integer
---@return boolean
function M.close(win)
  -- 'equalalways' would equalize them, and setting that option does so immediately. It acts only in the direction named
  -- by 'eadirection', so name the one in which no room becomes free.
  local full_width = vim.api.nvim_win_get_width(win) == vim.o.columns
  local column = vim.fn.win_screenpos(win)[2]
  local stacked = false
  for _, other in ipairs(vim.api.nvim_tabpage_list_wins(vim.api.nvim_win_get_tabpage(win))) do
    if other ~= win and not M.is_float(other) then
      local same_width = vim.api.nvim_win_get_width(other) == vim.api.nvim_win_get_width(win)
      stacked = stacked or (same_width and vim.fn.win_screenpos(other)[2] == column)
    end
  end
  local direction = vim.o.eadirection
  vim.o.eadirection = (full_width or stacked) and "hor" or "ver"
  M.despite_autocommands(vim.api.nvim_win_close, win, true)
  vim.o.eadirection = direction
  return not vim.api.nvim_win_is_valid(win)
end

---The border of our floats. 'winborder' is new in 0.11; if the user has set it, use that.
---@return any
function M.border()
  local own = vim.fn.exists("+winborder") == 1 and vim.o.winborder or ""
  if own == "" then
    return "rounded"
  end
  -- Since 0.12 it may hold the characters themselves, which `nvim_open_win` wants as a list.
  return own:find(",", 1, true) and vim.split(own, ",", { plain = true }) or own
end

return M
