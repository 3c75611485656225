-- The line above the chat: agent, mode, model, and what the session is doing, always in the same place.

local chats = require("cursor_agent.chats")
local clock = require("cursor_agent.clock")
local format = require("cursor_agent.render.format")

local M = {}

---The spinner turns this often while a turn runs.
local TICK_MS = 100

local timer ---@type uv.uv_timer_t?
local frame = 0

---@param text string
---@return string
local function escape(text)
  return (text:gsub("%%", "%%%%"):gsub("[\r\n]", " "))
end

---@param hl string
---@param text string
---@return string
local function part(hl, text)
  return ("%%#%s#%s"):format(hl, escape(text))
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

---The model, and how hard it thinks where the agent has an option for that.
---@param status cursor_agent.Status
---@return string?
local function model(status)
  if not status.model then
    return nil
  end
  local words = { status.model }
  if status.model:find("[", 1, true) then
    -- Cursor's exploded ids hold every parameter; the name is for people.
    for _, one in ipairs(status.models or {}) do
      if one.id == status.model then
        words[1] = one.name
      end
    end
  end
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
  elseif status.state == "starting" then
    return spinner(chat) .. " starting", "CursorAgentSpinner"
  elseif status.stuck then
    return "does not stop · :CursorAgent restart", "CursorAgentBarError"
  elseif status.cancelling then
    return spinner(chat) .. " stopping", "CursorAgentSpinner"
  elseif is_busy(chat) then
    local since = status.turn_started_ms
    return ("%s %s"):format(spinner(chat), since and format.clock(clock.now_ms() - since) or ""), "CursorAgentSpinner"
  end
  return nil, "CursorAgentBarState"
end

---@param usage table?
---@return string?
local function usage_text(usage)
  if not usage then
    return nil
  end
  local words = {} ---@type string[]
  if usage.used and usage.size and usage.size > 0 then
    words[1] = ("ctx %d%%"):format(math.floor(usage.used * 100 / usage.size + 0.5))
  elseif usage.used then
    words[1] = "ctx " .. format.count(usage.used)
  end
  if usage.cost and usage.cost > 0 then
    local currency = usage.currency
    words[#words + 1] = (not currency or currency == "USD") and ("$%.2f"):format(usage.cost)
      or ("%.2f %s"):format(usage.cost, currency)
  end
  return #words > 0 and table.concat(words, "  ") or nil
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
  -- What follows the first `%<` gives way first where there is little room.
  local left = { part("CursorAgentBarAgent", " " .. require("cursor_agent.chat").agent_title(chat)) .. "%<" }
  if status.mode then
    left[#left + 1] = part("CursorAgentBarMode", status.mode)
  end
  local name = model(status)
  if name then
    left[#left + 1] = part("CursorAgentBarModel", name)
  end

  local right = {} ---@type string[]
  local unseen = chat.transcript:unseen(win)
  if unseen > 0 then
    right[#right + 1] = part("CursorAgentBarNew", ("%s %d new"):format(chat.transcript.context.icons.below, unseen))
  end
  local text, hl = doing(chat)
  if text then
    right[#right + 1] = part(hl, text)
  end
  local usage = usage_text(status.usage)
  if usage then
    right[#right + 1] = part("CursorAgentBarState", usage)
  end
  if (status.queued or 0) > 0 then
    right[#right + 1] = part("CursorAgentBarState", status.queued .. " queued")
  end
  if (status.pending or 0) > 0 then
    right[#right + 1] = part("CursorAgentBarWaiting", status.pending .. " waiting")
  end
  return table.concat(left, "  ") .. "%#CursorAgentBarState# %=" .. table.concat(right, "   ") .. " "
end

---The statusline of the chat: what the session is about.
---@return string
function M.title()
  local chat = chats.of_buffer(vim.api.nvim_get_current_buf())
  local title = chat and chat.status.title
  return title and " " .. escape(format.first_line(title, 80)) or ""
end

---The windows of a chat in the current tab page. Redrawing one of another draws over what is on the screen.
---@param chat cursor_agent.Chat
---@return integer[]
local function visible_windows(chat)
  return vim.tbl_filter(function(win)
    return vim.api.nvim_win_get_tabpage(win) == vim.api.nvim_get_current_tabpage()
  end, chat.transcript:windows())
end

---@param chat cursor_agent.Chat
local function redraw(chat)
  if not vim.api.nvim_buf_is_loaded(chat.buf) then
    return
  end
  for _, win in ipairs(visible_windows(chat)) do
    vim.api.nvim__redraw({ win = win, winbar = true })
  end
end

---Redraws the lines of the chat that show a running time.
---@param chat cursor_agent.Chat
local function redraw_clocks(chat)
  local transcript = require("cursor_agent.transcript")
  for id in pairs(chat.transcript.ticking) do
    local row = vim.api.nvim_buf_get_extmark_by_id(chat.buf, transcript.NS.aside, id, {})[1]
    for _, win in ipairs(row and visible_windows(chat) or {}) do
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
    if is_busy(chat) then
      busy = true
      redraw(chat)
      if frame % 10 == 0 and vim.api.nvim_buf_is_loaded(chat.buf) then
        redraw_clocks(chat)
      end
    end
  end
  if not busy and timer then
    timer:stop()
  end
  if frame % 10 == 0 then
    require("cursor_agent.statusline").redraw()
  end
end

---Shows a new status; the spinner turns while a chat is busy.
---@param chat cursor_agent.Chat
function M.update(chat)
  redraw(chat)
  require("cursor_agent.statusline").redraw()
  if is_busy(chat) then
    timer = timer or assert(vim.uv.new_timer())
    if not timer:is_active() then
      timer:start(TICK_MS, TICK_MS, vim.schedule_wrap(tick))
    end
  end
end

return M
