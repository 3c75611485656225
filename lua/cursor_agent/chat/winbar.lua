-- The line above the chat: agent, mode, model, and what the session is doing, always in the same place.

local chats = require("cursor_agent.chat.registry")
local clock = require("cursor_agent.bridge.clock")
local format = require("cursor_agent.render.format")

local M = {}

---Interval of the spinner while a turn runs.
local TICK_MS = 100

---Longer names are cut.
local MOST_CHARS = 80

local timer ---@type uv.uv_timer_t?
local frame = 0

---@param hl string
---@param text string
---@return string
local function part(hl, text)
  return ("%%#%s#%s"):format(hl, format.bar_text(text))
end

---@param chat cursor_agent.Chat
---@return boolean
local function is_busy(chat)
  local state = chat.status.state
  return state == "starting" or state == "running" or state == "waiting"
end

---@param chat cursor_agent.Chat
---@return string
local function spinner(chat)
  local frames = chat.transcript.context.icons.spinner
  local count = vim.fn.strchars(frames)
  return vim.fn.strcharpart(frames, frame % count, 1)
end

---The agent's name for a mode or model, or its id if it has none.
---@param list cursor_agent.Named[]?
---@param id string
---@return string
local function name_of(list, id)
  for _, one in ipairs(list or {}) do
    if one.id == id and one.name:find("%S") then
      return one.name
    end
  end
  return id
end

---The mode, by the agent's name for it.
---@param status cursor_agent.Status
---@return string?
function M.mode(status)
  local id = status.mode
  local name = id and name_of(status.modes, id)
  return id and name and name:lower() ~= id:lower() and name or id
end

