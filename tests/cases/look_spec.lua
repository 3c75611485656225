-- The states of a chat as a person sees them: at 80 and 120 columns, on a dark and on a light ground.

local T = require("harness")

local ANSWER = "## What I found\n\nThe **list rule** stops at `expr`:\n\n| rule | line |\n|---|---:|\n| list | 41 |\n| expression | 7 |\n\n"
  .. "- nothing eats the comma\n- [x] looked at the tests\n\n> see the grammar\n\n---\n\nDone.\n"

local QUESTION = {
  method = "cursor/ask_question",
  params = {
    toolCallId = "q",
    title = "Store",
    questions = {
      {
        id = "store",
        prompt = "Which store should sessions use?",
        options = { { id = "a", label = "SQLite" }, { id = "b", label = "JSON lines" } },
      },
    },
  },
}

---@type table<string, { steps: table[], waits: string }>
local STATES = {
  answer = { steps = { { text = ANSWER } }, waits = "Done." },
  permission = {
    steps = {
      { text = "I will run the tests.\n" },
      { permission = { toolCall = { toolCallId = "t", title = "`cargo test parser`", kind = "execute" } } },
    },
    waits = "<M-y> allow",
  },
  question = { steps = { { request = QUESTION, wait = true } }, waits = "JSON lines" },
}

for name, state in vim.spairs(STATES) do
  for _, width in ipairs({ 80, 120 }) do
    for _, ground in ipairs({ "dark", "light" }) do
      T.case(
        ("%s at %d columns, %s"):format(name, width, ground),
        { width = width, height = 32, files = { ["a.lua"] = "return {}\n" } },
        function(nvim)
          nvim:cmd("set background=" .. ground)
          nvim:use(T.agent({ turns = { state.steps } }))
          nvim:cmd("edit a.lua")
          nvim:prompt("Make the parser accept trailing commas")
          nvim:wait_screen(state.waits)
          nvim:expect_screen(("look-%s-%d-%s"):format(name, width, ground))
        end
      )
    end
  end
end
