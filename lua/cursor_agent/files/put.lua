-- Puts a text into a buffer and its file, or leaves both as they are.

local find = require("cursor_agent.files.find")
local loaded = require("cursor_agent.files.loaded")
local merge = require("cursor_agent.files.merge")
local reviewed = require("cursor_agent.review.buffers")

local M = {}

---@param buf integer
---@param hunks cursor_agent.merge.Hunk[]
function M.set_hunks(buf, hunks)
  -- It may be highlighted by now.
  require("cursor_agent.colour.parsers").fence_file(buf)
  local modifiable = vim.bo[buf].modifiable
  vim.bo[buf].modifiable = true
  reviewed.quietly(buf, function()
    merge.apply(buf, hunks)
  end)
  vim.bo[buf].modifiable = modifiable
end

---@param buf integer
---@param lines string[]
function M.set_lines(buf, lines)
  M.set_hunks(buf, merge.diff(vim.api.nvim_buf_get_lines(buf, 0, -1, false), lines))
end

-- The modes 0222.
local WRITABLE = 146

---Writes a buffer to its file without the user's formatters and the like, which would change what the agent wrote, and
---as safely as Neovim can: a file that cannot be written completely stays as it was.
---@param buf integer
---@param eol boolean
---@param real string? where the path must lead
---@param written fun(state: string) gets the state of the file
---@return boolean?, string?
local function write_buffer(buf, eol, real, written)
  local bo = vim.bo[buf]
  local path = vim.api.nvim_buf_get_name(buf)
  local stat = vim.uv.fs_stat(path)
  if stat and stat.type ~= "file" then
    return nil, path .. ": not a regular file"
  elseif not stat and vim.uv.fs_lstat(path) then
    return nil, path .. ": a broken link"
  elseif bo.readonly or (stat and (bit.band(stat.mode, WRITABLE) == 0 or not vim.uv.fs_access(path, "W"))) then
    return nil, path .. ": read-only; nothing was written"
  end
  if not loaded.sync(buf, true) and not loaded.is_current(buf, path) then
    return nil, path .. ": the editor is busy; nothing was written, try again"
  end
  local made, problem = pcall(vim.fn.mkdir, vim.fs.dirname(path), "p")
  if not made then
    return nil, (tostring(problem):gsub("^.-(E%d+:)", "%1"))
  end
  if find.leads_elsewhere(path, real) then
    return nil, find.elsewhere(path)
  end
  local fix, end_of_line = bo.fixendofline, bo.endofline
  local backup, skip, copy = vim.o.writebackup, vim.o.backupskip, vim.go.backupcopy
  bo.fixendofline = false
  bo.endofline = eol
  vim.o.writebackup = true
  vim.o.backupskip = ""
  -- The other values replace a link by a file.
  vim.go.backupcopy = copy:find("yes", 1, true) and "yes" or "auto"
  local ok, why = pcall(vim.api.nvim_buf_call, buf, function()
    vim.cmd("silent noautocmd keepalt lockmarks write")
  end)
  vim.o.writebackup = backup
  vim.o.backupskip = skip
  vim.go.backupcopy = copy
  bo.fixendofline = fix
  if not ok then
    bo.endofline = end_of_line
    local said = tostring(why):match("(E%d+:[^\n]*)") or tostring(why)
    return nil, ("%s: %s"):format(path, said)
  end
  written(loaded.state(vim.uv.fs_stat(path)))
  loaded.note(buf)
  reviewed.quietly(buf, function()
    vim.api.nvim_exec_autocmds("BufWritePost", { buffer = buf, modeline = false })
  end)
  return true
end

---The hunks that undo others, once those are applied.
---@param buf integer
---@param hunks cursor_agent.merge.Hunk[]
---@return cursor_agent.merge.Hunk[]
local function inverse(buf, hunks)
  local back, grown = {}, 0 ---@type cursor_agent.merge.Hunk[], integer
  for i, hunk in ipairs(hunks) do
    local first = hunk.removed == 0 and hunk.from or hunk.from - 1
    local lines = vim.api.nvim_buf_get_lines(buf, first, first + hunk.removed, false)
    local from = first + grown + (#hunk.lines > 0 and 1 or 0)
    back[i] = { from = from, removed = #hunk.lines, lines = lines }
    grown = grown + #hunk.lines - hunk.removed
  end
  return back
end

---Remembers a buffer's state, to restore it if the file cannot be written.
---@param buf integer
---@param hunks cursor_agent.merge.Hunk[] that are about to be applied
---@return fun() restore
local function remember(buf, hunks)
  local back, modified = inverse(buf, hunks), vim.bo[buf].modified
  local step = vim.api.nvim_buf_call(buf, vim.fn.undotree).seq_cur
  return function()
    vim.api.nvim_buf_call(buf, function()
      local view = vim.fn.winsaveview()
      -- In Insert mode this would break Neovim's tracking of the typed text.
      if vim.api.nvim_get_mode().mode:sub(1, 1) == "n" and vim.fn.undotree().seq_cur ~= step then
        vim.cmd("silent! noautocmd undo " .. step)
      end
      if vim.fn.undotree().seq_cur ~= step then
        M.set_hunks(buf, back)
      end
      vim.fn.winrestview(view)
    end)
    vim.bo[buf].modified = modified
  end
end

---Why a text cannot be written in the encoding of a buffer's file, if so. Neovim would substitute other characters.
---@param buf integer
---@return string?
local function not_encodable(buf)
  local encoding = vim.bo[buf].fileencoding
  if encoding == "" or encoding == "utf-8" then
    return nil
  end
  ---@param text string
  ---@return boolean
  local function fits(text)
    local there = vim.iconv(text, "utf-8", encoding)
    return there ~= nil and vim.iconv(there, encoding, "utf-8") == text
  end
  local lines = loaded.lines(buf)
  if fits(table.concat(lines, "\n")) then
    return nil
  end
  for i, line in ipairs(lines) do
    if not fits(line) then
      local text = "%s: line %d has characters that cannot be written in %s, the file's encoding; nothing was written"
      return text:format(vim.api.nvim_buf_get_name(buf), i, encoding)
    end
  end
end

---The text of a buffer, unless it is long.
---@param buf integer
---@return string?
function M.short_text(buf)
  return vim.api.nvim_buf_line_count(buf) <= loaded.PIECE and reviewed.text(buf) or nil
end

---Puts a text into a buffer and its file, or leaves both as they are.
---@param buf integer
---@param hunks cursor_agent.merge.Hunk[] what turns the buffer's text into the new one
---@param eol boolean
---@param real string? where the path must lead
---@param author { key: cursor_agent.Key, turn: integer }? whose text it is
---@param ours? string the buffer's text, each line with its line ending, if it is part of the new text
---@return boolean?, string?
function M.put(buf, hunks, eol, real, author, ours)
  local mixed = ours ~= nil and vim.bo[buf].modified
  local before = M.short_text(buf)
  if ours and mixed and not before then
    before = vim.bo[buf].endofline and ours or ours:sub(1, -2)
  end
  local restore = remember(buf, hunks)
  M.set_hunks(buf, hunks)
  local ok, why = nil, not_encodable(buf)
  if not why then
    ok, why = write_buffer(buf, eol, real, function(state)
      -- Unsaved lines written together with the agent's are still the user's.
      local merged = mixed and hunks or nil
      reviewed.took(buf, { state = state, before = before, hunks = merged, author = author, mixed = mixed })
    end)
  end
  if not ok then
    restore()
  end
  return ok, why
end

return M
