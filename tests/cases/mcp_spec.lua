-- MCP servers: Cursor's files and its CLI in one list, mistakes named by file and line, and servers passed to other agents.

local T = require("harness")

---@param path string
---@param text string|table
local function write(path, text)
  vim.fn.mkdir(vim.fs.dirname(path), "p")
  local file = assert(io.open(path, "wb"))
  file:write(type(text) == "string" and text or vim.json.encode(text))
  file:close()
end

---Uses the demo as Cursor's CLI; it keeps approvals where Cursor does.
---@param nvim harness.Child
---@param options? table
local function use_cursor(nvim, options)
  nvim:lua("vim.env.CURSOR_AGENT_DEMO_MCP = vim.env.HOME .. '/.cursor'")
  nvim:use({ options = { command = { T.program, "acp" }, cursor = true } }, options)
end

---@param nvim harness.Child
---@return string
local function home(nvim)
  return nvim:lua("return vim.env.HOME")
end

---@param nvim harness.Child
---@param text string
local function go_to(nvim, text)
  nvim:lua("vim.fn.search(..., 'cw')", vim.fn.escape(text, "\\."))
end

T.case("servers of both files, their state and tools, and every key", { width = 120, height = 36 }, function(nvim)
  use_cursor(nvim)
  write(nvim.work .. "/.cursor/mcp.json", {
    mcpServers = {
      git = { command = "mcp-git", args = { "--root", "${workspaceFolder}" }, demoTools = 39 },
      broken = { command = "no-such-server", demoError = "Connection failed" },
    },
  })
  write(home(nvim) .. "/.cursor/mcp.json", {
    mcpServers = {
      git = { command = "of-the-user" },
      linear = { url = "https://mcp.linear.app/sse", type = "sse", demoLogin = true, demoTools = 3 },
    },
  })
  nvim:keys(":CursorAgent mcp<CR>")
  nvim:wait_screen("3 servers  0 of 40 tools")
  nvim:wait_screen("git     stdio  project*  enabled   needs approval")
  nvim:wait_screen("linear  sse    user      enabled   needs approval")
  nvim:wait_screen("overrides the user's server of the same name")
  go_to(nvim, "git ")
  nvim:keys("e")
  nvim:wait_screen("Enabled and approved MCP server: git")
  nvim:wait_screen("approved        ready · 39 tools")
  nvim:wait_screen("39 of 40 tools")
  nvim:keys("t")
  nvim:wait_screen("git_tool_3  path, limit")
  nvim:keys("t")
  nvim:wait_screen_without("git_tool_3")
  go_to(nvim, "linear")
  nvim:keys("e")
  nvim:wait_screen("needs login")
  nvim:keys("L")
  nvim:wait(function()
    return nvim:messages():find("logged in to linear", 1, true)
  end, "the login")
  nvim:wait_screen("42 of 40 tools: Cursor ignores 2")
  go_to(nvim, "broken")
  nvim:keys("e")
  nvim:wait_screen("error: Connection failed")
  go_to(nvim, "linear")
  nvim:keys("d")
  nvim:wait_screen("linear  sse    user      disabled  approved")
  nvim:wait_screen("39 of 40 tools")
  nvim:keys("gg<C-l>")
  nvim:expect_screen("mcp-list")
  -- The right file, at the right place.
  go_to(nvim, "linear")
  nvim:keys("<CR>")
  nvim:wait(function()
    return nvim:lua("return vim.api.nvim_buf_get_name(0)"):find("/home/.cursor/mcp.json", 1, true)
  end, "the user's file")
  T.contains(nvim:lua("return vim.fn.expand('<cWORD>')"), "linear")
  -- By command, and completed.
  T.eq(nvim:lua("return vim.fn.getcompletion('CursorAgent mcp tools g', 'cmdline')"), { "git" })
  nvim:keys(":CursorAgent mcp enable linear<CR>")
  nvim:wait_screen("Enabled and approved MCP server: linear")
  nvim:keys(":CursorAgent mcp tools linear<CR>")
  nvim:wait_screen("linear_tool_3(path, limit)")
  nvim:keys("q:CursorAgent mcp disable nothing<CR>")
  nvim:wait_screen("unknown MCP server `nothing`; expected one of broken, git, linear")
  nvim:keys(":CursorAgent mcp tools broken<CR>")
  nvim:wait_screen("Failed to list tools")
end)

