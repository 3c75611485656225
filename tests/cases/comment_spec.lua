-- Comments on code: collected with the next prompt, shown at their lines and above the prompt, removable.

local T = require("harness")

local OLD = "one\ntwo\nthree\nfour\nfive\n"
local NEW = "one\nTWO\nthree\nfour\nfive\n"

---@return table[]
local function edit()
  return {
    { write_file = { path = "a.txt", text = NEW } },
    {
      update = {
        sessionUpdate = "tool_call",
        toolCallId = "edit-1",
        title = "Edit a.txt",
        kind = "edit",
        status = "completed",
        content = { { type = "diff", path = "a.txt", oldText = OLD, newText = NEW } },
      },
    },
  }
end

---@param nvim table
---@param agent table
local function start(nvim, agent)
  nvim:use(agent)
  nvim:cmd("edit a.txt")
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  nvim:cmd("stopinsert | wincmd t")
end

---@param nvim table
---@return string[] what stands at the ends of lines
local function shown(nvim)
  return nvim:lua([[
    local found = {}
    local ns = vim.api.nvim_create_namespace("cursor_agent_comments")
    for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(vim.fn.bufnr("a.txt"), ns, 0, -1, { details = true })) do
      table.insert(found, ("%d-%d %s"):format(mark[2] + 1, mark[4].end_row + 1, mark[4].virt_text[1][1]))
    end
    return found
  ]])
end

---@param agent table
---@param number integer
---@return string all text blocks of a prompt
local function sent(agent, number)
  local request = agent:received("session/prompt")[number]
  local texts = {}
  for _, block in ipairs(request.params.prompt) do
    table.insert(texts, block.text or "")
  end
  return table.concat(texts, "\n")
end

T.case(
  "a comment on a line is sent with the next prompt, and gone then",
  { width = 120, files = { ["a.txt"] = OLD } },
  function(nvim)
    local agent = T.agent({ turns = { { { text = "ok" } }, { { text = "ok" } } } })
    start(nvim, agent)
    nvim:keys("3G:CursorAgent comment spell it out<CR>")
    nvim:wait_screen("three ✎ spell it out")
    nvim:wait_screen("a.txt:3 “spell it out”")
    -- Its line moves with the text.
    nvim:keys("ggOzero<Esc>")
    T.eq(shown(nvim), { "4-4 ✎ spell it out" })
    nvim:prompt("go")
    nvim:wait_turns(1)
    T.contains(sent(agent, 1), "Comment on line 4 of a.txt:\n```text\nthree\n```\nspell it out")
    T.eq(shown(nvim), {})
    nvim:prompt("again")
    nvim:wait_turns(2)
    T.ok(not sent(agent, 2):find("spell it out", 1, true), "it is sent once")
  end
)

T.case(
  "a selection is commented by the mapping, asked for by a key",
  { width = 120, files = { ["a.txt"] = OLD } },
  function(nvim)
    local agent = T.agent({ turns = { { { text = "ok" } } } })
    start(nvim, agent)
    nvim:lua("vim.keymap.set({ 'n', 'x' }, 'gc', '<Plug>(cursor-agent-comment)', { remap = true })")
    nvim:keys("2GVjgc")
    nvim:wait_screen("Comment on lines 2-3:")
    nvim:keys("join them<CR>")
    nvim:wait_screen("two ✎ join them")
    T.eq(shown(nvim), { "2-3 ✎ join them" })
    T.eq(nvim:lua("return vim.api.nvim_get_mode().mode"), "n")
    -- The same key changes what was said; nothing said takes it away.
    nvim:keys("3Ggc")
    nvim:wait_screen("Comment on line 3: join them")
    nvim:keys("<C-u>leave them<CR>")
    nvim:wait_screen("leave them")
    T.eq(shown(nvim), { "3-3 ✎ leave them" })
    nvim:keys("gc<C-u><CR>")
    nvim:wait_screen_without("leave them")
    T.eq(shown(nvim), {})
    -- Given up, nothing is added.
    nvim:keys("gcno<Esc>")
    T.eq(shown(nvim), {})
  end
)

