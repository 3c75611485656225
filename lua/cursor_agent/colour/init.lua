-- Finds what of a transcript is on the screen and not coloured yet, a piece at a time.

local bisect = require("cursor_agent.render.bisect")
local guard = require("cursor_agent.colour.guard")
local markdown = require("cursor_agent.render.markdown")
local regex = require("cursor_agent.colour.regex")
local syntax = require("cursor_agent.colour.syntax")

local M = {}

local NS = vim.api.nvim_create_namespace("cursor_agent_syntax")

local NS_DRAWN = vim.api.nvim_create_namespace("cursor_agent_markdown")

---A block with more lines than this is drawn when it is coloured, not with each piece of it that comes.
local DRAWN_LINES = 100

---Marks made between two pauses.
local DRAWN_MARKS = 200

---The block that is being written is coloured again at most this often.
local STREAMING_MS = 60

---The colours of code, by its parser or else by Vim's syntax file.
---@param lang string?
---@param filetype string? nil: by its parser only
---@param lines string[]
---@param pause cursor_agent.syntax.Pause
---@return cursor_agent.syntax.Span[]
function M.code(lang, filetype, lines, pause)
  if lang and syntax.load(lang, pause) and (not syntax.fits(lang, lines) or guard.safe(lang, lines)) then
    return syntax.spans(lang, lines, false, pause)
  end
  return filetype and regex.spans(filetype, lines, pause) or {}
end

---@param transcript cursor_agent.Transcript
---@param index integer
---@return fun(pause: cursor_agent.syntax.Pause)
local function code_piece(transcript, index)
  local item = transcript.items[index]
  local all = item.code --[=[@as cursor_agent.render.Code[] ]=]
  local code = table.remove(all, 1)
  if #all == 0 then
    item.code = nil
  end
  item.painting = item.drawn
  return function(pause)
    local spans = M.code(syntax.language_of(code.path), regex.filetype_of(code.path), code.text, pause)
    syntax.mark_in_steps(transcript.buf, NS, spans, code.text, pause, function()
      -- Drawn again meanwhile: the new lines have their own turn.
      if
        item.painting ~= item.drawn
        or not transcript.items[index]
        or not vim.api.nvim_buf_is_loaded(transcript.buf)
      then
        return nil
      end
      local row = transcript:first_row(index) + item.gap
      return function(i)
        local at = code.rows[i + 1]
        return at and { row = row + at.row, col = at.col, apply = at.apply }
      end
    end)
  end
end

