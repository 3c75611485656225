-- Draws messages: the user's prompt as a quotation, streamed text at the cost of each piece.

local fences = require("cursor_agent.render.fence")
local format = require("cursor_agent.render.format")
local blocks = require("cursor_agent.render.block")

local M = {}

---Lines of a prompt that are shown; a pasted file would push everything else out of sight.
local PROMPT_LINES = 60

---A line of the buffer is broken beyond this: Neovim's own cost of drawing one grows with its length.
M.MAX_LINE_BYTES = 4000

---A break is looked for at a space among this many last bytes.
local BREAK_WITHIN_BYTES = 200

---So much of a line is enough to tell a fence and its language.
local LINE_START_BYTES = 64

---A fenced block is coloured this many lines at a time, so that a long one that still grows is not read all over.
local CODE_BLOCK_LINES = 80

---Text without an empty line, as a long list, likewise: after so much of it the next line that can stands by itself.
local TEXT_BLOCK_BYTES = 4000

---Where the text written so far ends.
---@class (exact) cursor_agent.render.Tail
---@field prefix string what each line begins with
---@field bytes integer text received so far
---@field held string the white space at its end, from a newline on: written when something follows it
---@field begun boolean something was written
---@field width integer bytes on the last line, prefix not counted
---@field fence string? the marks of the code fence that is open
---@field lang string its language, or ""
---@field code_lines integer lines of it since the last block began
---@field line_start string the beginning of the last line, enough to tell a fence
---@field blank boolean the line before the last is empty
---@field block_bytes integer of text since the last block began

---@param prefix string
---@return cursor_agent.render.Tail
function M.tail(prefix)
  return {
    prefix = prefix,
    bytes = 0,
    held = "",
    begun = false,
    width = 0,
    fence = nil,
    lang = "",
    code_lines = 0,
    line_start = "",
    blank = true,
    block_bytes = 0,
  }
end

---Where to break a line that is too long: after a space, or else between two characters.
---@param line string
---@param max integer
---@return integer bytes that stay
local function break_at(line, max)
  for i = max, math.max(max - BREAK_WITHIN_BYTES, 1), -1 do
    if line:byte(i) == 32 then
      return i
    end
  end
  local i = max
  while i > 1 and i > max - 4 do
    local next_byte = line:byte(i + 1)
    if not next_byte or next_byte < 0x80 or next_byte >= 0xC0 then
      break
    end
    i = i - 1
  end
  return i
end

---A part of the text that is coloured by itself: markdown, or the lines of a fenced block, some at a time.
---@class (exact) cursor_agent.render.TextBlock
---@field row integer where it begins
---@field code string? the language of a fenced block

---@class (exact) cursor_agent.render.Piece
---@field first string goes on the end of the last line
---@field rest string[] new lines below it
---@field soft table<integer, boolean> which of `rest` only go on with the line above
---@field blocks cursor_agent.render.TextBlock[] that begin in it; row 0 is the line `first` goes on

