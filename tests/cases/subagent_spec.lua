-- Subagents: each is one block of the chat, folded when it is done, and can be shown in a buffer of its own.

local T = require("harness")

local ASK = "session/request_permission"

---A step of the agent's script: a report about a subagent, in its parent's session.
---@param id string
---@param fields table
---@param parent? string
---@return table
local function tell(id, fields, parent)
  fields.sessionUpdate = fields.sessionUpdate or "subagent_update"
  fields.sessionId = id
  return { update = fields, session = parent }
end

---@param id string
---@param text string
---@return table
local function say(id, text)
  return {
    update = { sessionUpdate = "agent_message_chunk", content = { type = "text", text = text } },
    session = id,
  }
end

---@param id string
---@param call string
---@param fields table
---@return table
local function tool(id, call, fields)
  fields.sessionUpdate = fields.sessionUpdate or "tool_call"
  fields.toolCallId = call
  return { update = fields, session = id }
end

---A step that asks whether a command may run, in a session.
---@param id string
---@param command string
---@return table
local function ask(id, command)
  return {
    request = {
      method = ASK,
      params = {
        sessionId = id,
        toolCall = { toolCallId = "call-" .. command, title = ("`%s`"):format(command), kind = "execute" },
        options = {
          { optionId = "allow-once", name = "Allow once", kind = "allow_once" },
          { optionId = "reject-once", name = "Reject", kind = "reject_once" },
        },
      },
    },
    ["then"] = { ["*"] = {} },
  }
end

---A step that goes on when the user has written something else: what is on the screen by then stays there.
local PAUSE = { expect = "session/cancel" }

local running, idle = { state = "running" }, { state = "idle", stopReason = "end_turn" }

---@param nvim harness.Child
---@return string[]
local function chat_lines(nvim)
  return nvim:lua([[
    local chat = require("cursor_agent.chat.registry").current()
    return vim.api.nvim_buf_get_lines(chat.buf, 0, -1, false)
  ]])
end

---The first and the last line of the closed fold that a text of the chat is in; nil where it is in none.
---@param nvim harness.Child
---@param text string
---@return integer[]?
local function fold_of(nvim, text)
  local fold = nvim:lua(
    [[
      local text = ...
      local chat = require("cursor_agent.chat.registry").current()
      local win = require("cursor_agent.chat.layout").chat_window(chat)
      return vim.api.nvim_win_call(win, function()
        local line = vim.fn.search("\\V" .. vim.fn.escape(text, "\\"), "cnw")
        return { line, vim.fn.foldclosed(line), vim.fn.foldclosedend(line) }
      end)
    ]],
    text
  )
  assert(fold[1] > 0, "no such text: " .. text)
  return fold[2] ~= -1 and { fold[2], fold[3] } or nil
end

---Puts the cursor of the chat on the line that holds a text, and goes there.
---@param nvim harness.Child
---@param text string
local function go_to(nvim, text)
  nvim:lua(
    [[
      local chat = require("cursor_agent.chat.registry").current()
      vim.cmd.stopinsert()
      vim.api.nvim_set_current_win(require("cursor_agent.chat.layout").chat_window(chat))
      vim.fn.search("\\V" .. vim.fn.escape((...), "\\"), "cw")
    ]],
    text
  )
  -- Insert mode ends with the next key.
  nvim:keys("<Esc>")
end

---@param nvim harness.Child
---@param scenario table
---@return harness.Agent
local function start(nvim, scenario)
  local agent = T.agent(scenario)
  nvim:use(agent)
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  return agent
end

