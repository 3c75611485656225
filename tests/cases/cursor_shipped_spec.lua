-- The shipped scenario and the tour: Cursor's tool calls, todos, questions and failures as they are today, by keys.

local T = require("harness")

---@param nvim harness.Child
---@param what string
local function enter(nvim, what)
  nvim:wait_screen(what)
  nvim:keys(":CursorAgent decisions<CR>")
  nvim:wait("vim.bo.filetype == 'cursoragent-decision'", "the card to be entered")
  nvim:wait_card()
end

T.case("the scenario of October 2026, turn by turn", { width = 110, height = 50 }, function(nvim)
  nvim:use({ options = { command = { T.program, "play", "cursor-2026-10" } } }, {
    attention = { notify = false },
    chat = { fold_tools = false },
  })
  nvim:prompt("edit")
  nvim:wait_turns(1)
  nvim:wait_screen("Edit   hello.lua  +2")
  T.ok(not nvim:sees("/dev/null"), "no header")
  local states = nvim:lua([[
    return vim.iter(require("cursor_agent").changes())
      :map(function(c) return vim.fs.basename(c.path) .. " " .. c.state end)
      :totable()
  ]])
  T.eq(states, { "notes.md modified", "hello.lua created" })

  nvim:prompt("count")
  nvim:wait_screen("2 matches")
  enter(nvim, "wc -l notes.md missing.md")
  nvim:keys("r")
  nvim:wait_turns(2)
  nvim:wait_screen("– Run    wc -l notes.md missing.md")
  nvim:wait_screen("rejected")

  nvim:prompt("todos")
  nvim:wait_turns(3)
  local todos = nvim:lua([[
    return vim.iter(require("cursor_agent").status().todos):map(function(t) return t.content .. ": " .. t.status end):totable()
  ]])
  T.eq(todos, { "Read the code: completed", "Write the change: completed", "Check it: in_progress" })

  nvim:prompt("ask")
  enter(nvim, "Which indentation?")
  nvim:keys("j<CR>")
  nvim:wait_turns(4)
  nvim:wait_screen("Spaces it is.")

  nvim:prompt("fail")
  local ended = nvim:wait_turns(5)
  T.eq(ended.stop_reason, "error")
  T.contains(ended.error, "The model provider is overloaded")
  nvim:wait_screen("── failed")
end)

T.case("the tour fails once and works when the prompt is sent again", { width = 110, height = 40 }, function(nvim)
  local options = { command = { T.program, "acp" }, env = { CURSOR_AGENT_DEMO_SPEED = "fast" } }
  nvim:use({ options = options }, { attention = { notify = false } })
  nvim:prompt("fail")
  T.contains(nvim:wait_turns(1).error, ":CursorAgent retry")
  nvim:wait_screen("── failed")
  nvim:keys(":CursorAgent retry<CR>")
  T.eq(nvim:wait_turns(2).error, nil)
  nvim:wait_screen("This time it worked.")

  nvim:prompt("ask")
  enter(nvim, "Which indentation do you prefer?")
  nvim:keys("s<CR>")
  enter(nvim, "Which colour should the greeting be?")
  nvim:keys("2<CR>")
  nvim:wait_turns(3)
  nvim:wait_screen("colour: blue")

  nvim:prompt("todos")
  nvim:wait_turns(4)
  T.eq(#nvim:lua("return require('cursor_agent').status().todos"), 4)
end)
