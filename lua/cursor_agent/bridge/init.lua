-- The functions of the library (`types.lua` lists them), by name: `bridge.status(key)`. The first call loads it.
--
-- Only this room holds the library. A call returns nil and the reason if it cannot be loaded; code that may run before
-- the first use, and must not cause it, checks `is_loaded` first.

local drain = require("cursor_agent.bridge.drain")
local events = require("cursor_agent.bridge.events")
local native = require("cursor_agent.bridge.native")

---@class cursor_agent.Bridge: cursor_agent.Native
local M = {}

native.on_wake = drain.drain
native.on_loaded = function()
  events.emit("loaded")
end

M.await = drain.await
M.forget_entries = drain.forget_entries
M.is_behind = drain.is_behind
M.drain_now = drain.drain
M.stop_draining = drain.stop

---Loads the library if needed. A failure is remembered and not retried.
---@return boolean?, string?
function M.load()
  local library, why = native.get()
  if not library then
    return nil, why
  end
  return true
end

---@return boolean
function M.is_loaded()
  return native.peek() ~= nil
end

---Why loading failed, if it did.
---@return string?
function M.failure()
  return native.failure()
end

---Forgets a failure after the library was installed.
---@return boolean whether the next use may succeed; otherwise Neovim must be restarted
function M.forget_failure()
  return native.forget_failure()
end

setmetatable(M, {
  __index = function(_, name)
    local library = native.peek()
    if library then
      return library[name]
    end
    return function(...)
      local loaded, why = native.get()
      if not loaded then
        return nil, why
      end
      return loaded[name](...)
    end
  end,
})

return M
