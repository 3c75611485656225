-- Windows: where the chat opens, what closes with it, whose cursor and size stay as they are.

local T = require("harness")

---The buffers of the windows of the current tab, by their short names, in window order, and the current one's.
---@param nvim harness.Child
---@return string[] names
---@return string current
local function layout(nvim)
  local found = nvim:lua([[
    local function name(win)
      local full = vim.api.nvim_buf_get_name(vim.api.nvim_win_get_buf(win))
      return full:match("^cursor%-agent%-term://%d+/(%w+)") or vim.fn.fnamemodify(full, ":t")
    end
    local names = {}
    for _, win in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
      table.insert(names, name(win))
    end
    return { names, name(vim.api.nvim_get_current_win()) }
  ]])
  return found[1], found[2]
end

---@param nvim harness.Child
---@param names string[]
---@param current? string
local function expect_layout(nvim, names, current)
  local actual, at
  local ok = pcall(nvim.wait, nvim, function()
    actual, at = layout(nvim)
    return vim.deep_equal(actual, names) and (current == nil or at == current)
  end, nil, 3000)
  if not ok then
    error(("expected %s in %s, got %s in %s"):format(vim.inspect(names), current, vim.inspect(actual), at), 2)
  end
end

---@param nvim harness.Child
---@param turns? table[]
---@param options? table
local function start(nvim, turns, options)
  nvim:use(T.agent({ turns = turns or { { { text = "Hello.\n" } } } }), options)
  nvim:cmd("edit code.lua")
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  nvim:keys("<Esc>")
end

local FILES =
  { ["code.lua"] = table.concat(vim.fn.map(vim.fn.range(1, 60), "'local a' . v:val . ' = 1'"), "\n") .. "\n" }
local OPTS = { width = 120, height = 30, files = FILES }

T.case("toggle closes both windows, goes back to the code, and brings them back", OPTS, function(nvim)
  start(nvim)
  expect_layout(nvim, { "code.lua", "chat", "prompt" }, "prompt")
  nvim:keys("idraft<Esc>")
  nvim:cmd("CursorAgent")
  expect_layout(nvim, { "code.lua" }, "code.lua")
  T.eq(nvim:lua("return vim.api.nvim_win_get_width(0)"), 120)
  nvim:cmd("CursorAgent")
  expect_layout(nvim, { "code.lua", "chat", "prompt" }, "prompt")
  T.eq(nvim:api("nvim_get_current_line"), "draft")
end)

T.case("the code keeps its cursor, view and focus while text streams", OPTS, function(nvim)
  start(nvim, { { { chunks = { count = 200, text = "a line ${n}\n" } } } })
  nvim:cmd("wincmd h")
  nvim:keys("40Gzt5l")
  local before = nvim:lua("return { vim.fn.winsaveview(), vim.api.nvim_get_current_win() }")
  nvim:prompt("go")
  nvim:wait_turns(1)
  nvim:wait_screen("a line 199")
  T.eq(nvim:lua("return { vim.fn.winsaveview(), vim.api.nvim_get_current_win() }"), before)
end)

T.case("the view follows at the tail, stays where the user reads, and counts what is new", OPTS, function(nvim)
  start(nvim, {
    { { chunks = { count = 100, text = "first ${n}\n" } } },
    { { chunks = { count = 50, text = "second ${n}\n" } } },
    { { chunks = { count = 50, text = "third ${n}\n" } } },
  })
  nvim:prompt("one")
  nvim:wait_turns(1)
  nvim:wait_screen("first 99")
  nvim:cmd("wincmd k")
  nvim:keys("gg")
  local view = nvim:lua("return vim.fn.winsaveview()")
  nvim:prompt("two")
  nvim:wait_turns(2)
  nvim:wait_screen("new")
  T.eq(nvim:lua("return vim.fn.winsaveview()"), view, "reading further up is not disturbed")
  T.ok(not nvim:sees("second 49"))
  -- 50 lines, the prompt, and the gaps.
  nvim:wait_screen("↓ 53 new")
  nvim:keys("G")
  nvim:wait_screen("second 49")
  nvim:wait_screen_without(" new")
  nvim:prompt("three")
  nvim:wait_turns(3)
  nvim:wait_screen("third 49")
end)

T.case("a selection at the tail is not moved by what comes", OPTS, function(nvim)
  start(nvim, { { { text = "one\n\ntwo" } }, { { text = "three\n\nfour" } } })
  nvim:prompt("a")
  nvim:wait_turns(1)
  nvim:cmd("wincmd k")
  nvim:keys("GV")
  nvim:prompt("b")
  nvim:wait_turns(2)
  T.eq(nvim:lua("return { vim.fn.line('v'), vim.fn.line('.'), vim.fn.mode() }"), { 5, 5, "V" })
end)

