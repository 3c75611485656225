-- `:CursorAgent build`: installs the library beside everything else, and says how it goes.

local bridge = require("cursor_agent.bridge")
local notify = require("cursor_agent.notify")
local paths = require("cursor_agent.bridge.paths")

local M = {}

---The ways a person may ask for by name.
M.ways = { "prebuilt", "cargo" }

local running = false

---Installs the library. With a way, only that one, and again if need be; without, the first that works, keeping one that fits.
---@param way? string one of `ways`
---@return boolean? started, string? problem
function M.build(way)
  if running then
    return nil, "the library is already being installed"
  elseif way and not vim.list_contains(M.ways, way) then
    return nil, ("unknown method %q; expected one of %s"):format(way, table.concat(M.ways, " and "))
  end
  local steps = require("cursor_agent.install.steps")
  running = true
  local function work()
    return steps.install(paths.root(), way and {
      way --[[@as cursor_agent.install.Way]],
    } or nil)
  end
  require("cursor_agent.install.task").background(work, notify.notify, function(ok, value)
    running = false
    if not ok then
      notify.notify(tostring(value), "error")
      return
    end
    notify.notify(steps.success(value, value ~= "kept" and not bridge.forget_failure()))
  end)
  return true
end

return M
