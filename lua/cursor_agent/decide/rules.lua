-- Permissions that need no question: answered by the user's rules, or by an “always” of this session.

local config = require("cursor_agent.config")
local native = require("cursor_agent.native")
local permission = require("cursor_agent.decide.permission")
local policy = require("cursor_agent.decide.policy")

local M = {}

---@type table<cursor_agent.Key, table<string, { verdict: "allow"|"reject", at: string }>>
local always = {}

---Answers a permission by the rules, or by what the user has said once and for all in this session.
---@param decision cursor_agent.Decision
---@return boolean answered
function M.answer(decision)
  local library = native.peek()
  if decision.kind ~= "permission" or not library then
    return false
  end
  local action, by = policy.decide(decision, config.get().policy, permission.where(decision))
  if action == "ask" and not by then
    local said = (always[decision.key] or {})[policy.signature(decision)]
    if said then
      action, by = said.verdict, ("your “always” of %s"):format(said.at)
    end
  end
  if action == "ask" then
    return false
  end
  local option = permission.option(decision, action == "allow" and "allow_once" or "reject_once")
  if not option and action == "allow" then
    -- What is allowed by a rule is allowed once: the agent must not remember more than the user said.
    return false
  end
  return library.answer(decision.id, option and { option = option.id } or { reject = true }, by) == true
end

---Remembers an answer that was meant for good: some agents forget it.
---@param decision cursor_agent.Decision
---@param answer table
function M.remember(decision, answer)
  for _, option in ipairs(decision.options or {}) do
    local verdict = option.kind == "allow_always" and "allow" or option.kind == "reject_always" and "reject" or nil
    if option.id == answer.option and verdict then
      always[decision.key] = always[decision.key] or {}
      always[decision.key][policy.signature(decision)] = {
        verdict = verdict,
        at = os.date("%H:%M") --[[@as string]],
      }
    end
  end
end

return M
