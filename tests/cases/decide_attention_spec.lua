-- Attention: the user is called when they are not looking, and left alone when they are.

local T = require("harness")

---@param command string
---@return table step
local function asks(command)
  return { permission = { toolCall = { toolCallId = command, title = ("`%s`"):format(command), kind = "execute" } } }
end

---What was said by `vim.notify` since this was called.
---@param nvim harness.Child
local function listen(nvim)
  nvim:lua([[
    _G.said = {}
    vim.notify = function(text) table.insert(_G.said, text) end
  ]])
end

---@param nvim harness.Child
---@return string[]
local function said(nvim)
  return nvim:lua("return _G.said")
end

T.case("no message while the chat is in view", { width = 100 }, function(nvim)
  nvim:use(T.agent({ turns = { { asks("make") } } }))
  listen(nvim)
  nvim:prompt("go")
  nvim:wait_screen("$ make")
  nvim:lua("require('cursor_agent').accept()")
  nvim:wait_turns(1)
  nvim:wait_state("idle")
  T.eq(said(nvim), {})
end)

T.case("Neovim unfocused: a decision and the end of a turn are told", { width = 100 }, function(nvim)
  nvim:use(T.agent({ turns = { { asks("make") }, { { text = "Hi." } } } }))
  listen(nvim)
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  nvim:api("nvim_ui_set_focus", false)
  nvim:prompt("go")
  nvim:wait("#_G.said == 1", "a word about the decision")
  T.eq(said(nvim)[1], "cursor-agent: test asks to run a command: make (go)")
  nvim:lua("require('cursor_agent').accept()")
  nvim:wait("#_G.said == 2", "a word about the end")
  T.contains(said(nvim)[2], "cursor-agent: test finished: go")
  nvim:api("nvim_ui_set_focus", true)
  nvim:prompt("again")
  nvim:wait_turns(2)
  nvim:wait_state("idle")
  T.eq(#said(nvim), 2, "back in view")
end)

T.case("the chat hidden: told as well, but not of what the user stopped", { width = 100 }, function(nvim)
  nvim:use(T.agent({
    turns = { { asks("make") }, { { text = "Hi." } }, { { error = { code = -32603, message = "No luck" } } } },
  }))
  listen(nvim)
  nvim:prompt("go", { open = false })
  nvim:wait("#_G.said == 1", "a word about the decision")
  nvim:lua("require('cursor_agent').cancel()")
  T.eq(nvim:wait_turns(1).stop_reason, "cancelled")
  nvim:prompt("again", { open = false })
  nvim:wait_turns(2)
  nvim:wait("#_G.said == 2", "a word about the second turn only")
  T.contains(said(nvim)[2], "test finished")
  nvim:prompt("fail", { open = false })
  nvim:wait_turns(3)
  nvim:wait("#_G.said == 3", "a word about the failure")
  T.contains(said(nvim)[3], "No luck")
end)

T.case("the option silences it", { width = 100 }, function(nvim)
  local steps = {}
  for i = 1, 30 do
    local step = asks("run " .. i)
    step.wait, step.name = false, "p" .. i
    steps[#steps + 1] = step
  end
  steps[#steps + 1] = { join = "p1" }
  nvim:use(T.agent({ turns = { steps } }), { attention = { notify = false } })
  listen(nvim)
  nvim:prompt("go", { open = false })
  nvim:wait("#require('cursor_agent').pending(1) == 30", "all of them")
  nvim:wait_screen("1 of 30")
  T.eq(said(nvim), {})
end)

T.case("what a terminal is sent cannot be more than a notification", function(nvim)
  local sent = nvim:lua([[
    local sequence = require("cursor_agent.decide.attention").sequence
    return {
      sequence("bell", "x", true),
      sequence("osc9", "done: a", false),
      sequence("osc777", "a;b", false),
      sequence("osc9", "x\27]52;c;evil\7\n\194\155y\r", false),
      sequence("osc9", "a", true),
      sequence("off", "a", false) or "nothing",
    }
  ]])
  T.eq(sent[1], "\7")
  T.eq(sent[2], "\27]9;done: a\7")
  T.eq(sent[3], "\27]777;notify;cursor-agent;a,b\7")
  T.eq(sent[4], "\27]9;x ]52;c;evil   y \7")
  T.eq(sent[5], "\27Ptmux;\27\27]9;a\7\27\\")
  T.eq(sent[6], "nothing")
end)

T.case("a real terminal gets it", { width = 100 }, function(nvim)
  local agent = T.agent({ turns = { { asks("make") } } })
  local file = assert(io.open(nvim.dir .. "/inner.lua", "wb"))
  file:write(([[
    vim.opt.runtimepath:prepend(%q)
    vim.o.swapfile = false
    require("cursor_agent").setup({ agent = "test", agents = { test = vim.json.decode(%q) }, attention = { terminal = "osc9" } })
    vim.api.nvim_create_autocmd("VimEnter", {
      callback = vim.schedule_wrap(function()
        require("cursor_agent").prompt("go", { open = false })
      end),
    })
  ]]):format(T.root, vim.json.encode(agent.options)))
  file:close()
  nvim:lua(
    [[
      local program, init = ...
      _G.raw = ""
      _G.job = vim.fn.jobstart({ program, "--clean", "-u", init }, {
        pty = true,
        width = 80,
        height = 24,
        env = { TMUX = "", TERM = "xterm-256color" },
        clear_env = false,
        on_stdout = function(_, data) _G.raw = _G.raw .. table.concat(data, "\n") end,
      })
    ]],
    vim.v.progpath,
    nvim.dir .. "/inner.lua"
  )
  nvim:wait(
    [[_G.raw:find("[^\27]\27%]9;test asks to run a command: make %(go%)\7") ~= nil or nil]],
    "the sequence on the terminal",
    20000
  )
  nvim:lua("vim.fn.chansend(_G.job, '\\27:qall!\\r') vim.fn.jobwait({ _G.job }, 5000)")
end)

---An agent that says much, and asks after it.
---@return harness.Agent
local function talks_and_asks()
  local lines = table.concat(vim.fn.map(vim.fn.range(1, 60), "'line ' . v:val"), "\n\n")
  local ask = { permission = { toolCall = { toolCallId = "t", title = "`make all`", kind = "execute" } } }
  return T.agent({ turns = { { { text = lines .. "\n\nI have to build it.\n" }, ask } } })
end

---@param nvim harness.Child
---@param text string
---@return integer?
local function row_of(nvim, text)
  for row, line in ipairs(nvim:screen()) do
    if line:find(text, 1, true) then
      return row
    end
  end
end

T.case(
  "the card leaves what the agent says, and the state of the chat, in sight",
  { width = 120, height = 30 },
  function(nvim)
    nvim:use(talks_and_asks(), { attention = { notify = false } })
    nvim:cmd("CursorAgent")
    nvim:wait_state("idle")
    nvim:keys("go<C-s>")
    nvim:wait_screen("asks to run a command")
    nvim:wait_screen("I have to build it.")
    nvim:wait_screen("1 waiting")
    -- The card stands on the prompt, and the last words on the card.
    nvim:wait(function()
      local words, card = row_of(nvim, "I have to build it."), row_of(nvim, "asks to run")
      local prompt = row_of(nvim, "Next prompt")
      return words and card and prompt and words < card and card < prompt
    end, "the words above the card above the prompt")
    nvim:cmd("stopinsert | wincmd h")
    nvim:wait_screen("I have to build it.")
    nvim:wait_screen("1 waiting")
    nvim:cmd("CursorAgent accept")
    nvim:wait_screen_without("asks to run a command")
    -- The room is the chat's again.
    nvim:wait(function()
      local words = row_of(nvim, "I have to build it.")
      return words and words > 18
    end, "the last words at the foot of the chat")
  end
)

T.case("of a paragraph too high for the room above a card its end is shown", { width = 80, height = 24 }, function(nvim)
  local paragraph = ("many words "):rep(24) .. "and the last of them."
  local ask = { permission = { toolCall = { toolCallId = "t", title = "`make all`", kind = "execute" } } }
  nvim:use(T.agent({ turns = { { { text = paragraph .. "\n" }, ask } } }), { attention = { notify = false } })
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  nvim:keys("go<C-s>")
  nvim:wait_screen("asks to run a command")
  nvim:wait(function()
    local words, asked, card =
      row_of(nvim, "last of them."), row_of(nvim, "needs approval"), row_of(nvim, "asks to run")
    return words and asked and card and words < asked and card - asked <= 2
  end, "the end of the paragraph, and no blank rows above the card")
  nvim:keys("<Esc>:CursorAgent accept<CR>")
  nvim:wait_screen_without("asks to run a command")
  nvim:wait_screen("▎ go")
  T.eq(nvim:lua("return vim.wo[vim.fn.win_findbuf(vim.fn.bufnr('/chat'))[1]].smoothscroll"), false)
end)

T.case("a chat that another one replaced under a card has its room again", { width = 120, height = 30 }, function(nvim)
  nvim:use(talks_and_asks(), { attention = { notify = false } })
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  nvim:keys("go<C-s>")
  nvim:wait(function()
    local words, card = row_of(nvim, "I have to build it."), row_of(nvim, "asks to run")
    return words and card and words < card
  end, "the words above the card")
  nvim:cmd("stopinsert")
  nvim:lua("_G.first = require('cursor_agent.chat.registry').current()")
  nvim:cmd("CursorAgent new")
  nvim:wait_screen_without("I have to build it.")
  nvim:wait_screen("asks to run")
  nvim:cmd("stopinsert | wincmd h")
  nvim:wait(
    "next(require('cursor_agent.chat.registry').current().transcript.tail.hidden) ~= nil",
    "the other chat under the card"
  )
  nvim:cmd("CursorAgent accept")
  nvim:wait_screen_without("asks to run")
  nvim:lua("require('cursor_agent.chat.layout').open(_G.first)")
  nvim:wait_screen("I have to build it.")
  nvim:wait(function()
    return row_of(nvim, "I have to build it.") > 18
  end, "the last words at the foot of the chat")
end)

T.case("the card lies over a chat in a float", { width = 100, height = 30 }, function(nvim)
  local ask = { permission = { toolCall = { toolCallId = "t", title = "`make all`", kind = "execute" } } }
  nvim:use(T.agent({ turns = { { ask } } }), { attention = { notify = false }, window = { position = "float" } })
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  nvim:keys("go<C-s>")
  nvim:wait_screen("<M-y> allow · <M-n> reject")
end)
