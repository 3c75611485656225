-- Rules: what they allow, what they must never allow, and the line each automatic answer leaves.

local T = require("harness")

T.case("a rule with a mistake is named, and then everything is asked", function(nvim)
  nvim:lua([[
    require("cursor_agent").setup({
      policy = { { comand = "ls", action = "allow" }, { action = "permit" }, { kind = 3, action = "ask" }, { action = "allow" } },
    })
  ]])
  local problems = table.concat(nvim:lua("return require('cursor_agent.config').problems"), "\n")
  T.contains(problems, "option `policy`: rule 1: unknown key `comand`")
  T.contains(problems, "option `policy`: rule 2: `action` must be allow, ask or reject")
  T.contains(problems, "option `policy`: rule 3: `kind` must be a string or a list of strings")
  T.eq(nvim:lua("return require('cursor_agent.config').get().policy"), {})
end)

---@param id string
---@param command string
---@return table step
local function asks(id, command)
  local call = { toolCallId = id, title = ("`%s`"):format(command), kind = "execute" }
  return { permission = { toolCall = call } }
end

T.case("answers by themselves, each with a line that names the rule", { width = 90 }, function(nvim)
  local agent = T.agent({ turns = { { asks("1", "cargo test"), asks("2", "rm -rf x"), asks("3", "make") } } })
  nvim:use(agent, {
    policy = {
      { name = "tests", command = "cargo test *", action = "allow" },
      { kind = "execute", command = "rm *", action = "reject" },
    },
  })
  nvim:prompt("go")
  nvim:wait_screen("$ make")
  T.eq(agent:outcomes(), { "allow-once", "reject-once" })
  T.eq(nvim:texts("notice"), {
    "allowed by rule `tests`: cargo test",
    "rejected by rule 2 (execute rm *): rm -rf x",
  })
  T.eq(#nvim:events("CursorAgentDecision"), 1, "only what waits for the user is an event")
  nvim:wait_screen("allowed by rule `tests`: cargo test")
end)

T.case("a rule never answers for good: without a way to allow once the user is asked", { width = 90 }, function(nvim)
  local step = asks("1", "ls")
  step.permission.options = {
    { optionId = "always", name = "Always", kind = "allow_always" },
    { optionId = "no", name = "No", kind = "reject_once" },
  }
  local agent = T.agent({ turns = { { step } } })
  nvim:use(agent, { policy = { { action = "allow" } } })
  nvim:prompt("go", { open = false })
  nvim:wait_screen("$ ls")
  T.contains(nvim:lua("return select(2, require('cursor_agent').accept())"), "has no option to allow once")
  T.eq(agent:outcomes(), {})
end)

T.case(
  "“always” is remembered for the session when an agent forgets it, if the user chose it",
  { width = 90 },
  function(nvim)
    local agent = T.agent({
      turns = {
        { asks("1", "make"), asks("2", "make"), asks("3", "make clean") },
        { asks("4", "make clean"), asks("5", "make") },
        { asks("6", "make") },
      },
    })
    nvim:use(agent)
    nvim:lua("require('cursor_agent.decide').SETTLE_MS = 0")
    nvim:prompt("go", { open = false })
    nvim:wait_screen("$ make")
    nvim:cmd("CursorAgent decisions")
    nvim:keys("A")
    nvim:wait_screen("$ make clean")
    T.eq(agent:outcomes(), { "allow-always", "allow-once" })
    T.contains(nvim:texts("notice")[1], "allowed by your “always” of ")
    nvim:cmd("CursorAgent decisions")
    nvim:keys("a")
    nvim:wait_turns(1)
    nvim:prompt("again", { open = false })
    nvim:wait_screen("$ make clean")
    T.eq(#agent:outcomes(), 3, "what was allowed once is asked again")
    nvim:lua("require('cursor_agent').reject()")
    nvim:wait_turns(2)
    T.eq(agent:outcomes(), { "allow-always", "allow-once", "allow-once", "reject-once", "allow-once" })
    -- Another session has not been told.
    nvim:lua("require('cursor_agent').new({ open = false })")
    nvim:prompt("go", { open = false })
    nvim:wait("#require('cursor_agent').pending() == 1", "the new session to ask")
  end
)
