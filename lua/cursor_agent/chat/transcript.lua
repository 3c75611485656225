-- Writes the entries of a session into its chat buffer, each within its own lines.
--
-- They stand in the order they came, but what a subagent says and does stands below its task: one block for each. Another
-- buffer may show one of these blocks alone.

local bisect = require("cursor_agent.render.bisect")
local entry_folds = require("cursor_agent.chat.entry_folds")
local highlights = require("cursor_agent.colour.highlights")
local message = require("cursor_agent.render.message")
local painter = require("cursor_agent.colour.painter")
local regions = require("cursor_agent.chat.regions")
local blocks = require("cursor_agent.render.block")
local render = require("cursor_agent.render")

---@class (exact) cursor_agent.transcript.Item an entry as it stands in the buffer
---@field kind string
---@field gap integer lines between it and the entry above: 0 or 1
---@field done boolean
---@field text string? of a prompt
---@field started_ms integer
---@field parent integer? the task it stands below
---@field depth integer how many tasks it stands below, in this buffer
---@field tail cursor_agent.render.Tail? of streamed text
---@field goes_on cursor_agent.transcript.GoesOn? it begins in a code block of a message above
---@field blocks cursor_agent.render.TextBlock[]? of streamed text; rows from the entry's own
---@field lit table<integer, integer|true> blocks that are coloured: true, or how many bytes there were then
---@field lit_at integer when the last one was
---@field drawn integer counts how often a block was rendered
---@field painting integer which of those times is being coloured
---@field targets table<integer, cursor_agent.render.Target>? by row
---@field code cursor_agent.render.Code[]? not yet coloured
---@field asides integer[] marks of `asides`
---@field fold cursor_agent.transcript.Fold?

---@class (exact) cursor_agent.transcript.Fold
---@field first integer row, from the entry's own
---@field last integer row
---@field closed boolean
---@field block boolean? it takes in all that stands below the task; its last row is that of its last entry
---@field made boolean? windows have it: a task that nothing stands below yet has none

---A message begins in a code block of another one: a tool call came between them. Its first line repeats the fence.
---@class (exact) cursor_agent.transcript.GoesOn
---@field from integer the entry it goes on with
---@field joined boolean whether that is in the middle of a line

---How the last window that went showed the chat.
---@class (exact) cursor_agent.transcript.Left
---@field seen integer? lines that have been there to see; nil: it followed
---@field view vim.fn.winsaveview.ret
---@field closed table<integer, boolean> by entry whose fold the user opened or closed

---@class cursor_agent.Transcript
---@field buf integer
---@field items table<integer, cursor_agent.transcript.Item> by the number of the entry
---@field order integer[] the numbers of the entries as they stand in the buffer
---@field private position table<integer, integer> where they stand in `order`
---@field root integer? the task whose block this is
---@field context cursor_agent.render.Context
---@field conceal boolean
---@field fold_thoughts boolean
---@field tail cursor_agent.Tail
---@field asides table<integer, cursor_agent.render.Aside[]> by mark
---@field ticking table<integer, boolean> marks of asides that show a running time
---@field private next_aside integer
---@field private left cursor_agent.transcript.Left?
---@field private open boolean the buffer may be written to
---@field folds cursor_agent.EntryFolds which of them are folded
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

---@param buf integer
---@return cursor_agent.Transcript?
function M.of(buf)
  return by_buffer[buf]
end

---The transcript the current buffer shows of a chat: all of it, or a subagent's block.
---@param chat cursor_agent.Chat
---@return cursor_agent.Transcript
function M.here(chat)
  return by_buffer[vim.api.nvim_get_current_buf()] or chat.transcript
end

