-- History and drafts: several Neovims keep each other's, and a full disk empties nothing.

local T = require("harness")
local small_disk = require("harness.small_disk")

---Has another Neovim with the same state run some Lua.
---@param nvim harness.Child
---@param code string
---@return vim.SystemObj
local function other_nvim(nvim, code)
  local script = ("%s/%s.lua"):format(nvim.dir, vim.fn.sha256(code):sub(1, 8))
  local file = assert(io.open(script, "wb"))
  file:write(code)
  file:close()
  local env = { HOME = nvim.dir .. "/home", XDG_STATE_HOME = nvim.dir .. "/home/.local/state", PATH = vim.env.PATH }
  local command = { vim.v.progpath, "--headless", "--clean", "--cmd", "set rtp^=" .. T.root, "-l", script }
  return vim.system(command, { env = env, text = true })
end

---Has three Neovims add to the history and to the drafts at the same time, and looks whether all is there.
---@param nvim harness.Child
---@return string[] left the files of the store
local function add_at_once(nvim)
  local jobs = {}
  for who = 1, 3 do
    jobs[who] = other_nvim(
      nvim,
      ([[
        local history, store = require("cursor_agent.prompt.history"), require("cursor_agent.files.store")
        local base = %q
        vim.fn.writefile({}, base .. "/ready%d")
        vim.wait(60000, function() return vim.uv.fs_stat(base .. "/go") ~= nil end, 1)
        for i = 1, 25 do
          history.add("/proj", "%d-" .. i, {})
          store.update("drafts", function(all) all["%d-" .. i] = "draft" end)
        end
      ]]):format(nvim.dir, who, who, who)
    )
  end
  nvim:wait(function()
    return #vim.fn.glob(nvim.dir .. "/ready*", true, true) == 3
  end, "all of them")
  vim.fn.writefile({}, nvim.dir .. "/go")
  for _, job in ipairs(jobs) do
    local done = job:wait()
    T.eq({ done.code, done.stderr }, { 0, "" })
  end
  T.eq(#nvim:lua("return require('cursor_agent.prompt.history').list('/proj')"), 75)
  T.eq(nvim:lua("return vim.tbl_count(require('cursor_agent.files.store').read('drafts'))"), 75)
  return nvim:lua("return vim.fn.readdir(require('cursor_agent.files.store').dir())")
end

T.case("two Neovims lose nothing of each other's history and drafts", function(nvim)
  T.eq(add_at_once(nvim), { ".lock", "drafts.json", "history.json" })
end)

T.case("they lose nothing where the file system has no locks either", function(nvim)
  local dir = nvim:lua("return require('cursor_agent.files.store').dir()")
  vim.fn.mkdir(dir .. "/.lock", "p", "0700")
  T.eq(add_at_once(nvim), { ".lock", "drafts.json", "history.json" })
end)

T.case("what a killed Neovim left behind where there are no locks is taken away", function(nvim)
  local dir = nvim:lua("return require('cursor_agent.files.store').dir()")
  vim.fn.mkdir(dir .. "/.lock", "p", "0700")
  vim.fn.writefile({}, dir .. "/.claim")
  local long_ago = os.time() - 60
  assert(vim.uv.fs_utime(dir .. "/.claim", long_ago, long_ago))
  nvim:lua("require('cursor_agent.prompt.history').add('/proj', 'after it', {})")
  nvim:wait(function()
    return vim.uv.fs_stat(dir .. "/history.json") ~= nil
  end, "it is saved")
  T.eq(nvim:lua("return vim.fn.readdir(...)", dir), { ".lock", "history.json" })
end)

---Has another Neovim lock the store until a file `go` is there.
---@param nvim harness.Child
---@return vim.SystemObj
local function lock_elsewhere(nvim)
  nvim:lua("require('cursor_agent.files.store').update('drafts', function(all) all.a = 'one' end)")
  local job = other_nvim(
    nvim,
    ([[
      local dir, base = require("cursor_agent.files.store").dir(), %q
      unlock = assert(require("cursor_agent.bridge").lock(dir .. "/.lock"))
      vim.fn.writefile({}, base .. "/held")
      vim.wait(60000, function() return vim.uv.fs_stat(base .. "/go") ~= nil end, 5)
    ]]):format(nvim.dir)
  )
  nvim:wait(function()
    return vim.uv.fs_stat(nvim.dir .. "/held") ~= nil
  end, "it is locked")
  return job
end

local ADD = "require('cursor_agent.prompt.history').add('/proj', ..., {})"
local LIST = "return require('cursor_agent.prompt.history').list('/proj')"

---@param nvim harness.Child
---@return string
local function on_disk(nvim)
  local file = io.open(nvim.dir .. "/home/.local/state/nvim/cursor-agent/history.json", "rb")
  local text = file and file:read("*a") or ""
  if file then
    file:close()
  end
  return text
end

T.case("what another Neovim keeps from being saved is there at once, and saved when it lets go", function(nvim)
  local job = lock_elsewhere(nvim)
  nvim:lua(ADD, "first")
  nvim:lua(ADD, "second")
  T.eq(nvim:lua(LIST), { { text = "first" }, { text = "second" } })
  T.eq(on_disk(nvim), "", "not over what the other one is writing")
  vim.fn.writefile({}, nvim.dir .. "/go")
  job:wait()
  nvim:wait(function()
    return on_disk(nvim):find("second", 1, true) ~= nil
  end, "it is saved")
  T.eq(nvim:lua(LIST), { { text = "first" }, { text = "second" } })
end)

T.case("leaving waits for another Neovim that is saving", function(nvim)
  local job = lock_elsewhere(nvim)
  nvim:lua(ADD, "last words")
  nvim:lua_later("vim.cmd('qa!')")
  T.ok(not vim.wait(200, function()
    return on_disk(nvim) ~= ""
  end))
  vim.fn.writefile({}, nvim.dir .. "/go")
  job:wait()
  nvim:wait(function()
    return on_disk(nvim):find("last words", 1, true) ~= nil
  end, "it is saved")
end)

T.case("what a killed Neovim left locked is used again", function(nvim)
  local job = lock_elsewhere(nvim)
  job:kill("sigkill")
  job:wait()
  nvim:lua(ADD, "after it")
  T.contains(on_disk(nvim), "after it")
end)

T.case("what another Neovim writes meanwhile stays where there are no locks", function(nvim)
  nvim:lua(ADD, "first")
  -- As where the file system has no locks, or the one that has it takes longer than Neovim may when it ends.
  nvim:lua([[
    local path = require("cursor_agent.files.store").dir() .. "/.lock"
    assert(vim.uv.fs_unlink(path))
    assert(vim.uv.fs_mkdir(path, 448))
  ]])
  nvim:lua([[
    local store = require("cursor_agent.files.store")
    _G.runs = 0
    store.update("history", function(all)
      _G.runs = _G.runs + 1
      if _G.runs <= 2 then
        -- Another Neovim is quicker.
        local theirs = vim.deepcopy(all)
        table.insert(theirs["/proj"], "theirs " .. _G.runs)
        store.write("history", theirs)
      end
      table.insert(all["/proj"], "mine")
    end)
  ]])
  local texts = vim.tbl_map(function(entry)
    return entry.text
  end, nvim:lua(LIST))
  T.eq(texts, { "first", "theirs 1", "theirs 2", "mine" })
end)

T.case("two Neovims that make the same directories at once are no error", function(nvim)
  local base = nvim.dir .. "/made/at/once"
  local code = ([[
    local private = require("cursor_agent.files.private")
    local dir = %q
    vim.fn.writefile({}, ("%%s/ready%%d"):format(dir, vim.uv.os_getpid()))
    while not vim.uv.fs_stat(dir .. "/go") do end
    for i = 1, 60 do
      local ok, why = private.make_dir(("%s/%%d/a/b/c/d/e/f"):format(i))
      if not ok then
        io.stderr:write(why, "\n")
      end
    end
  ]]):format(nvim.dir, base)
  local jobs = { other_nvim(nvim, code), other_nvim(nvim, code) }
  nvim:wait(function()
    return #vim.fn.glob(nvim.dir .. "/ready*", true, true) == 2
  end, "both")
  vim.fn.writefile({}, nvim.dir .. "/go")
  for _, job in ipairs(jobs) do
    local done = job:wait()
    T.eq({ done.code, done.stderr }, { 0, "" })
  end
end)

T.case("a full disk empties neither history nor drafts, and the user is warned once", function(nvim)
  local dir = nvim.dir .. "/home/.local/state/nvim/cursor-agent"
  small_disk(nvim, dir, function(fill)
    nvim:lua("require('cursor_agent.prompt.history').add('/proj', 'kept', {})")
    fill()
    nvim:lua([[
      local history = require("cursor_agent.prompt.history")
      for i = 1, 3 do
        history.add("/proj", ("x"):rep(100000) .. i, {})
      end
    ]])
    local list = nvim:lua("return require('cursor_agent.prompt.history').list('/proj')")
    T.eq(list, { { text = "kept" } })
    local said = nvim:messages():gsub("\n", " ")
    T.contains(said, "the prompt history could not be saved")
    T.eq(select(2, said:gsub("could not be saved", "")), 1, "once")
    T.eq(nvim:lua("return vim.fn.readdir(...)", dir), { ".lock", "history.json" })
  end)
end)

T.case("a file of the store that is broken is kept aside", function(nvim)
  nvim:lua([[
    local store = require("cursor_agent.files.store")
    store.update("drafts", function(all) all.a = "one" end)
    local file = assert(io.open(store.dir() .. "/drafts.json", "wb"))
    file:write('{"a":"one","b')
    file:close()
    store.update("drafts", function(all) all.c = "three" end)
  ]])
  T.eq(nvim:lua("return require('cursor_agent.files.store').read('drafts')"), { c = "three" })
  T.eq(
    nvim:lua("return vim.fn.readfile(require('cursor_agent.files.store').dir() .. '/drafts.json.broken')"),
    { '{"a":"one","b' }
  )
end)
