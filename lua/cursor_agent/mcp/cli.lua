-- Asks Cursor's CLI about MCP servers: `agent mcp …`, run by the library, with a time limit and the whole environment.

local bridge = require("cursor_agent.bridge")
local chats = require("cursor_agent.chat.registry")
local config = require("cursor_agent.config")
local presets = require("cursor_agent.agents.presets")

local M = {}

---What each command may take. Listing connects to every server, one after the other.
---@type table<string, integer> ms
local LIMITS = { list = 30000, ["list-tools"] = 20000, enable = 15000, disable = 15000 }

---Whose servers they are, and which CLI to ask.
---@class (exact) cursor_agent.mcp.Place
---@field cwd string
---@field env table<string, string>
---@field command string[] the CLI with its own flags
---@field agent string its name in `agents`

---The agent whose CLI is asked: that of the chat, of new chats, or Cursor.
---@param chat cursor_agent.Chat?
---@return cursor_agent.Agent, string
local function agent_of(chat)
  for _, name in ipairs({ chat and chat.agent or config.get().agent, config.get().agent, "cursor" }) do
    local agent = config.agent(name)
    if agent and agent.cursor then
      return agent, name
    end
  end
  return presets.agents.cursor, "cursor"
end

---@return cursor_agent.mcp.Place
function M.place()
  local chat = chats.current()
  local agent, name = agent_of(chat)
  local spec = presets.spec(name, agent)
  if bridge.load() then
    bridge.learn(spec)
  end
  return {
    cwd = chat and chat.cwd or vim.fs.normalize(vim.fn.getcwd()),
    env = spec.env or {},
    command = presets.cli_command(agent),
    agent = name,
  }
end

---What the library needs of a place.
---@param place cursor_agent.mcp.Place
---@return { cwd: string, env: table<string, string> }
function M.where(place)
  return { cwd = place.cwd, env = next(place.env) and place.env or vim.empty_dict() }
end

---The command of the CLI as a person types it.
---@param place cursor_agent.mcp.Place
---@param args string[]
---@return string
function M.shown(place, args)
  local words = { vim.fs.basename(place.command[1]), "mcp" }
  return table.concat(vim.list_extend(words, args), " ")
end

---Why the CLI cannot be asked; nil when it can.
---@param place cursor_agent.mcp.Place
---@return string?
function M.missing(place)
  if vim.fn.executable(place.command[1]) == 0 then
    return ("`%s` is not on your PATH"):format(place.command[1])
  end
end

---Runs `agent mcp …` and calls back with what it printed, or with why that is not to be had.
---@param place cursor_agent.mcp.Place
---@param args string[]
---@param callback fun(output: string?, problem: string?)
---@return boolean?, string?
function M.run(place, args, callback)
  local loaded, why = bridge.load()
  if not loaded then
    return nil, why
  end
  local missing = M.missing(place)
  if missing then
    return nil, missing
  end
  local command = vim.list_extend(vim.deepcopy(place.command), { "mcp" })
  local limit = LIMITS[args[1]] or 15000
  local where = M.where(place)
  local request, refused = bridge.run({
    command = vim.list_extend(command, args),
    env = where.env,
    cwd = where.cwd,
    timeout_ms = limit,
  })
  if not request then
    return nil, refused
  end
  bridge.await(request, function(ok, value)
    if not ok then
      callback(nil, tostring(value))
      return
    end
    local outcome = value --[[@as cursor_agent.Outcome]]
    if outcome.timed_out then
      callback(nil, ("`%s` took more than %d s"):format(M.shown(place, args), limit / 1000))
    elseif outcome.code == 0 then
      callback(outcome.stdout)
    else
      local said = vim.trim(outcome.stderr ~= "" and outcome.stderr or outcome.stdout)
      local how = outcome.code and "exit " .. outcome.code or "signal " .. tostring(outcome.signal)
      callback(nil, said ~= "" and said or ("`%s` failed (%s)"):format(M.shown(place, args), how))
    end
  end)
  return true
end

return M
