-- The switcher: one list of every chat, live ones first, then past ones, without duplicates. Switching stops none.

local bridge = require("cursor_agent.bridge")
local chats = require("cursor_agent.chat.registry")
local layout = require("cursor_agent.chat.layout")
local manage = require("cursor_agent.chat.manage")
local notify = require("cursor_agent.notify")
local past = require("cursor_agent.chat.past")
local picker = require("cursor_agent.picker")
local rows = require("cursor_agent.chat.rows")
local sessions = require("cursor_agent.chat.sessions")
local titles = require("cursor_agent.chat.titles")

local M = {}

---While other chats are live, wait this long for an agent to list its past ones, then show the list without them.
M.LATE_MS = 1000

---How many of a conversation's last lines are previewed beside the list.
local PREVIEW_LINES = 60

---The chats of this Neovim as rows: those that need the user, those that run, then by last use.
---@return cursor_agent.chat.Row[]
function M.live()
  local list = chats.all()
  table.sort(list, function(a, b)
    if chats.rank(a) ~= chats.rank(b) then
      return chats.rank(a) < chats.rank(b)
    elseif rows.touched_ms(a) ~= rows.touched_ms(b) then
      return rows.touched_ms(a) > rows.touched_ms(b)
    end
    return a.key > b.key
  end)
  local here = chats.current()
  return vim.tbl_map(function(chat)
    local decisions = chats.waits(chat) and bridge.is_loaded() and bridge.pending(chat.key) or {}
    return rows.live(chat, decisions, chat == here)
  end, list)
end

