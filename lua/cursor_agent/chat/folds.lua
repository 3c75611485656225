-- Folds of the chat windows: the details of tool calls and finished thoughts.
--
-- They are manual folds. Neovim does not evaluate 'foldexpr' while the user types in another window (Insert mode), so a
-- thought that ended meanwhile would stay open, and other folds would close around the wrong lines.

local M = {}

---Whether we may make folds in a window. With the user's own 'foldmethod' we cannot, or, with markers, only by writing
---into the buffer: then leave folding to the user's setting.
---@param win integer
---@return boolean
local function is_ours(win)
  return vim.wo[win].foldmethod == "manual"
end

---@param win integer
---@param work fun()
local function keeping_view(win, work)
  vim.api.nvim_win_call(win, function()
    local view = vim.fn.winsaveview()
    work()
    vim.fn.winrestview(view)
  end)
end

---@class (exact) cursor_agent.folds.Fold lines count from 1
---@field first integer
---@field last integer
---@field closed boolean

---@class (exact) cursor_agent.folds.Change
---@field top integer first line to refold
---@field bottom integer last line
---@field known boolean there was a fold of ours before
---@field folds cursor_agent.folds.Fold[] the folds to make

---Which of the folds that begin at given lines are closed. A fold inside a closed one counts as neither.
---@param win integer
---@param lines table<integer, integer> by anything
---@return table<integer, boolean>
function M.closed(win, lines)
  return vim.api.nvim_win_call(win, function()
    local closed = {} ---@type table<integer, boolean>
    for key, line in pairs(lines) do
      local first = vim.fn.foldclosed(line)
      if first == -1 or first == line then
        closed[key] = first == line
      end
    end
    return closed
  end)
end

---Removes all folds that contain any of some lines.
---@param first integer
---@param last integer
local function clear(first, last)
  for line = first, last do
    while vim.fn.foldlevel(line) > 0 do
      vim.api.nvim_win_set_cursor(0, { line, 0 })
      vim.cmd("normal! zd")
    end
  end
end

---@param fold cursor_agent.folds.Fold
local function make(fold)
  vim.cmd(("%d,%dfold"):format(fold.first, fold.last))
  if not fold.closed then
    vim.cmd(("%dfoldopen"):format(fold.first))
  end
end

---Remakes folds of a window.
---@param win integer
---@param changes cursor_agent.folds.Change[] their old ranges do not overlap
function M.update(win, changes)
  if not is_ours(win) then
    return
  end
  keeping_view(win, function()
    -- Remove all of them first: one may have grown over another's lines.
    for _, change in ipairs(changes) do
      if change.known then
        clear(change.top, change.bottom)
      end
    end
    local all = {} ---@type cursor_agent.folds.Fold[]
    for _, change in ipairs(changes) do
      vim.list_extend(all, change.folds)
    end
    -- Inner folds first: inside a closed fold, a range would extend to all of it.
    table.sort(all, function(a, b)
      return a.last - a.first < b.last - b.first
    end)
    for _, fold in ipairs(all) do
      make(fold)
    end
  end)
end

---Creates all folds in a window that has just started to show the chat.
---@param win integer
---@param folds cursor_agent.folds.Fold[] inner folds first
function M.rebuild(win, folds)
  if not is_ours(win) then
    return
  end
  local commands = {} ---@type string[]
  for _, fold in ipairs(folds) do
    commands[#commands + 1] = ("%d,%dfold"):format(fold.first, fold.last)
    if not fold.closed then
      commands[#commands + 1] = ("%dfoldopen"):format(fold.first)
    end
  end
  keeping_view(win, function()
    vim.cmd("silent! normal! zE")
    vim.api.nvim_exec2(table.concat(commands, "\n"), {})
  end)
end

return M