---The other buffers that show a part of a chat.
---@param chat cursor_agent.Chat
---@return cursor_agent.Transcript[]
function M.views(chat)
  local list = {} ---@type cursor_agent.Transcript[]
  for buf, transcript in pairs(by_buffer) do
    local loaded = transcript.root ~= nil and vim.api.nvim_buf_is_loaded(buf)
    if loaded and vim.b[buf].cursor_agent_key == chat.key then
      list[#list + 1] = transcript
    end
  end
  return list
end

---@param buf integer
---@param cwd string
---@param root? integer the task whose block it is to show, and nothing else
---@return cursor_agent.Transcript
function M.new(buf, cwd, root)
  local options = require("cursor_agent.config").get().chat
  local self = setmetatable({
    buf = buf,
    items = {},
    order = {},
    position = {},
    root = root,
    context = {
      cwd = cwd,
      icons = require("cursor_agent.render.icons").pick(options.icons),
      diff_lines = options.diff_lines,
      output_lines = options.output_lines,
      fold_tools = options.fold_tools,
    },
    conceal = options.conceal,
    fold_thoughts = options.fold_thoughts,
    tail = require("cursor_agent.chat.tail").new(buf),
    asides = {},
    ticking = {},
    next_aside = 1,
    open = false,
  }, Transcript)
  self.folds = entry_folds.new(self)
  by_buffer[buf] = self
  regions.fence(self)
  highlights.setup()
  require("cursor_agent.chat.decor").setup(M)
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

---@return integer[]
function Transcript:windows()
  return vim.fn.win_findbuf(self.buf)
end

---Opens the buffer for writing, once for a batch of changes.
---@private
function Transcript:begin()
  if not self.open then
    self.open = true
    vim.bo[self.buf].modifiable = true
    self.tail:note()
  end
end

---Whether a batch of changes is being written.
---@return boolean
function Transcript:is_open()
  return self.open
end

---Ends a batch of changes.
---@param flood boolean more is to come at once
function Transcript:finish(flood)
  if self.open then
    self.open = false
    if vim.api.nvim_buf_is_valid(self.buf) then
      vim.bo[self.buf].modifiable = false
      vim.bo[self.buf].modified = false
      self.folds:make()
    end
  end
  if self.tail:follow(flood) then
    regions.update(self)
  end
end

---The first row of an entry. The gap above it is part of it.
---@param index integer
---@return integer
function Transcript:first_row(index)
  return vim.api.nvim_buf_get_extmark_by_id(self.buf, NS.entry, index, {})[1]
end

---The lines of an entry: first row, and the row after the last.
---@param index integer
---@return integer first
---@return integer past
function Transcript:range(index)
  local below = self:next(index)
  return self:first_row(index), below and self:first_row(below) or vim.api.nvim_buf_line_count(self.buf)
end

---The entry that stands some places below another; above it with a number less than 0.
---@param index integer
---@param steps? integer
---@return integer?
function Transcript:next(index, steps)
  return self.order[self.position[index] + (steps or 1)]
end

---The last entry of the block below a task, or the entry itself.
---@param index integer
---@return integer
function Transcript:last_of_block(index)
  local depth = self.items[index].depth
  local at = self.position[index]
  while self.order[at + 1] and self.items[self.order[at + 1]].depth > depth do
    at = at + 1
  end
  return self.order[at]
end

---Whether this buffer shows an entry: a block of its own shows what stands below its task.
---@param index integer
---@param parent integer?
---@return boolean
function Transcript:shows(index, parent)
  return self.root == nil or self.items[index] ~= nil or parent == self.root or self.items[parent or 0] ~= nil
end

---Where the next entry of a task goes in `order`.
---@private
---@param parent integer?
---@return integer
function Transcript:slot(parent)
  local task = parent and self.items[parent]
  if not task then
    return #self.order + 1
  end
  local last = self.order[#self.order] ---@type integer?
  while last and last ~= parent do
    last = self.items[last] and self.items[last].parent
  end
  if last then
    -- The block is the last one: usually it is.
    return #self.order + 1
  end
  return self.position[
    self:last_of_block(parent --[[@as integer]])
  ] + 1
end

---The entry a row belongs to, and the entry's first row below its gap.
---@param row integer
---@return integer? index
---@return integer top
function Transcript:entry_at(row)
  -- Asking for the last mark above a row would make Neovim walk over all that are there.
  local at = bisect.last(#self.order, function(i)
    return self:first_row(self.order[i]) <= row
  end)
  if at == 0 then
    return nil, 0
  end
  local index = self.order[at]
  return index, self:first_row(index) + self.items[index].gap
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

---Adds the next entry at the end of the buffer, or of its block. Replacing lines costs Neovim many times what adding
---them does, so they come with it.
---@private
---@param index integer
---@param entry cursor_agent.Entry
---@param lines string[]
---@return integer row where they begin
function Transcript:add(index, entry, lines)
  local at = self:slot(entry.parent)
  local above = self.items[self.order[at - 1]]
  local task = self.items[entry.parent or 0]
  local depth = task and task.depth + 1 or 0
  local gap = render.gap(above, entry.kind, depth)
  -- An empty buffer has one line all the same.
  local row = #self.order > 0 and vim.api.nvim_buf_line_count(self.buf) or 0
  local past = #self.order > 0 and row or 1
  if self.order[at] then
    row = self:first_row(self.order[at])
    past = row
    self.folds:note_around(self.order[at])
  end
  table.insert(self.order, at, index)
  for i = at, #self.order do
    self.position[self.order[i]] = i
  end
  self.items[index] = {
    kind = entry.kind,
    gap = gap and 1 or 0,
    done = false,
    started_ms = entry.started_ms,
    parent = task and entry.parent or nil,
    depth = depth,
    lit = {},
    lit_at = 0,
    drawn = 0,
    painting = 0,
    asides = {},
  }
  self:write(row, past, gap and vim.list_extend({ "" }, lines) or lines)
  self:place(index, row)
  self.folds:note_block(index)
  return gap and row + 1 or row
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

---Keeps cursors on an entry that is about to lose lines: on its last one, where theirs goes.
---@private
---@param last integer row, the last it will have
---@param past integer row after the last it has
function Transcript:keep_cursors(last, past)
  for _, win in ipairs(self:windows()) do
    local row, col = unpack(vim.api.nvim_win_get_cursor(win))
    if row - 1 > last and row - 1 < past then
      vim.api.nvim_win_set_cursor(win, { last + 1, col })
    end
  end
end

---Writes a rendered block over what the entry had, touching only the lines that differ.
---@private
---@param index integer
---@param block cursor_agent.render.Block
function Transcript:put(index, block)
  local item = self.items[index]
  local first, past = self:range(index)
  local top = first + item.gap
  local lines = block.lines
  local old = vim.api.nvim_buf_get_lines(self.buf, top, past, true)
  local head = 0
  while head < #old and head < #lines and old[head + 1] == lines[head + 1] do
    head = head + 1
  end
  local tail = 0
  while tail < #old - head and tail < #lines - head and old[#old - tail] == lines[#lines - tail] do
    tail = tail + 1
  end
  if head < #old or head < #lines then
    self.folds:note_around(index)
    self:keep_cursors(top + #lines - 1, past)
    self:write(top + head, past - tail, vim.list_slice(lines, head + 1, #lines - tail))
    self:place(index, first)
  end
  -- Clearing the lines would take marks along that end where they begin: that of the last line of the entry above.
  for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(self.buf, NS.mark, { top, 0 }, { top + #lines - 1, -1 }, {})) do
    vim.api.nvim_buf_del_extmark(self.buf, NS.mark, mark[1])
  end
  vim.api.nvim_buf_clear_namespace(self.buf, NS.syntax, top, top + #lines)
  self:drop_asides(item)
  self:decorate(index, top, block)
end

---Gives the lines of a rendered block all that is not text.
---@private
---@param index integer
---@param top integer
---@param block cursor_agent.render.Block
function Transcript:decorate(index, top, block)
  local item = self.items[index]
  for _, mark in ipairs(block.marks) do
    self:add_mark(top, mark)
  end
  for row, asides in pairs(block.asides) do
    self:add_aside(item, top + row, asides)
  end
  item.drawn = item.drawn + 1
  item.targets = next(block.targets) and block.targets or nil
  item.code = #block.code > 0 and block.code or nil
  if block.block ~= nil or (item.fold and item.fold.block) then
    self.folds:set_block(index, block.block)
  elseif block.closed ~= nil or item.fold then
    self.folds:set(index, top, top + #block.lines - 1, block.closed or false)
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
  local row = past - 1
  local col = tail.width > 0 and #tail.prefix + tail.width or 0
  local piece = message.append(tail, text)
  if piece.first ~= "" then
    vim.api.nvim_buf_set_text(self.buf, row, col, row, col, { piece.first })
  end
  if #piece.rest > 0 then
    self.folds:note_block(index)
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
  local first = self:first_row(index)
  local row = first + item.gap
  local chunks, asides = message.thought_title(entry, self.context)
  local b = blocks.builder()
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

---Begins a message within the code block that the one before it in this turn has left open.
---@private
---@param index integer
---@param text string of the message
function Transcript:go_on(index, text)
  local item = self.items[index]
  local from = self:next(index, -1)
  while from and not (self.items[from].kind == "agent" and self.items[from].parent == item.parent) do
    if self.items[from].kind == "user" and self.items[from].parent == item.parent then
      return
    end
    from = self:next(from, -1)
  end
  local above = from and self.items[from].tail
  local fence = above and message.unclosed(above)
  if not from or not above or not fence then
    return
  end
  local midway = above.width > 0 and above.held == ""
  local newline = text:find("^\r?\n") ~= nil
  item.goes_on = { from = from, joined = midway and not newline }
  self:stream(index, midway and newline and fence or fence .. "\n")
  -- It is none of the text.
  assert(item.tail).bytes = 0
end

---The text of a message or thought as a whole: written when it is new, or when it is not what was streamed.
---@private
---@param index integer
---@param entry cursor_agent.Entry
---@param fresh boolean
function Transcript:message(index, entry, fresh)
  local thought = entry.kind == "thought"
  local task = self.items[entry.parent or 0]
  entry.depth = task and task.depth + 1 or 0
  if fresh then
    self:add(index, entry, thought and { "", "" } or { "" })
  end
  local item = self.items[index]
  local streamed = item.tail and item.tail.bytes or 0
  if not fresh and #entry.text > streamed then
    -- Text only grows: what is there already is its beginning.
    self:stream(index, entry.text:sub(streamed + 1))
  elseif fresh or (entry.text ~= "" and #entry.text < streamed) then
    if not fresh then
      local first, past = self:range(index)
      self:write(first + item.gap, past, thought and { "", "" } or { "" })
      self:place(index, first)
    end
    local nested = item.depth > 0 and ("  "):rep(item.depth) .. self.context.icons.gutter .. " " or ""
    item.tail = message.tail(thought and nested .. "  " or nested)
    item.blocks = not thought and {} or nil
    item.lit = {}
    if not thought then
      self:go_on(index, entry.text)
    end
    if entry.text ~= "" then
      self:stream(index, entry.text)
    end
  end
  local ended = entry.done and not item.done
  item.done = entry.done
  if thought and (fresh or ended) then
    self:thought_title(index, entry)
  end
  if thought and ended then
    local first, past = self:range(index)
    self.folds:set(index, first + item.gap, past - 1, self.fold_thoughts)
  end
  if ended and not thought then
    require("cursor_agent.chat.decor").refresh(self.buf)
  end
end

---Puts an entry into the buffer, or renders it again.
---@param index integer
---@param entry cursor_agent.Entry
function Transcript:entry(index, entry)
  self:begin()
  local fresh = self.items[index] == nil
  if render.streams(entry.kind) then
    self:message(index, entry, fresh)
    return
  end
  local task = self.items[entry.parent or 0]
  entry.depth = task and task.depth + 1 or 0
  local block = render.entry(entry, self.context)
  if fresh then
    self:decorate(index, self:add(index, entry, block.lines), block)
  else
    self:put(index, block)
  end
  local item = assert(self.items[index])
  item.done = entry.done
  item.text = entry.kind == "user" and entry.text or nil
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
        depth = item.depth,
      }, self.context)
    )
  end
end

---Notes how a window that is about to go shows the chat, for the one that comes after it.
---@param win integer
function Transcript:leave(win)
  self.left = {
    seen = self.tail:leave(win),
    view = vim.api.nvim_win_call(win, vim.fn.winsaveview),
    closed = self.folds:by_hand(win),
  }
end

---Gives a window that has just come to show the chat its folds, and the place of the window there was before.
---@param win integer
function Transcript:dress(win)
  local left = self.left
  self.folds:dress(win, left and left.closed or {})
  if left and left.seen then
    self.tail:resume(win, left.seen)
    vim.api.nvim_win_call(win, function()
      vim.fn.winrestview(left.view)
    end)
  else
    self.tail:go(win)
  end
end

---The last line that says something: of a tool call the first one, the others are its details.
---@return integer
function Transcript:last_heading()
  local last = vim.api.nvim_buf_line_count(self.buf)
  local index, top = self:entry_at(last - 1)
  return index and self.items[index].kind == "tool" and top + 1 or last
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

return M
