-- Past conversations: those stored here, those of Cursor's CLI, and those the agent lists. Everything is read off the
-- main thread; callbacks get a value, or nil and the reason.

local bridge = require("cursor_agent.bridge")
local chats = require("cursor_agent.chat.registry")
local config = require("cursor_agent.config")
local events = require("cursor_agent.bridge.events")
local notify = require("cursor_agent.notify")

local M = {}

---@class (exact) cursor_agent.past.Opts
---@field cwd? string conversations of this directory; default: the one new chats work in
---@field all? boolean from all directories
---@field agent_list? boolean false: do not ask the agent

---@type table<string, cursor_agent.PastSession> what was listed, by id: it is loaded with the agent and in the directory it has there
local listed_before = {}

---Tells the library where conversations are stored, once it is loaded.
function M.on_loaded()
  M.push()
  events.on("configured", "cursor_agent.chat.past", "push")
end

---Tells it again if the options have changed.
function M.push()
  local options = config.get().memory
  local dir = vim.fs.joinpath(vim.fn.stdpath("data") --[[@as string]], "cursor-agent", "sessions")
  bridge.memory_setup({
    dir = options.enabled and dir or nil,
    max_age_days = options.max_age_days,
    max_mb = options.max_mb,
  })
end

---@param cwd string
---@return string
local function absolute(cwd)
  return (vim.fs.normalize(vim.fn.fnamemodify(cwd, ":p")):gsub("(.)/$", "%1"))
end

---Whether two paths are the same directory once links are resolved.
---@param one string
---@param other string
---@return boolean
function M.same_directory(one, other)
  one, other = absolute(one), absolute(other)
  return one == other or vim.uv.fs_realpath(one) == (vim.uv.fs_realpath(other) or other)
end

---@param opts cursor_agent.past.Opts?
---@return cursor_agent.past.Which
local function which(opts)
  opts = opts or {}
  local cwd = not opts.all and (opts.cwd or require("cursor_agent.chat.workspace").root())
  local found = { cwd = cwd and absolute(cwd) or nil } ---@type cursor_agent.past.Which
  local here = chats.current()
  local names = { here and here.agent or config.get().agent, config.get().agent }
  for _, name in ipairs(vim.list_extend(names, config.agent_names())) do
    local agent = config.agent(name)
    if agent and agent.cursor and not found.cli then
      local headless = config.agent("cursor-headless") and "cursor-headless" or nil
      found.cli = { agent = name, headless = headless, env = agent.env or vim.empty_dict() }
    end
  end
  return found
end

---Calls back with the result of a request.
---@param request integer?
---@param problem string?
---@param callback fun(value: any, message: string?)
---@return boolean?, string?
local function await(request, problem, callback)
  if not request then
    return nil, problem
  end
  bridge.await(request, function(ok, value)
    if ok then
      callback(value)
    else
      callback(nil, tostring(value))
    end
  end)
  return true
end

---Warns once about what cannot be read: those conversations are missing from every list.
---@param problems string[]
local function tell_problems(problems)
  if #problems > 0 then
    local more = #problems > 1 and ("\n  and %d more, listed in the log"):format(#problems - 1) or ""
    notify.once(("could not read a stored conversation: %s%s"):format(problems[1], more), "warn")
  end
end

---Asks the current chat's agent, or the default one, for its past sessions.
---@param callback fun(sessions: cursor_agent.PastSession[]?, message: string?)
---@return boolean?, string?
local function ask_agent(callback)
  -- Without a chat, ask the default agent without creating a session.
  local chat = chats.current()
  local key, why = chat and chat.key, nil ---@type cursor_agent.Key?, string?
  if not key then
    key, why = require("cursor_agent.agents.lookup").key()
  end
  if not key then
    return nil, why
  end
  local request, problem = bridge.list_sessions(key)
  return await(request, problem, callback)
end

