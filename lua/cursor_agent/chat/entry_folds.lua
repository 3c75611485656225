-- Which entries of a transcript are folded in each window. Folds the user opened or closed stay that way.

local folds = require("cursor_agent.chat.folds")

---The state of a fold before its lines changed.
---@class (exact) cursor_agent.transcript.Refold
---@field old cursor_agent.transcript.Fold?
---@field closed table<integer, boolean> by window

---@class cursor_agent.EntryFolds
---@field private transcript cursor_agent.Transcript
---@field private waiting boolean folds are made once the user has finished selecting
---@field private refold table<integer, cursor_agent.transcript.Refold> by entry whose fold is remade after this batch
local EntryFolds = {}
EntryFolds.__index = EntryFolds

local M = {}

---@param transcript cursor_agent.Transcript
---@return cursor_agent.EntryFolds
function M.new(transcript)
  return setmetatable({ transcript = transcript, waiting = false, refold = {} }, EntryFolds)
end

---The rows a fold covers.
---@private
---@param index integer
---@param fold cursor_agent.transcript.Fold
---@return integer first
---@return integer last
function EntryFolds:rows(index, fold)
  local transcript = self.transcript
  local top = transcript:first_row(index) + transcript.items[index].gap
  if fold.block then
    local _, past = transcript:range(transcript:last_of_block(index))
    return top, past - 1
  end
  return top + fold.first, top + fold.last
end

---Records how an entry is folded, before its lines change.
---@private
---@param index integer
function EntryFolds:note(index)
  if self.refold[index] then
    return
  end
  local fold = self.transcript.items[index].fold
  fold = fold and fold.made and fold or nil
  local closed = {} ---@type table<integer, boolean>
  if fold then
    local line = self:rows(index, fold) + 1
    for _, win in ipairs(self.transcript:windows()) do
      closed[win] = folds.closed(win, { line })[1]
    end
  end
  self.refold[index] = { old = fold, closed = closed }
end

---Records the folds of the blocks an entry is in, which must grow to include its lines.
---@param index integer
function EntryFolds:note_block(index)
  local items = self.transcript.items
  local task = items[index].parent
  while task do
    if items[task].fold then
      self:note(task)
    end
    task = items[task].parent
  end
end

---Records the folds that changing an entry's lines may break: whether Neovim extends a fold to lines inserted at its
---edge depends on the version.
---@param index integer
function EntryFolds:note_around(index)
  local transcript = self.transcript
  for step = -1, 1 do
    local i = transcript:next(index, step)
    local item = i and transcript.items[i]
    local below = step == 1 and item or transcript.items[index]
    if i and item and item.fold and (i == index or below.gap == 0) then
      self:note(i)
    end
    if i then
      self:note_block(i)
    end
  end
end

---Folds the details of an entry, at the end of the batch.
---@param index integer
---@param first integer row
---@param last integer row
---@param closed boolean
function EntryFolds:set(index, first, last, closed)
  local item = self.transcript.items[index]
  local top = self.transcript:first_row(index) + item.gap
  local old = item.fold
  local fold = { first = first - top, last = last - top, closed = closed }
  if last <= first and not old then
    return
  end
  if old and not old.block and old.last == fold.last and old.closed == closed then
    return
  end
  self:note(index)
  item.fold = last > first and fold or nil
end

---Folds the block of a task at the end of the batch; nil: no longer folded.
---@param index integer
---@param closed boolean?
function EntryFolds:set_block(index, closed)
  local item = self.transcript.items[index]
  local old = item.fold
  if (closed == nil and not old) or (old and old.block and old.closed == closed) then
    return
  end
  self:note(index)
  item.fold = closed ~= nil and { first = 0, last = 0, closed = closed, block = true } or nil
end

---Delays the folds while text is being selected in the current window: making a fold would end the selection.
---@private
---@return boolean put_off
function EntryFolds:wait_for_selection()
  local selecting = vim.api.nvim_get_current_buf() == self.transcript.buf and vim.fn.mode():find("^[vVsS\22\19]") ~= nil
  if selecting and not self.waiting then
    self.waiting = true
    vim.api.nvim_create_autocmd("ModeChanged", {
      pattern = "*:n*",
      once = true,
      desc = "cursor-agent: create pending folds",
      callback = vim.schedule_wrap(function()
        self.waiting = false
        if vim.api.nvim_buf_is_loaded(self.transcript.buf) then
          self:make()
        end
      end),
    })
  end
  return selecting
end

