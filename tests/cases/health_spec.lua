-- `:checkhealth cursor_agent`: each thing that can be wrong is named with the step that fixes it.

local T = require("harness")

---@param child harness.Child
---@return string
local function health(child)
  child:cmd("checkhealth cursor_agent")
  return table.concat(child:api("nvim_buf_get_lines", 0, 0, -1, false), "\n")
end

---Puts a program named `agent` on the child's PATH, first and last.
---@param child harness.Child
---@param script string
local function install_agent(child, script)
  local bin = child.dir .. "/bin"
  vim.fn.mkdir(bin, "p")
  local file = assert(io.open(bin .. "/agent", "wb"))
  file:write("#!/bin/sh\n" .. script)
  file:close()
  assert(vim.uv.fs_chmod(bin .. "/agent", 493))
  child:lua("vim.env.PATH = ... .. ':/usr/bin:/bin'", bin)
end

T.case("all is well: versions, paths, login", function(child)
  install_agent(
    child,
    [[case $1 in --version) echo 2026.08.11-abc ;; status) echo "✓ Logged in as me@example.com" ;; esac]]
  )
  local text = health(child)
  T.ok(not text:find("ERROR", 1, true), text)
  T.ok(text:find("OK Neovim 0%.%d+%.%d+[^\n]*\n[^\n]*LuaJIT"), text)
  T.contains(text, "tree-sitter parser for markdown")
  T.contains(text, "lib/cursor_agent.so")
  T.ok(text:find("version %d+%.%d+%.%d+, interface %d+: "), text)
  T.contains(text, "all options are valid")
  T.contains(text, "Agent cursor (used for new chats)")
  T.contains(text, "version 2026.08.11-abc")
  T.contains(text, "✓ Logged in as me@example.com")
  T.contains(text, "log: ")
  T.contains(text, "drafts and history: ")
  T.contains(text, "render-markdown.nvim is not loaded")
end)

T.case("signed out: how to log in", function(child)
  install_agent(child, [[case $1 in --version) echo 1 ;; status) echo "Not logged in" ;; esac]])
  local text = health(child)
  T.contains(text, "ERROR not logged in")
  T.contains(text, ":CursorAgent login")
  T.contains(text, "or in a shell: agent login")
end)

T.case("an agent that hangs does not hang Neovim", { deadline_ms = 90000 }, function(child)
  install_agent(child, "exec sleep 1000")
  child:lua_later("vim.cmd('checkhealth cursor_agent'); vim.g.checked = true")
  child:wait("vim.g.checked", "checkhealth to end", 40000)
  local text = table.concat(child:api("nvim_buf_get_lines", 0, 0, -1, false), "\n")
  T.contains(text, "`agent status` did not answer")
end)

T.case("a key makes the login needless", function(child)
  install_agent(child, [[case $1 in --version) echo 1 ;; *) echo "Not logged in" ;; esac]])
  child:lua([[require("cursor_agent").setup({ agents = { cursor = { api_key = "very-secret" } } })]])
  local text = health(child)
  T.contains(text, "OK signed in with a key: `agents.cursor.api_key`")
  T.contains(text, "`agent status` says: Not logged in (it only reports logins; the key works without one)")
  T.ok(not text:find("very%-secret"), text)
  T.ok(not text:find("ERROR not logged in", 1, true), text)
end)

T.case("no agent: what to install, and what to try without", function(child)
  child:lua("vim.env.PATH = '/nowhere'")
  local text = health(child)
  T.contains(text, "`agent acp`: `agent` is not on your PATH")
  T.contains(text, "cursor.com/docs/cli/installation")
  T.contains(text, ":CursorAgent new demo")
  T.contains(text, "not installed (optional): auggie, claude, cline, codex, copilot, droid, fast-agent, gemini, goose")
end)

T.case("an agent of the user's own that is not there is named, with what to set", function(child)
  install_agent(child, [[case $1 in status) echo "Logged in" ;; esac]])
  child:lua([[require("cursor_agent").setup({ agents = { mine = { command = { "/nowhere/mine", "--acp" } } } })]])
  local text = health(child)
  T.contains(text, "WARNING `/nowhere/mine --acp`: `/nowhere/mine` is not on your PATH")
  T.contains(text, "set `agents.mine.command` to where it is")
  T.ok(not text:find("fine: [^\n]*mine"), text)
end)

