-- Ends and restarts an agent's process.

local native = require("cursor_agent.bridge.native")

local M = {}

---@param chat cursor_agent.Chat
---@return boolean?, string?
function M.stop(chat)
  local library, why = native.get()
  if not library then
    return nil, why
  end
  return library.stop(chat.key)
end

---@param chat cursor_agent.Chat
---@return boolean?, string?
function M.restart(chat)
  local library, why = native.get()
  if not library then
    return nil, why
  end
  return library.restart(chat.key)
end

return M
