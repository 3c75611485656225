-- A chat's title: given by the user or the agent, else its first prompt. Its buffers are named after it.

local buffers = require("cursor_agent.chat.buffers")
local events = require("cursor_agent.bridge.events")
local format = require("cursor_agent.render.format")

local M = {}

---Longer titles are cut when used to tell chats apart.
local MOST_CHARS = 60

---The title of a chat without a prompt.
M.UNTITLED = "New chat"

---@type table<cursor_agent.Chat, string> the first prompt of each, as far as it is known
local first_prompts = setmetatable({}, { __mode = "k" })

---@type table<cursor_agent.Chat, string> what the user named them
local given = setmetatable({}, { __mode = "k" })

---@param chat cursor_agent.Chat
---@return string
function M.of(chat)
  local title = given[chat] or chat.status.title
  if not title or vim.trim(title) == "" then
    title = first_prompts[chat]
  end
  local line = title and format.first_line((title:gsub("%c", " ")), MOST_CHARS)
  return line and vim.trim(line) ~= "" and line or M.UNTITLED
end

---Whether a chat has a title of some kind.
---@param chat cursor_agent.Chat
---@return boolean
function M.has(chat)
  return M.of(chat) ~= M.UNTITLED
end

---Names the buffers of a chat after it.
---@param chat cursor_agent.Chat
function M.name_buffers(chat)
  local title = M.has(chat) and M.of(chat) or nil
  local renamed = false
  for kind, buf in pairs({ chat = chat.buf, prompt = chat.prompt and chat.prompt.buf or nil }) do
    renamed = buffers.name(buf, chat.key, kind --[[@as "chat"|"prompt"]], title) or renamed
  end
  if renamed then
    vim.cmd.redrawtabline()
  end
end

---Names a chat; the agent's title no longer counts.
---@param chat cursor_agent.Chat
---@param title string
function M.give(chat, title)
  given[chat] = title
  M.name_buffers(chat)
  events.emit("chat status", chat, chat.status)
end

---@param chat cursor_agent.Chat
---@param _index integer
---@param entry cursor_agent.Entry
function M.on_entry(chat, _index, entry)
  if entry.kind == "user" and not entry.parent and not first_prompts[chat] then
    local text = vim.trim(entry.text) ~= "" and entry.text or (entry.context or {})[1]
    if text then
      first_prompts[chat] = text:sub(1, MOST_CHARS * 8)
      M.name_buffers(chat)
    end
  end
end

---@param chat cursor_agent.Chat
---@param before cursor_agent.Status
function M.on_status(chat, before)
  if chat.status.title ~= before.title then
    M.name_buffers(chat)
  end
end

return M
