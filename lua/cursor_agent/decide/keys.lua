-- What the keys of a card, its details and a plan do.

local card = require("cursor_agent.decide.card")
local bridge = require("cursor_agent.bridge")
local notify = require("cursor_agent.notify")
local permission = require("cursor_agent.decide.permission")
local question = require("cursor_agent.decide.question")

local M = {}

---The queue of decisions, which sets this when it loads.
---@type { answer: fun(id: integer, answer: table, revision: integer?): boolean?, string? } | table<string, fun(...): boolean?, string?>
M.queue = {}

---@param decision cursor_agent.Decision
---@return cursor_agent.decide.Answering
local function answering(decision)
  return {
    answer = function(answer)
      return M.queue.answer(decision.id, answer, decision.revision)
    end,
    is_pending = function()
      if M.queue.waits(decision.id) then
        return true
      end
      notify.notify("already decided; nothing was sent", "warn")
      return false
    end,
  }
end

---@param decision cursor_agent.Decision
---@param kind string
---@return boolean?, string?
local function choose(decision, kind)
  return M.queue.answer(decision.id, { kind = kind }, decision.revision)
end

---Rejects, and sends the reason as the next prompt: the protocol's answer has no field for it.
---@param decision cursor_agent.Decision
---@return boolean
local function reject_with_message(decision)
  local how = answering(decision)
  vim.ui.input({ prompt = "Reject with a reason: " }, function(text)
    text = text and vim.trim(text) or ""
    if text == "" or not how.is_pending() then
      return
    end
    local ready = bridge.is_loaded()
    if not ready then
      return
    end
    -- Queue it first: the answer may end the turn, and then the next queued prompt is sent.
    local number, problem = bridge.prompt(decision.key, { text = text })
    if not number then
      notify.report(nil, problem)
      return
    end
    bridge.queue_move(decision.key, number, 1)
    local done, why = choose(decision, "reject_once")
    if not done then
      bridge.queue_remove(decision.key, number)
      notify.report(nil, why)
    end
  end)
  return true
end

---@param decision cursor_agent.Decision
---@return boolean
local function reject_plan(decision)
  local how = answering(decision)
  vim.ui.input({ prompt = "Reason for rejecting the plan (optional): " }, function(reason)
    if reason and how.is_pending() then
      reason = vim.trim(reason)
      notify.report(how.answer({ reject = true, reason = reason ~= "" and reason or nil }))
    end
  end)
  return true
end

---By action name. Each gets the decision and the key that was pressed.
---@type table<string, fun(decision: cursor_agent.Decision, lhs: string): boolean?, string?>
local KEYS = {
  ["allow-once"] = function(decision)
    return choose(decision, "allow_once")
  end,
  ["allow-always"] = function(decision)
    return choose(decision, "allow_always")
  end,
  ["reject-once"] = function(decision)
    return choose(decision, "reject_once")
  end,
  ["reject-always"] = function(decision)
    return choose(decision, "reject_always")
  end,
  ["choose-number"] = function(decision, lhs)
    local number = (tonumber(lhs) or vim.v.count1) --[[@as integer]]
    if decision.kind == "question" then
      return question.choose_number(decision, number)
    end
    local answer, why = permission.choose_number(decision, number)
    if not answer then
      return nil, why
    end
    return M.queue.answer(decision.id, answer, decision.revision)
  end,
  ["reject-with-message"] = reject_with_message,
  ["decision-details"] = function(decision)
    return M.queue.show_details(decision)
  end,
  ["next-decision"] = function()
    return M.queue.go(1)
  end,
  ["previous-decision"] = function()
    return M.queue.go(-1)
  end,
  ["decision-later"] = function(decision)
    return M.queue.put_off(decision)
  end,
  ["decision-leave"] = function(decision)
    if not M.queue.close_details(decision) then
      card.leave()
    end
    return true
  end,
  ["question-choose"] = function(decision)
    return question.choose(decision, answering(decision))
  end,
  ["question-answer"] = function(decision)
    return question.answer(decision, answering(decision))
  end,
  ["question-skip"] = function(decision)
    return question.skip(decision, answering(decision))
  end,
  ["question-cancel"] = function(decision)
    return M.queue.answer(decision.id, { cancel = true })
  end,
  ["open-address"] = function(decision, lhs)
    if not decision.url and lhs:sub(1, 1) == "g" then
      require("cursor_agent.keys").run("open-outside", lhs)
      return true
    end
    return question.open_address(decision, answering(decision))
  end,
  ["conflict-mine"] = function(decision)
    return M.queue.answer(decision.id, { option = "mine" })
  end,
  ["conflict-theirs"] = function(decision)
    return M.queue.answer(decision.id, { option = "theirs" })
  end,
  ["conflict-both"] = function(decision)
    return M.queue.answer(decision.id, { option = "both" })
  end,
  ["conflict-cancel"] = function(decision)
    return M.queue.answer(decision.id, { cancel = true })
  end,
  ["plan-open"] = function(decision)
    return M.queue.open(decision.id)
  end,
  ["plan-accept"] = function(decision)
    return M.queue.answer(decision.id, { accept = true })
  end,
  ["plan-reject"] = reject_plan,
  ["plan-cancel"] = function(decision)
    return M.queue.answer(decision.id, { cancel = true })
  end,
}

---@param name string of an action
---@param decision cursor_agent.Decision
---@param lhs string the key
---@return boolean?, string?
function M.press(name, decision, lhs)
  return KEYS[name](decision, lhs)
end

return M
