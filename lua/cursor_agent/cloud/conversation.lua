-- The conversation with a cloud agent: a chat whose agent is the companion program.

local M = {}

---The chat that shows it, when it is open.
---@param id string of the cloud agent
---@return cursor_agent.Chat?
function M.chat(id)
  local chat = require("cursor_agent.chat.registry").find(id)
  return chat and chat.agent == "cloud" and chat or nil
end

---Has a conversation that is open show runs that were started elsewhere: its agent looks for them when it is asked for sessions.
---@param id string
function M.catch_up(id)
  local bridge = require("cursor_agent.bridge")
  local chat = M.chat(id)
  local request = chat and bridge.list_sessions(chat.key)
  if request then
    bridge.await(request, function() end)
  end
end

---Shows it; it streams while the agent works.
---@param id string
---@return cursor_agent.Key?, string?
function M.open(id)
  M.catch_up(id)
  return require("cursor_agent.chat.sessions").load(id, { agent = "cloud" })
end

---Whether the user is looking at it.
---@param id string
---@return boolean
function M.in_view(id)
  local chat = M.chat(id)
  return chat ~= nil and require("cursor_agent.chat.layout").chat_window(chat) ~= nil
end

return M