---@param found cursor_agent.render.TextBlock[]
---@param row integer
---@param code? string
local function begin_block(found, row, code)
  local last = found[#found]
  if last and last.row == row then
    last.code = code
  else
    found[#found + 1] = { row = row, code = code }
  end
end

---The language a fence names.
---@param fence cursor_agent.render.Fence
---@return string
local function language(fence)
  return fence.info:match("^[%w_+#-]+") or ""
end

---The code block that a text has begun and not ended, where another one goes on with it.
---@param tail cursor_agent.render.Tail
---@return string? fence what begins it
function M.unclosed(tail)
  local fence = fences.read(tail.line_start)
  fence = fence and fences.is_plain(fence) and fence or nil
  if tail.fence then
    return not (fence and fences.ends(fence, tail.fence)) and tail.fence .. tail.lang or nil
  end
  return fence and #fence.prefix < 4 and fence.marks .. language(fence) or nil
end

---@param tail cursor_agent.render.Tail
---@param found cursor_agent.render.TextBlock[]
---@param row integer of the line that ends
local function end_line(tail, found, row)
  local start = tail.line_start
  local fence = fences.read(start)
  if fence and not fences.is_plain(fence) then
    -- In a list or a quotation it is read together with that.
    fence = nil
  end
  if tail.fence then
    tail.code_lines = tail.code_lines + 1
    if fence and fences.ends(fence, tail.fence) then
      tail.fence, tail.block_bytes = nil, 0
      begin_block(found, row + 1)
    elseif tail.code_lines >= CODE_BLOCK_LINES then
      tail.code_lines = 0
      begin_block(found, row + 1, tail.lang)
    end
    tail.blank = false
  elseif fence and #fence.prefix < 4 then
    tail.fence, tail.code_lines = fence.marks, 0
    tail.lang = language(fence)
    begin_block(found, row, tail.lang)
    tail.blank = false
  else
    tail.blank = start:match("^%s*$") ~= nil
  end
  tail.width, tail.line_start = 0, ""
end

---Keeps the empty lines at the end of a text back, and leaves out those at its beginning: entries have a gap of their own.
---@param tail cursor_agent.render.Tail
---@param text string
---@return string
local function hold(tail, text)
  if tail.held ~= "" and not text:find("%S") then
    -- A model may go on with empty lines without end: what is held is not looked through again for each.
    tail.held = tail.held .. text
    return ""
  end
  text = tail.held .. text
  if not tail.begun then
    text = text:gsub("^%s*\n", "")
  end
  local last = #text
  while last > 0 and text:find("^%s", last) do
    last = last - 1
  end
  local newline = text:find("\n", last + 1, true)
  if not newline then
    tail.held = ""
    return text
  end
  tail.held = text:sub(newline)
  return text:sub(1, newline - 1)
end

---Takes what is new at the end of a text and says what to write. Changes `tail`.
---@param tail cursor_agent.render.Tail
---@param text string
---@return cursor_agent.render.Piece
function M.append(tail, text)
  local piece = { first = "", rest = {}, soft = {}, blocks = {} } ---@type cursor_agent.render.Piece
  tail.bytes = tail.bytes + #text
  text = hold(tail, text)
  tail.begun = tail.begun or text ~= ""
  local prefix, max = tail.prefix, M.MAX_LINE_BYTES
  local bare = prefix:gsub("%s+$", "")
  local out = 0 -- 0 while on the line that was there already, then the index in `rest`
  local line_parts = {} ---@type string[]

  local function put(part)
    if part == "" then
      return
    end
    if tail.width == 0 then
      -- An empty line above that is followed by a line that is not indented: what comes stands by itself. A row of a
      -- table needs those above it.
      local apart = tail.blank or (tail.block_bytes > TEXT_BLOCK_BYTES and not part:find("^|"))
      if apart and not tail.fence and not part:find("^%s") then
        begin_block(piece.blocks, out)
        tail.block_bytes = 0
      end
      line_parts[#line_parts + 1] = prefix
    end
    if #tail.line_start < LINE_START_BYTES then
      tail.line_start = tail.line_start .. part:sub(1, LINE_START_BYTES)
    end
    line_parts[#line_parts + 1] = part
    tail.width = tail.width + #part
    tail.block_bytes = tail.block_bytes + #part
  end

  local function flush()
    local line = table.concat(line_parts)
    line_parts = {}
    if out == 0 then
      piece.first = line
    else
      piece.rest[out] = line
    end
  end

  local at, size = 1, #text
  while at <= size do
    local newline = text:find("\n", at, true)
    local stop = newline and newline - 1 or size
    -- The end of a chunk may fall between the two bytes of a CRLF.
    if stop >= at and text:byte(stop) == 13 then
      stop = stop - 1
    end
    while tail.width + (stop - at + 1) > max do
      local room = max - tail.width
      local keep = room > 0 and break_at(text:sub(at, at + room), room) or 0
      if keep > 0 then
        put(text:sub(at, at + keep - 1))
      end
      at = at + keep
      flush()
      out = out + 1
      piece.soft[out] = true
      tail.width = 0
      tail.blank = false
    end
    put(text:sub(at, stop))
    if not newline then
      break
    end
    if tail.width == 0 then
      line_parts[1] = bare
    end
    flush()
    end_line(tail, piece.blocks, out)
    out = out + 1
    at = newline + 1
  end
  flush()
  return piece
end

---The user's prompt: a quotation, so that it reads as markdown too, with a bar drawn over its marks.
---@param entry cursor_agent.Entry
---@param context cursor_agent.render.Context
---@return cursor_agent.render.Block
function M.prompt(entry, context)
  local b = blocks.builder()
  local nested = blocks.indent(entry)
  local function bar(row)
    b:mark(row, #nested, {
      virt_text = { { context.icons.user, "CursorAgentUserBar" } },
      virt_text_pos = "overlay",
      virt_text_repeat_linebreak = true,
    })
  end
  local piece = M.append(M.tail(nested .. "> "), entry.text)
  local lines = vim.list_extend({ piece.first }, piece.rest)
  for i = 1, math.min(#lines, PROMPT_LINES) do
    local time = i == 1 and entry.started_ms > 0 and os.date("%H:%M", math.floor(entry.started_ms / 1000))
    local line = lines[i] or ""
    local row = b:line({ { line ~= "" and line or nested .. ">", "CursorAgentUser" } })
    if time then
      b.asides[row] = {
        {
          text = time --[[@as string]],
          hl = "CursorAgentAside",
          gives_way = true,
        },
      }
    end
    bar(row)
  end
  if #lines > PROMPT_LINES then
    local more = format.plural(#lines - PROMPT_LINES, "line")
    local row = b:line({ { nested .. "> " }, { ("%s %s more"):format(context.icons.more, more), "CursorAgentMore" } })
    b.targets[row] = { output = true }
    bar(row)
  end
  if entry.context and #entry.context > 0 then
    bar(b:line({ { nested .. "> " }, { table.concat(entry.context, "  "), "CursorAgentContext" } }))
  end
  return b
end

---The line above a thought.
---@param entry cursor_agent.Entry
---@param context cursor_agent.render.Context
---@return cursor_agent.render.Chunk[]
---@return cursor_agent.render.Aside[]
function M.thought_title(entry, context)
  local nested = blocks.indent(entry)
  local title = { nested .. context.icons.active .. " ", "CursorAgentThoughtTitle" }
  local opened = { opened = { icon = context.icons.opened, col = #nested }, hl = "CursorAgentThoughtTitle" }
  if not entry.done then
    return { title, { "Thinking", "CursorAgentThoughtTitle" } }, {
      { since = entry.started_ms, hl = "CursorAgentAside" },
      opened,
    }
  end
  local duration = entry.duration_ms
  local words = duration and duration >= 1000 and "Thought for " .. format.duration(duration) or "Thought"
  return { title, { words, "CursorAgentThoughtTitle" } }, { opened }
end

return M
