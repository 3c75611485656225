-- Writes messages and thoughts as they stream in: only what is new, and code that continues after a tool call.

local NS = require("cursor_agent.chat.namespaces")
local blocks = require("cursor_agent.render.block")
local bridge = require("cursor_agent.bridge")
local colour = require("cursor_agent.colour")
local redraw = require("cursor_agent.chat.redraw")
local message = require("cursor_agent.render.message")

---@class (partial) cursor_agent.Transcript
local Transcript = {}

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
    local changed = #item.blocks
    for _, block in ipairs(piece.blocks) do
      local at = row + block.row - top
      local last = item.blocks[#item.blocks]
      if last and last.row == at then
        -- What looked like text turned out to be a fence once its line was complete.
        last.code = block.code
        item.lit[#item.blocks] = nil
      else
        block.row = at
        table.insert(item.blocks, block)
      end
    end
    if not bridge.is_behind() then
      colour.draw_tail(self, index, changed)
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
  self:add_aside(item, row, asides)
end

---Begins a message inside the code block that the previous message of this turn left open.
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
  -- The repeated fence is not part of the text.
  assert(item.tail).bytes = 0
end

---Writes the full text of a message or thought, if it is new or differs from what was streamed.
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
    -- Text only grows: what is already there is its beginning.
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
    redraw.refresh(self.buf)
  end
end

return Transcript
