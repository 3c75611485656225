-- Stores an agent's last failure on disk, for `:checkhealth` after a restart of Neovim.

local store = require("cursor_agent.files.store")

local M = {}

local NAME = "last-failure"

---@class (exact) cursor_agent.Failure
---@field agent string
---@field cwd string
---@field message string as the user read it, with the last lines of stderr
---@field at integer seconds since 1970

---Stores the failure of a session that has just failed.
---@param chat cursor_agent.Chat
---@param before cursor_agent.Status
function M.on_status(chat, before)
  local status = chat.status
  if status.state ~= "failed" or not status.error or status.error == before.error then
    return
  end
  store.write(NAME, {
    agent = chat.agent,
    cwd = chat.cwd,
    message = require("cursor_agent.bridge.redact").text(status.error),
    at = os.time(),
  })
end

---@return cursor_agent.Failure?
function M.last()
  local value = store.read(NAME)
  return type(value.message) == "string" and value --[[@as cursor_agent.Failure]] or nil
end

return M