---The model, and the reasoning effort if the agent has an option for it.
---@param status cursor_agent.Status
---@return string?
local function model(status)
  if not status.model then
    return nil
  end
  local name = name_of(status.models, status.model)
  -- `gpt-5` and `GPT-5` are the same name; an id with parameters or a provider says less than the name.
  local same = name:gsub("[%s%-_.]", ""):lower() == status.model:gsub("[%s%-_.]", ""):lower()
  local words = { same and status.model or (name:gsub("%s*%b()$", "")) }
  for _, option in ipairs(status.options or {}) do
    if option.category == "thought_level" and type(option.value) == "string" then
      words[#words + 1] = option.value --[[@as string]]
    end
  end
  return table.concat(words, "·")
end

---What the session is doing, in a word or two.
---@param chat cursor_agent.Chat
---@return string? text
---@return string hl
local function doing(chat)
  local status = chat.status
  if status.needs_login then
    return "signed out · :CursorAgent login", "CursorAgentBarError"
  elseif status.state == "failed" then
    return "failed · :CursorAgent restart", "CursorAgentBarError"
  elseif status.state == "stopped" then
    return "stopped", "CursorAgentBarState"
  elseif status.state == "starting" and status.error then
    return "not responding · :CursorAgent restart", "CursorAgentBarError"
  elseif status.state == "starting" then
    return spinner(chat) .. " starting", "CursorAgentSpinner"
  elseif status.not_reading then
    return "not reading · :CursorAgent restart", "CursorAgentBarError"
  elseif status.stuck then
    return "not stopping · :CursorAgent restart", "CursorAgentBarError"
  elseif status.cancelling then
    return spinner(chat) .. " stopping", "CursorAgentSpinner"
  elseif is_busy(chat) then
    local since = status.turn_started_ms
    return ("%s %s"):format(spinner(chat), since and format.clock(clock.now_ms() - since) or ""), "CursorAgentSpinner"
  end
  return nil, "CursorAgentBarState"
end

---@param usage table?
---@return string? context
---@return string? cost
local function usage_texts(usage)
  if not usage then
    return nil, nil
  end
  local context, cost ---@type string?, string?
  if usage.used and usage.size and usage.size > 0 then
    context = ("ctx %d%%"):format(math.floor(usage.used * 100 / usage.size + 0.5))
  elseif usage.used then
    context = "ctx " .. format.count(usage.used)
  end
  if usage.cost and usage.cost > 0 then
    local currency = usage.currency
    cost = (not currency or currency == "USD") and ("$%.2f"):format(usage.cost)
      or ("%.2f %s"):format(usage.cost, currency)
  end
  return context, cost
end

---@class (exact) cursor_agent.winbar.Part
---@field hl string
---@field text string
---@field gap integer columns before it
---@field rank integer when space is short, the highest are dropped first

---@param parts cursor_agent.winbar.Part[]
---@return string
local function compose(parts)
  local words = {} ---@type string[]
  for i, one in ipairs(parts) do
    words[i] = (i > 1 and (" "):rep(one.gap) or "") .. part(one.hl, one.text)
  end
  return table.concat(words)
end

---@param parts cursor_agent.winbar.Part[]
---@return integer columns
---@return integer? index of the part that goes first
local function measure(parts)
  local columns, weakest = 0, nil ---@type integer, integer?
  for i, one in ipairs(parts) do
    columns = columns + (i > 1 and one.gap or 0) + format.width(one.text)
    if one.rank > 0 and (not weakest or one.rank > parts[weakest].rank) then
      weakest = i
    end
  end
  return columns, weakest
end

---Drops whole parts until the rest fits: half a word says nothing.
---@param left cursor_agent.winbar.Part[]
---@param right cursor_agent.winbar.Part[]
---@param room integer
local function fit(left, right, room)
  while true do
    local left_columns, weak_left = measure(left)
    local right_columns, weak_right = measure(right)
    if left_columns + right_columns <= room or not (weak_left or weak_right) then
      return
    end
    if weak_left and (not weak_right or left[weak_left].rank > right[weak_right].rank) then
      table.remove(left, weak_left)
    else
      table.remove(right, weak_right)
    end
  end
end

---The winbar of the window being drawn.
---@return string
function M.chat()
  -- While an item of a winbar is evaluated, its window is the current one.
  local win = vim.api.nvim_get_current_win()
  local chat = chats.of_buffer(vim.api.nvim_win_get_buf(win))
  if not chat then
    return ""
  end
  local status = chat.status
  local left, right = {}, {} ---@type cursor_agent.winbar.Part[], cursor_agent.winbar.Part[]
  ---@param side cursor_agent.winbar.Part[]
  ---@param hl string
  ---@param text string?
  ---@param gap integer
  ---@param rank integer
  local function add(side, hl, text, gap, rank)
    if text then
      text = format.first_line(text, MOST_CHARS)
      side[#side + 1] = { hl = hl, text = text, gap = gap, rank = rank }
    end
  end
  add(left, "CursorAgentBarAgent", require("cursor_agent.config").agent_title(chat.agent), 2, 4)
  -- The mode says what an agent may do, which does not matter once it has stopped.
  local ended = status.state == "failed" or status.state == "stopped" or status.needs_login
  add(left, "CursorAgentBarMode", M.mode(status), 2, ended and 5 or 1)
  add(left, "CursorAgentBarModel", model(status), 2, 6)

  local unseen, any = chat.transcript.tail:unseen(win)
  local count = unseen > 0 and unseen .. " " or ""
  local below = any and ("%s %snew"):format(chat.transcript.context.icons.below, count) or nil
  local text, hl = doing(chat)
  local context, cost = usage_texts(status.usage)
  add(right, "CursorAgentBarNew", below, 3, 2)
  add(right, hl, text, 3, 0)
  add(right, "CursorAgentBarState", context, 3, 3)
  add(right, "CursorAgentBarState", cost, context and 2 or 3, 7)
  -- The prompt shows it as well.
  add(right, "CursorAgentBarState", (status.queued or 0) > 0 and status.queued .. " queued" or nil, 3, 5)
  add(right, "CursorAgentBarWaiting", (status.pending or 0) > 0 and status.pending .. " waiting" or nil, 3, 0)
  local others, asked = chats.others(chat)
  if others > 0 then
    local about = format.plural(others, "chat") .. (asked and " " .. chat.transcript.context.icons.attention or "")
    add(right, asked and "CursorAgentBarWaiting" or "CursorAgentBarState", about, 3, asked and 0 or 8)
  end
  -- One column at each end, and one between the two sides.
  fit(left, right, vim.api.nvim_win_get_width(win) - 3)
  return "%#CursorAgentBarAgent# " .. compose(left) .. "%<%#CursorAgentBarState# %=" .. compose(right) .. " "
end

---The windows of a transcript in the current tab page. Redrawing one in another tab page would draw over the screen.
---@param transcript cursor_agent.Transcript
---@return integer[]
local function visible_windows(transcript)
  return vim.tbl_filter(function(win)
    return vim.api.nvim_win_get_tabpage(win) == vim.api.nvim_get_current_tabpage()
  end, transcript:windows())
end

---Whether a chat shows elapsed time that grows: a background subagent may keep working after the turn.
---@param chat cursor_agent.Chat
---@return boolean
local function has_clocks(chat)
  return next(chat.transcript.ticking) ~= nil
end

---@param chat cursor_agent.Chat
---@param titled boolean? its title too
local function redraw(chat, titled)
  if not vim.api.nvim_buf_is_loaded(chat.buf) then
    return
  end
  for _, win in ipairs(visible_windows(chat.transcript)) do
    vim.api.nvim__redraw({ win = win, winbar = true, statusline = titled or nil })
  end
end

---Updates what the other chats show about this one.
---@param chat cursor_agent.Chat
function M.redraw_others(chat)
  for _, other in ipairs(chats.all()) do
    if other ~= chat then
      redraw(other)
    end
  end
end

---Redraws the lines of a transcript that show elapsed time.
---@param transcript cursor_agent.Transcript
local function redraw_clocks(transcript)
  local ns = require("cursor_agent.chat.transcript").NS.aside
  for id in pairs(transcript.ticking) do
    local row = vim.api.nvim_buf_get_extmark_by_id(transcript.buf, ns, id, {})[1]
    for _, win in ipairs(row and visible_windows(transcript) or {}) do
      local info = vim.fn.getwininfo(win)[1]
      if info and row + 1 >= info.topline and row + 1 <= info.botline then
        vim.api.nvim__redraw({ win = win, range = { row, row + 1 } })
      end
    end
  end
end

local function tick()
  local busy = false
  frame = frame + 1
  for _, chat in ipairs(chats.all()) do
    local clocks = has_clocks(chat)
    busy = busy or clocks or is_busy(chat)
    if is_busy(chat) then
      redraw(chat)
    end
    if clocks and frame % 10 == 0 and vim.api.nvim_buf_is_loaded(chat.buf) then
      redraw_clocks(chat.transcript)
      for _, view in ipairs(require("cursor_agent.chat.transcript").views(chat)) do
        redraw_clocks(view)
      end
    end
  end
  if not busy and timer then
    timer:stop()
  end
  if frame % 10 == 0 then
    require("cursor_agent.chat.statusline").redraw()
  end
end

---Shows a new status; the spinner turns while a chat is busy.
---@param chat cursor_agent.Chat
---@param before cursor_agent.Status
function M.on_status(chat, before)
  redraw(chat, chat.status.title ~= before.title)
  if chat.status.state ~= before.state or chat.status.pending ~= before.pending then
    M.redraw_others(chat)
  end
  require("cursor_agent.chat.statusline").redraw()
  if is_busy(chat) or has_clocks(chat) then
    timer = timer or assert(vim.uv.new_timer())
    if not timer:is_active() then
      timer:start(TICK_MS, TICK_MS, vim.schedule_wrap(tick))
    end
  end
end

return M
