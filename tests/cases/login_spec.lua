-- Logging in: a signed-out agent is noticed, its own login runs in a terminal window, and the chat goes on by itself.

local T = require("harness")

---@param nvim harness.Child
---@param scenario table
---@param options table
---@return harness.Agent
local function signed_out(nvim, scenario, options)
  local agent = T.agent(scenario)
  for name, value in
    pairs(vim.tbl_extend("force", {
      auth_method = "cursor_login",
      login_command = { T.program, "login" },
      env = { CURSOR_AGENT_DEMO_STATE = nvim.work .. "/state", CURSOR_AGENT_DEMO_SIGNED_OUT = "1" },
    }, options))
  do
    agent.options[name] = value
  end
  nvim:use(agent)
  return agent
end

T.case("signed out: :CursorAgent login logs in, and the prompt is sent by itself", { width = 120 }, function(nvim)
  local agent = signed_out(
    nvim,
    { turns = { { { text = "Welcome back." } } } },
    { status_command = { T.program, "status" } }
  )
  nvim:prompt("hello")
  nvim:wait("require('cursor_agent').status().needs_login", "the login is asked for")
  T.contains(nvim:messages(), "is not logged in")
  T.contains(nvim:messages(), ":CursorAgent login")
  T.eq(#agent:received("authenticate"), 0)
  nvim:keys("<Esc>")
  nvim:cmd("CursorAgent login")
  nvim:wait_turns(1)
  T.eq(nvim:texts("user"), { "hello" })
  T.eq(nvim:texts("agent"), { "Welcome back." })
  T.eq(nvim:status().state, "idle")
  T.eq(
    nvim:lua("return #vim.tbl_filter(function(b) return vim.bo[b].buftype == 'terminal' end, vim.api.nvim_list_bufs())"),
    0
  )
end)

T.case("a login that fails says so, and nothing that was typed is lost", { width = 120 }, function(nvim)
  signed_out(nvim, {}, { status_command = { T.program, "status" }, login_command = { "false" } })
  nvim:prompt("hello")
  nvim:wait("require('cursor_agent').status().needs_login", "the login is asked for")
  nvim:keys("<Esc>")
  nvim:cmd("CursorAgent login")
  nvim:wait(function()
    return nvim:messages():find("`false` ended with exit code 1", 1, true)
  end, "the message")
  T.eq(nvim:status().queued, 1)
end)

T.case("an agent that wants a variable: :CursorAgent login says which", { width = 120 }, function(nvim)
  local agent = T.agent({
    profile = "plain",
    initialize = {
      authMethods = { { id = "key", name = "API key", type = "env_var", vars = { { name = "SOME_API_KEY" } } } },
    },
    on = { ["session/new"] = { { error = { code = -32000, message = "Authentication required" } } } },
  })
  nvim:use(agent)
  nvim:prompt("hello")
  nvim:wait("require('cursor_agent').status().needs_login", "the login is asked for")
  nvim:keys("<Esc>")
  T.contains(nvim:cmd("CursorAgent login"), "set SOME_API_KEY in `agents.test.env`")
end)
