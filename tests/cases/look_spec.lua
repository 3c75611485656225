-- The states of a chat as a person sees them: at 80 and 120 columns, on a dark and on a light ground.

local T = require("harness")
local Cloud = require("harness.cloud")

local ANSWER = "## What I found\n\nThe **list rule** stops at `expr`:\n\n| rule | line |\n|---|---:|\n| list | 41 |\n| expression | 7 |\n\n"
  .. "- nothing eats the comma\n- [x] looked at the tests\n\n> see the grammar\n\n---\n\nDone.\n"

local QUESTION = {
  method = "cursor/ask_question",
  params = {
    toolCallId = "q",
    title = "Store",
    questions = {
      {
        id = "store",
        prompt = "Which store should sessions use?",
        options = { { id = "a", label = "SQLite" }, { id = "b", label = "JSON lines" } },
      },
    },
  },
}

local PLAN = {
  method = "cursor/create_plan",
  params = {
    toolCallId = "c",
    name = "Trailing commas",
    overview = "Let lists end with a comma.",
    plan = "1. Eat a comma after each item.\n2. Test it.\n",
    todos = { { id = "1", content = "Change the list rule", status = "pending" } },
  },
}

local CODE = 'local M = {}\n\nfunction M.list()\n  return { "a", "b" }\nend\n\nreturn M\n'
local NEW = CODE:gsub('"b" }', '"b", "c" }')

---@param id string
---@param fields table
---@param done? table
---@return table step, table step
local function tool(id, fields, done)
  local first = vim.tbl_extend("force", { sessionUpdate = "tool_call", toolCallId = id, status = "pending" }, fields)
  local last =
    vim.tbl_extend("force", { sessionUpdate = "tool_call_update", toolCallId = id, status = "completed" }, done or {})
  return { update = first }, { update = last }
end

---@param text string
---@return table[]
local function content(text)
  return { { type = "content", content = { type = "text", text = text } } }
end

local function diff()
  return { { type = "diff", path = "a.lua", oldText = CODE, newText = NEW } }
end

---@return table[] steps
local function tools()
  local read, was_read =
    tool("r", { title = "Read a.lua", kind = "read", locations = { { path = "a.lua", line = 1 } } })
  local edit, edited = tool("e", { title = "Edit a.lua", kind = "edit", locations = { { path = "a.lua" } } }, {
    content = diff(),
  })
  local output = "error: unused variable: `item`\n"
  for i = 1, 30 do
    output = output .. ("line %d of the output\n"):format(i)
  end
  local run, ran = tool("x", { title = "`cargo clippy --all-targets --workspace`", kind = "execute" }, {
    status = "failed",
    content = content(output),
    rawOutput = { exitCode = 101 },
  })
  return {
    { thought = "Commas are never eaten." },
    { wait_ms = 1300 },
    { text = "I'll look at the list rule first.\n" },
    read,
    was_read,
    edit,
    edited,
    run,
    { wait_ms = 1300 },
    ran,
    { text = "Clippy fails." },
  }
end

---@class look.State
---@field steps table[] of the first turn
---@field waits string
---@field act? fun(nvim: harness.Child)
---@field prompt? false
---@field agent? table more of the scenario
---@field prompting? boolean Neovim waits for a choice

