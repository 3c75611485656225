-- Jumps in the chat: from turn to turn, from tool call to tool call.

local M = {}

---@param chat cursor_agent.Chat
---@param step -1|1
---@param kind string
---@return boolean?, string?
local function jump(chat, step, kind)
  local transcript = chat.transcript
  -- The chat may be in more than one window.
  local here = vim.api.nvim_get_current_buf() == chat.buf and vim.api.nvim_get_current_win()
  local win = here or require("cursor_agent.window").chat_window(chat)
  if not win then
    return nil, "the chat is closed"
  end
  local row = vim.api.nvim_win_get_cursor(win)[1] - 1
  local index, top = transcript:entry_at(row)
  local items = transcript.items
  local at = index or 1
  if step == 1 or (index and items[index].kind == kind and row > top) == false then
    at = at + step
  end
  for _ = 1, vim.v.count1 do
    while items[at] and items[at].kind ~= kind do
      at = at + step
    end
    if not items[at] then
      break
    end
    local first = transcript:range(at) + items[at].gap
    vim.api.nvim_win_call(win, function()
      vim.cmd("normal! m'")
      vim.api.nvim_win_set_cursor(win, { first + 1, 0 })
    end)
    at = at + step
  end
  return true
end

---@param chat cursor_agent.Chat
---@param step -1|1
function M.turn(chat, step)
  return jump(chat, step, "user")
end

---@param chat cursor_agent.Chat
---@param step -1|1
function M.tool(chat, step)
  return jump(chat, step, "tool")
end

return M