---Makes a batch's folds in each window. What the user opened, closed or is reading stays as it is.
function EntryFolds:make()
  if next(self.refold) == nil or self:wait_for_selection() then
    return
  end
  local refold = self.refold
  self.refold = {}
  for _, win in ipairs(self.transcript:windows()) do
    folds.update(win, self:of_window(win, refold))
  end
  for index in pairs(refold) do
    local fold = self.transcript.items[index].fold
    if fold then
      local first, last = self:rows(index, fold)
      fold.made = last > first and #self.transcript:windows() > 0
    end
  end
end

---The outermost entry whose existing fold contains this entry's lines: that fold is remade as a whole. A fold that is
---new is simply created around what is there.
---@private
---@param index integer
---@param refold table<integer, cursor_agent.transcript.Refold>
---@return integer
---@return boolean block whether it is the fold of a block
function EntryFolds:outermost(index, refold)
  local items = self.transcript.items
  local found, block = index, false
  local at = index ---@type integer?
  while at do
    local before = refold[at]
    local old = items[at].fold
    if before then
      old = before.old
    end
    if old and old.block and old.made then
      found, block = at, true
    end
    at = items[at].parent
  end
  return found, block
end

---The folds a window should now have for the entries of a batch.
---@private
---@param win integer
---@param refold table<integer, cursor_agent.transcript.Refold>
---@return cursor_agent.folds.Change[]
function EntryFolds:of_window(win, refold)
  local transcript = self.transcript
  local list, seen = {}, {} ---@type cursor_agent.folds.Change[], table<integer, boolean>
  for index in pairs(refold) do
    local outer, block = self:outermost(index, refold)
    if not seen[outer] then
      seen[outer] = true
      local last = block and transcript:last_of_block(outer) or outer
      local start = transcript:first_row(outer) + transcript.items[outer].gap
      local _, past = transcript:range(last)
      local change = { top = start + 1, bottom = past, known = block, folds = {} } ---@type cursor_agent.folds.Change
      -- Bottom up: inner entries before their block.
      local at = last ---@type integer?
      while at do
        local before = refold[at]
        change.known = change.known or (before ~= nil and before.old ~= nil)
        change.folds[#change.folds + 1] = self:of_entry(win, at, before)
        at = at ~= outer and transcript:next(at, -1) or nil
      end
      list[#list + 1] = change
    end
  end
  return list
end

---The fold a window should now have for an entry.
---@private
---@param win integer
---@param index integer
---@param before cursor_agent.transcript.Refold? nil: its own lines have not changed
---@return cursor_agent.folds.Fold?
function EntryFolds:of_entry(win, index, before)
  local fold = self.transcript.items[index].fold
  if not fold then
    return nil
  end
  local first, last = self:rows(index, fold)
  if last <= first then
    return nil
  end
  local line = vim.api.nvim_win_get_cursor(win)[1] - 1
  local reading = line >= first and line <= last and not self.transcript.tail:is_pinned(win)
  local closed = fold.closed
  local was, old ---@type boolean?, cursor_agent.transcript.Fold?
  if before then
    was, old = before.closed[win], before.old
  elseif fold.made then
    was, old = folds.closed(win, { first + 1 })[1], fold
  end
  if old and was ~= nil and (was ~= old.closed or (reading and not was)) then
    closed = was
  elseif not old and reading then
    closed = false
  end
  return { first = first + 1, last = last + 1, closed = closed }
end

---The entries whose folds the user opened or closed in a window, and whether they are closed.
---@param win integer
---@return table<integer, boolean>
function EntryFolds:by_hand(win)
  local transcript = self.transcript
  local lines = {} ---@type table<integer, integer>
  for _, index in ipairs(transcript.order) do
    local fold = transcript.items[index].fold
    if fold and fold.made then
      lines[index] = self:rows(index, fold) + 1
    end
  end
  local closed = folds.closed(win, lines)
  for index in pairs(lines) do
    local fold = transcript.items[index].fold
    if fold and closed[index] == fold.closed then
      -- In its default state: it may still change by itself.
      closed[index] = nil
    end
  end
  return closed
end

---Creates the folds in a window that has just started to show the chat.
---@param win integer
---@param by_hand table<integer, boolean> as they were in the previous window
function EntryFolds:dress(win, by_hand)
  self:make()
  local transcript = self.transcript
  local list = {} ---@type cursor_agent.folds.Fold[]
  for at = #transcript.order, 1, -1 do
    local index = transcript.order[at]
    local fold = transcript.items[index].fold
    if fold then
      local first, last = self:rows(index, fold)
      local closed = fold.closed
      if by_hand[index] ~= nil then
        closed = by_hand[index]
      end
      fold.made = last > first
      if fold.made then
        list[#list + 1] = { first = first + 1, last = last + 1, closed = closed }
      end
    end
  end
  folds.rebuild(win, list)
end

return M
