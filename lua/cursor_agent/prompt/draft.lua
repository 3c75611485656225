-- Drafts: unsent text of a chat, kept across restarts of Neovim.

local chats = require("cursor_agent.chat.registry")
local store = require("cursor_agent.files.store")

local M = {}

---Save a draft once nothing was typed for this long, in case Neovim is killed.
local DELAY_MS = 1000

---@class (exact) cursor_agent.Draft
---@field text string
---@field pastes table<string, string>? what the labels in it stand for

---@alias cursor_agent.draft.Kept string|cursor_agent.Draft as it is kept: its text alone where that is all

---@type table<cursor_agent.Chat, cursor_agent.draft.Kept> what was last kept or read of each
local known = setmetatable({}, { __mode = "k" })

---@param chat cursor_agent.Chat
---@return string
local function directory_of(chat)
  return "dir:" .. chat.cwd
end

---The unsent text from when Neovim was last left here.
---@param chat cursor_agent.Chat
---@return cursor_agent.Draft?
function M.read(chat)
  for _, other in ipairs(chats.all()) do
    if other ~= chat and other.cwd == chat.cwd and not chat.status.session_id then
      return nil
    end
  end
  local drafts = store.read("drafts")
  for _, name in ipairs({ chat.status.session_id or directory_of(chat), directory_of(chat) }) do
    local kept = drafts[name] ---@type cursor_agent.draft.Kept?
    local draft = type(kept) == "string" and { text = kept } or kept
    if kept and type(draft) == "table" and type(draft.text) == "string" then
      known[chat] = kept
      return draft --[[@as cursor_agent.Draft]]
    end
  end
end

---Saves a draft for its session, and as the directory's latest. A chat without text leaves the drafts of others alone.
---@param chat cursor_agent.Chat
---@param draft cursor_agent.Draft
function M.save(chat, draft)
  local value = vim.trim(draft.text) ~= "" and (draft.pastes and draft or draft.text) or nil
  local before = known[chat]
  known[chat] = value
  local drafts = store.read("drafts")
  local session, directory = chat.status.session_id, directory_of(chat)
  local same = vim.deep_equal
  local of_session = session ~= nil and not same(drafts[session], value)
  local of_directory = not same(value, before)
    and not same(drafts[directory], value)
    and (value ~= nil or same(drafts[directory], before))
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

local timer ---@type uv.uv_timer_t?

---Saves the drafts once nothing was typed for a while.
---@param save fun()
function M.soon(save)
  timer = timer or assert(vim.uv.new_timer())
  timer:start(DELAY_MS, 0, vim.schedule_wrap(save))
end

return M
