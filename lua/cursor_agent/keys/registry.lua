-- The actions that keys can be mapped to, by name. `actions.lua` has them, and is loaded by the first look at them.

local M = {}

---@alias cursor_agent.BufferKind "chat"|"prompt"|"queue"|"permission"|"question"|"conflict"|"plan-card"|"plan"|"todos"|"log"|"reader"|"subagent"|"review"|"code"

---@class (exact) cursor_agent.Action
---@field name string
---@field desc string
---@field run fun(lhs: string?) with the key that was pressed, if one was
---@field keys? table<cursor_agent.BufferKind, string[]> its keys unless `keymaps` says otherwise
---@field modes? table<cursor_agent.BufferKind, string[]> where they work; Normal mode otherwise
---@field expr? fun(lhs: string): boolean|string whether the key means this action where the cursor is, or itself, or these keys

---Loads the actions; `parts.lua` says from where.
---@return cursor_agent.Action[]
function M.load()
  return {}
end

local by_name ---@type table<string, cursor_agent.Action>?

---@param name string
---@return cursor_agent.Action?
function M.get(name)
  if not by_name then
    by_name = {}
    for _, action in ipairs(M.load()) do
      by_name[action.name] = action
    end
  end
  return by_name[name]
end

---In the order `g?` lists them.
---@return cursor_agent.Action[]
function M.list()
  return M.load()
end

return M
