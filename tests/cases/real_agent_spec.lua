-- Released agents as npm has them, Anthropic's and OpenAI's by their ACP adapters and Google's: only their models are ours,
-- scripts on loopback.

local T = require("harness")
local agents = require("real.agents")
local file = require("harness.file")

local START_MS, CANCEL_MS = agents.START_MS, agents.CANCEL_MS
local read, wait_decision = file.peek, agents.wait_decision

local model ---@type real.Model of the case that runs

---@param agent "claude"|"gemini"|"codex"
---@param name string
---@param run fun(child: harness.Child)
---@param more? fun(): table more options of the plugin
local function case_with(agent, name, run, more)
  agents.case(agent, name, function(child, scripted)
    model = scripted
    run(child)
  end, more)
end

---@param name string
---@param run fun(child: harness.Child)
local function case(name, run)
  case_with("claude", name, run)
end

---The tool calls of the transcript: kind and status, in order.
---@param child harness.Child
---@return string[]
local function tool_calls(child)
  return child:lua([[
    local calls = {}
    for _, entry in ipairs(require("cursor_agent").transcript()) do
      if entry.kind == "tool" then
        table.insert(calls, entry.tool.kind .. " " .. entry.tool.status)
      end
    end
    return calls
  ]])
end

---The paths and states of `changes()`.
---@param child harness.Child
---@return string[]
local function changes(child)
  return child:lua([[
    return vim.tbl_map(function(change)
      return change.state .. " " .. change.path
    end, require("cursor_agent").changes())
  ]])
end

case("a whole turn: text, a read, an edit and a command", function(child)
  local hello = child.work .. "/hello.txt"
  model:script("Greet Neovim", {
    {
      { thought = "The greeting is in a file." },
      { text = "I read it first." },
      { tool = "Read", input = { file_path = hello } },
    },
    {
      { text = "Now the edit." },
      { tool = "Edit", input = { file_path = hello, old_string = "Hello, world", new_string = "Hello, Neovim" } },
    },
    {
      { tool = "Bash", input = { command = "cat hello.txt > copy.txt && echo copied", description = "Copy the file" } },
    },
    { { text = "All of it is done." } },
  })
  child:cmd("edit hello.txt")
  child:prompt("Greet Neovim")

  local edit = wait_decision(child)
  T.eq(edit.kind, "permission")
  T.contains(edit.title, "hello.txt")
  T.eq(child:status().state, "waiting")
  T.eq(read(hello), "Hello, world\nsecond line\n", "before the edit was allowed")
  T.eq(changes(child), {})
  child:cmd("CursorAgent accept")

  local run = child:wait(function()
    local decision = wait_decision(child)
    return decision.id ~= edit.id and decision
  end, "the decision about the command", START_MS)
  T.contains(run.title, "cat hello.txt > copy.txt")
  T.eq(read(hello), "Hello, Neovim\nsecond line\n", "after the edit was allowed")
  T.eq(read(child.work .. "/copy.txt"), nil, "before the command was allowed")
  child:cmd("CursorAgent accept")

  T.eq(child:wait_turns(1, START_MS).stop_reason, "end_turn")
  T.eq(read(child.work .. "/copy.txt"), "Hello, Neovim\nsecond line\n")
  T.contains(vim.inspect(model:tool_result().content), "copied")
  T.eq(tool_calls(child), { "read completed", "edit completed", "execute completed" })
  T.eq(child:texts("thought"), { "The greeting is in a file." })
  T.eq(child:texts("agent"), { "I read it first.", "Now the edit.", "All of it is done." })
  T.eq(child:texts("notice"), {})
  child:wait("#require('cursor_agent').changes() == 2", "what the command changed")
  T.eq(changes(child), { "modified " .. hello, "created " .. child.work .. "/copy.txt" })
  T.eq(child:events("CursorAgentEdit")[1].path, hello)
  T.eq(child:lua("return vim.api.nvim_buf_get_lines(vim.fn.bufnr('hello.txt'), 0, -1, false)"), {
    "Hello, Neovim",
    "second line",
  })
  T.eq(child:lua("return vim.bo[vim.fn.bufnr('hello.txt')].modified"), false)
  child:wait_screen("All of it is done.")
end)

case("text is on the screen while the model still writes", function(child)
  model:script("Tell me a story", { { { text = "Once upon " .. ("and on "):rep(3000), slow_ms = 20 } } })
  child:prompt("Tell me a story")
  -- Wherever it has got to: the beginning is out of sight soon.
  child:wait_screen("and on and on", START_MS)
  T.eq(child:status().state, "running")
  T.eq(child:events("CursorAgentTurnEnd"), {})
end)

