-- Rules: what they allow, what they must never allow, and the line each automatic answer leaves.

local T = require("harness")

local METHOD = "session/request_permission"

---@param kind string
---@param fields? table
---@return table decision
local function permission(kind, fields)
  fields = fields or {}
  return {
    id = 1,
    key = 1,
    kind = "permission",
    agent = fields.agent or "cursor",
    title = fields.title or fields.command or "",
    cwd = "/src/app",
    tool = {
      kind = kind,
      command = fields.command,
      locations = vim.tbl_map(function(path)
        return { path = path }
      end, fields.paths or {}),
      content = vim.tbl_map(function(path)
        return { type = "diff", path = path }
      end, fields.diffs or {}),
    },
  }
end

-- { what is asked, the rules, what they say }
local TABLE = {
  { permission("execute", { command = "ls" }), {}, "ask" },
  { permission("execute", { command = "ls" }), { { action = "allow" } }, "allow" },
  { permission("execute", { command = "ls" }), { { kind = "read", action = "allow" } }, "ask" },
  { permission("execute", { command = "ls" }), { { kind = { "read", "execute" }, action = "allow" } }, "allow" },
  { permission("execute", { command = "ls" }), { { agent = "goose", action = "allow" } }, "ask" },
  { permission("execute", { command = "ls", agent = "goose" }), { { agent = "goose", action = "allow" } }, "allow" },
  -- The first rule that matches decides.
  { permission("read", { paths = { "/src/app/a" } }), { { action = "ask" }, { action = "allow" } }, "ask" },
  {
    permission("execute", { command = "rm x" }),
    { { command = "rm *", action = "reject" }, { action = "allow" } },
    "reject",
  },
  -- Commands.
  { permission("execute", { command = "cargo test" }), { { command = "cargo test *", action = "allow" } }, "allow" },
  {
    permission("execute", { command = "cargo test -p x" }),
    { { command = "cargo test *", action = "allow" } },
    "allow",
  },
  { permission("execute", { command = "cargo testify" }), { { command = "cargo test *", action = "allow" } }, "ask" },
  { permission("execute", { command = "xcargo test" }), { { command = "cargo test *", action = "allow" } }, "ask" },
  { permission("execute", { command = "make a.b" }), { { command = "make a?b", action = "allow" } }, "allow" },
  { permission("execute", { command = "make axb" }), { { command = "make a.b", action = "allow" } }, "ask" },
  -- A wildcard that allows does not stand for a second command.
  {
    permission("execute", { command = "cargo test; rm -rf /" }),
    { { command = "cargo test*", action = "allow" } },
    "ask",
  },
  { permission("execute", { command = "cargo test && rm x" }), { { command = "cargo *", action = "allow" } }, "ask" },
  { permission("execute", { command = "cargo test | sh" }), { { command = "cargo *", action = "allow" } }, "ask" },
  { permission("execute", { command = "cargo test > /etc/x" }), { { command = "cargo *", action = "allow" } }, "ask" },
  { permission("execute", { command = "cargo test $(rm x)" }), { { command = "cargo *", action = "allow" } }, "ask" },
  { permission("execute", { command = "cargo test `rm x`" }), { { command = "cargo *", action = "allow" } }, "ask" },
  { permission("execute", { command = "cargo test\nrm x" }), { { command = "cargo *", action = "allow" } }, "ask" },
  { permission("execute", { command = "a && b" }), { { command = "a && b", action = "allow" } }, "allow" },
  -- One that rejects finds it behind any operator.
  { permission("execute", { command = "cd x && rm -rf y" }), { { command = "rm *", action = "reject" } }, "reject" },
  { permission("execute", { command = "echo $(rm -rf y)" }), { { command = "rm *", action = "reject" } }, "reject" },
  { permission("execute", { command = "a\nrm y" }), { { command = "rm *", action = "reject" } }, "reject" },
  -- A command that is not known cannot be allowed by a pattern, only rejected by its title.
  { permission("execute", { title = "Terminal" }), { { command = "*", action = "allow" } }, "ask" },
  { permission("execute", { title = "rm x" }), { { command = "rm *", action = "reject" } }, "reject" },
  -- Paths, from the workspace.
  { permission("edit", { diffs = { "/src/app/src/a.lua" } }), { { path = "src/**", action = "allow" } }, "allow" },
  { permission("edit", { diffs = { "src/deep/er/a.lua" } }), { { path = "src/**", action = "allow" } }, "allow" },
  { permission("edit", { diffs = { "/src/app/src/a.lua" } }), { { path = "src", action = "allow" } }, "allow" },
  { permission("edit", { diffs = { "/src/app/srcs/a.lua" } }), { { path = "src", action = "allow" } }, "ask" },
  { permission("edit", { diffs = { "/src/app/src/x/a.lua" } }), { { path = "src/*.lua", action = "allow" } }, "ask" },
  {
    permission("edit", { diffs = { "/src/app/src/a.lua" } }),
    { { path = "**/*.{lua,rs}", action = "allow" } },
    "allow",
  },
  { permission("edit", { diffs = { "/src/app/src/a.py" } }), { { path = "**/*.{lua,rs}", action = "allow" } }, "ask" },
  -- All of them have to be allowed; one is enough to reject.
  { permission("edit", { diffs = { "src/a", "doc/b" } }), { { path = "src/**", action = "allow" } }, "ask" },
  {
    permission("edit", { diffs = { "src/a", "doc/b" } }),
    { { path = { "src/**", "doc/**" }, action = "allow" } },
    "allow",
  },
  { permission("edit", { diffs = { "src/a", ".env" } }), { { path = ".env", action = "reject" } }, "reject" },
  {
    permission("edit", { diffs = { "src/a" }, paths = { "/etc/x" } }),
    { { path = "src/**", action = "allow" } },
    "ask",
  },
  -- Outside the workspace nothing is written unless the rule names the place.
  { permission("edit", { diffs = { "/etc/hosts" } }), { { action = "allow" } }, "ask" },
  { permission("edit", { diffs = { "/etc/hosts" } }), { { kind = "edit", action = "allow" } }, "ask" },
  { permission("edit", { diffs = { "/etc/hosts" } }), { { path = "**", action = "allow" } }, "ask" },
  { permission("edit", { diffs = { "/etc/hosts" } }), { { path = "/**", action = "allow" } }, "ask" },
  { permission("edit", { diffs = { "/etc/hosts" } }), { { path = "/etc/hosts", action = "allow" } }, "allow" },
  { permission("edit", { diffs = { "/tmp/x/y" } }), { { path = "/tmp/**", action = "allow" } }, "allow" },
  { permission("edit", { diffs = { "/home/me/n/x" } }), { { path = "~/n/**", action = "allow" } }, "allow" },
  { permission("edit", { diffs = { "../other/x" } }), { { path = "**", action = "allow" } }, "ask" },
  { permission("edit", { diffs = { "src/../../other/x" } }), { { path = "src/**", action = "allow" } }, "ask" },
  { permission("edit", { diffs = { "link/x" } }), { { path = "link/**", action = "allow" } }, "ask" },
  { permission("edit", { diffs = { "link" } }), { { action = "allow" } }, "ask" },
  { permission("edit", { diffs = { "up/new" } }), { { action = "allow" } }, "ask" },
  { permission("edit", { diffs = { "chain/new" } }), { { action = "allow" } }, "ask" },
  { permission("edit", { diffs = { "link/../app/x" } }), { { action = "allow" } }, "ask" },
  { permission("edit", { diffs = { "round/x" } }), { { action = "allow" } }, "ask" },
  { permission("edit", { diffs = { "within/x" } }), { { path = "src/**", action = "allow" } }, "allow" },
  { permission("edit", { diffs = { "~/.bashrc" } }), { { action = "allow" } }, "ask" },
  -- A link is kept from the agent by its own name and by what it leads to.
  { permission("read", { paths = { "/src/app/.env" } }), { { path = "**/.env", action = "reject" } }, "reject" },
  { permission("read", { paths = { "/src/app/.env" } }), { { path = "/secret/**", action = "reject" } }, "reject" },
  { permission("edit", { diffs = { "/src/app/x" } }), { { action = "allow" } }, "allow" },
  { permission("edit", { diffs = { "/src/application/x" } }), { { action = "allow" } }, "ask" },
  { permission("delete", { paths = { "/etc/hosts" } }), { { action = "allow" } }, "ask" },
  { permission("move", { paths = { "src/a", "/etc/a" } }), { { action = "allow" } }, "ask" },
  { permission("surprise", { paths = { "/etc/hosts" } }), { { action = "allow" } }, "ask" },
  -- A diff is a write, whatever the call is said to be.
  { permission("read", { diffs = { "/etc/hosts" } }), { { action = "allow" } }, "ask" },
  -- Where it writes is not known.
  { permission("edit"), { { action = "allow" } }, "ask" },
  { permission("read", { paths = { "/etc/hosts" } }), { { kind = "read", action = "allow" } }, "allow" },
}

