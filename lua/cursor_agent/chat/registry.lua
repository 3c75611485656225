-- All chats of this Neovim: by key, by the agent's session id, and the current one of each tab page.

local bridge = require("cursor_agent.bridge")

local M = {}

---@type table<cursor_agent.Key, cursor_agent.Chat>
local by_key = {}

---@type table<integer, cursor_agent.Key> by tab page
local by_tab = {}

---@param chat cursor_agent.Chat
function M.add(chat)
  by_key[chat.key] = chat
end

---@param chat cursor_agent.Chat
function M.remove(chat)
  by_key[chat.key] = nil
  for tab, key in pairs(by_tab) do
    if key == chat.key then
      by_tab[tab] = nil
    end
  end
end

---@param key cursor_agent.Key?
---@return cursor_agent.Chat?
function M.get(key)
  return key and by_key[key]
end

---Every chat, oldest first.
---@return cursor_agent.Chat[]
function M.all()
  local list = vim.tbl_values(by_key) ---@type cursor_agent.Chat[]
  table.sort(list, function(a, b)
    return a.key < b.key
  end)
  return list
end

---Makes a chat the current one of a tab page.
---@param chat cursor_agent.Chat
---@param tab? integer
function M.use(chat, tab)
  by_tab[tab or vim.api.nvim_get_current_tabpage()] = chat.key
end

---The tab pages whose current chat this is.
---@param chat cursor_agent.Chat
---@return integer[]
function M.tabs(chat)
  return vim.tbl_filter(function(tab)
    return by_tab[tab] == chat.key
  end, vim.api.nvim_list_tabpages())
end

---The chat of the current tab page.
---@return cursor_agent.Chat?
function M.current()
  local buf = vim.api.nvim_get_current_buf()
  return M.of_buffer(buf) or M.get(by_tab[vim.api.nvim_get_current_tabpage()])
end

---Whether the current chat is running a turn that could be stopped.
---@return boolean
function M.is_busy()
  local chat = M.current()
  local state = chat and chat.status.state
  return state == "running" or state == "waiting"
end

---The chat whose transcript or prompt a buffer is.
---@param buf integer
---@return cursor_agent.Chat?
function M.of_buffer(buf)
  return M.get(vim.b[buf].cursor_agent_key)
end

---Whether a chat needs the user's decision.
---@param chat cursor_agent.Chat
---@return boolean
function M.waits(chat)
  return (chat.status.pending or 0) > 0
end

---How urgent a chat is: 1 if it needs the user, 2 while it runs, 3 otherwise.
---@param chat cursor_agent.Chat
---@return 1|2|3
function M.rank(chat)
  local state = chat.status.state
  return M.waits(chat) and 1 or (state == "running" or state == "waiting") and 2 or 3
end

---How many other chats run or need the user, and whether one needs the user.
---@param chat cursor_agent.Chat
---@return integer count
---@return boolean waiting
function M.others(chat)
  local count, waiting = 0, false
  for _, other in pairs(by_key) do
    if other ~= chat and M.rank(other) < 3 then
      count = count + 1
      waiting = waiting or M.waits(other)
    end
  end
  return count, waiting
end

---Finds a chat by key or by the agent's session id; by default the current tab's.
---@param session? cursor_agent.Key|string
---@return cursor_agent.Chat?, string?
function M.find(session)
  if session == nil then
    local chat = M.current()
    if chat then
      return chat
    end
    return nil, "no chat in this tab; :CursorAgent opens one"
  end
  local chat = by_key[session]
  if chat then
    return chat
  end
  for _, other in pairs(by_key) do
    if other.status.session_id == session then
      return other
    end
  end
  -- `status()` asks the library, which may be ahead of the changes drained so far.
  for _, other in pairs(by_key) do
    local status = bridge.status(other.key)
    if status and status.session_id == session then
      return other
    end
  end
  return nil, ("unknown session %s"):format(tostring(session))
end

return M
