-- Starting takes Cursor three seconds: prompts are taken at once, no session is made to look something up, and a slash
-- command is sent alone.

local T = require("harness")

---@param nvim harness.Child
---@param scenario table?
---@return harness.Agent
local function cursor(nvim, scenario)
  local agent = T.agent(vim.tbl_extend("force", { profile = "cursor-2026-10" }, scenario or {}))
  agent.options.status_command = { T.program, "status" }
  nvim:use(agent, { agent = "cursor", agents = { cursor = agent.options } })
  return agent
end

---@param agent harness.Agent
---@return string[][] of each prompt, its blocks
local function prompts(agent)
  return vim.tbl_map(function(message)
    return vim.tbl_map(function(block)
      return block.text or block.uri or block.type
    end, message.params.prompt)
  end, agent:received("session/prompt"))
end

T.case("today's Cursor: the scenario that comes with the program, from its start on", { width = 120 }, function(nvim)
  nvim:lua(
    [[require("cursor_agent").setup({ agents = { cursor = { command = { ..., "play", "cursor-2026-10" } } } })]],
    T.program
  )
  nvim:cmd("CursorAgent")
  nvim:wait_screen("starting")
  nvim:keys("edit the notes<C-s>")
  nvim:wait_screen("1 queued")
  T.eq(nvim:status().state, "starting")
  nvim:wait(function()
    return nvim:status().state == "idle" and #nvim:texts("agent") > 0
  end, "the turn")
  T.eq(nvim:texts("user"), { "edit the notes" })
  T.eq(vim.fn.readfile(nvim.work .. "/hello.lua"), { 'local name = "world"', 'print("hello " .. name)' })
  -- Nothing asked.
  T.eq(nvim:lua("return require('cursor_agent').pending()"), {})
end)

