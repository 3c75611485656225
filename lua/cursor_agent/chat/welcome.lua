-- What an empty chat shows: agent and directory, how it is signed in, the first keys, and this directory's last chat.

local chats = require("cursor_agent.chat.registry")
local clock = require("cursor_agent.bridge.clock")
local config = require("cursor_agent.config")
local format = require("cursor_agent.render.format")
local keys = require("cursor_agent.keys")
local rows = require("cursor_agent.chat.rows")
local titles = require("cursor_agent.chat.titles")

local M = {}

local NS = vim.api.nvim_create_namespace("cursor_agent_welcome")
local GROUP = vim.api.nvim_create_augroup("cursor_agent_welcome", {})

---More notices than this are something to read: the chat no longer counts as empty.
local MOST_NOTICES = 3

---Columns left of the text.
local MARGIN = 2

---A chat of this directory that can be continued.
---@class (exact) cursor_agent.welcome.Last
---@field title string
---@field day string

---@type table<cursor_agent.Chat, cursor_agent.welcome.Last|false> false: not known yet, or there is none
local last = setmetatable({}, { __mode = "k" })

---@alias cursor_agent.welcome.Line { [1]: string, [2]: string }[]

---@param chat cursor_agent.Chat
---@param room integer
---@return cursor_agent.welcome.Line
local function heading(chat, room)
  local agent = config.agent_title(chat.agent)
  local where = vim.fn.fnamemodify(chat.cwd, ":~")
  if format.width(agent .. " · " .. where) > room then
    where = vim.fn.pathshorten(where)
  end
  local line = { { agent, "CursorAgentBarAgent" }, { " · " .. where, "CursorAgentPath" } } ---@type cursor_agent.welcome.Line
  local state = M.signed_in(chat)
  local used = format.width(agent .. " · " .. where)
  if state and used + format.width(state) + 3 <= room then
    line[3] = { (" "):rep(room - used - format.width(state)) .. state, "CursorAgentDetail" }
  end
  return line
end

---@param chat cursor_agent.Chat
---@return string?
function M.signed_in(chat)
  if chat.status.needs_login then
    return "not signed in · :CursorAgent login"
  end
  local agent = config.agent(chat.agent)
  local spec = agent and require("cursor_agent.agents.presets").spec(chat.agent, agent)
  local given = agent and spec and require("cursor_agent.agents.sign_in").given(chat.agent, agent, spec)
  return given and ("signed in with %s"):format(given.name) or nil
end

---@param name string
---@return string?
local function key_of(name)
  for _, lhs in ipairs(keys.keys(keys.action(name), "prompt")) do
    if lhs ~= "<CR>" then
      return lhs
    end
  end
  return keys.key(name, "prompt")
end

