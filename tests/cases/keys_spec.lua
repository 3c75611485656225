-- Keys: what people do all day is one chord, wherever they are, and a key means the same in every window.

local T = require("harness")

---@param command string
---@param opts? table more of the step
---@return table step
local function asks(command, opts)
  return vim.tbl_extend("force", {
    permission = {
      toolCall = { toolCallId = command, title = ("`%s`"):format(command), kind = "execute", status = "pending" },
    },
    ["then"] = { ["*"] = { { text = command .. " answered.\n" } } },
  }, opts or {})
end

---Asks for all of them at once.
---@param commands string[]
---@return table[]
local function at_once(commands)
  local steps = {}
  for _, command in ipairs(commands) do
    steps[#steps + 1] = { permission = asks(command).permission, wait = false, name = command }
  end
  for _, command in ipairs(commands) do
    steps[#steps + 1] = { join = command }
  end
  return steps
end

---@param nvim harness.Child
---@param lhs string
---@param mode string?
---@return string desc of what the key does
local function meaning(nvim, lhs, mode)
  return nvim:lua("return vim.fn.maparg(select(1, ...), select(2, ...), false, true).desc or ''", lhs, mode or "n")
end

local FILES = { files = { ["a.lua"] = "return 1\n" }, width = 100, height = 28 }

T.case("one chord allows and another rejects, in code, chat and prompt, Insert mode included", FILES, function(nvim)
  local agent = T.agent({ turns = { { asks("one"), asks("two"), asks("three"), asks("four") } } })
  nvim:use(agent)
  nvim:cmd("edit a.lua")
  nvim:prompt("go")
  nvim:wait_screen("$ one")
  nvim:wait_card()
  nvim:keys("<M-y>")
  nvim:wait_screen("$ two")
  T.eq(nvim:lua("return vim.fn.bufname()"), "a.lua", "the code is not left")
  nvim:keys("ix")
  nvim:wait("vim.fn.mode() == 'i'", "Insert mode")
  nvim:wait_card()
  nvim:keys("<M-n>")
  nvim:wait_screen("$ three")
  nvim:keys("y<Esc>")
  nvim:wait("vim.api.nvim_get_current_line() == 'xyreturn 1'", "typing to go on")
  nvim:cmd("CursorAgent open")
  nvim:keys("<Esc>ihello")
  nvim:wait_card()
  nvim:keys("<M-y>")
  nvim:wait_screen("$ four")
  T.eq(nvim:lua("return vim.bo.filetype"), "cursoragent-prompt")
  nvim:keys("<Esc><C-w>k")
  nvim:wait("vim.bo.filetype == 'cursoragent'", "the chat")
  nvim:wait_card()
  nvim:keys("<M-n>")
  nvim:wait_turns(1)
  nvim:wait_outcomes(agent, { "allow-once", "reject-once", "allow-once", "reject-once" })
end)

T.case("a chord pressed as the card appears decides nothing, nor does one held down", FILES, function(nvim)
  local agent = T.agent({ turns = { at_once({ "one", "two", "three" }) } })
  nvim:use(agent)
  nvim:lua("require('cursor_agent.decide').SETTLE_MS = 5000")
  nvim:prompt("go", { open = false })
  nvim:wait_screen("$ one")
  nvim:keys("<M-y><M-y><M-y>")
  nvim:lua("vim.wait(50)")
  T.eq(#agent:outcomes(), 0)
  nvim:lua("require('cursor_agent.decide').SETTLE_MS = 300")
  -- Another press while it is too early moves the end of the delay, to 300 ms from now.
  nvim:keys("<M-y>")
  nvim:wait_card()
  nvim:keys("<M-y>")
  nvim:wait_outcomes(agent, { "allow-once" })
  -- A keyboard repeats the key that is down.
  for _ = 1, 20 do
    nvim:keys("<M-y>")
    vim.wait(30)
  end
  T.eq(#agent:outcomes(), 1, "one key, one answer")
  nvim:wait_screen("$ two")
end)

T.case("the delay is an option", FILES, function(nvim)
  local agent = T.agent({ turns = { at_once({ "one", "two" }) } })
  nvim:use(agent, { decisions = { delay_ms = 60000 } })
  nvim:prompt("go", { open = false })
  nvim:wait_screen("$ one")
  nvim:keys("<M-y>")
  nvim:lua("vim.wait(400)")
  T.eq(#agent:outcomes(), 0, "too early")
  nvim:lua("require('cursor_agent').setup({ decisions = { delay_ms = 0 } })")
  nvim:cmd("CursorAgent decisions")
  nvim:wait_screen("$ one")
  nvim:lua("require('cursor_agent').answer(require('cursor_agent').pending()[1].id, { option = 'allow-once' })")
  nvim:wait_screen("$ two")
  nvim:keys("<M-n>")
  nvim:wait_outcomes(agent, { "allow-once", "reject-once" })
end)

T.case("the user's own mappings of the chords come back, in every buffer and mode", FILES, function(nvim)
  local agent = T.agent({ turns = { { asks("one") }, { asks("two") } } })
  nvim:use(agent)
  nvim:cmd("edit a.lua")
  nvim:lua([[
    vim.keymap.set("n", "<M-y>", "<Cmd>let g:hit = 'global'<CR>", { desc = "global" })
    vim.keymap.set("n", "<M-n>", function() vim.g.hit = "own" end, { buffer = 0, desc = "own" })
    vim.keymap.set("i", "<M-n>", "typed", { buffer = 0, desc = "insert" })
    vim.keymap.set("x", "<M-y>", "y", { buffer = 0, desc = "visual" })
  ]])
  nvim:prompt("go", { open = false })
  nvim:wait_screen("$ one")
  T.contains(meaning(nvim, "<M-y>"), "Allow once")
  T.contains(meaning(nvim, "<M-n>"), "Reject")
  T.contains(meaning(nvim, "<M-n>", "i"), "Reject")
  nvim:cmd("new")
  T.contains(meaning(nvim, "<M-y>"), "Allow once")
  T.contains(meaning(nvim, "<M-n>"), "Reject")
  nvim:cmd("close")
  nvim:wait_card()
  nvim:keys("<M-y>")
  nvim:wait_turns(1)
  nvim:wait(function()
    return meaning(nvim, "<M-y>") == "global"
  end, "the mapping of the user's own", 3000)
  T.eq(meaning(nvim, "<M-n>"), "own")
  T.eq(meaning(nvim, "<M-n>", "i"), "insert")
  T.eq(meaning(nvim, "<M-y>", "x"), "visual")
  nvim:keys("<M-n>")
  nvim:wait("vim.g.hit == 'own'", "the user's own key")
  nvim:cmd("new")
  T.eq(meaning(nvim, "<M-n>"), "", "nothing is left elsewhere")
  -- Mapped while a decision is on the screen: it is the user's, and stays.
  nvim:prompt("again", { open = false })
  nvim:wait_screen("$ two")
  nvim:lua("vim.keymap.set('n', '<M-n>', 'x', { buffer = 0, desc = 'mapped since' })")
  nvim:lua("require('cursor_agent').accept()")
  nvim:wait_turns(2)
  nvim:wait_screen_without("$ two")
  T.eq(meaning(nvim, "<M-n>"), "mapped since")
end)

T.case("the chords are configurable, and a decision put off gives them back", FILES, function(nvim)
  local agent = T.agent({ turns = { { asks("one") } } })
  nvim:use(agent, { keymaps = { waiting = { accept = { "<F9>", "<C-y>" }, reject = false } } })
  nvim:prompt("go", { open = false })
  nvim:wait_screen("$ one")
  nvim:wait_screen("<F9> allow")
  T.eq(meaning(nvim, "<M-y>"), "")
  T.eq(meaning(nvim, "<M-n>"), "")
  T.contains(meaning(nvim, "<C-y>"), "Allow once")
  nvim:keys(":CursorAgent decisions<CR>")
  nvim:wait(function()
    return nvim:in_card()
  end, "the card")
  nvim:wait_card()
  nvim:keys("q")
  nvim:wait_screen_without("$ one")
  nvim:wait(function()
    return meaning(nvim, "<F9>") == ""
  end, "the keys to be the user's again")
  nvim:keys(":CursorAgent decisions<CR>")
  nvim:wait_screen("$ one")
  nvim:wait_card()
  nvim:keys("<F9>")
  nvim:wait_outcomes(agent, { "allow-once" })
end)

T.case("after an answer in the card the next one is focused, at once or a moment later", FILES, function(nvim)
  local turn = at_once({ "one", "two" })
  turn[#turn + 1] = asks("three")
  local agent = T.agent({ turns = { turn } })
  nvim:use(agent)
  nvim:cmd("edit a.lua")
  nvim:lua("require('cursor_agent.decide').NEXT_MS = 8000")
  nvim:prompt("go", { open = false })
  nvim:wait_screen("$ one")
  nvim:keys(":CursorAgent decisions<CR>")
  for i, command in ipairs({ "one", "two", "three" }) do
    nvim:wait_screen("$ " .. command)
    nvim:wait(function()
      return nvim:in_card()
    end, "the card of " .. command)
    nvim:wait_card()
    -- The same key twice could be one that is held down.
    nvim:keys(i == 2 and "r" or "a")
  end
  nvim:wait_turns(1)
  T.eq(agent:outcomes(), { "allow-once", "reject-once", "allow-once" })
  T.eq(nvim:lua("return vim.fn.bufname()"), "a.lua")
end)

T.case("a decision that comes after the user has typed again is not entered", FILES, function(nvim)
  local agent = T.agent({ turns = { { asks("one"), { wait_ms = 2000 }, asks("two") } } })
  nvim:use(agent)
  nvim:cmd("edit a.lua")
  nvim:lua("require('cursor_agent.decide').NEXT_MS = 8000")
  nvim:prompt("go", { open = false })
  nvim:wait_screen("$ one")
  nvim:keys(":CursorAgent decisions<CR>")
  nvim:wait(function()
    return nvim:in_card()
  end, "the card")
  nvim:wait_card()
  nvim:keys("a")
  nvim:wait_outcomes(agent, { "allow-once" })
  nvim:wait_screen_without("$ one")
  nvim:keys("ox")
  nvim:wait("vim.fn.mode() == 'i'", "Insert mode")
  nvim:wait_screen("$ two")
  nvim:keys("a")
  nvim:wait("vim.api.nvim_get_current_line() == 'xa'", "what is typed to reach the code")
  T.eq(#agent:outcomes(), 1)
end)

T.case("a prefix turns on keys that work everywhere, each with a description", FILES, function(nvim)
  local agent =
    T.agent({ turns = { { asks("one") }, { asks("two") }, { { text = "On it." }, { wait_cancel = true } } } })
  nvim:lua("vim.g.mapleader = ' '")
  nvim:cmd("edit a.lua")
  nvim:lua("require('cursor_agent').setup({})")
  T.eq(meaning(nvim, " aa"), "", "nothing is mapped unless asked for")
  nvim:use(agent, { keymaps = { global = "<Leader>a" } })
  for _, key in ipairs({ "a", "p", "y", "n", "s", "N", "c", "r", "t", "d" }) do
    T.contains(meaning(nvim, " a" .. key), "cursor-agent: ", key)
  end
  nvim:keys(" aa")
  nvim:wait("vim.bo.filetype == 'cursoragent-prompt'", "the prompt")
  nvim:keys("<Esc> aa")
  nvim:wait("vim.fn.bufname() == 'a.lua'", "the code")
  nvim:keys("V ap")
  nvim:wait_screen("a.lua:1-1 ×")
  nvim:keys("look<C-s><Esc>")
  nvim:wait_screen("$ one")
  nvim:wait_card()
  nvim:keys(" ay")
  nvim:wait_turns(1)
  nvim:wait_state("idle")
  nvim:keys("iagain<C-s><Esc>")
  nvim:wait_screen("$ two")
  nvim:wait_card()
  nvim:keys(" an")
  nvim:wait_turns(2)
  T.eq(agent:outcomes(), { "allow-once", "reject-once" })
  nvim:wait_state("idle")
  nvim:keys("iagain<C-s><Esc>")
  nvim:wait_screen("On it.")
  nvim:keys(" as")
  T.eq(nvim:wait_turns(3).stop_reason, "cancelled")
  nvim:keys("g?")
  nvim:wait("vim.bo.filetype == 'cursoragent-help'", "the list of keys")
  nvim:keys("G")
  nvim:wait_screen("<Leader>aa")
  nvim:wait_screen("<Leader>aN")
  -- Other options, other keys.
  nvim:lua("require('cursor_agent').setup({ keymaps = { global = '<F2>' } })")
  T.eq(meaning(nvim, " aa"), "")
  T.contains(meaning(nvim, "<F2>a"), "Open or close the chat")
  nvim:lua(
    "require('cursor_agent').setup({ keymaps = { global = { prefix = '<F2>', toggle = '<F3>', new = false } } })"
  )
  T.eq(meaning(nvim, "<F2>a"), "")
  T.eq(meaning(nvim, "<F2>N"), "")
  T.contains(meaning(nvim, "<F3>"), "Open or close the chat")
  T.contains(meaning(nvim, "<F2>y"), "Allow once")
  T.contains(
    nvim:lua("return select(2, require('cursor_agent.config').check({ keymaps = { global = { togle = 'x' } } }))[1]"),
    "unknown action `togle`"
  )
end)

T.case(
  "the prefix may be in vim.g.cursor_agent alone",
  { init = "vim.g.mapleader = ' '; vim.g.cursor_agent = { keymaps = { global = '<Leader>a' } }" },
  function(nvim)
    nvim:wait(function()
      return meaning(nvim, " aa"):find("Open or close the chat", 1, true)
    end, "the key")
  end
)

for mode, keys in pairs({ Insert = "", Normal = "<Esc>" }) do
  T.case(("<C-c> typed while Neovim is busy stops the turn, in %s mode"):format(mode), FILES, function(nvim)
    local agent = T.agent({ turns = { { { text = "Working." }, { expect = "session/cancel" } } } })
    nvim:use(agent)
    nvim:cmd("CursorAgent")
    nvim:wait_state("idle")
    nvim:keys("go<C-s>")
    nvim:wait_screen("Working.")
    nvim:keys("a draft" .. keys)
    nvim:wait("vim.api.nvim_get_current_line() == 'a draft'")
    -- Neovim takes it for an interrupt then, before it looks for a mapping.
    nvim:lua([[
      vim.keymap.set({ "n", "i" }, "<F9>", function()
        _G.busy = true
        _G.interrupted = select(2, vim.wait(5000, function() return false end))
      end)
    ]])
    nvim:keys("<F9>")
    nvim:wait("_G.busy")
    nvim:keys("<C-c>")
    nvim:wait_turns(1)
    T.eq(nvim:lua("return _G.interrupted"), -2)
    T.eq(nvim:lua("return vim.api.nvim_get_current_line()"), "a draft")
  end)
end

for mode, keys in pairs({ Insert = "", Normal = "<Esc>" }) do
  T.case(("<C-c> that comes without its mapping stops the turn, in %s mode"):format(mode), FILES, function(nvim)
    local agent = T.agent({ turns = { { { text = "Working." }, { expect = "session/cancel" } } } })
    nvim:use(agent)
    nvim:cmd("CursorAgent")
    nvim:wait_state("idle")
    nvim:keys("go<C-s>")
    nvim:wait_screen("Working.")
    nvim:keys("a draft" .. keys)
    nvim:wait("vim.api.nvim_get_current_line() == 'a draft'")
    -- It leaves the command line, Visual mode and a half-typed command, and nothing else.
    for _, other in ipairs({ "<Esc>:echo 1", "<Esc>v", "<Esc>d" }) do
      nvim:keys(other)
      nvim:lua("vim.api.nvim_feedkeys('\3', 'nt', false)")
      nvim:wait("vim.api.nvim_get_mode().mode == 'n'", "Normal mode after " .. other)
    end
    T.eq(nvim:status().state, "running")
    nvim:keys(mode == "Insert" and "A" or "")
    nvim:lua("vim.api.nvim_feedkeys('\3', 'nt', false)")
    T.eq(nvim:wait_turns(1).stop_reason, "cancelled")
    T.eq(nvim:lua("return vim.api.nvim_get_current_line()"), "a draft")
  end)
end

T.case("<C-c> in the prompt stops the turn in Insert mode too, and leaves it when nothing runs", FILES, function(nvim)
  local agent = T.agent({ turns = { { { text = "On it." }, { wait_cancel = true } } } })
  nvim:use(agent)
  nvim:cmd("CursorAgent")
  nvim:keys("go<C-s>")
  nvim:wait_screen("On it.")
  nvim:keys("next")
  nvim:wait_screen("-- INSERT --")
  nvim:keys("<C-c>")
  T.eq(nvim:wait_turns(1).stop_reason, "cancelled")
  nvim:wait_state("idle")
  T.eq(nvim:lua("return { vim.fn.mode(), vim.api.nvim_get_current_line() }"), { "i", "next" })
  nvim:keys("<C-c>")
  nvim:wait("vim.fn.mode() == 'n'", "Normal mode")
  nvim:wait_screen_without("-- INSERT --")
end)

T.case("one chord sends what is written, or what is queued, now", FILES, function(nvim)
  local wait = { { text = "On it.\n" }, { wait_cancel = true } }
  local agent = T.agent({ turns = { wait, wait, wait, { { text = "Done." } } } })
  nvim:use(agent)
  nvim:cmd("CursorAgent")
  nvim:keys("first<C-s>")
  nvim:wait_screen("On it.")
  nvim:keys("second<M-s>")
  T.eq(nvim:wait_turns(1).stop_reason, "cancelled")
  nvim:wait(function()
    return nvim:texts("user")[2] == "second"
  end, "the second prompt")
  nvim:wait_state("running")
  nvim:keys("third<C-s>")
  nvim:wait("require('cursor_agent').status().queued == 1", "a queue")
  nvim:wait("require('cursor_agent.chat.registry').current().status.queued == 1", "a queue on the screen")
  nvim:keys("<M-s>")
  T.eq(nvim:wait_turns(2).stop_reason, "cancelled")
  nvim:wait(function()
    return nvim:texts("user")[3] == "third"
  end, "the third prompt")
  T.eq(nvim:lua("return vim.fn.mode()"), "i")
end)

T.case("a key means the same in chat and prompt", FILES, function(nvim)
  local agent = T.agent({ turns = { { { text = "On it. https://example.org/a\n" }, { wait_cancel = true } } } })
  nvim:use(agent)
  nvim:lua("vim.ui.open = function(what) _G.opened = what end")
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  for _, key in ipairs({ "gx", "gX", "gQ", "gO", "gf", "gd", "gm", "gM", "gs", "ga", "gn", "gc", "gh", "gl", "g?" }) do
    nvim:keys("<Esc>")
    local in_prompt = meaning(nvim, key)
    nvim:keys("<C-w>k")
    nvim:wait("vim.bo.filetype == 'cursoragent'", "the chat")
    T.contains(in_prompt, "cursor-agent: ", key)
    T.eq(meaning(nvim, key), in_prompt, key)
    T.eq(meaning(nvim, "gq"), "", "formatting is Neovim's")
    nvim:keys("<C-w>j")
    nvim:wait("vim.bo.filetype == 'cursoragent-prompt'", "the prompt")
  end
  nvim:keys("isee https://example.org/b<Esc>gx")
  nvim:wait("_G.opened == 'https://example.org/b'", "the address")
  nvim:keys("ccgo<C-s>next<C-s><Esc>")
  nvim:wait_screen("example.org/a")
  nvim:wait("require('cursor_agent.chat.registry').current().status.queued == 1", "a queue")
  for _, from in ipairs({ "<C-w>j", "<C-w>k" }) do
    nvim:keys(from .. "gQ")
    nvim:wait("vim.bo.filetype == 'cursoragent-queue'", "the queue")
    nvim:keys("q")
    nvim:wait("vim.bo.filetype == 'cursoragent-prompt'", "the prompt")
  end
end)

T.case(
  "a key means the same in a card, a plan, the todos, the log, the changes and every other window",
  FILES,
  function(nvim)
    local plan = {
      method = "cursor/create_plan",
      params = { toolCallId = "c", name = "A plan", overview = "See https://example.org/plan", plan = "1. Look.\n" },
    }
    local call = { toolCallId = "one", title = "`curl https://example.org/card`", kind = "execute", status = "pending" }
    local agent = T.agent({
      turns = { { { permission = { toolCall = call } }, { request = plan, wait = true }, { wait_cancel = true } } },
    })
    nvim:use(agent)
    nvim:lua("vim.ui.open = function(what) _G.opened = what end")
    nvim:cmd("edit a.lua")
    nvim:cmd("CursorAgent")
    nvim:wait_state("idle")
    nvim:keys("go<C-s>")
    nvim:wait_screen("$ curl")
    nvim:keys("next<C-s><Esc>")
    nvim:wait("require('cursor_agent.chat.registry').current().status.queued == 1", "a queue")

    local expected = {} ---@type table<string, string>
    for _, key in ipairs({ "gx", "gQ", "gO", "gn", "gc", "gh", "gl", "g?" }) do
      expected[key] = meaning(nvim, key)
      T.contains(expected[key], "cursor-agent: ", key)
    end
    ---@param where string
    ---@param waits string an expression that is true there
    local function check(where, waits)
      nvim:wait(waits, where)
      for key, means in pairs(expected) do
        T.eq(meaning(nvim, key), means, key .. " in " .. where)
      end
      T.eq(meaning(nvim, "gq"), "", "formatting is Neovim's")
      nvim:keys("gQ")
      nvim:wait("vim.bo.filetype == 'cursoragent-queue'", "the queue, from " .. where)
      nvim:keys("q")
      nvim:wait("vim.bo.filetype ~= 'cursoragent-queue'", "the queue to be closed")
    end
    nvim:keys("gd")
    check("the card", "vim.bo.filetype == 'cursoragent-decision'")
    nvim:keys(":CursorAgent decisions<CR>")
    nvim:wait("vim.bo.filetype == 'cursoragent-decision'", "the card")
    nvim:wait_card()
    nvim:keys("gg0fhgx")
    nvim:wait("_G.opened == 'https://example.org/card'", "the address in the card")
    nvim:keys("a")
    nvim:wait_screen("proposes a plan")
    nvim:cmd("CursorAgent decisions")
    check("the plan", "vim.bo.filetype == 'markdown'")
    nvim:cmd("CursorAgent decisions")
    nvim:wait("vim.bo.filetype == 'markdown'", "the plan")
    nvim:keys("/https<CR>gx")
    nvim:wait("_G.opened == 'https://example.org/plan'", "the address in the plan")
    nvim:cmd("wincmd p")
    nvim:cmd("CursorAgent log")
    check("the log", "vim.b.cursor_agent_kind == 'log'")
    nvim:cmd("CursorAgent mcp")
    check("the MCP servers", "vim.b.cursor_agent_kind == 'mcp'")
    -- The others have theirs from the same table.
    for _, kind in ipairs({ "conflict", "plan-card", "todos", "reader", "subagent", "review", "cloud", "question" }) do
      nvim:cmd("enew")
      nvim:lua("require('cursor_agent.keys').map(0, ...)", kind)
      for key, means in pairs(expected) do
        local own = kind == "question" and key == "gx" and "cursor-agent: Open the page" or means
        T.eq(meaning(nvim, key), own, key .. " in " .. kind)
      end
    end
  end
)
