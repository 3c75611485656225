-- The rows of the switcher: a chat's state or when it was last used, its title, agent, age and folder, in columns.

local clock = require("cursor_agent.bridge.clock")
local format = require("cursor_agent.render.format")
local titles = require("cursor_agent.chat.titles")

local M = {}

---A chat, live or past.
---@class (exact) cursor_agent.chat.Row
---@field chat cursor_agent.Chat? if live
---@field past cursor_agent.PastSession? if past
---@field late string? not a chat: an agent that has not listed its sessions yet
---@field mark string
---@field hl string? of the mark and the state
---@field state string
---@field title string
---@field agent string
---@field age string
---@field about string[] what it asks for, or the folder
---@field at_ms integer? when it was last used

---Width of the state column, and maximum widths of title and agent.
local STATE_CELLS, MOST_TITLE, MOST_AGENT, AGE_CELLS = 14, 40, 12, 3

---@type table<string, string> by kind of decision
local ASKS = {
  permission = "needs approval",
  question = "has a question",
  plan = "plan to review",
  conflict = "conflict",
}

---@type table<cursor_agent.Chat, integer> when something last happened in each
local touched = setmetatable({}, { __mode = "k" })

---@param chat cursor_agent.Chat
---@param before cursor_agent.Status
function M.on_status(chat, before)
  local now, then_ = chat.status, before
  if now.state ~= then_.state or now.turns ~= then_.turns or now.pending ~= then_.pending then
    touched[chat] = clock.now_ms()
  end
end

---When something last happened in a chat.
---@param chat cursor_agent.Chat
---@return integer
function M.touched_ms(chat)
  touched[chat] = touched[chat] or clock.now_ms()
  return touched[chat]
end

---An age as a number and a unit letter.
---@param ms integer
---@return string
function M.age(ms)
  local minutes = math.floor(math.max(ms, 0) / 60000)
  if minutes < 1 then
    return "now"
  elseif minutes < 60 then
    return minutes .. "m"
  elseif minutes < 24 * 60 then
    return math.floor(minutes / 60) .. "h"
  end
  local days = math.floor(minutes / 60 / 24)
  return days < 100 and days .. "d" or days < 700 and math.floor(days / 7) .. "w" or math.floor(days / 365) .. "y"
end

