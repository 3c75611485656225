-- The floating window that shows a decision: a frame with the keys at the bottom, and a scrolling window inside it.
--
-- It appears next to the work and never takes the focus: window motions do not reach it, so no key typed for something
-- else ends up here.

local frame = require("cursor_agent.decide.frame")
local paint = require("cursor_agent.decide.paint")
local places = require("cursor_agent.decide.place")
local window = require("cursor_agent.window.quiet")

local M = {}

---What to show.
---@class (exact) cursor_agent.decide.Card
---@field kind cursor_agent.BufferKind
---@field title string
---@field short_title string? used if there is no room for the title, which names the subagent that asks
---@field count string? at the right of the title
---@field from (fun(with_subagent: boolean): string?)? who asks, unless that is obvious from what is in view
---@field body fun(width: integer, most: integer?): cursor_agent.render.Block lines beyond `most` are not visible
---@field hints cursor_agent.decide.Hint[]
---@field footer (fun(): string[])? in the border while not entered: the keys that work in the current window
---@field cursor integer? line of the body the cursor starts on; a list to choose from has one

local ZINDEX = 45

local GROUP = vim.api.nvim_create_augroup("cursor_agent_card", {})

---@type cursor_agent.decide.Card?
local shown
local frame_win ---@type integer?
local body_win ---@type integer?
local frame_buf ---@type integer?
local bodies = {} ---@type table<string, integer> buffers by kind
local above = false ---@type boolean at the top of the screen, out of the cursor's way
local placed ---@type cursor_agent.decide.Layout? where it is
local foot ---@type { keys: cursor_agent.render.Block, left: integer }? what stands below the body
local lifted ---@type { win: integer, tail: cursor_agent.Tail }? the chat that makes room for it
local from ---@type cursor_agent.decide.Origin? where the user was when the card was entered
local note ---@type string? said to the user until the next key
local footed_in ---@type string? the mode whose keys it names
local moving = false ---@type boolean windows are being opened or closed by this file

---Called when the user closed the card with a window command.
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

---The window with the body.
---@return integer?
function M.window()
  return is_valid(body_win) and body_win or nil
end

---What the card's position depends on right now.
---@return cursor_agent.decide.Sight
local function sight()
  local win = vim.api.nvim_get_current_win()
  if (win == body_win or win == frame_win) and from and is_valid(from.win) then
    win = from.win
  end
  return { win = win, entered = M.has_focus(), above = above, note = note }
end

---Scrolls the chat so that its end, where the agent says why it asks, is visible above the card.
---@param place cursor_agent.decide.Layout? nil when the card closes
local function lift_chat(place)
  local win, chat = places.chat_window()
  local rows = place and win and places.hidden_rows(place, win) or 0
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
    -- `:bdelete` unloaded it, and its keys are lost.
    if buf and vim.api.nvim_buf_is_valid(buf) then
      vim.api.nvim_buf_delete(buf, { force = true })
    end
    buf = vim.api.nvim_create_buf(false, true)
    bodies[kind] = buf
    vim.bo[buf].bufhidden = "hide"
    vim.bo[buf].undolevels = -1
    vim.bo[buf].filetype = "cursoragent-decision"
    require("cursor_agent.keys").map(buf, kind)
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
---@return vim.api.keyset.win_config outer
---@return vim.api.keyset.win_config body
local function configs(place, card)
  local style = frame.border()
  local footer = not M.has_focus() and card.footer
  footed_in = frame.mode()
  local outer = {
    relative = "editor",
    row = place.row,
    col = place.col,
    width = place.width,
    height = place.height,
    border = style,
    title = frame.title(place.title, card.count, place.width, style),
    footer = footer and frame.footer(footer(), place.width) or "",
    footer_pos = "right",
    style = "minimal",
    focusable = false,
    zindex = ZINDEX,
  } ---@type vim.api.keyset.win_config
  local body = {
    relative = "editor",
    row = place.row + 1 + (place.from and 1 or 0),
    col = place.col + 2,
    width = place.width - 2,
    height = place.body,
    style = "minimal",
    focusable = false,
    zindex = ZINDEX + 1,
  } ---@type vim.api.keyset.win_config
  if vim.fn.exists("+winborder") == 1 then
    -- Since 0.11 'winborder' gives every float a border, and a mouse click can reach what window motions cannot.
    body.border = "none"
    body.mouse = true
  end
  return outer, body