---The first keys to know, in as many columns as fit.
---@param room integer
---@return cursor_agent.welcome.Line[]
local function key_lines(room)
  local list = {} ---@type { key: string, what: string }[]
  for _, one in ipairs({
    { key = key_of("send"), what = "send" },
    { key = "@", what = "attach" },
    { key = "/", what = "commands" },
    { key = key_of("cycle-mode"), what = "mode" },
    { key = key_of("model"), what = "model" },
    { key = key_of("help"), what = "all keys" },
  }) do
    list[#list + 1] = one.key and one or nil
  end
  local cell = 0
  for _, one in ipairs(list) do
    cell = math.max(cell, format.width(one.key .. " " .. one.what) + 3)
  end
  local columns = math.max(math.min(math.floor((room + 3) / cell), 3), 1)
  local lines = {} ---@type cursor_agent.welcome.Line[]
  for i, one in ipairs(list) do
    local row = math.ceil(i / columns)
    lines[row] = lines[row] or {}
    table.insert(lines[row], { one.key, "CursorAgentKey" })
    local pad = cell - format.width(one.key .. " " .. one.what)
    table.insert(lines[row], { " " .. one.what .. (" "):rep(pad), "CursorAgentKeyText" })
  end
  return lines
end

---@param chat cursor_agent.Chat
---@param room integer
---@return cursor_agent.welcome.Line[]
local function compose(chat, room)
  room = room - 2 * MARGIN
  local lines = { {}, heading(chat, room), {} } ---@type cursor_agent.welcome.Line[]
  vim.list_extend(lines, key_lines(room))
  local resume, known = key_of("resume"), last[chat]
  if resume and known then
    local title = format.first_line(known.title, math.max(room - format.width(resume .. known.day) - 14, 10))
    lines[#lines + 1] = {
      { resume, "CursorAgentKey" },
      { (" resume “%s”, %s"):format(title, known.day), "CursorAgentKeyText" },
    }
  end
  for _, line in ipairs(lines) do
    table.insert(line, 1, { (" "):rep(MARGIN), "CursorAgentDetail" })
  end
  return lines
end

---Whether nothing was said yet. Notices do not count.
---@param chat cursor_agent.Chat
---@return boolean
local function is_empty(chat)
  local order, items = chat.transcript.order, chat.transcript.items
  for i = 1, math.min(#order, MOST_NOTICES) do
    if items[order[i]].kind ~= "notice" then
      return false
    end
  end
  return #order <= MOST_NOTICES
end

---Draws the empty chat, or removes it once there is content.
---@param chat cursor_agent.Chat
function M.refresh(chat)
  if not vim.api.nvim_buf_is_loaded(chat.buf) then
    return
  end
  vim.api.nvim_buf_clear_namespace(chat.buf, NS, 0, -1)
  local room = chat.transcript:narrowest()
  if is_empty(chat) and room then
    local row = vim.api.nvim_buf_line_count(chat.buf) - 1
    vim.api.nvim_buf_set_extmark(chat.buf, NS, row, 0, { virt_lines = compose(chat, room) })
  end
end

---Finds this directory's chat to continue.
---@param chat cursor_agent.Chat
local function find_last(chat)
  if last[chat] ~= nil then
    return
  end
  last[chat] = false
  for _, other in ipairs(chats.all()) do
    if other ~= chat and other.cwd == chat.cwd and titles.has(other) then
      last[chat] = { title = titles.of(other), day = rows.day(rows.touched_ms(other), clock.now_ms()) }
      return
    end
  end
  require("cursor_agent.chat.past").list({ cwd = chat.cwd, agent_list = false }, function(found)
    for _, one in ipairs(found or {}) do
      if not one.live and one.title and vim.trim(one.title) ~= "" then
        local at = one.updated_ms or rows.parse_time(one.updated_at) or 0
        last[chat] = {
          title = one.title,
          day = rows.day(at --[[@as integer]], clock.now_ms()),
        }
        return M.refresh(chat)
      end
    end
  end)
end

---@param chat cursor_agent.Chat
function M.on_started(chat)
  vim.api.nvim_create_autocmd("BufWinEnter", {
    group = GROUP,
    buffer = chat.buf,
    desc = "cursor-agent: show how to begin in an empty chat",
    callback = vim.schedule_wrap(function()
      if chats.get(chat.key) == chat and is_empty(chat) then
        find_last(chat)
        M.refresh(chat)
      end
    end),
  })
end

---@param chat cursor_agent.Chat
---@param before cursor_agent.Status
function M.on_status(chat, before)
  if chat.status.needs_login ~= before.needs_login then
    M.refresh(chat)
  end
end

---@param chat cursor_agent.Chat
function M.on_entry(chat)
  if #chat.transcript.order <= MOST_NOTICES + 1 then
    M.refresh(chat)
  end
end

vim.api.nvim_create_autocmd({ "WinResized", "VimResized" }, {
  group = GROUP,
  desc = "cursor-agent: fit the text of an empty chat to its window",
  callback = function()
    for _, chat in ipairs(chats.all()) do
      if is_empty(chat) then
        M.refresh(chat)
      end
    end
  end,
})

return M
