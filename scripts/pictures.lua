-- Sets the scene of one picture: $SCENE in a scratch project, and the file $READY once it is on the screen.

local root = assert(vim.env.CURSOR_AGENT_ROOT)
vim.opt.runtimepath:prepend(root)
vim.o.termguicolors, vim.o.number, vim.o.laststatus, vim.o.swapfile = true, true, 2, false
vim.opt.shortmess:append("I")
vim.o.showmode, vim.o.ruler = false, false

local OLD = "            let item = self.expr()?;\n            items.push(item);\n"
local NEW = OLD
  .. "            if !self.eat(Token::Comma) {\n                self.expect(Token::CloseBracket)?;\n"
  .. "                break;\n            }\n"

---@param id string
---@param fields table
---@return table[] steps
local function tool(id, fields)
  local first = vim.tbl_extend("force", { sessionUpdate = "tool_call", toolCallId = id, status = "pending" }, fields)
  local done = { sessionUpdate = "tool_call_update", toolCallId = id, status = "completed" }
  done.content, first.content = fields.content, nil
  return { { update = first }, { wait_ms = 60 }, { update = done } }
end

local read = tool("r", {
  title = "Read src/parser.rs",
  kind = "read",
  locations = { { path = "src/parser.rs", line = 1 } },
  content = { { type = "content", content = { type = "text", text = "//! Parses lists of expressions.\n" } } },
})
local test = tool("t", {
  title = "`cargo test parser`",
  kind = "execute",
  content = {
    {
      type = "content",
      content = { type = "text", text = "running 14 tests\ntest result: ok. 14 passed; 0 failed\n" },
    },
  },
})

---@param ... table[]
---@return table[]
local function steps(...)
  local all = {}
  for _, list in ipairs({ ... }) do
    vim.list_extend(all, list)
  end
  return all
end

local scenes = {
  permission = {
    prompt = "Run the parser's tests",
    steps = steps({ { text = "I'll run the parser's tests.\n\n" } }, read, {
      {
        permission = {
          toolCall = {
            toolCallId = "p",
            title = "`cargo test parser -- --nocapture`",
            kind = "execute",
            status = "pending",
            content = { { type = "content", content = { type = "text", text = "Not in allowlist: cargo test" } } },
          },
        },
      },
    }),
    decision = true,
  },
  question = {
    prompt = "Store sessions on disk",
    steps = {
      { text = "One question before I start.\n" },
      {
        request = {
          method = "cursor/ask_question",
          params = {
            toolCallId = "q",
            title = "Which store should sessions use?",
            questions = {
              {
                id = "store",
                prompt = "Which store should sessions use?",
                options = {
                  { id = "sqlite", label = "SQLite: one file, crash-safe" },
                  { id = "lines", label = "JSON lines: readable, easy to repair" },
                  { id = "memory", label = "Memory only" },
                },
              },
            },
          },
        },
        wait = true,
      },
    },
    decision = true,
  },
  plan = {
    prompt = "Plan how to move the parser into its own crate",
    steps = {
      { text = "Here is my plan.\n" },
      {
        request = {
          method = "cursor/create_plan",
          params = {
            toolCallId = "c",
            name = "Move the parser into its own crate",
            overview = "Move the parser, keep its interface, test it on its own.",
            plan = "1. Move `src/parser.rs` and `src/lexer.rs` to `crates/parser`.\n2. Re-export what other modules use.\n3. Run its tests on their own.\n",
            todos = {
              { id = "1", content = "Move the two files", status = "pending" },
              { id = "2", content = "Re-export the interface", status = "pending" },
              { id = "3", content = "Test the crate on its own", status = "pending" },
            },
          },
        },
        wait = true,
      },
    },
    decision = true,
    enter = true,
  },
}

---The file as the agent leaves it: two places changed.
local function edited()
  local text = table.concat(vim.fn.readfile("src/parser.rs"), "\n") .. "\n"
  local first, last = text:find(OLD, 1, true)
  assert(first and last, "the picture's file has changed")
  return "//! Lists may have a trailing comma.\n" .. text:sub(1, first - 1) .. NEW .. text:sub(last + 1)
end

