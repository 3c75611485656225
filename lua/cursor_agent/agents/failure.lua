-- The last failure of an agent, kept on disk: `:checkhealth` shows it also after Neovim was restarted.

local store = require("cursor_agent.files.store")

local M = {}

local NAME = "last-failure"

---@class (exact) cursor_agent.Failure
---@field agent string
---@field cwd string
---@field message string as the user read it, with the last lines of stderr
---@field at integer seconds since 1970

---@param chat cursor_agent.Chat
---@param message string
function M.note(chat, message)
  store.write(
    NAME,
    {
      agent = chat.agent,
      cwd = chat.cwd,
      message = require("cursor_agent.bridge.redact").text(message),
      at = os.time(),
    }
  )
end

---@return cursor_agent.Failure?
function M.last()
  local value = store.read(NAME)
  return type(value.message) == "string" and value --[[@as cursor_agent.Failure]] or nil
end

return M