T.case("two at once and one inside another are blocks of their own", { width = 120, height = 34 }, function(nvim)
  start(nvim, {
    turns = {
      {
        { text = "I ask two of them.\n" },
        tell("a", { title = "Find the parser", description = "explore", state = running }),
        tell("b", { title = "Read the tests", state = running }),
        tell("deep", { title = "List files", state = running }, "a"),
        { text = "Mean" },
        say("a", "Looking "),
        say("b", "There are "),
        { text = "while I " },
        say("deep", "ls "),
        say("a", "around."),
        { text = "wait." },
        say("b", "**two**."),
        tool("a", "1", { title = "Grep parse", kind = "search", status = "completed" }),
        tool("b", "1", { title = "Read a_spec.lua", kind = "read", status = "in_progress" }),
        say("deep", "-l"),
        PAUSE,
        { stop = "cancelled" },
      },
    },
  })
  nvim:prompt("where is it?")
  nvim:wait_screen("wait.")
  nvim:wait_screen("ls -l")
  nvim:keys("<Esc>")
  nvim:cmd("redrawstatus!")
  nvim:expect_screen("subagent-running")
  T.eq(
    nvim:texts("agent"),
    { "I ask two of them.\n", "Meanwhile I wait.", "Looking around.", "There are **two**.", "ls -l" }
  )
end)

T.case("a block is folded when it is done, and its words are in there", { width = 100, height = 24 }, function(nvim)
  start(nvim, {
    turns = {
      {
        tell("a", { title = "Find the parser", state = running }),
        say("a", "Looking around."),
        tool("a", "1", { title = "Grep parse", kind = "search", status = "completed" }),
        tell("a", { state = idle }),
        tell("b", { title = "Deploy", state = running }),
        say("b", "I try."),
        tell("b", { state = { state = "idle", stopReason = "error", error = { code = 1, message = "no access" } } }),
        { text = "One of two." },
      },
    },
  })
  nvim:prompt("go")
  nvim:wait_turns(1)
  nvim:wait_screen("One of two.")
  T.eq(chat_lines(nvim), {
    "> go",
    "",
    "✓ Task   Find the parser",
    "  │ Looking around.",
    "  ✓ Search Grep parse",
    "✗ Task   Deploy",
    "  │ no access",
    "  │ I try.",
    "",
    "One of two.",
  })
  T.eq(fold_of(nvim, "Looking around."), { 3, 5 })
  T.eq(fold_of(nvim, "I try."), { 6, 8 })
  nvim:keys("<Esc>")
  nvim:cmd("redrawstatus!")
  nvim:expect_screen("subagent-done")
  -- Opened, it stays so.
  go_to(nvim, "Find the parser")
  nvim:keys("zo")
  T.eq(fold_of(nvim, "Looking around."), nil)
end)

T.case("a block that says more after it was folded takes it in", function(nvim)
  start(nvim, {
    turns = {
      {
        tell("a", { title = "First", state = running }),
        say("a", "one"),
        tell("a", { state = idle }),
        tell("b", { title = "Second", state = running }),
        say("b", "two"),
        tell("b", { state = idle }),
        { text = "Below." },
        { permission = { toolCall = { toolCallId = "p", title = "`ls`", kind = "execute" } } },
        -- Late words, and a task of its own.
        say("a", "\nmore\nand more"),
        tell("deep", { title = "Inner", state = running }, "a"),
        say("deep", "inside"),
        tell("deep", { state = idle }, "a"),
        { text = " Done." },
      },
    },
  })
  nvim:prompt("go")
  nvim:wait_screen("Below.")
  nvim:wait_screen("asks to run a command")
  T.eq(fold_of(nvim, "one"), { 3, 4 })
  T.eq(fold_of(nvim, "two"), { 5, 6 })
  nvim:cmd("CursorAgent accept")
  nvim:wait_turns(1)
  nvim:wait_screen("Done.")
  T.eq(vim.list_slice(chat_lines(nvim), 3, 11), {
    "✓ Task   First",
    "  │ one",
    "",
    "  │ more",
    "  │ and more",
    "  ✓ Task   Inner",
    "    │ inside",
    "✓ Task   Second",
    "  │ two",
  })
  T.eq(fold_of(nvim, "and more"), { 3, 9 })
  T.eq(fold_of(nvim, "two"), { 10, 11 })
  T.eq(fold_of(nvim, "Below."), nil)
  -- The one inside is folded by itself.
  go_to(nvim, "First")
  nvim:keys("zo")
  T.eq(fold_of(nvim, "one"), nil)
  T.eq(fold_of(nvim, "inside"), { 8, 9 })
end)

