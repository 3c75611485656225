-- Which entries of a transcript are folded, and how each window has them: what someone has opened or closed stays so.

local folds = require("cursor_agent.folds")

---What a fold was before its lines were changed.
---@class (exact) cursor_agent.transcript.Refold
---@field old cursor_agent.transcript.Fold?
---@field closed table<integer, boolean> by window

---@class cursor_agent.EntryFolds
---@field private transcript cursor_agent.Transcript
---@field private waiting boolean folds are made when the user has selected what they want
---@field private refold table<integer, cursor_agent.transcript.Refold> by entry whose fold is made anew after this batch
local EntryFolds = {}
EntryFolds.__index = EntryFolds

local M = {}

---@param transcript cursor_agent.Transcript
---@return cursor_agent.EntryFolds
function M.new(transcript)
  return setmetatable({ transcript = transcript, waiting = false, refold = {} }, EntryFolds)
end

---Notes how an entry is folded, before its lines change.
---@private
---@param index integer
function EntryFolds:note(index)
  if self.refold[index] then
    return
  end
  local item = self.transcript.items[index]
  local closed = {} ---@type table<integer, boolean>
  if item.fold then
    local line = self.transcript:first_row(index) + item.gap + item.fold.first + 1
    for _, win in ipairs(self.transcript:windows()) do
      closed[win] = folds.is_closed(win, line)
    end
  end
  self.refold[index] = { old = item.fold, closed = closed }
end

---Notes the folds that a change of an entry's lines may spoil: Neovim takes what is put in at the edge of a fold into it
---or out of it, which of the two depends on its version.
---@param index integer
function EntryFolds:note_around(index)
  for i = index - 1, index + 1 do
    local item, below = self.transcript.items[i], self.transcript.items[math.max(i, index)]
    if item and item.fold and (i == index or below.gap == 0) then
      self:note(i)
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
  if old and old.last == fold.last and old.closed == closed then
    return
  end
  self:note(index)
  item.fold = last > first and fold or nil
end

---Puts off the folds while text is being selected in the current window: making one would end that.
---@private
---@return boolean put_off
function EntryFolds:wait_for_selection()
  local selecting = vim.api.nvim_get_current_buf() == self.transcript.buf and vim.fn.mode():find("^[vVsS\22\19]") ~= nil
  if selecting and not self.waiting then
    self.waiting = true
    vim.api.nvim_create_autocmd("ModeChanged", {
      pattern = "*:n*",
      once = true,
      desc = "cursor-agent: make the folds that had to wait",
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

---Makes the folds of a batch in each window. What someone has opened, closed or is reading stays as it is.
function EntryFolds:make()
  if next(self.refold) == nil or self:wait_for_selection() then
    return
  end
  local refold = self.refold
  self.refold = {}
  for _, win in ipairs(self.transcript:windows()) do
    folds.update(win, self:of_window(win, refold))
  end
end

---The folds a window has from now on for entries of a batch.
---@private
---@param win integer
---@param refold table<integer, cursor_agent.transcript.Refold>
---@return cursor_agent.folds.Change[]
function EntryFolds:of_window(win, refold)
  local line = vim.api.nvim_win_get_cursor(win)[1] - 1
  local follows = self.transcript.tail:follows(win)
  local list = {} ---@type cursor_agent.folds.Change[]
  for index, before in pairs(refold) do
    local item = self.transcript.items[index]
    local start, past = self.transcript:range(index)
    local top = start + item.gap
    local change = { top = top + 1, bottom = past, known = before.old ~= nil } ---@type cursor_agent.folds.Change
    if item.fold then
      local first, last = top + item.fold.first, top + item.fold.last
      local reading = line >= first and line <= last and not follows
      local was = before.closed[win]
      local closed = item.fold.closed
      if before.old and was ~= nil and (was ~= before.old.closed or (reading and not was)) then
        closed = was
      elseif not before.old and reading then
        closed = false
      end
      change.fold = { first = first + 1, last = last + 1, closed = closed }
    end
    list[#list + 1] = change
  end
  return list
end

---The entries whose folds the user has opened or closed in a window, and whether they are closed.
---@param win integer
---@return table<integer, boolean>
function EntryFolds:by_hand(win)
  local transcript = self.transcript
  local lines = {} ---@type table<integer, integer>
  for index, item in ipairs(transcript.items) do
    if item.fold then
      lines[index] = transcript:first_row(index) + item.gap + item.fold.first + 1
    end
  end
  local closed = folds.closed(win, lines)
  for index in pairs(lines) do
    local fold = transcript.items[index].fold
    if fold and closed[index] == fold.closed then
      -- As it is without the user: it may become another by itself.
      closed[index] = nil
    end
  end
  return closed
end

---Gives a window that has just come to show the chat its folds.
---@param win integer
---@param by_hand table<integer, boolean> as the window before it had them
function EntryFolds:dress(win, by_hand)
  self:make()
  local transcript = self.transcript
  local list = {} ---@type cursor_agent.folds.Fold[]
  for index, item in ipairs(transcript.items) do
    if item.fold then
      local top = transcript:first_row(index) + item.gap
      local closed = item.fold.closed
      if by_hand[index] ~= nil then
        closed = by_hand[index]
      end
      list[#list + 1] = { first = top + item.fold.first + 1, last = top + item.fold.last + 1, closed = closed }
    end
  end
  folds.rebuild(win, list)
end

return M