local on_disk = {
  {
    update = {
      sessionUpdate = "tool_call",
      toolCallId = "e",
      title = "Edit src/parser.rs",
      kind = "edit",
      status = "in_progress",
      locations = { { path = "src/parser.rs" } },
    },
  },
  { wait_ms = 300 },
  { write_file = { path = "src/parser.rs", text = edited() } },
  {
    update = {
      sessionUpdate = "tool_call_update",
      toolCallId = "e",
      status = "completed",
      content = { { type = "diff", path = "src/parser.rs", oldText = OLD, newText = NEW } },
    },
  },
}

scenes.review = {
  prompt = "Make the parser accept trailing commas",
  steps = steps(on_disk, { { text = "A trailing comma is now fine.\n" } }),
  ready = function(agent)
    return agent.status().state == "idle" and #agent.hunks() > 0
  end,
  keys = { "<C-w>h", "gg", "]h" },
}
scenes.chats = {
  others = { "Update the lexer's docs", "Rename the crate" },
  prompt = "Make the parser accept trailing commas",
  turns = {
    {
      {
        permission = {
          toolCall = { toolCallId = "p", title = "`cargo doc --no-deps`", kind = "execute", status = "pending" },
        },
      },
    },
    { { text = "Looking for uses of the old name.\n" }, { wait_cancel = true } },
    steps(read, { { text = "A trailing comma is now fine.\n" } }),
  },
  ready = function()
    local states = {} ---@type table<string, boolean>
    for _, chat in ipairs(require("cursor_agent.chat.registry").all()) do
      states[chat.status.state] = true
    end
    return states.idle and states.waiting and states.running
  end,
  -- The card would be in front of the list.
  keys = { ":CursorAgent decisions<CR>", "q", ":CursorAgent sessions<CR>" },
}
scenes.cloud = {
  prompt = "Make the parser accept trailing commas",
  steps = { { text = "Done.\n" } },
  ready = function(agent)
    return agent.status().state == "idle"
  end,
  keys = { ":CursorAgent close<CR>", ":CursorAgent cloud<CR>" },
}
-- Ask, approve, look at the diff, take one change back: typed as a person does, and filmed.
scenes.tour = {
  steps = steps(
    {
      { wait_ms = 500 },
      { thought = "Lists are parsed until the bracket closes; commas are never consumed." },
      { wait_ms = 900 },
      { text = "Lists are parsed in `Parser::list`. " },
      { wait_ms = 300 },
      { text = "It never looks for a comma, so I'll let it accept one after each item.\n\n" },
      { wait_ms = 500 },
    },
    read,
    { { wait_ms = 300 } },
    on_disk,
    {
      { wait_ms = 900 },
      {
        permission = {
          toolCall = { toolCallId = "p", title = "`cargo test parser`", kind = "execute", status = "pending" },
        },
      },
      { wait_ms = 400 },
      {
        update = {
          sessionUpdate = "tool_call_update",
          toolCallId = "p",
          status = "completed",
          content = test[#test].update.content,
        },
      },
      { wait_ms = 300 },
      { text = "A trailing comma is now fine, and all 14 tests pass.\n" },
    }
  ),
  film = function(agent, actor)
    actor.type("Make the parser accept trailing commas")
    actor.press("<C-s>", "send")
    actor.wait(function()
      return #agent.pending() > 0
    end)
    actor.pause(1800)
    actor.press("<M-y>", "allow")
    actor.wait(function()
      return agent.status().state == "idle"
    end)
    actor.pause(1200)
    actor.press("<Esc>")
    actor.press("<C-w>h", "go to the code")
    actor.press("gg")
    actor.press("]h", "next change")
    actor.pause(1000)
    actor.press("<M-k>", "keep it")
    actor.pause(800)
    actor.press("]h", "next change")
    actor.pause(600)
    actor.press("<M-u>", "undo it")
    actor.pause(3000)
  end,
}

local scene = scenes[vim.env.SCENE or "permission"]
local scenario = vim.fn.tempname() .. ".json"
vim.fn.writefile({ vim.json.encode({ turns = scene.turns or { scene.steps } }) }, scenario)
require("cursor_agent").setup({
  agent = "cursor",
  agents = {
    cursor = { command = { root .. "/lib/cursor-agent-demo", "play", scenario } },
  },
  window = { width = 0.55 },
  cloud = { url = "demo" },
})

---@param condition fun(): any
---@param go fun()
local function once(condition, go)
  local timer = assert(vim.uv.new_timer())
  timer:start(
    100,
    100,
    vim.schedule_wrap(function()
      if not timer:is_closing() and condition() then
        timer:close()
        go()
      end
    end)
  )
end

local function ready()
  vim.fn.writefile({}, assert(vim.env.READY))
end

---Presses keys one after the other.
---@param keys string[]
---@param on_end fun()
local function press_keys(keys, on_end)
  local function next_key(i)
    if not keys[i] then
      return vim.defer_fn(on_end, 300)
    end
    vim.api.nvim_input(keys[i])
    vim.defer_fn(function()
      next_key(i + 1)
    end, 350)
  end
  next_key(1)
end

---Names a key at the bottom of the code while it is pressed, so that a viewer knows what was typed.
local caption_win ---@type integer?
local function caption(key, text)
  if caption_win and vim.api.nvim_win_is_valid(caption_win) then
    vim.api.nvim_win_close(caption_win, true)
  end
  caption_win = nil
  if not key then
    return
  end
  local line = (" %s  %s "):format(key, text)
  local buf = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, { line })
  vim.api.nvim_buf_set_extmark(buf, vim.api.nvim_create_namespace("caption"), 0, 0, {
    end_col = #key + 2,
    hl_group = "DiagnosticWarn",
  })
  caption_win = vim.api.nvim_open_win(buf, false, {
    relative = "editor",
    anchor = "SW",
    row = vim.o.lines - 3,
    col = 8,
    width = vim.fn.strdisplaywidth(line),
    height = 1,
    style = "minimal",
    border = "rounded",
    focusable = false,
    zindex = 250,
  })
  vim.wo[caption_win].winhighlight = "NormalFloat:Normal,FloatBorder:DiagnosticWarn"
