-- Writes the library's changes to a chat into its transcript, and passes them on to subscribers.

local chats = require("cursor_agent.chat.registry")
local events = require("cursor_agent.bridge.events")

local M = {}

---The chat of a key, if it has a buffer. If that was deleted, the library still has the transcript, and opening the
---chat shows it again.
---@param key cursor_agent.Key
---@return cursor_agent.Chat?
local function with_buffer(key)
  local chat = chats.get(key)
  return chat and vim.api.nvim_buf_is_loaded(chat.buf) and chat or nil
end

---@param key cursor_agent.Key
---@param index integer
---@param text string?
function M.on_append(key, index, text)
  local chat = with_buffer(key)
  text = text or ""
  if chat then
    chat.transcript:append(index, text)
    events.emit("chat append", chat, index, text)
  end
end

---@param key cursor_agent.Key
---@param index integer
---@param entry cursor_agent.Entry
function M.on_entry(key, index, entry)
  local chat = with_buffer(key)
  if chat then
    chat.transcript:entry(index, entry)
    events.emit("chat entry", chat, index, entry)
  end
end

---@param key cursor_agent.Key
---@param status cursor_agent.Status
function M.on_status(key, status)
  local chat = chats.get(key)
  if chat then
    local before = chat.status
    chat.status = status
    events.emit("chat status", chat, before)
  end
end

---A batch of changes has ended.
---@param flood boolean more changes follow immediately
function M.on_drained(flood)
  for _, chat in ipairs(chats.all()) do
    chat.transcript:finish(flood)
    events.emit("chat drained", chat, flood)
  end
end

return M
