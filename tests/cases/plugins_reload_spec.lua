-- The plugin loaded again in a Neovim with live chats, as `:Lazy reload` does it.

local T = require("harness")

local OPTS = { width = 120, height = 30, files = { ["a.lua"] = "a1\n" } }

---What lazy.nvim does: `deactivate()`, every module of the plugin forgotten, its `plugin/` files run again, `setup`.
local RELOAD = [[
  local root = ...
  require("cursor_agent").deactivate()
  for name in pairs(package.loaded) do
    if name == "cursor_agent" or vim.startswith(name, "cursor_agent.") then
      package.loaded[name] = nil
    end
  end
  vim.g.loaded_cursor_agent = nil
  vim.cmd.source(root .. "/plugin/cursor_agent.lua")
  require("cursor_agent").setup(_G.options)
]]

---@param nvim harness.Child
---@param agent harness.Agent
local function use(nvim, agent)
  local options = { agent = "test", agents = { test = agent.options } }
  nvim:use(agent)
  nvim:lua("_G.options = ...", options)
end

T.case("chats, drafts and a running turn outlive a reload of the plugin", OPTS, function(nvim)
  local agent = T.agent({
    turns = {
      { { text = "First answer." } },
      {
        { text = "Working." },
        { expect = "session/cancel" },
        { text = "never" },
      },
      { { text = "Third answer." } },
    },
  })
  use(nvim, agent)
  nvim:cmd("edit a.lua")
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  nvim:keys("one<C-s>")
  nvim:wait_turns(1)
  nvim:keys("two<C-s>")
  nvim:wait_screen("Working.")
  nvim:keys("a draft<Esc>")
  nvim:wait("vim.api.nvim_get_current_line() == 'a draft'")
  local session = nvim:status().session_id
  nvim:lua(RELOAD, T.root)
  nvim:wait_screen("First answer.")
  nvim:wait_screen("Working.")
  nvim:wait_screen("a draft")
  T.eq(nvim:status().session_id, session)
  T.eq(nvim:status().state, "running")
  T.eq(#nvim:lua("return vim.api.nvim_tabpage_list_wins(0)"), 3)
  -- It goes on: the turn is stopped, the next prompt is answered, by keys.
  nvim:keys("<C-c>")
  nvim:wait_turns(2)
  nvim:keys("<Esc>Sthree<C-s>")
  nvim:wait_screen("Third answer.")
  T.eq(#agent:received("initialize"), 1)
  T.eq(nvim:messages():find("Error", 1, true), nil)
  -- And again, without a chat on the screen.
  nvim:keys("<Esc>:CursorAgent close<CR>")
  nvim:lua(RELOAD, T.root)
  nvim:keys(":CursorAgent<CR>")
  nvim:wait_screen("Third answer.")
  T.eq(nvim:status().session_id, session)
end)

T.case("a decision that is open can be answered after a reload", OPTS, function(nvim)
  local ask = { permission = { toolCall = { toolCallId = "make", title = "`make`", kind = "execute" } } }
  local agent = T.agent({ turns = { { ask, { text = "Made." } } } })
  use(nvim, agent)
  nvim:prompt("go")
  nvim:wait_screen("$ make")
  nvim:lua(RELOAD, T.root)
  nvim:wait_screen("$ make")
  nvim:lua("require('cursor_agent').accept()")
  nvim:wait_screen("Made.")
  T.eq(agent:answers("session/request_permission")[1].result.outcome.outcome, "selected")
end)

T.case("text that streams in during reloads is complete, and the clock goes on", OPTS, function(nvim)
  -- Far more than one look at the library takes.
  local agent = T.agent({
    turns = {
      {
        { chunks = { count = 20000, text = "a line of the answer\n" } },
        { text = "The end." },
        { expect = "session/cancel" },
      },
    },
  })
  use(nvim, agent)
  nvim:prompt("go")
  nvim:wait_screen("a line of the answer")
  -- Each time while the editor is behind.
  for _ = 1, 4 do
    nvim:lua(RELOAD, T.root)
  end
  nvim:wait_screen("The end.")
  nvim:wait(
    [[(function()
      local count = 0
      for _, line in ipairs(vim.api.nvim_buf_get_lines(require("cursor_agent.chat.registry").current().buf, 0, -1, false)) do
        count = count + (line:find("a line of the answer", 1, true) and 1 or 0)
      end
      return count == 20000
    end)()]],
    "every line"
  )
  local function clock()
    return (nvim:screen()[1]:match("(%d+:%d%d)"))
  end
  local shown = clock()
  nvim:wait(function()
    return clock() ~= shown
  end, "the clock to go on")
  T.eq(nvim:messages():find("Error", 1, true), nil)
end)

T.case("each tab has its own chat again after a reload", OPTS, function(nvim)
  use(nvim, T.agent({ turns = { { { text = "First answer." } }, { { text = "Second answer." } } } }))
  nvim:prompt("one")
  nvim:wait_turns(1)
  local first = nvim:status().key
  nvim:keys("<Esc>:tabnew<CR>")
  nvim:keys(":CursorAgent new<CR>")
  nvim:wait(("require('cursor_agent').status().key ~= %d"):format(first), "another chat")
  local second = nvim:status().key
  -- The second is on no window; the first is on the screen of the other tab page.
  nvim:keys("<Esc>:CursorAgent close<CR>")
  nvim:lua(RELOAD, T.root)
  nvim:wait("#require('cursor_agent.chat.registry').all() == 2", "both chats")
  T.eq(nvim:status().key, second)
  T.eq(nvim:lua("return #vim.api.nvim_tabpage_list_wins(0)"), 1)
  nvim:keys(":tabfirst<CR>")
  nvim:wait_screen("First answer.")
  T.eq(nvim:status().key, first)
end)
