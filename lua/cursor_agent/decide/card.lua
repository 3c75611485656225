-- The floating window a decision is shown in: a frame with the keys at its foot, and in it a window that scrolls.
--
-- It appears beside the work and is never entered by itself: neither of its windows can be reached by moving from
-- window to window, so no key typed for something else ends up here.

local format = require("cursor_agent.render.format")
local paint = require("cursor_agent.decide.paint")
local render = require("cursor_agent.render")
local window = require("cursor_agent.window")

local M = {}

---@class (exact) cursor_agent.decide.Hint
---@field key string
---@field text string
---@field action string

---The keys of actions, as a person reads them. What has no key is left out.
---@param kind cursor_agent.BufferKind
---@param list { [1]: string, [2]: string }[] actions and what they do here
---@return cursor_agent.decide.Hint[]
function M.hints(kind, list)
  local actions = require("cursor_agent.actions")
  local hints = {} ---@type cursor_agent.decide.Hint[]
  for _, one in ipairs(list) do
    local key = actions.key(one[1], kind)
    if key then
      -- `<CR>` and `<Space>` in brackets are for manuals.
      local shown = key:gsub("^<CR>$", "Enter"):gsub("^<(%a+)>$", "%1")
      hints[#hints + 1] = { key = shown, text = one[2], action = one[1] }
    end
  end
  return hints
end

---What is to be shown.
---@class (exact) cursor_agent.decide.Card
---@field kind cursor_agent.BufferKind
---@field title string
---@field count string? at the right of the title
---@field body fun(width: integer): cursor_agent.render.Block
---@field hints cursor_agent.decide.Hint[]
---@field footer string? in the border while the card is not entered
---@field cursor integer? line of the body the cursor is on at first; a list to choose from has one

local MIN_WIDTH = 48
---Of the body, while the card waits and once it is entered.
local WIDTHS = { waiting = 80, entered = 110 }
---Share of the screen's lines the body may take, likewise.
local SHARES = { waiting = 0.35, entered = 0.65 }

---Rows of the chat, its winbar included, that have to be left to read in; else the card goes to the top of the screen.
local MIN_CHAT_ROWS = 6

local ZINDEX = 45

local NS = vim.api.nvim_create_namespace("cursor_agent_card")
local GROUP = vim.api.nvim_create_augroup("cursor_agent_card", {})

---@type cursor_agent.decide.Card?
local shown
local frame_win ---@type integer?
local body_win ---@type integer?
local frame_buf ---@type integer?
local bodies = {} ---@type table<string, integer> buffers by kind
local above = false ---@type boolean at the top of the screen, out of the cursor's way
local placed ---@type cursor_agent.decide.Layout? where it is
local lifted ---@type { win: integer, tail: cursor_agent.Tail }? the chat that makes room for it
local from ---@type cursor_agent.decide.Origin? where the user was when the card was entered
local note ---@type string? said to the user until the next key
local moving = false ---@type boolean windows are being opened or closed by this file

---Called when the user closed the card by a window command.
M.on_closed = function() end

---Called when the card was entered or left.
---@param _entered boolean
M.on_focus = function(_entered) end

---@class (exact) cursor_agent.decide.Origin
---@field win integer
---@field insert boolean Insert mode was on
---@field cursor { [1]: integer, [2]: integer }

---@param win integer?
---@return boolean
local function is_valid(win)
  return win ~= nil and vim.api.nvim_win_is_valid(win)
end

---@return boolean
function M.is_open()
  return is_valid(body_win)
end

---@return boolean
function M.has_focus()
  return is_valid(body_win) and vim.api.nvim_get_current_win() == body_win
end

---The window that holds what is decided on.
---@return integer?
function M.window()
  return is_valid(body_win) and body_win or nil
end

---@param border any
---@return string
local function line_of(border)
  if type(border) == "table" then
    return type(border[2]) == "string" and border[2] or "─"
  end
  return ({ double = "═", solid = " ", shadow = " ", bold = "━" })[border] or "─"
end

---@return any a name, or its characters
local function border()
  if require("cursor_agent.config").get().chat.icons == "ascii" then
    return { "+", "-", "+", "|", "+", "-", "+", "|" }
  end
  local own = window.border()
  -- Without a border there is no place for the title.
  return own == "none" and "solid" or own
end

---@param text string
---@param width integer
---@return string
local function cut(text, width)
  if format.width(text) <= width then
    return text
  end
  return format.first_cells(text, math.max(width - 1, 1)) .. "…"
end

---@param card cursor_agent.decide.Card
---@param width integer
---@param line string
---@return { [1]: string, [2]: string }[]
local function title_of(card, width, line)
  local count = card.count and (" %s "):format(card.count) or ""
  local title = (" %s "):format(cut(card.title, width - format.width(count) - 4))
  local fill = width - format.width(title) - format.width(count) - (count ~= "" and 1 or 0)
  local chunks = { { title, "CursorAgentDecisionTitle" } } ---@type { [1]: string, [2]: string }[]
  if count ~= "" then
    chunks[2] = { line:rep(math.max(fill, 0)), "CursorAgentDecisionBorder" }
    chunks[3] = { count, "CursorAgentDecisionCount" }
  end
  return chunks
end

---The keys, as many to a line as fit.
---@param hints cursor_agent.decide.Hint[]
---@param width integer
---@return cursor_agent.render.Block
local function keys_of(hints, width)
  local block = render.builder()
  local line, used = {}, 0 ---@type cursor_agent.render.Chunk[], integer
  for _, hint in ipairs(hints) do
    local text = cut(hint.text, width - format.width(hint.key) - 2)
    local wide = format.width(hint.key .. " " .. text)
    if used > 0 and used + 3 + wide > width then
      block:line(line)
      line, used = {}, 0
    end
    if used > 0 then
      line[#line + 1] = { "   " }
      used = used + 3
    else
      line[#line + 1] = { " " }
    end
    line[#line + 1] = { hint.key, "CursorAgentKey" }
    line[#line + 1] = { " " .. text, "CursorAgentKeyText" }
    used = used + wide
  end
  if #line > 0 then
    block:line(line)
  end
  return block
end

---@param lines string[]
---@param width integer
---@return integer
local function screen_lines(lines, width)
  local count = 0
  for _, line in ipairs(lines) do
    count = count + math.max(1, math.ceil(format.width(line) / width))
  end
  return count
end

---The window the user works in: not the card.
---@return integer
local function work_window()
  local current = vim.api.nvim_get_current_win()
  if current == body_win or current == frame_win then
    return from and is_valid(from.win) and from.win or current
  end
  return current
end

---The corner of the screen the card grows from: the last free row, and the column right of it.
---@return integer bottom
---@return integer right
local function corner()
  local status = vim.o.laststatus
  local has_status = status >= 2 or (status == 1 and #vim.api.nvim_tabpage_list_wins(0) > 1)
  local bottom, right = vim.o.lines - vim.o.cmdheight - (has_status and 1 or 0), vim.o.columns
  local win = work_window()
  local chat = require("cursor_agent.chats").of_buffer(vim.api.nvim_win_get_buf(win))
  local prompt = chat and window.prompt_window(chat)
  if prompt then
    local position = vim.api.nvim_win_get_position(prompt)
    bottom, right = position[1], position[2] + vim.api.nvim_win_get_width(prompt)
  end
  return bottom, right
end

---The window of the chat on the screen.
---@return integer? win
---@return cursor_agent.Chat? chat
local function chat_window()
  local chat = require("cursor_agent.chats").current()
  local win = chat and window.chat_window(chat)
  return win, chat
end

---The first row for a card at the top of the screen: below the tab pages and the winbar of the chat.
---@return integer
local function top_row()
  local tabs = vim.o.showtabline
  local top = (tabs == 2 or (tabs == 1 and #vim.api.nvim_list_tabpages() > 1)) and 1 or 0
  local win = chat_window()
  return win and vim.api.nvim_win_get_position(win)[1] == top and top + 1 or top
end

---@class (exact) cursor_agent.decide.Layout
---@field row integer
---@field col integer
---@field width integer of the frame, without its border
---@field height integer likewise
---@field body integer lines of the body
---@field more integer lines of it that do not fit

---@param card cursor_agent.decide.Card
---@return cursor_agent.decide.Layout
---@return cursor_agent.render.Block body
---@return cursor_agent.render.Block keys
local function layout(card)
  local state = M.has_focus() and "entered" or "waiting"
  local widest = math.max(math.min(WIDTHS[state], vim.o.columns - 4), 20)
  local body = card.body(widest - 2)
  local width = math.max(MIN_WIDTH, format.width(card.title .. (card.count or "")) + 6)
  for _, line in ipairs(body.lines) do
    width = math.max(width, format.width(line) + 2)
  end
  local keys = keys_of(card.hints, math.min(WIDTHS.waiting, widest) - 2)
  for _, line in ipairs(keys.lines) do
    width = math.max(width, format.width(line) + 1)
  end
  if note then
    width = math.max(width, format.width(note) + 2)
  end
  if card.footer and state == "waiting" then
    width = math.max(width, format.width(card.footer) + 4)
  end
  width = math.min(width, widest)
  local bottom, right = corner()
  local room = math.max(bottom - 2 - #keys.lines - 1, 1)
  local wanted = screen_lines(body.lines, width - 2)
  local height = math.max(math.min(wanted, math.floor(vim.o.lines * SHARES[state]), room), 1)
  local total = height + 1 + #keys.lines
  return {
    row = above and top_row() or math.max(bottom - total - 2, 0),
    col = math.max(right - width - 2, 0),
    width = width,
    height = total,
    body = height,
    more = wanted - height,
  },
    body,
    keys
end

---Whether the cursor of the work would be hidden.
---@param place cursor_agent.decide.Layout
---@return boolean
local function covers_cursor(place)
  local win = work_window()
  if M.has_focus() or not is_valid(win) then
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
local function hidden_rows(place, win)
  local row, col = unpack(vim.api.nvim_win_get_position(win))
  local below = row + vim.api.nvim_win_get_height(win)
  local beside = col >= place.col + place.width + 2 or col + vim.api.nvim_win_get_width(win) <= place.col
  if beside or place.row <= row or place.row + place.height + 2 < below then
    return 0
  end
  return math.max(below - place.row, 0)
end

---Lets the chat show its end, which is where the agent says why it asks, above the card.
---@param place cursor_agent.decide.Layout? nil when the card goes
local function lift_chat(place)
  local win, chat = chat_window()
  local rows = place and win and hidden_rows(place, win) or 0
  local tail = chat and chat.transcript.tail
  local before = lifted
  local same = before ~= nil and before.win == win and before.tail == tail
  if before and (rows == 0 or not same) then
    before.tail:unhide(before.win)
    lifted = nil
  end
  if win and chat and rows > 0 then
    local transcript = chat.transcript
    lifted = { win = win, tail = transcript.tail }
    transcript.tail:hide(win, rows, function()
      return transcript:last_heading()
    end)
  end
end

---Whether the card would leave too little of the chat to read in.
---@param place cursor_agent.decide.Layout
---@return boolean
local function covers_chat(place)
  local win = chat_window()
  local hidden = win and hidden_rows(place, win) or 0
  return win ~= nil and hidden > 0 and vim.api.nvim_win_get_height(win) - hidden < MIN_CHAT_ROWS
end

---@param win integer
---@param options table<string, any>
local function set_options(win, options)
  for name, value in pairs(options) do
    vim.api.nvim_set_option_value(name, value, { win = win, scope = "local" })
  end
end

---@param kind cursor_agent.BufferKind
---@return integer
local function body_buffer(kind)
  local buf = bodies[kind]
  if not buf or not vim.api.nvim_buf_is_loaded(buf) then
    -- One that `:bdelete` unloaded has lost its keys.
    if buf and vim.api.nvim_buf_is_valid(buf) then
      vim.api.nvim_buf_delete(buf, { force = true })
    end
    buf = vim.api.nvim_create_buf(false, true)
    bodies[kind] = buf
    vim.bo[buf].bufhidden = "hide"
    vim.bo[buf].undolevels = -1
    vim.bo[buf].filetype = "cursoragent-decision"
    require("cursor_agent.actions").map(buf, kind)
  end
  return buf
end

---@param win integer?
local function close_window(win)
  if win and vim.api.nvim_win_is_valid(win) then
    pcall(vim.api.nvim_win_close, win, true)
  end
end

---@param place cursor_agent.decide.Layout
---@param card cursor_agent.decide.Card
---@return vim.api.keyset.win_config frame
---@return vim.api.keyset.win_config body
local function configs(place, card)
  local style = border()
  local footer = not M.has_focus() and card.footer
  local frame = {
    relative = "editor",
    row = place.row,
    col = place.col,
    width = place.width,
    height = place.height,
    border = style,
    title = title_of(card, place.width, line_of(style)),
    footer = footer and { { (" %s "):format(cut(footer, place.width - 4)), "CursorAgentDecisionFooter" } } or "",
    footer_pos = "right",
    style = "minimal",
    focusable = false,
    zindex = ZINDEX,
  } ---@type vim.api.keyset.win_config
  local body = {
    relative = "editor",
    row = place.row + 1,
    col = place.col + 2,
    width = place.width - 2,
    height = place.body,
    style = "minimal",
    focusable = false,
    zindex = ZINDEX + 1,
  } ---@type vim.api.keyset.win_config
  if vim.fn.exists("+winborder") == 1 then
    -- Since 0.11 'winborder' gives every float a border, and a click can reach what moving cannot.
    body.border = "none"
    body.mouse = true
  end
  return frame, body
end

---@param buf integer
---@param win_config vim.api.keyset.win_config
---@return integer
local function open_window(buf, win_config)
  local opts = vim.tbl_extend("force", win_config, { noautocmd = true })
  local win = vim.api.nvim_open_win(buf, false, opts)
  set_options(win, {
    wrap = true,
    linebreak = false,
    list = false,
    spell = false,
    foldenable = false,
    scrolloff = 0,
    sidescrolloff = 0,
    cursorline = false,
    winfixbuf = true,
    winblend = 0,
    fillchars = "lastline: ,eob: ",
    winhighlight = "NormalFloat:CursorAgentDecision,FloatBorder:CursorAgentDecisionBorder",
  })
  return win
end

---@param buf integer
local function swap_body(buf)
  if body_win and vim.api.nvim_win_get_buf(body_win) ~= buf then
    set_options(body_win, { winfixbuf = false })
    vim.api.nvim_win_set_buf(body_win, buf)
    set_options(body_win, { winfixbuf = true })
  end
end

---Draws the card that is shown, where it belongs now.
local function draw()
  local card = shown
  if not card or vim.fn.getcmdwintype() ~= "" then
    -- No window can be opened while the command-line window is; it is drawn when that closes.
    return
  end
  if
    body_win
    and is_valid(body_win)
    and vim.api.nvim_win_get_tabpage(body_win) ~= vim.api.nvim_get_current_tabpage()
  then
    moving = true
    close_window(body_win)
    close_window(frame_win)
    moving = false
  end
  local place, body, keys = layout(card)
  if covers_cursor(place) or (not above and not M.has_focus() and covers_chat(place)) then
    above = not above
    place, body, keys = layout(card)
    if covers_cursor(place) then
      above = not above
      place, body, keys = layout(card)
    end
  end
  placed = place
  lift_chat(place)
  moving = true
  if not frame_buf or not vim.api.nvim_buf_is_valid(frame_buf) then
    frame_buf = vim.api.nvim_create_buf(false, true)
  end
  local buf = body_buffer(card.kind)
  local frame_config, body_config = configs(place, card)
  if is_valid(frame_win) and is_valid(body_win) then
    vim.api.nvim_win_set_config(frame_win --[[@as integer]], frame_config)
    vim.api.nvim_win_set_config(body_win --[[@as integer]], body_config)
    swap_body(buf)
  else
    close_window(frame_win)
    close_window(body_win)
    frame_win = open_window(frame_buf, frame_config)
    body_win = open_window(buf, body_config)
  end
  moving = false
  paint.fill(buf, body)

  local lines = {} ---@type string[]
  for i = 1, place.body + 1 do
    lines[i] = ""
  end
  if note then
    lines[#lines] = " " .. cut(note, place.width - 2)
  elseif place.more > 0 then
    local icons = require("cursor_agent.render.icons").pick(require("cursor_agent.config").get().chat.icons)
    lines[#lines] = (" %s %s"):format(icons.below, format.plural(place.more, "more line"))
  end
  vim.bo[frame_buf].modifiable = true
  vim.api.nvim_buf_clear_namespace(frame_buf, NS, 0, -1)
  vim.api.nvim_buf_set_lines(frame_buf, 0, -1, false, vim.list_extend(vim.list_slice(lines), keys.lines))
  vim.bo[frame_buf].modifiable = false
  if note or place.more > 0 then
    vim.api.nvim_buf_set_extmark(frame_buf, NS, place.body, 0, {
      end_col = #lines[#lines],
      hl_group = note and "CursorAgentWarning" or "CursorAgentMore",
    })
  end
  for _, mark in ipairs(keys.marks) do
    vim.api.nvim_buf_set_extmark(frame_buf, NS, place.body + 1 + mark.row, mark.col, mark.opts)
  end
  if body_win then
    set_options(body_win, { cursorline = card.cursor ~= nil and M.has_focus() })
  end
end

---Shows a card, in place of the one that is shown.
---@param card cursor_agent.decide.Card
---@param anew boolean it is about another decision than before
function M.show(card, anew)
  local first = not M.is_open()
  if first then
    above = false
  end
  shown = card
  note = nil
  draw()
  if first or anew then
    M.move_to(card.cursor or 1)
  end
  if vim.api.nvim_get_mode().mode:sub(1, 1) == "c" then
    -- While a command line is typed nothing else would draw it.
    vim.api.nvim__redraw({ flush = true })
  end
end

---Puts the cursor of the body on a line.
---@param line integer
function M.move_to(line)
  if is_valid(body_win) then
    local win = body_win --[[@as integer]]
    local last = vim.api.nvim_buf_line_count(vim.api.nvim_win_get_buf(win))
    vim.api.nvim_win_set_cursor(win, { math.max(math.min(line, last), 1), 0 })
  end
end

---The line of the body the cursor is on.
---@return integer
function M.line()
  return is_valid(body_win) and vim.api.nvim_win_get_cursor(body_win --[[@as integer]])[1] or 1
end

---Goes into the card.
---@return boolean
function M.enter()
  if not is_valid(body_win) then
    return false
  end
  if M.has_focus() then
    return true
  end
  local insert = vim.api.nvim_get_mode().mode:sub(1, 1) == "i"
  from = { win = vim.api.nvim_get_current_win(), insert = insert, cursor = vim.api.nvim_win_get_cursor(0) }
  if insert then
    vim.cmd.stopinsert()
  end
  vim.api.nvim_set_current_win(body_win --[[@as integer]])
  return true
end

---Goes back to where the user was; the card stays.
function M.leave()
  local back = from
  from = nil
  if not back or not is_valid(back.win) then
    return
  end
  vim.api.nvim_set_current_win(back.win)
  if back.insert then
    -- Leaving Insert mode took the cursor one to the left.
    local at_end = back.cursor[2] >= #vim.api.nvim_get_current_line()
    pcall(vim.api.nvim_win_set_cursor, back.win, back.cursor)
    vim.cmd(at_end and "startinsert!" or "startinsert")
  end
end

---Takes the card off the screen.
function M.close()
  shown = nil
  moving = true
  if M.has_focus() then
    M.leave()
  end
  close_window(body_win)
  close_window(frame_win)
  moving = false
  body_win, frame_win, from = nil, nil, nil
  lift_chat(nil)
end

---Says something above the keys, until something else is drawn.
---@param text string?
function M.say(text)
  note = text
  M.redraw()
end

---Draws again what is shown.
function M.redraw()
  if shown then
    draw()
  end
end

---How wide the body is now.
---@return integer
function M.width()
  return is_valid(body_win) and vim.api.nvim_win_get_width(body_win --[[@as integer]]) or MIN_WIDTH
end

local scheduled = false

---Draws again once what is going on is over.
local function redraw_soon()
  if shown and not scheduled then
    scheduled = true
    vim.schedule(function()
      scheduled = false
      M.redraw()
    end)
  end
end

vim.api.nvim_create_autocmd({ "VimResized", "WinResized", "TabEnter", "CmdwinLeave" }, {
  group = GROUP,
  desc = "cursor-agent: keep the decision in its corner",
  callback = redraw_soon,
})

vim.api.nvim_create_autocmd("WinEnter", {
  group = GROUP,
  desc = "cursor-agent: the decision grows when it is entered, and keeps out of the way otherwise",
  callback = function()
    if not shown or moving then
      return
    end
    local current = vim.api.nvim_get_current_win()
    if current == frame_win and is_valid(body_win) then
      vim.api.nvim_set_current_win(body_win --[[@as integer]])
    elseif current == body_win then
      M.on_focus(true)
      redraw_soon()
    else
      if not window.is_float(current) then
        -- A float over the card, as the list of keys, is only a look aside.
        from = nil
      end
      redraw_soon()
    end
  end,
})

vim.api.nvim_create_autocmd("WinLeave", {
  group = GROUP,
  desc = "cursor-agent: the decision was left",
  callback = function()
    if M.has_focus() and not moving then
      note = nil
      M.on_focus(false)
    end
  end,
})

vim.api.nvim_create_autocmd({ "CursorMoved", "CursorMovedI" }, {
  group = GROUP,
  desc = "cursor-agent: keep the decision off the cursor",
  callback = function()
    if shown and placed and M.is_open() and covers_cursor(placed) then
      redraw_soon()
    end
  end,
})

vim.api.nvim_create_autocmd("WinClosed", {
  group = GROUP,
  desc = "cursor-agent: a decision closed by a window command waits",
  callback = function(event)
    local win = tonumber(event.match)
    if shown and not moving and (win == body_win or win == frame_win) then
      local tabs = #vim.api.nvim_list_tabpages()
      vim.schedule(function()
        if #vim.api.nvim_list_tabpages() < tabs then
          -- It went with its tab page.
          M.redraw()
          return
        end
        M.close()
        M.on_closed()
      end)
    end
  end,
})

return M
