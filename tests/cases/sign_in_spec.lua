-- Signing in to today's Cursor: by a key, by a login, and signed out.

local T = require("harness")

local KEY = "very-secret-key-0123456789"

---Today's Cursor as the agent `cursor`, logged out.
---@param nvim harness.Child
---@param scenario table?
---@param options table?
---@return harness.Agent
local function cursor(nvim, scenario, options)
  options = options or {}
  local base = { profile = "cursor-2026-10", signed_out = true, turns = { { { text = "Hello." } } } }
  scenario = vim.tbl_extend("force", base, scenario or {})
  -- What it plays when it is started again.
  local again = scenario.again and vim.tbl_extend("force", base, scenario.again)
  scenario.again = nil
  local agent = T.agent(again and { runs = { scenario, again } } or scenario)
  agent.options.env = vim.tbl_extend("force", {
    CURSOR_AGENT_DEMO_STATE = nvim.work .. "/state",
    CURSOR_AGENT_DEMO_SIGNED_OUT = "1",
  }, options.env or {})
  agent.options.status_command = { T.program, "status" }
  agent.options.login_command = { T.program, "login" }
  vim.list_extend(agent.options.command, options.args or {})
  nvim:use(agent, { agent = "cursor", agents = { cursor = agent.options } })
  return agent
end

---@param nvim harness.Child
---@param text string
local function wait_message(nvim, text)
  nvim:wait(function()
    return nvim:messages():find(text, 1, true)
  end, text)
end

---@param nvim harness.Child
---@param expected string
local function wait_said(nvim, expected)
  nvim:wait(function()
    return vim.list_contains(nvim:texts("agent"), expected)
  end, expected)
end

---@param nvim harness.Child
local function buffer_text(nvim)
  return table.concat(nvim:api("nvim_buf_get_lines", 0, 0, -1, false), "\n")
end

local WAYS = {
  { "CURSOR_API_KEY in Neovim's environment", { set = "CURSOR_API_KEY" } },
  { "CURSOR_AUTH_TOKEN in Neovim's environment", { set = "CURSOR_AUTH_TOKEN" } },
  { "CURSOR_API_KEY in the agent's options", { env = { CURSOR_API_KEY = KEY } } },
  { "--api-key and a value", { args = { "--api-key", KEY } } },
  { "--auth-token= in one", { args = { "--auth-token=" .. KEY } } },
}

