-- Buffers to read in: a tool call's output, the log, an export. `q` closes them.

local format = require("cursor_agent.render.format")
local window = require("cursor_agent.window")

local M = {}

---@class (exact) cursor_agent.scratch.Opts
---@field name string unique; shown as cursor-agent://name
---@field filetype? string
---@field modifiable? boolean
---@field float? boolean

---@param buf integer
---@param lines string[]
---@return integer win
local function open_float(buf, lines)
  local width = 20
  for _, line in ipairs(lines) do
    width = math.max(width, format.width(line))
  end
  return vim.api.nvim_open_win(buf, true, {
    relative = "editor",
    width = math.max(math.min(width, vim.o.columns - 6), 1),
    height = math.max(math.min(#lines, vim.o.lines - 6), 1),
    row = math.max(math.floor((vim.o.lines - #lines) / 2) - 1, 1),
    col = math.max(math.floor((vim.o.columns - width) / 2), 1),
    border = window.border(),
    style = "minimal",
  })
end

---@param buf integer
---@return integer? win nil where there is no room
local function open_split(buf)
  local code = window.code_window()
  local ok, win = pcall(vim.api.nvim_open_win, buf, true, { split = code and "below" or "left", win = code or -1 })
  return ok and win or nil
end

---Closes the current window and goes back to the one its buffer was opened from.
---@param from integer
local function close(from)
  local here = vim.api.nvim_get_current_win()
  if window.shares_tab(from, here) then
    -- First, so that no window between is entered.
    vim.api.nvim_set_current_win(from)
  end
  local ok, problem = pcall(vim.api.nvim_win_close, here, false)
  if not ok then
    vim.api.nvim_set_current_win(here)
    require("cursor_agent.notify").notify(tostring(problem):gsub("^.-(E%d+: )", "%1"), "warn")
  end
end

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
  local from = vim.api.nvim_get_current_win()
  vim.keymap.set("n", "q", function()
    close(from)
  end, { buffer = buf, nowait = true, desc = "cursor-agent: Close" })

  local win = vim.fn.win_findbuf(buf)[1]
  if win then
    vim.api.nvim_set_current_win(win)
    return buf
  end
  -- A chat in a float would hide a split.
  local chat = require("cursor_agent.chats").current()
  local chat_win = chat and window.chat_window(chat)
  local over = opts.float or (chat_win ~= nil and window.is_float(chat_win))
  local opened = not over and open_split(buf) or open_float(buf, lines)
  local options = { number = false, relativenumber = false, signcolumn = "no", wrap = true, foldenable = false }
  for option, value in pairs(options) do
    vim.api.nvim_set_option_value(option, value, { win = opened, scope = "local" })
  end
  return buf
end

return M