T.case("a table of what rules say", function(nvim)
  local given = vim.tbl_map(function(row)
    return { row[1], row[2] }
  end, TABLE)
  local said = nvim:lua(
    [[
      local policy = require("cursor_agent.decide.policy")
      local LINKS = {
        ["/src/app/link"] = "/secret",
        ["/src/app/up"] = "../../secret",
        ["/src/app/chain"] = "src/../up",
        ["/src/app/round"] = "round",
        ["/src/app/within"] = "src/real",
        ["/src/app/.env"] = "/secret/env",
      }
      local function link(path)
        return LINKS[path]
      end
      local where = { directories = { "/src/app" }, home = "/home/me", link = link }
      return vim.tbl_map(function(row)
        return (policy.decide(row[1], row[2], where))
      end, ...)
    ]],
    given
  )
  for i, row in ipairs(TABLE) do
    T.eq(said[i], row[3], vim.inspect({ row[1].tool, row[2] }))
  end
end)

T.case("a link to what does not exist yet leads out of the workspace", function(nvim)
  local said = nvim:lua([[
    local policy = require("cursor_agent.decide.policy")
    local dir = vim.fn.tempname()
    vim.fn.mkdir(dir .. "/app", "p")
    vim.uv.fs_symlink(dir .. "/new", dir .. "/app/out")
    vim.uv.fs_symlink("new", dir .. "/app/in")
    return vim.tbl_map(function(path)
      local tool = { kind = "edit", content = { { type = "diff", path = path } } }
      local decision = { id = 1, key = 1, kind = "permission", agent = "cursor", title = "", cwd = dir .. "/app", tool = tool }
      return (policy.decide(decision, { { action = "allow" } }, { directories = { dir .. "/app" }, home = "/" }))
    end, { "out", "in", dir .. "/app/x" })
  ]])
  T.eq(said, { "ask", "allow", "allow" })
end)