T.case("closing one of the two closes the other", OPTS, function(nvim)
  start(nvim)
  nvim:cmd("quit")
  expect_layout(nvim, { "code.lua" })
  nvim:cmd("CursorAgent open")
  nvim:keys("<Esc>")
  nvim:cmd("wincmd k")
  nvim:cmd("close")
  expect_layout(nvim, { "code.lua" })
  nvim:prompt("still there?")
  nvim:wait_turns(1)
  expect_layout(nvim, { "code.lua", "chat", "prompt" }, "code.lua")
end)

T.case(":only in each window, and opening again, keep everything right", OPTS, function(nvim)
  start(nvim)
  nvim:prompt("x")
  nvim:wait_turns(1)
  nvim:cmd("wincmd h")
  nvim:cmd("only")
  expect_layout(nvim, { "code.lua" })
  nvim:cmd("CursorAgent open")
  nvim:keys("<Esc>")
  expect_layout(nvim, { "code.lua", "chat", "prompt" })
  nvim:cmd("wincmd k")
  nvim:cmd("only")
  expect_layout(nvim, { "chat" })
  nvim:cmd("CursorAgent open")
  nvim:keys("<Esc>")
  expect_layout(nvim, { "chat", "prompt" }, "prompt")
  nvim:cmd("only")
  expect_layout(nvim, { "prompt" })
  nvim:cmd("CursorAgent open")
  nvim:keys("<Esc>")
  expect_layout(nvim, { "chat", "prompt" }, "prompt")
  nvim:cmd("wincmd k")
  nvim:wait_screen("Hello.")
  T.eq(nvim:lua("return vim.wo.winbar ~= '' and vim.wo.wrap and vim.wo.statuscolumn == ' '"), true)
  nvim:lua("require('cursor_agent').close()")
  expect_layout(nvim, { "" })
end)

T.case("a chat moved to a tab of its own works there", OPTS, function(nvim)
  start(nvim)
  nvim:cmd("wincmd k")
  nvim:cmd("wincmd T")
  expect_layout(nvim, { "chat" })
  nvim:keys("i")
  expect_layout(nvim, { "chat", "prompt" }, "prompt")
  nvim:keys("from the tab<C-s>")
  nvim:wait_turns(1)
  nvim:wait_screen("Hello.")
  nvim:keys("<Esc>")
  nvim:cmd("tabprevious")
  expect_layout(nvim, { "code.lua" })
end)

T.case("each tab has its own chat", OPTS, function(nvim)
  start(nvim, { { { text = "for ${prompt}" } }, { { text = "for ${prompt}" } } })
  nvim:prompt("one")
  nvim:wait_turns(1)
  nvim:cmd("tabnew")
  nvim:prompt("two")
  nvim:wait_turns(2)
  nvim:wait_screen("for two")
  T.eq(nvim:texts("user"), { "two" })
  nvim:cmd("tabprevious")
  T.eq(nvim:texts("user"), { "one" })
  T.eq(nvim:lua("return require('cursor_agent').status(2).session_id"), "session-2")
  T.eq(nvim:lua("return require('cursor_agent').status('session-2').key"), 2)
end)

T.case("a wiped chat buffer comes back whole", OPTS, function(nvim)
  start(nvim, { { { text = "First answer." } }, { { text = "Second answer." } } })
  nvim:prompt("one")
  nvim:wait_turns(1)
  nvim:cmd("bwipeout! cursor-agent-term://1/chat")
  expect_layout(nvim, { "code.lua" })
  nvim:prompt("two", { open = false })
  nvim:wait_turns(2)
  nvim:cmd("CursorAgent open")
  nvim:wait_screen("First answer.")
  nvim:wait_screen("Second answer.")
end)

T.case("a deleted or unloaded chat or prompt buffer comes back whole", OPTS, function(nvim)
  start(nvim, { { { text = "First answer." } }, { { text = "Second answer." } }, { { text = "Third answer." } } })
  nvim:prompt("one")
  nvim:wait_turns(1)
  for turn, command in ipairs({ "bdelete!", "bunload!" }) do
    nvim:cmd(("execute '%s' bufnr('cursor-agent-term://1/chat')"):format(command))
    expect_layout(nvim, { "code.lua" })
    nvim:prompt("again", { open = false })
    nvim:wait_turns(turn + 1)
    nvim:cmd("CursorAgent open")
    nvim:wait_screen("First answer.")
    nvim:wait_screen("Second answer.")
  end
  nvim:wait_screen("Third answer.")
  nvim:keys("<Esc>idraft<Esc>")
  nvim:cmd("execute 'bdelete!' bufnr('cursor-agent-term://1/prompt')")
  expect_layout(nvim, { "code.lua" })
  nvim:cmd("CursorAgent open")
  expect_layout(nvim, { "code.lua", "chat", "prompt" }, "prompt")
  T.eq(nvim:api("nvim_get_current_line"), "draft")
  nvim:keys("<C-s>")
  nvim:wait_turns(4)
  T.ok(not nvim:messages():find("could not show"), nvim:messages())
end)

