-- Removes secrets from text that leaves the chat: a message, a report, a file. The library knows them.

local native = require("cursor_agent.bridge.native")

local M = {}

---@param text string whole: half a secret is not recognised
---@return string
function M.text(text)
  -- Without the library there is no agent whose secrets could be in it.
  local library = native.peek()
  return library and library.redact(text) or text
end

---A command as typed in a shell. Without the library only its program is shown: its arguments may be secret.
---@param command string[]
---@return string
function M.command(command)
  local library = native.peek()
  if not library then
    return command[1] .. (#command > 1 and " …" or "")
  end
  return library.redact(table.concat(command, " "))
end

return M
