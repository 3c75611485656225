-- The keys that doc/keys.md counts: typed here, and as many as it says.

local T = require("harness")

---@param keys string
---@return integer
local function count(keys)
  local _, chords = keys:gsub("<[^<>]+>", "x")
  return chords + #keys:gsub("<[^<>]+>", "")
end

---What doc/keys.md says of an action.
---@param action string
---@return integer?
local function documented(action)
  for line in io.lines(T.root .. "/doc/keys.md") do
    local name, number = line:match("^| ([^|]-) | (%d+)")
    if name == action then
      return math.floor(tonumber(number) or 0)
    end
  end
end

T.case(
  "the ten most frequent actions take as many keys as documented",
  { width = 120, height = 36, files = { ["a.lua"] = "return 1\n" } },
  function(nvim)
    local function asks(id)
      return { permission = { toolCall = { toolCallId = id, title = "`" .. id .. "`", kind = "execute" } } }
    end
    local endless = { { text = "On it.\n" }, { wait_cancel = true } }
    local agent = T.agent({
      turns = { { asks("one"), asks("two") }, endless, endless, { { text = "Done.\n" } } },
    })
    nvim:use(agent, {
      keymaps = { global = { prefix = "<Leader>a", toggle = "<C-\\>", prompt = "<C-g>", new = "<F6>" } },
    })
    nvim:cmd("edit a.lua")

    ---@param action string
    ---@param keys string
    local function does(action, keys)
      T.eq(count(keys), documented(action), action)
      nvim:keys(keys)
    end
    local function settle()
      nvim:wait_card()
    end

    does("open the chat", "<C-\\>")
    nvim:wait("vim.bo.filetype == 'cursoragent-prompt'", "the prompt")
    nvim:wait_state("idle")
    nvim:keys("<Esc>")
    nvim:cmd("wincmd h")
    nvim:keys("V")
    does("ask about the selection", "<C-g>")
    nvim:wait_screen("a.lua:1-1 ×")
    nvim:keys("why")
    does("send", "<C-s>")
    nvim:wait_screen("$ one")
    settle()
    does("allow", "<M-y>")
    nvim:wait_screen("$ two")
    settle()
    does("reject", "<M-n>")
    nvim:wait_turns(1)
    nvim:wait_state("idle")
    nvim:keys("more<C-s>")
    nvim:wait_state("running")
    nvim:keys("rather this")
    does("send now, while a turn runs", "<M-s>")
    nvim:wait_turns(2)
    nvim:wait_state("running")
    does("stop the turn", "<C-c>")
    T.eq(nvim:wait_turns(3).stop_reason, "cancelled")
    nvim:wait_state("idle")
    nvim:keys("<Esc>")
    does("review the changes", "gh")
    nvim:wait_screen("no undecided changes")
    does("list the chats", "gc")
    nvim:wait_screen("no other chats")
    nvim:cmd("CursorAgent open")
    nvim:keys("<Esc>")
    does("start a new chat", "<F6>")
    nvim:wait("#require('cursor_agent.chat.registry').all() == 2", "a new chat")
  end
)

T.case("no plugin in the table takes fewer keys", function()
  local rows = 0
  for line in io.lines(T.root .. "/doc/keys.md") do
    local cells = vim.split(line, " | ", { plain = true })
    local ours = tonumber((cells[2] or ""):match("^(%d+):"))
    if ours then
      rows = rows + 1
      for i = 3, #cells do
        local theirs = tonumber(cells[i]:match("^(%d+)"))
        T.ok(not theirs or ours <= theirs, line)
      end
    end
  end
  T.eq(rows, 10)
end)
