-- Questions that come as permissions: asked and answered as questions, by keys, and by no rule.

local T = require("harness")

local ASK = "session/request_permission"

---@param options? table[]
---@return table step
local function asking(options)
  return {
    permission = {
      toolCall = { toolCallId = "q", title = "Which store should sessions use?", kind = "other" },
      options = options or {
        { optionId = "sqlite", name = "SQLite", kind = "allow_once" },
        { optionId = "jsonl", name = "JSON lines", kind = "allow_once" },
        { optionId = "__ask_question_skip__", name = "Skip", kind = "reject_once" },
      },
    },
    ["then"] = { ["*"] = { { text = "Thank you." } } },
  }
end

---@param nvim harness.Child
---@param agent harness.Agent
---@param number? integer
---@return table outcome
local function outcome(nvim, agent, number)
  return nvim:wait(function()
    local answer = agent:answers(ASK)[number or 1]
    return answer and answer.result.outcome
  end, "an answer")
end

---@param nvim harness.Child
local function enter(nvim)
  nvim:wait_screen("Which store should sessions use?")
  nvim:keys(":CursorAgent decisions<CR>")
  nvim:wait("vim.bo.filetype == 'cursoragent-decision'", "the card to be entered")
  nvim:wait_card()
end

T.case("Enter on a choice answers with its option", { width = 80, height = 20 }, function(nvim)
  local agent = T.agent({ turns = { { asking() } } })
  -- A rule that allows everything does not answer a question.
  nvim:use(agent, { attention = { notify = false }, policy = { { action = "allow" } } })
  nvim:prompt("go", { open = false })
  enter(nvim)
  T.ok(nvim:sees("( ) SQLite"), "a choice")
  T.ok(not nvim:sees("allow"), "no permission")
  local pending = nvim:lua("return require('cursor_agent').pending()")
  T.eq({ #pending, pending[1].kind, pending[1].options }, { 1, "question" })
  T.eq(pending[1].questions[1].options, { { id = "sqlite", label = "SQLite" }, { id = "jsonl", label = "JSON lines" } })
  T.eq(agent:answers(ASK), {})
  nvim:keys("j<CR>")
  T.eq(outcome(nvim, agent), { outcome = "selected", optionId = "jsonl" })
  nvim:wait_turns(1)
  nvim:wait_screen_without("Which store")
end)

T.case("a rule that rejects and an earlier always answer no question", { width = 80, height = 20 }, function(nvim)
  local call = { toolCallId = "p", title = "Which store should sessions use?", kind = "other" }
  local agent = T.agent({
    turns = {
      { { permission = { toolCall = call }, ["then"] = { ["*"] = { { text = "a" } } } } },
      { asking() },
    },
  })
  nvim:use(agent, { attention = { notify = false } })
  nvim:prompt("go", { open = false })
  nvim:wait("#require('cursor_agent').pending() == 1", "the permission")
  local id = nvim:lua("return require('cursor_agent').pending()[1].id")
  T.eq(nvim:lua("return require('cursor_agent').answer(...)", id, { option = "allow-always" }), true)
  nvim:wait_turns(1)
  nvim:lua("require('cursor_agent').setup({ policy = { { action = 'reject' } }, attention = { notify = false } })")
  nvim:prompt("again", { open = false })
  enter(nvim)
  T.eq(#agent:answers(ASK), 1)
  nvim:keys("2<CR>")
  T.eq(outcome(nvim, agent, 2), { outcome = "selected", optionId = "jsonl" })
end)

T.case("s skips it, C cancels it, accept() is refused", { width = 80, height = 20 }, function(nvim)
  local agent = T.agent({ turns = { { asking() }, { asking() } } })
  nvim:use(agent, { attention = { notify = false } })
  nvim:prompt("go", { open = false })
  enter(nvim)
  T.eq(nvim:lua("return (require('cursor_agent').accept())"), nil)
  nvim:keys("s")
  nvim:wait_screen("Reason for skipping")
  nvim:keys("<CR>")
  T.eq(outcome(nvim, agent), { outcome = "selected", optionId = "__ask_question_skip__" })
  nvim:wait_turns(1)
  nvim:prompt("again", { open = false })
  enter(nvim)
  nvim:keys("C")
  T.eq(outcome(nvim, agent, 2), { outcome = "cancelled" })
end)

T.case("by Lua: answers, skip, and what does not fit", { width = 80 }, function(nvim)
  local agent = T.agent({ turns = { { asking() }, { asking() } } })
  nvim:use(agent, { attention = { notify = false } })
  local function pending()
    nvim:wait("#require('cursor_agent').pending() == 1", "the question")
    return nvim:lua("return require('cursor_agent').pending()[1]")
  end
  local answer = "return { require('cursor_agent').answer(...) }"
  nvim:prompt("go", { open = false })
  local decision = pending()
  local question = decision.questions[1].id
  T.contains(nvim:lua(answer, decision.id, { answers = { [question] = { "other" } } })[2], "has no option")
  T.eq(nvim:lua(answer, decision.id, { answers = { [question] = { "sqlite" } } }), { true })
  T.eq(outcome(nvim, agent), { outcome = "selected", optionId = "sqlite" })
  nvim:wait_turns(1)
  nvim:prompt("again", { open = false })
  T.eq(nvim:lua(answer, pending().id, { skip = true }), { true })
  T.eq(outcome(nvim, agent, 2), { outcome = "selected", optionId = "__ask_question_skip__" })
end)

T.case("an answer in words skips it and is the next prompt; so is one without choices", { width = 80 }, function(nvim)
  local skip = { { optionId = "__ask_question_skip__", name = "Skip", kind = "reject_once" } }
  local agent = T.agent({ turns = { { asking(skip) }, { { text = "I see." } } } })
  nvim:use(agent, { attention = { notify = false } })
  nvim:prompt("go", { open = false })
  enter(nvim)
  nvim:keys("<CR>")
  nvim:wait_screen("Your answer:")
  nvim:keys("Postgres<CR>")
  T.eq(outcome(nvim, agent), { outcome = "selected", optionId = "__ask_question_skip__" })
  nvim:wait_turns(2)
  T.eq(agent:received("session/prompt")[2].params.prompt[1].text, "Postgres")
end)

T.case("a cancelled turn answers it as cancelled", { width = 80 }, function(nvim)
  local agent = T.agent({ turns = { { asking() } } })
  nvim:use(agent, { attention = { notify = false } })
  nvim:prompt("go", { open = false })
  nvim:wait_screen("Which store should sessions use?")
  nvim:cmd("CursorAgent cancel")
  T.eq(outcome(nvim, agent), { outcome = "cancelled" })
  T.eq(nvim:wait_turns(1).stop_reason, "cancelled")
  nvim:wait_screen_without("Which store")
end)
