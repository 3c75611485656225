-- Writes the entries of a session into its chat buffer, each within its own lines, and keeps each window's place.

local folds = require("cursor_agent.folds")
local highlights = require("cursor_agent.highlights")
local message = require("cursor_agent.render.message")
local painter = require("cursor_agent.painter")
local regions = require("cursor_agent.regions")
local render = require("cursor_agent.render")
local syntax = require("cursor_agent.syntax")

---@class (exact) cursor_agent.transcript.Item an entry as it stands in the buffer
---@field kind string
---@field gap integer lines between it and the entry above: 0 or 1
---@field done boolean
---@field text string? of a prompt
---@field started_ms integer
---@field parent integer?
---@field tail cursor_agent.render.Tail? of streamed text
---@field trimmed integer empty lines at its end that are not shown
---@field blocks cursor_agent.render.TextBlock[]? of streamed text; rows from the entry's own
---@field lit table<integer, integer|true> blocks that are coloured: true, or how many bytes there were then
---@field lit_at integer when the last one was
---@field drawn integer counts how often a block was rendered
---@field painting integer which of those times is being coloured
---@field targets table<integer, cursor_agent.render.Target>? by row
---@field code cursor_agent.render.Code[]? not yet coloured
---@field asides integer[] marks of `asides`
---@field fold { first: integer, last: integer, closed: boolean }? rows, from the entry's own

---@class cursor_agent.Transcript
---@field buf integer
---@field items cursor_agent.transcript.Item[]
---@field context cursor_agent.render.Context
---@field conceal boolean
---@field fold_thoughts boolean
---@field asides table<integer, cursor_agent.render.Aside[]> by mark
---@field ticking table<integer, boolean> marks of asides that show a running time
---@field private next_aside integer
---@field private open boolean the buffer may be written to
---@field private at_tail table<integer, integer|false>? by window: the cursor's line, if it follows; as it was when the batch began
---@field private followed integer when windows were last moved to the tail
---@field private before integer lines there were then
---@field private base table<integer, integer> by window that does not follow: lines there were when it stopped
local Transcript = {}
Transcript.__index = Transcript

---@type table<integer, cursor_agent.Transcript> by buffer
local by_buffer = {}

local NS = {
  entry = vim.api.nvim_create_namespace("cursor_agent_entry"),
  mark = vim.api.nvim_create_namespace("cursor_agent_mark"),
  syntax = vim.api.nvim_create_namespace("cursor_agent_syntax"),
  aside = vim.api.nvim_create_namespace("cursor_agent_aside"),
  wrapped = vim.api.nvim_create_namespace("cursor_agent_wrapped"),
  thought = vim.api.nvim_create_namespace("cursor_agent_thought"),
}

local M = { NS = NS }

---While text comes faster than it can be shown, windows follow it this often. Scrolling is what drawing costs most.
local FLOOD_FRAME_MS = 50

---@param buf integer
---@return cursor_agent.Transcript?
function M.of(buf)
  return by_buffer[buf]
end

---@param buf integer
---@param cwd string
---@return cursor_agent.Transcript
function M.new(buf, cwd)
  local options = require("cursor_agent.config").get().chat
  local self = setmetatable({
    buf = buf,
    items = {},
    context = {
      cwd = cwd,
      icons = require("cursor_agent.render.icons").pick(options.icons),
      diff_lines = options.diff_lines,
      output_lines = options.output_lines,
      fold_tools = options.fold_tools,
    },
    conceal = options.conceal,
    fold_thoughts = options.fold_thoughts,
    asides = {},
    ticking = {},
    next_aside = 1,
    open = false,
    followed = 0,
    before = 1,
    base = {},
  }, Transcript)
  by_buffer[buf] = self
  highlights.setup()
  require("cursor_agent.decor").setup()
  painter.warm_up()
  vim.api.nvim_create_autocmd("BufWipeout", {
    buffer = buf,
    desc = "cursor-agent: forget the transcript of a wiped buffer",
    callback = function()
      by_buffer[buf] = nil
    end,
  })
  return self
end

---@param win integer
---@param last integer
---@return boolean
local function cursor_at_tail(win, last)
  local line = vim.api.nvim_win_get_cursor(win)[1]
  if line >= last then
    return true
  end
  return vim.api.nvim_win_call(win, function()
    return vim.fn.foldclosedend(line) == last
  end)
end

