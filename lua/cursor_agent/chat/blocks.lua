-- Writes a rendered block over an entry's previous lines, with its marks, asides, targets and fold.

local NS = require("cursor_agent.chat.namespaces")
local highlights = require("cursor_agent.colour.highlights")

---@class (partial) cursor_agent.Transcript
local Transcript = {}

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
  -- The block is used only here, so its tables may be modified.
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

---Keeps cursors inside an entry that is about to lose lines: moves those below its new last line up to it.
---@private
---@param last integer new last row
---@param past integer row after the current last one
function Transcript:keep_cursors(last, past)
  for _, win in ipairs(self:windows()) do
    local row, col = unpack(vim.api.nvim_win_get_cursor(win))
    if row - 1 > last and row - 1 < past then
      vim.api.nvim_win_set_cursor(win, { last + 1, col })
    end
  end
end

---Writes a rendered block over the entry's previous lines, touching only those that differ.
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
  -- Clearing the namespace by lines would also remove zero-width marks such as the one on the last line of the entry
  -- above.
  for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(self.buf, NS.mark, { top, 0 }, { top + #lines - 1, -1 }, {})) do
    vim.api.nvim_buf_del_extmark(self.buf, NS.mark, mark[1])
  end
  vim.api.nvim_buf_clear_namespace(self.buf, NS.syntax, top, top + #lines)
  self:drop_asides(item)
  self:decorate(index, top, block)
end

---Applies everything of a rendered block that is not text.
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

return Transcript
