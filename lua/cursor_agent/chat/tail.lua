-- Keeps a window that is at the end of a chat there while text streams in (it is pinned), and counts what others have
-- not seen.

---@class (exact) cursor_agent.tail.Hidden
---@field rows integer rows at the bottom of the window that are covered
---@field line fun(): integer the line that must stay visible
---@field lifted boolean the text was scrolled up for it

---@class cursor_agent.Tail
---@field private buf integer
---@field private places table<integer, integer|false>? by window: the cursor's line if pinned when the batch began
---@field private scrolled_at integer when windows were last scrolled
---@field private before integer line count when the batch began
---@field private bytes integer byte count when the batch began
---@field private base table<integer, integer> by window that is not pinned: line count when it stopped being so
---@field private size table<integer, integer> by such a window: byte count at that time
---@field private owed table<integer, integer> by window that could not be scrolled: the line its cursor was left on
---@field private hidden table<integer, cursor_agent.tail.Hidden> by window whose bottom is covered
---@field private put table<integer, integer[]> by window with a taller last line: the cursor position we set
---@field private full table<integer, boolean> by pinned window: whether text filled it when the batch began
local Tail = {}
Tail.__index = Tail

local M = {}

---While text arrives faster than it can be shown, scroll only this often. Scrolling is the most expensive part of
---drawing.
local FLOOD_FRAME_MS = 50

---@param buf integer
---@return cursor_agent.Tail
function M.new(buf)
  return setmetatable({
    buf = buf,
    scrolled_at = 0,
    before = 1,
    bytes = 0,
    base = {},
    size = {},
    owed = {},
    hidden = {},
    put = {},
    full = {},
  }, Tail)
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

---Whether the cursor of a window is in the last row of its line.
---@param win integer
---@return boolean
local function in_last_row(win)
  return vim.api.nvim_win_call(win, function()
    local row = vim.fn.line(".") - 1
    local here = vim.fn.virtcol(".") --[[@as integer]]
    local past = vim.fn.virtcol("$") --[[@as integer]]
    local vcol = math.floor(math.max(math.min(here, past - 1), 1))
    local upto = vim.api.nvim_win_text_height(win, { start_row = row, end_row = row, end_vcol = vcol }).all
    return upto == vim.api.nvim_win_text_height(win, { start_row = row, end_row = row }).all
  end)
end

---Whether no row of a window is blank that text from above could fill.
---@param win integer
---@param last integer
---@return boolean
local function is_full(win, last)
  local info = vim.fn.getwininfo(win)[1]
  if info.topline <= 1 or info.topline > last then
    return info.topline <= 1
  end
  local rows = vim.api.nvim_win_text_height(win, { start_row = info.topline - 1, end_row = last - 1 }).all
  if vim.wo[win].smoothscroll then
    -- The first line may be shown from the middle.
    local skipped = vim.api.nvim_win_call(win, vim.fn.winsaveview).skipcol
    rows = rows - math.floor(skipped / math.max(info.width - info.textoff, 1))
  end
  return rows >= info.height
end

---Scrolls a window to the last line, showing as much above it as fits.
---@param win integer
---@param last integer
---@param grown number number of added lines
---@param hidden cursor_agent.tail.Hidden?
---@param was_full boolean? the text filled it: make it do so again after a fold closed or lines were removed
local function to_tail(win, last, grown, hidden, was_full)
  local info = vim.fn.getwininfo(win)[1]
  local height = info.height - (hidden and hidden.rows or 0)
  local rows_of_last = vim.api.nvim_win_text_height(win, { start_row = last - 1, end_row = last - 1 }).all
  -- Of a line taller than the window, Neovim shows the part with the cursor.
  vim.api.nvim_win_set_cursor(win, { last, rows_of_last > height and vim.v.maxcol or 0 })
  if not hidden and grown <= math.floor(height / 3) and (not was_full or is_full(win, last)) then
    -- Neovim itself scrolls just as far as needed.
    return
  end
  -- After a long jump Neovim would put the last line in the middle of the window.
  vim.api.nvim_win_call(win, function()
    local line = hidden and math.min(hidden.line(), last) or last
    local top, rows, skip = line, 0, 0
    while line >= 1 do
      local first = vim.fn.foldclosed(line)
      local size = { all = 1, fill = 0 }
      if first == -1 then
        first = line
        size = vim.api.nvim_win_text_height(win, { start_row = line - 1, end_row = line - 1 })
      end
      rows = rows + size.all
      if rows > height then
        local above = rows - height
        if rows > size.all and size.all - above > 1 and size.fill == 0 then
          -- Show the end of a paragraph rather than blank rows.
          top, skip = first, above * (info.width - info.textoff)
        end
        break
      end
      top, line = first, first - 1
    end
    vim.wo[win][0].smoothscroll = skip > 0 or vim.go.smoothscroll
    vim.fn.winrestview({ topline = top, skipcol = skip })
  end)
