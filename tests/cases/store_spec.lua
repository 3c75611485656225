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

T.case("two Neovims lose nothing of each other's history and drafts", function(nvim)
  local jobs = {}
  for who = 1, 3 do
    jobs[who] = other_nvim(
      nvim,
      ([[
        local history, store = require("cursor_agent.prompt.history"), require("cursor_agent.files.store")
        for i = 1, 25 do
          history.add("/proj", "%d-" .. i, {})
          store.update("drafts", function(all) all["%d-" .. i] = "draft" end)
        end
      ]]):format(who, who)
    )
  end
  for _, job in ipairs(jobs) do
    local done = job:wait()
    T.eq({ done.code, done.stderr }, { 0, "" })
  end
  T.eq(#nvim:lua("return require('cursor_agent.prompt.history').list('/proj')"), 75)
  T.eq(nvim:lua("return vim.tbl_count(require('cursor_agent.files.store').read('drafts'))"), 75)
  T.eq(nvim:lua("return vim.fn.readdir(require('cursor_agent.files.store').dir())"), { "drafts.json", "history.json" })
end)

T.case("what a killed Neovim left locked is used again", function(nvim)
  nvim:lua([[
    local store = require("cursor_agent.files.store")
    store.update("drafts", function(all) all.a = "one" end)
    local file = assert(io.open(store.dir() .. "/drafts.json.lock", "wb"))
    -- No process has this number.
    file:write("999999999")
    file:close()
    local began = vim.uv.hrtime()
    store.update("drafts", function(all) all.b = "two" end)
    _G.took = (vim.uv.hrtime() - began) / 1e6
  ]])
  T.eq(nvim:lua("return require('cursor_agent.files.store').read('drafts')"), { a = "one", b = "two" })
  T.ok(nvim:lua("return _G.took") < 100, "it does not wait")
end)

T.case("a full disk empties neither history nor drafts, and the user is told once", function(nvim)
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
    T.contains(said, "the prompts you sent could not be saved")
    T.eq(select(2, said:gsub("could not be saved", "")), 1, "once")
    T.eq(nvim:lua("return vim.fn.readdir(...)", dir), { "history.json" })
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