end

---What a scene can do; each returns when it is done. Times are those of the film.
local actor = {}

---@param ms integer of real time
local function sleep(ms)
  local co = assert(coroutine.running())
  vim.defer_fn(function()
    assert(coroutine.resume(co))
  end, ms)
  coroutine.yield() ---@diagnostic disable-line: await-in-sync
end

---Has a frame taken that is seen for this long.
---@param ms integer
local function shoot(ms)
  vim.cmd.redraw()
  -- The terminal draws a moment later.
  sleep(60)
  local frame = assert(vim.env.FRAME)
  vim.fn.writefile({ tostring(ms) }, frame .. ".new")
  assert(vim.uv.fs_rename(frame .. ".new", frame))
  while vim.uv.fs_stat(frame) do
    sleep(10)
  end
end

---@param ms integer
function actor.pause(ms)
  shoot(ms)
end

---@param condition fun(): any
function actor.wait(condition)
  while not condition() do
    shoot(150)
  end
end

---@param text string
function actor.type(text)
  for piece in text:gmatch("..?") do
    vim.api.nvim_input((piece:gsub("<", "<lt>")))
    shoot(100)
  end
  actor.pause(300)
end

---@param key string
---@param text? string what it does
function actor.press(key, text)
  if text then
    caption(key, text)
    actor.pause(600)
  end
  vim.api.nvim_input(key)
  if text then
    actor.pause(900)
    caption()
  else
    sleep(150)
  end
end

local function film()
  local agent = require("cursor_agent")
  agent.open()
  vim.api.nvim_create_autocmd("User", {
    pattern = "CursorAgentReady",
    once = true,
    callback = function()
      coroutine.wrap(function()
        actor.pause(800)
        assert(scene.film)(agent, actor)
        ready()
      end)()
    end,
  })
end

vim.api.nvim_create_autocmd("VimEnter", {
  callback = vim.schedule_wrap(function()
    if scene.film then
      return film()
    end
    local agent = require("cursor_agent")
    for _, prompt in ipairs(scene.others or {}) do
      agent.prompt(prompt, { session = agent.new({ open = false }), open = false })
    end
    if scene.others then
      agent.new({ enter = false })
    else
      agent.open({ enter = false })
    end
    vim.cmd("normal! 15G")
    local started = false
    vim.api.nvim_create_autocmd("User", {
      pattern = "CursorAgentTurnStart",
      callback = function()
        started = true
      end,
    })
    agent.prompt(scene.prompt)
    once(function()
      return started and (scene.decision and #agent.pending() > 0 or scene.ready and scene.ready(agent))
    end, function()
      vim.defer_fn(function()
        if scene.enter then
          vim.cmd("CursorAgent decisions")
          vim.api.nvim_input("<CR>")
        end
        press_keys(scene.keys or {}, function()
          vim.defer_fn(ready, 1200)
        end)
      end, 800)
    end)
  end),
})
