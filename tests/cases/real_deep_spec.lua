-- Released agents beyond the first turn: cancelled in a tool, rejected, allowed for good, loaded, killed, two at once.

local T = require("harness")
local agents = require("real.agents")
local files = require("harness.file")

local START_MS, CANCEL_MS = agents.START_MS, agents.CANCEL_MS

-- A picture of one pixel.
local PNG =
  vim.base64.decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")

---How each is made to use its tools, and the mode in which it asks about commands if that is not its default.
---@type table<string, { run: (fun(command: string): real.Part), add: string, mode: string?, never_asks: boolean?, forgets: boolean? }>
local TOOLS = {
  claude = {
    run = function(command)
      return { tool = "Bash", input = { command = command, description = "Run it" } }
    end,
    add = "mcp__calculator__add",
  },
  gemini = {
    run = function(command)
      return { tool = "run_shell_command", input = { command = command, description = "Run it" } }
    end,
    add = "mcp_calculator_add",
    -- It finds the session it has written down some of the time only. Then the prompt carries the conversation.
    forgets = true,
  },
  qwen = {
    run = function(command)
      local input = { command = command, description = "Run it", is_background = false }
      return { tool = "run_shell_command", input = input }
    end,
    add = "mcp__calculator__add",
    mode = "default",
  },
  codex = {
    run = function(command)
      local why = { sandbox_permissions = "require_escalated", justification = "To see whether it works" }
      return { tool = "exec_command", input = vim.tbl_extend("error", { cmd = command }, why) }
    end,
    add = "mcp__calculator.add",
    mode = "workspace-write",
    -- About tools of servers.
    never_asks = true,
  },
}

---@param text string
---@return integer
local function running(text)
  local count = 0
  for _, process in ipairs(T.processes()) do
    count = count + (process.command == text and 1 or 0)
  end
  return count
end

---@param child harness.Child
---@param kind string of the option
local function answer(child, kind)
  local decision = agents.wait_decision(child)
  child:lua(
    [[
      local decision, kind = ...
      for _, option in ipairs(decision.options) do
        if option.kind == kind then
          return require("cursor_agent").answer(decision.id, { option = option.id })
        end
      end
      error("no option " .. kind .. ": " .. vim.inspect(decision.options))
    ]],
    decision,
    kind
  )
end