---@return integer[]
function Transcript:windows()
  return vim.fn.win_findbuf(self.buf)
end

---Opens the buffer for writing, and notes which windows stand at its tail, once for a batch of changes.
---@private
function Transcript:begin()
  if self.open then
    return
  end
  self.open = true
  vim.bo[self.buf].modifiable = true
  if self.at_tail then
    for win, line in pairs(self.at_tail) do
      -- Between two steps of a flood only the user moves the cursor.
      if line and (not vim.api.nvim_win_is_valid(win) or vim.api.nvim_win_get_cursor(win)[1] ~= line) then
        self.at_tail[win] = false
        self.base[win] = self.before
      end
    end
    return
  end
  self.at_tail = {}
  self.before = vim.api.nvim_buf_line_count(self.buf)
  for _, win in ipairs(self:windows()) do
    local follows = cursor_at_tail(win, self.before)
    self.at_tail[win] = follows and vim.api.nvim_win_get_cursor(win)[1] or false
    if not follows then
      self.base[win] = self.base[win] or self.before
    end
  end
end

---Moves a window to the last line, showing as much above it as fits.
---@param win integer
---@param last integer
---@param grown integer
local function to_tail(win, last, grown)
  vim.api.nvim_win_set_cursor(win, { last, 0 })
  local info = vim.fn.getwininfo(win)[1]
  local height = info.height - info.winbar
  if grown <= math.floor(height / 3) then
    -- Neovim scrolls by itself just as far as it must.
    return
  end
  -- After a long jump it would put the last line in the middle of the window.
  vim.api.nvim_win_call(win, function()
    local top, line, rows = last, last, 0
    while line >= 1 do
      local first = vim.fn.foldclosed(line)
      local high = 1
      if first == -1 then
        first = line
        high = vim.api.nvim_win_text_height(win, { start_row = line - 1, end_row = line - 1 }).all
      end
      rows = rows + high
      if rows > height then
        break
      end
      top, line = first, first - 1
    end
    vim.fn.winrestview({ topline = top })
  end)
end

---Whether moving the cursor of a window would get in the way of what the user is doing there.
---@param win integer
---@return boolean
local function busy(win)
  if win ~= vim.api.nvim_get_current_win() then
    return false
  end
  local mode = vim.api.nvim_get_mode().mode
  return mode ~= "n" and mode:sub(1, 1) ~= "i"
end

---Ends a batch of changes: windows that stood at the tail stand there again.
---@param flood boolean more is to come at once: the windows need not show every step of it
function Transcript:finish(flood)
  if self.open then
    self.open = false
    if vim.api.nvim_buf_is_valid(self.buf) then
      vim.bo[self.buf].modifiable = false
      vim.bo[self.buf].modified = false
    end
  end
  local at_tail = self.at_tail
  if not at_tail then
    return
  end
  if flood and vim.uv.now() - self.followed < FLOOD_FRAME_MS then
    for win, line in pairs(at_tail) do
      at_tail[win] = line and vim.api.nvim_win_is_valid(win) and vim.api.nvim_win_get_cursor(win)[1]
    end
    return
  end
  self.at_tail, self.followed = nil, vim.uv.now()
  if not vim.api.nvim_buf_is_loaded(self.buf) then
    return
  end
  regions.update(self)
  local last = vim.api.nvim_buf_line_count(self.buf)
  for win, line in pairs(at_tail) do
    if line and vim.api.nvim_win_is_valid(win) and vim.api.nvim_win_get_buf(win) == self.buf and not busy(win) then
      self.base[win] = nil
      to_tail(win, last, last - self.before)
    end
  end
end

---Whether a window stands at the end of the transcript.
---@param win integer
---@return boolean
function Transcript:is_at_tail(win)
  return cursor_at_tail(win, vim.api.nvim_buf_line_count(self.buf))
end

---Takes one window, or all that show the chat, to its end.
---@param win? integer
function Transcript:go_to_tail(win)
  local last = vim.api.nvim_buf_line_count(self.buf)
  for _, one in ipairs(win and { win } or self:windows()) do
    self.base[one] = nil
    to_tail(one, last, last)
  end
end

---How many lines came below while a window showed something further up.
---@param win integer
---@return integer
function Transcript:unseen(win)
  local base = self.base[win]
  if not base then
    return 0
  end
  local last = vim.api.nvim_buf_line_count(self.buf)
  if cursor_at_tail(win, last) then
    self.base[win] = nil
    return 0
  end
  return math.max(last - base, 0)
