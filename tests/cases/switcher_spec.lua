-- The switcher: every chat is reachable from one list, switching stops nothing, and chats are called by their titles.

local T = require("harness")

local function permission(command)
  return {
    permission = {
      toolCall = {
        toolCallId = "call-1",
        title = "`" .. command .. "`",
        kind = "execute",
        status = "pending",
        rawInput = { command = command },
      },
    },
    ["then"] = { ["allow-once"] = { { text = "Allowed." } } },
  }
end

---@param title string
---@return table
local function titled(title)
  return { update = { sessionUpdate = "session_info_update", title = title } }
end

---Asks something in the chat of this tab, by keys, in a chat that is ready.
local function ask(nvim, text)
  nvim:wait_state("idle")
  nvim:keys("<Esc>i" .. text .. "<C-s>")
end

---The rows of the list on the screen.
local function rows(nvim)
  -- Nothing is asked of a Neovim that prompts.
  nvim:wait_screen("Type number")
  return vim.tbl_filter(function(line)
    return line:match("^%d+: ") ~= nil
  end, nvim.screen_state:lines())
end

---The row of the list that holds a text.
local function row_with(nvim, text)
  for _, row in ipairs(rows(nvim)) do
    if row:find(text, 1, true) then
      return row
    end
  end
  error(("no row with %q"):format(text))
end