case("what is changed in a long file has the numbers of its lines", function(child)
  local path = child.work .. "/long.txt"
  local lines = {}
  for number = 1, 60 do
    lines[number] = "line " .. number
  end
  assert(vim.fn.writefile(lines, path) == 0)
  model:script("Change a line", {
    { { tool = "Read", input = { file_path = path } } },
    { { tool = "Edit", input = { file_path = path, old_string = "line 31", new_string = "one\nmore" } } },
    { { text = "Changed." } },
  })
  child:prompt("Change a line")
  wait_decision(child)
  child:cmd("CursorAgent accept")
  T.eq(child:wait_turns(1, START_MS).stop_reason, "end_turn")
  -- The agent sends the lines around it, three of them before; where that is in the file is looked up.
  child:wait(function()
    local hunk = child:lua("return require('cursor_agent').changes()[1].hunks[1]")
    return vim.deep_equal({ hunk.old, hunk.new, hunk.lines[1][2] }, { 28, 28, "line 28" })
  end, "the hunk to begin at line 28")
end)

case("an edit that is rejected is not made, and the turn goes on", function(child)
  local hello = child.work .. "/hello.txt"
  model:script("Spoil the file", {
    { { tool = "Write", input = { file_path = child.work .. "/new.txt", content = "spoiled\n" } } },
    { { text = "Then not." } },
  })
  child:prompt("Spoil the file")
  wait_decision(child)
  child:cmd("CursorAgent reject")
  T.eq(child:wait_turns(1, START_MS).stop_reason, "end_turn")
  T.eq(read(child.work .. "/new.txt"), nil)
  T.eq(read(hello), "Hello, world\nsecond line\n")
  T.eq(tool_calls(child), { "edit failed" })
  child:wait_screen("rejected")
  T.eq(model:tool_result().is_error, true)
  T.eq(changes(child), {})
  T.eq(child:events("CursorAgentEdit"), {})
  T.eq(child:texts("agent"), { "Then not." })
end)

case("a cancelled turn ends at once, keeps its text, and the session goes on", function(child)
  model:script("Never stop", { { { text = "I begin. " .. ("word "):rep(2000), slow_ms = 20 } } })
  model:script("Are you there", { { { text = "Still here." } } })
  child:prompt("Never stop")
  child:wait_screen("word word", START_MS)
  local session = child:status().session_id
  child:cmd("CursorAgent cancel")
  T.eq(child:wait_turns(1, CANCEL_MS).stop_reason, "cancelled")
  child:wait(function()
    return model.hung_up > 0
  end, "the agent to hang up on the model", CANCEL_MS)
  T.contains(child:texts("agent")[1], "I begin. word")

  child:prompt("Are you there")
  T.eq(child:wait_turns(2, START_MS).stop_reason, "end_turn")
  T.eq(child:texts("agent")[2], "Still here.")
  T.eq(child:status().session_id, session)
end)

case("cancelling while it asks answers what it asked", function(child)
  model:script("Touch a file", {
    { { tool = "Bash", input = { command = "touch made.txt", description = "Make a file" } } },
    { { text = "It is there." } },
  })
  child:prompt("Touch a file")
  wait_decision(child)
  child:cmd("CursorAgent cancel")
  T.eq(child:wait_turns(1, CANCEL_MS).stop_reason, "cancelled")
  T.eq(child:lua("return require('cursor_agent').pending()"), {})
  T.eq(child:status().state, "idle")
  T.eq(read(child.work .. "/made.txt"), nil)
end)

