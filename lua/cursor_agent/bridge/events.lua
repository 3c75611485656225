-- Events: a part subscribes by name, and emitters do not know their subscribers.
--
-- `parts.lua` lists the subscriptions. A part is loaded when the first of its events comes.

local M = {}

---@class (exact) cursor_agent.events.Subscription
---@field module string
---@field name string of its function

---@type table<string, cursor_agent.events.Subscription[]>
local subscriptions = {}

---Subscribes a function of a module to an event; subscribers run in the order they were added.
---@param event string
---@param module string
---@param name string
function M.on(event, module, name)
  local list = subscriptions[event] or {}
  subscriptions[event] = list
  list[#list + 1] = { module = module, name = name }
end

---Reports a failed subscriber; set by `parts.lua`.
---@param _event string
---@param _problem string
function M.on_failure(_event, _problem) end

---Runs a subscriber. If it fails, the others still run.
---@param event string
---@param run fun(...: any)
---@param ... any
function M.protect(event, run, ...)
  local ok, problem = xpcall(run, debug.traceback, ...)
  if not ok then
    M.on_failure(event, tostring(problem))
  end
end

---@param subscription cursor_agent.events.Subscription
---@param ... any
local function tell(subscription, ...)
  require(subscription.module)[subscription.name](...)
end

---@param event string
---@param ... any
function M.emit(event, ...)
  for _, subscription in ipairs(subscriptions[event] or {}) do
    M.protect(event, tell, subscription, ...)
  end
end

---Notifies the user's configuration with a `User` autocommand.
---@param name string
---@param data table?
function M.fire(name, data)
  vim.api.nvim_exec_autocmds("User", { pattern = name, modeline = false, data = data })
end

return M