local MISTAKES = [[{
  // ours
  "mcpServers": {
    "args": { "command": "x",
      "args": "--all" },
    "port": { "command": "x", "env": {
      "PORT": 8080 } },
    "token": { "url": "https://example.org", "headers": {
      "Authorization": "Bearer ${env:NO_SUCH_TOKEN}" } },
    "fine": { "command": "fine" },
  }
}
]]

T.case("mistakes are named by file and line, and break nothing", { width = 120, height = 44 }, function(nvim)
  use_cursor(nvim)
  write(nvim.work .. "/.cursor/mcp.json", MISTAKES)
  write(home(nvim) .. "/.cursor/mcp.json", "{\n  oops")
  nvim:keys(":CursorAgent mcp<CR>")
  for _, text in ipairs({
    ".cursor/mcp.json:2: JSON has no comments; remove it",
    ".cursor/mcp.json:5: `args` must be a list of strings, got a string  (args)",
    ".cursor/mcp.json:7: `PORT` in `env` must be a string, got a number  (port)",
    ".cursor/mcp.json:9: the variable NO_SUCH_TOKEN is not set  (token)",
    ".cursor/mcp.json:10: trailing comma; remove it",
    "~/.cursor/mcp.json:2: not JSON: ",
  }) do
    nvim:wait_screen(text)
  end
  nvim:wait_screen("fine   stdio  project   enabled   needs approval")
  nvim:wait_screen("has a mistake, see below")
  go_to(nvim, "mcp.json:7")
  nvim:keys("<CR>")
  nvim:wait(function()
    return nvim:lua("return vim.fn.line('.')") == 7
  end, "the line")
  local marked = function()
    return nvim:lua([[
      return vim.tbl_map(function(d) return ("%d:%d %s"):format(d.lnum + 1, d.severity, d.message) end, vim.diagnostic.get(0))
    ]])
  end
  T.eq(#marked(), 5)
  T.contains(marked()[2], "5:1 `args` must be a list of strings")
  -- Saving checks again.
  nvim:keys(':5s/"--all"/["--all"]/ | 2d | write<CR>')
  nvim:wait_screen(".cursor/mcp.json:6: `PORT` in `env` must be a string, got a number (and 2 more)")
  T.eq(#marked(), 3)
  nvim:lua("vim.env.NO_SUCH_TOKEN = 'there-by-now'")
  nvim:keys([[:6s/8080/"8080"/ | 9s/,$// | write<CR>]])
  nvim:wait(function()
    return #marked() == 0
  end, "no mistake")
  -- One that is not there yet begins right.
  nvim:lua("vim.fn.delete(vim.env.HOME .. '/.cursor', 'rf')")
  nvim:keys(":CursorAgent mcp edit user<CR>")
  nvim:wait_screen('"mcpServers": {')
  nvim:keys(":write<CR>")
  nvim:wait(function()
    return vim.uv.fs_stat(home(nvim) .. "/.cursor/mcp.json") ~= nil
  end, "the file")
  T.eq(("%o"):format(assert(vim.uv.fs_stat(home(nvim) .. "/.cursor")).mode), "40700")
  T.eq(#marked(), 0)
end)

T.case(
  "agents other than Cursor are given the servers, resolved, and no log shows their values",
  { width = 120 },
  function(nvim)
    local agent = T.agent({ profile = "plain" })
    local other = T.agent({ profile = "plain" })
    nvim:use(agent, {
      mcp_servers = { extra = { command = "mcp-extra" } },
      agents = { other = vim.tbl_extend("force", other.options, { mcp_pass = { "docs" } }) },
    })
    nvim:lua("vim.env.MCP_TOKEN = 'hunter2-hunter2'")
    write(
      nvim.work .. "/.cursor/mcp.json",
      [[{ "mcpServers": {
    "git": { "command": "${userHome}/bin/git", "args": ["${workspaceFolder}", "${env:MCP_TOKEN}"], "env": { "A": "b" } },
    "lost": { "command": "x", "args": ["${env:NO_SUCH}"] }
  } }]]
    )
    write(
      home(nvim) .. "/.cursor/mcp.json",
      [[{ "mcpServers": {
    "git": { "command": "of-the-user" },
    "docs": { "url": "https://example.org", "headers": { "Authorization": "Bearer ${env:MCP_TOKEN}" } }
  } }]]
    )
    nvim:keys(":CursorAgent<CR>")
    nvim:wait_state("idle")
    local given = agent:received("session/new")[1].params.mcpServers
    local by_name = {}
    for _, server in ipairs(given) do
      by_name[server.name] = server
    end
    T.eq(by_name.git, {
      name = "git",
      command = home(nvim) .. "/bin/git",
      args = { nvim.work, "hunter2-hunter2" },
      env = { { name = "A", value = "b" } },
    })
    T.eq(by_name.docs.headers, { { name = "Authorization", value = "Bearer hunter2-hunter2" } })
    T.eq(by_name.extra.command, "mcp-extra")
    T.eq(#given, 3)
    local notices = table.concat(nvim:texts("notice"), "\n")
    T.contains(notices, "`lost`: ")
    T.contains(notices, ".cursor/mcp.json:3: the variable NO_SUCH is not set")
    T.contains(notices, "MCP servers of this project passed to the agent: git")
    local log = nvim:lua("return table.concat(require('cursor_agent.bridge.native').get().log(1), '\\n')")
    T.contains(log, "mcpServers")
    T.ok(not log:find("hunter2", 1, true), log)
    -- An agent of its own choice.
    nvim:keys("<Esc>:CursorAgent new other<CR>")
    nvim:wait(function()
      return other:received("session/new")[1] ~= nil
    end, "the other session")
    local names = vim.tbl_map(function(server)
      return server.name
    end, other:received("session/new")[1].params.mcpServers)
    table.sort(names)
    T.eq(names, { "docs", "extra" })
  end
)

T.case("Cursor is never given what it reads itself", { width = 120 }, function(nvim)
  local agent = T.agent({ profile = "cursor" })
  nvim:use(agent, { mcp_servers = { { name = "git", command = "x" }, { name = "own", command = "y" } } })
  write(nvim.work .. "/.cursor/mcp.json", { mcpServers = { git = { command = "z" }, more = { command = "w" } } })
  nvim:keys(":CursorAgent<CR>")
  nvim:wait_state("idle")
  local given = agent:received("session/new")[1].params.mcpServers
  T.eq(#given, 1)
  T.eq(given[1].name, "own")
  T.contains(table.concat(nvim:texts("notice"), "\n"), "Cursor already has `git` from its mcp.json")
end)

T.case("a CLI that hangs, fails or is missing is named, and leaves no process", { width = 120 }, function(nvim)
  local script = nvim.dir .. "/agent"
  write(
    script,
    "#!/bin/sh\ncase $3 in broken) echo 'It broke.' >&2; exit 3;; esac\nsleep 1000 & setsid sleep 1000 & wait\n"
  )
  assert(vim.uv.fs_chmod(script, 493))
  nvim:use({ options = { command = { script, "acp" }, cursor = true } })
  write(nvim.work .. "/.cursor/mcp.json", { mcpServers = { git = { command = "x" }, broken = { command = "y" } } })
  nvim:keys(":CursorAgent mcp<CR>")
  nvim:wait_screen("2 servers")
  nvim:wait_screen("git")
  go_to(nvim, "broken")
  nvim:keys("e")
  nvim:wait_screen("It broke.")
  nvim:wait(function()
    return #vim.tbl_filter(function(one)
      return one.command:find("sleep 1000", 1, true) ~= nil
    end, T.processes()) >= 2
  end, "the CLI at work")
  nvim:keys(":qall!<CR>")
  nvim:wait_exit()
  T.expect_no_process()
end)

T.case("without the CLI the files are shown all the same", { width = 120 }, function(nvim)
  nvim:use({ options = { command = { "/no/such/agent", "acp" }, cursor = true } })
  write(nvim.work .. "/.cursor/mcp.json", { mcpServers = { git = { command = "x" } } })
  nvim:keys(":CursorAgent mcp<CR>")
  nvim:wait_screen("`/no/such/agent` is not on your PATH")
  nvim:wait_screen("git   stdio  project   enabled   needs approval")
  go_to(nvim, "git ")
  nvim:keys("e")
  nvim:wait_screen("is not on your PATH")
end)
