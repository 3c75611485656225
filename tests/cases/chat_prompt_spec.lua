-- The prompt: what keys send, what goes along, what is remembered, what completes, what waits in the queue.

local T = require("harness")

local OPTS = {
  width = 120,
  height = 30,
  files = { ["src/parser.lua"] = "local M = {}\n\nfunction M.list()\nend\n\nreturn M\n", ["read me.md"] = "Read\n" },
}

---@param nvim harness.Child
---@param turns? table[]
---@param options? table
---@return harness.Agent
local function start(nvim, turns, options)
  local agent = T.agent({ turns = turns or { { { text = "One." } }, { { text = "Two." } }, { { text = "Three." } } } })
  nvim:use(agent, options)
  nvim:cmd("edit src/parser.lua")
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  return agent
end

---@param agent harness.Agent
---@param number integer
---@return table[] blocks
local function prompt(agent, number)
  return agent:received("session/prompt")[number].params.prompt
end

---@param nvim harness.Child
---@return string[]
local function lines(nvim)
  return nvim:api("nvim_buf_get_lines", 0, 0, -1, false)
end

T.case("<CR> breaks the line in Insert mode and sends in Normal mode, <C-s> sends in both", OPTS, function(nvim)
  local agent = start(nvim)
  nvim:keys("one<CR>two<Esc>")
  T.eq(lines(nvim), { "one", "two" })
  nvim:keys("<CR>")
  nvim:wait_turns(1)
  nvim:keys("ithree<C-s>")
  nvim:wait_turns(2)
  nvim:keys("four<Esc><C-s>")
  nvim:wait_turns(3)
  T.eq(prompt(agent, 1), { { type = "text", text = "one\ntwo" } })
  T.eq(nvim:texts("user"), { "one\ntwo", "three", "four" })
end)

T.case("keys can be chosen, and taken away", OPTS, function(nvim)
  start(nvim, nil, { keymaps = { prompt = { send = "<C-g>", ["cycle-mode"] = false } } })
  nvim:keys("hello<C-g>")
  nvim:wait_turns(1)
  T.eq(nvim:lua("return vim.fn.maparg('<S-Tab>', 'n')"), "")
end)

