-- However Neovim ends, and whatever the agent thinks of it, no process stays behind.

local T = require("harness")

-- How an agent takes the end of its stdin.
local AGENTS = {
  ["a polite agent"] = {},
  ["an agent with children of its own"] = { { spawn = { "sleep", "1000" } } },
  ["an agent that ignores the end of its input"] = { { ignore_eof = true }, { spawn = { "sleep", "1000" } } },
  ["an agent that ignores even SIGTERM"] = {
    { ignore_eof = true },
    { ignore_sigterm = true },
    { spawn = { "sleep", "1000" } },
  },
}

-- How Neovim ends, and how long its agents may run after that, when no one is left to kill them.
local ENDS = {
  [":qa!"] = function(child)
    child:keys(":qa!<CR>")
  end,
  [":q of the last window"] = function(child)
    child:keys(":only<CR>:q!<CR>")
  end,
  ["SIGTERM"] = function(child)
    child:kill("sigterm")
  end,
  ["SIGHUP"] = function(child)
    child:kill("sighup")
  end,
  ["SIGKILL"] = function(child)
    child:kill("sigkill")
  end,
}

---Starts a turn that does not end by itself.
---@param child harness.Child
---@param manners table[]
local function start_turn(child, manners)
  local steps = vim.list_extend(vim.deepcopy(manners), { { text = "in the middle" }, { wait_cancel = true } })
  local agent = T.agent({ turns = { steps } })
  child:use(agent)
  child:prompt("hello")
  child:wait_screen("in the middle")
  T.ok(#T.processes() >= 2, "the agent runs")
  return agent
end

for agent_name, manners in vim.spairs(AGENTS) do
  for end_name, leave in vim.spairs(ENDS) do
    T.case(("%s in a turn ends %s"):format(end_name, agent_name), function(child)
      start_turn(child, manners)
      leave(child)
      child:wait_exit()
      T.expect_no_process()
    end)
  end
end

T.case("SIGKILL while a command of the agent's runs ends the command", function(child)
  local command = { command = "sh", args = { "-c", "echo It runs.; exec sleep 1000" }, sessionId = "${session}" }
  local call =
    { sessionUpdate = "tool_call", toolCallId = "c", title = "Run", kind = "execute", status = "in_progress" }
  call.content = { { type = "terminal", terminalId = "term-1" } }
  start_turn(child, { { request = { method = "terminal/create", params = command } }, { update = call } })
  -- What it says is read by those who look after it from then on.
  child:wait_screen("It runs.")
  child:kill("sigkill")
  child:wait_exit()
  T.expect_no_process()
end)

T.case("SIGKILL in a turn: an agent sees the end of its input and leaves", function(child)
  local agent = start_turn(child, {})
  child:kill("sigkill")
  T.eq(child:wait_exit().signal, 9)
  T.expect_no_process()
  T.eq(#agent:notes("eof"), 1)
end)

T.case("leaving does not wait for an agent that stays", function(child)
  start_turn(child, AGENTS["an agent that ignores even SIGTERM"])
  T.eq(child:quit("qall!").code, 0)
  T.expect_no_process()
end)

T.case("closing the chat's windows leaves the session; quitting then leaves no process", function(child)
  local agent = T.agent({ turns = { { { text = "an answer" } } } })
  child:use(agent)
  child:prompt("hello")
  child:wait_turns(1)
  child:cmd("CursorAgent close")
  T.eq(child:status().state, "idle")
  T.eq(child:quit("qa").code, 0)
  T.expect_no_process()
end)
