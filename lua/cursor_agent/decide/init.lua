-- Decisions that wait for the user: told when they come, answered by kind.

local native = require("cursor_agent.native")
local notify = require("cursor_agent.notify")

local M = {}

---The kinds of option that say yes or no, the most careful first.
local KINDS = {
  accept = { "allow_once", "allow_always" },
  reject = { "reject_once", "reject_always" },
}

---A decision came.
---@param decision cursor_agent.Decision
function M.on_decision(decision)
  notify.notify(
    ("%s asks: %s\n  :CursorAgent accept · :CursorAgent reject"):format(decision.agent, decision.title),
    "warn"
  )
end

---A decision was answered, or is no longer wanted.
---@param _id integer
---@param _how string
function M.on_decided(_id, _how) end

---The decision meant when none is named: the oldest of the current tab's chat, else the oldest of all.
---@return cursor_agent.Decision?, string?
function M.current()
  local library = native.peek()
  local chat = require("cursor_agent.chats").current()
  local decision = library and (chat and library.pending(chat.key)[1] or library.pending()[1])
  if not decision then
    return nil, "nothing waits for a decision"
  end
  return decision
end

---The answer that accepts or rejects a decision. Options are chosen by kind: their ids differ from agent to agent.
---@param decision cursor_agent.Decision
---@param verdict "accept"|"reject"
---@return table?, string?
function M.verdict(decision, verdict)
  if decision.kind == "permission" then
    for _, kind in ipairs(KINDS[verdict]) do
      for _, option in ipairs(decision.options or {}) do
        if option.kind == kind then
          return { option = option.id }
        end
      end
    end
    if verdict == "reject" then
      return { cancel = true }
    end
    return nil, ("%s offers nothing that allows this"):format(decision.agent)
  elseif decision.kind == "plan" then
    return verdict == "accept" and { accept = true } or { reject = true }
  end
  if verdict == "accept" then
    return nil, "a question is answered, not accepted: see :CursorAgent decisions"
  end
  return { skip = true }
end

---@param verdict "accept"|"reject"
---@return boolean?, string?
function M.decide(verdict)
  local decision, why = M.current()
  if not decision then
    return nil, why
  end
  local answer, problem = M.verdict(decision, verdict)
  if not answer then
    return nil, problem
  end
  local library = assert(native.peek())
  return library.answer(decision.id, answer)
end

return M