---Parses a time as agents write it, `2026-03-01T12:00:00Z`, into ms since 1970.
---@param text string?
---@return integer?
function M.parse_time(text)
  local date, rest = (text or ""):match("^(%d%d%d%d%-%d%d%-%d%d[T ]%d%d:%d%d:%d%d)%.?%d*(.*)$")
  if not date then
    return nil
  end
  local n = {} ---@type integer[] year, month, day, hours, minutes, seconds
  for number in date:gmatch("%d+") do
    n[#n + 1] = math.floor(tonumber(number) or 0)
  end
  local year, month = n[1], n[2]
  if month <= 2 then
    -- With years starting in March the leap day comes last.
    year, month = year - 1, month + 12
  end
  local leap_days = math.floor(year / 4) - math.floor(year / 100) + math.floor(year / 400)
  local days = 365 * year + leap_days + math.floor((153 * (month - 3) + 2) / 5) + n[3] - 719469
  local sign, hours, minutes = (rest or ""):match("^([+-])(%d%d):?(%d%d)$")
  local minutes_east = (tonumber(hours) or 0) * 60 + (tonumber(minutes) or 0)
  local offset = minutes_east * (sign == "-" and -60 or 60)
  return math.floor((days * 86400 + n[4] * 3600 + n[5] * 60 + n[6] - offset) * 1000)
end

---A day in words, such as "yesterday".
---@param at_ms integer
---@param now_ms integer
---@return string
function M.day(at_ms, now_ms)
  local at, now = math.floor(at_ms / 1000), math.floor(now_ms / 1000)
  ---@param t integer
  ---@return integer days
  local function day_number(t)
    return math.floor(
      (
        M.parse_time(os.date("%Y-%m-%dT12:00:00Z", t) --[[@as string]]) or 0
      ) / 86400000
    )
  end
  local days = day_number(now) - day_number(at)
  if days <= 0 then
    return "today"
  elseif days == 1 then
    return "yesterday"
  elseif days < 7 then
    return os.date("%A", at) --[[@as string]]
  elseif os.date("%Y", at) == os.date("%Y", now) then
    local day = os.date("%d %B", at) --[[@as string]]
    return (day:gsub("^0", ""))
  end
  return os.date("%Y-%m-%d", at) --[[@as string]]
end

---What a live chat is doing: a mark, words, and their highlight.
---@param chat cursor_agent.Chat
---@param asks cursor_agent.Decision?
---@return string mark
---@return string words
---@return string? hl
function M.doing(chat, asks)
  local status, icons = chat.status, chat.transcript.context.icons
  if status.needs_login then
    return icons.failed, "signed out", "CursorAgentError"
  elseif status.state == "failed" then
    return icons.failed, "failed", "CursorAgentError"
  elseif (status.pending or 0) > 0 or status.state == "waiting" then
    return icons.attention, asks and ASKS[asks.kind] or ASKS.permission, "CursorAgentBarWaiting"
  elseif status.state == "running" then
    return vim.fn.strcharpart(icons.spinner, 2, 1), "running", "CursorAgentSpinner"
  elseif status.state == "starting" then
    return vim.fn.strcharpart(icons.spinner, 2, 1), "starting", "CursorAgentSpinner"
  elseif status.state == "stopped" then
    return " ", "stopped", "CursorAgentDetail"
  elseif (status.turns or 0) > 0 then
    return icons.done, "finished", "CursorAgentDetail"
  end
  return " ", titles.has(chat) and "open" or "new", "CursorAgentDetail"
end

---What a decision is about, in one line.
---@param decision cursor_agent.Decision
---@return string
local function asked(decision)
  local tool = decision.tool
  local text = decision.kind == "permission" and tool and tool.command or decision.title
  if decision.kind == "conflict" and decision.path then
    text = vim.fs.basename(decision.path)
  end
  return format.first_line(text or "", 60)
end

---@param chat cursor_agent.Chat
---@param decisions cursor_agent.Decision[] of this chat
---@param here boolean it is the chat of this tab
---@return cursor_agent.chat.Row
function M.live(chat, decisions, here)
  local asks = decisions[1]
  local mark, state, hl = M.doing(chat, asks)
  local at = M.touched_ms(chat)
  local about = {} ---@type string[]
  if here then
    about[#about + 1] = "this chat"
  end
  if asks then
    about[#about + 1] = asked(asks)
  end
  about[#about + 1] = format.path(chat.cwd, "")
  return {
    chat = chat,
    mark = mark,
    state = state,
    hl = hl,
    title = titles.of(chat),
    agent = chat.agent,
    age = M.age(clock.now_ms() - at),
    about = about,
    at_ms = at,
  }
end

---@param past cursor_agent.PastSession
---@return cursor_agent.chat.Row
function M.past(past)
  local now = clock.now_ms()
  local at = past.updated_ms or M.parse_time(past.updated_at)
  local title = past.title and vim.trim(past.title) ~= "" and past.title or past.id
  return {
    past = past,
    mark = " ",
    -- A chat of `agent acp` continues like one of ours.
    state = past.source == "cli" and past.how ~= "load" and "terminal" or at and M.day(at, now) or "earlier",
    hl = "CursorAgentDetail",
    title = format.first_line((title:gsub("%c", " ")), 80),
    agent = past.agent,
    age = at and M.age(now - at) or "",
    about = past.cwd and { format.path(past.cwd, "") } or {},
    at_ms = at,
  }
end

---Cuts or pads a text to a width.
---@param text string
---@param cells integer
---@return string
local function fit(text, cells)
  local width = format.width(text)
  if width > cells then
    text = format.first_cells(text, math.max(cells - 1, 1)) .. "…"
    width = format.width(text)
  end
  return text .. (" "):rep(cells - width)
end

---How wide the columns of these rows are.
---@param rows cursor_agent.chat.Row[]
---@param room integer
---@return { title: integer, agent: integer, room: integer }
function M.columns(rows, room)
  local title, agent = 8, 4
  for _, row in ipairs(rows) do
    title = math.max(title, math.min(format.width(row.title), MOST_TITLE))
    agent = math.max(agent, math.min(format.width(row.agent), MOST_AGENT))
  end
  -- The folder, or what is asked, gets at least a fifth of the room.
  local fixed = 2 + STATE_CELLS + 2 + 2 + agent + 2 + AGE_CELLS + 2
  title = math.max(math.min(title, room - fixed - math.floor(room / 5)), 12)
  return { title = title, agent = agent, room = room }
end

---A row as shown.
---@param row cursor_agent.chat.Row
---@param columns { title: integer, agent: integer, room: integer }
---@return cursor_agent.picker.Chunk[]
function M.chunks(row, columns)
  if row.late then
    return { { "… " .. row.title, "CursorAgentDetail" } }
  end
  local used = 2 + STATE_CELLS + 2 + columns.title + 2 + columns.agent + 2 + AGE_CELLS + 2
  local about = table.concat(row.about, " · ")
  local left = columns.room - used
  if format.width(about) > left then
    -- The last part of a folder is the most telling.
    local short = vim.list_slice(row.about, 1, #row.about - 1)
    about = table.concat(vim.list_extend(short, { vim.fs.basename(row.about[#row.about]) }), " · ")
  end
  if format.width(about) > left then
    about = left > 3 and format.first_cells(about, left - 1) .. "…" or ""
  end
  return {
    { fit(row.mark, 1) .. " " .. fit(row.state, STATE_CELLS) .. "  ", row.hl },
    { fit(row.title, columns.title) .. "  " },
    { fit(row.agent, columns.agent) .. "  ", "CursorAgentDetail" },
    { fit(row.age, AGE_CELLS) .. "  ", "CursorAgentDetail" },
    { about, "CursorAgentDetail" },
  }
end

return M
