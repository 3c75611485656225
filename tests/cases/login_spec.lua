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

T.case(":CursorAgent login works in a chat that was never refused", { width = 120 }, function(nvim)
  local agent = T.agent({ turns = { { { text = "Still here." } } } })
  agent.options.login_command = { "sh", "-c", "echo done > logged-in" }
  nvim:use(agent)
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  nvim:keys("<Esc>:CursorAgent login<CR>")
  wait_message(nvim, "logged in to test")
  T.ok(vim.uv.fs_stat(nvim.work .. "/logged-in"), "the login ran")
  nvim:prompt("hello")
  nvim:wait_turns(1)
  T.eq(nvim:texts("agent"), { "Still here." })
end)

---An agent with several ways to log in, none of which is the only right one.
---@param nvim harness.Child
---@param on table? what it answers
---@param turns table[]?
---@return harness.Agent
local function several(nvim, on, turns)
  local agent = T.agent({
    profile = "plain",
    initialize = {
      authMethods = {
        { id = "account", name = "Account", description = "In a browser" },
        { id = "key", name = "API key", type = "env_var", vars = { { name = "SOME_API_KEY" } } },
        { id = "device", name = "Device code" },
      },
    },
    on = on,
    turns = turns,
  })
  agent.options.login_command = { "sh", "-c", "echo done > logged-in" }
  nvim:use(agent)
  return agent
end

local REFUSED = { error = { code = -32000, message = "Authentication required" } }

---@param nvim harness.Child
---@param number integer of the way that is chosen
local function choose(nvim, number)
  nvim:lua(
    [[
    local number = ...
    vim.ui.select = function(items, opts, on_choice)
      _G.asked = { prompt = opts.prompt, ways = vim.tbl_map(opts.format_item, items) }
      vim.schedule(function() on_choice(items[number], number) end)
    end
  ]],
    number
  )
end

T.case("with several ways to log in none is tried unasked: the user is asked which", { width = 120 }, function(nvim)
  local agent = several(nvim, {
    ["session/new"] = { { REFUSED } },
    ["authenticate"] = { { { error = { code = -32603, message = "the window was closed" } } } },
  }, { { { text = "Welcome." } } })
  nvim:prompt("hello")
  wait_message(nvim, ":CursorAgent login asks which method")
  T.contains(nvim:messages(), "Account · API key · Device code")
  T.eq(#agent:received("authenticate"), 0)
  nvim:keys("<Esc>")
  choose(nvim, 1)
  nvim:cmd("CursorAgent login")
  -- One that failed says so, and what else there is.
  wait_message(nvim, "with Account: the window was closed")
  T.contains(nvim:messages(), "offers other ways: API key · Device code")
  T.eq(nvim:lua("return _G.asked.prompt"), "Log in to test with")
  T.eq(nvim:lua("return _G.asked.ways[1]"), "Account · In a browser")
  T.eq(nvim:status().queued, 1)
  choose(nvim, 2)
  nvim:cmd("CursorAgent login")
  wait_message(nvim, "set SOME_API_KEY in `agents.test.env`")
  choose(nvim, 3)
  nvim:cmd("CursorAgent login")
  wait_message(nvim, "logged in to test")
  nvim:wait_turns(1)
  T.eq(nvim:texts("agent"), { "Welcome." })
  T.eq(
    vim.tbl_map(function(request)
      return request.params.methodId
    end, agent:received("authenticate")),
    { "account", "device" }
  )
end)

T.case(
  "a prompt that is refused for want of a login sets it, and the chat goes on after it",
  { width = 120 },
  function(nvim)
    local agent = several(nvim, { ["session/prompt"] = { { REFUSED } } }, { { { text = "Welcome." } } })
    nvim:prompt("hello")
    nvim:wait("require('cursor_agent').status().needs_login", "the login")
    nvim:wait_screen("signed out")
    T.contains(nvim:status().error, ":CursorAgent login logs in")
    nvim:keys("<Esc>:CursorAgent login device<CR>")
    wait_message(nvim, ":CursorAgent retry sends the prompt again")
    T.eq(nvim:status().needs_login, false)
    nvim:keys(":CursorAgent retry<CR>")
    nvim:wait_screen("Welcome.")
    T.eq(#agent:received("authenticate"), 1)
  end
)

T.case(
  "a prompt that is refused, a login in a terminal: it is over, and the prompt can be sent again",
  { width = 120 },
  function(nvim)
    -- As Claude: a method that names a command.
    local method = {
      id = "claude-login",
      name = "Claude subscription",
      _meta = { ["terminal-auth"] = { label = "Log in", command = "sh", args = { "-c", "echo done > logged-in" } } },
    }
    local base = { profile = "plain", initialize = { authMethods = { method } } }
    local agent = T.agent({
      runs = {
        vim.tbl_extend("force", base, { on = { ["session/prompt"] = { { REFUSED } } } }),
        vim.tbl_extend("force", base, { turns = { { { text = "Welcome." } } } }),
      },
    })
    nvim:use(agent)
    nvim:prompt("hello")
    nvim:wait_screen("signed out")
    nvim:keys("<Esc>:CursorAgent login<CR>")
    wait_message(nvim, ":CursorAgent retry sends the prompt again")
    T.ok(vim.uv.fs_stat(nvim.work .. "/logged-in"), "the login ran")
    nvim:wait("not require('cursor_agent').status().needs_login", "the login to be over")
    nvim:wait_screen_without("signed out")
    nvim:wait_state("idle")
    nvim:cmd("CursorAgent retry")
    nvim:wait_screen("Welcome.")
  end
)

T.case("a way to log in that is not chosen after all changes nothing", { width = 120 }, function(nvim)
  local agent = several(nvim, { ["session/prompt"] = { { REFUSED } } }, { { { text = "Welcome." } } })
  nvim:prompt("hello")
  nvim:wait_screen("signed out")
  nvim:keys("<Esc>")
  nvim:cmd("messages clear")
  -- As a person leaves a list: no item.
  choose(nvim, 99)
  nvim:cmd("CursorAgent login")
  nvim:wait("_G.asked ~= nil", "the question")
  T.eq(#nvim:lua("return _G.asked.ways"), 4)
  nvim:lua("vim.wait(50)")
  T.eq(nvim:messages(), "")
  T.eq(#agent:received("authenticate"), 0)
  T.eq(nvim:status().needs_login, true)
end)

T.case("a login in a terminal that fails names the other ways", { width = 120 }, function(nvim)
  local agent = several(nvim)
  agent.options.login_command = { "false" }
  nvim:use(agent)
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  nvim:keys("<Esc>")
  choose(nvim, 4)
  nvim:cmd("CursorAgent login")
  wait_message(nvim, "`false` ended with exit code 1")
  T.contains(nvim:messages(), "offers other ways: Account · API key · Device code")
  T.contains(nvim:cmd("CursorAgent login nothing"), "test has no login method `nothing`")
end)

T.case("without a chat an agent with no login command says where to log in", { width = 120 }, function(nvim)
  local agent = T.agent({})
  nvim:use(agent)
  T.contains(nvim:cmd("CursorAgent login"), ":CursorAgent new test, then :CursorAgent login")
end)
