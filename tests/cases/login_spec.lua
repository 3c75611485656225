-- Logging in: a signed-out agent is noticed, its own login runs in a terminal window, and the chat goes on by itself.

local T = require("harness")

---@param nvim harness.Child
---@param scenario table
---@param options table
---@return harness.Agent
local function signed_out(nvim, scenario, options)
  local agent = T.agent(vim.tbl_extend("force", { profile = "cursor-2026-10", signed_out = true }, scenario))
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

---@param nvim harness.Child
---@param text string
local function wait_message(nvim, text)
  nvim:wait(function()
    return nvim:messages():find(text, 1, true)
  end, text)
end

T.case("signed out: :CursorAgent login logs in, and the prompt is sent by itself", { width = 120 }, function(nvim)
  local agent = signed_out(nvim, { turns = { { { text = "Welcome back." } } } }, {})
  nvim:prompt("hello")
  wait_message(nvim, ":CursorAgent login")
  T.contains(nvim:messages(), "is not logged in")
  T.eq(#agent:received("authenticate"), 1)
  T.eq(nvim:status().queued, 1)
  nvim:keys("<Esc>")
  nvim:cmd("CursorAgent login")
  nvim:wait_turns(1)
  T.eq(nvim:texts("user"), { "hello" })
  T.eq(nvim:texts("agent"), { "Welcome back." })
  T.eq(nvim:status().state, "idle")
  nvim:wait(
    "#vim.tbl_filter(function(b) return vim.bo[b].buftype == 'terminal' end, vim.api.nvim_list_bufs()) == 0",
    "the terminal goes away"
  )
end)

T.case("a login that fails says so, and nothing that was typed is lost", { width = 120 }, function(nvim)
  signed_out(nvim, {}, { login_command = { "false" } })
  nvim:prompt("hello")
  wait_message(nvim, ":CursorAgent login")
  nvim:keys("<Esc>")
  nvim:cmd("CursorAgent login")
  wait_message(nvim, "`false` ended with exit code 1")
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
  wait_message(nvim, "SOME_API_KEY")
  nvim:keys("<Esc>")
  T.contains(nvim:cmd("CursorAgent login"), "set SOME_API_KEY in `agents.test.env`")
end)
