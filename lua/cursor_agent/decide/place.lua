-- Where a decision is shown and how large: in the chat's column and as wide as that, or in a corner of the screen while
-- no chat is visible.

local format = require("cursor_agent.render.format")
local frame = require("cursor_agent.decide.frame")
local layout = require("cursor_agent.chat.layout")
local window = require("cursor_agent.window.quiet")

local M = {}

---Of the frame while no chat is visible, if the screen has room for it.
M.MIN_WIDTH = 30
---Width of the body there, before and after the card is entered.
local WIDTHS = { waiting = 80, entered = 110 }
---Share of the screen's lines the body may take, likewise.
local SHARES = { waiting = 0.45, entered = 0.65 }

---Rows of the chat left readable before the card is entered, if the chat is tall enough.
local MIN_CHAT_ROWS = 6

---What its position depends on, besides the screen.
---@class (exact) cursor_agent.decide.Sight
---@field win integer the window the user works in: not the card
---@field entered boolean the card has the focus
---@field above boolean at the top of its part of the screen, out of the cursor's way
---@field note string? a message to the user

---@class (exact) cursor_agent.decide.Layout
---@field row integer
---@field col integer
---@field width integer of the frame, without its border
---@field height integer likewise
---@field title string
---@field from string? who asks, above the body
---@field body integer lines of the body
---@field said integer lines between the body and the keys, for a message

---The part of the screen a card may cover.
---@class (exact) cursor_agent.decide.Spot
---@field top integer its first row
---@field bottom integer the row below it
---@field left integer its first column
---@field width integer
---@field is_chat boolean it is the chat's column: the card is as wide as that

---The window of the visible chat: this tab page's, or another one that is shown.
---@return integer? win
---@return cursor_agent.Chat? chat
function M.chat_window()
  local chats = require("cursor_agent.chat.registry")
  local chat = chats.current()
  local win = chat and layout.chat_window(chat)
  for _, other in ipairs(win and {} or chats.all()) do
    local shown = layout.chat_window(other)
    if shown then
      return shown, other
    end
  end
  return win, chat
end

---@return cursor_agent.decide.Spot
local function corner()
  local status, tabs = vim.o.laststatus, vim.o.showtabline
  local has_status = status >= 2 or (status == 1 and #vim.api.nvim_tabpage_list_wins(0) > 1)
  local has_tabs = tabs == 2 or (tabs == 1 and #vim.api.nvim_list_tabpages() > 1)
  return {
    top = has_tabs and 1 or 0,
    bottom = vim.o.lines - vim.o.cmdheight - (has_status and 1 or 0),
    left = 0,
    width = vim.o.columns,
    is_chat = false,
  }
end

---@return cursor_agent.decide.Spot
local function spot()
  local win = M.chat_window()
  if not win then
    return corner()
  end
  local row, col = unpack(vim.api.nvim_win_get_position(win))
  local edge = window.is_float(win) and 1 or 0
  local bottom = row + vim.api.nvim_win_get_height(win) + 2 * edge
  return {
    top = row + edge + (vim.fn.getwininfo(win)[1].winbar or 0),
    bottom = bottom,
    left = col,
    width = vim.api.nvim_win_get_width(win) + 2 * edge,
    is_chat = true,
  }
end

---How many rows a body takes in a window of a given width.
---@alias cursor_agent.decide.Measure fun(body: cursor_agent.render.Block, width: integer): integer

---As wide as its content.
---@param card cursor_agent.decide.Card
---@param sight cursor_agent.decide.Sight
---@param body cursor_agent.render.Block
---@param keys cursor_agent.render.Block
---@param widest integer
---@param from string?
---@return integer
local function needed_width(card, sight, body, keys, widest, from)
  local width = math.max(M.MIN_WIDTH, format.width(card.title .. (card.count or "")) + 6)
  for _, line in ipairs(body.lines) do
    width = math.max(width, format.width(line) + 2)
  end
  for _, line in ipairs(keys.lines) do
    width = math.max(width, format.width(line) + 1)
  end
  if sight.note then
    width = math.max(width, format.width(sight.note) + 2)
  end
  if from then
    width = math.max(width, format.width(from) + 2)
  end
  if card.footer and not sight.entered then
    width = math.max(width, format.width(table.concat(card.footer(), " · ")) + 4)
  end
  return math.min(width, widest)
end

---@param card cursor_agent.decide.Card
---@param sight cursor_agent.decide.Sight
---@param at cursor_agent.decide.Spot
---@param measure cursor_agent.decide.Measure
---@return cursor_agent.decide.Layout
---@return cursor_agent.render.Block body
---@return cursor_agent.render.Block keys
local function lay_out(card, sight, at, measure)
  local state = sight.entered and "entered" or "waiting"
  local widest = math.max(at.is_chat and at.width - 2 or math.min(WIDTHS[state], at.width - 4), 10)
  local keys = frame.keys(card.hints, math.min(WIDTHS.waiting, widest) - 2)
  local fits = not card.short_title or format.width(card.title .. (card.count or "")) + 6 <= widest
  local from = card.from and card.from(not fits)
  local head = from and 1 or 0
  local around = 2 + head + #keys.lines
  local room = at.bottom - at.top - around
  local most = math.floor(vim.o.lines * SHARES[state])
  if at.is_chat then
    most = sight.entered and room - 1 or math.min(most, room - MIN_CHAT_ROWS)
  end
  most = math.max(math.min(most, room - (sight.entered and 1 or 0)), 1)
  local body = card.body(widest - 2, not sight.entered and most or nil)
  local width = at.is_chat and widest or needed_width(card, sight, body, keys, widest, from)
  local lines = measure(body, width - 2) + (not sight.entered and body.left or 0)
  local shown = math.min(lines, most)
  local said = (sight.entered or sight.note or lines > most) and 1 or 0
  if said == 1 and not sight.entered and shown + said > most then
    shown = math.max(most - said, 1)
  end
  local height = math.max(head + shown + said + #keys.lines, 1)
  return {
    row = sight.above and at.top or math.max(at.bottom - height - 2, 0),
    col = at.is_chat and at.left or math.max(at.left + at.width - width - 2, 0),
    width = width,
    height = height,
    title = fits and card.title or card.short_title or card.title,
    from = from,
    body = shown,
    said = said,
  },
    body,
    keys
end

---Whether the cursor in the user's window would be hidden.
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

---How many rows at the bottom of the chat's window the card covers.
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

---Where a card goes, and its content there. `sight.above` is kept unless the card would be in the way.
---@param card cursor_agent.decide.Card
---@param sight cursor_agent.decide.Sight
---@param measure cursor_agent.decide.Measure
---@return cursor_agent.decide.Layout
---@return cursor_agent.render.Block body
---@return cursor_agent.render.Block keys
function M.find(card, sight, measure)
  local at = spot()
  local place, body, keys = lay_out(card, sight, at, measure)
  if M.covers_cursor(place, sight) then
    sight.above = not sight.above
    place.row = sight.above and at.top or math.max(at.bottom - place.height - 2, 0)
    if M.covers_cursor(place, sight) then
      sight.above = not sight.above
      place.row = sight.above and at.top or math.max(at.bottom - place.height - 2, 0)
    end
  end
  return place, body, keys
end

return M
