-- Files and commands by way of the editor: rules hold for them, the workspace has a fence, each leaves a row.

local T = require("harness")

local READ, WRITE, RUN = "fs/read_text_file", "fs/write_text_file", "terminal/create"
local OPTS = { width = 100, height = 30, files = { ["a.txt"] = "inside\n", [".env"] = "SECRET=1\n" } }

---@param path string
---@return table
local function read(path)
  return { request = { method = READ, params = { sessionId = "${session}", path = path } } }
end

---@param path string
---@param text string?
---@return table
local function write(path, text)
  local params = { sessionId = "${session}", path = path, content = text or "by the agent\n" }
  return { request = { method = WRITE, params = params } }
end

---@param command string
---@param args string[]?
---@return table
local function run(command, args)
  return { request = { method = RUN, params = { sessionId = "${session}", command = command, args = args } } }
end

---@param path string
---@return string?
local function content(path)
  local file = io.open(path, "rb")
  local text = file and file:read("*a")
  if file then
    file:close()
  end
  return text
end

---@param nvim harness.Child
---@param steps table[]
---@param options table?
---@return harness.Agent
local function start(nvim, steps, options)
  local agent = T.agent({ profile = "plain", turns = { steps } })
  nvim:use(agent, options)
  nvim:lua("require('cursor_agent.decide').SETTLE_MS = 0")
  nvim:prompt("go")
  return agent
end

---A directory outside the workspace.
---@param nvim harness.Child
---@return string
local function outside(nvim)
  local dir = vim.fs.dirname(nvim.work) .. "/outside"
  vim.fn.mkdir(dir, "p")
  return dir
end

T.case("what rules reject is rejected by way of the editor too", OPTS, function(nvim)
  local agent = start(nvim, {
    read("${cwd}/.env"),
    write(".env"),
    read("file://${cwd}/%2eenv"),
    run("rm", { "-rf", "a.txt" }),
    run("cd . && rm a.txt"),
    read("${cwd}/a.txt"),
  }, {
    policy = {
      { name = "secrets", path = "**/.env", action = "reject" },
      { name = "no rm", command = "rm *", action = "reject" },
    },
  })
  nvim:wait_turns(1)
  local reads, runs = agent:answers(READ), agent:answers(RUN)
  T.contains(reads[1].error.message, "rule `secrets`")
  T.contains(reads[2].error.message, "rule `secrets`")
  T.eq(reads[3].result.content, "inside\n")
  T.contains(agent:answers(WRITE)[1].error.message, "rule `secrets`")
  T.contains(runs[1].error.message, "rule `no rm`")
  T.contains(runs[2].error.message, "rule `no rm`")
  T.eq(content(nvim.work .. "/.env"), "SECRET=1\n")
  T.eq(content(nvim.work .. "/a.txt"), "inside\n")
  T.contains(table.concat(nvim:texts("notice"), "\n"), "rejected by rule `no rm`: running rm -rf a.txt")
  T.contains(table.concat(nvim:texts("notice"), "\n"), "rejected by rule `secrets`: reading .env")
  nvim:wait_screen("rejected by rule `no rm`")
end)