for _, way in ipairs(WAYS) do
  local name, how = way[1], way[2]
  T.case(name .. ": a chat starts, and authenticate is never sent", { width = 120 }, function(nvim)
    if how.set then
      nvim:lua("vim.env[...] = select(2, ...)", how.set, KEY)
    end
    local agent = cursor(nvim, {}, how)
    nvim:prompt("hello")
    wait_said(nvim, "Hello.")
    T.eq(#agent:received("authenticate"), 0)
    T.eq(#agent:received("session/new"), 1)
    T.ok(not nvim:messages():find("logged in", 1, true), nvim:messages())
  end)
end

T.case("a key that is refused: told so, never authenticated, and the prompt waits", { width = 140 }, function(nvim)
  local refused = { error = { code = -32000, message = "Authentication required" } }
  local agent = cursor(nvim, {
    on = { ["session/new"] = { refused } },
    again = {},
  }, { env = { CURSOR_API_KEY = KEY } })
  nvim:prompt("hello")
  wait_message(nvim, "cursor did not accept the key: Authentication required (-32000)")
  T.contains(nvim:messages(), ":CursorAgent restart")
  T.eq(#agent:received("authenticate"), 0)
  T.eq(nvim:status().queued, 1)
  T.ok(not nvim:messages():find(KEY, 1, true), nvim:messages())
  nvim:keys("<Esc>")
  nvim:cmd("CursorAgent restart")
  wait_said(nvim, "Hello.")
  T.eq(nvim:texts("user"), { "hello" })
  T.eq(#agent:received("authenticate"), 0)
end)

T.case("a key in the arguments is named without its value, and nothing else is hidden", { width = 140 }, function(nvim)
  cursor(nvim, {}, { args = { "--api-key", KEY } })
  nvim:prompt("hello")
  wait_said(nvim, "Hello.")
  nvim:cmd("CursorAgent status")
  nvim:wait(function()
    return buffer_text(nvim):find("signed in with a key: `agents.cursor.command` has `--api-key`\n", 1, true)
  end, "how it is signed in")
  T.ok(not buffer_text(nvim):find(KEY, 1, true), buffer_text(nvim))
end)

T.case("a saved login: a session at once, without authenticate", { width = 120 }, function(nvim)
  local agent = cursor(nvim, { signed_out = false })
  nvim:prompt("hello")
  wait_said(nvim, "Hello.")
  T.eq(#agent:received("authenticate"), 0)
end)

T.case(
  "signed out: a session first, then authenticate, then the user; the prompt waits",
  { width = 140 },
  function(nvim)
    -- Empty variables do not sign in.
    nvim:lua("vim.env.CURSOR_API_KEY = ''")
    local agent = cursor(nvim, {}, { env = { CURSOR_AUTH_TOKEN = "" } })
    nvim:prompt("hello")
    wait_message(
      nvim,
      "cursor is not logged in, and could not open its login: Failed to open browser for login (-32602)"
    )
    T.contains(nvim:messages(), ":CursorAgent login runs")
    local order = {} ---@type string[]
    for _, line in ipairs(agent:log()) do
      if line["in"] and line["in"].method then
        order[#order + 1] = line["in"].method
      end
    end
    T.eq(order, { "initialize", "session/new", "authenticate", "session/new" })
    local status = nvim:status()
    T.eq({ status.state, status.queued, status.needs_login }, { "starting", 1, true })
    nvim:keys("<Esc>")
    nvim:cmd("CursorAgent login")
    wait_said(nvim, "Hello.")
    T.eq(nvim:texts("user"), { "hello" })
    T.eq(nvim:status().error, nil)
  end
)

T.case("authenticate fails, and the session works all the same", { width = 120 }, function(nvim)
  local agent = cursor(nvim, {
    signed_out = false,
    on = {
      ["session/new"] = { { { error = { code = -32000, message = "Authentication required" } } } },
      authenticate = { { error = { code = -32602, message = "Failed to open browser for login" } } },
    },
  })
  nvim:prompt("hello")
  wait_said(nvim, "Hello.")
  T.eq(#agent:received("authenticate"), 1)
end)

T.case("authenticate that hangs has a time limit", { width = 140, deadline_ms = 60000 }, function(nvim)
  cursor(nvim, { on = { authenticate = { { hang = true } } } })
  nvim:prompt("hello")
  nvim:wait(function()
    return nvim:messages():find("has not answered the login request for 15 s", 1, true)
  end, "the time limit", 30000)
  T.contains(nvim:messages(), ":CursorAgent login")
  nvim:keys("<Esc>")
  nvim:cmd("CursorAgent login")
  wait_said(nvim, "Hello.")
end)

T.case("signed out, past sessions: why not, and :CursorAgent login without a chat", { width = 140 }, function(nvim)
  local agent = cursor(nvim)
  nvim:cmd("CursorAgent sessions")
  wait_message(nvim, "cursor is not logged in")
  T.eq(#agent:received("session/new"), 0)
  nvim:keys("<Esc>")
  nvim:cmd("CursorAgent login")
  wait_message(nvim, "logged in to cursor")
  nvim:cmd("CursorAgent sessions")
  wait_message(nvim, "no other chats")
  T.eq(#agent:received("session/new"), 0)
end)

T.case("the agent and every probe have the whole environment", { width = 120 }, function(nvim)
  local script = nvim.dir .. "/probe"
  local file = assert(io.open(script, "wb"))
  file:write(
    ('#!/bin/sh\necho "$CURSOR_API_KEY $SOME_VARIABLE $MORE $1" >> %s/probes\necho "Not logged in 1"\n'):format(
      nvim.dir
    )
  )
  file:close()
  assert(vim.uv.fs_chmod(script, 493))
  nvim:lua("vim.env.CURSOR_API_KEY = ...; vim.env.SOME_VARIABLE = 'some'", KEY)
  local agent =
    T.agent({ profile = "cursor-2026-10", record_env = { "CURSOR_API_KEY", "SOME_VARIABLE", "MORE", "PATH" } })
  agent.options.env = { MORE = "more" }
  agent.options.status_command = { script, "status" }
  agent.options.version_command = { script, "version" }
  nvim:use(agent, { agent = "cursor", agents = { cursor = agent.options } })
  nvim:prompt("hello")
  nvim:wait_turns(1)
  local env = assert(agent:notes("start")[1].env)
  T.eq({ env.CURSOR_API_KEY, env.SOME_VARIABLE, env.MORE }, { KEY, "some", "more" })
  T.eq(env.PATH, nvim:lua("return vim.env.PATH"))
  nvim:cmd("CursorAgent status")
  nvim:wait(function()
    return buffer_text(nvim):find("says: Not logged in", 1, true)
  end, "the probe")
  nvim:cmd("checkhealth cursor_agent")
  local seen = {} ---@type table<string, boolean>
  for line in io.lines(nvim.dir .. "/probes") do
    seen[line] = true
  end
  T.eq(seen, { [KEY .. " some more status"] = true, [KEY .. " some more version"] = true })
end)

T.case("status and checkhealth say how one is signed in, beside what the agent says", { width = 140 }, function(nvim)
  nvim:lua("vim.env.CURSOR_API_KEY = ...", KEY)
  local agent = cursor(nvim)
  local function status()
    nvim:cmd("CursorAgent status")
    nvim:wait(function()
      local text = buffer_text(nvim)
      return text:find("says:", 1, true) and text:find("Settings", 1, true)
    end, "all of it")
    return buffer_text(nvim)
  end
  local text = status()
  T.contains(text, "signed in with a key: CURSOR_API_KEY in Neovim's environment")
  T.contains(text, "says: Not logged in (it only reports logins; the key works without one)")
  T.ok(not text:find(KEY, 1, true), text)
  nvim:keys("q")
  nvim:cmd("checkhealth cursor_agent")
  text = buffer_text(nvim)
  T.contains(text, "OK signed in with a key: CURSOR_API_KEY in Neovim's environment")
  T.contains(text, "says: Not logged in (it only reports logins; the key works without one)")
  T.ok(not text:find(KEY, 1, true), text)
  nvim:cmd("bwipeout")

  nvim:lua("vim.env.CURSOR_API_KEY = nil; vim.env.CURSOR_AUTH_TOKEN = ...", KEY)
  T.contains(status(), "signed in with a token: CURSOR_AUTH_TOKEN in Neovim's environment")
  nvim:keys("q")
  nvim:lua("vim.env.CURSOR_AUTH_TOKEN = nil")
  T.contains(status(), "none: run :CursorAgent login, or set CURSOR_API_KEY")
  nvim:keys("q")
  nvim:lua(
    "vim.system(..., { env = { CURSOR_AGENT_DEMO_STATE = select(2, ...) } }):wait()",
    { T.program, "login" },
    nvim.work .. "/state"
  )
  text = status()
  T.contains(text, "signed in with a login")
  T.contains(text, "Logged in as demo@example.com")
  -- To look is not to start.
  T.eq(#agent:log(), 0)
end)

T.case("the demo signed out: its own login, and the tour begins", { width = 140 }, function(nvim)
  nvim:lua([[
    vim.env.CURSOR_AGENT_DEMO_SIGNED_OUT, vim.env.CURSOR_AGENT_DEMO_SPEED = "1", "fast"
    require("cursor_agent").setup({ agent = "demo" })
  ]])
  nvim:prompt("hello")
  wait_message(nvim, "demo is not logged in")
  nvim:keys("<Esc>")
  nvim:cmd("CursorAgent login")
  nvim:wait(function()
    return table.concat(nvim:texts("agent"), "\n"):find("demo agent", 1, true)
  end, "the welcome")
end)
