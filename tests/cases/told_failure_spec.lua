-- Turns that fail by what their text says: marked, told with what to do, and sent again.

local T = require("harness")

local ERROR = "I will look.\n\nError: RetriableError: [unavailable] Error"

T.case("a failure told as text fails the turn; R sends the prompt again", { width = 100 }, function(nvim)
  local agent = T.agent({
    turns = {
      { { text = "I will look.\n\nErr" }, { text = "or: RetriableError: [unavailable] Error" } },
      { { text = "Here it is." } },
    },
  })
  nvim:use(agent)
  nvim:prompt("find it")
  local ended = nvim:wait_turns(1)
  T.eq(ended.stop_reason, "error")
  T.contains(ended.error, "RetriableError: [unavailable] Error")
  T.contains(ended.error, ":CursorAgent retry")
  nvim:wait_screen("── failed")
  nvim:wait_screen("Try again in a moment")
  nvim:wait_screen(":CursorAgent retry sends the prompt again")
  T.eq(nvim:texts("agent"), { ERROR })
  T.eq(nvim:status().error, ended.error)
  T.eq(nvim:status().state, "idle")
  nvim:keys(":CursorAgent open<CR><Esc><C-w>k")
  nvim:wait("vim.bo.filetype == 'cursoragent'", "the chat to be entered")
  nvim:keys("R")
  T.eq(nvim:wait_turns(2).stop_reason, "end_turn")
  nvim:wait_screen("Here it is.")
  local sent = agent:received("session/prompt")
  T.eq(#sent, 2)
  T.eq(sent[2].params.prompt, sent[1].params.prompt)
  T.eq(nvim:status().error, nil)
end)

T.case("each failure says what to do, also in the notification", { width = 120 }, function(nvim)
  local table = {
    { "Error: ActionRequiredError: [unauthenticated] Error", ":CursorAgent login" },
    { "a\n\nPlease sign in to continue.", ":CursorAgent login" },
    { "Limit reached. Upgrade your plan to continue", "Upgrade your plan at https://" },
    { "a\n\nAdd a payment method to continue", "Add a payment method at https://" },
    { "a\n\nCheck your settings to continue", "Check your settings at https://" },
    { "a\n\nError: NonRetriableError: no", "change the prompt or the model" },
    { "a\n\nError: CancelledError", "Try again in a moment" },
    { "a\n\nError: ActionRequiredError: see (Request ID: 1-2)\n", "Your account needs attention" },
    { "a\n\nError: ConnectError: [unauthenticated] Error  \n\n", ":CursorAgent login" },
    { "Upgrade your plan to continue. Request ID: 1-2", "Upgrade your plan at https://" },
  }
  local turns = {}
  for i, row in ipairs(table) do
    turns[i] = { { text = row[1] } }
  end
  nvim:use(T.agent({ turns = turns }))
  for i, row in ipairs(table) do
    nvim:prompt("go", { open = false })
    local ended = nvim:wait_turns(i)
    T.contains(ended.error, row[2])
    nvim:wait(function()
      return nvim:messages():find(row[2], 1, true)
    end, "the notification of " .. row[1])
  end
  T.contains(nvim:messages(), "failed (go): ")
end)

T.case("an answer about errors is an answer", { width = 100 }, function(nvim)
  local answers = {
    "The log has:\n\n```\nError: RetriableError: x\n```",
    "Error: RetriableError: x\n\nI tried again and it worked.",
    "`[unauthenticated]` means that you are not signed in.",
    'The button says "Please sign in to continue".',
    "You said: Error: RetriableError: [unavailable]",
    "Server is up. Please sign in to continue.",
    "I added the banner. Upgrade your plan to continue.",
    "The page says:\n\nPlease sign in to continue.",
    "The log shows this:\n\nError: NonRetriableError: bad model",
    "- The log:\n\n  Error: RetriableError: x",
    "[unauthenticated]: you are not signed in.",
  }
  local turns = {}
  for i, text in ipairs(answers) do
    turns[i] = { { text = text } }
  end
  nvim:use(T.agent({ turns = turns }), { attention = { notify = false } })
  for i in ipairs(answers) do
    nvim:prompt("explain")
    local ended = nvim:wait_turns(i)
    T.eq({ ended.stop_reason, ended.error }, { "end_turn" })
  end
  T.eq(nvim:status().error, nil)
  T.ok(not nvim:sees("── failed"), "nothing is marked")
end)

T.case("there is nothing to send again before a prompt, nor while a turn runs", { width = 100 }, function(nvim)
  nvim:use(T.agent({ turns = { { { text = "a" }, { wait_cancel = true } } } }), { attention = { notify = false } })
  nvim:keys(":CursorAgent retry<CR>")
  nvim:wait_screen("no chat in this tab")
  nvim:lua("require('cursor_agent').open({ enter = false })")
  nvim:wait_state("idle")
  nvim:keys(":CursorAgent retry<CR>")
  nvim:wait_screen("no prompt has been sent in this chat yet")
  nvim:prompt("go")
  nvim:wait_state("running")
  nvim:keys(":CursorAgent retry<CR>")
  nvim:wait_screen("a turn is running")
  nvim:cmd("CursorAgent cancel")
  nvim:wait_turns(1)
end)

T.case("after a login the agent starts again, and the prompt can be sent again", { width = 100 }, function(nvim)
  local agent = T.agent({
    runs = {
      { turns = { { { text = "Error: ActionRequiredError: [unauthenticated] Error" } } } },
      { turns = { { { text = "Welcome back." } } } },
    },
  })
  nvim:use(agent, { attention = { notify = false }, agents = { test = { login_command = { "true" } } } })
  nvim:prompt("hello")
  T.contains(nvim:wait_turns(1).error, ":CursorAgent login")
  nvim:wait_screen(":CursorAgent login logs in")
  nvim:keys(":CursorAgent login<CR>")
  nvim:wait(function()
    return #agent:notes("start") == 2
  end, "the agent to start again")
  nvim:wait_state("idle")
  nvim:keys(":CursorAgent retry<CR>")
  T.eq(nvim:wait_turns(2).stop_reason, "end_turn")
  nvim:wait_screen("Welcome back.")
end)