end

---Whether moving a window's cursor would interfere with what the user is doing there.
---@param win integer
---@return boolean
local function busy(win)
  if win ~= vim.api.nvim_get_current_win() then
    return false
  end
  local mode = vim.api.nvim_get_mode().mode
  return mode ~= "n" and mode:sub(1, 1) ~= "i"
end

---Whether a window is at the end. If the last line is taller than the window, being on it is not enough: the user may
---have gone back in it to read.
---@private
---@param win integer
---@param last integer
---@return boolean
function Tail:stands(win, last)
  local put = self.put[win]
  if not cursor_at_tail(win, last) then
    self.put[win] = nil
    return false
  end
  local cursor = vim.api.nvim_win_get_cursor(win)
  return not put or cursor[1] ~= put[1] or cursor[2] >= put[2] or in_last_row(win)
end

---Moves a window to the end, and records the cursor position if the last line is taller than the window.
---@private
---@param win integer
---@param last integer
---@param grown number number of added lines
---@param was_full boolean?
function Tail:move(win, last, grown, was_full)
  to_tail(win, last, grown, self.hidden[win], was_full)
  local cursor = vim.api.nvim_win_get_cursor(win)
  self.put[win] = cursor[2] > 0 and cursor or nil
end

---Records which windows are at the end, once per batch of changes.
function Tail:note()
  if self.places then
    for win, line in pairs(self.places) do
      if not vim.api.nvim_win_is_valid(win) then
        self.places[win] = nil
      elseif line and (vim.api.nvim_win_get_cursor(win)[1] ~= line or not self:stands(win, self.before)) then
        -- During a flood only the user moves the cursor between two steps.
        self.places[win] = false
        self:stop(win)
      end
    end
    return
  end
  self.places = {}
  self.before = vim.api.nvim_buf_line_count(self.buf)
  self.bytes = vim.api.nvim_buf_get_offset(self.buf, self.before)
  for _, win in ipairs(vim.fn.win_findbuf(self.buf)) do
    local line = vim.api.nvim_win_get_cursor(win)[1]
    local pinned = self:stands(win, self.before) or self.owed[win] == line
    self.owed[win] = nil
    self.places[win] = pinned and line or false
    self.full[win] = pinned and is_full(win, self.before) or nil
    if not pinned then
      self:stop(win)
    end
  end
end

---Unpins a window.
---@private
---@param win integer
function Tail:stop(win)
  if not self.base[win] then
    self.base[win], self.size[win] = self.before, self.bytes
  end
end

---Whether a window was at the end when the batch began.
---@param win integer
---@return boolean
function Tail:is_pinned(win)
  return self.places ~= nil and self.places[win] ~= nil and self.places[win] ~= false
end

