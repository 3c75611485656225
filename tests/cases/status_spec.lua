-- `:CursorAgent status`, and modes and models chosen while there is no session yet.

local T = require("harness")

---@param path string
---@param text string
local function script(path, text)
  vim.fn.mkdir(vim.fs.dirname(path), "p")
  local file = assert(io.open(path, "wb"))
  file:write("#!/bin/sh\n" .. text)
  file:close()
  assert(vim.uv.fs_chmod(path, 493))
end

-- Another name of the demo, with a version.
local CLI = 'case $1 in --version) echo 2026.10.01-abc;; *) exec %s "$@";; esac\n'

---@param nvim harness.Child
---@param row string? one that comes when the CLI's settings were read
---@return string
local function status(nvim, row)
  nvim:cmd("CursorAgent status")
  nvim:wait(function()
    local text = nvim:lua("return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n')")
    local is_whole = text:find("\nRunning ", 1, true)
      and text:find("\nStore ", 1, true)
      and not text:find("  …", 1, true)
    return is_whole and (not row or text:find("\n" .. row .. " ", 1, true))
  end, "the status")
  return nvim:lua("return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n')")
end

T.case(
  "status names the program and why that one, what runs and what is kept",
  { width = 120, height = 40 },
  function(nvim)
    local bin = nvim.dir .. "/bin"
    local home = nvim:lua("return vim.env.HOME")
    nvim:lua("vim.env.PATH = ... .. ':/usr/bin:/bin'", bin)
    nvim:use({ options = { command = { "true" } } }, { agent = "cursor" })
    T.contains(status(nvim), "Command     agent is not on your PATH")
    nvim:keys("q")

    script(home .. "/.local/bin/agent", CLI:format(T.program))
    local text = status(nvim)
    T.contains(text, home .. "/.local/bin/agent")
    T.contains(text, "neither `agent` nor `cursor-agent` is on your PATH")
    T.contains(text, "Running     no agent")
    T.contains(text, "Sessions    none in this Neovim")
    T.contains(text, "Endpoint    Cursor's default")
    nvim:keys("q")

    script(bin .. "/cursor-agent", CLI:format(T.program))
    T.contains(status(nvim), "`cursor-agent` on your PATH, which has no `agent`")
    nvim:keys("q")

    script(bin .. "/agent", CLI:format(T.program))
    nvim:lua(
      [[require("cursor_agent").setup({ agent = "cursor", agents = { cursor = { endpoint = "https://127.0.0.1:1", insecure = true } } })]]
    )
    nvim:cmd("CursorAgent")
    nvim:wait_state("idle")
    text = status(nvim, "Asks")
    T.contains(text, "Command     " .. bin .. "/agent")
    T.contains(text, "`agent` on your PATH")
    T.contains(text, "Version     2026.10.01-abc")
    T.contains(text, "Sign-in     signed in with a login")
    T.contains(text, "Endpoint    https://127.0.0.1:1 (certificate not checked)")
    T.contains(text, "Mode        agent")
    T.contains(text, "Asks        Cursor edits files without asking")
    T.contains(text, "Sessions    1: cursor, idle")
    T.contains(text, "Log         ")
    T.contains(text, "Checkpoints ")
    local pid, memory = text:match("Running     cursor, pid (%d+), ([%d.]+ [KM]B), for [%d.:]+s?, 1 session, in ")
    T.ok(pid and memory, text)
    T.ok(T.alive(tonumber(pid) --[[@as integer]]))
    T.ok(not text:find("not known yet", 1, true), text)
  end
)

---@param nvim harness.Child
---@param agent harness.Agent
local function with_models(nvim, agent)
  local path = nvim.dir .. "/bin/agent"
  script(
    path,
    ('case $1 in acp) shift; exec %s;; *) exec %s "$@";; esac\n'):format(
      table.concat(agent.options.command, " "),
      T.program
    )
  )
  nvim:use({ options = { command = { path, "acp" }, cursor = true } })
end

T.case("a mode and a model are chosen before there is a session, by keys", { width = 120 }, function(nvim)
  local agent = T.agent({ profile = "cursor" })
  with_models(nvim, agent)
  nvim:keys(":CursorAgent mode<CR>")
  nvim:wait_screen("Plan")
  nvim:keys("2<CR>")
  nvim:wait_screen("will use the mode plan")
  nvim:keys(":CursorAgent model<CR>")
  nvim:wait_screen("Composer 2.5")
  nvim:keys("2<CR>")
  nvim:wait_screen("will use the model ")
  T.eq(#agent:received("session/new"), 0)
  local models = nvim:lua("return vim.fn.getcompletion('CursorAgent model ', 'cmdline')")
  T.ok(#models > 1, vim.inspect(models))
  T.eq(nvim:lua("return vim.fn.getcompletion('CursorAgent mode p', 'cmdline')"), { "plan" })
  nvim:keys(":CursorAgent<CR>")
  nvim:wait_state("idle")
  T.eq(nvim:status().mode, "plan")
  T.eq(nvim:status().model, models[2])
end)

T.case("a mode and a model named while the session starts are set when it is there", { width = 120 }, function(nvim)
  local agent = T.agent({ profile = "cursor", on = { ["session/new"] = { { wait_ms = 800 }, { profile = true } } } })
  with_models(nvim, agent)
  nvim:keys(":CursorAgent<CR>")
  nvim:wait_state("starting")
  nvim:keys("<Esc>:CursorAgent mode ask<CR>")
  T.eq(nvim:status().mode, "ask")
  nvim:keys(":CursorAgent model<CR>")
  nvim:wait_screen("Composer 2.5")
  nvim:keys("2<CR>")
  nvim:wait_state("idle")
  T.eq(nvim:status().mode, "ask")
  T.eq(nvim:status().model, nvim:lua("return vim.fn.getcompletion('CursorAgent model ', 'cmdline')")[2])
  T.eq(#agent:received("session/new"), 1)
end)

T.case("another agent is asked in its session, and then the user chooses", { width = 120 }, function(nvim)
  local agent = T.agent({ profile = "plain" })
  nvim:use(agent)
  nvim:keys(":CursorAgent mode<CR>")
  nvim:wait_screen("Type number and <Enter>")
  T.eq(#agent:received("session/new"), 1)
  nvim:keys("2<CR>")
  nvim:wait(function()
    return #agent:received("session/set_mode") + #agent:received("session/set_config_option") == 1
  end, "the mode")
end)
