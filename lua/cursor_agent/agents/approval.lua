-- What Cursor asks before it acts, read from its own `cli-config.json`, which is never written.

local bridge = require("cursor_agent.bridge")
local presets = require("cursor_agent.agents.presets")
local store = require("cursor_agent.files.store")

local M = {}

---Where we store what the user has been told.
local TOLD = "cursor-approval"

---Reads the settings as an agent with these variables would, and calls back. Does not wait for the disk.
---@param env table<string, string>?
---@param callback fun(config: cursor_agent.CliConfig?)
function M.read(env, callback)
  local ready = bridge.load()
  local request = ready and bridge.cli_config(env or vim.empty_dict())
  if not request then
    callback(nil)
    return
  end
  bridge.await(request, function(ok, value)
    callback(ok and value or nil)
  end)
end

---@param config cursor_agent.CliConfig
---@return string
local function place(config)
  return vim.fn.fnamemodify(config.path, ":~")
end

---One sentence on what Cursor asks, and one on how to change it.
---@param config cursor_agent.CliConfig
---@param headless? boolean nothing can be asked
---@return string
function M.sentence(config, headless)
  local path = place(config)
  if config.approval_mode == "unrestricted" then
    return (
      "Cursor edits files and runs commands without asking (`approvalMode` is unrestricted in %s; "
      .. '"allowlist" asks before commands). :CursorAgent review shows the edits.'
    ):format(path)
  end
  local verb = headless and "are rejected" or "need approval"
  local asks = ("commands, fetches, web searches and MCP tools %s unless they are on Cursor's allowlist"):format(verb)
  if config.problem then
    asks = ("could not read %s (%s), so what else needs approval is unknown"):format(path, config.problem)
  elseif config.approval_mode and config.approval_mode ~= "allowlist" then
    asks = ("`approvalMode` %s in %s decides what else needs approval"):format(config.approval_mode, path)
  elseif config.found then
    asks = ("%s (%s)"):format(asks, path)
  end
  return ("Cursor edits files without asking; %s. :CursorAgent review shows the edits, :CursorAgent mode plan stops them."):format(
    asks
  )
end

---The settings themselves, in one line.
---@param config cursor_agent.CliConfig
---@return string
function M.settings(config)
  local path = place(config)
  if not config.found then
    return path .. ": not found, so Cursor's defaults apply"
  elseif config.problem then
    return ("could not read %s: %s"):format(path, config.problem)
  end
  local mode = config.approval_mode or "not set (allowlist)"
  return ("%s: approvalMode %s, maxMode %s"):format(path, mode, config.max_mode and "on" or "off")
end

---Tells the user what Cursor asks, once, in the first chat with it; again when the setting has changed.
---@param chat cursor_agent.Chat
function M.tell_once(chat)
  if not require("cursor_agent.config").is_cursor(chat.agent) then
    return
  end
  local agent = require("cursor_agent.config").agent(chat.agent)
  local env = agent and presets.spec(chat.agent, agent).env
  M.read(env, function(config)
    if not config then
      return
    end
    local mode = config.approval_mode or "allowlist"
    if store.read(TOLD).mode == mode then
      return
    end
    store.update(TOLD, function(value)
      value.mode = mode
    end)
    local ready = bridge.is_loaded()
    if ready then
      local headless = agent and presets.is_headless(agent, bridge.status(chat.key))
      bridge.notice(chat.key, M.sentence(config, headless))
    end
  end)
end

return M