end

---@param buf integer
---@param win_config vim.api.keyset.win_config
---@return integer
local function open_window(buf, win_config)
  local opts = vim.tbl_extend("force", win_config, { noautocmd = true })
  local win = vim.api.nvim_open_win(buf, false, opts)
  set_options(win, {
    wrap = true,
    linebreak = true,
    breakindent = true,
    breakindentopt = "shift:2",
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
    window.despite_autocommands(vim.api.nvim_win_set_buf, body_win, buf)
    set_options(body_win, { winfixbuf = true })
  end
end

---How many screen lines of the body are below the visible part.
---@param left integer lines of it that are not in the window at all
---@return integer
local function lines_below(left)
  if not body_win or not is_valid(body_win) then
    return 0
  end
  local view = vim.api.nvim_win_call(body_win, vim.fn.winsaveview)
  local width, height = vim.api.nvim_win_get_width(body_win), vim.api.nvim_win_get_height(body_win)
  local top = view.topline --[[@as integer]]
  local over = top > 1 and vim.api.nvim_win_text_height(body_win, { end_row = top - 2 }).all or 0
  -- The first rows of a line taller than the window may be scrolled out.
  local scrolled = over + math.ceil(view.skipcol / width)
  local below = vim.api.nvim_win_text_height(body_win, {}).all - scrolled - height
  -- Once the last line is visible, that line itself tells how much was left out.
  return below > 0 and below + left or 0
end

---Draws what is around the body: how much of it is hidden, and the keys.
local function draw_frame()
  if placed and foot and frame_buf and vim.api.nvim_buf_is_valid(frame_buf) then
    frame.fill(frame_buf, placed, foot.keys, note or lines_below(foot.left))
  end
end

---Puts the body into its window at a given width, and returns how many rows it takes there.
---@param kind cursor_agent.BufferKind
---@return cursor_agent.decide.Measure
local function measure(kind)
  return function(body, width)
    local buf = body_buffer(kind)
    paint.fill(buf, body)
    if body_win and is_valid(body_win) then
      swap_body(buf)
      vim.api.nvim_win_set_width(body_win, width)
    else
      local config = { relative = "editor", row = 0, col = 0, width = width, height = 1, style = "minimal" }
      config.focusable, config.zindex = false, ZINDEX + 1
      body_win = open_window(buf, config)
    end
    return vim.api.nvim_win_text_height(body_win, {}).all
  end
end

---Draws the current card where it belongs now.
local function draw()
  local card = shown
  if not card or vim.fn.getcmdwintype() ~= "" then
    -- No window can be opened while the command-line window is open; draw the card when that closes.
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
  local now = sight()
  moving = true
  local place, body, keys = places.find(card, now, measure(card.kind))
  moving = false
  placed, above = place, now.above
  lift_chat(place)
  moving = true
  if not frame_buf or not vim.api.nvim_buf_is_valid(frame_buf) then
    frame_buf = vim.api.nvim_create_buf(false, true)
  end
  local frame_config, body_config = configs(place, card)
  if is_valid(frame_win) then
    vim.api.nvim_win_set_config(frame_win --[[@as integer]], frame_config)
  else
    frame_win = open_window(frame_buf, frame_config)
  end
  vim.api.nvim_win_set_config(body_win --[[@as integer]], body_config)
  if
    vim.api.nvim_win_text_height(body_win --[[@as integer]], {}).all <= place.body
  then
    -- It was measured in a window of a different height.
    vim.api.nvim_win_call(body_win --[[@as integer]], function()
      vim.fn.winrestview({ topline = 1, skipcol = 0 })
    end)
  end
  moving = false
  foot = { keys = keys, left = body.left or 0 }
  draw_frame()
  if body_win then
    set_options(body_win, { cursorline = card.cursor ~= nil and M.has_focus() })
  end
end

---Shows a card, replacing the current one.
---@param card cursor_agent.decide.Card
---@param is_new boolean it is about a different decision than before
function M.show(card, is_new)
  local first = not M.is_open()
  if first then
    above = false
  end
  shown = card
  note = nil
  draw()
  if first or is_new then
    M.move_to(card.cursor or 1)
    draw_frame()
  end
  if vim.api.nvim_get_mode().mode:sub(1, 1) == "c" then
    -- Nothing else would draw it while a command line is being typed.
    vim.api.nvim__redraw({ flush = true })
  end
end

---Moves the body's cursor to a line.
---@param line integer
function M.move_to(line)
  if is_valid(body_win) then
    local win = body_win --[[@as integer]]
    local last = vim.api.nvim_buf_line_count(vim.api.nvim_win_get_buf(win))
    vim.api.nvim_win_set_cursor(win, { math.max(math.min(line, last), 1), 0 })
  end
end

---The line of the body's cursor.
---@return integer
function M.line()
  return is_valid(body_win) and vim.api.nvim_win_get_cursor(body_win --[[@as integer]])[1] or 1
end

---Enters the card.
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
  window.despite_autocommands(vim.api.nvim_set_current_win, body_win)
  return true
end

---Returns to where the user was; the card stays.
function M.leave()
  local back = from
  from = nil
  if not back or not is_valid(back.win) then
    return
  end
  window.despite_autocommands(vim.api.nvim_set_current_win, back.win)
  if back.insert then
    -- Leaving Insert mode moved the cursor one to the left.
    local at_end = back.cursor[2] >= #vim.api.nvim_get_current_line()
    pcall(vim.api.nvim_win_set_cursor, back.win, back.cursor)
    vim.cmd(at_end and "startinsert!" or "startinsert")
  end
end

---Closes the card.
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

---Shows a message above the keys, until the next redraw.
---@param text string?
function M.say(text)
  note = text
  M.redraw()
end

---Redraws the card.
function M.redraw()
  if shown then
    draw()
  end
end

---The current width of the body.
---@return integer
function M.width()
  return is_valid(body_win) and vim.api.nvim_win_get_width(body_win --[[@as integer]]) or places.MIN_WIDTH
end

local scheduled = false

---Redraws once the current event has been handled.
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
  desc = "cursor-agent: reposition the card",
  callback = redraw_soon,
})