T.case("a chat wiped and opened again while text streams has each line once", OPTS, function(nvim)
  local steps = {}
  for i = 1, 150 do
    vim.list_extend(steps, { { text = ("line %d\n"):format(i) }, { wait_ms = 4 } })
  end
  start(nvim, { steps })
  nvim:prompt("go")
  nvim:wait_screen("line 1")
  for _ = 1, 8 do
    nvim:cmd("bwipeout! cursor-agent-term://1/chat")
    nvim:cmd("CursorAgent open")
    nvim:cmd("sleep 20m")
  end
  nvim:wait_turns(1)
  nvim:wait_screen("line 150")
  local shown =
    nvim:api("nvim_buf_get_lines", nvim:lua("return vim.fn.bufnr('cursor-agent-term://1/chat')"), 0, -1, false)
  local wanted = {} ---@type string[]
  for i = 1, 150 do
    wanted[i] = "line " .. i
  end
  T.eq(vim.list_slice(shown, 3), wanted)
end)

T.case("a 'foldmethod' of the user's own is respected", OPTS, function(nvim)
  start(
    nvim,
    { { { thought = "hm\nhm\nhm" }, { text = "An answer." } }, { { thought = "hm\nhm" }, { text = "Another." } } }
  )
  nvim:keys("<Esc>")
  nvim:cmd("wincmd k")
  nvim:cmd("setlocal foldmethod=indent")
  nvim:prompt("one")
  nvim:wait_turns(1)
  nvim:wait_screen("An answer.")
  nvim:cmd("setlocal foldmethod=marker")
  nvim:prompt("two")
  nvim:wait_turns(2)
  nvim:wait_screen("Another.")
  T.ok(not nvim:sees("{{{"), "no markers are written")
  T.ok(not nvim:messages():find("could not show"), nvim:messages())
end)

T.case("the sizes of other windows are the user's", OPTS, function(nvim)
  start(nvim)
  nvim:cmd("CursorAgent close")
  nvim:cmd("split")
  nvim:cmd("resize 5")
  local sizes = "return vim.tbl_map(vim.api.nvim_win_get_height, vim.api.nvim_tabpage_list_wins(0))"
  local before = nvim:lua(sizes)
  nvim:cmd("CursorAgent open")
  nvim:keys("<Esc>")
  nvim:cmd("wincmd k")
  nvim:cmd("vertical resize 50")
  nvim:cmd("CursorAgent close")
  T.eq(nvim:lua(sizes), before)
  nvim:cmd("CursorAgent open")
  T.eq(nvim:lua("return vim.api.nvim_win_get_width(0)"), 50, "the width the user gave the chat")
end)

T.case("where there is no room the chat says so, and nothing is left half open", OPTS, function(nvim)
  start(nvim)
  nvim:cmd("CursorAgent close")
  nvim:api("nvim_ui_try_resize", 100, 5)
  T.contains(nvim:cmd("CursorAgent open"), "cursor-agent: no room for the chat here")
  expect_layout(nvim, { "code.lua" })
  nvim:api("nvim_ui_try_resize", 100, 30)
  nvim:cmd("CursorAgent open")
  expect_layout(nvim, { "code.lua", "chat", "prompt" }, "prompt")
end)

local TINY = {
  turns = {
    { { text = "Hello there, this is a rather long line of text.\n" } },
    {
      {
        permission = {
          toolCall = {
            toolCallId = "t1",
            kind = "execute",
            rawInput = { command = "make it so --with --long --flags" },
          },
        },
      },
    },
  },
}