T.case("several prompts while it starts are sent in their order, and can be seen", { width = 120 }, function(nvim)
  local agent = cursor(nvim, { on = { ["session/new"] = { { wait_ms = 1500 }, { profile = true } } } })
  nvim:cmd("CursorAgent")
  nvim:keys("one<C-s>two<C-s>")
  nvim:wait_screen("2 queued")
  nvim:wait(function()
    return #agent:received("session/prompt") == 2
  end, "both")
  T.eq(prompts(agent), { { "one" }, { "two" } })
  T.eq(#agent:received("session/new"), 1)
end)

T.case("nothing is looked up by making a session", { width = 120 }, function(nvim)
  local agent = cursor(nvim, {
    sessions = {
      {
        sessionId = "past",
        title = "The past",
        updates = { { sessionUpdate = "agent_message_chunk", content = { type = "text", text = "Long ago." } } },
      },
    },
  })
  nvim:cmd("checkhealth cursor_agent")
  nvim:cmd("CursorAgent status")
  nvim:keys("q")
  nvim:lua([[
    vim.ui.select = function(_, _, on_choice) on_choice(nil) end
    require("cursor_agent").status()
    require("cursor_agent").statusline()
    vim.fn.getcompletion("CursorAgent model ", "cmdline")
    vim.fn.getcompletion("CursorAgent option ", "cmdline")
    pcall(vim.cmd, "CursorAgent model")
    pcall(vim.cmd, "CursorAgent mode")
    require("cursor_agent").sessions(function(list) _G.listed = list end)
  ]])
  nvim:wait("_G.listed", "the list")
  T.eq(nvim:lua("return _G.listed[1].title"), "The past")
  nvim:lua("_G.listed = nil; require('cursor_agent').sessions(function(list) _G.listed = list end)")
  nvim:wait("_G.listed", "the list again")
  T.eq(#agent:received("session/new"), 0)
  T.eq(#agent:notes("start"), 1)
  -- Going on with one takes the process that is there, and makes none either.
  nvim:lua("require('cursor_agent').load('past')")
  nvim:wait(function()
    return vim.list_contains(nvim:texts("agent"), "Long ago.")
  end, "the past")
  T.eq(#agent:received("session/new"), 0)
  T.eq(#agent:notes("start"), 1)
  nvim:wait_state("idle")
  nvim:cmd("CursorAgent restart")
  nvim:wait_state("idle")
  nvim:cmd("CursorAgent close")
  nvim:cmd("CursorAgent open")
  T.eq(#agent:received("session/new"), 0)
end)

T.case("a restart before anything was said makes no second chat out of it", { width = 120 }, function(nvim)
  local agent = cursor(nvim)
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  nvim:cmd("CursorAgent restart")
  nvim:wait_state("idle")
  -- The scripted one keeps its sessions in memory: what it has forgotten is replaced, quietly.
  T.eq(nvim:status().error, nil)
  T.ok(not nvim:messages():find("could not", 1, true), nvim:messages())
  nvim:prompt("hello")
  nvim:wait_turns(1)
  T.eq(#agent:received("session/prompt"), 1)
end)

local FILES = { ["a.lua"] = "local a = 1\nlocal b = 2\n" }

T.case(
  "a slash command is the whole prompt; what was attached waits for the next one",
  { width = 120, files = FILES },
  function(nvim)
    local agent = cursor(nvim)
    nvim:cmd("edit a.lua")
    nvim:cmd("CursorAgent")
    nvim:wait("#require('cursor_agent').status().commands > 0", "the commands")
    nvim:keys("<Esc>")
    nvim:cmd("CursorAgent context @a.lua")
    nvim:keys("i/simplify the loop<C-s>")
    nvim:wait_turns(1)
    T.eq(prompts(agent), { { "/simplify the loop" } })
    T.contains(nvim:messages(), "`/simplify` is sent alone; attached to the next prompt: @a.lua")
    nvim:wait_screen("@a.lua")
    nvim:keys("and this<C-s>")
    nvim:wait_turns(2)
    local second = prompts(agent)[2]
    T.eq(#second, 2)
    T.eq(second[1], "and this")
    T.contains(second[2], "a.lua")
  end
)

T.case("a slash command with a range, from the API, with a mention", { width = 120, files = FILES }, function(nvim)
  local agent = cursor(nvim)
  nvim:cmd("edit a.lua")
  nvim:cmd("CursorAgent open")
  nvim:wait("#require('cursor_agent').status().commands > 0", "the commands")
  nvim:lua("require('cursor_agent').prompt('/simplify', { context = { '@a.lua' } })")
  nvim:wait_turns(1)
  nvim:keys("<Esc>")
  nvim:lua("require('cursor_agent.chat.registry').current().prompt.attached = {}")
  nvim:cmd("wincmd t")
  nvim:cmd("1,2CursorAgent prompt /simplify it")
  nvim:wait_turns(2)
  nvim:lua("require('cursor_agent.chat.registry').current().prompt.attached = {}")
  nvim:lua("require('cursor_agent').prompt('/simplify @a.lua')")
  nvim:wait_turns(3)
  T.eq(prompts(agent), { { "/simplify" }, { "/simplify it" }, { "/simplify @a.lua" } })
  T.contains(nvim:messages(), "its mentions are sent as text")
  -- A path is no command, nor is one the agent does not have.
  nvim:lua("require('cursor_agent').prompt('/etc/hosts @a.lua')")
  nvim:lua("require('cursor_agent').prompt('/nosuch @a.lua')")
  nvim:wait_turns(5)
  T.eq({ #prompts(agent)[4], #prompts(agent)[5] }, { 2, 2 })
end)

T.case(
  "a slash command that is queued while Cursor starts goes alone as well",
  { width = 120, files = FILES },
  function(nvim)
    local agent = cursor(nvim, { on = { ["session/new"] = { { wait_ms = 800 }, { profile = true } } } })
    nvim:cmd("CursorAgent")
    nvim:keys("<Esc>")
    nvim:cmd("CursorAgent context @a.lua")
    nvim:keys("i/simplify<C-s>")
    nvim:wait_turns(1)
    T.eq(prompts(agent), { { "/simplify" } })
  end
)
