-- Folds of the chat windows: the details of tool calls and finished thoughts.
--
-- They are manual folds. Neovim does not evaluate 'foldexpr' while the user types in another window (Insert mode), so
-- with it a thought that ended meanwhile would stay open, and others would close around the wrong lines.

local M = {}

---Whether folds can be made in a window. Under a 'foldmethod' of the user's own they cannot, or, with markers, only by
---writing into the buffer: then the window is folded as the user says.
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

---Makes the fold over some lines, or makes it anew when they have changed. Lines count from 1.
---@param win integer
---@param first integer
---@param last integer
---@param closed boolean
---@param replace boolean there is a fold of ours from `first` on already
function M.set(win, first, last, closed, replace)
  if not is_ours(win) then
    return
  end
  keeping_view(win, function()
    if replace and vim.fn.foldlevel(first) > 0 then
      vim.api.nvim_win_set_cursor(win, { first, 0 })
      vim.cmd("silent! normal! zd")
    end
    if last > first then
      vim.cmd(("%d,%dfold"):format(first, last))
      if not closed then
        vim.cmd(("%dfoldopen"):format(first))
      end
    end
  end)
end

---Makes all folds of a window that has just come to show the chat.
---@param win integer
---@param folds { first: integer, last: integer, closed: boolean }[] in any order
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

---@param win integer
---@param line integer
---@return boolean
function M.is_closed(win, line)
  return vim.api.nvim_win_call(win, function()
    return vim.fn.foldclosed(line) ~= -1
  end)
end

return M