T.case("<CR> on a block shows it alone, while it goes on", { width = 120, height = 30 }, function(nvim)
  start(nvim, {
    turns = {
      {
        { text = "Somebody looks.\n" },
        tell("a", { title = "Find the parser", state = running }),
        tell("deep", { title = "List files", state = running }, "a"),
        say("a", "Looking "),
        { permission = { toolCall = { toolCallId = "p", title = "`ls`", kind = "execute" } } },
        say("a", "around.\n\n```lua\nlocal x = 1\n```\n"),
        say("deep", "src"),
        tool("a", "1", { title = "Read parser.lua", kind = "read", status = "completed" }),
        say("a", "It is there."),
        tell("deep", { state = idle }, "a"),
        tell("a", { state = idle }),
        { text = "Found." },
      },
    },
  })
  nvim:prompt("where?")
  nvim:wait_screen("asks to run a command")
  nvim:wait_screen("Looking")
  go_to(nvim, "Find the parser")
  nvim:keys("<CR>")
  local name = nvim:lua("return vim.api.nvim_buf_get_name(0)")
  T.contains(name, "/subagent/")
  local function view()
    return nvim:lua("return vim.api.nvim_buf_get_lines(vim.fn.bufnr((...)), 0, -1, false)", name)
  end
  T.eq(view(), { "… Task   List files", "", "Looking " })
  nvim:cmd("CursorAgent accept")
  nvim:wait_turns(1)
  nvim:wait_screen("Found.")
  T.eq(view(), {
    "✓ Task   List files",
    "  │ src",
    "",
    "Looking around.",
    "",
    "```lua",
    "local x = 1",
    "```",
    "",
    "✓ Read   parser.lua",
    "",
    "It is there.",
  })
  T.eq(nvim:lua("return vim.bo.modifiable"), false)
  nvim:wait_screen("Find the parser · done")
  nvim:cmd("redrawstatus!")
  nvim:expect_screen("subagent-view")
  -- Keys of the chat work in it, the one inside opens in the same way, and `q` leads back.
  nvim:keys("gg<CR>")
  T.eq(nvim:lua("return vim.api.nvim_buf_get_lines(0, 0, -1, false)"), { "src" })
  nvim:keys("q")
  T.eq(nvim:lua("return vim.api.nvim_buf_get_name(0)"), name)
  nvim:keys("q")
  T.eq(nvim:lua("return vim.bo.filetype .. ' ' .. vim.fn.bufnr((...))", name), "cursoragent -1")
  T.eq(nvim:messages(), "")
end)

T.case("a permission names the subagent, also when the turn is over", { width = 100, height = 30 }, function(nvim)
  local agent = start(nvim, {
    turns = {
      {
        tell("a", { title = "Deploy the site", state = running }),
        { text = "It works in the background." },
        { stop = "end_turn" },
        ask("a", "make deploy"),
        say("a", "Deployed."),
        tell("a", { state = idle }),
        { note = "over" },
      },
      { { text = "Next." } },
    },
  })
  nvim:prompt("deploy")
  nvim:wait_turns(1)
  local decision = nvim:wait(function()
    return nvim:lua("return require('cursor_agent').pending()[1]")
  end, "the permission")
  T.eq(decision.subagent, "Deploy the site")
  T.eq(nvim:status().state, "waiting")
  nvim:wait_screen('subagent "Deploy the site"')
  nvim:wait_screen("needs approval")
  nvim:keys("<Esc>")
  nvim:cmd("redrawstatus!")
  nvim:expect_screen("subagent-permission")
  nvim:keys(":CursorAgent decisions<CR>")
  nvim:wait(function()
    return nvim:lua("return vim.bo.filetype") == "cursoragent-decision"
  end, "the card to be entered")
  -- Keys typed before are not meant for it.
  nvim:wait_card()
  nvim:keys("a")
  nvim:wait(function()
    return #agent:notes("over") > 0
  end, "the answer to reach it")
  T.eq(agent:answers(ASK)[1].result.outcome, { outcome = "selected", optionId = "allow-once" })
  nvim:wait_screen_without("needs approval")
  nvim:wait(function()
    return table.concat(nvim:texts("agent")):find("Deployed.", 1, true)
      and vim.deep_equal(fold_of(nvim, "Deployed."), { 3, 5 })
  end, "the block to be folded")
  T.eq(nvim:status().state, "idle")
  nvim:prompt("and?")
  nvim:wait_turns(2)
end)

