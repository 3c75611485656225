-- Conversations with cloud agents that work: turns like any other, stopped by key, and up to date with what was asked elsewhere.

local T = require("harness")
local Cloud = require("harness.cloud")

local case, KEY = Cloud.case, Cloud.KEY

---Asks the API as another program would.
---@param cloud harness.Cloud
---@param method string
---@param params table
local function elsewhere(cloud, method, params)
  local line = vim.json.encode({ jsonrpc = "2.0", id = 1, method = method, params = params })
  local answered = "" ---@type string
  local program = vim.system({ T.root .. "/lib/cursor-agent-cloud", "rpc" }, {
    stdin = true,
    env = { CURSOR_API_URL = cloud.url, CURSOR_API_KEY = KEY },
    stdout = function(_, data)
      answered = answered .. (data or "")
    end,
  })
  program:write(line .. "\n")
  T.ok(
    vim.wait(10000, function()
      return answered:find('"id":1', 1, true) ~= nil
    end, 5),
    "no answer"
  )
  program:write(nil)
  program:wait(5000)
  T.ok(answered:find('"result"', 1, true), answered)
end

---@param nvim harness.Child
---@return string
local function statusline(nvim)
  return nvim:lua("return require('cursor_agent').statusline()")
end

case(
  "a run that was opened is a turn: it waits its turn, and is stopped by key",
  { "--agents", "2" },
  function(nvim, cloud)
    nvim:cmd("CursorAgent cloud")
    nvim:wait_screen("1 running")
    nvim:keys("/Fix flaky<CR><CR>")
    nvim:wait_screen("cargo test parser")
    nvim:wait_state("running")
    -- What is asked meanwhile is sent after its end.
    nvim:prompt("And then the docs")
    nvim:wait(function()
      return nvim:lua("return require('cursor_agent').status().queued") == 1
    end, "the prompt to wait")
    T.eq(#cloud:asked("POST", "/runs"), 0)
    nvim:cmd("CursorAgent cancel")
    nvim:wait(function()
      return #cloud:asked("POST", "/cancel") == 1 and #cloud:asked("POST", "/runs") == 1
    end, "the run to be stopped, and the prompt to be sent")
    nvim:wait_screen("Lists accept a trailing comma now.")
    nvim:wait_state("idle")
    T.eq(nvim:texts("user"), { "Fix flaky tests", "And then the docs" })
    nvim:wait(function()
      return not statusline(nvim):find("running", 1, true)
    end, "nothing to be watched any more")
  end
)

case("a run goes on when its chat is closed and when Neovim quits", { "--agents", "3" }, function(nvim, cloud)
  nvim:cmd("CursorAgent cloud")
  nvim:wait_screen("1 running")
  -- One that was opened, and one that was asked for in its chat.
  nvim:keys("/Fix flaky<CR><CR>")
  nvim:wait_state("running")
  nvim:lua("require('cursor_agent.chat').close(require('cursor_agent.chat.registry').find())")
  nvim:cmd("CursorAgent cloud")
  nvim:keys("/Docs audit<CR><CR>")
  nvim:wait_screen("Lists accept a trailing comma now.")
  nvim:wait_state("idle")
  nvim:prompt("hang on")
  nvim:wait(function()
    return #cloud:asked("POST", "/runs") == 1 and #nvim:texts("tool") == 6
  end, "the run")
  nvim:quit("qa!")
  nvim:wait_exit()
  vim.wait(500)
  T.eq(#cloud:asked("POST", "/cancel"), 0)
end)

case("what is asked elsewhere is in the conversation that is open", { "--agents", "2" }, function(nvim, cloud)
  nvim:cmd("CursorAgent cloud")
  nvim:wait_screen("1 running")
  nvim:keys("/Docs audit<CR><CR>")
  nvim:wait_screen("Lists accept a trailing comma now.")
  nvim:wait_state("idle")
  local id = nvim:lua("return require('cursor_agent').status().session_id")
  -- By command, by key, and on the web.
  nvim:cmd("CursorAgent cloud follow " .. id .. " Once more")
  nvim:wait(function()
    return vim.deep_equal(nvim:texts("user"), { "Docs audit", "Once more" })
  end, "the follow-up in the conversation")
  nvim:wait_state("idle")
  T.eq(#nvim:texts("tool"), 6)
  nvim:cmd("CursorAgent cloud")
  nvim:wait_screen("1 finished")
  nvim:keys("/Docs audit<CR>fhang on<CR>")
  nvim:wait_message("sent to “Docs audit”")
  nvim:wait(function()
    return nvim:texts("user")[3] == "hang on"
  end, "the follow-up by key")
  nvim:wait_state("running")
  nvim:keys("x")
  nvim:wait_state("idle")
  elsewhere(cloud, "follow", { id = id, text = "From the phone" })
  nvim:keys("<CR>")
  nvim:wait(function()
    return nvim:texts("user")[4] == "From the phone"
  end, "what was asked elsewhere")
  nvim:wait_state("idle")
  T.eq(#cloud:asked("POST", "/runs"), 3)
end)

case("an end is announced once, whether or not the conversation is open", { "--pace", "90" }, function(nvim)
  nvim:lua("vim.fn.confirm = function() return 1 end")
  nvim:lua([[
    require('cursor_agent.cloud.git').place = function(_, done)
      done({ root = '/', remote = 'origin', url = 'https://github.com/acme/app', branch = 'main', pushed = true, ahead = 0, dirty = false })
    end
  ]])
  local function ends()
    local said = nvim:messages():gsub("\n", "")
    return select(2, said:gsub("finished", ""))
  end
  nvim:cmd("CursorAgent cloud new Fix the parser")
  nvim:wait_message("“Fix the parser” finished")
  T.eq(ends(), 1)
  nvim:cmd("CursorAgent cloud new Fix the lexer")
  nvim:wait_message("“Fix the lexer” started")
  local id = nvim:lua("return require('cursor_agent.cloud.dashboard').list()[1].id")
  nvim:cmd("CursorAgent cloud open " .. id)
  nvim:wait_state("running")
  -- The user's words stay, though what follows them takes its time.
  local shown = nvim:lua([[
    local win = vim.iter(vim.api.nvim_list_wins()):find(function(win)
      return vim.bo[vim.api.nvim_win_get_buf(win)].filetype == "cursoragent"
    end)
    return vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(win), 0, 1, false)
  ]])
  T.eq(shown, { "> Fix the lexer" })
  nvim:cmd("CursorAgent close")
  nvim:wait(function()
    return ends() == 2 and not statusline(nvim):find("running", 1, true)
  end, "the end of the other one")
  vim.wait(300)
  T.eq(ends(), 2)
end)

case("from another tab the dashboard is kept up to date, and found again", { "--agents", "3" }, function(nvim)
  nvim:cmd("CursorAgent cloud")
  nvim:wait_screen("1 running")
  local id = nvim:lua("return require('cursor_agent.cloud.dashboard').list()[1].id")
  local win = nvim:lua("return vim.api.nvim_get_current_win()")
  local function line()
    return nvim:lua("return vim.api.nvim_buf_get_lines(vim.fn.bufnr('cursor-agent-term://cloud'), 2, 3, false)[1]")
  end
  local width = nvim:lua("return vim.fn.strdisplaywidth(...)", line())
  nvim:keys("gt")
  nvim:cmd("CursorAgent cloud stop " .. id)
  nvim:wait(function()
    return line():find("stopped", 1, true)
  end, "the state in the dashboard")
  T.eq(nvim:lua("return vim.fn.strdisplaywidth(...)", line()), width)
  nvim:cmd("CursorAgent cloud")
  T.eq(nvim:lua("return vim.api.nvim_get_current_win()"), win)
  T.eq(nvim:lua("return #vim.api.nvim_list_tabpages()"), 2)
  -- The clock of a run goes on, here and after having been away.
  nvim:keys("/Fix flaky<CR>fhang<CR>")
  nvim:wait_screen("1 running")
  for _ = 1, 2 do
    local before = line()
    nvim:wait(function()
      return line() ~= before
    end, "the next second")
    nvim:keys("gt")
    nvim:wait("vim.bo.filetype ~= 'cursoragent-cloud'", "the other tab")
    vim.wait(1200)
    nvim:keys("gt")
  end
end)

case("a key that is set later is used from then on", { "--agents", "2" }, function(nvim, cloud)
  nvim:lua("vim.env.CURSOR_API_KEY = nil; require('cursor_agent').setup({ cloud = { url = ... } })", cloud.url)
  nvim:cmd("CursorAgent cloud")
  nvim:wait_screen("No Cursor API key")
  nvim:cmd(("let $CURSOR_API_KEY = '%s'"):format(KEY))
  nvim:keys("R")
  nvim:wait_screen("1 running")
  nvim:wait_screen("ada@example.org")
  nvim:keys("/Docs audit<CR><CR>")
  nvim:wait_screen("Lists accept a trailing comma now.")
end)

case("what was typed for a new agent stays until it is sent", {}, function(nvim, cloud)
  vim.system({ "git", "-C", nvim.work, "init", "--quiet" }):wait()
  vim.system({ "git", "-C", nvim.work, "remote", "add", "origin", "https://github.com/acme/app" }):wait()
  nvim:cmd("CursorAgent cloud new")
  nvim:wait_screen("repository: https://github.com/acme/app")
  nvim:keys("GAA long story<Esc>")
  nvim:cmd("wincmd p")
  nvim:cmd("CursorAgent cloud new")
  nvim:wait_message("this was not sent yet")
  T.contains(table.concat(nvim:api("nvim_buf_get_lines", 0, 0, -1, false), "\n"), "A long story")
  T.eq(#cloud:tell().agents, 0)
end)

case("an agent works on the project of the file, where `workspace.root` says so", {}, function(nvim, cloud)
  vim.system({ "git", "-C", nvim.work, "init", "--quiet" }):wait()
  vim.system({ "git", "-C", nvim.work, "remote", "add", "origin", "https://github.com/acme/app" }):wait()
  nvim:cmd("edit a.lua")
  nvim:cmd("cd " .. nvim.dir)
  nvim:cmd("CursorAgent cloud new hang")
  nvim:wait_message("a cloud agent needs a repository")
  nvim:lua(
    "require('cursor_agent').setup({ workspace = { root = 'git' }, cloud = { url = ..., api_key = select(2, ...) } })",
    cloud.url,
    KEY
  )
  nvim:keys(":CursorAgent cloud new hang<CR>")
  nvim:wait_screen("github.com/acme/app")
  nvim:keys("y")
  nvim:wait_message("started on acme/app")
end, { files = { ["a.lua"] = "local a\n" } })

case("a branch that was pushed since the agents were listed is compared", {}, function(nvim, cloud)
  local remote = Cloud.clone(nvim)
  elsewhere(cloud, "create", { text = "fail", repo = remote, ref = "main" })
  nvim:cmd("CursorAgent cloud")
  nvim:wait_screen("1 error")
  local id = cloud:tell().agents[1].id
  elsewhere(cloud, "follow", { id = id, text = "Rename it" })
  local branch = "cursor/fail-1e0"
  T.git(nvim.work, "push", "--quiet", "origin", "HEAD:refs/heads/" .. branch)
  nvim:wait(function()
    nvim:keys("d")
    return nvim:messages():gsub("\n", ""):find(branch .. " has no changes against main", 1, true)
  end, "the branch of the newest run")
  -- A branch of that name with commits of the user's own stays what it is.
  T.git(nvim.work, "switch", "--quiet", "-c", branch)
  T.git(nvim.work, "commit", "--quiet", "--allow-empty", "-m", "mine")
  T.git(nvim.work, "push", "--quiet", "origin", "HEAD:refs/heads/kept")
  T.git(nvim.work, "switch", "--quiet", "main")
  T.git(nvim.work, "commit", "--quiet", "--allow-empty", "-m", "the agent's")
  T.git(nvim.work, "push", "--quiet", "origin", "+HEAD:refs/heads/" .. branch)
  nvim:keys("c")
  nvim:wait_message("checked out your local " .. branch .. ": it has commits of its own")
  T.git(nvim.work, "merge-base", "--is-ancestor", branch, "origin/kept")
end, { files = { ["a.lua"] = "local a\n" } })
