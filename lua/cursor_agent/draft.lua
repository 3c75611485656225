-- Drafts: what was being written in a chat, kept for when Neovim is gone.

local chats = require("cursor_agent.chats")
local store = require("cursor_agent.store")

local M = {}

---@type table<cursor_agent.Chat, string> what was last kept or read of each
local known = setmetatable({}, { __mode = "k" })

---@param chat cursor_agent.Chat
---@return string
local function directory_of(chat)
  return "dir:" .. chat.cwd
end

---What was being written here when Neovim was last left.
---@param chat cursor_agent.Chat
---@return string?
function M.read(chat)
  for _, other in ipairs(chats.all()) do
    if other ~= chat and other.cwd == chat.cwd and not chat.status.session_id then
      return nil
    end
  end
  local drafts = store.read("drafts")
  for _, name in ipairs({ chat.status.session_id or directory_of(chat), directory_of(chat) }) do
    if type(drafts[name]) == "string" then
      known[chat] = drafts[name]
      return drafts[name]
    end
  end
end

---Keeps a draft under the name of its session, and as that of the directory: the one that was last written there. A chat
---in which nothing is written leaves the draft of another.
---@param chat cursor_agent.Chat
---@param text string
function M.save(chat, text)
  local value = vim.trim(text) ~= "" and text or nil
  local before = known[chat]
  known[chat] = value
  local drafts = store.read("drafts")
  local session, directory = chat.status.session_id, directory_of(chat)
  local of_session = session ~= nil and drafts[session] ~= value
  local of_directory = value ~= before and drafts[directory] ~= value and (value or drafts[directory] == before)
  if of_session or of_directory then
    store.update("drafts", function(all)
      if session then
        all[session] = value
      end
      if of_directory then
        all[directory] = value
      end
    end)
  end
end

return M