end

---The lines of an entry: first row, and the row after the last. The gap above it is part of it.
---@param index integer
---@return integer first
---@return integer past
function Transcript:range(index)
  local first = vim.api.nvim_buf_get_extmark_by_id(self.buf, NS.entry, index, {})[1]
  local next_mark = self.items[index + 1] and vim.api.nvim_buf_get_extmark_by_id(self.buf, NS.entry, index + 1, {})
  return first, next_mark and next_mark[1] or vim.api.nvim_buf_line_count(self.buf)
end

---The entry a row belongs to, and the entry's first row below its gap.
---@param row integer
---@return integer? index
---@return integer top
function Transcript:entry_at(row)
  local mark = vim.api.nvim_buf_get_extmarks(self.buf, NS.entry, { row, -1 }, 0, { limit = 1 })[1]
  if not mark then
    return nil, 0
  end
  return mark[1], mark[2] + self.items[mark[1]].gap
end

---@private
---@param first integer
---@param past integer
---@param lines string[]
function Transcript:write(first, past, lines)
  vim.api.nvim_buf_set_lines(self.buf, first, past, true, lines)
end

---@private
---@param index integer
---@param row integer
function Transcript:place(index, row)
  vim.api.nvim_buf_set_extmark(self.buf, NS.entry, row, 0, { id = index })
end

---Makes room for the next entry and returns the row its text begins in.
---@private
---@param index integer
---@param entry cursor_agent.Entry
---@return cursor_agent.transcript.Item item
---@return integer row
function Transcript:add(index, entry)
  local above = self.items[index - 1]
  local item = {
    kind = entry.kind,
    gap = render.gap(above and above.kind, entry.kind) and 1 or 0,
    done = false,
    started_ms = entry.started_ms,
    parent = entry.parent,
    trimmed = 0,
    lit = {},
    lit_at = 0,
    drawn = 0,
    painting = 0,
    asides = {},
  } ---@type cursor_agent.transcript.Item
  if above and above.tail then
    self:trim(index - 1)
  end
  self.items[index] = item
  local row = vim.api.nvim_buf_line_count(self.buf)
  if index == 1 then
    -- An empty buffer has one line all the same.
    self:place(index, 0)
    return item, 0
  end
  self:write(row, row, item.gap == 1 and { "", "" } or { "" })
  self:place(index, row)
  return item, row + item.gap
end

---Takes the empty lines at the end of a message out of sight: the next entry has its own gap.
---@private
---@param index integer
function Transcript:trim(index)
  local item = self.items[index]
  local first, past = self:range(index)
  local top = first + item.gap
  local last = past - 1
  while last > top and vim.api.nvim_buf_get_lines(self.buf, last, last + 1, true)[1]:match("^%s*$") do
    last = last - 1
  end
  if last < past - 1 then
    self:write(last + 1, past, {})
    item.trimmed = item.trimmed + past - 1 - last
  end
end

---@private
---@param item cursor_agent.transcript.Item
function Transcript:drop_asides(item)
  for _, id in ipairs(item.asides) do
    vim.api.nvim_buf_del_extmark(self.buf, NS.aside, id)
    self.asides[id] = nil
    self.ticking[id] = nil
  end
  item.asides = {}
end

