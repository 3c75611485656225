-- Cloud agents when things go wrong: programs that die, commands without a key, words in another encoding, answers that fail late.

local T = require("harness")
local Cloud = require("harness.cloud")

local case, KEY = Cloud.case, Cloud.KEY

---@param nvim harness.Child
local function open(nvim)
  nvim:cmd("CursorAgent cloud")
  nvim:wait_screen("running")
  nvim:wait_screen_without("Loading…")
end

case(
  "a refused follow-up is offered again, and words in another encoding arrive",
  { "--agents", "2" },
  function(nvim, cloud)
    open(nvim)
    nvim:keys("/Fix flaky<CR>fAlso the docs<CR>")
    nvim:wait_message("The agent is still working (409)")
    nvim:keys("f")
    nvim:wait_screen("Follow up: Also the docs")
    nvim:keys("<Esc>x")
    nvim:wait_message("stopped “Fix flaky tests”")
    -- Latin-1, as a file may have it.
    local id = nvim:lua("return require('cursor_agent.cloud.dashboard').current().id")
    nvim:lua([[require("cursor_agent.cloud").run("follow " .. ... .. " caf\xe9 hang")]], id)
    nvim:wait_message("sent to “Fix flaky tests”")
    local sent = cloud:asked("POST", "/runs")
    T.contains(sent[#sent].body, "caf\239\191\189 hang")
  end
)

case("a program that dies is started again for what is watched", {}, function(nvim, cloud)
  T.git(nvim.work, "init", "--quiet")
  T.git(nvim.work, "remote", "add", "origin", "https://github.com/acme/app")
  nvim:keys(":CursorAgent cloud new hang<CR>")
  nvim:wait_screen("[Y]es")
  nvim:keys("y")
  nvim:wait_message("started on acme/app")
  nvim:wait(function()
    return #cloud:asked("GET", "/stream") == 1
  end, "the run to be followed")
  nvim:lua([[
    for _, pid in ipairs(vim.api.nvim_get_proc_children(vim.fn.getpid())) do
      local info = vim.api.nvim_get_proc(pid)
      if info and info.name:find("cursor%-agent%-cl") then
        vim.uv.kill(pid, "sigkill")
      end
    end
  ]])
  nvim:wait(function()
    return #cloud:asked("GET", "/stream") == 2
  end, "the run to be followed again")
  T.eq(nvim:lua("return require('cursor_agent').statusline()"), "cloud 1 running")
  nvim:cmd("CursorAgent cloud")
  nvim:wait_screen("1 running")
  nvim:keys("x")
  nvim:wait_screen("1 stopped")
  nvim:wait(function()
    return not nvim:lua("return require('cursor_agent').statusline()"):find("cloud", 1, true)
  end, "nothing to be watched any more")
end)

case("pressed twice, the key that starts an agent starts one", {}, function(nvim, cloud)
  T.git(nvim.work, "init", "--quiet")
  T.git(nvim.work, "remote", "add", "origin", "https://github.com/acme/app")
  cloud:tell({
    faults = { { method = "POST", path = "/v1/agents", times = 1, what = { slow = { piece = 40, pause_ms = 80 } } } },
  })
  nvim:keys(":CursorAgent cloud new<CR>")
  nvim:wait_screen("repository: https://github.com/acme/app")
  nvim:keys("GAhang<Esc><C-s>")
  nvim:wait_screen("[Y]es")
  nvim:keys("y")
  nvim:wait(function()
    return #cloud:tell().agents == 1
  end, "the agent")
  nvim:keys("<C-s>")
  nvim:wait_message("already sending")
  nvim:wait_message("started on acme/app")
  T.eq(#cloud:tell().agents, 1)
  nvim:wait_screen_without("repository:")
  -- After a refusal the text stays, and can be sent.
  cloud:tell({ faults = { { method = "POST", path = "/v1/agents", times = 1, what = { refuse = { status = 400 } } } } })
  nvim:keys(":CursorAgent cloud new<CR>")
  nvim:wait_screen("repository: https://github.com/acme/app")
  nvim:keys("GAhang too<Esc>:w<CR>")
  nvim:wait_screen("[Y]es")
  nvim:keys("y")
  nvim:wait_message("Cursor refused the request (400)")
  nvim:wait_screen("hang too")
  nvim:keys("<C-s>")
  nvim:wait_screen("[Y]es")
  nvim:keys("y")
  nvim:wait_message("“hang too” started on acme/app")
  T.eq(#cloud:tell().agents, 2)
end)

case("what was done is not told as failed because a look at it fails", { "--agents", "2" }, function(nvim, cloud)
  open(nvim)
  local id = nvim:lua("return require('cursor_agent.cloud.dashboard').list()[1].id")
  nvim:keys("/Fix flaky<CR>")
  -- Stopped, though the run cannot be looked at afterwards: the first look is the one before.
  cloud:tell({
    faults = {
      {
        method = "GET",
        path = nvim:lua("return require('cursor_agent.cloud.dashboard').current().run"),
        after = 1,
        times = 0,
        what = { refuse = { status = 403 } },
      },
    },
  })
  nvim:keys("x")
  nvim:wait_message("stopped “Fix flaky tests”")
  -- Followed up, though the agent cannot be looked at afterwards.
  cloud:tell({
    faults = {
      { method = "GET", path = "/v1/agents/" .. id, after = 1, times = 0, what = { refuse = { status = 403 } } },
    },
  })
  nvim:keys("fhang<CR>")
  nvim:wait_message("sent to “Fix flaky tests”")
  -- Created by the older API, though today's does not show it.
  T.git(nvim.work, "init", "--quiet")
  T.git(nvim.work, "remote", "add", "origin", "https://github.com/acme/app")
  nvim:keys(":CursorAgent cloud new<CR>")
  nvim:wait_screen("repository: https://github.com/acme/app")
  nvim:cmd("%s/^branch:.*/branch: mine")
  nvim:keys("GAhang<Esc><C-s>")
  nvim:wait_screen("[Y]es")
  cloud:tell({ faults = { { method = "GET", times = 0, what = { refuse = { status = 403 } } } } })
  nvim:keys("y")
  nvim:wait_message("started on acme/app")
  T.eq(#cloud:tell().agents, 3)
end)

case("handing a chat over takes new files along and says what is not saved", {}, function(nvim, cloud)
  T.git(nvim.work, "init", "--quiet")
  T.git(nvim.work, "remote", "add", "origin", "https://github.com/acme/app")
  T.git(nvim.work, "add", "a.lua")
  T.git(nvim.work, "commit", "--quiet", "-m", "first")
  vim.fn.writefile({ "local fresh = 1" }, nvim.work .. "/new.lua")
  vim.fn.writefile({ "*.secret" }, nvim.work .. "/.gitignore")
  vim.fn.writefile({ "ignored words" }, nvim.work .. "/x.secret")
  local before = T.git(nvim.work, "status", "--porcelain")
  nvim:use(T.agent({ turns = { { { text = "Done." } } } }), { cloud = { url = cloud.url, api_key = KEY } })
  nvim:cmd("edit a.lua")
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  nvim:prompt("Add a file")
  nvim:wait_turns(1)
  nvim:lua("vim.api.nvim_buf_set_lines(vim.fn.bufnr('a.lua'), 0, -1, false, { 'typed' })")
  nvim:cmd("CursorAgent cloud send")
  nvim:wait_screen("repository: https://github.com/acme/app")
  local text = table.concat(nvim:lua("return vim.api.nvim_buf_get_lines(0, 0, -1, false)"), "\n")
  T.contains(text, "+local fresh = 1")
  T.contains(text, "a.lua has unsaved changes; the diff is of what is on disk")
  T.ok(not text:find("ignored words", 1, true), "an ignored file was taken along")
  T.eq(T.git(nvim.work, "status", "--porcelain"), before)
  T.eq(#cloud:tell().agents, 0)
end, { files = { ["a.lua"] = "local a\n" } })

case("commands that print no key say so, and end with Neovim", { "--agents", "1" }, function(nvim, cloud)
  local function with(...)
    nvim:lua("require('cursor_agent').setup({ cloud = { url = ..., api_key = select(2, ...) } })", cloud.url, { ... })
  end
  with("true")
  nvim:cmd("CursorAgent cloud")
  nvim:wait_screen("`true`, which should print the Cursor API key, printed nothing")
  with("sh", "-c", "echo two words")
  nvim:keys("R")
  nvim:wait_screen("printed invalid characters")
  with("/nonexistent/pass")
  nvim:keys("R")
  nvim:wait_screen("did not start")
  T.eq(#cloud:tell().requests, 0)
  with("sh", "-c", ("printf '%%s\\n' %s 'and notes'"):format(KEY))
  nvim:keys("R")
  nvim:wait_screen("Fix flaky tests")
  T.ok(not nvim:messages():find(KEY, 1, true))
  -- One that hangs goes with Neovim.
  local pid = nvim.dir .. "/pid"
  with("sh", "-c", ("echo $$ > '%s'; exec sleep 600"):format(pid))
  nvim:keys("R")
  nvim:wait(function()
    return vim.uv.fs_stat(pid) and #vim.fn.readfile(pid) > 0
  end, "the command to be asked")
  nvim:wait_screen("Loading…")
  local number = assert(tonumber(vim.fn.readfile(pid)[1])) --[[@as integer]]
  nvim:quit("qa!")
  nvim:wait_exit()
  T.ok(
    vim.wait(10000, function()
      return vim.uv.kill(number, 0) ~= 0
    end, 20),
    "the command still runs"
  )
end)

T.case(
  "the dashboard fits 80 columns, and long names of repositories",
  { width = 80, height = 24, deadline_ms = 90000 },
  function(nvim)
    local cloud = Cloud.start(T.root, { "--agents", "9", "--pace", "5" })
    nvim:use(T.agent({ turns = {} }), { cloud = { url = cloud.url, api_key = "key_fake" } })
    nvim:cmd("CursorAgent cloud")
    nvim:wait_screen("2 running · 5 finished · 1 error · 1 stopped")
    nvim:wait_screen("ada@example.org")
    nvim:expect_screen("cloud_dashboard_80")
    T.git(nvim.work, "init", "--quiet")
    T.git(nvim.work, "remote", "add", "origin", "https://github.com/acme/services-api")
    nvim:keys(":CursorAgent cloud new hang<CR>")
    nvim:wait_screen("[Y]es")
    nvim:keys("y")
    nvim:wait_screen("acme/services-api ")
    cloud:stop()
  end
)

T.case("in the demo every key of the dashboard works", Cloud.OPTS, function(nvim)
  nvim:lua("require('cursor_agent').setup({ agent = 'demo', cloud = { url = 'demo' } })")
  open(nvim)
  nvim:keys("/Docs audit<CR>d")
  nvim:wait_screen("+    self.eat(Token::Comma);")
  nvim:keys("qc")
  nvim:wait_message("cursor/docs-audit-1 is checked out in the demo's own clone")
  T.eq(vim.fn.isdirectory(nvim.work .. "/.git"), 0)
  -- Another branch of the same repository, while the first is checked out.
  nvim:keys("/Trailing<CR>d")
  nvim:wait_screen("+    self.eat(Token::Comma);")
  nvim:keys("qu")
  nvim:wait_screen("$0.10")
  nvim:keys("qfhang<CR>")
  nvim:wait_message("sent to “Trailing commas”")
  nvim:keys("x")
  nvim:wait_message("stopped “Trailing commas”")
  nvim:keys("n")
  nvim:wait_screen("repository: https://github.com/acme/app")
  nvim:keys("GAFix the greeting<Esc>:w<CR>")
  nvim:wait_screen("[Y]es")
  nvim:keys("y")
  nvim:wait_message("“Fix the greeting” started on acme/app")
  nvim:wait_message("“Fix the greeting” finished")
end)

case("names and addresses from the server are never options or programs", {}, function(nvim)
  local remote = nvim.dir .. "/app.git"
  vim.fn.mkdir(remote, "p")
  T.git(remote, "init", "--quiet", "--bare")
  T.git(nvim.work, "init", "--quiet")
  T.git(nvim.work, "remote", "add", "origin", remote)
  T.git(nvim.work, "add", "a.lua")
  T.git(nvim.work, "commit", "--quiet", "-m", "first")
  T.git(nvim.work, "push", "--quiet", "origin", "HEAD:main", "HEAD:cursor/one")
  local planted = nvim.dir .. "/planted"
  for _, names in ipairs({
    { branch = "cursor/one", ref = "--upload-pack=touch " .. planted },
    { branch = "cursor/one", ref = "--output=" .. planted },
    { branch = "--detach", ref = "main" },
    { branch = "a:refs/heads/main", ref = "main" },
  }) do
    for _, verb in ipairs({ "diff", "checkout" }) do
      nvim:lua(
        [[
          local verb, remote, names = ...
          local row = { id = "bc-1", name = "one", repo_url = remote, branch = names.branch, ref = names.ref }
          _G.said = nil
          require("cursor_agent.cloud.git")[verb](row, function(_, why) _G.said = why or "" end)
        ]],
        verb,
        remote,
        names
      )
      nvim:wait("_G.said ~= nil", "an answer")
      T.contains(nvim:lua("return _G.said"), "is not a valid git ref")
    end
  end
  T.eq(vim.fn.glob(planted .. "*"), "")
  T.eq(vim.trim(T.git(nvim.work, "symbolic-ref", "--short", "HEAD")), "main")
  nvim:lua([[
    vim.ui.open = function(address) _G.opened = address end
    local dashboard = require("cursor_agent.cloud.dashboard")
    dashboard.known = function() return { id = "bc-1", name = "one", state = "finished", pr = "file:///etc/passwd" } end
    require("cursor_agent.cloud").run("browse bc-1")
  ]])
  nvim:wait_message("has neither a pull request nor a page")
  T.eq(nvim:lua("return _G.opened"), nil)
end, { files = { ["a.lua"] = "local a\n" } })