case("a past session is listed, loaded, and gone on with", function(child)
  model:script("Remember the number seven", { { { text = "Seven it is." } } })
  model:script("Which number was it", { { { text = "It was seven." } } })
  child:prompt("Remember the number seven")
  T.eq(child:wait_turns(1, START_MS).stop_reason, "end_turn")
  local id = child:status().session_id
  child:cmd("CursorAgent stop")
  child:wait_state("stopped")

  child:lua("require('cursor_agent').new({ open = false })")
  child:wait_state("idle", START_MS)
  child:lua([[
    require("cursor_agent").sessions(function(sessions)
      _G.past = vim.tbl_map(function(session)
        return session.id
      end, sessions)
    end)
  ]])
  T.ok(vim.tbl_contains(child:wait("_G.past", "the list of sessions", START_MS), id), "the session is not listed")
  child:lua("require('cursor_agent').load(...)", id)
  child:wait(function()
    return vim.deep_equal(child:texts("agent"), { "Seven it is." })
  end, "the replay", START_MS)
  T.eq(child:texts("user"), { "Remember the number seven" })

  child:prompt("Which number was it")
  T.eq(child:wait_turns(2, START_MS).stop_reason, "end_turn")
  T.eq(child:texts("agent"), { "Seven it is.", "It was seven." })
  -- The agent sent what it had of the conversation, not the new prompt alone.
  T.contains(vim.inspect(model.requests[#model.requests].messages), "Remember the number seven")
end)

case("quitting in the middle of a turn leaves no process", function(child)
  model:script("Wait for me", {
    { { tool = "Bash", input = { command = "tail -f hello.txt > out.txt", description = "Wait" } } },
  })
  child:prompt("Wait for me")
  wait_decision(child)
  child:cmd("CursorAgent accept")
  child:wait(function()
    for _, process in ipairs(T.processes()) do
      if process.command == "tail -f hello.txt" then
        return true
      end
    end
  end, "the command to run", START_MS)
  T.eq(child:quit("qall!").code, 0)
  T.expect_no_process()
end)

case_with(
  "gemini",
  "an agent that reads and writes through the editor sees unsaved text, and undo takes it back",
  function(child)
    local hello = child.work .. "/hello.txt"
    model:script("Greet everybody", {
      {
        { text = "Now the edit." },
        {
          tool = "replace",
          input = {
            file_path = hello,
            instruction = "Greet everybody",
            old_string = "Hello, nobody has saved this",
            new_string = "Hello, everybody",
          },
        },
      },
      { { text = "Greeted." } },
    })
    child:cmd("edit hello.txt")
    child:keys("ccHello, nobody has saved this<Esc>")
    child:wait("vim.fn.getline(1) == 'Hello, nobody has saved this'")
    child:prompt("Greet everybody")
    local edit = wait_decision(child)
    T.contains(edit.title, "hello.txt")
    T.eq(read(hello), "Hello, world\nsecond line\n", "before the edit was allowed")
    child:cmd("CursorAgent accept")
    T.eq(child:wait_turns(1, START_MS).stop_reason, "end_turn")
    T.eq(read(hello), "Hello, everybody\nsecond line\n")
    T.eq(changes(child), { "modified " .. hello })
    T.eq(tool_calls(child), { "edit completed" })
    local buffer = child:lua("return vim.fn.bufnr('hello.txt')")
    T.eq(child:lua("return vim.fn.getbufline(..., 1, '$')", buffer), { "Hello, everybody", "second line" })
    child:lua("vim.api.nvim_buf_call(..., function() vim.cmd('silent undo') end)", buffer)
    T.eq(child:lua("return vim.fn.getbufline(..., 1)[1]", buffer), "Hello, nobody has saved this")
  end
)

---Each entry in a line: whose block it is in, what it is, and its text.
---@param child harness.Child
---@return string[]
local function blocks(child)
  return child:lua([[
    local lines = {}
    for _, entry in ipairs(require("cursor_agent").transcript()) do
      local task = entry.tool and entry.tool.task
      local text = task and task.description .. " · " .. task.state or entry.text
      table.insert(lines, ("%s%s: %s"):format(entry.parent and entry.parent .. "> " or "", entry.kind, vim.trim(text)))
    end
    return lines
  ]])
end

case("a subagent is one block, and what it asks names it", function(child)
  local hello = child.work .. "/hello.txt"
  model:script("Ask a colleague", {
    {
      { text = "I ask a colleague." },
      {
        tool = "Agent",
        input = {
          description = "Copy the file",
          prompt = "Please make a copy of the greeting",
          subagent_type = "general-purpose",
          run_in_background = false,
        },
      },
    },
    { { text = "It was copied." } },
  })
  model:script("make a copy of the greeting", {
    { { text = "I read it first." }, { tool = "Read", input = { file_path = hello } } },
    { { tool = "Bash", input = { command = "cp hello.txt copy.txt", description = "Copy it" } } },
    { { text = "The copy is made." } },
  })
  child:prompt("Ask a colleague")
  local run = wait_decision(child)
  T.contains(run.title, "cp hello.txt copy.txt")
  T.eq(run.subagent ~= nil, true, vim.inspect(run))
  child:wait_screen("subagent")
  child:cmd("CursorAgent accept")
  T.eq(child:wait_turns(1, START_MS).stop_reason, "end_turn")
  T.eq(read(child.work .. "/copy.txt"), "Hello, world\nsecond line\n")
  local found = blocks(child)
  T.eq(found[1], "user: Ask a colleague")
  T.eq(found[2], "agent: I ask a colleague.")
  T.contains(found[3], "tool: ")
  T.contains(found[3], " · idle")
  T.eq(vim.list_slice(found, 4), {
    "3> user: Please make a copy of the greeting",
    "3> agent: I read it first.",
    "3> tool: Read hello.txt",
    "3> tool: cp hello.txt copy.txt",
    "3> agent: The copy is made.",
    "agent: It was copied.",
  })
  T.eq(child:texts("notice"), {})
end)

case_with("codex", "a subagent of Codex is one block", function(child)
  model:script("Ask a colleague", {
    {
      { text = "I ask a colleague." },
      { tool = "multi_agent_v1.spawn_agent", input = { message = "Please count the files" } },
    },
    {
      {
        tool = "multi_agent_v1.wait_agent",
        input = function(outputs)
          return { targets = { vim.json.decode(outputs[1]).agent_id }, timeout_ms = 20000 }
        end,
      },
    },
    { { text = "There is one." } },
  })
  model:script("count the files", { { { text = "I count one file." } } })
  child:prompt("Ask a colleague")
  T.eq(child:wait_turns(1, START_MS).stop_reason, "end_turn")
  local of_task, own = {}, {} ---@type string[], string[]
  for _, line in ipairs(blocks(child)) do
    local task, text = line:match("^(%d+)> (.*)$")
    -- It does not know the script's model, and says so.
    if not line:find("notice:", 1, true) then
      table.insert(task and of_task or own, text or line)
    end
  end
  T.eq(of_task, { "agent: I count one file." })
  T.contains(table.concat(own, "\n"), "tool: Please count the files · idle")
  T.eq(own[#own], "agent: There is one.")
end)

case("a past session with a subagent comes back with its block", function(child)
  model:script("Ask a colleague", {
    {
      { text = "I ask a colleague." },
      {
        tool = "Agent",
        input = {
          description = "Read the file",
          prompt = "Please read the greeting aloud",
          subagent_type = "general-purpose",
          run_in_background = false,
        },
      },
    },
    { { text = "It was read." } },
  })
  model:script("read the greeting aloud", {
    { { tool = "Read", input = { file_path = child.work .. "/hello.txt" } } },
    { { text = "It says hello." } },
  })
  child:prompt("Ask a colleague")
  T.eq(child:wait_turns(1, START_MS).stop_reason, "end_turn")
  local id = child:status().session_id
  local before = blocks(child)
  T.eq(#before, 7, vim.inspect(before))
  child:cmd("CursorAgent stop")
  child:wait_state("stopped")
  child:lua("require('cursor_agent').new({ open = false })")
  child:wait_state("idle", START_MS)
  child:lua("require('cursor_agent').load(...)", id)
  child:wait(function()
    local after = child:status().state == "idle" and blocks(child) or {}
    return #after >= #before
  end, "the replay", START_MS)
  T.eq(blocks(child), before)
end)

local cloud ---@type harness.Cloud of the case below

case_with("claude", "it delegates to a cloud agent by the MCP server of `cloud.mcp`", function(child)
  model:script("Delegate it", {
    {
      {
        tool = "mcp__cursor-cloud__createAgent",
        input = {
          prompt = { text = "Fix the flaky tests" },
          model = "default",
          source = { repository = "https://github.com/acme/app" },
        },
      },
    },
    { { text = "An agent works on it." } },
  })
  child:prompt("Delegate it")
  local asked = wait_decision(child)
  T.contains(asked.title, "createAgent")
  T.eq(#cloud:tell().agents, 0, "before it was allowed")
  child:cmd("CursorAgent accept")
  T.eq(child:wait_turns(1, START_MS).stop_reason, "end_turn")
  local started = cloud:tell().agents
  cloud:stop()
  T.eq(#started, 1)
  T.contains(vim.inspect(model:tool_result().content), started[1].id)
  T.eq(tool_calls(child), { "other completed" })
  T.eq(child:texts("agent"), { "An agent works on it." })
end, function()
  cloud = require("harness.cloud").start(T.root, { "--pace", "5" })
  return { cloud = { mcp = true, url = cloud.url, api_key = "key_fake" } }
end)
