-- Where each entry of a transcript is in its buffer, and where the next one goes.

local NS = require("cursor_agent.chat.namespaces")
local bisect = require("cursor_agent.render.bisect")
local render = require("cursor_agent.render")

---@class (partial) cursor_agent.Transcript
local Transcript = {}

---The first row of an entry, including the gap above it.
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

---The entry a number of places below another; above it if the number is negative.
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

---Whether this buffer shows an entry: a subagent's buffer shows only what is below its task.
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
    -- The common case: the block is the last one.
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
  -- Asking Neovim for the last mark above a row would make it walk over all of them.
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

---Adds the next entry at the end of the buffer or of its block, lines included: replacing lines later would cost Neovim
---many times as much as adding them.
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
  -- Even an empty buffer has one line.
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

return Transcript