T.case("a chat that `new` put aside is in the list, goes on, and is gone back to", { width = 120 }, function(nvim)
  local agent = T.agent({
    turns = { { { text = "One, " }, { wait_ms = 300 }, { text = "two." } }, { { text = "Hello." } } },
  })
  nvim:use(agent)
  nvim:cmd("CursorAgent")
  ask(nvim, "Count to two")
  nvim:wait_screen("One, ")
  nvim:keys("<Esc>:CursorAgent new<CR>")
  ask(nvim, "Say hello")
  nvim:wait_turns(2)
  nvim:keys("<Esc>gc")
  nvim:wait_screen("Count to two")
  T.contains(row_with(nvim, "Count to two"), "finished")
  T.contains(row_with(nvim, "Say hello"), "this chat")
  nvim:keys(row_with(nvim, "Count to two"):match("^%d+") .. "<CR>")
  nvim:wait_screen("One, two.")
  T.eq(nvim:texts("user"), { "Count to two" })
  T.eq(#agent:received("session/cancel"), 0)
end)

T.case(
  "what waits comes first, with what it waits for; the winbar counts, and gw goes there",
  { width = 120 },
  function(nvim)
    nvim:use(T.agent({
      turns = {
        { permission("make test") },
        { { text = "Working" }, { wait_cancel = true } },
        { { text = "Done here." } },
      },
    }))
    nvim:cmd("CursorAgent")
    ask(nvim, "Fix the parser")
    nvim:wait_state("waiting")
    nvim:keys("<Esc>:CursorAgent new<CR>")
    ask(nvim, "Update the docs")
    nvim:wait_state("running")
    nvim:keys("<Esc>:CursorAgent new<CR>")
    nvim:wait_screen("2 chats ●")
    ask(nvim, "Rename the crate")
    nvim:wait_screen("Done here.")
    nvim:keys("<Esc>gc")
    nvim:wait_screen("Fix the parser")
    local list = rows(nvim)
    T.contains(list[1], "● needs approval")
    T.contains(list[1], "Fix the parser")
    T.contains(list[1], "make test")
    T.contains(list[2], "running")
    T.contains(list[2], "Update the docs")
    T.contains(list[3], "✓ finished")
    T.contains(list[3], "Rename the crate")
    nvim:keys("q<CR>")
    nvim:wait_screen_without("1: ●")
    nvim:keys("gw")
    nvim:wait(
      "require('cursor_agent').status().title == 'Fix the parser' or require('cursor_agent').status().pending == 1"
    )
    T.eq(nvim:texts("user"), { "Fix the parser" })
    nvim:wait_screen("1 chat ")
    -- Nothing else needs an answer.
    nvim:cmd("CursorAgent accept")
    nvim:wait_state("idle")
    nvim:keys("<Esc>gw")
    nvim:wait_screen("no chat needs an answer")
  end
)

T.case("live and past chats in one list, each once", { width = 120 }, function(nvim)
  local day = os.date("!%Y-%m-%dT%H:%M:%SZ", os.time() - 24 * 3600)
  local agent = T.agent({
    profile = "plain",
    sessions = {
      { sessionId = "old-1", title = "Trailing commas", cwd = nvim.work, updatedAt = day },
      { sessionId = "old-2", title = "An older talk", cwd = nvim.work, updatedAt = "2020-02-29T12:00:00Z" },
    },
    turns = { { titled("Rename the crate"), { text = "Renamed." } }, { { text = "Hello." } } },
  })
  nvim:use(agent)
  nvim:cmd("CursorAgent")
  ask(nvim, "Do it")
  nvim:wait_turns(1)
  nvim:keys("<Esc>:CursorAgent new<CR>")
  ask(nvim, "Say hello")
  nvim:wait_turns(2)
  nvim:keys("<Esc>:CursorAgent sessions<CR>")
  nvim:wait_screen("Trailing commas")
  local list = rows(nvim)
  T.eq(#list, 4)
  T.contains(list[2], "Rename the crate")
  T.contains(list[3], "yesterday")
  T.contains(list[3], "Trailing commas")
  T.contains(list[3], "1d")
  T.contains(list[4], "2020-02-29")
  nvim:keys("3<CR>")
  nvim:wait(function()
    return #agent:received("session/load") == 1
  end, "the past session to be loaded")
  T.eq(agent:received("session/load")[1].params.sessionId, "old-1")
end)

T.case("buffers, cards and messages carry the title", { width = 120, height = 30 }, function(nvim)
  nvim:use(T.agent({
    turns = {
      { titled("Trailing commas/parser"), permission("make test") },
      { { text = "Hello." } },
    },
  }))
  nvim:cmd("CursorAgent")
  ask(nvim, "Make the parser accept trailing commas")
  nvim:wait_screen("make test")
  nvim:wait(function()
    return nvim:lua("return vim.fn.bufname('cursor-agent-term://1/chat')")
      == "cursor-agent-term://1/chat: Trailing commas∕parser"
  end, "the buffer to carry the title")
  nvim:keys("<Esc>:tabnew<CR>")
  -- The tab line has the title, or Neovim's own the buffer's name.
  nvim:wait(function()
    return nvim:sees("Trailing commas/parser") or nvim:sees("Trailing commas∕parser")
  end, "the title in the tab line")
  nvim:keys(":CursorAgent new<CR>")
  nvim:wait_screen("in ")
  nvim:wait_screen("Trailing commas/parser")
  T.ok(not nvim:sees("session 1"), "a number says nothing")
end)

T.case("an agent that takes its time does not keep the live chats from the list", { width = 120 }, function(nvim)
  nvim:use(T.agent({
    profile = "plain",
    sessions = { { sessionId = "old-1", title = "An old talk" } },
    on = { ["session/list"] = { { wait_ms = 1500 }, { profile = true } } },
    turns = { { { text = "Hello." } } },
  }))
  nvim:lua("require('cursor_agent.chat.switch').LATE_MS = 100")
  nvim:cmd("CursorAgent")
  ask(nvim, "Say hello")
  nvim:wait_turns(1)
  nvim:keys("<Esc>:CursorAgent new<CR>")
  nvim:wait_state("idle")
  nvim:keys("<Esc>gc")
  nvim:wait_screen("test is still listing its past chats")
  T.contains(row_with(nvim, "Say hello"), "finished")
  nvim:keys("3<CR>")
  nvim:wait_screen("An old talk")
end)

T.case("gr in an empty chat continues the last one of the directory", { width = 120 }, function(nvim)
  local agent = T.agent({
    profile = "plain",
    sessions = {
      { sessionId = "elsewhere", title = "Another project", cwd = "/", updatedAt = "2026-03-03T12:00:00Z" },
      { sessionId = "older", title = "An older talk", cwd = nvim.work, updatedAt = "2026-03-01T12:00:00Z" },
      { sessionId = "newer", title = "The last talk", cwd = nvim.work, updatedAt = "2026-03-02T12:00:00Z" },
    },
  })
  nvim:use(agent)
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  nvim:keys("<Esc>gr")
  nvim:wait(function()
    return #agent:received("session/load") == 1
  end, "the session to be loaded")
  T.eq(agent:received("session/load")[1].params.sessionId, "newer")
  nvim:wait("#require('cursor_agent.chat.registry').all() == 1", "the empty chat to make way")
end)

T.case("resume brings back the chat that was taken off the screen", { width = 120 }, function(nvim)
  nvim:use(T.agent({
    profile = "plain",
    sessions = { { sessionId = "old", title = "An older talk", cwd = nvim.work, updatedAt = "2026-03-01T12:00:00Z" } },
    turns = { { { text = "One." } }, { { text = "Two." } } },
  }))
  nvim:cmd("CursorAgent")
  ask(nvim, "Count to one")
  nvim:wait_turns(1)
  nvim:keys("<Esc>:CursorAgent close<CR>")
  nvim:wait_screen_without("Count to one")
  nvim:keys(":CursorAgent resume<CR>")
  nvim:wait_screen("Count to one")
  T.eq(nvim:lua("return #require('cursor_agent.chat.registry').all()"), 1)
  -- From the chat itself, the one before it.
  nvim:keys("<Esc>:CursorAgent new<CR>")
  ask(nvim, "Count to two")
  nvim:wait_turns(2)
  nvim:keys("<Esc>:CursorAgent resume<CR>")
  nvim:wait_screen("Count to one")
  nvim:keys("<Esc>:CursorAgent resume<CR>")
  nvim:wait_screen("Count to two")
end)

T.case("resume does not wait for an agent that does not list its chats", { width = 120 }, function(nvim)
  nvim:use(T.agent({ turns = { { { text = "One." } } } }))
  nvim:prompt("Count to one")
  nvim:wait_turns(1)
  nvim:quit("qa!")
  nvim:wait_exit()
  nvim:again()
  nvim:use(T.agent({
    profile = "plain",
    sessions = { { sessionId = "session-1", updates = {} } },
    on = { ["session/list"] = { { hang = "request" } } },
  }))
  nvim:lua("require('cursor_agent.chat.switch').LATE_MS = 100")
  nvim:keys(":CursorAgent resume<CR>")
  nvim:wait_screen("Count to one")
end)

T.case("without an earlier chat resume says so", { width = 120 }, function(nvim)
  nvim:use(T.agent({ profile = "plain" }))
  nvim:keys(":CursorAgent resume<CR>")
  nvim:wait_screen("no earlier chat in ")
end)

for _, width in ipairs({ 80, 120 }) do
  T.case(("what a person sees of the list, %d columns"):format(width), { width = width, height = 20 }, function(nvim)
    nvim:use(T.agent({
      profile = "plain",
      sessions = {
        { sessionId = "old-2", title = "New CLI flags", cwd = nvim.work, updatedAt = "2020-03-01T12:00:00Z" },
      },
      turns = {
        { permission("cargo test parser") },
        { { text = "Working" }, { wait_cancel = true } },
        { { text = "Done." } },
      },
    }))
    nvim:cmd("CursorAgent")
    ask(nvim, "Fix the parser")
    nvim:wait_state("waiting")
    nvim:keys("<Esc>:CursorAgent new<CR>")
    ask(nvim, "Update the docs of everything that was renamed last week")
    nvim:wait_state("running")
    nvim:keys("<Esc>:CursorAgent new<CR>")
    ask(nvim, "Rename the crate")
    nvim:wait_turns(1)
    nvim:lua("require('cursor_agent.chat.rows').age = function() return '2m' end")
    nvim:keys("<Esc>")
    nvim:wait("vim.fn.mode() == 'n'", "Normal mode")
    if width > 80 then
      -- The card has room for one more key there.
      nvim:wait_screen("reject · gd more")
    end
    -- The list covers the card, which would then be coloured or not.
    nvim:wait("require('cursor_agent.colour.painter').idle()", "the colours")
    nvim:keys("gc")
    nvim:wait_screen("New CLI flags")
    nvim:wait_screen("Type number")
    nvim:expect_screen(("switcher-%d"):format(width), nil, true)
  end)
end
