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

---The block that is being written is coloured again at most this often.
local STREAMING_MS = 60

---The colours of code, by its parser or else by Vim's syntax file.
---@param lang string?
---@param filetype string? nil: by its parser only
---@param lines string[]
---@param pause cursor_agent.syntax.Pause
---@return cursor_agent.syntax.Span[]
function M.code(lang, filetype, lines, pause)
  if lang and guard.safe(lang, lines) and syntax.load(lang, pause) then
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

---Draws what the lines of a block mean: headings, lists, tables.
---@param transcript cursor_agent.Transcript
---@param block cursor_agent.render.TextBlock
---@param lines string[] without what stands before them
---@param row integer where they begin
---@param col integer
---@param open boolean it is being written
local function draw(transcript, block, lines, row, col, open)
  local buf = transcript.buf
  vim.api.nvim_buf_clear_namespace(buf, NS_DRAWN, row, row + #lines)
  local room = not block.code and transcript:room() or nil
  if not room then
    return
  end
  local style = { room = room - col, icons = transcript.context.icons, open = open }
  for _, mark in ipairs(markdown.marks(lines, style)) do
    local opts = mark.opts
    if opts.end_col then
      opts.end_row, opts.end_col = row + mark.row, opts.end_col + col
    end
    vim.api.nvim_buf_set_extmark(buf, NS_DRAWN, row + mark.row, mark.col + col, opts)
  end
end

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
      draw(transcript, block, lines, top + block.row, cut, number == #blocks)
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
    local cleared = false
    -- What changes under the user's eyes changes at once.
    syntax.mark_in_steps(transcript.buf, NS, spans, lines, open and function() end or pause, function()
      -- Text above may have come or gone meanwhile; the block itself only grows.
      if
        transcript.items[index] ~= item
        or assert(item.blocks)[number] ~= block
        or not vim.api.nvim_buf_is_loaded(transcript.buf)
      then
        return nil
      end
      local row = transcript:first_row(index) + item.gap + block.row
      if not cleared then
        vim.api.nvim_buf_clear_namespace(transcript.buf, NS, row, row + #lines)
        cleared = true
        draw(transcript, block, lines, row, cut, open)
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