vim.api.nvim_create_autocmd("ModeChanged", {
  group = GROUP,
  desc = "cursor-agent: show the keys that work in this mode",
  callback = function()
    if shown and not M.has_focus() and footed_in ~= frame.mode() then
      redraw_soon()
    end
  end,
})

vim.api.nvim_create_autocmd("WinScrolled", {
  group = GROUP,
  desc = "cursor-agent: count the lines below",
  callback = function()
    local scrolled = body_win and vim.v.event[tostring(body_win)]
    if shown and scrolled then
      draw_frame()
    end
  end,
})

vim.api.nvim_create_autocmd("WinEnter", {
  group = GROUP,
  desc = "cursor-agent: resize the card when it is entered or left",
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
        -- A float over the card, such as the list of keys, is only a detour.
        from = nil
      end
      redraw_soon()
    end
  end,
})

vim.api.nvim_create_autocmd("WinLeave", {
  group = GROUP,
  desc = "cursor-agent: shrink the card when it is left",
  callback = function()
    if M.has_focus() and not moving then
      note = nil
      M.on_focus(false)
    end
  end,
})

vim.api.nvim_create_autocmd({ "CursorMoved", "CursorMovedI" }, {
  group = GROUP,
  desc = "cursor-agent: move the card away from the cursor",
  callback = function()
    if shown and placed and M.is_open() and places.covers_cursor(placed, sight()) then
      redraw_soon()
    end
  end,
})

vim.api.nvim_create_autocmd("WinClosed", {
  group = GROUP,
  desc = "cursor-agent: keep a closed card undecided",
  callback = function(event)
    local win = tonumber(event.match)
    if shown and not moving and (win == body_win or win == frame_win) then
      local tabs = #vim.api.nvim_list_tabpages()
      vim.schedule(function()
        if #vim.api.nvim_list_tabpages() < tabs then
          -- It closed with its tab page.
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