---Ends a batch of changes: windows that were at the end are moved there again.
---@param flood boolean more follows immediately, so windows need not show every step
---@return boolean moved
function Tail:scroll(flood)
  local places = self.places
  if not places then
    return false
  end
  if flood and vim.uv.now() - self.scrolled_at < FLOOD_FRAME_MS then
    for win, line in pairs(places) do
      places[win] = line and vim.api.nvim_win_is_valid(win) and vim.api.nvim_win_get_cursor(win)[1]
    end
    return false
  end
  self.places, self.scrolled_at = nil, vim.uv.now()
  if not vim.api.nvim_buf_is_loaded(self.buf) then
    return false
  end
  local last = vim.api.nvim_buf_line_count(self.buf)
  for win, line in pairs(places) do
    if line and vim.api.nvim_win_is_valid(win) and vim.api.nvim_win_get_buf(win) == self.buf then
      if busy(win) then
        self.owed[win] = line
        self:stop(win)
      else
        self.base[win] = nil
        self:move(win, last, last - self.before, self.full[win])
      end
    end
  end
  return true
end

---Whether a window is at the end.
---@param win integer
---@return boolean
function Tail:is_at(win)
  return self:stands(win, vim.api.nvim_buf_line_count(self.buf))
end

---Moves one window, or those of the current tab page that show the chat, to the end.
---@param win? integer
function Tail:go(win)
  local last = vim.api.nvim_buf_line_count(self.buf)
  local here = vim.tbl_filter(function(one)
    return vim.api.nvim_win_get_buf(one) == self.buf
  end, vim.api.nvim_tabpage_list_wins(0))
  for _, one in ipairs(win and { win } or here) do
    self.base[one] = nil
    self:move(one, last, math.huge)
    if self.places then
      -- In the middle of a flood: pin it from here on.
      self.places[one] = last
    end
  end
end

---Something covers the bottom of a window. If the window is pinned and that hides a line, scroll it into view.
---@param win integer
---@param rows integer
---@param line fun(): integer the line
function Tail:hide(win, rows, line)
  local before = self.hidden[win]
  local hidden = { rows = rows, line = line, lifted = before ~= nil and before.lifted } ---@type cursor_agent.tail.Hidden
  self.hidden[win] = hidden
  if busy(win) or not (self:is_pinned(win) or self:is_at(win)) then
    return
  end
  local at = vim.fn.screenpos(win, line(), 1).row
  local below = vim.api.nvim_win_get_position(win)[1] + vim.api.nvim_win_get_height(win) - rows
  if at == 0 or at > below or (hidden.lifted and before and before.rows ~= rows) then
    hidden.lifted = true
    self:go(win)
  end
end

---Nothing covers a window any more. By now it may be gone, or show something else.
---@param win integer
function Tail:unhide(win)
  local before = self.hidden[win]
  self.hidden[win] = nil
  local ours = vim.api.nvim_win_is_valid(win) and vim.api.nvim_win_get_buf(win) == self.buf
  if ours and before and before.lifted and not busy(win) and (self:is_pinned(win) or self:is_at(win)) then
    self:go(win)
  end
end

---Forgets a window that is about to close, and returns what to remember: nil if it is pinned, else the number of lines
---the user could have seen.
---@param win integer
---@return integer?
function Tail:leave(win)
  local last = vim.api.nvim_buf_line_count(self.buf)
  local seen = not (self:is_pinned(win) or self:is_at(win)) and (self.base[win] or last) or nil
  self.base[win], self.size[win] = nil, nil
  self.owed[win], self.hidden[win], self.put[win], self.full[win] = nil, nil, nil, nil
  return seen
end

---Continues the count of another window in a new one.
---@param win integer
---@param seen integer
function Tail:resume(win, seen)
  self.base[win], self.size[win] = seen, nil
end

---How many lines were added below while a window showed something further up, and whether anything was: a growing
---paragraph is one line.
---@param win integer
---@return integer lines
---@return boolean any
function Tail:unseen(win)
  local base = self.base[win]
  if not base then
    return 0, false
  end
  local last = vim.api.nvim_buf_line_count(self.buf)
  if self:stands(win, last) then
    self.base[win] = nil
    return 0, false
  end
  local lines, size = math.max(last - base, 0), self.size[win]
  local grown = size ~= nil and vim.api.nvim_buf_get_offset(self.buf, last) > size
  return lines, lines > 0 or grown
end

return M
