-- Takes code out of the chat: yanks the fenced block under the cursor or puts it into the code window.

local fences = require("cursor_agent.render.fence")
local format = require("cursor_agent.render.format")
local notify = require("cursor_agent.notify")

local M = {}

---The fenced block around a line. Line numbers start at 1.
---@param lines string[]
---@param at integer
---@return integer? first of the code
---@return integer? last
---@return string? prefix of each of its lines
function M.block_at(lines, at)
  local open, first ---@type cursor_agent.render.Fence?, integer?
  for i, line in ipairs(lines) do
    local fence = fences.read(line)
    if open and open.prefix:find(">", 1, true) and not line:find("^%s*>") then
      -- The block quote has ended, and so has any fence opened in it.
      open, first = nil, nil
    end
    if fence and not open then
      open, first = fence, i
    elseif fence and open and fences.ends(fence, open.marks) then
      if first and at >= first and at <= i then
        return first + 1, i - 1, open.prefix
      end
      open, first = nil, nil
    end
  end
  -- Still open: the agent has not closed it yet.
  if open and first and at >= first then
    return first + 1, #lines, open.prefix
  end
end

---The lines of an entry as the agent wrote them, and which of them a buffer row belongs to.
---@param transcript cursor_agent.Transcript
---@param index integer
---@param row integer
---@return string[]
---@return integer at
local function written(transcript, index, row)
  local item = transcript.items[index]
  local first, past = transcript:range(index)
  local top = first + item.gap
  local wrapped = {} ---@type table<integer, boolean>
  local ns = require("cursor_agent.chat.transcript").NS.wrapped
  for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(transcript.buf, ns, { top, 0 }, { past - 1, -1 }, {})) do
    wrapped[mark[2]] = true
  end
  local prefix = item.tail and item.tail.prefix or ""
  local lines, at = {}, 0 ---@type string[], integer
  for i, line in ipairs(vim.api.nvim_buf_get_lines(transcript.buf, top, past, false)) do
    -- An empty line has the prefix without the space at its end.
    line = line:sub(#prefix + 1)
    if wrapped[top + i - 1] and #lines > 0 then
      lines[#lines] = lines[#lines] .. line
    else
      lines[#lines + 1] = line
    end
    at = top + i - 1 <= row and #lines or at
  end
  return lines, at
end

---The code of the block around a row, as far as it is in one entry.
---@param transcript cursor_agent.Transcript
---@param index integer
---@param row integer
---@return string[]?
---@return boolean begun it may have begun in an entry above
---@return boolean open it may continue in an entry below
local function code_in(transcript, index, row)
  local lines, at = written(transcript, index, row)
  local first, last, prefix = M.block_at(lines, at)
  if not first or not last then
    return nil, false, false
  end
  local code = vim.tbl_map(function(line)
    return fences.strip(line, prefix or "")
  end, vim.list_slice(lines, first, last))
  return code, first == 2, last == #lines
end

---Joins two parts of a block that a tool call split.
---@param transcript cursor_agent.Transcript
---@param above string[]
---@param below string[]
---@param goes_on cursor_agent.transcript.GoesOn
---@return string[]
local function join(transcript, above, below, goes_on)
  local code = vim.list_slice(above)
  if goes_on.joined then
    code[#code] = (code[#code] or "") .. (below[1] or "")
  else
    -- Trailing empty lines of a message are not written to the buffer.
    local tail = assert(transcript.items[goes_on.from].tail)
    local _, newlines = tail.held:gsub("\n", "")
    for _ = 2, newlines do
      code[#code + 1] = ""
    end
  end
  return vim.list_extend(code, below, goes_on.joined and 2 or 1)
end

---@param chat cursor_agent.Chat
---@return string[]?, string?
local function code_here(chat)
  local transcript = require("cursor_agent.chat.transcript").here(chat)
  local items = transcript.items
  local row = vim.api.nvim_win_get_cursor(0)[1] - 1
  local index = transcript:entry_at(row)
  if not index or vim.api.nvim_get_current_buf() ~= transcript.buf then
    return nil, "the cursor is not on a code block"
  end
  local code, begun, open = code_in(transcript, index, row)
  if not code then
    return nil, "the cursor is not on a code block"
  end
  local first = index
  while begun and items[first].goes_on do
    local goes_on = items[first].goes_on --[[@as cursor_agent.transcript.GoesOn]]
    local _, past = transcript:range(goes_on.from)
    local above
    above, begun = code_in(transcript, goes_on.from, past - 1)
    code = join(transcript, above or {}, code, goes_on)
    first = goes_on.from
  end
  local last = index
  local i = transcript:next(index)
  while i do
    local goes_on = items[i].goes_on
    if not open or (items[i].kind == "user" and items[i].parent == items[index].parent) then
      break
    elseif goes_on and goes_on.from == last then
      local below
      below, _, open = code_in(transcript, i, transcript:first_row(i) + items[i].gap)
      code = join(transcript, code, below or {}, goes_on)
      last = i
    end
    i = transcript:next(i)
  end
  return code
end

---@param chat cursor_agent.Chat
---@return boolean?, string?
function M.yank(chat)
  local code, why = code_here(chat)
  if not code then
    return nil, why
  end
  local register = vim.v.register
  vim.fn.setreg(register, vim.tbl_map(format.vim_line, code), "l")
  notify.notify(("%s yanked"):format(format.plural(#code, "line")))
  return true
end

---@param chat cursor_agent.Chat
---@return boolean?, string?
function M.apply(chat)
  local code, why = code_here(chat)
  if not code then
    return nil, why
  end
  local win = require("cursor_agent.window.code").current()
  if not win then
    return nil, "no code window to put it in"
  end
  local buf = vim.api.nvim_win_get_buf(win)
  if not vim.bo[buf].modifiable then
    return nil, ("%s is not modifiable"):format(vim.api.nvim_buf_get_name(buf))
  end
  local line = vim.api.nvim_win_get_cursor(win)[1]
  local only = vim.api.nvim_buf_line_count(buf) == 1 and vim.api.nvim_buf_get_lines(buf, 0, 1, false)[1] == ""
  vim.api.nvim_buf_set_lines(buf, only and 0 or line, only and 1 or line, false, code)
  local name = format.path(vim.api.nvim_buf_get_name(buf), chat.cwd)
  notify.notify(
    ("%s put into %s below line %d"):format(
      format.plural(#code, "line"),
      name ~= "" and name or "the buffer",
      only and 0 or line
    )
  )
  return true
end

return M