T.case("a rule with a mistake is named, and then everything is asked", function(nvim)
  nvim:lua([[
    require("cursor_agent").setup({
      policy = { { comand = "ls", action = "allow" }, { action = "permit" }, { kind = 3, action = "ask" }, { action = "allow" } },
    })
  ]])
  local problems = table.concat(nvim:lua("return require('cursor_agent.config').problems"), "\n")
  T.contains(problems, "option `policy`: rule 1: unknown key `comand`")
  T.contains(problems, "option `policy`: rule 2: `action` must be allow, ask or reject")
  T.contains(problems, "option `policy`: rule 3: `kind` must be a string or a list of strings")
  T.eq(nvim:lua("return require('cursor_agent.config').get().policy"), {})
end)

---@param id string
---@param command string
---@return table step
local function asks(id, command)
  local call = { toolCallId = id, title = ("`%s`"):format(command), kind = "execute" }
  return { permission = { toolCall = call } }
end

---@param agent harness.Agent
---@return string[]
local function outcomes(agent)
  return vim.tbl_map(function(answer)
    return answer.result.outcome.optionId or answer.result.outcome.outcome
  end, agent:answers(METHOD))
end

T.case("answers by themselves, each with a line that names the rule", { width = 90 }, function(nvim)
  local agent = T.agent({ turns = { { asks("1", "cargo test"), asks("2", "rm -rf x"), asks("3", "make") } } })
  nvim:use(agent, {
    policy = {
      { name = "tests", command = "cargo test *", action = "allow" },
      { kind = "execute", command = "rm *", action = "reject" },
    },
  })
  nvim:prompt("go")
  nvim:wait_screen("$ make")
  T.eq(outcomes(agent), { "allow-once", "reject-once" })
  T.eq(nvim:texts("notice"), {
    "allowed by rule `tests`: cargo test",
    "rejected by rule 2 (execute rm *): rm -rf x",
  })
  T.eq(#nvim:events("CursorAgentDecision"), 1, "only what waits for the user is an event")
  nvim:wait_screen("allowed by rule `tests`: cargo test")
end)

T.case("a rule never answers for good: without a way to allow once the user is asked", { width = 90 }, function(nvim)
  local step = asks("1", "ls")
  step.permission.options = {
    { optionId = "always", name = "Always", kind = "allow_always" },
    { optionId = "no", name = "No", kind = "reject_once" },
  }
  local agent = T.agent({ turns = { { step } } })
  nvim:use(agent, { policy = { { action = "allow" } } })
  nvim:prompt("go", { open = false })
  nvim:wait_screen("$ ls")
  T.contains(nvim:lua("return select(2, require('cursor_agent').accept())"), "does not offer to allow once")
  T.eq(outcomes(agent), {})
end)

T.case(
  "“always” is remembered for the session when an agent forgets it, if the user chose it",
  { width = 90 },
  function(nvim)
    local agent = T.agent({
      turns = {
        { asks("1", "make"), asks("2", "make"), asks("3", "make clean") },
        { asks("4", "make clean"), asks("5", "make") },
        { asks("6", "make") },
      },
    })
    nvim:use(agent)
    nvim:lua("require('cursor_agent.decide').SETTLE_MS = 0")
    nvim:prompt("go", { open = false })
    nvim:wait_screen("$ make")
    nvim:cmd("CursorAgent decisions")
    nvim:keys("A")
    nvim:wait_screen("$ make clean")
    T.eq(outcomes(agent), { "allow-always", "allow-once" })
    T.contains(nvim:texts("notice")[1], "allowed by your “always” of ")
    nvim:cmd("CursorAgent decisions")
    nvim:keys("a")
    nvim:wait_turns(1)
    nvim:prompt("again", { open = false })
    nvim:wait_screen("$ make clean")
    T.eq(#outcomes(agent), 3, "what was allowed once is asked again")
    nvim:lua("require('cursor_agent').reject()")
    nvim:wait_turns(2)
    T.eq(outcomes(agent), { "allow-always", "allow-once", "allow-once", "reject-once", "allow-once" })
    -- Another session has not been told.
    nvim:lua("require('cursor_agent').new({ open = false })")
    nvim:prompt("go", { open = false })
    nvim:wait("#require('cursor_agent').pending() == 1", "the new session to ask")
  end
)