---@private
---@param item cursor_agent.transcript.Item
---@param row integer
---@param asides cursor_agent.render.Aside[]
function Transcript:add_aside(item, row, asides)
  local id = self.next_aside
  self.next_aside = id + 1
  vim.api.nvim_buf_set_extmark(self.buf, NS.aside, row, 0, { id = id })
  self.asides[id] = asides
  for _, aside in ipairs(asides) do
    if aside.since then
      self.ticking[id] = true
    end
  end
  item.asides[#item.asides + 1] = id
end

---@private
---@param row integer
---@param mark cursor_agent.render.Mark
function Transcript:add_mark(row, mark)
  -- The block was made for this one use, so its tables may be written to.
  local opts = mark.opts
  if opts.hl_group then
    highlights.ensure(opts.hl_group --[[@as string]])
  end
  if opts.end_row then
    opts.end_row = row + opts.end_row
    opts.strict = false
  end
  vim.api.nvim_buf_set_extmark(self.buf, NS.mark, row + mark.row, mark.col, opts)
end

---Folds the details of an entry in each window, unless someone is reading them.
---@private
---@param index integer
---@param first integer row
---@param last integer row
---@param closed boolean
function Transcript:fold(index, first, last, closed)
  local item = self.items[index]
  local top = self:range(index) + item.gap
  local old = item.fold
  local fold = { first = first - top, last = last - top, closed = closed }
  if last <= first and not old then
    return
  end
  if old and old.last == fold.last and old.closed == closed then
    return
  end
  item.fold = last > first and fold or nil
  for _, win in ipairs(self:windows()) do
    local state = closed
    local line = vim.api.nvim_win_get_cursor(win)[1] - 1
    local reading = line >= first and line <= last and not (self.at_tail or {})[win]
    if old then
      local was_closed = folds.is_closed(win, first + 1)
      -- The user has opened or closed it meanwhile, or is in it: that stays.
      if was_closed ~= old.closed or (reading and not was_closed) then
        state = was_closed
      end
    elseif reading then
      state = false
    end
    folds.set(win, first + 1, last + 1, state, old ~= nil)
  end
end

---Writes a rendered block over what the entry had, touching only the lines that differ.
---@private
---@param index integer
---@param block cursor_agent.render.Block
---@param fresh boolean
function Transcript:put(index, block, fresh)
  local item = self.items[index]
  local first, past = self:range(index)
  local top = first + item.gap
  local lines = block.lines
  local old = fresh and { "" } or vim.api.nvim_buf_get_lines(self.buf, top, past, true)
  local head = 0
  while head < #old and head < #lines and old[head + 1] == lines[head + 1] do
    head = head + 1
  end
  local tail = 0
  while tail < #old - head and tail < #lines - head and old[#old - tail] == lines[#lines - tail] do
    tail = tail + 1
  end
  if head < #old or head < #lines then
    self:write(top + head, past - tail, vim.list_slice(lines, head + 1, #lines - tail))
    self:place(index, first)
  end
  if not fresh then
    vim.api.nvim_buf_clear_namespace(self.buf, NS.mark, top, top + #lines)
    vim.api.nvim_buf_clear_namespace(self.buf, NS.syntax, top, top + #lines)
    self:drop_asides(item)
  end
  for _, mark in ipairs(block.marks) do
    self:add_mark(top, mark)
  end
  for row, asides in pairs(block.asides) do
    self:add_aside(item, top + row, asides)
  end
  item.drawn = item.drawn + 1
  item.targets = next(block.targets) and block.targets or nil
  item.code = #block.code > 0 and block.code or nil
  if block.closed ~= nil or item.fold then
    self:fold(index, top, top + #lines - 1, block.closed or false)
  end
end

---Appends to the text of a message or thought.
---@private
---@param index integer
---@param text string
function Transcript:stream(index, text)
  local item = self.items[index]
  local tail = item.tail --[[@as cursor_agent.render.Tail]]
  local first, past = self:range(index)
  local top = first + item.gap
  if item.trimmed > 0 then
    local blank = {} ---@type string[]
    for i = 1, item.trimmed do
      blank[i] = ""
    end
    self:write(past, past, blank)
    past = past + item.trimmed
    item.trimmed = 0
  end
  local row = past - 1
  local col = tail.width > 0 and #tail.prefix + tail.width or 0
  local piece = message.append(tail, text)
  if #piece.rest == 0 then
    if piece.first ~= "" then
      vim.api.nvim_buf_set_text(self.buf, row, col, row, col, { piece.first })
    end
  else
    if piece.first ~= "" then
      vim.api.nvim_buf_set_text(self.buf, row, col, row, col, { piece.first })
    end
    self:write(row + 1, row + 1, piece.rest)
    for i in pairs(piece.soft) do
      vim.api.nvim_buf_set_extmark(self.buf, NS.wrapped, row + i, 0, {
        virt_text = { { self.context.icons.wrapped .. " ", "CursorAgentWrapped" } },
        virt_text_pos = "inline",
      })
    end
  end
  if item.kind == "thought" then
    vim.api.nvim_buf_set_extmark(self.buf, NS.thought, top + 1, 0, {
      id = index,
      end_row = row + #piece.rest,
      end_col = tail.width > 0 and #tail.prefix + tail.width or 0,
      hl_group = "CursorAgentThought",
      hl_eol = true,
      strict = false,
    })
  elseif item.blocks then
    for _, block in ipairs(piece.blocks) do
      local at = row + block.row - top
      local last = item.blocks[#item.blocks]
      if last and last.row == at then
        -- What began as text turned out to be a fence when its line was whole.
        last.code = block.code
        item.lit[#item.blocks] = nil
      else
        block.row = at
        table.insert(item.blocks, block)
      end
    end
  end
end

---@private
---@param index integer
---@param entry cursor_agent.Entry
function Transcript:thought_title(index, entry)
  local item = self.items[index]
  local first = self:range(index)
  local row = first + item.gap
  local chunks, asides = message.thought_title(entry, self.context)
  local b = render.builder()
  b:line(chunks, asides)
  vim.api.nvim_buf_set_text(self.buf, row, 0, row, -1, b.lines)
  vim.api.nvim_buf_clear_namespace(self.buf, NS.mark, row, row + 1)
  for _, mark in ipairs(b.marks) do
    self:add_mark(row, mark)
  end
  self:drop_asides(item)
  if asides then
    self:add_aside(item, row, asides)
  end
end

---The text of a message or thought as a whole: written when it is new, or when it is not what was streamed.
---@private
---@param index integer
---@param entry cursor_agent.Entry
---@param fresh boolean
function Transcript:message(index, entry, fresh)
  local item = self.items[index]
  local thought = entry.kind == "thought"
  local streamed = item.tail and item.tail.bytes or 0
  if not fresh and #entry.text > streamed then
    -- Text only grows: what is there already is its beginning.
    self:stream(index, entry.text:sub(streamed + 1))
  elseif fresh or (entry.text ~= "" and #entry.text < streamed) then
    local first, past = self:range(index)
    local top = first + item.gap
    if not fresh then
      self:write(top, past, thought and { "", "" } or { "" })
      self:place(index, first)
    elseif thought then
      self:write(past, past, { "" })
    end
    local nested = item.parent and "  " .. self.context.icons.gutter .. " " or ""
    item.trimmed = 0
    item.tail = message.tail(thought and nested .. "  " or nested)
    item.blocks = not thought and {} or nil
    item.lit = {}
    if entry.text ~= "" then
      self:stream(index, entry.text)
    end
  end
  local ended = entry.done and not item.done
  item.done = entry.done
  if thought and (fresh or ended) then
    self:thought_title(index, entry)
  end
  if ended then
    self:trim(index)
  end
  if thought and ended then
    local first, past = self:range(index)
    self:fold(index, first + item.gap, past - 1, self.fold_thoughts)
  end
  if ended and not thought then
    require("cursor_agent.decor").refresh(self.buf)
  end
end

---Puts an entry into the buffer, or renders it again.
---@param index integer
---@param entry cursor_agent.Entry
function Transcript:entry(index, entry)
  self:begin()
  local fresh = self.items[index] == nil
  if fresh then
    self:add(index, entry)
  end
  if render.streams(entry.kind) then
    self:message(index, entry, fresh)
  else
    local item = assert(self.items[index])
    item.done = entry.done
    item.text = entry.kind == "user" and entry.text or nil
    self:put(index, render.entry(entry, self.context), fresh)
  end
end

---Appends to an entry.
---@param index integer
---@param text string
function Transcript:append(index, text)
  local item = self.items[index]
  if not item then
    return
  end
  self:begin()
  if item.tail then
    self:stream(index, text)
  elseif item.text then
    item.text = item.text .. text
    self:put(
      index,
      render.entry({
        kind = item.kind --[[@as "user"]],
        text = item.text,
        done = false,
        started_ms = item.started_ms,
        parent = item.parent,
      }, self.context),
      false
    )
  end
end

---Forgets everything.
function Transcript:reset()
  self:begin()
  for _, ns in pairs(NS) do
    vim.api.nvim_buf_clear_namespace(self.buf, ns, 0, -1)
  end
  self.items, self.asides, self.ticking, self.base = {}, {}, {}, {}
  self:write(0, -1, { "" })
end

---Gives a window that has just come to show the chat its folds.
---@param win integer
function Transcript:dress(win)
  local list = {} ---@type { first: integer, last: integer, closed: boolean }[]
  for index, item in ipairs(self.items) do
    if item.fold then
      local top = self:range(index) + item.gap
      list[#list + 1] = {
        first = top + item.fold.first + 1,
        last = top + item.fold.last + 1,
        closed = item.fold.closed,
      }
    end
  end
  folds.rebuild(win, list)
end

---What a row leads to.
---@param row integer
---@return cursor_agent.render.Target?
---@return integer? index of the entry
function Transcript:target(row)
  local index, top = self:entry_at(row)
  if not index then
    return nil, nil
  end
  local targets = self.items[index].targets
  return targets and targets[row - top], index
end

---The first visible piece of text that is not coloured yet, as something to do; nil when there is none.
---@param top integer
---@param bottom integer
---@return (fun(pause: cursor_agent.syntax.Pause))?
function Transcript:next_unpainted(top, bottom)
  local index = self:entry_at(top)
  while index and self.items[index] do
    local item = self.items[index]
    local first, past = self:range(index)
    if first > bottom then
      return nil
    end
    local piece = item.code and self:code_piece(index)
      or item.blocks and self:block_piece(index, first, past, top, bottom)
    if piece then
      return piece
    end
    index = index + 1
  end
end

---@private
---@param index integer
---@return fun(pause: cursor_agent.syntax.Pause)
function Transcript:code_piece(index)
  local item = self.items[index]
  local all = item.code --[=[@as cursor_agent.render.Code[] ]=]
  local code = table.remove(all, 1)
  if #all == 0 then
    item.code = nil
  end
  item.painting = item.drawn
  return function(pause)
    local lang = syntax.language_of(code.path)
    local spans = lang and syntax.spans(lang, code.text, false, pause) or {}
    -- Drawn anew meanwhile: the new lines have their own turn.
    if #spans == 0 or item.painting ~= item.drawn or not self.items[index] then
      return
    end
    local row = self:range(index) + item.gap
    syntax.mark(self.buf, NS.syntax, spans, code.text, function(i)
      local at = code.rows[i + 1]
      return at and { row = row + at.row, col = at.col, apply = at.apply }
    end)
  end
end

---@private
---@param index integer
---@param entry_row integer
---@param past integer
---@param top integer
---@param bottom integer
---@return (fun(pause: cursor_agent.syntax.Pause))?
function Transcript:block_piece(index, entry_row, past, top, bottom)
  local item = self.items[index]
  local blocks = item.blocks --[=[@as cursor_agent.render.TextBlock[] ]=]
  local tail = item.tail --[[@as cursor_agent.render.Tail]]
  local row = entry_row + item.gap
  -- The last block that begins at or above the first visible row.
  local low, high = 1, #blocks
  while low < high do
    local middle = math.ceil((low + high) / 2)
    if row + blocks[middle].row <= top then
      low = middle
    else
      high = middle - 1
    end
  end
  for i = low, #blocks do
    local first = row + blocks[i].row
    if first > bottom then
      return nil
    end
    local open = i == #blocks and not item.done
    local lit = item.lit[i]
    local due = lit == nil or not open or vim.uv.now() - item.lit_at >= painter.STREAMING_MS
    if lit ~= true and due and not (open and lit == tail.bytes) then
      item.lit[i] = not open and true or tail.bytes
      item.lit_at = vim.uv.now()
      local last = blocks[i + 1] and row + blocks[i + 1].row or past
      return self:paint_block(index, i, first, last)
    end
  end
end

---@private
---@param index integer
---@param number integer of the block
---@param first integer
---@param past integer
---@return fun(pause: cursor_agent.syntax.Pause)
function Transcript:paint_block(index, number, first, past)
  local item = self.items[index]
  local block = assert(item.blocks)[number]
  local cut = #assert(item.tail).prefix
  return function(pause)
    local lines = vim.api.nvim_buf_get_lines(self.buf, first, past, false)
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
      local lang = syntax.language_of_fence(block.code)
      spans = lang and syntax.spans(lang, lines, false, pause) or {}
      vim.list_extend(spans, fences)
      for _, fence in ipairs(fences) do
        lines[fence.from_row + 1] = (" "):rep(fence.to_col)
      end
    else
      spans = syntax.spans("markdown", lines, self.conceal, pause)
    end
    -- Text above may have come or gone meanwhile; the block itself only grows.
    if self.items[index] ~= item or assert(item.blocks)[number] ~= block or not vim.api.nvim_buf_is_valid(self.buf) then
      return
    end
    local row = self:range(index) + item.gap + block.row
    vim.api.nvim_buf_clear_namespace(self.buf, NS.syntax, row, row + #lines)
    syntax.mark(self.buf, NS.syntax, spans, lines, function(k)
      return { row = row + k, col = cut, apply = true }
    end)
  end
end

return M