for _, size in ipairs({ { 14, 6 }, { 24, 6 }, { 40, 10 } }) do
  local title = ("a screen of %dx%d is enough"):format(size[1], size[2])
  T.case(title, { width = size[1], height = size[2], files = OPTS.files }, function(nvim)
    nvim:use(T.agent(TINY), { window = { position = size[2] == 10 and "bottom" or "right" } })
    nvim:cmd("edit code.lua")
    nvim:cmd("messages clear")
    ---@param keys string
    local function press(keys)
      nvim:keys(keys)
      nvim:lua("vim.wait(50)")
      local mode = nvim:api("nvim_get_mode")
      T.eq({ mode.mode, mode.blocking }, { "n", false }, keys)
    end
    press(":CursorAgent open<CR><Esc>")
    press(":CursorAgent prompt hi<CR>")
    nvim:wait_turns(1)
    press(":CursorAgent todos<CR>")
    press(":CursorAgent prompt go<CR>")
    nvim:wait_state("waiting")
    press(":CursorAgent decisions<CR>")
    nvim:wait("vim.bo.filetype == 'cursoragent-decision'", "the card")
    nvim:wait_card()
    press("d")
    press("q")
    press(":CursorAgent log<CR>")
    T.eq(nvim:messages():match("E%d+: [^\n]*"), nil)
  end)
end

T.case("a chat deleted while its colours wait is left alone", OPTS, function(nvim)
  start(nvim, { { { text = "An answer." } } })
  nvim:prompt("one")
  nvim:wait_turns(1)
  nvim:lua([[
    local chat = require("cursor_agent.chat.registry").all()[1]
    require("cursor_agent.colour.painter").want(chat.transcript, 0, 0, 10)
    -- In the moment before what is left of the buffer goes as well.
    vim.cmd("noautocmd bdelete! " .. chat.buf)
  ]])
  nvim:wait("require('cursor_agent.colour.painter').idle()", "the painter")
  T.eq(nvim:messages():match("[^\n]*attempt[^\n]*"), nil)
end)

for _, event in ipairs({ "BufWinEnter", "BufEnter", "WinEnter", "WinClosed" }) do
  T.case(("a failing autocommand for %s is named and stops nothing"):format(event), OPTS, function(nvim)
    nvim:use(T.agent({}))
    nvim:lua("vim.api.nvim_create_autocmd(..., { callback = function() error('a plugin failed') end })", event)
    for _ = 1, 2 do
      T.eq(nvim:lua("return pcall(require('cursor_agent').open)"), true)
      expect_layout(nvim, { "", "chat", "prompt" }, "prompt")
      T.eq(nvim:lua("return require('cursor_agent').close()"), true)
      expect_layout(nvim, { "" })
    end
    T.ok(nvim:messages():gsub("\n", ""):find("a plugin failed", 1, true), "it is named")
  end)
end

T.case("`:quit` in one of two windows on a chat closes that one, also where nothing else is left", OPTS, function(nvim)
  start(nvim)
  nvim:keys("<Esc>:1close<CR>")
  expect_layout(nvim, { "chat", "prompt" })
  nvim:keys("<C-w>k:split<CR>")
  expect_layout(nvim, { "chat", "chat", "prompt" }, "chat")
  nvim:keys(":quit<CR>")
  expect_layout(nvim, { "chat", "prompt" })
end)

T.case("two windows on one chat both have their colours", { width = 100, height = 30 }, function(nvim)
  local text = {} ---@type string[]
  for i = 1, 200 do
    text[i] = ("Word %d is **bold**.\n\n"):format(i)
  end
  start(nvim, { { { text = table.concat(text) } } })
  nvim:prompt("go")
  nvim:wait_turns(1)
  nvim:wait_screen("Word 200 ")
  nvim:keys("<Esc><C-w>k")
  nvim:wait("vim.bo.filetype == 'cursoragent'", "the chat")
  nvim:keys(":split | normal! gg<CR>")
  nvim:wait_screen("Word 3 ")
  nvim:wait(
    [[(function()
      local row = vim.fn.search("Word 3 ", "nw") - 1
      local ns = vim.api.nvim_get_namespaces().cursor_agent_syntax
      return #vim.api.nvim_buf_get_extmarks(0, ns, { row, 0 }, { row, -1 }, {}) > 0
    end)()]],
    "the colours of what the upper one shows"
  )
end)

T.case("another screen size keeps the chat's share", OPTS, function(nvim)
  start(nvim)
  T.eq(nvim:lua("return vim.api.nvim_win_get_width(0)"), 54)
  nvim:api("nvim_ui_try_resize", 200, 40)
  nvim:wait("vim.api.nvim_win_get_width(0) == 90", "the new width")
end)

T.case("positions left, bottom and float", OPTS, function(nvim)
  nvim:use(T.agent({ turns = { { { text = "Hello.\n" } } } }), { window = { position = "left" } })
  nvim:cmd("edit code.lua")
  nvim:prompt("x")
  nvim:wait_turns(1)
  expect_layout(nvim, { "chat", "prompt", "code.lua" }, "code.lua")
  nvim:cmd("CursorAgent close")
  nvim:lua("require('cursor_agent').open({ position = 'bottom' })")
  nvim:keys("<Esc>")
  expect_layout(nvim, { "code.lua", "chat", "prompt" }, "prompt")
  T.eq(nvim:lua("return vim.api.nvim_win_get_width(0)"), 120)
  nvim:cmd("CursorAgent close")
  nvim:lua("require('cursor_agent').open({ position = 'float' })")
  nvim:keys("<Esc>")
  expect_layout(nvim, { "code.lua", "prompt", "chat" }, "prompt")
  nvim:expect_screen("chat-float")
  nvim:cmd("CursorAgent close")
  expect_layout(nvim, { "code.lua" }, "code.lua")
end)