---@type table<string, look.State>
local STATES = {
  answer = { steps = { { text = ANSWER } }, waits = "Done." },
  empty = {
    steps = {},
    prompt = false,
    waits = "all keys",
    act = function(nvim)
      nvim:wait_state("idle")
    end,
  },
  running = {
    steps = {
      { text = "I'll run the tests.\n" },
      (tool("t", { title = "`cargo test`", kind = "execute", status = "in_progress" })),
      { wait_cancel = true },
    },
    waits = "cargo test",
    act = function(nvim)
      nvim:cmd("CursorAgent open")
      nvim:keys("And the docs<C-s>")
      nvim:wait_screen("1 queued")
      nvim:keys("<Esc>")
    end,
  },
  tools = { steps = tools(), waits = "Clippy fails." },
  permission = {
    steps = {
      { text = "I will run the tests.\n" },
      { permission = { toolCall = { toolCallId = "t", title = "`cargo test parser`", kind = "execute" } } },
    },
    waits = "<M-y> allow",
  },
  ["permission-long"] = {
    steps = {
      {
        permission = {
          toolCall = {
            toolCallId = "t",
            title = "`rm -rf target/debug/incremental && cargo build --release --locked && cargo test --workspace`",
            kind = "execute",
          },
        },
      },
    },
    waits = "<M-y> allow",
  },
  question = { steps = { { request = QUESTION, wait = true } }, waits = "JSON lines" },
  plan = {
    steps = { { request = PLAN, wait = true } },
    waits = "proposes a plan",
    act = function(nvim)
      nvim:cmd("CursorAgent decisions")
      nvim:wait_card()
      nvim:keys("<CR>")
      nvim:wait("vim.bo.filetype == 'markdown'", "the plan")
    end,
  },
  todos = {
    steps = {
      {
        update = {
          sessionUpdate = "plan",
          entries = {
            { content = "Read the grammar", priority = "medium", status = "completed" },
            { content = "Change the list rule", priority = "medium", status = "in_progress" },
            { content = "Test it", priority = "medium", status = "pending" },
          },
        },
      },
      { text = "On it." },
    },
    waits = "On it.",
  },
  subagent = {
    steps = {
      { text = "A subagent looks at the tests.\n" },
      {
        request = {
          method = "cursor/task",
          params = {
            toolCallId = "s",
            description = "Look at the tests",
            prompt = "Which tests cover lists?",
            subagentType = { custom = "explore" },
            model = "composer-2.5",
            agentId = "sub-1",
            durationMs = 4200,
          },
        },
        wait = true,
      },
      { text = "It found three." },
    },
    waits = "It found three.",
  },
  conflict = {
    steps = {
      { text = "I'll change the list.\n" },
      {
        request = {
          method = "fs/write_text_file",
          params = { sessionId = "${session}", path = "${cwd}/a.lua", content = NEW },
        },
        wait = true,
      },
    },
    waits = "take the agent's",
    agent = { profile = "plain" },
  },
  chats = {
    steps = { { permission = { toolCall = { toolCallId = "t", title = "`cargo test`", kind = "execute" } } } },
    waits = "<M-y> allow",
    agent = {
      profile = "plain",
      sessions = { { sessionId = "old", title = "New CLI flags", updatedAt = "2020-03-01T12:00:00Z" } },
    },
    act = function(nvim)
      nvim:lua([[
        require("cursor_agent.chat.rows").age = function() return "2m" end
        local key = require("cursor_agent").new({ open = false })
        require("cursor_agent").prompt("Update the docs", { session = key, open = false })
      ]])
      nvim:wait("require('cursor_agent.chat.registry').all()[2].status.state == 'running'", "the second chat")
      -- The list covers the card, which would then be coloured or not.
      nvim:wait("require('cursor_agent.colour.painter').idle()", "the colours")
      nvim:keys(":CursorAgent sessions<CR>")
      nvim:wait_screen("New CLI flags")
      nvim:wait_screen("Type number")
    end,
    prompting = true,
  },
  ["signed-out"] = {
    steps = {},
    prompt = false,
    waits = "signed out",
    agent = { profile = "cursor-2026-10", signed_out = true },
    act = function(nvim)
      nvim:wait_screen(":CursorAgent login logs in")
    end,
  },
  failed = {
    steps = { { text = "I'll look.\n" }, { error = { code = -32603, message = "The model is overloaded" } } },
    waits = "The model is overloaded",
  },
  review = {
    steps = {
      (tool("e", { title = "Edit a.lua", kind = "edit", status = "in_progress", locations = { { path = "a.lua" } } })),
      { wait_ms = 300 },
      { write_file = { path = "a.lua", text = NEW } },
      (select(2, tool("e", {}, { content = diff() }))),
      { text = "Done." },
    },
    waits = "Done.",
    act = function(nvim)
      nvim:wait_state("idle")
      nvim:wait("#require('cursor_agent').hunks() == 1", "a change")
      nvim:keys("gg]h")
      nvim:wait_screen("<M-k> keep")
    end,
  },
}

---@param name string
---@param files table<string, string>
---@param run fun(nvim: harness.Child, screen: string)
local function each_look(name, files, run)
  for _, width in ipairs({ 80, 120 }) do
    for _, ground in ipairs({ "dark", "light" }) do
      T.case(
        ("%s at %d columns, %s"):format(name, width, ground),
        { width = width, height = 32, files = files },
        function(nvim)
          nvim:cmd("set background=" .. ground)
          run(nvim, ("look-%s-%d-%s"):format(name, width, ground))
        end
      )
    end
  end
end

for name, state in vim.spairs(STATES) do
  each_look(name, { ["a.lua"] = CODE }, function(nvim, screen)
    local turns = { state.steps, { { text = "Working" }, { wait_cancel = true } } }
    nvim:use(T.agent(vim.tbl_extend("force", { turns = turns }, state.agent or {})))
    nvim:cmd("edit a.lua")
    if name == "conflict" then
      nvim:keys('4GSreturn { "a", "mine" }<Esc>')
      nvim:prompt("Make the parser accept trailing commas")
    elseif state.prompt == false then
      nvim:cmd("CursorAgent")
    else
      nvim:prompt("Make the parser accept trailing commas")
    end
    nvim:wait_screen(state.waits)
    if state.act then
      state.act(nvim)
    end
    nvim:expect_screen(screen, nil, state.prompting)
  end)
end

each_look("cloud", {}, function(nvim, screen)
  local cloud = Cloud.start(T.root, { "--agents", "9", "--pace", "5" })
  local ok, why = xpcall(function()
    nvim:use(T.agent({ turns = {} }), { cloud = { url = cloud.url, api_key = "key_fake" } })
    nvim:cmd("CursorAgent cloud")
    nvim:wait_screen("2 running · 5 finished · 1 error · 1 stopped")
    nvim:wait_screen("ada@example.org")
    nvim:wait_screen_without("Loading…")
    nvim:expect_screen(screen)
  end, debug.traceback)
  cloud:stop()
  if not ok then
    error(why, 0)
  end
end)
