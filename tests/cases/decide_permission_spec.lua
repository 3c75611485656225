-- Permissions: what is asked is shown, keys answer by kind, nothing is answered by accident.

local T = require("harness")

local METHOD = "session/request_permission"

---@param id string
---@param command string
---@return table
local function run(id, command)
  return {
    toolCall = {
      toolCallId = id,
      title = ("`%s`"):format(command),
      kind = "execute",
      status = "pending",
      content = { { type = "content", content = { type = "text", text = "Not in allowlist: " .. command } } },
    },
  }
end

---A turn that asks for one permission after the other.
---@param permissions table[]
---@return table[]
local function one_by_one(permissions)
  local steps = {}
  for _, permission in ipairs(permissions) do
    steps[#steps + 1] = { permission = permission, ["then"] = { ["*"] = { { text = "Answered.\n" } } } }
  end
  return steps
end

---A turn that asks for all of them at once, then waits for each.
---@param permissions table[]
---@return table[]
local function at_once(permissions)
  local steps = {}
  for i, permission in ipairs(permissions) do
    steps[#steps + 1] = { permission = permission, wait = false, name = "p" .. i }
  end
  for i in ipairs(permissions) do
    steps[#steps + 1] = { join = "p" .. i }
  end
  return steps
end

---Stops the clock by which a decision has been seen long enough, and moves it on: no slowness of the machine counts.
---@param nvim harness.Child
---@param ms integer? as long as keys are not taken for answers otherwise
local function move_clock(nvim, ms)
  nvim:lua(
    [[
      if not _G.stopped_clock then
        _G.stopped_clock = vim.uv.hrtime()
        vim.uv.hrtime = function()
          return _G.stopped_clock
        end
      end
      _G.stopped_clock = _G.stopped_clock + (... or 310) * 1e6
    ]],
    ms
  )
end

T.case(
  "appears beside the work, is entered by command, and one key answers",
  { width = 100, height = 28 },
  function(nvim)
    local agent = T.agent({ turns = { one_by_one({ run("t1", "cargo test parser -- --nocapture") }) } })
    nvim:use(agent, { agents = { test = { title = "cursor" } } })
    nvim:prompt("go", { open = false })
    nvim:wait_screen("cursor asks to run a command")
    T.eq(nvim:in_card(), false, "the card is not entered by itself")
    nvim:expect_screen("decide-permission-waiting")
    local before = nvim:api("nvim_get_current_win")
    nvim:keys(":CursorAgent decisions<CR>")
    nvim:wait(function()
      return nvim:in_card()
    end, "the card to be entered")
    nvim:expect_screen("decide-permission-entered")
    nvim:wait_card()
    nvim:keys("a")
    nvim:wait_outcomes(agent, { "allow-once" })
    nvim:wait_turns(1)
    nvim:wait_screen_without("d details")
    T.eq(nvim:api("nvim_get_current_win"), before, "back where the user was")
    T.eq(#nvim:api("nvim_list_wins"), 1)
  end
)

-- Option ids, kinds and their order as the released agents send them.
local AGENTS = {
  {
    name = "Cursor CLI",
    options = { { "allow-once", "allow_once" }, { "allow-always", "allow_always" }, { "reject-once", "reject_once" } },
    keys = { a = "allow-once", A = "allow-always", r = "reject-once" },
  },
  {
    name = "claude-agent-acp",
    options = { { "allow-once", "allow_once" }, { "allow-with-updates", "allow_always" }, { "reject", "reject_once" } },
    keys = { a = "allow-once", A = "allow-with-updates", r = "reject" },
  },
  {
    name = "claude-code-acp",
    options = { { "allow_always", "allow_always" }, { "allow", "allow_once" }, { "reject", "reject_once" } },
    keys = { a = "allow", A = "allow_always", r = "reject", ["1"] = "allow_always" },
  },
  {
    name = "opencode",
    options = { { "once", "allow_once" }, { "always", "allow_always" }, { "reject", "reject_once" } },
    keys = { a = "once", A = "always", r = "reject", ["3"] = "reject" },
  },
  {
    name = "gemini-cli",
    options = { { "proceed_always", "allow_always" }, { "proceed_once", "allow_once" }, { "cancel", "reject_once" } },
    keys = { a = "proceed_once", A = "proceed_always", r = "cancel" },
  },
  {
    name = "qwen-code",
    options = {
      { "proceed_always_project", "allow_always" },
      { "proceed_always_user", "allow_always" },
      { "proceed_once", "allow_once" },
      { "cancel", "reject_once" },
    },
    keys = { a = "proceed_once", A = "proceed_always_project", r = "cancel", ["2"] = "proceed_always_user" },
  },
  {
    name = "codex-acp",
    options = { { "allow_once", "allow_once" }, { "allow_for_session", "allow_always" }, { "cancel", "reject_once" } },
    keys = { a = "allow_once", A = "allow_for_session", r = "cancel" },
  },
  {
    name = "codex-acp 0.16",
    options = { { "approved", "allow_once" }, { "abort", "reject_once" } },
    keys = { a = "approved", r = "abort" },
  },
  {
    name = "goose",
    options = {
      { "allow_always", "allow_always" },
      { "allow_once", "allow_once" },
      { "reject_once", "reject_once" },
      { "reject_always", "reject_always" },
    },
    keys = { a = "allow_once", A = "allow_always", r = "reject_once", R = "reject_always" },
  },
  {
    name = "mistral-vibe",
    options = {
      { "allow_once", "allow_once" },
      { "allow_always", "allow_always" },
      { "allow_always_permanent", "allow_always" },
      { "reject_once", "reject_once" },
    },
    keys = { a = "allow_once", A = "allow_always", r = "reject_once", ["3"] = "allow_always_permanent" },
  },
  {
    name = "an agent that offers no way to say no",
    options = { { "yes", "allow_once" } },
    keys = { a = "yes", r = "cancelled" },
  },
  {
    name = "an agent with a kind of its own",
    options = { { "ok", "allow_once" }, { "ask-the-boss", "escalate" } },
    keys = { a = "ok", ["2"] = "ask-the-boss", r = "cancelled" },
  },
}

T.case("keys choose by kind, whatever ids and order an agent uses", { deadline_ms = 120000 }, function(nvim)
  local permissions, keys, expected = {}, {}, {}
  for _, one in ipairs(AGENTS) do
    for key, id in vim.spairs(one.keys) do
      -- Each asks something else: what was allowed for good is not asked again.
      local permission = run("t" .. #keys, ("%s # %s"):format(one.name, key))
      permission.options = vim.tbl_map(function(option)
        return { optionId = option[1], name = option[1], kind = option[2] }
      end, one.options)
      permissions[#permissions + 1] = permission
      keys[#keys + 1] = key
      expected[#expected + 1] = id
    end
  end
  local agent = T.agent({ turns = { one_by_one(permissions) } })
  nvim:use(agent)
  nvim:lua("require('cursor_agent.decide').SETTLE_MS = 0")
  nvim:prompt("go", { open = false })
  for i, key in ipairs(keys) do
    nvim:wait_screen("$ " .. permissions[i].toolCall.title:gsub("`", ""))
    if not nvim:in_card() then
      nvim:cmd("CursorAgent decisions")
    end
    nvim:keys(key)
    nvim:wait(function()
      return #agent:outcomes() >= i
    end, ("an answer to %s"):format(permissions[i].toolCall.title))
    T.eq(agent:outcomes()[i], expected[i], permissions[i].toolCall.title)
  end
  nvim:wait_turns(1)
  T.eq(#agent:outcomes(), #expected)
end)

T.case("a key whose kind is not offered says so and answers nothing", function(nvim)
  local agent = T.agent({ turns = { one_by_one({ run("t1", "make") }) } })
  nvim:use(agent)
  nvim:prompt("go", { open = false })
  nvim:wait_screen("asks to run")
  nvim:cmd("CursorAgent decisions")
  nvim:wait_card()
  nvim:keys("R")
  nvim:wait_screen("│ test has no option to reject always here")
  nvim:keys("7")
  nvim:wait_screen("│ test has 3 options here")
  T.eq(agent:outcomes(), {})
  nvim:keys("3")
  nvim:wait_outcomes(agent, { "reject-once" })
end)

T.case("text typed while it appears goes where it was going", { width = 90 }, function(nvim)
  local agent = T.agent({
    turns = { { { wait_ms = 200 }, { permission = run("t1", "make install"), ["then"] = { ["*"] = {} } } } },
  })
  nvim:use(agent)
  nvim:prompt("go", { open = false })
  nvim:keys("ia")
  while not nvim:sees("asks to run") do
    nvim:keys("arA1")
    nvim:wait("true")
  end
  nvim:keys("arR123eq<CR>d")
  nvim:wait("#vim.api.nvim_buf_get_lines(0, 0, -1, false) == 2", "the text")
  T.eq(nvim:api("nvim_get_mode").mode, "i")
  local lines = nvim:api("nvim_buf_get_lines", 0, 0, -1, false)
  T.ok(lines[1]:match("^a[arA1]*arR123eq$"), lines[1])
  T.eq(lines[2], "d")
  T.eq(agent:outcomes(), {})
  T.eq(nvim:status().state, "waiting")
end)

T.case("an operator, a command line and a recording go on while it appears", { width = 90 }, function(nvim)
  local pause = { wait_ms = 200 }
  local function ask(id)
    return { permission = run(id, "make " .. id), ["then"] = { ["*"] = {} } }
  end
  local agent = T.agent({ turns = { { pause, ask("t1"), pause, ask("t2"), pause, ask("t3") } } })
  nvim:use(agent)
  nvim:api("nvim_buf_set_lines", 0, 0, -1, false, { "one two three four" })
  nvim:prompt("go", { open = false })
  nvim:keys("0d")
  nvim:wait_screen("make t1")
  T.eq(nvim:api("nvim_get_mode").mode, "no")
  nvim:keys("w")
  T.eq(nvim:api("nvim_get_current_line"), "two three four")
  nvim:lua("require('cursor_agent').accept()")
  nvim:keys(":let g:typed = 'aA")
  nvim:wait_screen("make t2")
  nvim:keys("rR1'<CR>")
  T.eq(nvim:lua("return vim.g.typed"), "aArR1")
  nvim:lua("require('cursor_agent').accept()")
  nvim:keys("qqv")
  nvim:wait_screen("make t3")
  T.eq(nvim:api("nvim_get_mode").mode, "v")
  nvim:keys("ed0xq@q")
  T.eq(nvim:api("nvim_get_current_line"), "four")
  T.eq(nvim:lua("return vim.fn.getreg('q')"), "ved0x")
  nvim:lua("require('cursor_agent').accept()")
  nvim:wait_outcomes(agent, { "allow-once", "allow-once", "allow-once" })
end)

T.case("a key in the first moments does nothing; one held down decides one thing", { width = 90 }, function(nvim)
  local agent = T.agent({ turns = { at_once({ run("t1", "first"), run("t2", "second") }) } })
  nvim:use(agent)
  move_clock(nvim, 0)
  nvim:lua([[vim.keymap.set("n", "Y", "<Plug>(cursor-agent-accept)")]])
  nvim:prompt("go", { open = false })
  nvim:wait_screen("1 of 2")
  nvim:keys("Y")
  nvim:keys(":CursorAgent decisions<CR>")
  nvim:wait(function()
    return nvim:in_card()
  end, "the card")
  nvim:keys("a")
  T.eq(agent:outcomes(), {}, "too early")
  move_clock(nvim)
  nvim:keys("a")
  nvim:wait_screen("$ second")
  -- As a keyboard repeats it.
  for _ = 1, 30 do
    nvim:keys("a")
    move_clock(nvim, 50)
  end
  T.eq(agent:outcomes(), { "allow-once" })
  move_clock(nvim)
  nvim:keys("r")
  nvim:wait_outcomes(agent, { "allow-once", "reject-once" })
end)

T.case("one held down decides one thing, however late it repeats", { width = 90 }, function(nvim)
  local agent = T.agent({ turns = { at_once({ run("t1", "first"), run("t2", "second"), run("t3", "third") }) } })
  nvim:use(agent)
  nvim:prompt("go", { open = false })
  nvim:wait_screen("1 of 3")
  nvim:keys(":CursorAgent decisions<CR>")
  nvim:wait(function()
    return nvim:in_card()
  end, "the card")
  nvim:lua("local held = require('cursor_agent.decide.held') held.NEXT_REPEAT_MS, held.FIRST_REPEAT_MS = 60000, 60000")
  nvim:wait_card()
  nvim:keys("a")
  nvim:wait_screen("$ second")
  nvim:wait_card()
  for _ = 1, 12 do
    nvim:keys("a")
    vim.wait(40)
  end
  nvim:keys("r")
  nvim:wait_outcomes(agent, { "allow-once", "reject-once" })
  nvim:wait_screen("$ third")
  nvim:lua("require('cursor_agent.decide.held').NEXT_REPEAT_MS = 20")
  nvim:wait_card()
  nvim:keys("r")
  nvim:wait_outcomes(agent, { "allow-once", "reject-once", "reject-once" })
end)

---An agent that asks for one thing in each turn.
---@param nvim harness.Child
---@param turns integer
---@return harness.Agent
local function asks_once(nvim, turns)
  local scenario = { turns = {} }
  for i = 1, turns do
    scenario.turns[i] = one_by_one({ run("t" .. i, "make") })
  end
  local agent = T.agent(scenario)
  nvim:use(agent)
  nvim:cmd("edit code.txt")
  return agent
end

---Answers what the next turn asks for by `a`; it is the last that waits.
---@param nvim harness.Child
---@param agent harness.Agent
local function answer_the_last(nvim, agent)
  nvim:cmd("edit!")
  nvim:cmd("normal! 0")
  local before = #agent:outcomes()
  nvim:prompt("go", { open = false })
  nvim:wait_screen("$ make")
  nvim:keys(":CursorAgent decisions<CR>")
  nvim:wait(function()
    return nvim:in_card()
  end, "the card")
  nvim:wait_card()
  nvim:keys("a")
  nvim:wait(function()
    return #agent:outcomes() > before
  end, "the answer")
  nvim:wait_screen_without("$ make")
end

---@param nvim harness.Child
---@return string
local function code(nvim)
  return table.concat(nvim:api("nvim_buf_get_lines", 0, 0, -1, false), "\n")
end

local CODE = { width = 90, files = { ["code.txt"] = "code\n" } }

---@param nvim harness.Child
---@param times table<string, integer>
local function set_times(nvim, times)
  nvim:lua("for name, ms in pairs(...) do require('cursor_agent.decide.held')[name] = ms end", times)
end

T.case("a key held down over the last decision does not reach the code", CODE, function(nvim)
  local agent = asks_once(nvim, 2)
  -- At once, and after the delay that a keyboard has.
  for _, bounce_ms in ipairs({ 60000, 0 }) do
    -- The key that answers is not taken for a repeat of the one before; what comes after it is, however slow all this is.
    set_times(nvim, { BOUNCE_MS = bounce_ms, FIRST_REPEAT_MS = 60000, NEXT_REPEAT_MS = 0 })
    answer_the_last(nvim, agent)
    set_times(nvim, { NEXT_REPEAT_MS = 60000 })
    for _ = 1, 12 do
      nvim:keys("a")
      vim.wait(40)
    end
    nvim:keys("x")
    nvim:wait(function()
      return code(nvim) ~= "code"
    end, "another key to work")
    T.eq(code(nvim), "ode", "it is still Normal mode")
  end
end)

T.case("what is typed after the last decision is not lost", CODE, function(nvim)
  local agent = asks_once(nvim, 3)
  nvim:lua([[vim.keymap.set("n", "a", "a", { buffer = 0, desc = "mine" })]])
  answer_the_last(nvim, agent)
  nvim:keys("ix<Esc>")
  nvim:wait(function()
    return code(nvim) == "xcode"
  end, "another key")
  set_times(nvim, { BOUNCE_MS = 0, FIRST_REPEAT_MS = 5000 })
  answer_the_last(nvim, agent)
  nvim:keys("abc<Esc>")
  nvim:wait(function()
    return code(nvim) == "cbcode"
  end, "the same key, and what follows it")
  answer_the_last(nvim, agent)
  nvim:keys("2a")
  nvim:wait("vim.api.nvim_get_mode().mode == 'i'", "the same key alone")
  nvim:keys("y<Esc>")
  nvim:wait(function()
    return code(nvim) == "cyyode"
  end, "its count")
  T.eq(nvim:lua("return vim.fn.maparg('a', 'n', false, true).desc .. vim.fn.maparg('a', 'i')"), "mine")
end)

T.case("macros, mappings, registers and recordings stay whole after the last decision", CODE, function(nvim)
  local agent = asks_once(nvim, 4)
  set_times(nvim, { BOUNCE_MS = 5000, FIRST_REPEAT_MS = 10000 })
  ---@param keys string
  ---@param expected string
  local function check(keys, expected)
    answer_the_last(nvim, agent)
    nvim:keys(keys)
    nvim:wait(function()
      return code(nvim) == expected
    end, ("%s to make it %s"):format(keys, expected))
  end
  nvim:lua("vim.fn.setreg('q', 'iaab\27') vim.keymap.set('n', 'X', 'aaa<Esc>', { remap = true })")
  check("@q", "aabcode")
  check("X", "caaode")
  check("qwab<Esc>q", "cbode")
  T.eq(nvim:lua("return vim.fn.getreg('w')"), "ab\27")
  set_times(nvim, { BOUNCE_MS = 0 })
  -- A key of the user's own, which takes a register.
  nvim:lua("vim.keymap.set('n', 'a', 'x', { buffer = 0 })")
  check('"za', "ode")
  T.eq(nvim:lua("return vim.fn.getreg('z')"), "c")
end)

T.case("a buffer unloaded after the last decision has its keys", CODE, function(nvim)
  local agent = asks_once(nvim, 1)
  set_times(nvim, { FIRST_REPEAT_MS = 200 })
  answer_the_last(nvim, agent)
  nvim:cmd("setlocal bufhidden=unload | enew")
  nvim:lua("vim.wait(400)")
  nvim:cmd("edit code.txt")
  T.eq(nvim:lua("return vim.fn.maparg('a', 'n')"), "")
end)

T.case("an autocommand that fails where an answer leads back to does not keep the card", { width = 90 }, function(nvim)
  local agent = T.agent({ turns = { one_by_one({ run("a", "ls"), run("b", "make") }) } })
  nvim:use(agent)
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  nvim:lua("require('cursor_agent.decide').NEXT_MS = 0")
  nvim:keys("go<C-s><Esc>")
  for _, command in ipairs({ "$ ls", "$ make" }) do
    nvim:wait_screen(command)
    nvim:cmd("CursorAgent decisions")
    nvim:wait("vim.bo.filetype == 'cursoragent-decision'", "the card")
    nvim:wait_card()
    nvim:lua("vim.api.nvim_create_autocmd('WinEnter', { once = true, callback = function() error('failed') end })")
    nvim:keys("a")
    nvim:wait("vim.bo.filetype == 'cursoragent-prompt'", "the prompt")
  end
  nvim:wait_outcomes(agent, { "allow-once", "allow-once" })
  nvim:wait_turns(1)
  nvim:wait_screen_without("asks to run")
end)

T.case("what was typed ahead is not taken for an answer", { width = 90 }, function(nvim)
  local agent = T.agent({ turns = { one_by_one({ run("t1", "make") }) } })
  nvim:use(agent)
  nvim:prompt("go", { open = false })
  nvim:wait_screen("$ make")
  nvim:wait_card()
  nvim:keys(":CursorAgent decisions<CR>aAr")
  nvim:wait(function()
    return nvim:in_card()
  end, "the card")
  T.eq(nvim:status().state, "waiting")
  T.eq(agent:outcomes(), {})
  nvim:wait_card()
  nvim:keys("a")
  nvim:wait_outcomes(agent, { "allow-once" })
end)

T.case("the user's own keys answer from anywhere, in Insert mode too", { width = 90 }, function(nvim)
  local agent = T.agent({ turns = { one_by_one({ run("t1", "first"), run("t2", "second"), run("t3", "third") }) } })
  nvim:use(agent)
  nvim:lua([[
    vim.g.mapleader = " "
    vim.keymap.set("n", "<leader>y", "<Plug>(cursor-agent-accept)")
    vim.keymap.set("n", "<leader>n", "<Plug>(cursor-agent-reject)")
    vim.keymap.set("i", "<C-y>", "<Plug>(cursor-agent-accept)")
  ]])
  nvim:prompt("go", { open = false })
  nvim:wait_screen("$ first")
  nvim:wait_screen("<leader>y allow · <leader>n reject · :CursorAgent decisions")
  nvim:wait_card()
  nvim:keys(" y")
  nvim:wait_screen("$ second")
  nvim:wait_card()
  nvim:keys("iab<C-y>c")
  nvim:wait_screen("$ third")
  nvim:wait_card()
  nvim:keys("<Esc> n")
  nvim:wait_outcomes(agent, { "allow-once", "allow-once", "reject-once" })
  nvim:wait_turns(1)
  T.eq(nvim:api("nvim_buf_get_lines", 0, 0, -1, false), { "abc" })
end)

T.case("one put off waits, is not decided unseen, and comes back", { width = 90 }, function(nvim)
  local agent = T.agent({ turns = { at_once({ run("t1", "first"), run("t2", "second") }) } })
  nvim:use(agent)
  nvim:lua([[vim.keymap.set("n", "Y", "<Plug>(cursor-agent-accept)")]])
  nvim:prompt("go", { open = false })
  nvim:wait_screen("1 of 2")
  nvim:cmd("CursorAgent decisions")
  nvim:wait_card()
  nvim:keys("q")
  nvim:wait_screen("$ second")
  T.ok(nvim:sees("2 of 2"))
  nvim:wait_card()
  nvim:keys("q")
  nvim:wait_screen_without("d details")
  T.eq(nvim:in_card(), false)
  T.eq(#nvim:lua("return require('cursor_agent').pending()"), 2)
  nvim:keys("Y")
  nvim:wait_screen("$ first")
  T.eq(agent:outcomes(), {}, "the first press only shows it")
  nvim:wait_card()
  nvim:keys("Y")
  nvim:wait(function()
    return #agent:outcomes() == 1
  end, "an answer")
  nvim:keys(":CursorAgent decisions<CR>")
  nvim:wait_screen("$ second")
  nvim:wait_card()
  nvim:keys("r")
  nvim:wait_outcomes(agent, { "allow-once", "reject-once" })
end)

T.case("Tab goes through what waits, and each is answered where it stands", { width = 90 }, function(nvim)
  local agent = T.agent({ turns = { at_once({ run("t1", "first"), run("t2", "second"), run("t3", "third") }) } })
  nvim:use(agent)
  nvim:prompt("go", { open = false })
  nvim:wait_screen("1 of 3")
  nvim:cmd("CursorAgent decisions")
  nvim:wait_card()
  nvim:keys("<Tab>")
  nvim:wait_screen("$ second")
  T.ok(nvim:sees("2 of 3"))
  T.ok(nvim:in_card())
  nvim:wait_card()
  nvim:keys("r")
  nvim:wait_screen("1 of 2")
  T.ok(nvim:sees("$ first"))
  nvim:wait_card()
  nvim:keys("<S-Tab>")
  nvim:wait_screen("$ third")
  nvim:wait_card()
  nvim:keys("A")
  nvim:wait_screen("$ first")
  nvim:wait_card()
  nvim:keys("a")
  nvim:wait_turns(1)
  T.eq(agent:outcomes(), { "reject-once", "allow-always", "allow-once" })
end)

local GREET = 'local M = {}\n\nfunction M.greet(name)\n  return "Hello, " .. name\nend\n\nreturn M\n'

---@param dir string
---@return table
local function edit(dir)
  return {
    toolCall = {
      toolCallId = "e1",
      title = "Greet the world",
      kind = "edit",
      content = {
        {
          type = "diff",
          path = dir .. "/src/greet.lua",
          oldText = GREET,
          newText = GREET:gsub("%.%. name", '.. (name or "world")'),
        },
        {
          type = "diff",
          path = dir .. "/src/main.rs",
          oldText = "fn main() {}\n",
          newText = "fn main() {\n    run(1);\n}\n",
        },
        { type = "diff", path = dir .. "/notes/new.md", newText = "# Notes\n\nAll new.\n" },
      },
    },
  }
end

T.case(
  "an edit shows all its files and their diffs, and the whole in a tab",
  { width = 100, height = 30 },
  function(nvim)
    local agent = T.agent({ turns = { one_by_one({ edit(nvim.work) }) } })
    nvim:use(agent)
    nvim:prompt("go")
    nvim:wait_screen("asks to edit 3 files")
    nvim:expect_screen("decide-edit-waiting")
    nvim:keys(":CursorAgent decisions<CR>")
    nvim:wait(function()
      return nvim:in_card()
    end, "the card")
    nvim:wait_card()
    nvim:expect_screen("decide-edit-entered")
    nvim:keys("G")
    nvim:wait_screen("All new.")
    nvim:keys("d")
    nvim:wait("vim.fn.tabpagenr('$') == 2", "a tab")
    nvim:expect_screen("decide-edit-details")
    nvim:keys("q")
    nvim:wait("vim.fn.tabpagenr('$') == 1", "the tab to close")
    T.ok(nvim:in_card(), "back in the card")
    nvim:wait_card()
    nvim:keys("d")
    nvim:wait("vim.fn.tabpagenr('$') == 2", "the tab again")
    nvim:wait_card()
    nvim:keys("a")
    nvim:wait_outcomes(agent, { "allow-once" })
    nvim:wait("vim.fn.tabpagenr('$') == 1", "the tab to close with its decision")
    nvim:wait_turns(1)
  end
)

T.case("a long edit says how much of it is out of sight, and has it once it is entered", function(nvim)
  local old, new = {}, {} ---@type string[], string[]
  for i = 1, 150 do
    old[i], new[i] = ("old %d"):format(i), ("new %d"):format(i)
  end
  local content = {
    {
      type = "diff",
      path = nvim.work .. "/list.txt",
      oldText = table.concat(old, "\n"),
      newText = table.concat(new, "\n"),
    },
  }
  local agent = T.agent({
    turns = { one_by_one({ { toolCall = { toolCallId = "e1", title = "Edit", kind = "edit", content = content } } }) },
  })
  nvim:use(agent)
  nvim:prompt("go")
  -- The name of the file, what is asked, an empty line and 300 of the diff; 4 of them are in sight.
  nvim:wait_screen("299 more lines")
  nvim:keys(":CursorAgent decisions<CR>")
  nvim:wait(function()
    return nvim:in_card()
  end, "the card")
  nvim:wait_screen("293 more lines")
  nvim:keys("G")
  nvim:wait_screen("new 150")
  nvim:wait_card()
  nvim:keys("r")
  nvim:wait_outcomes(agent, { "reject-once" })
end)

T.case(
  "closing the list of keys leads back to the card, and from there to the previous window",
  { width = 90 },
  function(nvim)
    local agent = T.agent({ turns = { one_by_one({ run("t1", "first") }) } })
    nvim:use(agent)
    nvim:cmd("edit code.lua")
    nvim:prompt("go")
    nvim:wait_screen("$ first")
    nvim:cmd("CursorAgent open")
    nvim:keys("<Esc>")
    local prompt = nvim:lua("return vim.bo.filetype")
    T.eq(prompt, "cursoragent-prompt")
    nvim:keys(":CursorAgent decisions<CR>")
    nvim:wait(function()
      return nvim:in_card()
    end, "the card")
    nvim:wait_card()
    nvim:keys("g?")
    nvim:wait("vim.bo.filetype == 'cursoragent-help'", "the keys")
    nvim:wait_screen("   1-9           Choose by number")
    nvim:keys("q")
    nvim:wait(function()
      return nvim:in_card()
    end, "the card again")
    nvim:wait_card()
    nvim:keys("r")
    nvim:wait_outcomes(agent, { "reject-once" })
    nvim:wait_turns(1)
    T.eq(nvim:lua("return vim.bo.filetype"), prompt, "back in the previous window")
  end
)

T.case("the keys of the card work in the details", { width = 90 }, function(nvim)
  local asked = run("t1", "first")
  asked.toolCall.rawInput = vim.empty_dict()
  local agent = T.agent({ turns = { one_by_one({ asked }) } })
  nvim:use(agent)
  nvim:prompt("go")
  nvim:wait_screen("$ first")
  nvim:cmd("CursorAgent open")
  nvim:keys("<Esc>")
  nvim:keys(":CursorAgent decisions<CR>")
  nvim:wait(function()
    return nvim:in_card()
  end, "the card")
  nvim:wait_card()
  nvim:keys("d")
  nvim:wait("vim.fn.tabpagenr('$') == 2", "a tab")
  T.eq(nvim:api("nvim_buf_get_lines", 0, -2, -1, false)[1]:match("^  in "), "  in ", "no arguments, nothing to show")
  nvim:wait_card()
  nvim:keys("d")
  T.eq(nvim:lua("return { vim.fn.tabpagenr('$'), vim.v.errmsg }"), { 2, "" }, "they are shown already")
  nvim:keys("gt")
  nvim:wait_screen("<M-y> allow")
  nvim:keys(":CursorAgent decisions<CR>")
  nvim:wait_card()
  nvim:keys("d")
  T.eq(nvim:lua("return { vim.fn.tabpagenr('$'), vim.fn.tabpagenr(), vim.v.errmsg }"), { 2, 2, "" })
  nvim:wait_card()
  nvim:keys("<Esc>")
  nvim:wait("vim.fn.tabpagenr('$') == 1", "the tab to close")
  T.eq(nvim:lua("return vim.bo.filetype"), "cursoragent-prompt", "back in the previous window")
  nvim:wait_screen("<M-y> allow")
  T.eq(agent:outcomes(), {})
end)

T.case("a write outside the workspace is marked as such", { width = 90 }, function(nvim)
  local agent = T.agent({
    turns = {
      one_by_one({
        {
          toolCall = {
            toolCallId = "e1",
            title = "Edit",
            kind = "edit",
            content = { { type = "diff", path = "/etc/hosts", oldText = "a\n", newText = "b\n" } },
          },
        },
      }),
    },
  })
  nvim:use(agent)
  nvim:prompt("go", { open = false })
  nvim:wait_screen("outside the workspace: /etc/hosts")
end)

T.case("rejecting with a message sends it as the next prompt, before what is queued", { width = 90 }, function(nvim)
  local agent = T.agent({
    turns = {
      { { permission = run("t1", "rm -rf build"), ["then"] = { ["reject-once"] = { { text = "Not then.\n" } } } } },
      { { text = "You said: ${prompt}" } },
      { { text = "And: ${prompt}" } },
    },
  })
  nvim:use(agent)
  nvim:prompt("go", { open = false })
  nvim:wait_screen("$ rm -rf build")
  nvim:prompt("queued before", { open = false })
  nvim:cmd("CursorAgent decisions")
  nvim:wait_card()
  nvim:keys("e")
  nvim:wait_screen("Reject with a reason: ")
  nvim:keys("<Esc>")
  nvim:wait_screen_without("Reject with a reason: ")
  T.eq(agent:outcomes(), {}, "no text, no answer")
  nvim:keys("e")
  nvim:wait_screen("Reject with a reason: ")
  nvim:keys("use make clean<CR>")
  nvim:wait_turns(3)
  T.eq(agent:outcomes(), { "reject-once" })
  T.eq(nvim:texts("user"), { "go", "use make clean", "queued before" })
  T.eq(nvim:texts("agent"), { "Not then.\n", "You said: use make clean", "And: queued before" })
end)

T.case("what the agent takes back disappears, the next one moves up", { width = 90 }, function(nvim)
  local agent = T.agent({
    turns = {
      {
        { permission = run("t1", "first"), wait = false, name = "p1" },
        { permission = run("t2", "second"), wait = false, name = "p2" },
        { expect = "session/set_mode" },
        { withdraw = "p1" },
        { join = "p1" },
        { join = "p2" },
      },
    },
  })
  nvim:use(agent)
  move_clock(nvim, 0)
  nvim:prompt("go", { open = false })
  nvim:wait_screen("1 of 2")
  nvim:wait_screen("$ first")
  nvim:cmd("CursorAgent decisions")
  move_clock(nvim)
  nvim:lua("require('cursor_agent').set_mode('plan')")
  nvim:wait_screen("$ second")
  -- Typed for the one that is gone.
  nvim:keys("a")
  nvim:wait_outcomes(agent, { "error" })
  move_clock(nvim)
  nvim:keys("a")
  nvim:wait_outcomes(agent, { "error", "allow-once" })
  T.eq(agent:answers(METHOD)[1].error.code, -32800)
end)

T.case("cancelling the turn answers what waits as cancelled", { width = 90 }, function(nvim)
  local agent = T.agent({ turns = { at_once({ run("t1", "first"), run("t2", "second") }) } })
  nvim:use(agent)
  nvim:prompt("go", { open = false })
  nvim:wait_screen("1 of 2")
  nvim:cmd("CursorAgent decisions")
  nvim:lua("require('cursor_agent').cancel()")
  T.eq(nvim:wait_turns(1).stop_reason, "cancelled")
  nvim:wait_screen_without("d details")
  T.eq(agent:outcomes(), { "cancelled", "cancelled" })
  T.eq(nvim:in_card(), false)
end)

T.case("an agent that dies leaves no decision behind", { width = 90 }, function(nvim)
  local agent = T.agent({
    turns = {
      { { permission = run("t1", "first"), wait = false, name = "p1" }, { expect = "session/set_mode" }, { exit = 3 } },
    },
  })
  nvim:use(agent)
  nvim:prompt("go", { open = false })
  nvim:wait_screen("$ first")
  nvim:lua("require('cursor_agent').set_mode('plan')")
  nvim:wait_state("failed")
  nvim:wait_screen_without("$ first")
  T.eq(nvim:lua("return require('cursor_agent').pending()"), {})
  nvim:keys(":CursorAgent accept<CR>")
  nvim:wait_screen("nothing needs a decision")
end)

T.case("quitting the editor answers as cancelled", { width = 90 }, function(nvim)
  local agent = T.agent({ turns = { one_by_one({ run("t1", "first") }) } })
  nvim:use(agent)
  nvim:prompt("go", { open = false })
  nvim:wait_screen("$ first")
  T.eq(nvim:quit("quit").code, 0, ":quit ends the last window as if there were no card")
  T.eq(agent:outcomes(), { "cancelled" })
end)

T.case("a card deleted by a buffer command has its keys when it comes back", { width = 90 }, function(nvim)
  local agent = T.agent({ turns = { one_by_one({ run("t1", "first") }) } })
  nvim:use(agent)
  nvim:prompt("go", { open = false })
  for _, command in ipairs({ "bdelete!", "bwipeout!" }) do
    nvim:wait("#require('cursor_agent').pending(1) == 1", "the decision")
    nvim:cmd("CursorAgent decisions")
    T.ok(nvim:in_card())
    nvim:cmd(command)
    nvim:wait_screen_without("$ first")
  end
  nvim:cmd("CursorAgent decisions")
  nvim:wait_card()
  nvim:keys("a")
  nvim:wait_outcomes(agent, { "allow-once" })
end)

T.case("closing the card by a window command puts it off", { width = 90 }, function(nvim)
  local agent = T.agent({ turns = { one_by_one({ run("t1", "first") }) } })
  nvim:use(agent)
  nvim:prompt("go", { open = false })
  nvim:wait_screen("$ first")
  nvim:keys("<C-w>w")
  T.eq(nvim:in_card(), false, "moving from window to window does not lead here")
  nvim:cmd("CursorAgent decisions")
  nvim:keys(":q<CR>")
  nvim:wait_screen_without("$ first")
  nvim:wait("#vim.api.nvim_list_wins() == 1", "nothing of the card to be left")
  T.eq(nvim:status().state, "waiting")
end)

T.case(
  "keeps off the cursor, and above the prompt when that has the focus",
  { width = 100, height = 26 },
  function(nvim)
    local agent = T.agent({ turns = { one_by_one({ run("t1", "make") }) } })
    nvim:use(agent)
    nvim:cmd("CursorAgent")
    nvim:wait_state("idle")
    nvim:keys("go<C-s>half a thought")
    nvim:wait_screen("$ make")
    nvim:wait_screen("half a thought")
    nvim:expect_screen("decide-above-prompt")
    nvim:keys("<Esc>:CursorAgent close<CR>")
    nvim:wait("#vim.api.nvim_list_wins() == 3", "the chat to close")
    nvim:lua("vim.api.nvim_buf_set_lines(0, 0, -1, false, vim.fn['repeat']({ ('word '):rep(18) }, 40))")
    nvim:keys("20G$")
    nvim:expect_screen("decide-off-the-cursor")
  end
)

T.case("follows to another tab page, and waits for the command-line window", { width = 90 }, function(nvim)
  local agent = T.agent({ turns = { one_by_one({ run("t1", "first"), run("t2", "second") }) } })
  nvim:use(agent)
  nvim:prompt("go", { open = false })
  nvim:wait_screen("$ first")
  nvim:cmd("tabnew")
  nvim:wait("#vim.api.nvim_tabpage_list_wins(0) == 3", "the card in the new tab")
  nvim:keys("q:")
  nvim:wait("vim.fn.getcmdwintype() == ':'", "the command-line window")
  nvim:lua("require('cursor_agent').accept()")
  nvim:wait(function()
    return #agent:outcomes() == 1
  end, "an answer")
  nvim:wait("#require('cursor_agent').pending(1) == 1", "the second one")
  nvim:keys(":q<CR>")
  nvim:wait_screen("$ second")
end)

T.case("is clear in a small screen and in plain characters", { width = 60, height = 14 }, function(nvim)
  local agent = T.agent({ turns = { at_once({ run("t1", ("long-command --with=value "):rep(6)), run("t2", "x") }) } })
  nvim:use(agent, { chat = { icons = "ascii" }, attention = { notify = false } })
  nvim:prompt("go", { open = false })
  nvim:wait_screen("1 of 2")
  nvim:expect_screen("decide-small-ascii")
end)
