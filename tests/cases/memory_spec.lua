-- Conversations on disk: kept as they grow, shown again, gone on with, searched, renamed, deleted.

local T = require("harness")

local HISTORY = {
  { sessionUpdate = "user_message_chunk", content = { type = "text", text = "fix the parser" } },
  { sessionUpdate = "agent_message_chunk", content = { type = "text", text = "The lexer is at fault." } },
}

---An agent that says something, thinks, and runs a tool.
local TURN = {
  { thought = "hm, lists" },
  { text = "The lexer is at fault." },
}

---@param nvim harness.Child
---@return string
local function root(nvim)
  return nvim:lua("return vim.fn.stdpath('data') .. '/cursor-agent/sessions'")
end

---@param nvim harness.Child
---@return string[]
local function files(nvim)
  return vim.fn.glob(root(nvim) .. "/*/*.chat", true, true)
end

---@param nvim harness.Child
---@param code string ends by calling `done(value, why)`
---@return any
local function later(nvim, code)
  nvim:lua(([[
    _G.later = nil
    local function done(value, why) _G.later = { value = value, why = why } end
    local agent = require("cursor_agent")
    local past = require("cursor_agent.chat.past")
    local asked, why = (function() %s end)()
    if not asked then done(nil, why) end
  ]]):format(code))
  return nvim:wait(function()
    return nvim:lua("return _G.later")
  end, "the answer")
end

---Ends Neovim and starts it again with another agent.
---@param nvim harness.Child
---@param scenario table
---@return harness.Agent
local function again(nvim, scenario)
  if not nvim:gone() then
    nvim:quit("qa!")
    nvim:wait_exit()
  end
  nvim:again()
  local agent = T.agent(scenario)
  nvim:use(agent)
  return agent
end

local function kinds(nvim)
  return nvim:lua([[
    return vim.tbl_map(function(entry) return entry.kind .. ": " .. entry.text end, require("cursor_agent").transcript())
  ]])
end

