-- Checks the syntax of the user's rules; `crates/engine/src/policy/` defines what they mean for a call.

local M = {}

---@alias cursor_agent.policy.Action "allow"|"ask"|"reject"

---@class (exact) cursor_agent.policy.Rule
---@field action cursor_agent.policy.Action
---@field name? string for the line in the transcript
---@field agent? string|string[] names in `agents`
---@field kind? string|string[] kinds of tool call: execute, edit, delete, move, read, search, fetch …
---@field tool? string|string[] names of tools, `server/tool` for those of MCP servers; `*` matches any text
---@field command? string|string[] of a call that runs one; `*` matches any text
---@field path? string|string[] globs, relative to the workspace unless they begin with / or ~

local FIELDS = { action = true, name = true, agent = true, kind = true, tool = true, command = true, path = true }
---Longer patterns are refused.
local MAX_BYTES = 1024

local ACTIONS = { allow = true, ask = true, reject = true }

---The problems of a list of rules, one line each.
---@param rules any
---@return string[]
function M.check(rules)
  if type(rules) ~= "table" or not vim.islist(rules) then
    return { "expected a list of rules" }
  end
  local problems = {} ---@type string[]
  for i, rule in ipairs(rules) do
    local function complain(text, ...)
      problems[#problems + 1] = ("rule %d: "):format(i) .. text:format(...)
    end
    if type(rule) ~= "table" then
      complain("expected a table, got %s", type(rule))
    else
      if not ACTIONS[rule.action] then
        complain("`action` must be allow, ask or reject")
      end
      for key, value in vim.spairs(rule) do
        local words = type(value) == "table" and vim.islist(value) and #value > 0 and value or { value }
        if not FIELDS[key] then
          complain("unknown key `%s`", tostring(key))
        elseif (key == "action" or key == "name") and type(value) ~= "string" then
          complain("`%s` must be a string", key)
        end
        for _, word in ipairs(words) do
          if FIELDS[key] and type(word) ~= "string" then
            complain("`%s` must be a string or a list of strings", key)
          elseif FIELDS[key] and #word > MAX_BYTES then
            complain("`%s` is longer than %d bytes", key, MAX_BYTES)
          end
        end
      end
    end
  end
  return problems
end

return M
