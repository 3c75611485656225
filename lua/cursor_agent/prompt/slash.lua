-- Tells a slash command from text: it is sent as the whole prompt, since Cursor runs one only when nothing is attached.

local M = {}

---The slash command in a prompt, without its slash.
---@param text string
---@param status cursor_agent.Status
---@return string?
function M.command(text, status)
  -- Not a path: `/etc/hosts is wrong`.
  local name = text:match("^%s*/([%w_:.%-]+)$") or text:match("^%s*/([%w_:.%-]+)%s")
  if not name then
    return nil
  end
  local commands = status.commands or {}
  for _, command in ipairs(commands) do
    if command.name == name or command.name == "/" .. name then
      return name
    end
  end
  -- An agent lists its commands once its session has started; until then any word may be one.
  if #commands == 0 and status.state ~= "idle" and status.state ~= "running" and status.state ~= "waiting" then
    return name
  end
end

return M