T.case("a function for a key that fails is named, by the chat and by checkhealth", { width = 140 }, function(child)
  child:lua([[
    require("cursor_agent").setup({
      agents = { cursor = { command = { "/bin/true" }, api_key = function() error("the store is locked", 0) end } },
    })
  ]])
  local said = "option `agents.cursor.api_key`: the function failed: the store is locked"
  T.eq(child:lua("return { require('cursor_agent').open() }"), { vim.NIL, said })
  local text = health(child)
  T.contains(text, "ERROR " .. said)
  T.contains(text, "Fix the function")
  T.contains(text, "Optional plugins")
  child:keys(":CursorAgent<CR>")
  child:wait(function()
    return child:messages():find(said, 1, true)
  end, "the message")
end)

T.case("a library of other sources, and a demo that is missing, come with their step", function(child)
  child:lua(
    [[
    local root = require("cursor_agent.bridge.paths").root()
    local copy = ...
    vim.fn.mkdir(copy .. "/lib", "p")
    vim.fn.writefile({ "other" }, copy .. "/lib/built-from")
    for _, name in ipairs({ "src", "crates", "Cargo.toml", "Cargo.lock" }) do
      vim.uv.fs_symlink(root .. "/" .. name, copy .. "/" .. name)
    end
    require("cursor_agent.bridge.native").get()
    require("cursor_agent.bridge.paths").root = function() return copy end
  ]],
    child.dir .. "/copy"
  )
  local text = health(child)
  T.contains(text, "WARNING it was built from different sources")
  T.contains(text, "WARNING the demo agent is missing")
  T.contains(text, ":CursorAgent build")
end)

T.case("another program of the agent is asked for its version and its login", function(child)
  install_agent(child, [[case $1 in --version) echo 77.0 ;; -k) echo "$3: Not logged in" ;; esac]])
  child:lua(
    [[
    require("cursor_agent").setup({ agents = { cursor = { command = { ..., "acp" }, insecure = true } } })
    vim.env.PATH = "/usr/bin:/bin"
  ]],
    child.dir .. "/bin/agent"
  )
  local text = health(child)
  T.contains(text, "/bin/agent -k acp`, version 77.0")
  T.contains(text, "not logged in")
  T.contains(text, "/bin/agent -k login")
end)

T.case("wrong options are listed by their path", function(child)
  child:lua([[require("cursor_agent").setup({ windw = {}, chat = { fold_tools = "yes" } })]])
  local text = health(child)
  T.contains(text, "unknown option `windw`, did you mean `window`?")
  T.contains(text, "option `chat.fold_tools`: expected true or false, got string")
  -- Neovim makes a link of it.
  T.contains(text, "cursor-agent-options")
end)

T.case("the last failure is shown with what the agent said, also in the next Neovim", function(child)
  child:use(T.agent({ start = { { stderr = "Cannot use this model: composer-9\n" }, { exit = 1 } } }))
  child:cmd("CursorAgent")
  child:wait_state("failed")
  local text = health(child)
  T.contains(text, "ERROR 1: test in ")
  T.contains(text, "Cannot use this model: composer-9")
  T.contains(text, ":CursorAgent restart")
  T.contains(text, "last failure, ")
  local again = child:lua(
    [[
    local run = vim.system({ vim.v.progpath, "--clean", "--headless", "--cmd", "set rtp^=" .. ...,
      "+checkhealth cursor_agent", "+%print", "+qall!" }):wait()
    return run.stdout .. run.stderr
  ]],
    T.root
  )
  T.contains(again, "last failure, ")
  T.contains(again, "Cannot use this model: composer-9")
end)

T.case("a library that does not load is named, with what an installation would need", function(child)
  child:lua([[
    require("cursor_agent.bridge.paths").library = function() return "/nowhere/cursor_agent.so" end
  ]])
  local text = health(child)
  T.contains(text, "run `:CursorAgent build`: the library is not built")
  T.contains(text, "/nowhere/cursor_agent.so")
  T.contains(text, ":CursorAgent build")
  T.contains(text, "platform: ")
  T.contains(text, "cargo: ")
end)

T.case(
  "without parsers it says so, and the chat still works",
  { init = [[
  vim.opt.runtimepath = { vim.o.runtimepath:match("[^,]+"), vim.env.VIMRUNTIME }
]] },
  function(child)
    local text = health(child)
    T.contains(text, "no tree-sitter parser for markdown: the chat is plain text")
    child:use(
      T.agent({ turns = { { { thought = "Hm." }, { text = "Plain **words**.\n\n```lua\nlocal x = 1\n```\n" } } } })
    )
    child:prompt("hello")
    child:wait_turns(1)
    child:wait_screen("local x = 1")
    T.eq(child:lua("return vim.v.errmsg"), "")
  end
)
