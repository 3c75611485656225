-- Agents that are missing, break down or talk nonsense: one clear message, and Neovim goes on.

local T = require("harness")

---The messages a person was shown, in one text.
---@param child harness.Child
---@return string
local function shown(child)
  return child:messages()
end

T.case("a program that is not there is named once, with what to do", { width = 120 }, function(child)
  child:use({ options = { command = { "/nowhere/at/all/agent", "acp" } } }, {
    agents = { test = { install_hint = "Install it with care." } },
  })
  child:lua("require('cursor_agent').prompt('hello')")
  child:wait_state("failed")
  local error = child:status().error
  T.contains(error, "/nowhere/at/all/agent acp")
  T.contains(error, "Install it with care.")
  child:wait(function()
    return shown(child):find("/nowhere/at/all/agent", 1, true)
  end, "the message")
  local _, times = shown(child):gsub("could not run", "")
  T.eq(times, 1)
  T.eq(child:lua("return 1 + 1"), 2)
end)

T.case(
  "Cursor's CLI missing: how to install it and to log in",
  { width = 120, env = { PATH = "/nowhere" } },
  function(child)
    child:lua("require('cursor_agent').prompt('hello')")
    child:wait_state("failed")
    T.contains(child:status().error, "agent login")
  end
)

T.case("an agent that exits at once is shown with its code and its stderr", { width = 120 }, function(child)
  local agent = T.agent({ start = { { stderr = "Cannot use this model: composer-9.\n" }, { exit = 1 } } })
  child:use(agent)
  child:lua("require('cursor_agent').prompt('hello')")
  child:wait_state("failed")
  local error = child:status().error
  T.contains(error, "exit 1")
  T.contains(error, "Cannot use this model: composer-9.")
  T.contains(error, ":CursorAgent restart")
end)

T.case("an agent that exits in a turn keeps its text; restart goes on", function(child)
  local agent = T.agent({
    runs = {
      { turns = { { { text = "half an ans" }, { stderr = "out of memory\n" }, { exit = 3 } } } },
      { turns = { { { text = "a whole answer" } } } },
    },
  })
  child:use(agent)
  child:prompt("hello")
  local ended = child:wait_turns(1)
  T.contains(ended.error, "exit 3")
  T.contains(ended.error, "out of memory")
  child:wait_state("failed")
  T.eq(child:texts("agent"), { "half an ans" })
  local exits = child:wait(function()
    local events = child:events("CursorAgentExit")
    return #events > 0 and events
  end, "the event of its end")
  T.eq(#exits, 1)
  T.eq(exits[1].code, 3)
  T.contains(exits[1].stderr, "out of memory")

  child:cmd("CursorAgent restart")
  child:wait_state("idle")
  child:prompt("again")
  child:wait_turns(2)
  T.eq(child:texts("agent"), { "half an ans", "a whole answer" })
end)

T.case("an agent killed in a turn is shown with its signal", function(child)
  local agent = T.agent({ turns = { { { text = "half" }, { signal = 9 } } } })
  child:use(agent)
  child:prompt("hello")
  T.contains(child:wait_turns(1).error, "signal 9")
  child:wait_state("failed")
end)

T.case("junk between the lines is skipped", function(child)
  local agent = T.agent({
    start = { { raw = "Welcome to the agent!\n" } },
    turns = {
      {
        { text = "before " },
        { raw = "not JSON at all\n" },
        { raw = "\n" },
        { raw = "[1, 2, 3]\n" },
        { raw = '"a string"\n' },
        { raw = '{"jsonrpc":"2.0"}\n' },
        { raw = '{"jsonrpc":"2.0","method":"session/upd\n' },
        { raw_hex = "fffe00800a" },
        { text = "after" },
      },
    },
  })
  child:use(agent)
  child:prompt("hello")
  T.eq(child:wait_turns(1).stop_reason, "end_turn")
  T.eq(child:texts("agent"), { "before after" })
end)

T.case("a line may end in CRLF and come in pieces, split inside a character", function(child)
  local head = '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"the-session","update":'
    .. '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'
  local agent = T.agent({
    -- Cursor's profile speaks up by itself a moment after session/new: it would speak into the line.
    profile = "plain",
    session = { sessionId = "the-session" },
    turns = {
      {
        { raw = head .. "gr" },
        { raw_hex = "c3" },
        -- Long enough for the first piece to be read by itself.
        { wait_ms = 50 },
        { raw_hex = "bc" },
        { raw = 'n"}}}}\r\n' },
      },
    },
  })
  child:use(agent)
  child:prompt("hello")
  child:wait_turns(1)
  T.eq(child:texts("agent"), { "grün" })
end)

T.case("an unknown request is answered as such", function(child)
  local agent = T.agent({
    turns = { { { request = { method = "nobody/knows", params = { a = 1 } }, wait = true }, { text = "went on" } } },
  })
  child:use(agent)
  child:prompt("hello")
  child:wait_turns(1)
  T.eq(child:texts("agent"), { "went on" })
  local answers = agent:answers("nobody/knows")
  T.eq(#answers, 1)
  T.eq(answers[1].error.code, -32601)
end)

T.case("a line of 50 MB arrives, and Neovim answers meanwhile", { deadline_ms = 120000 }, function(child)
  local line = ("x"):rep(99) .. "\n"
  local agent = T.agent({ turns = { { { big_text = { text = line, times = 524288 } }, { text = "the end" } } } })
  child:use(agent)
  -- The longest time the main loop was away, by a timer that should fire every 10 ms.
  child:lua([[
    _G.longest, _G.last = 0, vim.uv.now()
    vim.uv.new_timer():start(0, 10, function()
      vim.uv.update_time()
      _G.longest = math.max(_G.longest, vim.uv.now() - _G.last)
      _G.last = vim.uv.now()
    end)
  ]])
  local began = vim.uv.hrtime()
  child:prompt("talk")
  child:wait_turns(1, 110000)
  local took = (vim.uv.hrtime() - began) / 1e6
  T.eq(child:status().state, "idle")
  local longest = child:lua("return _G.longest")
  local length, tail = unpack(child:lua([[
    local text = ""
    for _, entry in ipairs(require("cursor_agent").transcript()) do
      if entry.kind == "agent" then text = text .. entry.text end
    end
    return { #text, text:sub(-7) }
  ]]))
  T.eq(length, 52428800 + 7)
  T.eq(tail, "the end")
  -- Asked for before the transcript was, which copies all of it at once.
  -- A small part of the time that all of it takes: the machine's speed is not what is tested.
  T.ok(longest < math.max(2000, took / 4), ("Neovim was away for %d of %d ms"):format(longest, took))
  T.ok(
    child:lua("return vim.fn.line('$', vim.fn.bufwinid('cursor-agent-term://1/chat'))") > 524288,
    "the chat holds every line"
  )
end)

T.case("a line beyond the cap is skipped with a clear message", { deadline_ms = 120000, width = 120 }, function(child)
  local agent = T.agent({
    turns = { { { raw_repeat = { text = ("x"):rep(1024), times = 65 * 1024 } }, { raw = "\n" }, { text = "went on" } } },
  })
  child:use(agent)
  child:prompt("talk")
  T.eq(child:wait_turns(1, 110000).stop_reason, "end_turn")
  T.eq(child:texts("agent"), { "went on" })
  child:wait(function()
    return shown(child):find("64 MiB", 1, true)
  end, "the message")
end)