T.case("a conversation outlives Neovim, and the agent's replay shows nothing twice", function(nvim)
  nvim:use(T.agent({ turns = { TURN } }))
  nvim:prompt("fix the parser")
  nvim:wait_turns(1)
  local before = kinds(nvim)
  local sessions = { { sessionId = "session-1", updates = HISTORY } }
  local agent = again(nvim, { sessions = sessions, turns = { { { text = "And on." } } } })
  nvim:lua("require('cursor_agent').load('session-1')")
  nvim:wait_screen("The lexer is at fault.")
  nvim:wait_state("idle")
  T.eq(#agent:received("session/load"), 1)
  T.eq(kinds(nvim), before)
  nvim:prompt("go on")
  nvim:wait_turns(1)
  T.eq(#agent:received("session/new"), 0)
  T.eq(#files(nvim), 1, "the same file goes on")
  T.eq(kinds(nvim)[#before + 1], "user: go on")
end)

T.case("the sessions of an agent that cannot list them are listed, and loaded by id", function(nvim)
  -- Gemini.
  local cannot = { agentCapabilities = { sessionCapabilities = { list = vim.NIL, resume = vim.NIL } } }
  nvim:use(T.agent({ profile = "plain", initialize = cannot, turns = { TURN } }))
  nvim:prompt("fix the parser")
  nvim:wait_turns(1)
  local sessions = { { sessionId = "session-1", updates = HISTORY } }
  local turns = { { { text = "And on." } } }
  local agent = again(nvim, { profile = "plain", initialize = cannot, sessions = sessions, turns = turns })
  local listed = later(nvim, "return agent.sessions(done)").value
  T.eq({ #listed, listed[1].id, listed[1].source }, { 1, "session-1", "stored" })
  nvim:cmd("CursorAgent load session-1")
  nvim:wait_screen("The lexer is at fault.")
  nvim:wait_state("idle")
  T.eq(agent:received("session/load")[1].params.sessionId, "session-1")
  nvim:prompt("go on")
  nvim:wait_screen("And on.")
  T.eq({ #agent:received("session/new"), #agent:received("session/list") }, { 0, 0 })
end)

T.case("a replay that begins long after the answer shows nothing twice, and no prompt is sent into it", function(nvim)
  nvim:use(T.agent({ turns = { TURN } }))
  nvim:prompt("fix the parser")
  nvim:wait_turns(1)
  local before = kinds(nvim)
  -- As Gemini on a busy machine.
  local load = { { reply = vim.empty_dict() }, { wait_ms = 1000 } }
  for _, update in ipairs(HISTORY) do
    load[#load + 1] = { update = update, session = "session-1" }
  end
  load[#load + 1] = { note = "replayed" }
  local agent = again(nvim, {
    initialize = { agentCapabilities = { loadSession = true } },
    on = { ["session/load"] = load },
    turns = { { { text = "And on." } }, { { text = "More." } } },
  })
  nvim:lua("require('cursor_agent').load('session-1')")
  nvim:wait_screen("The lexer is at fault.")
  nvim:prompt("go on")
  nvim:wait_turns(1)
  nvim:wait(function()
    return #agent:notes("replayed") == 1
  end, "the replay")
  nvim:prompt("more")
  nvim:wait_turns(2)
  T.eq(kinds(nvim), vim.list_extend(before, { "user: go on", "agent: And on.", "user: more", "agent: More." }))
end)

T.case("a prompt sent while a conversation is loaded is sent once it is there", function(nvim)
  nvim:use(T.agent({ turns = { TURN } }))
  nvim:prompt("fix the parser")
  nvim:wait_turns(1)
  local before = kinds(nvim)
  local agent = again(nvim, {
    sessions = { { sessionId = "session-1", updates = HISTORY } },
    turns = { { { text = "And on." } } },
    on = { ["session/load"] = { { wait_ms = 200 }, { profile = true } } },
  })
  nvim:lua("require('cursor_agent').load('session-1')")
  nvim:prompt("go on")
  nvim:wait_turns(1)
  T.eq(kinds(nvim), vim.list_extend(before, { "user: go on", "agent: And on." }))
  T.eq(#agent:received("session/prompt"), 1)
end)

T.case("what the agent knows beyond that is added", function(nvim)
  nvim:use(T.agent({ turns = { TURN } }))
  nvim:prompt("fix the parser")
  nvim:wait_turns(1)
  local before = kinds(nvim)
  local history = vim.list_extend(vim.deepcopy(HISTORY), {
    { sessionUpdate = "agent_message_chunk", content = { type = "text", text = " It drops commas." } },
    { sessionUpdate = "user_message_chunk", content = { type = "text", text = "said elsewhere" } },
    { sessionUpdate = "agent_message_chunk", content = { type = "text", text = "answered elsewhere" } },
  })
  again(nvim, { sessions = { { sessionId = "session-1", updates = history } } })
  nvim:lua("require('cursor_agent').load('session-1')")
  nvim:wait_screen("answered elsewhere")
  nvim:wait_state("idle")
  before[#before] = "agent: The lexer is at fault. It drops commas."
  T.eq(kinds(nvim), vim.list_extend(before, { "user: said elsewhere", "agent: answered elsewhere" }))
end)

T.case("where the agent has forgotten it, the next prompt carries it into a new session", function(nvim)
  nvim:use(T.agent({ turns = { TURN } }))
  nvim:prompt("fix the parser")
  nvim:wait_turns(1)
  local agent = again(nvim, { turns = { { { text = "I see." } } } })
  nvim:lua("require('cursor_agent').load('session-1')")
  nvim:wait_screen("The lexer is at fault.")
  nvim:wait_screen("no longer knows this conversation")
  nvim:wait_state("idle")
  T.contains(nvim:status().carry, "the conversation so far (")
  nvim:prompt("go on")
  nvim:wait_turns(1)
  local sent = agent:received("session/prompt")[1].params.prompt
  T.eq(sent[1].text, "go on")
  T.contains(sent[2].text, "Assistant: The lexer is at fault.")
  local entry = nvim:lua([[
    local all = vim.tbl_filter(function(entry) return entry.kind == "user" end, require("cursor_agent").transcript())
    return all[#all]
  ]])
  T.contains(entry.context[1], "the conversation so far (")
end)

for attempt = 1, 3 do
  T.case(("killed in the middle of a turn, it loses no more than the last moment (%d)"):format(attempt), function(nvim)
    local steps = {}
    for i = 1, 400 do
      steps[#steps + 1] = { text = ("word%d "):format(i) }
      steps[#steps + 1] = { wait_ms = 10 }
    end
    nvim:use(T.agent({ turns = { steps } }))
    nvim:prompt("count")
    local wanted = math.random(20, 120)
    nvim:wait(function()
      return table.concat(nvim:texts("agent")):find(("word%d "):format(wanted), 1, true)
    end, "some words")
    local seen = table.concat(nvim:texts("agent"))
    -- What is older than this has to be there.
    vim.wait(100)
    nvim:kill("sigkill")
    nvim:wait_exit()
    again(nvim, {})
    nvim:lua("require('cursor_agent').load('session-1')")
    nvim:wait(function()
      return nvim:lua("return #(require('cursor_agent').transcript() or {}) > 1")
    end, "the conversation")
    local got = table.concat(nvim:texts("agent"))
    T.eq(got:sub(1, #seen), seen)
    local number = 0
    for word in got:gmatch("word(%d+) ") do
      number = number + 1
      T.eq(tonumber(word), number)
    end
  end)
end

T.case("five sessions stream at once, and no word is in the wrong chat, on the screen or on disk", function(nvim)
  local turns = {} ---@type table[]
  for turn = 1, 5 do
    turns[turn] = {}
    for i = 1, 60 do
      vim.list_extend(turns[turn], { { text = ("chat%d-%d "):format(turn, i) }, { wait_ms = 5 } })
    end
  end
  nvim:use(T.agent({ turns = turns }))
  nvim:lua([[
    for i = 1, 5 do
      local key = assert(require("cursor_agent").new({ open = false }))
      assert(require("cursor_agent").prompt("ask " .. i, { session = key, open = false }))
    end
  ]])
  nvim:wait_turns(5)
  ---@param said string[][] for each chat what was asked and answered
  local function check(said)
    T.eq(#said, 5)
    local seen = {} ---@type table<string, boolean>
    for _, one in ipairs(said) do
      local number = assert(one[2]:match("^chat(%d)%-1 "))
      T.ok(not seen[number], "each turn is in one chat")
      seen[number] = true
      local expected = {} ---@type string[]
      for i = 1, 60 do
        expected[i] = ("chat%s-%d "):format(number, i)
      end
      T.eq(one[2], table.concat(expected))
    end
  end
  check(nvim:lua([[
    return vim.tbl_map(function(chat)
      local said = {}
      for _, entry in ipairs(require("cursor_agent").transcript(chat.key)) do
        if entry.kind ~= "notice" then said[#said + 1] = entry.text end
      end
      return said
    end, require("cursor_agent.chat.registry").all())
  ]]))
  local ids = nvim:lua([[
    return vim.tbl_map(function(chat) return chat.status.session_id end, require("cursor_agent.chat.registry").all())
  ]])
  again(nvim, {})
  local stored = {} ---@type string[][]
  for _, id in ipairs(ids) do
    local lines = later(nvim, ("return past.preview({ id = %q }, done)"):format(id)).value
    stored[#stored + 1] = { lines[1], lines[3] .. " " }
  end
  for _, one in ipairs(stored) do
    T.ok(one[1]:find("^> ask %d$"), one[1])
    T.ok(one[2]:find("^chat%d%-1 "), one[2])
  end
  local found = later(nvim, "return agent.search('chat3-60', {}, done)").value
  T.eq(#found, 1)
end)

T.case("a stored conversation that cannot be read is named once, and the others are listed", function(nvim)
  nvim:use(T.agent({ turns = { TURN } }))
  nvim:prompt("fix the parser")
  nvim:wait_turns(1)
  again(nvim, {})
  local dir = vim.fs.dirname(files(nvim)[1])
  local broken = assert(io.open(dir .. "/1-1-1.chat", "wb"))
  broken:write(("no conversation\n"):rep(100))
  broken:close()
  for _ = 1, 2 do
    T.eq(#later(nvim, "return past.list({ agent_list = false }, done)").value, 1)
  end
  local _, times = nvim:messages():gsub("could not read a stored conversation", "")
  T.eq(times, 1)
  T.contains((nvim:messages():gsub("\n", "")), "not a stored conversation, or its header is damaged")
end)

T.case("a store that is torn, damaged or huge is one message, and the rest is shown", function(nvim)
  nvim:use(T.agent({ turns = { TURN } }))
  nvim:prompt("fix the parser")
  nvim:wait_turns(1)
  nvim:quit("qa!")
  nvim:wait_exit()
  local path = vim.fn.glob(nvim.dir .. "/home/.local/share/nvim/cursor-agent/sessions/*/*.chat")
  local whole = assert(io.open(path, "rb")):read("*a")
  ---@param bytes string
  ---@param grow integer? to this many bytes, filled with nothing
  local function store(bytes, grow)
    local file = assert(io.open(path, "wb"))
    file:write(bytes)
    if grow then
      file:seek("set", grow)
      file:write("x")
    end
    file:close()
  end
  ---@param sessions table[] the agent knows
  ---@return string[]
  local function load(sessions)
    again(nvim, { sessions = sessions })
    nvim:lua("require('cursor_agent').load('session-1')")
    nvim:wait_state("idle")
    return nvim:texts("notice")
  end
  local known = { { sessionId = "session-1", updates = HISTORY } }
  store(whole .. '0123456700000040 {"text":[1,"hal')
  local notices = load(known)
  T.eq(#notices, 1, vim.inspect(notices))
  T.contains(notices[1], "the last few messages may be missing")
  T.eq(nvim:texts("agent"), { "The lexer is at fault." })
  -- What was torn off is gone for good: it is not said again, what was said is part of the conversation.
  T.eq(load(known), notices)

  local at = assert(whole:find("fault", 1, true))
  store(whole:sub(1, at - 1) .. "F" .. whole:sub(at + 1))
  notices = load(known)
  T.contains(table.concat(notices, "\n"), "the stored conversation is damaged in")

  store(whole, 300 * 1000 * 1000)
  notices = load(known)
  T.contains(table.concat(notices, "\n"), "too large to load (300 MB, at most 268 MB)")
end)

T.case("a chat is forked where the agent can, and both go on by themselves", function(nvim)
  local agent = T.agent({
    profile = "plain",
    initialize = { agentCapabilities = { sessionCapabilities = { fork = vim.empty_dict() } } },
    on = { ["session/fork"] = { { reply = { sessionId = "fork-1" } } } },
    turns = { TURN, { { text = "In the copy." } }, { { text = "In the first." } } },
  })
  nvim:use(agent)
  nvim:prompt("fix the parser")
  nvim:wait_turns(1)
  local first = nvim:status().session_id
  nvim:keys("<Esc>:CursorAgent fork<CR>")
  nvim:wait(function()
    return nvim:status().session_id == "fork-1"
  end, "the fork")
  T.eq(agent:received("session/fork")[1].params.sessionId, first)
  T.eq(nvim:texts("user"), { "fix the parser" })
  T.eq(nvim:status().title, "fix the parser (fork)")
  nvim:prompt("in the fork")
  nvim:wait_turns(2)
  T.eq(agent:received("session/prompt")[2].params.sessionId, "fork-1")
  nvim:prompt("in the first", { session = first })
  nvim:wait_turns(3)
  T.eq(agent:received("session/prompt")[3].params.sessionId, first)
  again(nvim, {})
  local hits = later(nvim, "return agent.search('lexer', {}, done)").value
  T.eq(#hits, 2, "both are stored whole")
end)

T.case("an agent that cannot fork and a running turn are reported", function(nvim)
  nvim:use(T.agent({ turns = { TURN } }))
  nvim:prompt("fix the parser")
  nvim:wait_turns(1)
  nvim:keys("<Esc>:CursorAgent fork<CR>")
  nvim:wait_screen("test cannot fork a conversation")
end)

T.case("conversations are listed once, searched, renamed and deleted", function(nvim)
  nvim:use(T.agent({ turns = { TURN } }))
  nvim:prompt("fix the parser")
  nvim:wait_turns(1)
  local sessions = {
    { sessionId = "session-1", title = "Parser", updates = HISTORY },
    { sessionId = "other-1", title = "Other", updates = HISTORY },
  }
  again(nvim, { profile = "plain", sessions = sessions })
  local listed = later(nvim, "return agent.sessions(done)").value
  local function row(id)
    local found = vim.tbl_filter(function(one)
      return one.id == id
    end, listed)
    T.eq(#found, 1, id)
    return found[1]
  end
  local mine = row("session-1")
  T.eq({ mine.source, mine.live, mine.title, mine.cwd }, { "stored", false, "Parser", nvim.work })
  T.ok(mine.updated_at:match("^%d%d%d%d%-%d%d%-%d%dT"), mine.updated_at)
  T.eq(row("other-1").source, "agent")

  local hits = later(nvim, "return agent.search('LEXER is', {}, done)")
  T.eq(hits.value, {})
  hits = later(nvim, "return agent.search('lexer is', {}, done)").value
  T.eq(#hits, 1)
  T.eq({ hits[1].id, hits[1].line, hits[1].text }, { "session-1", 1, "The lexer is at fault." })
  T.eq(later(nvim, "return agent.search('sessionUpdate', { all = true }, done)").value, {})
  T.eq(later(nvim, "return agent.search('lexer', { cwd = '/elsewhere' }, done)").value, {})
  T.eq(#later(nvim, "return agent.search('lexer', { all = true }, done)").value, 1)
  T.ok(later(nvim, "return agent.search(' ', {}, done)").why)

  T.contains(
    table.concat(later(nvim, "return past.preview({ id = 'session-1' }, done)").value, "\n"),
    "> fix the parser"
  )
  T.ok(later(nvim, "return past.rename({ id = 'session-1' }, 'My parser', done)").value)
  listed = later(nvim, "return agent.sessions(done)").value
  T.eq(row("session-1").title, "My parser")
  local deleted = later(nvim, "return past.delete({ id = 'session-1', agent = 'test', source = 'stored' }, done)").value
  T.eq(deleted.stored, true)
  T.eq(files(nvim), {})
end)

T.case("a session that status() shows is taken by every call", function(nvim)
  nvim:use(T.agent({ turns = { { { text = "yes" } } } }))
  nvim:lua([[
    local agent = require("cursor_agent")
    _G.taken = {}
    agent.new({ open = false })
    -- Asked again and again within one turn of the main loop: what is shown there is ahead of what was told.
    local until_ms = vim.uv.now() + 8000
    repeat
      vim.uv.sleep(1)
      vim.uv.update_time()
      local id = agent.status().session_id
      if id then
        _G.taken = { agent.prompt("hello", { session = id, open = false }) }
        return
      end
    until vim.uv.now() > until_ms
  ]])
  T.ok(nvim:lua("return _G.taken[1]"), nvim:lua("return _G.taken[2]"))
  nvim:wait_turns(1)
end)

T.case("memory.enabled = false stores nothing", function(nvim)
  nvim:use(T.agent({ turns = { TURN } }), { memory = { enabled = false } })
  nvim:prompt("fix the parser")
  nvim:wait_turns(1)
  nvim:quit("qa!")
  nvim:wait_exit()
  T.eq(vim.fn.glob(nvim.dir .. "/home/.local/share/nvim/cursor-agent/sessions/*/*"), "")
end)
