-- Puts the keys of actions on a buffer, as the options have them, and says which key an action has, for a hint.

local config = require("cursor_agent.config")
local events = require("cursor_agent.bridge.events")
local list = require("cursor_agent.keys.list")

local M = {}

---@type table<string, cursor_agent.Action>
local by_name = {}
for _, action in ipairs(list) do
  by_name[action.name] = action
end

---Runs an action by name.
---@param name string
---@param lhs? string the key that was pressed
function M.run(name, lhs)
  events.emit("action", name, lhs)
end

---The keys of an action in a kind of buffer, as the options have it.
---@param action cursor_agent.Action
---@param kind cursor_agent.BufferKind
---@return string[]
function M.keys(action, kind)
  local chosen = (config.get().keymaps[kind] or {})[action.name]
  if chosen == false then
    return {}
  elseif type(chosen) == "string" then
    return { chosen }
  elseif type(chosen) == "table" then
    return chosen
  end
  return action.keys and action.keys[kind] or {}
end

---The first key of an action in a kind of buffer, for a hint.
---@param name string
---@param kind cursor_agent.BufferKind
---@return string?
function M.key(name, kind)
  return M.keys(by_name[name], kind)[1]
end

---@param action cursor_agent.Action
---@param kind cursor_agent.BufferKind
---@return string[]
function M.modes(action, kind)
  return action.modes and action.modes[kind] or { "n" }
end

---Maps the keys of a kind of buffer.
---@param buf integer
---@param kind cursor_agent.BufferKind
function M.map(buf, kind)
  vim.b[buf].cursor_agent_kind = kind
  for _, action in ipairs(list) do
    for _, lhs in ipairs(M.keys(action, kind)) do
      local expr = action.expr
      local call_it = ("<Cmd>lua require('cursor_agent.keys').run(%q)<CR>"):format(action.name)
      vim.keymap.set(M.modes(action, kind), lhs, expr and function()
        local means = expr(lhs)
        return means == true and call_it or means or lhs
      end or function()
        M.run(action.name, lhs)
      end, {
        buffer = buf,
        expr = expr ~= nil,
        nowait = true,
        desc = "cursor-agent: " .. action.desc,
      })
    end
  end
end

return M