T.case("a file opened from the chat does not take its window", OPTS, function(nvim)
  start(nvim)
  nvim:cmd("wincmd k")
  nvim:keys(":edit other.lua<CR>")
  expect_layout(nvim, { "other.lua", "chat", "prompt" }, "other.lua")
end)

T.case("options of the chat's window do not leak into files shown there", OPTS, function(nvim)
  nvim:cmd("set number")
  start(nvim)
  nvim:cmd("wincmd k")
  nvim:keys(":edit other.lua<CR>")
  expect_layout(nvim, { "other.lua", "chat", "prompt" }, "other.lua")
  T.eq(
    nvim:lua("return { vim.wo.number, vim.wo.winbar, vim.wo.statuscolumn, vim.wo.foldtext }"),
    { true, "", "", "foldtext()" }
  )
end)

T.case("a saved session comes back without the chat", OPTS, function(nvim)
  start(nvim)
  nvim:cmd("wincmd h")
  nvim:cmd("mksession! Session.vim")
  nvim:cmd("CursorAgent! close")
  nvim:cmd("only")
  nvim:cmd("%bwipeout!")
  nvim:cmd("source Session.vim")
  expect_layout(nvim, { "code.lua" })
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  expect_layout(nvim, { "code.lua", "chat", "prompt" })
end)

T.case("a session file that is read where the chat still is brings it back in its windows", OPTS, function(nvim)
  start(nvim)
  nvim:prompt("hello")
  nvim:wait_turns(1)
  nvim:keys("ia draft<Esc>")
  nvim:cmd("wincmd h | mksession! Session.vim")
  nvim:keys(":silent source Session.vim<CR>")
  expect_layout(nvim, { "code.lua", "chat", "prompt" })
  T.ok(not nvim:messages():find("E%d"), nvim:messages())
  nvim:wait_screen("Hello.")
  nvim:wait_screen("a draft")
  nvim:wait_screen("test  agent")
  T.eq(nvim:lua("return vim.fn.getcompletion('cursor-agent-term://', 'buffer')"), {}, "nothing else is left")
  nvim:cmd("CursorAgent")
  expect_layout(nvim, { "code.lua" })
  nvim:keys(":silent source Session.vim<CR>")
  expect_layout(nvim, { "code.lua", "chat", "prompt" })
  T.ok(not nvim:messages():find("E%d"), nvim:messages())
  nvim:prompt("again", { open = false })
end)

T.case("leaving Neovim by :q in each window leaves no process", OPTS, function(nvim)
  start(nvim)
  nvim:cmd("wincmd h")
  nvim:cmd("quit")
  expect_layout(nvim, { "chat", "prompt" })
  nvim:cmd("wincmd j")
  nvim:quit("quit")
end)

T.case("following continues when the tail is redrawn or shrinks", OPTS, function(nvim)
  local function plan(...)
    local entries = {}
    for i, status in ipairs({ ... }) do
      entries[i] = {
        content = "a todo that is long enough for a line of its own, number " .. i,
        priority = "high",
        status = status,
      }
    end
    return { update = { sessionUpdate = "plan", entries = entries } }
  end
  start(nvim, {
    {
      { text = "Text with empty lines at its end.\n\n\n" },
      { wait_ms = 40 },
      plan("pending", "pending", "pending"),
      { wait_ms = 40 },
      plan("completed", "in_progress", "pending"),
      { wait_ms = 40 },
      plan("completed"),
      { wait_ms = 40 },
      { chunks = { count = 60, text = "line ${n}\n" } },
    },
  })
  nvim:prompt("go")
  nvim:wait_turns(1)
  nvim:wait_screen("line 59")
  nvim:wait_screen_without(" new")
end)