T.case("nothing is not sent", OPTS, function(nvim)
  local agent = start(nvim)
  nvim:keys("<Esc><CR>")
  nvim:wait_screen("nothing to send")
  T.eq(#agent:received("session/prompt"), 0)
end)

T.case("older prompts come back at the borders, and the draft after them", OPTS, function(nvim)
  start(nvim)
  nvim:keys("first<C-s>")
  nvim:wait_turns(1)
  nvim:keys("second<CR>line<C-s>")
  nvim:wait_turns(2)
  nvim:keys("draft<Up>")
  nvim:wait(function()
    return vim.deep_equal(lines(nvim), { "second", "line" })
  end)
  -- Inside the text the key is itself; on the first line it goes on.
  nvim:keys("<Up>")
  T.eq(nvim:lua("return vim.fn.line('.')"), 1)
  nvim:keys("<Up>")
  nvim:wait(function()
    return vim.deep_equal(lines(nvim), { "first" })
  end)
  nvim:keys("<Down><Down><Down>")
  nvim:wait(function()
    return vim.deep_equal(lines(nvim), { "draft" })
  end)
end)

T.case("a draft outlives Neovim, and so do sent prompts", OPTS, function(nvim)
  start(nvim)
  nvim:keys("sent<C-s>")
  nvim:wait_turns(1)
  nvim:keys("half a thou<Esc>")
  nvim:lua("vim.api.nvim_exec_autocmds('VimLeavePre', { group = 'cursor_agent_prompt' })")
  local read =
    "return vim.json.decode(table.concat(vim.fn.readfile(vim.fn.stdpath('state') .. '/cursor-agent/%s.json')))"
  T.eq(nvim:lua(read:format("drafts"))["session-1"], "half a thou")
  T.eq(nvim:lua(read:format("history"))[nvim.work], { "sent" })
  nvim:cmd("CursorAgent! close")
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  T.eq(lines(nvim), { "half a thou" }, "a new chat in the same directory")
  nvim:keys("<Esc>gg<Up>")
  nvim:wait(function()
    return vim.deep_equal(lines(nvim), { "sent" })
  end)
end)

T.case("a draft outlives a Neovim that is killed", OPTS, function(nvim)
  start(nvim)
  nvim:keys("half a thou")
  local path = nvim:lua("return vim.fn.stdpath('state') .. '/cursor-agent/drafts.json'")
  local function kept()
    local file = io.open(path, "rb")
    local text = file and file:read("*a") or "{}"
    if file then
      file:close()
    end
    return vim.json.decode(text)["session-1"]
  end
  nvim:wait(function()
    return kept() == "half a thou"
  end, "the draft, while it is still written")
  nvim:kill("sigkill")
  nvim:wait_exit()
  T.eq(kept(), "half a thou")
end)

T.case("a mentioned file goes along, lines of it as text", OPTS, function(nvim)
  local agent = start(nvim)
  nvim:keys("See @src/parser.lua and @src/parser.lua:3-4, mail me@example.org @nothing @{read me.md}<C-s>")
  nvim:wait_turns(1)
  local blocks = prompt(agent, 1)
  T.eq(#blocks, 4)
  T.eq(blocks[2].type, "resource_link")
  T.contains(blocks[2].uri, "/read%20me.md")
  T.contains(blocks[3].uri, "/src/parser.lua")
  T.contains(blocks[4].text, "Lines 3-4 of src/parser.lua:\n```lua\nfunction M.list()\nend\n```")
  nvim:wait_screen("@src/parser.lua:3-4")
end)

T.case("a range and a selection go along as context", OPTS, function(nvim)
  local agent = start(nvim)
  nvim:keys("<Esc>")
  nvim:cmd("wincmd h")
  nvim:cmd("3,4CursorAgent prompt what is this?")
  nvim:wait_turns(1)
  T.contains(prompt(agent, 1)[2].text, "Selected lines 3-4 of src/parser.lua:\n```lua\nfunction M.list()\nend\n```")
  nvim:keys("1GVj<Plug>(cursor-agent-prompt)")
  nvim:wait_screen("@selection src/parser.lua:1-2 ×")
  nvim:keys("and this?<C-s>")
  nvim:wait_turns(2)
  T.contains(prompt(agent, 2)[2].text, "Selected lines 1-2")
  nvim:wait_screen_without("×")
end)

T.case("what is attached is shown above the prompt and can be taken away", OPTS, function(nvim)
  local agent = start(nvim)
  nvim:keys("<Esc>")
  nvim:cmd("CursorAgent context src/parser.lua")
  nvim:wait_screen(" @src/parser.lua ×")
  nvim:keys(":CursorAgent context diagnostics<CR>")
  nvim:wait_screen("no diagnostics")
  nvim:keys("gX")
  nvim:wait_screen_without("×")
  nvim:keys("ihi<C-s>")
  nvim:wait_turns(1)
  T.eq(#prompt(agent, 1), 1)
end)

T.case("unsaved buffers are named, saved by one key or sent along by another", OPTS, function(nvim)
  local agent = start(nvim)
  nvim:keys("<Esc>")
  nvim:cmd("wincmd h")
  nvim:keys("Gonew line<Esc>")
  nvim:wait_screen("unsaved: parser.lua (gs save · ga attach)")
  nvim:cmd("wincmd l")
  nvim:keys("ga")
  nvim:wait_screen("@src/parser.lua (unsaved) ×")
  nvim:keys("ilook<C-s>")
  nvim:wait_turns(1)
  T.contains(prompt(agent, 1)[2].text, "return M\nnew line\n")
  nvim:wait_screen("unsaved: parser.lua")
  nvim:keys("<Esc>gs")
  nvim:wait_screen_without("unsaved: parser.lua")
  T.contains(table.concat(vim.fn.readfile(nvim.work .. "/src/parser.lua"), "\n"), "new line")
end)

T.case("an option saves unsaved buffers for good", OPTS, function(nvim)
  start(nvim, nil, { prompt = { unsaved = "save" } })
  nvim:keys("<Esc>")
  nvim:cmd("wincmd h")
  nvim:keys("Gonew line<Esc>")
  nvim:prompt("go")
  nvim:wait_turns(1)
  T.contains(table.concat(vim.fn.readfile(nvim.work .. "/src/parser.lua"), "\n"), "new line")
end)

T.case("a large paste becomes an attachment, and undo brings it back as text", OPTS, function(nvim)
  local agent = start(nvim)
  local text = table.concat(vim.fn.map(vim.fn.range(1, 100), "'pasted ' . v:val"), "\n")
  nvim:keys("Look at ")
  nvim:api("nvim_paste", text .. "\n", true, -1)
  nvim:wait(function()
    return vim.deep_equal(lines(nvim), { "Look at [paste 1: 100 lines]" })
  end, "the name of the paste")
  nvim:keys(" please<C-s>")
  nvim:wait_turns(1)
  local blocks = prompt(agent, 1)
  T.eq(blocks[1].text, "Look at [paste 1: 100 lines] please")
  T.eq(blocks[2].text, "[paste 1: 100 lines]\n" .. text .. "\n")
  nvim:lua("vim.fn.setreg('a', ..., 'l')", text)
  nvim:keys('<Esc>"ap')
  nvim:wait(function()
    return lines(nvim)[2] == "[paste 2: 100 lines]"
  end, "the name of what was put")
end)

---Pastes this many lines, as a terminal does.
---@param nvim harness.Child
---@param text string
---@param count integer
---@return string pasted
local function paste(nvim, text, count)
  local pasted = {} ---@type string[]
  for i = 1, count do
    pasted[i] = text .. i
  end
  nvim:lua("vim.api.nvim_paste(..., true, -1)", table.concat(pasted, "\n"))
  nvim:wait(function()
    return table.concat(lines(nvim), "\n"):find((": %d lines]"):format(count), 1, true)
  end, "the label of the paste")
  return table.concat(pasted, "\n")
end

T.case("a draft keeps its large pastes under their labels", OPTS, function(nvim)
  local agent = start(nvim)
  nvim:keys("Look: ")
  local text = paste(nvim, "line ", 300)
  nvim:keys(" and this<Esc>")
  nvim:lua("vim.api.nvim_exec_autocmds('VimLeavePre', { group = 'cursor_agent_prompt' })")
  nvim:cmd("CursorAgent! close")
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  T.eq(lines(nvim), { "Look: [paste 1: 300 lines] and this" })
  nvim:keys("<C-s>")
  nvim:wait_turns(1)
  local blocks = prompt(agent, 1)
  T.eq(blocks[#blocks].text, "[paste 1: 300 lines]\n" .. text)
end)

T.case("a paste is taken as it is, whatever stands around it", OPTS, function(nvim)
  local agent = start(nvim)
  nvim:keys("é<Esc>i")
  local first = paste(nvim, "è ligne ", 10000)
  T.eq(lines(nvim), { "[paste 1: 10000 lines]é" })
  nvim:keys("<Esc>ofoo<Esc>0i")
  local second = paste(nvim, "fab ", 300)
  T.eq(lines(nvim), { "[paste 1: 10000 lines]é", "[paste 2: 300 lines]foo" })
  nvim:keys("<C-s>")
  nvim:wait_turns(1)
  T.eq(prompt(agent, 1)[2].text, "[paste 1: 10000 lines]\n" .. first)
  T.eq(prompt(agent, 1)[3].text, "[paste 2: 300 lines]\n" .. second)
  -- And again from the history.
  nvim:keys("<Up>")
  nvim:wait_screen("[paste 2: 300 lines]foo")
  nvim:keys("<C-s>")
  nvim:wait_turns(2)
  T.eq(prompt(agent, 2), prompt(agent, 1))
end)

---Leaves the chat for a new one, as after a restart, and takes the prompt sent last.
---@param nvim harness.Child
---@param shown string
local function recall_in_new_chat(nvim, shown)
  nvim:cmd("CursorAgent! close")
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  nvim:keys("<Up>")
  nvim:wait_screen(shown)
end

T.case("a prompt of the history brings its pastes along into another chat", OPTS, function(nvim)
  local agent = start(nvim)
  local first = paste(nvim, "one ", 50)
  nvim:keys("<CR>")
  local second = paste(nvim, "two ", 60)
  nvim:keys("<C-s>")
  nvim:wait_turns(1)
  nvim:cmd("CursorAgent! close")
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  -- What is pasted here has the label that another text has there.
  local third = paste(nvim, "three ", 50)
  nvim:keys("<Esc>gg<Up>")
  nvim:wait_screen("[paste 2: 50 lines]")
  T.eq(lines(nvim), { "[paste 2: 50 lines]", "[paste 3: 60 lines]" })
  nvim:keys("A [paste 1: 50 lines]<Esc><CR>")
  nvim:wait(function()
    return #agent:received("session/prompt") == 2
  end, "the prompt")
  local texts = {} ---@type string[]
  for _, block in ipairs(prompt(agent, 2)) do
    texts[#texts + 1] = block.text
  end
  T.eq(texts, {
    "[paste 2: 50 lines]\n[paste 3: 60 lines] [paste 1: 50 lines]",
    "[paste 1: 50 lines]\n" .. third,
    "[paste 2: 50 lines]\n" .. first,
    "[paste 3: 60 lines]\n" .. second,
  })
end)

T.case("a paste that is no longer kept is marked as such", OPTS, function(nvim)
  start(nvim)
  nvim:keys("See ")
  paste(nvim, "one ", 50)
  nvim:keys("<C-s>")
  nvim:wait_turns(1)
  recall_in_new_chat(nvim, "See [paste 1: 50 lines]")
  nvim:lua("vim.fn.delete(vim.fn.stdpath('state') .. '/cursor-agent/pastes', 'rf')")
  recall_in_new_chat(nvim, "See [paste 1: 50 lines, no longer kept]")
end)

T.case("what is kept of pastes has its bounds, the oldest goes first", function(nvim)
  local left = nvim:lua([[
    local store = require("cursor_agent.files.store")
    local names = {}
    for i, letter in ipairs({ "a", "b", "c", "d" }) do
      names[i] = store.keep_text(letter:rep(3 * 1024 * 1024))
    end
    return vim.tbl_map(function(name)
      return (store.kept_text(name) or "gone"):sub(1, 4)
    end, names)
  ]])
  T.eq(left, { "gone", "gone", "cccc", "dddd" })
end)

T.case("a draft outlives an empty chat beside it", OPTS, function(nvim)
  start(nvim)
  local function drafts()
    return nvim:lua([[
      local kept = require("cursor_agent.files.store").read("drafts")
      return { kept["session-1"] or "", kept["session-2"] or "", kept["dir:" .. vim.uv.cwd()] or "" }
    ]])
  end
  ---@param expected string[]
  local function wait_drafts(expected)
    nvim:wait(function()
      return vim.deep_equal(drafts(), expected)
    end, "the drafts " .. vim.inspect(expected))
  end
  nvim:keys("half a thou")
  wait_drafts({ "half a thou", "", "half a thou" })
  nvim:cmd("stopinsert")
  nvim:cmd("CursorAgent new")
  nvim:wait("require('cursor_agent.chat.registry').current().status.session_id == 'session-2'", "the other chat")
  nvim:wait_screen_without("half a thou")
  nvim:wait("vim.fn.mode() == 'i'", "the prompt of the other chat")
  nvim:keys("x")
  wait_drafts({ "half a thou", "x", "x" })
  nvim:keys("<BS>")
  wait_drafts({ "half a thou", "", "" })
  nvim:cmd("stopinsert")
  nvim:lua("require('cursor_agent.chat.layout').open(require('cursor_agent.chat.registry').all()[1], { enter = true })")
  nvim:wait_screen("half a thou")
  nvim:keys("ght")
  wait_drafts({ "half a thought", "", "half a thought" })
  nvim:cmd("doautocmd VimLeavePre")
  T.eq(drafts(), { "half a thought", "", "half a thought" })
end)

T.case("where nothing can be kept, writing and sending work all the same", OPTS, function(nvim)
  nvim:lua([[
    local store = require("cursor_agent.files.store")
    store.dir = function() return vim.v.progpath .. "/kept" end
    local write = store.write
    store.write = function(...)
      _G.tried = true
      return write(...)
    end
  ]])
  start(nvim)
  nvim:keys("hello")
  nvim:wait("_G.tried", "the draft to be kept")
  nvim:keys("<C-s>")
  nvim:wait_screen("One.")
  T.eq(lines(nvim), { "" })
  T.ok(not nvim:messages():find("E739", 1, true), "no message")
end)

T.case("a draft with a paste in it outlives its buffer", OPTS, function(nvim)
  start(nvim)
  nvim:keys("see: ")
  paste(nvim, "line ", 300)
  nvim:keys("<Esc>")
  nvim:cmd("bwipeout! cursor-agent-term://1/prompt")
  nvim:cmd("CursorAgent open")
  nvim:wait(function()
    return table.concat(lines(nvim), "\n") == "see: [paste 1: 300 lines]"
  end, "the draft")
end)

T.case("the prompt grows with its text and shrinks again", OPTS, function(nvim)
  start(nvim)
  local height = "return vim.api.nvim_win_get_height(0)"
  T.eq(nvim:lua(height), 4)
  nvim:keys("1<CR>2<CR>3<CR>4<CR>5<CR>6<CR>7")
  nvim:wait("vim.api.nvim_win_get_height(0) == 7")
  nvim:keys("<C-s>")
  nvim:wait("vim.api.nvim_win_get_height(0) == 4")
end)

T.case("commands and mentions complete by 'completefunc' alone, while typing", OPTS, function(nvim)
  local commands = {
    { name = "compact", description = "Make it shorter", input = { hint = "[what]" } },
    { name = "review", description = "Look at the changes" },
  }
  start(nvim, { { { update = { sessionUpdate = "available_commands_update", availableCommands = commands } } } })
  nvim:keys("go<C-s>")
  nvim:wait_turns(1)
  nvim:wait("#require('cursor_agent').status().commands == 2", "the commands")
  nvim:keys("/co")
  nvim:wait_screen("/compact [what]")
  nvim:keys("<C-n> now ")
  T.eq(lines(nvim), { "/compact now " })
  nvim:keys("@pars")
  nvim:wait_screen("@src/parser.lua")
  nvim:keys("<C-n><C-y> @symbol:")
  nvim:wait_screen("@symbol:M.list")
  nvim:keys("<C-e><C-u>@sel")
  nvim:wait_screen("@selection")
  nvim:keys("<C-e><C-u>plain a/b c@d")
  T.eq(nvim:lua("return vim.fn.pumvisible()"), 0)
end)

T.case("what was taken from the list is not offered again", OPTS, function(nvim)
  start(nvim)
  nvim:keys("see @pars")
  nvim:wait_screen("@src/parser.lua")
  nvim:keys("<C-n><C-y>")
  T.eq(lines(nvim), { "see @src/parser.lua" })
  T.eq(nvim:lua("return vim.fn.pumvisible()"), 0)
  nvim:keys("<BS>")
  nvim:wait("vim.fn.pumvisible() == 1", "the list, for another word")
end)

T.case("blink.cmp and nvim-cmp get the same items", OPTS, function(nvim)
  start(nvim)
  nvim:keys("@src")
  nvim:wait("#require('cursor_agent.prompt.listing').files(vim.fn.getcwd()) > 0", "the files")
  local items = nvim:lua([[
    local blink, cmp
    require("cursor_agent.completion.blink").new():get_completions({ line = "@src", cursor = { 1, 4 } }, function(r) blink = r.items end)
    local params = { context = { cursor_before_line = "@src", cursor = { row = 1 } } }
    require("cursor_agent.completion.cmp").new():complete(params, function(r) cmp = r.items end)
    return { blink, cmp }
  ]])
  T.eq(items[1], items[2])
  T.eq(items[1][1].textEdit, {
    newText = "@src/parser.lua",
    range = { start = { line = 0, character = 0 }, ["end"] = { line = 0, character = 4 } },
  })
end)

T.case("a command is nothing that a completion plugin adds brackets to", OPTS, function(nvim)
  local command = { name = "compact", description = "Make it shorter", input = { hint = "[what]" } }
  start(nvim, { { { update = { sessionUpdate = "available_commands_update", availableCommands = { command } } } } })
  nvim:keys("go<C-s>")
  nvim:wait_turns(1)
  nvim:wait("#require('cursor_agent').status().commands == 1", "the command")
  local kinds = nvim:lua([=[
    local kinds = {}
    for _, before in ipairs({ "/co", "@" }) do
      local context = { line = before, cursor = { 1, #before } }
      require("cursor_agent.completion.blink").new():get_completions(context, function(result)
        for _, item in ipairs(result.items) do
          kinds[vim.lsp.protocol.CompletionItemKind[item.kind]] = true
        end
      end)
    end
    return kinds
  ]=])
  T.ok(next(kinds) ~= nil, "there are items")
  for _, kind in ipairs({ "Function", "Method", "Constructor", "Snippet" }) do
    T.eq(kinds[kind], nil)
  end
end)

T.case("prompts wait in a list that can be changed, and one can be sent now", OPTS, function(nvim)
  local agent = start(
    nvim,
    { { { text = "Working" }, { wait_cancel = true } }, { { text = "For ${prompt}" } }, { { text = "For ${prompt}" } } }
  )
  nvim:keys("first<C-s>")
  nvim:wait_screen("Working")
  nvim:keys("second<C-s>third<C-s>fourth<C-s>")
  nvim:wait_screen("3 queued")
  nvim:keys("<Esc>gQ")
  nvim:wait_screen("1. second")
  nvim:expect_screen("chat-queue")
  nvim:keys("Gdd")
  nvim:wait_screen_without("fourth")
  nvim:keys("ggJ")
  nvim:wait_screen("2. second")
  nvim:keys("gg<CR>")
  nvim:wait_screen("editing a queued prompt")
  nvim:wait(function()
    return vim.deep_equal(lines(nvim), { "third" })
  end)
  nvim:keys("<Esc>A changed<C-s><Esc>")
  nvim:wait(function()
    return vim.deep_equal(
      vim.tbl_map(function(one)
        return one.text
      end, nvim:status().queue),
      { "third changed", "second" }
    )
  end, "the changed queue")
  nvim:cmd("CursorAgent queue")
  nvim:keys("G<C-s>")
  nvim:wait_screen("For second")
  nvim:wait_screen("For third changed")
  T.eq(nvim:texts("user"), { "first", "second", "third changed" })
  T.eq(#agent:received("session/cancel"), 1)
end)

---A turn that runs, and a prompt that waits for its end.
---@param nvim harness.Child
---@return harness.Agent
local function start_with_queued(nvim)
  local agent = start(
    nvim,
    { { { text = "Working" }, { wait_cancel = true } }, { { text = "For ${prompt}" } }, { { text = "For ${prompt}" } } }
  )
  nvim:keys("first<C-s>")
  nvim:wait_screen("Working")
  return agent
end

T.case("editing a queued prompt keeps what goes along with it, and brings back the draft", OPTS, function(nvim)
  local agent = start_with_queued(nvim)
  nvim:keys("my draft<Esc>")
  nvim:cmd("wincmd h")
  nvim:cmd("2,3CursorAgent prompt look at this")
  nvim:wait_screen("1 queued")
  nvim:cmd("CursorAgent queue")
  nvim:keys("<CR>")
  nvim:wait_screen("editing a queued prompt")
  nvim:keys("<Esc>A!<C-s><Esc>")
  nvim:wait(function()
    return nvim:status().queue[1].text == "look at this!"
  end, "the changed prompt")
  T.eq(lines(nvim), { "my draft" })
  nvim:cmd("CursorAgent queue")
  nvim:keys("<CR>")
  nvim:wait_screen("editing a queued prompt")
  nvim:keys("<Esc>dd<C-s>")
  nvim:wait_screen_without("editing a queued prompt")
  T.eq(lines(nvim), { "my draft" }, "an empty one is left as it was")
  nvim:cmd("CursorAgent cancel")
  nvim:wait_turns(2)
  T.eq(#prompt(agent, 2), 2, "its text and the selection")
  T.contains(vim.inspect(prompt(agent, 2)), "look at this!")
end)

T.case("a queued prompt that is sent while it is edited does not get stuck", OPTS, function(nvim)
  start_with_queued(nvim)
  nvim:keys("second<C-s>")
  nvim:wait_screen("1 queued")
  nvim:keys("<Esc>gQ")
  nvim:wait_screen("1. second")
  nvim:keys("<CR>")
  nvim:wait_screen("editing a queued prompt")
  nvim:cmd("CursorAgent cancel")
  nvim:wait_turns(2)
  nvim:wait_screen_without("editing a queued prompt")
  T.contains(nvim:messages(), "was already sent unchanged")
  nvim:keys("<Esc>A changed<C-s>")
  nvim:wait_turns(3)
  T.eq(nvim:texts("user"), { "first", "second", "second changed" })
end)

T.case("<S-Tab> cycles the mode, and the winbar shows it", OPTS, function(nvim)
  start(nvim)
  nvim:wait_screen(" test  agent")
  nvim:keys("<S-Tab>")
  nvim:wait_screen(" test  plan")
  nvim:keys("<Esc><S-Tab>")
  nvim:wait_screen(" test  ask")
  nvim:cmd("CursorAgent mode agent")
  nvim:wait_screen(" test  agent")
end)

T.case("the winbar calls a model as the agent does where its id says nothing", OPTS, function(nvim)
  local agent = T.agent({ profile = "cursor" })
  nvim:use(agent, { agent = "cursor", agents = { cursor = agent.options } })
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  T.eq(nvim:lua("return require('cursor_agent').status().model"), "default")
  nvim:wait_screen("agent  Auto")
end)

local USAGE =
  { sessionUpdate = "usage_update", used = 34000, size = 100000, cost = { amount = 0.12, currency = "USD" } }

T.case("the winbar gives up whole parts where there is little room, and never what waits", OPTS, function(nvim)
  start(nvim, {
    {
      { update = USAGE },
      { permission = { toolCall = { toolCallId = "t", title = "`ls`", kind = "execute" } } },
    },
  }, { attention = { notify = false } })
  nvim:keys("go<C-s>next<C-s><Esc>")
  nvim:wait_screen("1 waiting")
  nvim:lua([[_G.bar = function(width)
    local chat = require("cursor_agent.chat.registry").current()
    local win = require("cursor_agent.chat.layout").chat_window(chat)
    vim.api.nvim_win_set_width(win, width)
    local text = vim.api.nvim_eval_statusline(vim.wo[win].winbar, { winid = win, use_winbar = true }).str
    return (text:gsub("%S+ %d:%d%d", "* 0:00"):gsub("%s+", " "))
  end]])
  T.eq(nvim:lua("return bar(70)"), " test agent Auto * 0:00 ctx 34% $0.12 1 queued 1 waiting ")
  T.eq(nvim:lua("return bar(60)"), " test agent Auto * 0:00 ctx 34% 1 queued 1 waiting ")
  T.eq(nvim:lua("return bar(53)"), " test agent * 0:00 ctx 34% 1 queued 1 waiting ")
  T.eq(nvim:lua("return bar(40)"), " agent * 0:00 ctx 34% 1 waiting ")
  T.eq(nvim:lua("return bar(30)"), " agent * 0:00 1 waiting ")
end)

T.case("the prompt has a frame that shows the keys that work now, as many as fit", OPTS, function(nvim)
  start(nvim, { { { permission = { toolCall = { toolCallId = "t", title = "`ls`", kind = "execute" } } } } })
  nvim:wait_screen("╭ Ask test ──")
  nvim:wait_screen("Ask, or type / for commands and @ for files")
  nvim:wait_screen("╰ <C-s> send · @ attach · / commands ─")
  T.ok(not nvim:sees("commands · g"), "no half words")
  nvim:keys("<Esc>:vertical resize 60<CR>")
  nvim:wait_screen("/ commands · g? keys ─")
  nvim:keys("igo<C-s>")
  nvim:wait_screen("1 waiting")
  nvim:wait_screen("Next prompt, queued until the turn ends")
  nvim:wait_screen("╰ <C-s> queue · <C-c> stop · <M-s> send now ─")
  nvim:keys("next<C-s>")
  nvim:wait_screen("─ 1 queued · agent ─╯")
  -- The frame leaves the prompt as many lines as the options give it, also where another statusline or winbar is set.
  T.eq(
    nvim:lua("return vim.api.nvim_win_get_height(0)"),
    nvim:lua("return require('cursor_agent.config').get().window.prompt_height")
  )
end)

---The rows between the top and the bottom of the prompt's frame, from its left side on.
---@param nvim harness.Child
---@return string[]
local function frame_rows(nvim)
  local rows, inside = {}, false
  for _, line in ipairs(nvim:screen()) do
    if line:find("╰", 1, true) then
      return rows
    elseif inside then
      rows[#rows + 1] = line:match("││.*$") or line
    end
    inside = inside or line:find("╭ Ask", 1, true) ~= nil
  end
  return rows
end

---Waits until each row of the frame has both its sides, or ends like this.
---@param nvim harness.Child
---@param count integer
---@param full? table<integer, string> rows whose text fills them, by their ends
local function wait_framed(nvim, count, full)
  nvim:wait(function()
    local rows = frame_rows(nvim)
    for i, row in ipairs(rows) do
      if not vim.endswith(row, full and full[i] or "│") then
        return false
      end
    end
    return #rows == count
  end, ("%d rows with a frame around them"):format(count))
end

T.case("the frame has a right side, whatever is in the prompt, and hides no text", OPTS, function(nvim)
  start(nvim, { { { text = "Working." }, { wait_cancel = true } } })
  wait_framed(nvim, 4)
  nvim:keys(
    "a first line that is long enough to be shown in three rows of the prompt, where the last one has no more than these few words"
  )
  wait_framed(nvim, 4)
  -- A line that begins moves the empty rows down, and scrolls nothing.
  nvim:keys("<CR>two<Esc>oend")
  wait_framed(nvim, 5)
  nvim:wait_screen("││ a first line")
  local cells = nvim:lua("local info = vim.fn.getwininfo(vim.fn.win_getid())[1]; return info.width - info.textoff")
  cells = math.floor(cells)
  nvim:keys(("<Esc>Gcc%sEND"):format(("x"):rep(cells - 3)))
  wait_framed(nvim, 5, { [5] = "xEND" })
  nvim:keys(("<Esc>ggdGi%s"):format(("漢"):rep(cells)))
  nvim:wait(function()
    return table.concat(frame_rows(nvim)):gsub("[^漢]", "") == ("漢"):rep(cells)
  end, "all of the wide characters")
  for _ = 1, 30 do
    nvim:keys("<CR>")
  end
  nvim:lua("vim.wait(20)")
  T.eq(#frame_rows(nvim), nvim:lua("return require('cursor_agent.config').get().window.prompt_max_height"))
  nvim:keys("<Esc>ggdG")
  wait_framed(nvim, 4)
  -- Other widths, other windows.
  nvim:keys(":vertical resize 30<CR>")
  wait_framed(nvim, 4)
  nvim:wait_screen("││ Ask  ")
  nvim:keys(":set winbar=%f<CR>")
  wait_framed(nvim, 5)
  nvim:keys(":set winbar=<CR>")
  wait_framed(nvim, 4)
  nvim:keys(":CursorAgent context<CR>")
  wait_framed(nvim, 5)
  nvim:wait_screen("││ @src/parser.lua ×")
  nvim:keys("igo<C-s>")
  nvim:wait_screen("Working.")
  wait_framed(nvim, 4)
end)

T.case("without a statusline at the bottom the frame has one top, with the keys", OPTS, function(nvim)
  nvim:cmd("set laststatus=0")
  start(nvim, {})
  nvim:wait_screen("── <C-s> send")
  local tops = 0
  for _, line in ipairs(nvim:screen()) do
    tops = tops + (line:find("╭ Ask test ─", 1, true) and 1 or 0)
  end
  T.eq(tops, 1)
  nvim:cmd("set laststatus=2")
  nvim:wait_screen("╰ <C-s> send")
end)

T.case("with one statusline for all windows the frame's top is above the prompt", OPTS, function(nvim)
  nvim:cmd("set laststatus=3")
  start(nvim, {})
  nvim:wait_screen("╭ Ask test ──")
  T.eq(nvim:lua("return vim.fn.getwininfo(vim.fn.win_getid())[1].winbar"), 1)
  T.eq(
    nvim:lua("return vim.api.nvim_win_get_height(0) - 1"),
    nvim:lua("return require('cursor_agent.config').get().window.prompt_height")
  )
end)

T.case("one statusline for all windows has the chat's title, also when it is set later", OPTS, function(nvim)
  start(nvim, { { { text = "Hello." } } })
  nvim:keys("fix the parser<C-s>")
  nvim:wait_screen("Hello.")
  nvim:wait_screen("╰ <C-s> send")
  nvim:cmd("set laststatus=3")
  -- The frame has no bottom then: its keys are at its top.
  nvim:wait_screen("── <C-s> send")
  nvim:wait_screen("test · fix the parser")
  T.ok(not nvim:sees("cursor-agent-term://"), "no name of a buffer")
  T.ok(not nvim:sees("╰"), "no bottom of a frame")
  nvim:keys("<Esc><C-w>k")
  nvim:wait("vim.bo.filetype == 'cursoragent'", "the chat")
  nvim:wait_screen("test · fix the parser")
  nvim:keys("<C-w>h")
  nvim:wait_screen_without("test · fix the parser")
  nvim:cmd("set laststatus=2")
  nvim:wait_screen("╰ <C-s> send")
end)

T.case("an empty chat says where it is, how to begin and what can be resumed", OPTS, function(nvim)
  start(nvim, { { { text = "Hello." } } })
  nvim:wait_screen("test · ")
  nvim:wait_screen("<C-s> send     @ attach       / commands")
  nvim:wait_screen("<S-Tab> mode   gM model       g? all keys")
  T.ok(not nvim:sees("resume"), "there is nothing to resume yet")
  nvim:keys("<Esc>:vertical resize 34<CR>")
  nvim:wait_screen("/ commands     <S-Tab> mode")
  nvim:keys("iFix the parser<C-s>")
  nvim:wait_turns(1)
  nvim:wait_screen_without("<S-Tab> mode")
  nvim:cmd("CursorAgent new")
  nvim:wait_screen("gr resume “Fix the p…”, today")
end)

T.case("the winbar tells time, context and what waits, the statusline in short", OPTS, function(nvim)
  start(nvim, {
    {
      { update = USAGE },
      { text = "Working" },
      { wait_cancel = true },
    },
  })
  nvim:keys("go<C-s>next<C-s><Esc>")
  nvim:wait_screen("ctx 34%  $0.12   1 queued")
  nvim:wait(function()
    return table.concat(nvim.screen_state:lines()):find(" 0:[0-5][1-9] ")
  end, "the clock to go on")
  T.eq(nvim:lua("return (require('cursor_agent').statusline():gsub('%d:%d%d', '0:00'))"), "test 0:00 1 queued")
  nvim:expect_screen("chat-winbar")
end)

T.case("the winbar says when the session does not come", OPTS, function(nvim)
  nvim:use(T.agent({ on = { ["session/new"] = { { hang = true } } } }))
  nvim:cmd("CursorAgent")
  nvim:wait_screen("starting")
  nvim:wait(function()
    -- The engine's tests let the half minute pass; here only what is shown counts. A status of the start may yet come.
    nvim:lua("require('cursor_agent.chat.registry').all()[1].status.error = 'late'")
    return nvim:sees("not responding · :CursorAgent restart")
  end, "the winbar to say so")
end)

T.case(
  "the keys around the prompt are those of an idle chat after a turn that says nothing",
  { width = 120 },
  function(nvim)
    nvim:use(T.agent({ turns = { { { text = "Hello." } }, { { wait_ms = 300 } } } }))
    nvim:prompt("go")
    nvim:wait_turns(1)
    nvim:prompt("more")
    nvim:wait_screen("╰ <C-s> queue · <C-c> stop")
    nvim:wait_turns(2)
    nvim:wait_screen("╰ <C-s> send · @ attach")
  end
)

T.case("files complete and go along whatever they are called", {
  width = 120,
  height = 24,
  files = { ["é ü/b c.lua"] = "1\n", ["src/@app/[id].ts"] = "1\n", ["あ.lua"] = "1\n", ['a"b.lua'] = "1\n" },
}, function(nvim)
  vim.system({ "git", "init", "-q" }, { cwd = nvim.work }):wait()
  local agent = T.agent({ turns = { { { text = "Yes." } } } })
  nvim:use(agent)
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  nvim:wait("#require('cursor_agent.prompt.listing').files(vim.fn.getcwd()) == 4", "the listing")
  ---@param typed string
  ---@param word string
  local function check(typed, word)
    nvim:keys("<Esc>cc" .. typed)
    nvim:wait("vim.fn.pumvisible() == 1", "the menu")
    nvim:keys("<C-n><C-y> ")
    nvim:wait(("vim.api.nvim_get_current_line() == %q"):format(word .. " "), word)
  end
  check("@é", "@{é ü/b c.lua}")
  check("@{é ü/b", "@{é ü/b c.lua}")
  check("@src/@a", "@{src/@app/[id].ts}")
  check("@あ", "@あ.lua")
  check("@ab", '@a"b.lua')
  nvim:keys("<Esc>ccSee @{é ü/b c.lua}, @src/@app/[id].ts and @あ.lua,@a<C-e><C-s>")
  nvim:wait_turns(1)
  T.eq(
    nvim:lua("return require('cursor_agent').transcript()[1].context"),
    { "@é ü/b c.lua", "@src/@app/[id].ts", "@あ.lua" }
  )
end)

T.case("the best of many files is offered, not the first", OPTS, function(nvim)
  nvim:use(T.agent({ turns = {} }))
  for i = 1, 300 do
    vim.fn.writefile({}, ("%s/%03d_in_it_x.lua"):format(nvim.work, i))
  end
  vim.fn.mkdir(nvim.work .. "/zeta")
  vim.fn.writefile({}, nvim.work .. "/zeta/init.lua")
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  nvim:wait("#require('cursor_agent.prompt.listing').files(vim.fn.getcwd()) > 300", "the listing")
  nvim:keys("@init")
  nvim:wait_screen("@zeta/init.lua")
end)

T.case("what begins with the word is offered first in either case, and nothing when nothing fits", OPTS, function(nvim)
  nvim:use(T.agent({ profile = "plain" }))
  for _, name in ipairs({ "README.md", "greet.sh", "area.lua" }) do
    vim.fn.writefile({}, nvim.work .. "/" .. name)
  end
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  nvim:wait("#require('cursor_agent.prompt.listing').files(vim.fn.getcwd()) > 2", "the listing")
  nvim:keys("@re")
  nvim:wait_screen("@greet.sh")
  T.eq(nvim:lua("return vim.fn.complete_info({ 'items' }).items[1].word"), "@README.md")
  nvim:keys("<C-e><Esc>cc/nothing")
  nvim:wait_screen("/nothing")
  T.ok(
    not nvim:sees("Searching") and not nvim:sees("Pattern not found"),
    "no message about a search the user did not start"
  )
end)

T.case("@diff works before the first commit, and says in a line why it cannot", OPTS, function(nvim)
  local agent = T.agent({ turns = { { { text = "Yes." } } } })
  nvim:use(agent)
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  nvim:keys("See @diff <C-s>")
  nvim:wait(function()
    return nvim:messages():find("not a git repository", 1, true)
  end, "the reason")
  T.eq(select(2, nvim:messages():gsub("\n", "\n")), 0, "in one line")
  vim.system({ "git", "init", "-q" }, { cwd = nvim.work }):wait()
  vim.fn.writefile({ "new" }, nvim.work .. "/new.txt")
  vim.system({ "git", "add", "new.txt" }, { cwd = nvim.work }):wait()
  nvim:keys("<C-s>")
  nvim:wait_turns(1)
  T.contains(vim.inspect(agent:received("session/prompt")[1].params.prompt), "+new")
end)

T.case("a slow git does not keep the user from typing, and prompts are sent in order", OPTS, function(nvim)
  local agent = T.agent({ turns = { { { text = "One." } }, { { text = "Two." } } } })
  nvim:use(agent)
  vim.fn.mkdir(nvim.work .. "/bin")
  vim.fn.writefile({
    "#!/bin/sh",
    '[ "$1" != diff ] || while [ ! -e go ]; do sleep 0.05; done',
    "[ \"$1\" != diff ] || echo '+changed'",
  }, nvim.work .. "/bin/git")
  vim.fn.setfperm(nvim.work .. "/bin/git", "rwxr-xr-x")
  nvim:lua("vim.env.PATH = vim.fn.getcwd() .. '/bin:' .. vim.env.PATH")
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  nvim:keys("See @diff <C-s>")
  nvim:wait_screen("waiting for git")
  nvim:keys("then this<C-s>and a draft")
  nvim:wait_screen("and a draft")
  T.eq(#agent:received("session/prompt"), 0)
  vim.fn.writefile({}, nvim.work .. "/go")
  nvim:wait_turns(2)
  nvim:wait_screen_without("waiting for git")
  local sent = agent:received("session/prompt")
  T.contains(vim.inspect(sent[1].params.prompt), "+changed")
  T.contains(vim.inspect(sent[2].params.prompt), "then this")
  T.ok(nvim:sees("and a draft"), "what was being written is still there")
end)

T.case("<Up> and <Down> walk the rows of a long line before they look through the history", OPTS, function(nvim)
  nvim:use(T.agent({ turns = { { { text = "Yes." } } } }))
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  nvim:keys("older<C-s>")
  nvim:wait_turns(1)
  local long = vim.trim(("word "):rep(20))
  nvim:keys(long)
  local function line()
    return nvim:api("nvim_get_current_line")
  end
  nvim:wait(("vim.api.nvim_get_current_line() == %q"):format(long), "the text")
  nvim:keys("<Up>")
  T.eq(line(), long, "one row up")
  nvim:keys("<Up>")
  nvim:wait("vim.api.nvim_get_current_line() == 'older'", "the history")
  nvim:keys("<Down>")
  nvim:wait(("vim.api.nvim_get_current_line() == %q"):format(long), "the draft")
  nvim:keys("<Esc>0<Down>")
  T.eq(line(), long)
  nvim:keys("<Up><Up>")
  nvim:wait("vim.api.nvim_get_current_line() == 'older'", "the history in Normal mode")
end)

T.case("a list of queued prompts that closes by itself goes back to the prompt", OPTS, function(nvim)
  start(nvim, { { { text = "One." }, { wait_cancel = true } }, { { text = "Two." } } })
  nvim:keys("first<C-s>second<C-s><Esc>")
  nvim:wait_screen("1 queued")
  nvim:keys("gQ")
  nvim:wait("vim.bo.filetype == 'cursoragent-queue'", "the list")
  nvim:cmd("CursorAgent cancel")
  nvim:wait_turns(2)
  nvim:wait("vim.bo.filetype == 'cursoragent-prompt'", "the prompt")
end)

T.case("a paste that is sent or taken away at once leaves what is typed next alone", OPTS, function(nvim)
  local agent = start(nvim)
  local long = ("x"):rep(9000)
  ---@param keys string
  local function paste_and_type(keys)
    -- Keys that are there already come before any timer.
    nvim:lua("local text, keys = ... vim.api.nvim_paste(text, true, -1) vim.api.nvim_input(keys)", long, keys)
    -- Longer than it takes to tell the end of a paste.
    nvim:lua("vim.wait(200)")
  end
  paste_and_type("<C-s>next")
  nvim:wait_turns(1)
  T.eq(prompt(agent, 1), { { type = "text", text = long } })
  T.eq(lines(nvim), { "next" })
  nvim:keys("<Esc>cc")
  paste_and_type("<Esc>ccother")
  T.eq(lines(nvim), { "other" })
end)

T.case("modes and models are named in the winbar, whatever their ids", OPTS, function(nvim)
  nvim:use(T.agent({
    turns = {},
    session = {
      modes = { currentModeId = "m-1", availableModes = { { id = "m-1", name = "Accept Edits" } } },
      models = { currentModelId = "x(openai)", availableModels = { { modelId = "x(openai)", name = "Coder Plus" } } },
    },
  }))
  nvim:cmd("CursorAgent")
  nvim:wait_screen("Accept Edits")
  nvim:wait_screen("Coder Plus")
  T.ok(not nvim:sees("m-1") and not nvim:sees("openai"), "no id")
end)