T.case(
  "comments are removed where they stand, and with other attachments",
  { width = 120, files = { ["a.txt"] = OLD } },
  function(nvim)
    start(nvim, T.agent({ turns = { { { text = "ok" } } } }))
    nvim:keys(":1CursorAgent comment first<CR>:2,3CursorAgent comment second<CR>:5CursorAgent comment third<CR>")
    nvim:wait_screen("five ✎ third")
    T.eq(shown(nvim), { "1-1 ✎ first", "2-3 ✎ second", "5-5 ✎ third" })
    nvim:keys("3G:CursorAgent! comment<CR>")
    T.eq(shown(nvim), { "1-1 ✎ first", "5-5 ✎ third" })
    nvim:keys(":CursorAgent! comment<CR>")
    nvim:wait_screen("no comment on this line")
    nvim:lua("require('cursor_agent.chat.registry').current().prompt:detach(1)")
    T.eq(shown(nvim), { "5-5 ✎ third" })
    nvim:cmd("CursorAgent context clear")
    T.eq(shown(nvim), {})
    nvim:keys("<Esc>")
    nvim:wait_screen_without("third")
  end
)

T.case("a comment on a change tells of the change", { width = 120, files = { ["a.txt"] = OLD } }, function(nvim)
  local agent = T.agent({ turns = { edit(), { { text = "ok" } } } })
  start(nvim, agent)
  nvim:prompt("edit it")
  nvim:wait_turns(1)
  nvim:cmd("stopinsert | wincmd t")
  nvim:wait_screen("− two")
  nvim:keys("gg]h<M-c>")
  nvim:wait_screen("Comment on the change:")
  nvim:keys("no capitals<CR>")
  nvim:wait_screen("TWO ✎ no capital")
  nvim:cmd("CursorAgent prompt")
  nvim:keys("<Esc>")
  nvim:keys("<C-s>")
  nvim:wait_turns(2)
  T.contains(sent(agent, 2), "Comment on your change at line 2 of a.txt:\n```diff\n-two\n+TWO\n```\nno capitals")
end)

T.case(
  "changes of the last turn are undone, those before it stay",
  { width = 120, files = { ["a.txt"] = OLD, ["b.txt"] = OLD } },
  function(nvim)
    local function write(name)
      return {
        { write_file = { path = name, text = NEW } },
        {
          update = {
            sessionUpdate = "tool_call",
            toolCallId = "edit-" .. name,
            title = "Edit " .. name,
            kind = "edit",
            status = "completed",
            content = { { type = "diff", path = name, oldText = OLD, newText = NEW } },
          },
        },
      }
    end
    start(nvim, T.agent({ turns = { write("a.txt"), write("b.txt") } }))
    nvim:prompt("one")
    nvim:wait_turns(1)
    nvim:prompt("two")
    nvim:wait_turns(2)
    nvim:wait("#require('cursor_agent').hunks() == 2", "both changes")
    nvim:cmd("CursorAgent undo turn")
    nvim:wait("#require('cursor_agent').hunks() == 1", "one was undone")
    T.eq(nvim:lua("return vim.fs.basename(require('cursor_agent').hunks()[1].path)"), "a.txt")
    T.eq(nvim:lua("return table.concat(vim.fn.readfile('b.txt'), '\\n') .. '\\n'"), OLD)
    T.eq(nvim:lua("return require('cursor_agent').keep({ turn = 1 })"), 1)
    T.eq(nvim:lua("return #require('cursor_agent').hunks()"), 0)
  end
)

T.case("a prompt of the chat offers the files before it", { width = 120, files = { ["a.txt"] = OLD } }, function(nvim)
  start(nvim, T.agent({ turns = { { { text = "hello" } }, edit(), { { text = "bye" } } } }))
  for i, text in ipairs({ "first", "second", "third" }) do
    nvim:prompt(text)
    nvim:wait_turns(i)
  end
  nvim:wait("#require('cursor_agent').hunks() == 1", "the change")
  nvim:cmd("stopinsert")
  nvim:lua("vim.api.nvim_set_current_win(vim.fn.bufwinid(require('cursor_agent.chat.registry').current().buf))")
  nvim:keys("Ggu")
  nvim:wait_screen("put the cursor on one of your prompts")
  nvim:keys("[[")
  nvim:wait("vim.api.nvim_get_current_line():find('third') ~= nil", "the last prompt")
  nvim:keys("gu")
  nvim:wait_screen("no file has changed since this prompt")
  nvim:keys("[[")
  nvim:wait("vim.api.nvim_get_current_line():find('second') ~= nil", "the prompt before")
  nvim:keys("gu")
  nvim:wait_screen("Restore the files")
  T.eq(vim.fn.readfile(nvim.work .. "/a.txt")[2], "TWO", "nothing is done before the answer")
  nvim:keys("1<CR><CR>")
  nvim:wait("vim.fn.readfile('a.txt')[2] == 'two'", "the old text")
end)