T.case("the user leaves the tail in the middle of a flood", OPTS, function(nvim)
  start(nvim, { { { chunks = { count = 60, text = "line ${n}\n" } }, { wait_cancel = true } } })
  nvim:cmd("wincmd k")
  nvim:prompt("go")
  nvim:wait_screen("line 59")
  -- Steps of a flood, which windows follow only now and then; the key comes between two of them.
  local lines = nvim:lua([[
    local transcript = require("cursor_agent.chat.transcript").of(vim.api.nvim_get_current_buf())
    local at = {}
    local function step(flood)
      transcript:append(2, "more\n")
      transcript:finish(flood)
      table.insert(at, vim.fn.line("."))
    end
    transcript:finish(false)
    step(false)
    step(true)
    step(true)
    vim.cmd("normal! gg")
    step(true)
    step(false)
    return at
  ]])
  T.eq(lines, { 63, 63, 63, 1, 1 })
  nvim:wait_screen("↓ 4 new")
  T.eq(nvim:lua("return vim.bo.modifiable"), false)
end)

T.case("the end is in sight, also of lines that just do not fit into a row", OPTS, function(nvim)
  local line = ("x"):rep(54)
  start(nvim, { { { text = ("%s\n\n"):format(line):rep(60) .. "The end.\n" }, { text = "\nNow really.\n" } } })
  T.eq(nvim:lua("return vim.api.nvim_win_get_width(0)"), #line)
  nvim:keys("igo<C-s><Esc>")
  nvim:wait_turns(1)
  nvim:wait_screen("Now really.")
end)

T.case("a chat that follows does so in a window of another size, one that is read stays", OPTS, function(nvim)
  local text = table.concat(
    vim.fn.map(vim.fn.range(1, 80), "'sentence ' . v:val . ' of an answer that wraps in a narrow window'"),
    "\n\n"
  )
  start(nvim, { { { text = text .. "\n\nThe end.\n" } } })
  nvim:keys("igo<C-s><Esc>")
  nvim:wait_turns(1)
  nvim:wait_screen("The end.")
  nvim:api("nvim_ui_try_resize", 60, 20)
  nvim:wait_screen("The end.")
  nvim:api("nvim_ui_try_resize", 160, 48)
  nvim:wait_screen("sentence 66 of")
  nvim:wait_screen("The end.")
  nvim:cmd("wincmd k")
  nvim:keys("gg")
  nvim:api("nvim_ui_try_resize", 80, 24)
  nvim:wait_screen("sentence 1 of")
end)

T.case("a help window that opens and closes leaves chat and prompt as they were", OPTS, function(nvim)
  start(nvim)
  local heights = "vim.tbl_map(vim.api.nvim_win_get_height, vim.api.nvim_tabpage_list_wins(0))"
  local before = nvim:lua("return " .. heights)
  nvim:cmd("wincmd h")
  nvim:keys(":copen<CR>:help<CR>:helpclose<CR>:cclose<CR>")
  nvim:wait(("vim.deep_equal(%s, %s)"):format(heights, vim.inspect(before)), "the heights there were before")
end)

T.case("one statusline for all windows stays the user's", OPTS, function(nvim)
  nvim:cmd("set laststatus=3 statusline=%f\\ MINE")
  start(nvim)
  expect_layout(nvim, { "code.lua", "chat", "prompt" }, "prompt")
  nvim:wait_screen("1/prompt MINE")
  nvim:cmd("wincmd k")
  nvim:wait_screen("1/chat MINE")
end)

T.case("the end of a paragraph taller than the window is followed too", OPTS, function(nvim)
  start(nvim, {
    { { text = "Begin.\n\n" }, { chunks = { count = 400, text = "word${n} ", every_ms = 1 } }, { text = "THE END" } },
  })
  nvim:prompt("go")
  nvim:wait_turns(1)
  nvim:wait_screen("THE END")
end)

T.case("a selection in the chat outlives thoughts and tool calls that fold meanwhile", OPTS, function(nvim)
  start(nvim, {
    { { text = "one\ntwo\nthree" } },
    {
      { thought = "Hm." },
      {
        update = {
          sessionUpdate = "tool_call",
          toolCallId = "r",
          title = "Read x",
          status = "in_progress",
          content = { { type = "content", content = { type = "text", text = "a\nb" } } },
        },
      },
      { wait_ms = 50 },
      { update = { sessionUpdate = "tool_call_update", toolCallId = "r", status = "completed" } },
      { thought = "Well." },
      { text = "Done." },
    },
  })
  nvim:prompt("go")
  nvim:wait_turns(1)
  nvim:cmd("wincmd k")
  nvim:keys("gg/two<CR>V")
  nvim:prompt("on")
  nvim:wait_turns(2)
  T.eq(nvim:lua("return vim.fn.mode()"), "V")
  nvim:keys("jy")
  T.eq(nvim:lua("return vim.fn.getreg('\"')"), "two\nthree\n")
  nvim:wait("vim.fn.foldclosed(vim.fn.search('Read x', 'n')) > 0", "what ended meanwhile to be folded")
end)

T.case("following goes on after a command line at the tail", OPTS, function(nvim)
  start(
    nvim,
    { { { chunks = { count = 60, text = "line ${n}\n" } } }, { { text = "more\nmore" } }, { { text = "Last." } } }
  )
  nvim:prompt("go")
  nvim:wait_turns(1)
  nvim:cmd("wincmd k")
  nvim:keys("G:echo 1")
  nvim:prompt("on")
  nvim:wait_turns(2)
  nvim:keys("<Esc>")
  nvim:prompt("on")
  nvim:wait_turns(3)
  nvim:wait_screen("Last.")
end)

T.case("beside a chat in a float, the queue and the log are in sight too", OPTS, function(nvim)
  start(nvim, { { { text = "Working" }, { wait_cancel = true } } }, { window = { position = "float" } })
  nvim:keys("ifirst<C-s>second<C-s>third<C-s><Esc>")
  nvim:wait_screen("2 queued")
  nvim:keys("gQ")
  nvim:wait_screen("1. second")
  nvim:wait_screen("2. third")
  nvim:keys("dd")
  nvim:wait_screen("1. third")
  nvim:keys("q")
  nvim:wait_screen_without("1. third")
  nvim:keys(":CursorAgent log<CR>")
  nvim:wait_screen("protocol log  <CR> whole message")
  nvim:wait_screen("session/prompt               {")
  nvim:keys("q")
  nvim:wait_screen("Working")
end)

T.case("a session can be loaded while the chat has the focus", OPTS, function(nvim)
  nvim:cmd("edit code.lua | mksession! code.vim")
  start(nvim)
  expect_layout(nvim, { "code.lua", "chat", "prompt" }, "prompt")
  nvim:cmd("source code.vim")
  expect_layout(nvim, { "code.lua" }, "code.lua")
  nvim:cmd("CursorAgent")
  expect_layout(nvim, { "code.lua", "chat", "prompt" }, "prompt")
  nvim:cmd("only")
  expect_layout(nvim, { "prompt" }, "prompt")
  nvim:cmd("vsplit | edit code.lua")
  nvim:cmd("wincmd p")
  nvim:cmd("edit other.lua")
  expect_layout(nvim, { "other.lua", "prompt" }, "other.lua")
end)

T.case("a chat opened again is where it was: at the end, or where it was read with its folds", OPTS, function(nvim)
  local function lines(count)
    return { chunks = { count = count, text = "line ${n}\n" } }
  end
  local call = {
    update = {
      sessionUpdate = "tool_call",
      toolCallId = "r",
      title = "Read x",
      status = "completed",
      content = { { type = "content", content = { type = "text", text = "what was read" } } },
    },
  }
  start(nvim, { { call, lines(60) }, { lines(60), { text = "The end." } }, { { text = "one\ntwo\nAt last." } } })
  nvim:keys("ifirst<C-s><Esc>")
  nvim:wait_turns(1)
  nvim:cmd("CursorAgent")
  expect_layout(nvim, { "code.lua" })
  nvim:prompt("second", { open = false })
  nvim:wait_turns(2)
  nvim:cmd("CursorAgent")
  nvim:wait_screen("The end.")

  nvim:keys("<Esc>")
  nvim:cmd("wincmd k")
  nvim:keys("gg]tzo")
  nvim:wait_screen("│ what was read")
  nvim:keys("20G")
  nvim:cmd("CursorAgent close")
  nvim:prompt("third", { open = false })
  nvim:wait_turns(3)
  nvim:cmd("CursorAgent")
  nvim:keys("<Esc>")
  nvim:cmd("wincmd k")
  T.eq(nvim:lua("return vim.fn.line('.')"), 20)
  nvim:wait_screen("│ what was read")
  nvim:wait_screen("new ")
  for _ = 1, 3 do
    nvim:cmd("CursorAgent close")
    nvim:cmd("CursorAgent open")
  end
  local noted = nvim:lua("return vim.tbl_count(require('cursor_agent.chat.registry').current().transcript.tail.base)")
  T.eq(noted, 1, "windows that are gone leave nothing behind")
end)

T.case("who scrolls by rows does so in the chat", OPTS, function(nvim)
  nvim:cmd("set smoothscroll")
  start(nvim, { { { chunks = { count = 60, text = "line ${n}\n" } }, { text = "The end." } } })
  nvim:prompt("go")
  nvim:wait_screen("The end.")
  nvim:cmd("wincmd k")
  T.ok(nvim:lua("return vim.bo.filetype == 'cursoragent' and vim.wo.smoothscroll"))
end)

T.case("a jump in the second window of a chat moves that one", OPTS, function(nvim)
  start(nvim, { { { text = "Hello." } }, { { text = "Bye." } } })
  nvim:prompt("first")
  nvim:wait_turns(1)
  nvim:prompt("second")
  nvim:wait_turns(2)
  nvim:cmd("wincmd k")
  nvim:keys("gg")
  nvim:cmd("split | wincmd j")
  nvim:keys("]]")
  T.eq(nvim:api("nvim_get_current_line"), "> second")
  nvim:cmd("wincmd k")
  T.eq(nvim:api("nvim_get_current_line"), "> first")
end)

T.case("sending takes the chat to its end, not the one that is read in another tab", OPTS, function(nvim)
  start(nvim, { { { chunks = { count = 60, text = "line ${n}\n" } } }, { { text = "The end." } } })
  nvim:prompt("first")
  nvim:wait_turns(1)
  nvim:cmd("wincmd k | tab split")
  nvim:keys("20G")
  nvim:cmd("tabprevious | wincmd j")
  nvim:keys("isecond<C-s><Esc>")
  nvim:wait_turns(2)
  nvim:wait_screen("The end.")
  nvim:cmd("tabnext")
  T.eq(nvim:lua("return vim.fn.line('.')"), 20)
end)

T.case("text fills the window to its foot when a fold closes at the tail, and when it opens", OPTS, function(nvim)
  local thought = { thought = ("a thought\n\n"):rep(9) .. "its end" }
  start(
    nvim,
    { { { chunks = { count = 60, text = "line ${n}\n\n" } }, thought, { wait_ms = 50 }, { text = "Done." }, thought } }
  )
  nvim:keys("igo<C-s>")
  nvim:wait_turns(1)
  local function blank_rows()
    return nvim:lua([[
      local win = vim.fn.bufwinid("cursor-agent-term://1/chat")
      local info = vim.fn.getwininfo(win)[1]
      return info.height - vim.api.nvim_win_text_height(win, { start_row = info.topline - 1 }).all
    ]])
  end
  nvim:wait_screen("Done.")
  nvim:wait_screen_without("its end")
  T.eq(blank_rows(), 0)
  nvim:cmd("stopinsert | CursorAgent")
  nvim:cmd("CursorAgent")
  nvim:wait_screen("Done.")
  T.eq(blank_rows(), 0)
end)

T.case("after a jump to the end a long paragraph is shown in part, not blank rows", OPTS, function(nvim)
  start(
    nvim,
    { { { text = ("many words "):rep(160) .. "\n\nThe end." } }, { { text = "Short." }, { wait_cancel = true } } }
  )
  nvim:keys("ione<C-s>")
  nvim:wait_turns(1)
  nvim:keys("two<C-s>")
  nvim:wait_screen("Short.")
  local row
  for i, line in ipairs(nvim:screen()) do
    row = line:find("Short%.") and i or row
  end
  local bottom = nvim:lua([[
    local win = vim.fn.bufwinid("cursor-agent-term://1/chat")
    return vim.api.nvim_win_get_position(win)[1] + vim.api.nvim_win_get_height(win)
  ]])
  T.eq(row, bottom, "the text reaches the foot of the chat")
end)

T.case("the winbar says that there is something new below, also while one long paragraph grows", OPTS, function(nvim)
  local words = { chunks = { count = 200, text = " word", every_ms = 5 } }
  start(nvim, { { { text = "one\n\ntwo\n\nBegun" }, { wait_ms = 500 }, words } })
  nvim:keys("igo<C-s>")
  nvim:wait_screen("Begun")
  nvim:keys("<Esc>")
  nvim:cmd("wincmd k")
  nvim:keys("gg")
  nvim:wait_screen("↓ new")
  nvim:wait_turns(1)
  T.ok(nvim:sees("↓ new"))
  nvim:keys("G")
  nvim:wait_screen_without("↓ new")
end)

T.case("the user can scroll back in a paragraph taller than the window while it grows", OPTS, function(nvim)
  start(nvim, {
    {
      { text = "Begun" .. (" many words"):rep(200) },
      { wait_ms = 1000 },
      { chunks = { count = 100, text = " and more", every_ms = 5 } },
      { text = " at last." },
    },
  })
  nvim:keys("igo<C-s><Esc>")
  nvim:cmd("wincmd k")
  nvim:wait_screen("<<<")
  nvim:keys("<C-u>")
  local view = nvim:lua("return vim.fn.winsaveview()")
  nvim:wait_screen("↓ new")
  nvim:wait_turns(1)
  T.eq(nvim:lua("return vim.fn.winsaveview()"), view, "the view stays")
  T.ok(not nvim:sees("at last."))
  nvim:keys("$")
  nvim:wait_screen("at last.")
  nvim:wait_screen_without("↓ new")
end)
