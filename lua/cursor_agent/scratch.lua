-- Buffers to read in: a tool call's output, the log, an export. `q` closes them.

local window = require("cursor_agent.window")

local M = {}

---@class (exact) cursor_agent.scratch.Opts
---@field name string unique; shown as cursor-agent://name
---@field filetype? string
---@field modifiable? boolean
---@field float? boolean

---Shows lines in a buffer of their own, beside the code, and goes there.
---@param lines string[]
---@param opts cursor_agent.scratch.Opts
---@return integer buf
function M.open(lines, opts)
  local name = "cursor-agent://" .. opts.name
  local buf = vim.fn.bufnr("^" .. vim.fn.escape(name, "[]*?{}\\") .. "$")
  if buf == -1 then
    buf = vim.api.nvim_create_buf(false, true)
    vim.api.nvim_buf_set_name(buf, name)
  end
  local bo = vim.bo[buf]
  bo.modifiable = true
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  bo.modifiable = opts.modifiable or false
  bo.modified = false
  bo.bufhidden = "wipe"
  if opts.filetype then
    bo.filetype = opts.filetype
  end
  vim.keymap.set("n", "q", "<Cmd>close<CR>", { buffer = buf, nowait = true, desc = "cursor-agent: Close" })

  local win = vim.fn.win_findbuf(buf)[1]
  if win then
    vim.api.nvim_set_current_win(win)
    return buf
  end
  if opts.float then
    local width = 20
    for _, line in ipairs(lines) do
      width = math.max(width, vim.fn.strdisplaywidth(line))
    end
    win = vim.api.nvim_open_win(buf, true, {
      relative = "editor",
      width = math.min(width, vim.o.columns - 6),
      height = math.min(#lines, vim.o.lines - 6),
      row = math.max(math.floor((vim.o.lines - #lines) / 2) - 1, 1),
      col = math.max(math.floor((vim.o.columns - width) / 2), 1),
      border = window.border(),
      style = "minimal",
    })
  else
    local code = window.code_window()
    win = vim.api.nvim_open_win(buf, true, { split = code and "below" or "left", win = code or -1 })
  end
  local options = { number = false, relativenumber = false, signcolumn = "no", wrap = true, foldenable = false }
  for option, value in pairs(options) do
    vim.api.nvim_set_option_value(option, value, {
      win = win --[[@as integer]],
      scope = "local",
    })
  end
  return buf
end

return M
