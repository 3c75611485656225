-- Cloud agents by keys: long lists, images, questions, branches of other remotes, and where the key is not.

local T = require("harness")
local Cloud = require("harness.cloud")

local KEY = Cloud.KEY

---@param name string
---@param args string[] of the fake
---@param run fun(nvim: harness.Child, cloud: harness.Cloud)
---@param opts? harness.CaseOptions
local function case(name, args, run, opts)
  Cloud.case(name, args, run, opts, { mcp = true })
end

---@param nvim harness.Child
---@return string[]
local function lines(nvim)
  return nvim:lua([[
    return vim.tbl_filter(function(line)
      return line:find("acme/") ~= nil
    end, vim.api.nvim_buf_get_lines(vim.fn.bufnr("cursor-agent-term://cloud"), 2, -1, false))
  ]])
end

---@param nvim harness.Child
---@param count integer
local function wait_lines(nvim, count)
  nvim:wait(function()
    return #lines(nvim) == count
  end, ("%d agents"):format(count))
end

---@param cloud harness.Cloud
---@return table[] what was sent to create agents
local function created(cloud)
  local list = {}
  for _, one in ipairs(cloud:tell().requests) do
    if one.method == "POST" and vim.endswith(one.path, "/agents") then
      list[#list + 1] = vim.json.decode(one.body)
    end
  end
  return list
end

case("deep in the list, refreshing and archiving keep the place", { "--agents", "120" }, function(nvim)
  nvim:cmd("CursorAgent cloud")
  nvim:wait_screen("running")
  -- By repository.
  nvim:keys("r")
  nvim:wait_screen("any repository")
  nvim:keys("3<CR>")
  nvim:wait_screen("filter: acme/docs")
  nvim:wait(function()
    local shown = lines(nvim)
    return #shown == 40
      and #vim.tbl_filter(function(line)
        return line:find("acme/docs", 1, true) == nil
      end, shown) == 0
  end, "the agents of a repository, from all pages")
  nvim:keys("<BS>")
  wait_lines(nvim, 120)
  nvim:keys("G")
  T.contains(nvim:lua("return vim.api.nvim_get_current_line()"), "Speed up startup 119")
  nvim:keys("5k")
  nvim:lua("_G.list = require('cursor_agent.cloud.dashboard').list()")
  nvim:keys("R")
  nvim:wait("_G.list ~= require('cursor_agent.cloud.dashboard').list()", "the new list")
  nvim:wait_screen_without("Loading…")
  T.contains(nvim:lua("return vim.api.nvim_get_current_line()"), "Fix flaky tests 114")
  nvim:keys("A")
  nvim:wait_message("“Fix flaky tests 114” was archived")
  wait_lines(nvim, 119)
  T.contains(nvim:lua("return vim.api.nvim_get_current_line()"), "Docs audit 115")
  -- Those that were archived, and back.
  nvim:keys("z")
  wait_lines(nvim, 120)
  nvim:keys("/114 (arch<CR>A")
  nvim:wait_message("was unarchived")
  nvim:wait_screen_without("(archived)")
end)

