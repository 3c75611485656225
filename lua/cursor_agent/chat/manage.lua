-- Names and deletes conversations, open or past, and completes their ids and titles.

local chats = require("cursor_agent.chat.registry")
local notify = require("cursor_agent.notify")
local past = require("cursor_agent.chat.past")

local M = {}

---How long completion waits for the stored conversations.
local COMPLETE_MS = 500

---@type cursor_agent.PastSession[] as of the last completion
local known = {}

---@param list cursor_agent.PastSession[]
---@param text string
---@return cursor_agent.PastSession?
local function named(list, text)
  for _, one in ipairs(list) do
    if one.id == text then
      return one
    end
  end
  for _, one in ipairs(list) do
    if one.title and one.title:lower() == text:lower() then
      return one
    end
  end
end

---Finds a conversation by its id or title: among the open and stored ones, else in the agent's own list.
---@param text string
---@param done fun(session: cursor_agent.PastSession?)
---@return boolean?, string?
local function find(text, done)
  return past.list({ all = true, agent_list = false }, function(stored)
    local found = named(stored or {}, text)
    if found then
      return done(found)
    end
    local asked = past.list({ all = true }, function(all)
      done(named(all or {}, text))
    end)
    if not asked then
      done(nil)
    end
  end)
end

---@param session cursor_agent.PastSession
---@return string
local function called(session)
  local title = session.title and vim.trim(session.title) or ""
  return title ~= "" and ("“%s”"):format(title) or "session " .. session.id
end

---Deletes a past conversation after the user has confirmed.
---@param session cursor_agent.PastSession
---@param sure boolean? do not ask
---@return boolean?, string?
function M.delete_one(session, sure)
  local name = called(session)
  if session.live or chats.find(session.id) then
    return nil, ("%s is open; end it with :CursorAgent close! before deleting it"):format(name)
  end
  if not sure then
    local answer = vim.fn.confirm(("Permanently delete %s?"):format(name), "&Yes\n&No", 2)
    -- Otherwise the question and the next message together cause a hit-enter prompt.
    vim.cmd.redraw()
    if answer ~= 1 then
      notify.notify("nothing was deleted")
      return true
    end
  end
  local answered = notify.unless_answered(session.agent, "session/delete")
  local asked, why = past.delete(session, function(done, problem)
    answered()
    if done and done.agent then
      notify.notify(("deleted %s"):format(name))
    elseif done and done.stored then
      notify.notify(("deleted %s here, but not at the agent: %s"):format(name, done.why or "it gave no reason"))
    else
      notify.notify(
        ("could not delete %s: %s"):format(name, problem or done and done.why or "it was not found"),
        "error"
      )
    end
  end)
  if not asked then
    answered()
  end
  return asked, why
end

---Deletes a past conversation by its id or title.
---@param text string
---@param sure boolean
---@return boolean?, string?
function M.delete(text, sure)
  return find(text, function(session)
    if not session then
      -- The agent may know more sessions than it lists.
      local here = chats.current()
      local agent = here and here.agent or require("cursor_agent.config").get().agent
      session = { id = text, agent = agent, source = "agent", live = false, how = "load" }
    end
    notify.report(M.delete_one(session, sure))
  end)
end

---@param id string
---@param title string
---@return boolean?, string?
local function rename(id, title)
  local session = { id = id, agent = "", source = "stored", live = false, how = "load" } ---@type cursor_agent.PastSession
  return past.rename(session, title, function(done, why)
    if done then
      notify.notify(vim.trim(title) ~= "" and ("renamed to “%s”"):format(vim.trim(title)) or "the name was removed")
    else
      notify.notify(("could not rename it: %s"):format(why), "error")
    end
  end)
end

---Asks for the name of a conversation.
---@param id string
---@param title string? its current title
---@return boolean
function M.ask_name(id, title)
  vim.ui.input({ prompt = "Name of this chat: ", default = title }, function(text)
    if text then
      notify.report(rename(id, text))
    end
  end)
  return true
end

---Renames this tab's chat, or the past conversation whose id comes first.
---@param text string
---@return boolean?, string?
function M.rename(text)
  local here = chats.current()
  local id = here and here.status.session_id
  ---@return boolean?, string?
  local function this()
    if not here then
      return nil, "no chat in this tab; :CursorAgent rename {id} {name} renames a past one"
    elseif not id then
      return nil, "the agent has not started this chat yet"
    elseif text == "" then
      return M.ask_name(id, require("cursor_agent.chat.titles").has(here) and here.status.title or nil)
    end
    return rename(id, text)
  end
  local first, rest = text:match("^(%S+)%s*(.*)$")
  if not first then
    return this()
  end
  return past.list({ all = true, agent_list = false }, function(list)
    for _, one in ipairs(list or {}) do
      if one.id == first and rest and rest ~= "" then
        notify.report(rename(first, rest))
        return
      elseif one.id == first then
        M.ask_name(first, one.title)
        return
      end
    end
    notify.report(this())
  end)
end

---Forks this chat into another one, if its agent can: both know what was said so far.
---@param chat cursor_agent.Chat
---@return boolean?, string?
function M.fork(chat)
  local key, why = require("cursor_agent.bridge").fork_session(chat.key)
  local fork = key and require("cursor_agent.chat").adopt(key, chat.agent, chat.cwd)
  if not fork then
    return nil, why
  end
  return require("cursor_agent.chat.layout").open(fork, { enter = true })
end

---Continues a conversation that only the agent lists, by its title.
---@param text string
local function load_listed(text)
  notify.report(find(text, function(found)
    if not found then
      return notify.notify(("no past session is called “%s”"):format(text), "error")
    end
    local opts = { agent = found.agent, cwd = found.cwd, enter = true }
    notify.report(require("cursor_agent.chat.sessions").load(found.id, opts))
  end))
end

---Continues a past conversation by its id or title.
---@param text string
---@return any, string?
function M.load(text)
  local sessions = require("cursor_agent.chat.sessions")
  local one = named(known, text)
  if one then
    return sessions.load(one.id, { agent = one.agent, cwd = one.cwd, enter = true })
  elseif chats.find(text) then
    return sessions.load(text, { enter = true })
  end
  return past.list({ all = true, agent_list = false }, function(stored)
    local found = named(stored or {}, text)
    if found then
      notify.report(sessions.load(found.id, { agent = found.agent, cwd = found.cwd, enter = true }))
    elseif not text:find("%s") then
      -- The agent may know more sessions than are stored.
      notify.report(sessions.load(text, { enter = true }))
    else
      load_listed(text)
    end
  end)
end

---Candidates for the last word: ids, and the rest of titles.
---@param words string[]
---@param titles boolean titles too
---@return string[]
function M.complete(words, titles)
  local answered = false
  local asked = past.list({ agent_list = false }, function(list)
    known, answered = list or {}, true
  end)
  if asked then
    vim.wait(COMPLETE_MS, function()
      return answered
    end, 5)
  end
  local before = table.concat(words, " ", 1, #words - 1)
  before = before ~= "" and before .. " " or ""
  local found = {} ---@type string[]
  for _, one in ipairs(known) do
    if before == "" then
      found[#found + 1] = one.id
    end
    local title = titles and one.title
    if title and title ~= "" and not title:find("[%c|]") and title:sub(1, #before):lower() == before:lower() then
      found[#found + 1] = title:sub(#before + 1)
    end
  end
  return found
end

return M
