-- Buffers for reading: a tool call's output, the protocol log, an export. `q` closes them.

local code = require("cursor_agent.window.code")
local format = require("cursor_agent.render.format")
local buffer_names = require("cursor_agent.bridge.buffer_names")
local notify = require("cursor_agent.notify")
local parsers = require("cursor_agent.colour.parsers")
local window = require("cursor_agent.window.quiet")
local words = require("cursor_agent.window.words")

local M = {}

local GROUP = vim.api.nvim_create_augroup("cursor_agent_scratch", {})

---@class (exact) cursor_agent.scratch.Opts
---@field name string unique; see bridge/buffer_names.lua
---@field filetype? string
---@field kind? cursor_agent.BufferKind whose keys it has; default: those of a reader
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
---@param wide boolean? below all windows, as wide as the screen
---@return integer? win nil where there is no room
local function open_split(buf, wide)
  local beside = code.current()
  if wide then
    local height = math.floor((vim.o.lines - vim.o.cmdheight) / 2)
    local ok, win = pcall(vim.api.nvim_open_win, buf, true, { split = "below", win = -1, height = height })
    return ok and win or nil
  end
  local ok, win = pcall(vim.api.nvim_open_win, buf, true, { split = beside and "below" or "left", win = beside or -1 })
  return ok and win or nil
end

---Closes the current window and returns to the one its buffer was opened from.
function M.close()
  local here = vim.api.nvim_get_current_win()
  local from = vim.b.cursor_agent_from
  if vim.bo.modified then
    notify.notify("this has changes: :w {file} saves them, :q! discards them", "warn")
    return
  end
  if window.shares_tab(from, here) then
    -- First, so that no window in between is entered.
    vim.api.nvim_set_current_win(from)
  end
  local ok, problem = pcall(vim.api.nvim_win_close, here, false)
  if not ok then
    vim.api.nvim_set_current_win(here)
    notify.notify(tostring(problem):gsub("^.-(E%d+: )", "%1"), "warn")
  end
end

---The buffer of this name, if there is one.
---@param name string
---@return integer?
local function find(name)
  local buf = vim.fn.bufnr(buffer_names.exactly(name))
  return buf ~= -1 and buf or nil
end

---Goes to the buffer of this name if the user has changed it.
---@param name string
---@return boolean
function M.enter_changed(name)
  local buf = find(name)
  local win = buf and vim.bo[buf].modified and vim.fn.win_findbuf(buf)[1]
  if win then
    vim.api.nvim_set_current_win(win)
  end
  return win ~= nil and win ~= false
end

---Sets the text of a buffer. Undo does not go back before this.
---@param buf integer
---@param lines string[]
local function fill(buf, lines)
  local bo = vim.bo[buf]
  local levels = bo.undolevels
  bo.modifiable = true
  bo.undolevels = -1
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  bo.undolevels = levels
  bo.modified = false
end

---Handles writing a buffer under its own name; `:w other.md` writes that file.
---@param buf integer
---@param desc string
---@param callback fun()
function M.on_write(buf, desc, callback)
  vim.bo[buf].buftype = "acwrite"
  -- Matched by name: a buffer-local autocommand would catch every file name.
  local name = vim.api.nvim_buf_get_name(buf)
  vim.api.nvim_clear_autocmds({ group = GROUP, event = "BufWriteCmd", pattern = name })
  vim.api.nvim_create_autocmd("BufWriteCmd", { group = GROUP, pattern = name, desc = desc, callback = callback })
end

---Makes Neovim ask before the user's changes are lost. They can be written to a named file.
---@param buf integer
local function keep_changes(buf)
  M.on_write(buf, "cursor-agent: ask for a file name", function()
    notify.notify("name a file: :w {file}", "error")
  end)
  vim.api.nvim_create_autocmd("BufWritePost", {
    group = GROUP,
    buffer = buf,
    desc = "cursor-agent: mark the buffer as saved",
    -- After writing to another file Neovim still considers the buffer modified, and says so after this event.
    callback = vim.schedule_wrap(function()
      if vim.api.nvim_buf_is_valid(buf) then
        vim.bo[buf].modified = false
      end
    end),
  })
end

---Shows a buffer next to the code and goes there; over a chat in a float, which would hide a split.
---@param buf integer
---@param chat cursor_agent.Chat?
---@return integer? win nil where there is no room
function M.show(buf, chat)
  local chat_win = chat and window.showing(chat.buf)[1]
  local over = chat_win ~= nil and window.is_float(chat_win)
  local lines = vim.api.nvim_buf_get_lines(buf, 0, -1, false)
  local win = not over and open_split(buf) or open_float(buf, lines)
  words.label(win)
  return win
end

---Shows lines in their own buffer next to the code, and goes there.
---@param lines string[]
---@param opts cursor_agent.scratch.Opts
---@return integer buf
function M.open(lines, opts)
  local buf = find(opts.name)
  if not buf then
    buf = vim.api.nvim_create_buf(false, true)
    vim.api.nvim_buf_set_name(buf, buffer_names.of(opts.name))
    if opts.modifiable then
      keep_changes(buf)
    end
  end
  local bo = vim.bo[buf]
  parsers.fence(buf, parsers.language_of(opts.filetype))
  fill(buf, lines)
  bo.modifiable = opts.modifiable or false
  bo.bufhidden = "wipe"
  if opts.filetype then
    bo.filetype = opts.filetype
  end
  if vim.api.nvim_get_current_buf() ~= buf then
    vim.b[buf].cursor_agent_from = vim.api.nvim_get_current_win()
  end
  require("cursor_agent.keys").map(buf, opts.kind or "reader")

  local win = vim.fn.win_findbuf(buf)[1]
  if win then
    vim.api.nvim_set_current_win(win)
    return buf
  end
  -- A chat in a float would hide a split.
  local chat = require("cursor_agent.chat.registry").current()
  local chat_win = chat and window.showing(chat.buf)[1]
  local over = opts.float or (chat_win ~= nil and window.is_float(chat_win))
  local opened = not over and open_split(buf, opts.kind == "log") or open_float(buf, lines)
  local options = { number = false, relativenumber = false, signcolumn = "no", wrap = true, foldenable = false }
  for option, value in pairs(options) do
    vim.api.nvim_set_option_value(option, value, { win = opened, scope = "local" })
  end
  words.label(opened)
  return buf
end

return M