case("images are attached, and one line says what is created", {}, function(nvim, cloud)
  local png = vim.base64.decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGD4DwABBAEAX+XDSwAAAABJRU5ErkJggg=="
  )
  local file = assert(io.open(nvim.work .. "/shot.png", "wb"))
  file:write(png)
  file:close()
  T.git(nvim.work, "init", "--quiet")
  T.git(nvim.work, "remote", "add", "origin", "git@github.com:acme/app.git")
  nvim:cmd("CursorAgent cloud new")
  nvim:wait_screen("repository: https://github.com/acme/app")
  nvim:cmd("%s/^images:.*/images: missing.png")
  nvim:keys("GALook at it<Esc><C-s>")
  nvim:wait_message("no such image: missing.png")
  nvim:cmd("%s/^images:.*/images: shot.png")
  nvim:cmd("%s/^branch:.*/branch: mine")
  nvim:cmd("%s/^mode:.*/mode: plan")
  nvim:keys("<C-s>")
  nvim:wait_message("a branch name cannot be combined with mode `plan`")
  nvim:cmd("%s/^branch:.*/branch:")
  nvim:keys("<C-s>")
  nvim:wait_screen("mode plan · opens a pull request · 1 image")
  T.eq(#created(cloud), 0, "something left before the answer")
  nvim:keys("y")
  nvim:wait_message("“Look at it” started on acme/app")
  -- A prompt mentions one.
  nvim:keys(":CursorAgent cloud new And @shot.png<CR>")
  nvim:wait_screen("· 1 image")
  nvim:keys("y")
  nvim:wait_message("“And @shot.png” started on acme/app")
  local sent = created(cloud)
  T.eq(#sent, 2)
  for _, one in ipairs(sent) do
    T.eq(one.prompt.images, { { data = vim.base64.encode(png), mimeType = "image/png" } })
    T.eq(one.repos[1].url, "https://github.com/acme/app")
  end
end)

case("a question in the middle of a run is announced, and stays until it ends", { "--pace", "5" }, function(nvim)
  T.git(nvim.work, "init", "--quiet")
  T.git(nvim.work, "remote", "add", "origin", "https://github.com/acme/app")
  nvim:keys(":CursorAgent cloud new ask me<CR>")
  nvim:wait_screen("[Y]es")
  nvim:keys("y")
  nvim:wait_message("cloud agent “ask me” asks: Which store should sessions use?")
  T.eq(nvim:lua("return require('cursor_agent').statusline()"), "cloud 1 asking")
  nvim:cmd("CursorAgent cloud")
  nvim:wait_screen("1 asks")
  nvim:keys("R")
  nvim:wait_screen("1 asks")
  nvim:keys("<CR>")
  nvim:wait_screen("Ask: Which store should sessions use?")
  nvim:wait_screen("JSON lines")
  nvim:cmd("wincmd p")
  nvim:cmd("CursorAgent cloud")
  nvim:keys("x")
  nvim:wait_screen("1 stopped")
  nvim:wait(function()
    return not nvim:lua("return require('cursor_agent').statusline()"):find("cloud 1", 1, true)
  end, "nothing to be watched any more")
end)

case("the branch of an agent is found by whichever remote is its repository", { "--agents", "2" }, function(nvim)
  local remote = nvim.dir .. "/docs.git"
  vim.fn.mkdir(remote, "p")
  T.git(remote, "init", "--quiet", "--bare")
  T.git(nvim.work, "init", "--quiet")
  T.git(nvim.work, "remote", "add", "origin", "https://github.com/ada/docs")
  T.git(nvim.work, "remote", "add", "upstream", "https://github.com/acme/docs")
  T.git(nvim.work, "config", ("url.%s.insteadOf"):format(remote), "https://github.com/acme/docs")
  T.git(nvim.work, "add", "a.lua")
  T.git(nvim.work, "commit", "--quiet", "-m", "first")
  T.git(nvim.work, "push", "--quiet", "upstream", "HEAD:main")
  T.git(nvim.work, "switch", "--quiet", "-c", "cursor/docs-audit-1")
  vim.fn.writefile({ "local renamed" }, nvim.work .. "/a.lua")
  T.git(nvim.work, "commit", "--quiet", "-am", "rename")
  T.git(nvim.work, "push", "--quiet", "upstream", "HEAD")
  T.git(nvim.work, "switch", "--quiet", "main")
  T.git(nvim.work, "branch", "--quiet", "-D", "cursor/docs-audit-1")
  nvim:cmd("edit a.lua")
  nvim:cmd("CursorAgent cloud")
  nvim:wait_screen("PR #481 cursor/docs-audit-1")
  nvim:keys("/Docs audit<CR>d")
  nvim:wait_screen("+local renamed")
  nvim:keys("q")
  -- Not over what is not saved.
  nvim:lua("vim.api.nvim_buf_set_lines(vim.fn.bufnr('a.lua'), 0, -1, false, { 'typed' })")
  nvim:cmd("CursorAgent cloud")
  nvim:keys("/Docs audit<CR>c")
  nvim:wait_message("a.lua has unsaved changes; nothing was checked out")
  nvim:lua("vim.bo[vim.fn.bufnr('a.lua')].modified = false")
  nvim:keys("c")
  nvim:wait_message("cursor/docs-audit-1 is checked out")
  T.eq(vim.fn.readfile(nvim.work .. "/a.lua"), { "local renamed" })
end, { files = { ["a.lua"] = "local a\n" } })

case("the key is in no argument, log or message", { "--agents", "2" }, function(nvim)
  nvim:cmd("CursorAgent cloud")
  nvim:wait_screen("running")
  nvim:keys("<CR>")
  nvim:wait_screen("I'll look at")
  nvim:lua("require('cursor_agent').new()")
  nvim:wait_state("idle")
  local seen = nvim:lua([[
    local texts = { vim.fn.execute("messages") }
    for _, buf in ipairs(vim.api.nvim_list_bufs()) do
      texts[#texts + 1] = table.concat(vim.api.nvim_buf_get_lines(buf, 0, -1, false), "\n")
    end
    for _, pid in ipairs(vim.api.nvim_get_proc_children(vim.fn.getpid())) do
      local file = io.open("/proc/" .. pid .. "/cmdline", "rb")
      texts[#texts + 1] = file and file:read("*a") or ""
    end
    return texts
  ]])
  nvim:cmd("CursorAgent log")
  nvim:keys("G/request *session<CR><CR>")
  nvim:wait(function()
    return nvim:lua("return vim.api.nvim_buf_get_lines(0, 0, -1, false)")[2]
      and table.concat(nvim:lua("return vim.api.nvim_buf_get_lines(0, 0, -1, false)"), "\n"):find("CURSOR_API_KEY")
  end, "the whole message")
  vim.list_extend(seen, nvim:lua("return vim.api.nvim_buf_get_lines(0, 0, -1, false)"))
  local all = table.concat(seen, "\n")
  T.ok(not all:find(KEY, 1, true), "the key was shown")
  -- What the test's own agent was sent is not ours to hide.
  local dirs = vim.fs.find(function(name)
    return not name:find("^agent%-%d+%.jsonl$")
  end, { path = nvim.dir, type = "file", limit = 10000 })
  for _, file in ipairs(dirs) do
    local text = table.concat(vim.fn.readfile(file, "b"), "\n")
    T.ok(not text:find(KEY, 1, true), file .. " has the key")
  end
end)

case("who the key belongs to, the models and the repositories are shown by command", {}, function(nvim)
  nvim:keys(":CursorAgent cloud me<CR>")
  nvim:wait_message("@")
  nvim:keys(":CursorAgent cloud models<CR>")
  nvim:wait("vim.api.nvim_buf_get_name(0):find('models') ~= nil", "the models")
  T.ok(#nvim:api("nvim_buf_get_lines", 0, 0, -1, false) > 1, "several models")
  nvim:keys("q:CursorAgent cloud repos<CR>")
  nvim:wait("vim.api.nvim_buf_get_name(0):find('repos') ~= nil", "the repositories")
  T.contains(table.concat(nvim:api("nvim_buf_get_lines", 0, 0, -1, false), "\n"), "acme/")
end)
