-- Logs in to an agent with one of its methods: its own login command in a terminal, or one the agent performs on
-- request.

local bridge = require("cursor_agent.bridge")
local notify = require("cursor_agent.notify")

local M = {}

---@class (exact) cursor_agent.login.Job
---@field name string of the agent
---@field chat cursor_agent.Chat?
---@field env table<string, string> the agent's environment, which its login needs too: a proxy, another home
---@field ways cursor_agent.Login[]
---@field refused boolean its last prompt was refused because of a missing login

---What to do after a failed login.
---@param job cursor_agent.login.Job
---@param failed cursor_agent.Login
---@return string
local function next_step(job, failed)
  local others = {} ---@type string[]
  for _, way in ipairs(job.ways) do
    if way ~= failed then
      others[#others + 1] = way.name
    end
  end
  if #others == 0 then
    return "\n  :CursorAgent login tries again"
  end
  return "\n  :CursorAgent login offers other ways: " .. table.concat(others, " · ")
end

---@param job cursor_agent.login.Job
local function done(job)
  local again = job.refused and ": :CursorAgent retry sends the prompt again" or ""
  notify.notify(("logged in to %s%s"):format(job.name, again))
end

---@param job cursor_agent.login.Job
---@param way cursor_agent.Login
---@return boolean?, string?
local function in_terminal(job, way)
  local line = table.concat(way.command, " ")
  if vim.fn.executable(way.command[1]) == 0 then
    return nil, ("cannot run `%s`: `%s` is not on your PATH"):format(line, way.command[1])
  end
  local chat = job.chat
  require("cursor_agent.window.terminal").open(way.command, {
    cwd = chat and chat.cwd or nil,
    env = vim.tbl_extend("force", job.env, way.env or {}),
    on_exit = function(status, close)
      if status == 0 then
        done(job)
        if chat then
          bridge.logged_in(chat.key)
        end
        close()
      else
        notify.notify(("`%s` ended with exit code %d%s"):format(line, status, next_step(job, way)), "error")
      end
    end,
  })
  return true
end

---@param job cursor_agent.login.Job
---@param way cursor_agent.Login
---@return boolean?, string?
local function by_itself(job, way)
  local chat = assert(job.chat)
  local request, why = bridge.log_in(chat.key, assert(way.id))
  if not request then
    return nil, why
  end
  notify.notify(("logging in to %s with %s; this may open your browser"):format(job.name, way.name))
  bridge.await(request, function(ok, value)
    if ok then
      require("cursor_agent.agents.presets").remember_login(job.name, assert(way.id))
      done(job)
    else
      local text = "could not log in to %s with %s: %s%s"
      notify.notify(text:format(job.name, way.name, tostring(value), next_step(job, way)), "error")
    end
  end)
  return true
end

---@param job cursor_agent.login.Job
---@param way cursor_agent.Login
---@return boolean?, string?
local function take(job, way)
  if #way.command > 0 then
    return in_terminal(job, way)
  elseif way.itself then
    return by_itself(job, way)
  end
  -- Nothing to run: the label says what to set, and where.
  return nil, way.label
end

---@param job cursor_agent.login.Job
local function ask(job)
  vim.ui.select(job.ways, {
    prompt = ("Log in to %s with"):format(job.name),
    kind = "cursor_agent_login",
    ---@param way cursor_agent.Login
    format_item = function(way)
      local more = way.description or #way.command > 0 and way.id and table.concat(way.command, " ") or nil
      return more and more ~= way.name and ("%s · %s"):format(way.name, more) or way.name
    end,
  }, function(way)
    if way then
      notify.report(take(job, way))
    end
  end)
end

---The login methods of a chat's agent, or of the default one.
---@param chat cursor_agent.Chat?
---@return cursor_agent.login.Job
local function look(chat)
  local agent, name = require("cursor_agent.config").agent(chat and chat.agent)
  local spec = agent and require("cursor_agent.agents.presets").spec(name, agent)
  local ways = chat and chat.status.logins or {}
  if #ways == 0 and spec and spec.login_command then
    -- The agent has not listed its methods.
    local line = table.concat(spec.login_command, " ")
    ways = { { name = line, itself = false, command = spec.login_command, label = line } }
  end
  local refused = chat ~= nil and chat.status.needs_login and chat.status.state == "idle"
  return { name = name, chat = chat, env = spec and spec.env or {}, ways = ways, refused = refused }
end

---The names of the methods, for completion.
---@param chat cursor_agent.Chat?
---@return string[]
function M.ids(chat)
  local ids = {} ---@type string[]
  for _, way in ipairs(chat and chat.status.logins or {}) do
    ids[#ids + 1] = way.id
  end
  return ids
end

---Logs in; if there are several methods, asks which.
---@param chat cursor_agent.Chat? default: the agent for new chats
---@param id string? the method's id or name
---@return boolean?, string?
function M.open(chat, id)
  local ready, why = bridge.load()
  if not ready then
    return nil, why
  end
  local job = look(chat)
  if id then
    for _, way in ipairs(job.ways) do
      if way.id == id or way.name == id then
        return take(job, way)
      end
    end
    return nil, ("%s has no login method `%s`; :CursorAgent login lists them"):format(job.name, id)
  end
  if #job.ways > 1 then
    ask(job)
    return true
  elseif job.ways[1] then
    return take(job, job.ways[1])
  elseif not chat then
    return nil,
      ("%s shows its login methods in a chat: :CursorAgent new %s, then :CursorAgent login"):format(job.name, job.name)
  elseif chat.status.state == "starting" and not chat.status.needs_login then
    return nil, ("%s is still starting; run :CursorAgent login again in a moment"):format(job.name)
  end
  return nil, ("%s cannot log in from Neovim: log in outside of it, then run :CursorAgent restart"):format(job.name)
end

return M