---Past sessions as rows, newest first, without the open ones.
---@param found cursor_agent.PastSession[]
---@return cursor_agent.chat.Row[]
local function past_rows(found)
  local list, seen = {}, {} ---@type cursor_agent.chat.Row[], table<string, boolean>
  for _, chat in ipairs(chats.all()) do
    seen[chat.status.session_id or ""] = true
  end
  for _, one in ipairs(found) do
    if not one.live and not seen[one.id] then
      seen[one.id] = true
      list[#list + 1] = rows.past(one)
    end
  end
  local order = {} ---@type table<cursor_agent.chat.Row, integer>
  for i, row in ipairs(list) do
    order[row] = i
  end
  table.sort(list, function(a, b)
    if (a.at_ms or 0) ~= (b.at_ms or 0) then
      return (a.at_ms or 0) > (b.at_ms or 0)
    end
    return order[a] < order[b]
  end)
  return list
end

---Shows a chat in this tab page, replacing the current one.
---@param chat cursor_agent.Chat
---@return boolean?, string?
function M.go(chat)
  local shown, why = layout.open(chat, { enter = true })
  if shown and chats.waits(chat) then
    require("cursor_agent.decide").show(chat.key)
  end
  return shown, why
end

---@param row cursor_agent.chat.Row
local function choose(row)
  if row.late then
    notify.report(M.open({ patient = true }))
  elseif row.chat then
    notify.report(M.go(row.chat))
  elseif row.past then
    local one = row.past --[[@as cursor_agent.PastSession]]
    notify.report(sessions.load(one.id, { agent = one.agent, cwd = one.cwd, enter = true }))
  end
end

---@param row cursor_agent.chat.Row
---@param show fun(lines: string[])
local function preview(row, show)
  if row.chat and vim.api.nvim_buf_is_loaded(row.chat.buf) then
    return show(vim.api.nvim_buf_get_lines(row.chat.buf, -PREVIEW_LINES - 1, -1, false))
  end
  local unknown = { row.title, "", "Open the chat to see this conversation." }
  local asked = row.past
    and past.preview(row.past, function(lines)
      show(lines and #lines > 0 and lines or unknown)
    end)
  if not asked then
    show(unknown)
  end
end

---@param row cursor_agent.chat.Row
local function rename(row)
  local id = row.chat and row.chat.status.session_id or row.past and row.past.id
  if id then
    manage.ask_name(id, row.title)
  end
end

---@param row cursor_agent.chat.Row
local function delete(row)
  if row.chat then
    notify.notify("this chat is open; end it with :CursorAgent close! before deleting it", "error")
  elseif row.past then
    notify.report(manage.delete_one(row.past))
  end
end

---@param list cursor_agent.chat.Row[]
local function show_list(list)
  -- Room for the number in Neovim's own list, or a picker's border.
  local columns = rows.columns(list, vim.o.columns - 6)
  picker.open({
    title = "Chats",
    rows = list,
    chunks = function(row)
      return rows.chunks(row, columns)
    end,
    preview = preview,
    choose = choose,
    actions = {
      { name = "rename", key = "<M-r>", desc = "Name the chat", run = rename },
      { name = "delete", key = "<M-d>", desc = "Delete the past chat", run = delete },
    },
  })
end

---Shows the list, or a message if there is no other chat.
---@param opts? { patient: boolean? } wait for slow agents
---@return boolean?, string?
function M.open(opts)
  local here = chats.current()
  local others = #chats.all() > (here and 1 or 0)
  local agent = here and here.agent or require("cursor_agent.config").get().agent
  local shown = false
  local answered ---@type fun()?
  ---@param found cursor_agent.PastSession[]
  ---@param why string?
  ---@param late boolean?
  local function show(found, why, late)
    if answered then
      answered()
    end
    if shown then
      return
    end
    shown = true
    local earlier = past_rows(found)
    if not others and #earlier == 0 then
      notify.notify(why or "no other chats", why and "error" or "info")
      return
    end
    local list = vim.list_extend(M.live(), earlier)
    if late then
      list[#list + 1] = {
        late = agent,
        mark = "…",
        state = "",
        title = ("%s is still listing its past chats; choose this to wait"):format(agent),
        agent = agent,
        age = "",
        about = {},
      }
    end
    show_list(list)
  end
  local cwd = here and here.cwd or nil
  local asked, refused = past.list({ cwd = cwd }, function(found, why)
    show(found or {}, why)
  end)
  if not asked then
    if others then
      show({})
      return true
    end
    return nil, refused
  end
  if not others or opts and opts.patient then
    answered = notify.unless_answered(agent, "session/list")
  end
  if not (opts and opts.patient) then
    local stored = {} ---@type cursor_agent.PastSession[] what is known without the agent
    past.list({ cwd = cwd, agent_list = false }, function(found)
      stored = found or {}
    end)
    vim.defer_fn(function()
      if others or #past_rows(stored) > 0 then
        show(stored, nil, true)
      end
    end, M.LATE_MS)
  end
  return true
end

---Goes to the next chat that needs the user.
---@return boolean?, string?
function M.next_waiting()
  local list, here = chats.all(), chats.current()
  local at = 0
  for i, chat in ipairs(list) do
    if chat == here then
      at = i
    end
  end
  for step = 1, #list do
    local chat = list[(at + step - 1) % #list + 1]
    if chat ~= here and chats.waits(chat) then
      return M.go(chat)
    end
  end
  if here and chats.waits(here) then
    return M.go(here)
  end
  return nil, "no chat needs an answer"
end

---Whether nothing was asked or written in a chat.
---@param chat cursor_agent.Chat
---@return boolean
local function is_empty(chat)
  local status = chat.status
  return not titles.has(chat)
    and (status.turns or 0) == 0
    and (status.queued or 0) == 0
    and status.state ~= "running"
    and #chat.prompt.attached == 0
    and vim.api.nvim_buf_is_loaded(chat.prompt.buf)
    and vim.trim(chat.prompt:text()) == ""
end

---The chat to continue in this directory: the one that was closed here, a live one shown elsewhere, else the latest
---past one.
---@param done fun(row: cursor_agent.chat.Row?, why: string?)
---@return boolean?, string?
function M.last(done)
  local here = chats.current()
  local cwd = here and here.cwd or vim.fs.normalize(require("cursor_agent.chat.workspace").root())
  local newest ---@type cursor_agent.Chat?
  for _, chat in ipairs(chats.all()) do
    local elsewhere = chat ~= here or not layout.is_open(chat)
    if elsewhere and chat.cwd == cwd and titles.has(chat) then
      if not newest or rows.touched_ms(chat) >= rows.touched_ms(newest) then
        newest = chat
      end
    end
  end
  if newest then
    done(rows.live(newest, {}, false))
    return true
  end
  local answered = false
  ---@param found cursor_agent.PastSession[]?
  ---@param why string?
  local function answer(found, why)
    local list = past_rows(vim.tbl_filter(function(one)
      return not one.cwd or past.same_directory(one.cwd, cwd)
    end, found or {}))
    if not answered then
      answered = true
      done(list[1], why)
    end
  end
  local stored = {} ---@type cursor_agent.PastSession[] what is known without the agent
  past.list({ cwd = cwd, agent_list = false }, function(found)
    stored = found or {}
  end)
  vim.defer_fn(function()
    if #stored > 0 then
      answer(stored)
    end
  end, M.LATE_MS)
  return past.list({ cwd = cwd }, answer)
end

---Continues this directory's last chat. An empty chat is replaced.
---@return boolean?, string?
function M.resume()
  local here = chats.current()
  return M.last(function(row, why)
    if not row then
      local folder = vim.fn.fnamemodify(here and here.cwd or vim.fn.getcwd(), ":~")
      notify.notify(why or ("no earlier chat in %s"):format(folder), why and "error" or "info")
      return
    end
    choose(row)
    if here and chats.get(here.key) and chats.current() ~= here and is_empty(here) then
      require("cursor_agent.chat").close(here)
    end
  end)
end

return M
