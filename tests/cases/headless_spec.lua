-- Cursor's CLI without `acp`: the adapter drives its headless mode, chosen by itself, by option, or as an agent of its own.

local T = require("harness")

-- A CLI as it was before `acp`: it knows its headless mode and little else, and notes what it was called with.
local CLI = [[#!/bin/sh
here=${0%%/*}
printf '%%s\n' "$*" | head -1 >>"$here/calls"
case $1 in
  create-chat) echo 0f1a2b3c-0000-4000-8000-$(printf %%012d $(grep -c create-chat "$here/calls")); exit ;;
  models) echo 'auto - Auto (default)'; echo 'gpt-5 - GPT-5'; exit ;;
  status) echo 'Logged in as me'; exit ;;
  acp) %s ;;
esac
for prompt do :; done
say() { printf '%%s\n' "$1"; }
text() { say '{"type":"assistant","timestamp_ms":1,"message":{"role":"assistant","content":[{"type":"text","text":"'"$1"'"}]}}'; }
result() { say '{"type":"result","subtype":"success","is_error":false,"result":"","usage":{"inputTokens":7,"outputTokens":3}}'; }
case $prompt in
  edit*)
    echo new >notes.txt
    say '{"type":"tool_call","subtype":"started","call_id":"e1","tool_call":{"editToolCall":{"args":{"path":"notes.txt"}}}}'
    say '{"type":"tool_call","subtype":"completed","call_id":"e1","tool_call":{"editToolCall":{"args":{"path":"notes.txt"},"result":{"success":{"path":"notes.txt","beforeFullFileContent":"old\n","afterFullFileContent":"new\n"}}}}}'
    text 'Edited.'; result ;;
  run*)
    say '{"type":"tool_call","subtype":"started","call_id":"s1","tool_call":{"shellToolCall":{"args":{"command":"make"}}}}'
    say '{"type":"tool_call","subtype":"completed","call_id":"s1","tool_call":{"shellToolCall":{"args":{"command":"make"},"result":{"rejected":{"command":"make","reason":"Not in allowlist"}}}}}'
    text 'I may not.'; result ;;
  fail*) echo 'You are out of credits.' >&2; exit 1 ;;
  hang*) text 'Hanging on.'; sleep 1000 & wait ;;
  *) text 'Hello '; text 'there.'; result ;;
esac
]]

local UNKNOWN = [[echo "error: unknown command 'acp'" >&2; exit 1]]

---Puts a CLI on the child's PATH.
---@param nvim harness.Child
---@param acp? string what its `acp` does
---@param options? table
---@param name? string of the program
local function install(nvim, acp, options, name)
  local bin = nvim.dir .. "/cli"
  vim.fn.mkdir(bin, "p")
  local path = bin .. "/" .. (name or "agent")
  local file = assert(io.open(path, "wb"))
  file:write(CLI:format(acp or UNKNOWN))
  file:close()
  assert(vim.uv.fs_chmod(path, 493))
  nvim:lua("vim.env.PATH = ... .. ':' .. vim.env.PATH", bin)
  nvim:use({ options = { command = { "true" } } }, vim.tbl_extend("force", { agent = "cursor" }, options or {}))
end

---What the CLI was called with.
---@param nvim harness.Child
---@return string[]
local function calls(nvim)
  local path = nvim.dir .. "/cli/calls"
  return vim.uv.fs_stat(path) and vim.fn.readfile(path) or {}
end

---@param nvim harness.Child
---@param text string
---@return integer
local function count(nvim, text)
  local notices = table.concat(nvim:texts("notice"), "\n")
  return select(2, notices:gsub(vim.pesc(text), ""))
end

---@param nvim harness.Child
---@param prompt string
local function send(nvim, prompt)
  local before = #nvim:events("CursorAgentTurnEnd")
  nvim:keys(prompt .. "<C-s>")
  nvim:wait(function()
    return #nvim:events("CursorAgentTurnEnd") > before
  end, "the end of the turn")
end

T.case("a CLI without acp answers all the same, with one notice", { width = 120 }, function(nvim)
  install(nvim)
  nvim:keys(":CursorAgent<CR>")
  nvim:wait_screen("this CLI has no `acp`")
  nvim:wait_state("idle")
  send(nvim, "hello")
  T.eq(nvim:texts("agent"), { "Hello there." })
  T.eq(nvim:status().agent, "cursor")
  T.eq(nvim:status().backend, "headless")
  T.eq(nvim:status().model, "auto")
  T.eq(nvim:status().usage.input_tokens, 7)
  T.eq(count(nvim, "this CLI has no `acp`"), 1)
  T.contains(nvim:messages(), "its headless mode is used")
  -- Another chat, another directory: no word of it, and no second try.
  nvim:cmd("cd " .. nvim.dir)
  nvim:keys("<Esc>:CursorAgent new<CR>")
  nvim:wait(function()
    return nvim:status().state == "idle" and #nvim:texts("agent") == 0
  end, "the second chat")
  T.eq(count(nvim, "this CLI has no `acp`"), 0)
  local tries = vim.tbl_filter(function(call)
    return call == "acp"
  end, calls(nvim))
  T.eq(#tries, 1)
  nvim:keys("<Esc>:CursorAgent status<CR>")
  nvim:wait_screen("headless, since this CLI has no `acp`")
end)

for what, acp in
  vim.spairs({
    ["says its usage"] = [[echo 'Usage: cursor-agent [options] [prompt...]' >&2; exit 2]],
    ["takes the word for a prompt"] = [[echo 'What would you like to know about acp?'; exit 0]],
  })
do
  T.case(("a CLI that %s has no acp either"):format(what), { width = 120 }, function(nvim)
    install(nvim, acp)
    nvim:cmd("CursorAgent")
    nvim:keys("hello<C-s>")
    nvim:wait(function()
      return nvim:texts("agent")[1] == "Hello there."
    end, "the answer")
    T.eq(count(nvim, "this CLI has no `acp`"), 1)
  end)
end

T.case("a CLI that crashes is not taken for one without acp", { width = 120 }, function(nvim)
  install(nvim, [[echo 'Cannot use this model: x' >&2; exit 1]])
  nvim:cmd("CursorAgent")
  nvim:wait_state("failed")
  T.contains(nvim:status().error, "Cannot use this model: x")
  T.eq(calls(nvim), { "acp" })
end)

T.case('backend = "acp" never falls back', { width = 120 }, function(nvim)
  install(nvim, nil, { agents = { cursor = { backend = "acp" } } })
  nvim:cmd("CursorAgent")
  nvim:wait_state("failed")
  T.contains(nvim:status().error, "unknown command 'acp'")
end)

T.case('backend = "headless" does not try acp', { width = 120 }, function(nvim)
  install(nvim, nil, {
    agents = {
      cursor = {
        backend = "headless",
        endpoint = "https://cursor.test",
        insecure = true,
        headless_args = { "--force" },
      },
    },
  }, "cursor-agent")
  -- The flags of the CLI stand before its command.
  local path = nvim.dir .. "/cli/cursor-agent"
  local script = table.concat(vim.fn.readfile(path), "\n"):gsub("case %$1 in", "shift 3\ncase $1 in", 1)
  vim.fn.writefile(vim.split(script, "\n"), path)
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  send(nvim, "hello")
  T.eq(nvim:texts("agent"), { "Hello there." })
  -- What it says of Cursor holds for this mode.
  T.contains(table.concat(nvim:texts("notice"), "\n"), "MCP tools are rejected unless they are on Cursor's allowlist")
  T.eq(count(nvim, "has no `acp`"), 0)
  local made = calls(nvim)
  for _, call in ipairs(made) do
    T.ok(vim.startswith(call, "-e https://cursor.test -k "), call)
    T.ok(not call:find("acp", 1, true), call)
  end
  T.contains(made[#made], "--force hello")
  nvim:keys("<Esc>:CursorAgent status<CR>")
  nvim:wait_screen("Backend     headless")
end)

T.case("the adapter is an agent of its own", { width = 120 }, function(nvim)
  install(nvim)
  nvim:keys(":CursorAgent new cursor-headless<CR>")
  nvim:wait_state("idle")
  send(nvim, "hello")
  T.eq(nvim:status().agent, "cursor-headless")
  T.eq(nvim:texts("agent"), { "Hello there." })
  -- Modes and models by keys, for the next prompt.
  nvim:keys("<Esc>:CursorAgent mode plan<CR>")
  nvim:wait(function()
    return nvim:status().mode == "plan"
  end, "the mode")
  nvim:keys(":CursorAgent model gpt-5<CR>")
  nvim:wait(function()
    return nvim:status().model == "gpt-5"
  end, "the model")
  nvim:keys("i")
  send(nvim, "again")
  local made = calls(nvim)
  T.contains(made[#made], "--model gpt-5 --mode plan --resume 0f1a2b3c-0000-4000-8000-000000000001 again")
  T.eq(nvim:texts("agent"), { "Hello there.", "Hello there." })
end)

T.case(
  "edits, rejections and failures are shown",
  { width = 120, height = 40, files = { ["notes.txt"] = "old\n" } },
  function(nvim)
    install(nvim)
    nvim:cmd("edit notes.txt")
    nvim:cmd("CursorAgent")
    nvim:wait_state("idle")
    send(nvim, "edit it")
    nvim:wait_screen("notes.txt  +1 -1")
    T.eq(nvim:lua("return require('cursor_agent').changes()[1].path"), nvim.work .. "/notes.txt")
    nvim:wait(function()
      return nvim:lua("return vim.fn.getbufline('notes.txt', 1)[1]") == "new"
    end, "the buffer to follow")
    send(nvim, "run it")
    nvim:wait_screen("✗ Run    make")
    nvim:wait_screen("Rejected: Not in allowlist")
    nvim:wait_screen("`--force`")
    send(nvim, "fail now")
    T.contains(nvim:status().error, "You are out of credits.")
    nvim:wait_screen("You are out of credits.")
    -- And it goes on.
    send(nvim, "hello")
    T.eq(nvim:texts("agent")[3], "Hello there.")
  end
)

T.case("a turn is cancelled, and nothing of it is left", { width = 120 }, function(nvim)
  install(nvim)
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  nvim:keys("hang<C-s>")
  nvim:wait_screen("Hanging on.")
  nvim:keys("<Esc>:CursorAgent cancel<CR>")
  nvim:wait(function()
    local ended = nvim:events("CursorAgentTurnEnd")[1]
    return ended and ended.stop_reason == "cancelled"
  end, "the end of the turn")
  nvim:wait(function()
    return #vim.tbl_filter(function(process)
      return vim.startswith(process.command, "sleep 1000")
    end, T.processes()) == 0
  end, "the end of what it ran")
  nvim:keys("i")
  send(nvim, "hello")
  T.eq(nvim:texts("agent"), { "Hanging on.", "Hello there." })
end)

for name, leave in
  vim.spairs({
    [":qa!"] = function(nvim)
      nvim:keys("<Esc>:qa!<CR>")
    end,
    SIGTERM = function(nvim)
      nvim:kill("sigterm")
    end,
    SIGKILL = function(nvim)
      nvim:kill("sigkill")
    end,
  })
do
  T.case(("%s in the middle of a turn leaves neither adapter nor CLI"):format(name), { width = 120 }, function(nvim)
    install(nvim)
    nvim:cmd("CursorAgent")
    nvim:wait_state("idle")
    nvim:keys("hang<C-s>")
    nvim:wait_screen("Hanging on.")
    leave(nvim)
    nvim:wait_exit()
    T.expect_no_process()
  end)
end

T.case("a past session is listed, shown again and gone on with", { width = 120 }, function(nvim)
  install(nvim)
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  send(nvim, "hello")
  local id = nvim:status().session_id
  nvim:keys("<Esc>:CursorAgent stop<CR>")
  nvim:wait_state("stopped")
  nvim:keys(":CursorAgent new<CR>")
  nvim:wait_state("idle")
  nvim:lua("require('cursor_agent').sessions(function(list) _G.listed = list end)")
  local listed = nvim:wait("_G.listed", "the list")
  local mine = vim.tbl_filter(function(session)
    return session.id == id
  end, listed)
  T.eq(mine[1].title, "hello")
  nvim:keys(("<Esc>:CursorAgent load %s<CR>"):format(id))
  nvim:wait(function()
    return nvim:status().session_id == id and nvim:status().state == "idle" and #nvim:texts("agent") == 1
  end, "the session")
  T.eq(nvim:texts("user"), { "hello" })
  T.eq(nvim:texts("agent"), { "Hello there." })
  nvim:prompt("again")
  nvim:wait(function()
    return #nvim:texts("agent") == 2
  end, "the next answer")
  local made = calls(nvim)
  T.contains(made[#made], ("--resume %s again"):format(id))
end)

T.case("a login that is missing is asked for, and done in a terminal", { width = 120 }, function(nvim)
  install(nvim)
  local path = nvim.dir .. "/cli/agent"
  local script = table.concat(vim.fn.readfile(path), "\n"):gsub(
    "case %$1 in",
    [[
case $1 in
  login) echo 'Opening the browser'; : >"$here/signed-in"; exit ;;
  create-chat|models) [ -f "$here/signed-in" ] || { echo 'Error: Authentication required' >&2; exit 1; } ;;
esac
case $1 in]],
    1
  )
  vim.fn.writefile(vim.split(script, "\n"), path)
  nvim:cmd("CursorAgent")
  nvim:keys("hello<C-s>")
  nvim:wait_screen(":CursorAgent login")
  nvim:keys("<Esc>:CursorAgent login<CR>")
  nvim:wait(function()
    return nvim:texts("agent")[1] == "Hello there."
  end, "the answer to what was queued")
  T.ok(vim.tbl_contains(calls(nvim), "login"), "the CLI's own login")
end)

T.case("where no CLI is installed, the adapter is not offered as if it were enough", { width = 120 }, function(nvim)
  nvim:lua("vim.env.PATH = ...", "/nowhere")
  nvim:keys(":CursorAgent<CR>")
  nvim:wait_screen("The agent cursor is not installed")
  T.ok(not nvim:sees("cursor-headless"), "offered")
  nvim:keys("<Esc>")
  nvim:keys(":CursorAgent new cursor-headless<CR>")
  nvim:wait_screen("The agent cursor-headless is not installed: `agent` is not on your PATH")
end)

T.case("a wrong backend is named with those there are", function(nvim)
  nvim:lua([[require("cursor_agent").setup({ agents = { cursor = { backend = "magic" } } })]])
  nvim:cmd("CursorAgent status")
  T.contains(nvim:messages(), "agents.cursor.backend")
  T.contains(nvim:messages(), "headless")
end)
