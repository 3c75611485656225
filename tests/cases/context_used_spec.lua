-- The context used: Cursor's CLI never says it, its store does.

local T = require("harness")

---@param nvim harness.Child
---@param scenario table
---@param options? table of the agent
---@return harness.Agent
local function start(nvim, scenario, options)
  local agent = T.agent(scenario)
  agent.options.env = { CURSOR_CONFIG_DIR = nvim.dir .. "/cursor" }
  nvim:use(agent, { agents = { test = vim.tbl_extend("force", { cursor = true }, options or {}) } })
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  return agent
end

---Every file below a directory: its bytes and when it was changed.
---@param dir string
---@return table<string, string>
local function files(dir)
  local found = {}
  for name, type in vim.fs.dir(dir, { depth = 9 }) do
    if type == "file" then
      local path = dir .. "/" .. name
      local stat = assert(vim.uv.fs_stat(path))
      local file = assert(io.open(path, "rb"))
      found[name] = vim.fn.sha256(vim.base64.encode(file:read("*a"))) .. " " .. stat.mtime.sec .. "." .. stat.mtime.nsec
      file:close()
    end
  end
  return found
end

T.case("the winbar shows what the store says, after each turn", { width = 100, height = 20 }, function(nvim)
  start(nvim, {
    turns = {
      { { store = { used = 50000, size = 200000 } }, { text = "One." } },
      { { text = "Two." }, { stop = "end_turn" }, { wait_ms = 300 }, { store = { used = 100000, size = 200000 } } },
    },
  })
  T.eq(nvim:status().usage, nil)
  nvim:prompt("go")
  nvim:wait_turns(1)
  nvim:wait_screen("ctx 25%")
  T.eq(nvim:status().usage, { used = 50000, size = 200000 })
  local before = files(nvim.dir .. "/cursor")
  T.eq(vim.tbl_count(before), 1)
  -- Written a moment after the turn.
  nvim:prompt("on")
  nvim:wait_turns(2)
  nvim:wait_screen("ctx 50%")
  nvim:keys("<Esc>")
  nvim:cmd("redrawstatus!")
  nvim:expect_screen("context-used")
  T.eq(vim.tbl_keys(files(nvim.dir .. "/cursor")), vim.tbl_keys(before), "no file beside it")
end)

T.case("a store that is missing, invalid or another agent's is ignored", function(nvim)
  start(nvim, { turns = { { { text = "One." } }, { { text = "Two." } } } })
  nvim:prompt("go")
  nvim:wait_turns(1)
  local dir = ("%s/cursor/acp-sessions/%s"):format(nvim.dir, nvim:status().session_id)
  vim.fn.mkdir(dir, "p")
  vim.fn.writefile({ "not a database" }, dir .. "/store.db")
  nvim:prompt("on")
  nvim:wait_turns(2)
  vim.uv.sleep(300)
  T.eq(nvim:status().usage, nil)
  T.eq(nvim:messages(), "")
  T.eq(
    nvim:lua("return #vim.tbl_filter(function(e) return e.level == 'error' end, require('cursor_agent').transcript())"),
    0
  )
end)

T.case("what the agent says itself wins", function(nvim)
  start(nvim, {
    turns = {
      {
        { store = { used = 50000, size = 200000 } },
        { update = { sessionUpdate = "usage_update", used = 10, size = 1000 } },
        { text = "One." },
      },
    },
  })
  nvim:prompt("go")
  nvim:wait_turns(1)
  nvim:wait_screen("ctx 1%")
  vim.uv.sleep(300)
  T.eq(nvim:status().usage, { used = 10, size = 1000 })
end)
