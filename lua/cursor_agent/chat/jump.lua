-- Jumps between turns and tool calls in the chat.

local M = {}

---@param chat cursor_agent.Chat
---@param step -1|1
---@param kind string
---@return boolean?, string?
local function jump(chat, step, kind)
  local transcript = require("cursor_agent.chat.transcript").here(chat)
  -- The chat may be in more than one window.
  local here = vim.api.nvim_get_current_buf() == transcript.buf and vim.api.nvim_get_current_win()
  local win = here or require("cursor_agent.chat.layout").chat_window(chat)
  if not win then
    return nil, "the chat is closed"
  end
  local row = vim.api.nvim_win_get_cursor(win)[1] - 1
  local index, top = transcript:entry_at(row)
  local items = transcript.items
  local at = index or transcript.order[1] ---@type integer?
  ---A prompt given to a subagent does not start a turn.
  ---@param i integer
  ---@return boolean
  local function is_wanted(i)
    return items[i].kind == kind and (kind ~= "user" or items[i].depth == 0)
  end
  if at and (step == 1 or (index and is_wanted(index) and row > top) == false) then
    at = transcript:next(at, step)
  end
  for _ = 1, vim.v.count1 do
    while at and not is_wanted(at) do
      at = transcript:next(at, step)
    end
    if not at then
      break
    end
    local first = transcript:range(at) + items[at].gap
    vim.api.nvim_win_call(win, function()
      vim.cmd("normal! m'")
      vim.api.nvim_win_set_cursor(win, { first + 1, 0 })
    end)
    at = transcript:next(at, step)
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
