-- The protocol log: read, filtered, shown whole, saved without secrets, and played back as another agent.

local T = require("harness")

local SECRET = "abcdef-very-secret-123456"

---@param nvim harness.Child
local function talk(nvim)
  local agent = T.agent({ turns = { { { text = "The answer." } } } })
  agent.options.env = { CURSOR_API_KEY = SECRET }
  nvim:use(agent)
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  nvim:prompt("my key is " .. SECRET)
  nvim:wait_turns(1)
  nvim:keys("<Esc>")
end

T.case("rows say what each message is, and can be filtered by method", { width = 160 }, function(nvim)
  talk(nvim)
  nvim:cmd("CursorAgent log")
  nvim:wait_screen("→ request      session/new")
  nvim:wait_screen("← answer       session/new")
  nvim:wait_screen("← notification session/update")
  nvim:cmd("CursorAgent log session/prompt")
  nvim:wait_screen_without("session/new")
  nvim:wait_screen("→ request      session/prompt")
  nvim:wait_screen("← answer       session/prompt")
  nvim:keys("G<CR>")
  nvim:wait_screen('"stopReason": "end_turn"')
end)

T.case("saved without secrets, and played back", { width = 120 }, function(nvim)
  talk(nvim)
  nvim:cmd("CursorAgent log save saved.jsonl")
  local saved = nvim:lua("return table.concat(vim.fn.readfile('saved.jsonl'), '\\n')")
  T.ok(not saved:find(SECRET, 1, true), "the key is in the saved log")
  T.contains(saved, "The answer.")
  vim.fn.writefile({ "mine" }, nvim.work .. "/mine.txt")
  nvim:keys("<Esc>:CursorAgent log save mine.txt<CR>")
  nvim:wait_screen("mine.txt already exists")
  T.eq(vim.fn.readfile(nvim.work .. "/mine.txt"), { "mine" })
  nvim:lua(
    [[
      local command = { ..., "replay", vim.fn.fnamemodify("saved.jsonl", ":p") }
      require("cursor_agent").setup({ agent = "replayed", agents = { replayed = { command = command } } })
      require("cursor_agent").new({})
    ]],
    T.program
  )
  nvim:wait_state("idle")
  nvim:prompt("the same again")
  nvim:wait_turns(2)
  T.eq(nvim:texts("agent"), { "The answer." })
end)

T.case("what MCP servers are given is on no screen and in no file", { width = 160, height = 40 }, function(nvim)
  local agent = T.agent({ turns = { { { stderr = "connecting with pg-hunter2-secret\n" }, { text = "Done." } } } })
  agent.options.mcp_servers = {
    {
      name = "db",
      command = "db",
      args = { "--token", "arg-hunter2" },
      env = { DB_PASS = "pg-hunter2-secret", URL = "x-hunter2" },
    },
  }
  nvim:use(agent)
  nvim:prompt("hello")
  nvim:wait_turns(1)
  nvim:keys("<Esc>")
  nvim:cmd("CursorAgent log session/new")
  nvim:wait_screen("→ request      session/new")
  local shown = "return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n')"
  T.contains(nvim:lua(shown), "mcpServers")
  T.ok(not nvim:lua(shown):find("hunter2", 1, true), "a row shows it")
  nvim:keys("gg<CR>")
  nvim:wait("vim.bo.filetype == 'json'", "the whole message")
  T.contains(nvim:lua(shown), '"DB_PASS"')
  T.ok(not nvim:lua(shown):find("hunter2", 1, true), "the message shows it")
  -- What an agent says on stderr comes by a way of its own, at times after the end of the turn.
  nvim:wait(
    "table.concat(require('cursor_agent.bridge.native').get().log(1)):find('connecting', 1, true)",
    "its stderr"
  )
  nvim:cmd("CursorAgent log save saved.jsonl")
  local saved = nvim:lua("return table.concat(vim.fn.readfile('saved.jsonl'), '\\n')")
  T.contains(saved, "connecting with •••")
  T.ok(not saved:find("hunter2", 1, true), "the saved log has it")
  T.contains(nvim:cmd("CursorAgent log save /dev/null/here/saved.jsonl"), "could not save the log")
end)