T.case("a rejected file and a rejected command are known by every name", OPTS, function(nvim)
  vim.fn.mkdir(nvim.work .. "/a")
  vim.uv.fs_symlink(nvim.work .. "/.env", nvim.work .. "/link")
  vim.uv.fs_symlink(nvim.work, nvim.work .. "/self")
  local steps = {}
  for _, path in ipairs({
    "./a/../.env",
    "file://${cwd}/%2Eenv#L1",
    "FILE://localhost${cwd}/.env",
    "link",
    "self/a/../.env",
    "//${cwd}//.env",
    ".env/.",
  }) do
    vim.list_extend(steps, { read(path), write(path) })
  end
  local paths = #steps / 2
  for _, command in ipairs({
    "rm$IFS'a.txt'",
    "{rm,a.txt}",
    "2>&1 rm a.txt",
    "r\\\nm a.txt",
    "env A=1 rm a.txt",
    "/bin/rm a.txt",
    "busybox rm a.txt",
    "sh -c 'true; rm a.txt'",
    "find . -name a.txt -exec sh -c 'rm {}' ';'",
    "rm\ta.txt",
  }) do
    steps[#steps + 1] = run(command)
  end
  local lines = #steps - 2 * paths
  vim.list_extend(
    steps,
    { run("/bin/rm", { "a.txt" }), run("sh", { "-c", "rm a.txt" }), run("xargs", { "rm", "a.txt" }) }
  )
  local agent = start(nvim, steps, {
    policy = {
      { name = "secrets", path = ".env", action = "reject" },
      { name = "no rm", command = "rm *", action = "reject" },
    },
  })
  nvim:wait_turns(1)
  T.eq({ #agent:answers(READ), #agent:answers(WRITE), #agent:answers(RUN) }, { paths, paths, lines + 3 })
  for _, answer in ipairs(vim.list_extend(agent:answers(READ), agent:answers(WRITE))) do
    T.contains((answer.error or {}).message or vim.inspect(answer), "rule `secrets`")
  end
  for i, answer in ipairs(agent:answers(RUN)) do
    T.contains((answer.error or {}).message or ("command %d ran"):format(i), "rule `no rm`")
  end
  T.eq(content(nvim.work .. "/.env"), "SECRET=1\n")
  T.eq(content(nvim.work .. "/a.txt"), "inside\n")
end)

T.case("what a rule asks about is answered by key", OPTS, function(nvim)
  local agent = start(nvim, { write("a.txt"), run("touch", { "b.txt" }), run("touch", { "c.txt" }) }, {
    policy = { { kind = { "edit", "execute" }, action = "ask" } },
  })
  nvim:wait_screen("asks to edit a file")
  T.eq(nvim:lua("return require('cursor_agent').pending()[1].kind"), "permission")
  T.eq(content(nvim.work .. "/a.txt"), "inside\n", "nothing is written before")
  nvim:cmd("CursorAgent decisions")
  nvim:keys("r")
  nvim:wait_screen("touch b.txt")
  nvim:cmd("CursorAgent decisions")
  nvim:keys("a")
  nvim:wait_screen("touch c.txt")
  nvim:cmd("CursorAgent decisions")
  nvim:keys("r")
  nvim:wait_turns(1)
  T.contains(agent:answers(WRITE)[1].error.message, "did not allow")
  T.eq(agent:answers(RUN)[1].error, nil)
  T.contains(agent:answers(RUN)[2].error.message, "did not allow")
  T.eq(content(nvim.work .. "/a.txt"), "inside\n")
  T.eq(content(nvim.work .. "/c.txt"), nil)
end)

T.case("outside the workspace: once, always in the folder, not at all", OPTS, function(nvim)
  local dir = outside(nvim)
  vim.fn.writefile({ "out" }, dir .. "/x.txt")
  local agent = start(nvim, {
    read(dir .. "/x.txt"),
    write(dir .. "/new.txt"),
    read("../outside/x.txt"),
    read("file://" .. dir .. "/x.txt"),
    write(dir .. "/other.txt"),
  })
  local function press(what, key)
    nvim:wait_screen(what)
    nvim:cmd("CursorAgent decisions")
    nvim:keys(key)
  end
  press("asks to read a file", "a")
  nvim:wait_screen("asks to edit a file")
  nvim:wait_screen("outside the workspace")
  press("new.txt", "r")
  press("asks to read a file", "A")
  press("other.txt", "r")
  nvim:wait_turns(1)
  local reads = agent:answers(READ)
  T.eq(reads[1].result.content, "out\n")
  T.eq(reads[2].result.content, "out\n")
  T.eq(reads[3].result.content, "out\n", "the folder is open for reading")
  T.contains(agent:answers(WRITE)[1].error.message, "did not allow")
  T.contains(agent:answers(WRITE)[2].error.message, "did not allow", "but not for writing")
  T.eq(content(dir .. "/new.txt"), nil)
end)

T.case("a link that leads out of the workspace is outside", OPTS, function(nvim)
  local dir = outside(nvim)
  vim.fn.writefile({ "out" }, dir .. "/x.txt")
  vim.uv.fs_symlink(dir, nvim.work .. "/link")
  vim.uv.fs_symlink(dir .. "/not-yet.txt", nvim.work .. "/dangling")
  local agent = start(nvim, {
    read("link/x.txt"),
    write("link/x.txt"),
    write("dangling"),
    write("/proc/self/root" .. dir .. "/x.txt"),
    write(nvim.work .. "/../outside/x.txt"),
  })
  for i = 1, 5 do
    nvim:wait("#require('cursor_agent').pending() == 1", "decision " .. i)
    T.eq(nvim:lua("return require('cursor_agent').pending()[1].places[1].inside"), false)
    nvim:lua("require('cursor_agent').reject()")
    nvim:wait(("#require('cursor_agent').pending() == 0 or %d < 5"):format(i), "its end")
  end
  nvim:wait_turns(1)
  T.eq(#agent:answers(WRITE), 4)
  for _, answer in ipairs(agent:answers(WRITE)) do
    T.contains(answer.error.message, "did not allow")
  end
  T.eq(content(dir .. "/x.txt"), "out\n")
  T.eq(content(dir .. "/not-yet.txt"), nil)
end)

---Puts a link out of the workspace in the place of a directory.
---@param nvim harness.Child
---@param dir string
---@param to string
local function swap(nvim, dir, to)
  assert(vim.uv.fs_rename(nvim.work .. "/" .. dir, nvim.work .. "/" .. dir .. ".was"))
  assert(vim.uv.fs_symlink(to, nvim.work .. "/" .. dir))
end

T.case("a link swapped in between the check and the write is not followed, also not into a buffer", OPTS, function(nvim)
  local dir = outside(nvim)
  vim.fn.writefile({ "out" }, dir .. "/x.txt")
  vim.fn.mkdir(nvim.work .. "/d")
  vim.fn.writefile({ "in" }, nvim.work .. "/d/x.txt")
  local early = write("d/x.txt")
  early.wait = false
  local agent = T.agent({ profile = "plain", turns = { { early, run("true"), read("a.txt") } } })
  nvim:use(agent)
  -- The user has the other file open: a write into its buffer would be a write to it.
  nvim:cmd("edit " .. dir .. "/x.txt")
  nvim:prompt("warm up", { open = false })
  nvim:wait_turns(1)
  agent = T.agent({ profile = "plain", turns = { { early, run("true"), read("a.txt") } } })
  nvim:use(agent)
  nvim:cmd("CursorAgent new")
  nvim:cmd("wincmd p")
  -- The editor is busy while the request is judged.
  nvim:prompt("go", { open = false })
  nvim:lua_later("while not vim.uv.fs_stat(...) do vim.uv.sleep(5) end", nvim.work .. "/go")
  nvim:wait(function()
    return #agent:answers(RUN) == 1
  end, "the command, which was asked for after the write")
  swap(nvim, "d", dir)
  vim.fn.writefile({}, nvim.work .. "/go")
  nvim:wait(function()
    return #agent:answers(READ) == 1
  end, "the end")
  T.contains(agent:answers(WRITE)[1].error.message, "it now leads somewhere else")
  T.eq(content(dir .. "/x.txt"), "out\n")
end)

T.case("a link swapped in while a conflict waits is not followed", OPTS, function(nvim)
  local dir = outside(nvim)
  vim.fn.writefile({ "out" }, dir .. "/x.txt")
  vim.fn.mkdir(nvim.work .. "/d")
  vim.fn.writefile({ "in" }, nvim.work .. "/d/x.txt")
  nvim:cmd("edit d/x.txt")
  nvim:keys("Smine<Esc>")
  local agent = start(nvim, { write("d/x.txt") })
  nvim:wait("#require('cursor_agent').pending() == 1", "the conflict")
  swap(nvim, "d", dir)
  nvim:lua("local c = require('cursor_agent'); c.answer(c.pending()[1].id, { option = 'theirs' })")
  nvim:wait_turns(1)
  T.contains(agent:answers(WRITE)[1].error.message, "it now leads somewhere else")
  T.eq(content(dir .. "/x.txt"), "out\n")
  T.eq(nvim:lua("return vim.fn.getbufline(vim.fn.bufnr('x.txt'), 1)"), { "mine" })
end)

T.case("roots the user adds are inside, and a workspace may be a link itself", OPTS, function(nvim)
  local dir = outside(nvim)
  vim.fn.writefile({ "out" }, dir .. "/x.txt")
  local link = vim.fs.dirname(nvim.work) .. "/by-link"
  vim.uv.fs_symlink(nvim.work, link)
  nvim:cmd("cd " .. link)
  local agent = start(nvim, {
    read(dir .. "/x.txt"),
    read(link .. "/a.txt"),
    read(nvim.work .. "/a.txt"),
    write("a.txt", "changed\n"),
  }, { workspace = { roots = { dir } } })
  nvim:wait_turns(1)
  for i, text in ipairs({ "out\n", "inside\n", "inside\n" }) do
    T.eq(agent:answers(READ)[i].result.content, text)
  end
  T.eq(agent:answers(WRITE)[1].error, nil)
  T.eq(content(nvim.work .. "/a.txt"), "changed\n")
end)

T.case("each write and each command has a row in the chat", OPTS, function(nvim)
  start(nvim, { write("src/new.txt"), run("echo", { "hello" }), read("a.txt") })
  nvim:wait_turns(1)
  nvim:wait_screen("src/new.txt")
  nvim:wait_screen("echo hello")
  T.eq(#nvim:texts("tool"), 2)
end)

T.case("a decision goes with its turn", OPTS, function(nvim)
  local dir = outside(nvim)
  local agent = start(nvim, { write(dir .. "/x.txt") })
  nvim:wait_screen("asks to edit a file")
  nvim:cmd("CursorAgent cancel")
  nvim:wait_turns(1)
  T.eq(agent:answers(WRITE)[1].error.code, -32800)
  nvim:wait_screen_without("asks to edit a file")
  T.eq(content(dir .. "/x.txt"), nil)
end)

T.case("without a screen to ask on, what is outside is rejected", OPTS, function(nvim)
  local dir = outside(nvim)
  nvim:lua("require('cursor_agent.decide.rules').UNATTENDED_MS = 50; vim.api.nvim_list_uis = function() return {} end")
  local agent = T.agent({ profile = "plain", turns = { { write(dir .. "/x.txt") } } })
  nvim:use(agent)
  nvim:lua("pcall(vim.api.nvim_clear_autocmds, { event = 'User', pattern = 'CursorAgentDecision' })")
  nvim:prompt("go", { open = false })
  nvim:wait("require('cursor_agent').status().state == 'idle'", "the end of the turn")
  T.contains(agent:answers(WRITE)[1].error.message, "no UI")
  T.eq(content(dir .. "/x.txt"), nil)
end)

T.case("a rule with a mistake has everything asked, also by way of the editor", OPTS, function(nvim)
  start(nvim, { read("a.txt") }, { policy = { { path = "**/.env", action = "rejct" } } })
  nvim:wait_screen("asks to read a file")
end)
