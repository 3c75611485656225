-- Everything a person saw is in the memory: a conversation that is loaded is, field by field, the one that was had.

local T = require("harness")

local QUESTION = {
  id = "q",
  prompt = "Which store?",
  options = { { id = "a", label = "SQLite" }, { id = "b", label = "Plain files" } },
}

---@param id string
---@param command string
---@return table
local function permission(id, command)
  local call =
    { toolCallId = id, title = command, kind = "execute", status = "pending", rawInput = { command = command } }
  return { permission = { toolCall = call } }
end

---@param id string
---@param name string
---@return table
local function plan(id, name)
  local params = { toolCallId = id, name = name, overview = "In short.", plan = "Write\nit down.", todos = {} }
  return { request = { method = "cursor/create_plan", params = params } }
end

---@param told table
---@return table
local function update(told)
  return { update = told }
end

local TURN = {
  { thought = "Let me think." },
  { text = "First, " },
  { text = "this." },
  update({
    sessionUpdate = "tool_call",
    toolCallId = "edit-1",
    title = "Edit a.lua",
    kind = "edit",
    status = "completed",
    locations = { { path = "a.lua", line = 2 } },
    content = { { type = "diff", path = "a.lua", oldText = "one\ntwo\n", newText = "one\n2\nthree é\n" } },
  }),
  update({
    sessionUpdate = "tool_call",
    toolCallId = "run-1",
    title = "`make all`",
    kind = "execute",
    status = "failed",
    rawInput = { command = "make all" },
    rawOutput = { exitCode = 2, stdout = "all: \27[31mno\27[0m\n", stderr = "" },
    content = { { type = "content", content = { type = "text", text = "all: \27[31mno\27[0m\nstopped\n" } } },
  }),
  update({
    sessionUpdate = "plan",
    entries = {
      { content = "Look", priority = "high", status = "completed" },
      { content = "Write", priority = "low", status = "in_progress" },
    },
  }),
  permission("c1", "make test"),
  permission("c2", "make lint"),
  permission("c3", "rm -rf build"),
  { request = { method = "cursor/ask_question", params = { toolCallId = "q1", questions = { QUESTION } } } },
  plan("p1", "Store it"),
  plan("p2", "Store it well"),
  { text = 'Done: `é` 日本 \\ "quoted"\n\n```lua\nlocal x = 1\n```' },
}

---What a person can see of the conversation, without what is only of the moment.
---@param nvim harness.Child
---@return table[]
local function shown(nvim)
  return nvim:lua([[
    local all = require("cursor_agent").transcript()
    for _, entry in ipairs(all) do
      entry.prompt = nil
    end
    return all
  ]])
end

T.case("a conversation that is loaded is the one that was had", {
  width = 120,
  files = { ["a.lua"] = "one\n2\nthree é\n", ["notes.md"] = "some notes\n" },
}, function(nvim)
  local policy = { { kind = "execute", command = "make lint", action = "allow" } }
  local options = { policy = policy, plan = { directory = nvim.dir .. "/plans" } }
  nvim:use(T.agent({ turns = { TURN } }), options)
  nvim:lua("require('cursor_agent.decide').SETTLE_MS = 0")
  nvim:prompt("go with @notes.md and @a.lua:1-2")
  for _, answer in ipairs({
    "{ option = 'allow-once' }",
    "{ option = 'reject-once', reason = 'not that' }",
    "{ answers = { q = { 'b' } } }",
    "{ reject = true, reason = 'too short' }",
    "{ accept = true }",
  }) do
    nvim:wait("(require('cursor_agent').pending()[1] or { id = _G.last }).id ~= _G.last", "a decision")
    nvim:lua(([[
      local agent = require("cursor_agent")
      _G.last = agent.pending()[1].id
      assert(agent.answer(_G.last, %s))
    ]]):format(answer))
  end
  nvim:wait_turns(1)
  local before = shown(nvim)
  local text = vim.inspect(before)
  for _, word in ipairs({ "Plain files", "too short", "it down", "Let me think.", "three é", "stopped", "@notes.md" }) do
    T.contains(text, word)
  end
  nvim:cmd("CursorAgent export")
  local export = nvim:api("nvim_buf_get_lines", 0, 0, -1, false)
  nvim:quit("qa!")
  nvim:wait_exit()
  nvim:again()
  nvim:use(T.agent({ sessions = { { sessionId = "session-1", updates = {} } } }), options)
  nvim:lua("require('cursor_agent').load('session-1', { enter = true })")
  nvim:wait_state("idle")
  local after = shown(nvim)
  T.eq(#after, #before)
  for i, entry in ipairs(before) do
    T.eq(after[i], entry)
  end
  nvim:cmd("stopinsert | CursorAgent export")
  T.eq(nvim:api("nvim_buf_get_lines", 0, 0, -1, false), export)
end)

T.case("what an agent nests deeply is stored and loaded too", function(nvim)
  local deep = { leaf = "w" } ---@type table
  for _ = 1, 115 do
    deep = { inside = deep }
  end
  local function call(id, input)
    local told = {
      sessionUpdate = "tool_call",
      toolCallId = id,
      title = "call " .. id,
      kind = "other",
      status = "completed",
      rawInput = input,
      rawOutput = input,
    }
    local params = { sessionId = "session-1", update = told }
    return { raw = vim.json.encode({ jsonrpc = "2.0", method = "session/update", params = params }) .. "\n" }
  end
  nvim:use(T.agent({ turns = { { call("a", deep), call("b", { x = 1 }), { text = "Done." } } } }))
  nvim:prompt("go")
  nvim:wait_turns(1)
  local before = shown(nvim)
  T.eq(nvim:texts("tool"), { "call a", "call b" })
  nvim:quit("qa!")
  nvim:wait_exit()
  nvim:again()
  nvim:use(T.agent({ sessions = { { sessionId = "session-1", updates = {} } } }))
  nvim:lua("require('cursor_agent').load('session-1')")
  nvim:wait_state("idle")
  T.eq(#shown(nvim), #before)
  for i, entry in ipairs(before) do
    T.eq(shown(nvim)[i], entry)
  end
end)
