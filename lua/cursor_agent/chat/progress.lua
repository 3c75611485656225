-- Reports a running turn through Neovim's `Progress` event, for terminals and statuslines.

local M = {}

local known = vim.fn.exists("##Progress") == 1
local running = {} ---@type table<cursor_agent.Key, integer> percent that was told

---@param chat cursor_agent.Chat
---@param status "running"|"success"|"failed"
---@param percent integer
local function tell(chat, status, percent)
  -- Only the event, without the message that usually comes with it: the chat already shows progress.
  vim.api.nvim_exec_autocmds("Progress", {
    pattern = "cursor-agent",
    modeline = false,
    data = {
      id = "cursor-agent-" .. chat.key,
      source = "cursor-agent",
      title = chat.agent,
      text = chat.status.title or "",
      status = status,
      percent = percent,
    },
  })
end

---Only the todos tell how far a turn is.
---@param chat cursor_agent.Chat
function M.on_status(chat)
  if not known then
    return
  end
  local status = chat.status
  local before = running[chat.key]
  if status.state == "running" or status.state == "waiting" then
    local done, all = require("cursor_agent.render.todos").progress(status.todos or {})
    local percent = all > 0 and math.min(99, math.floor(100 * done / all)) or 0
    if percent ~= before then
      running[chat.key] = percent
      tell(chat, "running", percent)
    end
  elseif before then
    running[chat.key] = nil
    tell(chat, status.state == "failed" and "failed" or "success", 100)
  end
end

return M