---Draws what the lines of a block mean: headings, lists, tables. The old marks of a line go when its new ones come.
---@param transcript cursor_agent.Transcript
---@param block cursor_agent.render.TextBlock
---@param lines string[] without what stands before them
---@param col integer
---@param open boolean it is being written
---@param pause cursor_agent.syntax.Pause
---@param top fun(): integer? the row they begin at; nil when they are gone
local function draw(transcript, block, lines, col, open, pause, top)
  local room = not block.code and transcript:room() or nil
  local style = room and { room = room - col, icons = transcript.context.icons, open = open }
  local by_line = {} ---@type cursor_agent.markdown.Mark[][]
  for number, mark in ipairs(style and markdown.marks(lines, style, pause) or {}) do
    if number % DRAWN_MARKS == 0 then
      pause()
    end
    local line = by_line[mark.row] or {}
    line[#line + 1] = mark
    by_line[mark.row] = line
  end
  local buf, made = transcript.buf, 0
  local row ---@type integer?
  for number = 0, #lines - 1 do
    if not row or made >= DRAWN_MARKS then
      if row then
        pause()
      end
      row, made = top(), 0
      if not row then
        return
      end
    end
    vim.api.nvim_buf_clear_namespace(buf, NS_DRAWN, row + number, row + number + 1)
    for _, mark in ipairs(by_line[number] or {}) do
      local opts = mark.opts
      if opts.end_col then
        opts.end_row, opts.end_col = row + number, opts.end_col + col
      end
      opts.virt_text_win_col = opts.virt_text_win_col and opts.virt_text_win_col + col
      vim.api.nvim_buf_set_extmark(buf, NS_DRAWN, row + number, mark.col + col, opts)
      made = made + 1
    end
    made = made + 1
  end
end

---Goes on at once.
local function no_pause() end

---Draws the end of a text that has just grown, before it is seen: so nothing changes its place under the reader's eyes.
---@param transcript cursor_agent.Transcript
---@param index integer
---@param from integer the first block that has changed
function M.draw_tail(transcript, index, from)
  local item = transcript.items[index]
  local blocks = item.blocks --[=[@as cursor_agent.render.TextBlock[] ]=]
  local first, past = transcript:range(index)
  local top, cut = first + item.gap, #assert(item.tail).prefix
  for number = math.max(from, 1), #blocks do
    local block = blocks[number]
    local last = blocks[number + 1] and top + blocks[number + 1].row or past
    if last - (top + block.row) <= DRAWN_LINES then
      local lines = vim.api.nvim_buf_get_lines(transcript.buf, top + block.row, last, false)
      for k, line in ipairs(cut > 0 and lines or {}) do
        lines[k] = line:sub(cut + 1)
      end
      draw(transcript, block, lines, cut, number == #blocks, no_pause, function()
        return top + block.row
      end)
    end
  end
end

---@param transcript cursor_agent.Transcript
---@param index integer
---@param number integer of the block
---@param first integer
---@param past integer
---@param open boolean it is being written
---@return fun(pause: cursor_agent.syntax.Pause)
local function paint_block(transcript, index, number, first, past, open)
  local item = transcript.items[index]
  local block = assert(item.blocks)[number]
  local cut = #assert(item.tail).prefix
  return function(pause)
    local lines = vim.api.nvim_buf_get_lines(transcript.buf, first, past, false)
    for k, line in ipairs(cut > 0 and lines or {}) do
      lines[k] = line:sub(cut + 1)
    end
    local spans ---@type cursor_agent.syntax.Span[]
    if block.code then
      local fences = {} ---@type cursor_agent.syntax.Span[]
      for _, k in ipairs({ 1, #lines }) do
        local line = lines[k] or ""
        if line:match("^%s*```") or line:match("^%s*~~~") then
          fences[#fences + 1] = {
            from_row = k - 1,
            from_col = 0,
            to_row = k - 1,
            to_col = #line,
            hl = "CursorAgentFence",
            priority = 110,
          }
          lines[k] = ""
        end
      end
      -- Vim's syntax files are too slow to go through a block again and again while it grows.
      local filetype = not open and regex.filetype_of_fence(block.code) or nil
      spans = M.code(syntax.language_of_fence(block.code), filetype, lines, pause)
      spans = vim.list_extend(vim.list_slice(fences), spans)
      for _, fence in ipairs(fences) do
        lines[fence.from_row + 1] = (" "):rep(fence.to_col)
      end
    else
      spans = syntax.spans("markdown", lines, transcript.conceal, pause)
    end
    -- Text above may have come or gone meanwhile; the block itself only grows.
    local function top()
      if
        transcript.items[index] == item
        and assert(item.blocks)[number] == block
        and vim.api.nvim_buf_is_loaded(transcript.buf)
      then
        return transcript:first_row(index) + item.gap + block.row
      end
    end
    -- What changes under the user's eyes changes at once.
    local between = open and #lines <= DRAWN_LINES and no_pause or pause
    draw(transcript, block, lines, cut, open, between, top)
    local cleared = false
    syntax.mark_in_steps(transcript.buf, NS, spans, lines, between, function()
      local row = top()
      if not row then
        return nil
      end
      if not cleared then
        vim.api.nvim_buf_clear_namespace(transcript.buf, NS, row, row + #lines)
        cleared = true
      end
      return function(k)
        return { row = row + k, col = cut, apply = true }
      end
    end)
  end
end

---@param transcript cursor_agent.Transcript
---@param index integer
---@param entry_row integer
---@param past integer
---@param top integer
---@param bottom integer
---@return (fun(pause: cursor_agent.syntax.Pause))?
local function block_piece(transcript, index, entry_row, past, top, bottom)
  local item = transcript.items[index]
  local blocks = item.blocks --[=[@as cursor_agent.render.TextBlock[] ]=]
  local tail = item.tail --[[@as cursor_agent.render.Tail]]
  local row = entry_row + item.gap
  local begun_above = bisect.last(#blocks, function(i)
    return row + blocks[i].row <= top
  end)
  for i = math.max(begun_above, 1), #blocks do
    local first = row + blocks[i].row
    if first > bottom then
      return nil
    end
    local open = i == #blocks and not item.done
    local lit = item.lit[i]
    local due = lit == nil or not open or vim.uv.now() - item.lit_at >= STREAMING_MS
    if lit ~= true and due and not (open and lit == tail.bytes) then
      item.lit[i] = not open and true or tail.bytes
      item.lit_at = vim.uv.now()
      local last = blocks[i + 1] and row + blocks[i + 1].row or past
      return paint_block(transcript, index, i, first, last, open)
    end
  end
end

---The first visible piece of text that is not coloured yet, as something to do; nil when there is none.
---@param transcript cursor_agent.Transcript
---@param top integer
---@param bottom integer
---@return (fun(pause: cursor_agent.syntax.Pause))?
function M.next(transcript, top, bottom)
  local index = transcript:entry_at(top)
  while index and transcript.items[index] do
    local item = transcript.items[index]
    local first, past = transcript:range(index)
    if first > bottom then
      return nil
    end
    local piece = item.code and code_piece(transcript, index)
      or item.blocks and block_piece(transcript, index, first, past, top, bottom)
    if piece then
      return piece
    end
    index = transcript:next(index)
  end
end

return M