---The last thing the agent said.
---@param child harness.Child
---@return string
local function last_text(child)
  local texts = child:texts("agent")
  return texts[#texts] or ""
end

for agent, tools in vim.spairs(TOOLS) do
  local function deep(name, run, more)
    agents.case(agent --[[@as "claude"|"gemini"|"codex"|"qwen"]], agent .. ": " .. name, run, more, tools.mode)
  end

  deep("rejected, allowed for good, cancelled in a tool, an image: the session goes on", function(child, model)
    model:script("Reject this", { { tools.run("touch rejected.txt") }, { { text = "Then not." } } })
    model:script("Go on please", { { { text = "I went on." } } })
    model:script("Allow this", { { tools.run("echo once >> allowed.txt") }, { { text = "Done once." } } })
    model:script("The same again", { { tools.run("echo once >> allowed.txt") }, { { text = "Done twice." } } })
    model:script("Run for long", { { tools.run("tail -f hello.txt") }, { { text = "never" } } })
    model:script("Are you there", { { { text = "Still here." } } })
    model:script("Look at this", { { { text = "A pixel." } } })
    local turns = 0
    local function turn_over(reason, ms)
      turns = turns + 1
      local stop = child:wait_turns(turns, ms or START_MS).stop_reason
      T.ok(vim.tbl_contains(reason, stop), ("%s, not %s"):format(stop, table.concat(reason, " or ")))
    end
    child:prompt("Reject this")
    agents.wait_decision(child)
    child:cmd("CursorAgent reject")
    turn_over({ "end_turn", "cancelled" })
    T.eq(files.peek(child.work .. "/rejected.txt"), nil)
    child:prompt("Go on please")
    turn_over({ "end_turn" })
    T.eq(last_text(child), "I went on.")

    child:prompt("Allow this")
    answer(child, "allow_always")
    turn_over({ "end_turn" })
    child:prompt("The same again")
    turn_over({ "end_turn" })
    T.eq(files.peek(child.work .. "/allowed.txt"), "once\nonce\n")

    child:prompt("Run for long")
    child:wait(function()
      if child:lua("return #require('cursor_agent').pending()") > 0 then
        child:cmd("CursorAgent accept")
      end
      return running("tail -f hello.txt") > 0
    end, "the command to run", START_MS)
    child:cmd("CursorAgent cancel")
    turn_over({ "cancelled" }, CANCEL_MS)
    local statuses = child:lua([[
      return vim.tbl_map(function(entry) return entry.tool and entry.tool.status end,
        vim.tbl_filter(function(entry) return entry.kind == "tool" end, require("cursor_agent").transcript()))
    ]])
    T.ok(statuses[#statuses] ~= "completed" and statuses[#statuses] ~= "in_progress", vim.inspect(statuses))
    child:prompt("Are you there")
    turn_over({ "end_turn" })
    T.eq(last_text(child), "Still here.")

    local file = assert(io.open(child.work .. "/pixel.png", "wb"))
    file:write(PNG)
    file:close()
    child:lua("require('cursor_agent').prompt(...)", "Look at this @pixel.png")
    turn_over({ "end_turn" })
    T.eq(last_text(child), "A pixel.")
    T.contains(vim.json.encode(model.requests[#model.requests]), vim.base64.encode(PNG):sub(1, 40))
    T.eq(child:lua("return vim.v.errmsg"), "")
  end)

  deep("two sessions at once, and the agent killed with -9: both go on", function(child, model)
    model:script("The first one", { { { text = "First " .. ("word "):rep(200), slow_ms = 5 } } })
    model:script("The second one", { { { text = "Second here." } } })
    model:script("After the fall", { { { text = "Back again." } } })
    child:prompt("The first one")
    child:wait_screen("word word", START_MS)
    local first = child:status().key
    child:lua("require('cursor_agent').new({ open = true })")
    child:wait(("require('cursor_agent').status().key ~= %d"):format(first), "the other chat")
    child:prompt("The second one")
    child:wait(function()
      return child:texts("agent")[1] == "Second here."
    end, "the second answer", START_MS)
    child:wait(function()
      return child:lua("return require('cursor_agent').status(...).state", first) == "idle"
    end, "the first to end", START_MS)
    local of_first = child:lua(
      "return vim.tbl_map(function(e) return e.kind .. ': ' .. (e.text or '') end, require('cursor_agent').transcript(...))",
      first
    )
    T.contains(table.concat(of_first, "\n"), "agent: First word")
    local killed = 0
    for _, process in ipairs(T.processes()) do
      if process.command:find("--acp", 1, true) or process.command:find("/[%l-]+%-acp/dist/index.js") then
        vim.uv.kill(process.pid, "sigkill")
        killed = killed + 1
      end
    end
    T.ok(killed > 0, "the agent was found")
    child:wait_state("failed", START_MS)
    child:cmd("CursorAgent restart")
    child:wait_state("idle", START_MS)
    child:prompt("After the fall")
    child:wait(function()
      return last_text(child) == "Back again."
    end, "the answer after the restart", START_MS)
  end)

  deep("a session is loaded in a new Neovim by its id", function(child, model, config)
    model:script("Remember the number seven", { { { text = "Seven it is." } } })
    model:script("Which number was it", { { { text = "It was seven." } } })
    child:prompt("Remember the number seven")
    T.eq(child:wait_turns(1, START_MS).stop_reason, "end_turn")
    local id = child:status().session_id
    child:quit("qall!")
    local later = require("harness.child").start({
      dir = child.dir,
      root = T.root,
      mark = { [require("harness.process").MARKER] = vim.fs.basename(child.dir) },
      deadline = vim.uv.now() + 240000,
      case = {},
    })
    local ok, problem = pcall(function()
      later:use({ options = config.agents[agent] }, config)
      later:lua("require('cursor_agent').load(...)", id)
      later:wait(function()
        return later:texts("agent")[1] == "Seven it is."
      end, "the replay", START_MS)
      later:wait_state("idle", START_MS)
      later:prompt("Which number was it")
      T.eq(later:wait_turns(1, START_MS).stop_reason, "end_turn")
      local forgot = table.concat(later:texts("notice")):find("your next prompt starts a new session", 1, true)
      T.ok(not forgot or tools.forgets, "the agent did not load it")
      if not forgot then
        -- Each once, whenever the agent replays it.
        T.eq(later:texts("agent"), { "Seven it is.", "It was seven." })
      end
      T.contains(vim.json.encode(model.requests[#model.requests]), "Remember the number seven")
    end)
    later:quit("qall!")
    assert(ok, problem)
  end)

  deep("a tool of an MCP server is asked about by its name and its server, and runs", function(child, model)
    model:script("Add them", { { { tool = tools.add, input = { a = 3, b = 4 } } }, { { text = "Seven." } } })
    child:prompt("Add them")
    if not tools.never_asks then
      local asked = agents.wait_decision(child)
      T.eq(asked.facts.mcp, { server = "calculator", tool = "add" })
      child:wait_screen("calculator")
      child:cmd("CursorAgent accept")
    end
    T.eq(child:wait_turns(1, START_MS).stop_reason, "end_turn")
    T.contains(vim.inspect(model:tool_result()), "The sum is 7")
    T.eq(last_text(child), "Seven.")
  end, function()
    return {
      mcp_servers = {
        {
          name = "calculator",
          command = vim.v.progpath,
          args = { "-l", T.root .. "/tests/real/mcp_server.lua" },
          env = {},
        },
      },
      -- A rule about a kind is none about the tools of servers.
      policy = { { kind = { "read", "other" }, action = "allow" } },
    }
  end)
end
