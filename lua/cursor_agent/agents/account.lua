-- Logs out of an agent.

local bridge = require("cursor_agent.bridge")
local notify = require("cursor_agent.notify")

local M = {}

---Sends the agent a request and reports how it went once it has answered.
---@param request integer?
---@param why string?
---@param answered fun() to be called then
---@param done string
---@param failed string
---@return boolean?, string?
local function tell(request, why, answered, done, failed)
  if not request then
    answered()
    return nil, why
  end
  bridge.await(request, function(ok, value)
    answered()
    if ok then
      notify.notify(done)
    else
      notify.notify(("%s: %s"):format(failed, tostring(value)), "error")
    end
  end)
  return true
end

---Logs out, if the agent supports it.
---@param chat cursor_agent.Chat
---@return boolean?, string?
function M.logout(chat)
  local request, refused = bridge.logout(chat.key)
  local failed = ("%s did not log out"):format(chat.agent)
  local answered = notify.unless_answered(chat.agent, "logout")
  return tell(request, refused, answered, ("logged out of %s"):format(chat.agent), failed)
end

return M
