-- Where a decision is shown and how large: in a corner, off the cursor, with enough of the chat left to read in.

local format = require("cursor_agent.render.format")
local frame = require("cursor_agent.decide.frame")
local layout = require("cursor_agent.chat.layout")

local M = {}

---Of the frame, where the screen has room for it.
M.MIN_WIDTH = 48
---Of the body, while the card waits and once it is entered.
local WIDTHS = { waiting = 80, entered = 110 }
---Share of the screen's lines the body may take, likewise.
local SHARES = { waiting = 0.35, entered = 0.65 }

---Rows of the chat, its winbar included, that have to be left to read in; else the card goes to the top of the screen.
local MIN_CHAT_ROWS = 6

---What its place depends on, beside the screen.
---@class (exact) cursor_agent.decide.Sight
---@field win integer the window the user works in: not the card
---@field entered boolean the card has the focus
---@field above boolean at the top of the screen, out of the cursor's way
---@field note string? said to the user

---@class (exact) cursor_agent.decide.Layout
---@field row integer
---@field col integer
---@field width integer of the frame, without its border
---@field height integer likewise
---@field body integer lines of the body

---The corner of the screen the card grows from: the last free row, and the column right of it.
---@param win integer the window the user works in
---@return integer bottom
---@return integer right
local function corner(win)
  local status = vim.o.laststatus
  local has_status = status >= 2 or (status == 1 and #vim.api.nvim_tabpage_list_wins(0) > 1)
  local bottom, right = vim.o.lines - vim.o.cmdheight - (has_status and 1 or 0), vim.o.columns
  local chat = require("cursor_agent.chat.registry").of_buffer(vim.api.nvim_win_get_buf(win))
  local prompt = chat and layout.prompt_window(chat)
  if prompt then
    local position = vim.api.nvim_win_get_position(prompt)
    bottom, right = position[1], position[2] + vim.api.nvim_win_get_width(prompt)
  end
  return bottom, right
end

---The window of the chat on the screen.
---@return integer? win
---@return cursor_agent.Chat? chat
function M.chat_window()
  local chat = require("cursor_agent.chat.registry").current()
  local win = chat and layout.chat_window(chat)
  return win, chat
end

---The first row for a card at the top of the screen: below the tab pages and the winbar of the chat.
---@return integer
local function top_row()
  local tabs = vim.o.showtabline
  local top = (tabs == 2 or (tabs == 1 and #vim.api.nvim_list_tabpages() > 1)) and 1 or 0
  local win = M.chat_window()
  return win and vim.api.nvim_win_get_position(win)[1] == top and top + 1 or top
end

---How large a card is, wherever it goes.
---@class (exact) cursor_agent.decide.Size
---@field body cursor_agent.render.Block
---@field keys cursor_agent.render.Block
---@field width integer of the frame, without its border
---@field lines integer the body has on the screen
---@field most integer of them are shown, if there is room

---@param card cursor_agent.decide.Card
---@param sight cursor_agent.decide.Sight
---@return cursor_agent.decide.Size
local function size_of(card, sight)
  local state = sight.entered and "entered" or "waiting"
  local widest = math.max(math.min(WIDTHS[state], vim.o.columns - 4), 20)
  local most = math.floor(vim.o.lines * SHARES[state])
  local body = card.body(widest - 2, not sight.entered and most or nil)
  local widths = {} ---@type integer[]
  local width = math.max(M.MIN_WIDTH, format.width(card.title .. (card.count or "")) + 6)
  for i, line in ipairs(body.lines) do
    widths[i] = format.width(line)
    width = math.max(width, widths[i] + 2)
  end
  local keys = frame.keys(card.hints, math.min(WIDTHS.waiting, widest) - 2)
  for _, line in ipairs(keys.lines) do
    width = math.max(width, format.width(line) + 1)
  end
  if sight.note then
    width = math.max(width, format.width(sight.note) + 2)
  end
  if card.footer and state == "waiting" then
    width = math.max(width, format.width(card.footer) + 4)
  end
  width = math.min(width, widest)
  local lines = not sight.entered and body.left or 0
  for _, wide in ipairs(widths) do
    lines = lines + math.max(1, math.ceil(wide / (width - 2)))
  end
  return {
    body = body,
    keys = keys,
    width = width,
    lines = lines,
    most = math.min(lines, most),
  }
end

---@param size cursor_agent.decide.Size
---@param sight cursor_agent.decide.Sight
---@return cursor_agent.decide.Layout
local function lay_out(size, sight)
  local bottom, right = corner(sight.win)
  local room = math.max(bottom - 2 - #size.keys.lines - 1, 1)
  local body = math.max(math.min(size.most, room), 1)
  local height = body + 1 + #size.keys.lines
  return {
    row = sight.above and top_row() or math.max(bottom - height - 2, 0),
    col = math.max(right - size.width - 2, 0),
    width = size.width,
    height = height,
    body = body,
  }
end

---Whether the cursor of the work would be hidden.
---@param place cursor_agent.decide.Layout
---@param sight cursor_agent.decide.Sight
---@return boolean
function M.covers_cursor(place, sight)
  local win = sight.win
  if sight.entered or not vim.api.nvim_win_is_valid(win) then
    return false
  end
  local cursor = vim.api.nvim_win_get_cursor(win)
  local at = vim.fn.screenpos(win, cursor[1], cursor[2] + 1)
  return at.row > place.row
    and at.row <= place.row + place.height + 2
    and at.col > place.col
    and at.col <= place.col + place.width + 2
end

---How many rows at the foot of the chat's window lie under the card.
---@param place cursor_agent.decide.Layout
---@param win integer
---@return integer
function M.hidden_rows(place, win)
  local row, col = unpack(vim.api.nvim_win_get_position(win))
  local below = row + vim.api.nvim_win_get_height(win)
  local beside = col >= place.col + place.width + 2 or col + vim.api.nvim_win_get_width(win) <= place.col
  if beside or place.row <= row or place.row + place.height + 2 < below then
    return 0
  end
  return math.max(below - place.row, 0)
end

---Whether the card would leave too little of the chat to read in.
---@param place cursor_agent.decide.Layout
---@return boolean
local function covers_chat(place)
  local win = M.chat_window()
  local hidden = win and M.hidden_rows(place, win) or 0
  return win ~= nil and hidden > 0 and vim.api.nvim_win_get_height(win) - hidden < MIN_CHAT_ROWS
end

---Where a card goes, with what is shown of it there. `sight.above` is kept unless the card would be in the way.
---@param card cursor_agent.decide.Card
---@param sight cursor_agent.decide.Sight
---@return cursor_agent.decide.Layout
---@return cursor_agent.render.Block body
---@return cursor_agent.render.Block keys
function M.find(card, sight)
  local size = size_of(card, sight)
  local place = lay_out(size, sight)
  if M.covers_cursor(place, sight) or (not sight.above and not sight.entered and covers_chat(place)) then
    sight.above = not sight.above
    place = lay_out(size, sight)
    if M.covers_cursor(place, sight) then
      sight.above = not sight.above
      place = lay_out(size, sight)
    end
  end
  return place, size.body, size.keys
end

return M
