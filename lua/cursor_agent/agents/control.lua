-- Ends and restarts an agent's process.

local bridge = require("cursor_agent.bridge")

local M = {}

---@param chat cursor_agent.Chat
---@return boolean?, string?
function M.stop(chat)
  return bridge.stop(chat.key)
end

---@param chat cursor_agent.Chat
---@return boolean?, string?
function M.restart(chat)
  return bridge.restart(chat.key)
end

return M
