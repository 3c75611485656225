-- Runs an agent without a chat, to ask it something, such as its past sessions.

local config = require("cursor_agent.config")
local bridge = require("cursor_agent.bridge")

local M = {}

---The agent keeps running for this long after a request: its answer may lead to a chat.
local LINGER_MS = 60 * 1000

---@class (exact) cursor_agent.lookup.Open
---@field key cursor_agent.Key
---@field agent string
---@field cwd string

local open ---@type cursor_agent.lookup.Open?
local timer ---@type uv.uv_timer_t?

local function close()
  local ready = bridge.is_loaded()
  if open and ready then
    bridge.close(open.key)
  end
  open = nil
end

---A key of an agent in the current directory, to ask it something.
---@return cursor_agent.Key?, string? problem, string? agent
function M.key()
  local ready, why = bridge.load()
  if not ready then
    return nil, why
  end
  local agent, name = config.agent()
  if not agent then
    return nil, ("unknown agent `%s`; expected one of %s"):format(name, table.concat(config.agent_names(), ", "))
  end
  local cwd = vim.fs.normalize(vim.fn.getcwd())
  timer = timer or assert(vim.uv.new_timer())
  timer:start(LINGER_MS, 0, vim.schedule_wrap(close))
  if open and open.agent == name and open.cwd == cwd then
    local status = bridge.status(open.key)
    if status and status.state ~= "failed" and not status.needs_login then
      return open.key, nil, name
    end
  end
  close()
  local spec, problem = require("cursor_agent.agents.presets").spec(name, agent)
  if problem then
    return nil, problem
  end
  spec.cwd, spec.lookup = cwd, true
  local key, refused = bridge.open(spec)
  if not key then
    return nil, refused
  end
  open = { key = key, agent = name, cwd = cwd }
  return key, nil, name
end

return M
