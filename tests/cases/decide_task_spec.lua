-- A subagent's task: its block, and what it says nested under it while its own session's updates come.

local T = require("harness")

T.case("shows the task and nests what the subagent says and does", { width = 120, height = 30 }, function(nvim)
  local agent = T.agent({
    turns = {
      {
        { text = "I'll send a subagent.\n" },
        {
          update = {
            sessionUpdate = "tool_call",
            toolCallId = "task-1",
            title = "Explore the code",
            kind = "think",
            status = "in_progress",
          },
        },
        {
          request = {
            method = "cursor/task",
            params = {
              toolCallId = "task-1",
              description = "Find the parser",
              prompt = "Where is the parser?",
              subagentType = "explore",
              model = "small",
              agentId = "sub-1",
            },
          },
          wait = true,
        },
        {
          update = { sessionUpdate = "agent_message_chunk", content = { type = "text", text = "Looking around.\n" } },
          session = "sub-1",
        },
        {
          update = {
            sessionUpdate = "tool_call",
            toolCallId = "sub-read",
            title = "Read parser.lua",
            kind = "read",
            status = "completed",
          },
          session = "sub-1",
        },
        { update = { sessionUpdate = "tool_call_update", toolCallId = "task-1", status = "completed" } },
        { text = "It is in parser.lua.\n" },
      },
    },
  })
  nvim:use(agent)
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  nvim:prompt("where is it?")
  nvim:wait_turns(1)
  T.eq(agent:answers("cursor/task")[1].result.outcome.outcome, "completed")
  local entries = nvim:lua([[
    return vim.tbl_map(function(entry)
      return { kind = entry.kind, text = entry.text, parent = entry.parent }
    end, require("cursor_agent").transcript())
  ]])
  T.eq(entries, {
    { kind = "user", text = "where is it?" },
    { kind = "agent", text = "I'll send a subagent.\n" },
    { kind = "tool", text = "Explore the code" },
    { kind = "agent", text = "Looking around.\n", parent = 3 },
    { kind = "tool", text = "Read parser.lua", parent = 3 },
    { kind = "agent", text = "It is in parser.lua.\n" },
  })
  nvim:keys("<Esc>")
  -- The ruler of the other window is as it was drawn last, before or after Insert mode began.
  nvim:cmd("redrawstatus!")
  nvim:expect_screen("decide-task")
end)

T.case("what a delegate in the background asks after the turn names it", { width = 100, height = 24 }, function(nvim)
  local asked = { toolCallId = "late", title = "`make deploy`", kind = "execute", status = "pending" }
  local agent = T.agent({
    turns = {
      {
        { text = "It works in the background." },
        {
          request = {
            method = "cursor/task",
            params = { toolCallId = "t", description = "Deploy the site", prompt = "Deploy", subagentType = "shell" },
          },
        },
        { stop = "end_turn" },
        { permission = { toolCall = asked } },
        { note = "over" },
      },
    },
  })
  nvim:use(agent, { attention = { notify = false } })
  nvim:prompt("deploy it")
  nvim:wait_turns(1)
  local decision = nvim:wait(function()
    return nvim:lua("return require('cursor_agent').pending()[1]")
  end, "the permission")
  T.eq(decision.subagent, "Deploy the site")
  nvim:wait_screen('subagent "Deploy the site"')
  T.eq(nvim:lua("return require('cursor_agent').answer(...)", decision.id, { option = "allow-once" }), true)
  nvim:wait(function()
    return #agent:notes("over") > 0
  end, "the answer to reach it")
  T.eq(agent:answers("session/request_permission")[1].result.outcome.optionId, "allow-once")
end)