---All conversations without duplicates: live ones first, then newest first.
---@param opts cursor_agent.past.Opts?
---@param callback fun(sessions: cursor_agent.PastSession[]?, message: string?)
---@return boolean?, string?
function M.list(opts, callback)
  opts = opts or {}
  if not vim.is_callable(callback) then
    return nil, "sessions: expected a function that takes the list"
  end
  local stored ---@type cursor_agent.PastSession[]?
  local listed ---@type cursor_agent.PastSession[]?
  local trouble ---@type string?
  local function finish()
    if not stored or not listed then
      return
    end
    local all = bridge.merge_sessions(stored, listed)
    for _, one in ipairs(all) do
      listed_before[one.id] = one
    end
    if #all == 0 and trouble then
      callback(nil, trouble)
    else
      callback(all)
    end
  end
  local request, problem = bridge.stored_sessions(which(opts))
  local asked, why = await(request, problem, function(value)
    stored = value and value.sessions or {}
    tell_problems(value and value.problems or {})
    finish()
  end)
  if not asked then
    return nil, why
  end
  if opts.agent_list == false then
    listed = {}
    return true
  end
  local listing, refused = ask_agent(function(value, message)
    listed, trouble = value or {}, message
    finish()
  end)
  if not listing then
    listed, trouble = {}, refused
  end
  return true
end

---What is known about a conversation that was listed.
---@param id string
---@return cursor_agent.PastSession?
function M.known(id)
  return listed_before[id]
end

---The last lines of a conversation, as plain text.
---@param session cursor_agent.PastSession
---@param callback fun(lines: string[]?, message: string?)
---@return boolean?, string?
function M.preview(session, callback)
  local request, problem = bridge.stored_preview(session.id, which({ all = true }))
  return await(request, problem, callback)
end

---The lines of stored conversations that contain a text. Ignores case unless it has a capital letter.
---@param text string
---@param opts cursor_agent.past.Opts?
---@param callback fun(hits: cursor_agent.SearchHit[]?, message: string?)
---@return boolean?, string?
function M.search(text, opts, callback)
  if callback == nil and type(opts) == "function" then
    opts, callback = nil, opts
  end
  if type(text) ~= "string" or vim.trim(text) == "" then
    return nil, "`search` needs a text: :CursorAgent search {text}"
  elseif not vim.is_callable(callback) then
    return nil, "search: expected a callback function"
  end
  local request, problem = bridge.search(text, which(opts))
  return await(request, problem, callback)
end

---Gives a conversation a title of the user's, which overrides the agent's; an empty one removes it.
---@param session cursor_agent.PastSession
---@param title string
---@param callback fun(done: boolean?, message: string?)
---@return boolean?, string?
function M.rename(session, title, callback)
  local request, problem = bridge.rename_session(session.id, title)
  return await(request, problem, callback)
end

---A key of a running agent through which it can be asked something.
---@param agent string
---@return cursor_agent.Key?
local function agent_key(agent)
  for _, chat in ipairs(chats.all()) do
    if chat.agent == agent then
      return chat.key
    end
  end
  local key, _, name = require("cursor_agent.agents.lookup").key()
  return name == agent and key or nil
end

---@class (exact) cursor_agent.past.Deleted
---@field stored boolean what was stored here is deleted
---@field agent boolean the agent deleted it too
---@field why string? why the agent did not

---Deletes a conversation: what is stored here and, if the agent supports it, the agent's copy.
---@param session cursor_agent.PastSession
---@param callback fun(done: cursor_agent.past.Deleted?, message: string?)
---@return boolean?, string?
function M.delete(session, callback)
  if chats.find(session.id) then
    return nil, "this conversation is open: close it first"
  end
  if session.source == "cli" and session.how ~= "load" then
    return nil, "chats from Cursor's CLI are read-only here; delete it in the CLI"
  end
  local request, problem = bridge.forget_session(session.id)
  return await(request, problem, function(count, why)
    if not count then
      return callback(nil, why)
    end
    local done = { stored = count > 0, agent = false } ---@type cursor_agent.past.Deleted
    local key = agent_key(session.agent)
    local asked, refused = nil, "the agent is not running" ---@type integer?, string?
    if key then
      asked, refused = bridge.delete_session(key, session.id)
    end
    if not asked then
      done.why = refused
      return callback(done)
    end
    bridge.await(asked, function(ok, value)
      done.agent = ok
      done.why = not ok and tostring(value) or nil
      callback(done)
    end)
  end)
end

return M