T.case("when the agent dies, its subagents have ended", function(nvim)
  start(nvim, {
    turns = {
      { tell("a", { title = "Long work", state = running }), say("a", "I work."), { stop = "end_turn" }, PAUSE },
    },
  })
  nvim:prompt("go")
  nvim:wait_turns(1)
  nvim:wait_screen("I work.")
  nvim:cmd("CursorAgent stop")
  nvim:wait_state("stopped")
  nvim:wait_screen("ended")
  T.eq(nvim:lua("return require('cursor_agent').transcript()[2].tool.task.state"), "ended")
end)

T.case("an export has each subagent below its task", function(nvim)
  start(nvim, {
    turns = {
      {
        tell("a", { title = "First", state = running }),
        tell("b", { title = "Second", state = running }),
        say("a", "one"),
        say("b", "two"),
        say("a", " and more"),
      },
    },
  })
  nvim:prompt("go")
  nvim:wait_turns(1)
  nvim:cmd("CursorAgent export")
  local text = table.concat(nvim:lua("return vim.api.nvim_buf_get_lines(0, 0, -1, false)"), "\n")
  local first, second = text:find("First", 1, true), text:find("Second", 1, true)
  T.eq({ first < text:find("one and more", 1, true), text:find("one and more", 1, true) < second }, { true, true })
  T.eq(second < text:find("two", 1, true), true)
end)

T.case("today's Cursor: two helpers, one of them in the background", { width = 110, height = 36 }, function(nvim)
  local scenario =
    vim.json.decode(table.concat(vim.fn.readfile(T.root .. "/crates/tools/scenarios/cursor-2026-10.json"), "\n"))
  local agent = T.agent({ profile = "cursor-2026-10", turns = { scenario.turns[#scenario.turns] } })
  agent.options.env = { CURSOR_API_KEY = "a-key", CURSOR_CONFIG_DIR = nvim.dir .. "/cursor" }
  nvim:use(agent, { agents = { test = { cursor = true } } })
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  nvim:prompt("where are the notes?")
  nvim:wait_turns(1)
  nvim:wait_screen('subagent "Check the spelling"')
  nvim:wait_screen("ctx 24%")
  T.eq(agent:answers("cursor/task")[1].result.outcome.outcome, "completed")
  local tasks = nvim:lua([[
    local tasks = {}
    for _, entry in ipairs(require("cursor_agent").transcript()) do
      local task = entry.tool and entry.tool.task
      if task then
        table.insert(tasks, ("%s %s %s"):format(task.description, entry.tool.status, task.waiting or 0))
      end
    end
    return tasks
  ]])
  T.eq(tasks, { "Find the notes completed 0", "Check the spelling in_progress 1" })
  local words = table.concat(nvim:texts("agent"), "|")
  T.contains(words, "Looking for notes.md.")
  T.contains(words, "I need a word list.")
  nvim:cmd("CursorAgent accept")
  nvim:wait_screen_without("needs approval")
  nvim:wait(function()
    return agent:answers(ASK)[1] ~= nil
  end, "the answer")
  T.eq(agent:answers(ASK)[1].result.outcome.optionId, "allow-once")
  nvim:wait(function()
    return fold_of(nvim, "I need a word list.")
  end, "the block to be folded")
end)
