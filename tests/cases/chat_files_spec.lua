-- Files between agent and editor: unsaved text is read, nothing unsaved is destroyed, buffers follow the disk.

local T = require("harness")

local TEXT = table.concat(vim.fn.map(vim.fn.range(1, 30), "'line ' . v:val"), "\n") .. "\n"
local OPTS = { width = 120, height = 30, files = { ["a.txt"] = TEXT } }

---@param path string
---@param fields table?
---@return table
local function read(path, fields)
  local params = vim.tbl_extend("force", { sessionId = "${session}", path = "${cwd}/" .. path }, fields or {})
  return { request = { method = "fs/read_text_file", params = params } }
end

---@param path string
---@param text string
---@return table
local function write(path, text)
  local params = { sessionId = "${session}", path = "${cwd}/" .. path, content = text }
  return { request = { method = "fs/write_text_file", params = params } }
end

---An edit the agent makes on disk by itself, as Cursor does.
---@param path string
---@param text string
---@return table[]
local function edit(path, text)
  return {
    { write_file = { path = path, text = text } },
    {
      update = {
        sessionUpdate = "tool_call",
        toolCallId = "e",
        title = "Edit " .. path,
        kind = "edit",
        status = "completed",
        content = { { type = "diff", path = "${cwd}/" .. path, oldText = TEXT, newText = text } },
      },
    },
  }
end

---@param nvim harness.Child
---@param turns table[]
---@return harness.Agent
local function start(nvim, turns)
  local agent = T.agent({ profile = "plain", turns = turns })
  nvim:use(agent)
  nvim:cmd("edit a.txt")
  return agent
end

---@param nvim harness.Child
---@return string
local function on_disk(nvim)
  local file = assert(io.open(nvim.work .. "/a.txt", "rb"))
  local text = file:read("*a")
  file:close()
  return text
end

---@param nvim harness.Child
---@return string
local function in_buffer(nvim)
  return table.concat(nvim:lua("return vim.api.nvim_buf_get_lines(vim.fn.bufnr('a.txt'), 0, -1, false)"), "\n") .. "\n"
end

---@param from string
---@param to string
---@return string
local function replaced(from, to)
  return (TEXT:gsub(vim.pesc(from) .. "\n", to .. "\n"))
end

T.case("the agent reads unsaved text, whole or in part", OPTS, function(nvim)
  local agent = start(nvim, { { read("a.txt"), read("a.txt", { line = 2, limit = 2 }), read("other.txt") } })
  nvim:keys("2GSunsaved<Esc>")
  nvim:prompt("read", { open = false })
  nvim:wait_turns(1)
  local answers = agent:answers("fs/read_text_file")
  T.eq(answers[1].result.content, replaced("line 2", "unsaved"))
  T.eq(answers[2].result.content, "unsaved\nline 3\n")
  T.ok(answers[3].error, "a file that is not there")
end)

T.case("a write into a loaded buffer keeps cursor, marks, folds and undo, and saves", OPTS, function(nvim)
  local agent = start(nvim, { { write("a.txt", "first\n" .. replaced("line 20", "changed\nadded")) } })
  nvim:keys("10Gmx:12,14fold<CR>25G")
  nvim:prompt("write", { open = false })
  nvim:wait_turns(1)
  T.eq(agent:answers("fs/write_text_file")[1].error, nil)
  T.eq(on_disk(nvim), "first\n" .. replaced("line 20", "changed\nadded"))
  T.eq(in_buffer(nvim), on_disk(nvim))
  T.eq(
    nvim:lua(
      'return { vim.api.nvim_get_current_line(), vim.fn.getline("\'x"), vim.fn.foldclosed(14), vim.bo.modified }'
    ),
    { "line 25", "line 10", 13, false }
  )
  nvim:keys("u")
  T.eq(in_buffer(nvim), TEXT, "one undo takes it all back")
end)

T.case("a write beside unsaved changes is merged", OPTS, function(nvim)
  start(nvim, { { write("a.txt", replaced("line 20", "theirs")) } })
  nvim:keys("2GSmine<Esc>")
  nvim:prompt("write", { open = false })
  nvim:wait_turns(1)
  T.eq(in_buffer(nvim), (replaced("line 20", "theirs"):gsub("line 2\n", "mine\n")))
end)

T.case("a write that builds on the unsaved text the agent has read is taken", OPTS, function(nvim)
  start(nvim, { { read("a.txt"), write("a.txt", replaced("line 2", "mine and theirs")) } })
  nvim:keys("2GSmine<Esc>")
  nvim:prompt("write", { open = false })
  nvim:wait_turns(1)
  T.eq(in_buffer(nvim), replaced("line 2", "mine and theirs"))
end)

---Decides about the file in conflict.
---@param nvim harness.Child
---@param option "mine"|"theirs"
local function settle(nvim, option)
  nvim:lua(
    [[
      local agent = require("cursor_agent")
      assert(agent.answer(agent.pending()[1].id, { option = ... }))
    ]],
    option
  )
end

T.case("a write over unsaved changes is asked about, and refused when they are kept", OPTS, function(nvim)
  local agent = start(nvim, { { write("a.txt", replaced("line 2", "theirs")) } })
  nvim:keys("2GSmine<Esc>")
  nvim:prompt("write", { open = false })
  nvim:wait_screen("where you have unsaved changes")
  T.eq(#agent:answers("fs/write_text_file"), 0, "the agent waits")
  T.eq(in_buffer(nvim), replaced("line 2", "mine"))
  settle(nvim, "mine")
  nvim:wait_turns(1)
  T.contains(agent:answers("fs/write_text_file")[1].error.message, "unsaved changes")
  T.eq(in_buffer(nvim), replaced("line 2", "mine"))
  T.eq(on_disk(nvim), TEXT)
end)

T.case("or taken when the user says so, undo brings back what was there", OPTS, function(nvim)
  local agent = start(nvim, { { write("a.txt", replaced("line 2", "theirs")) } })
  nvim:keys("2GSmine<Esc>")
  nvim:prompt("write", { open = false })
  nvim:wait_screen("where you have unsaved changes")
  settle(nvim, "theirs")
  nvim:wait_turns(1)
  T.eq(agent:answers("fs/write_text_file")[1].error, nil)
  T.eq(on_disk(nvim), replaced("line 2", "theirs"))
  nvim:keys("u")
  T.eq(in_buffer(nvim), replaced("line 2", "mine"))
end)

T.case("a buffer follows an edit on disk: cursor, folds and undo kept, no question at :w", OPTS, function(nvim)
  start(nvim, { edit("a.txt", "first\n" .. replaced("line 20", "changed")) })
  nvim:keys("ggOmine<Esc>:write<CR>")
  nvim:keys("u:write<CR>")
  nvim:keys("10Gmx:12,14fold<CR>25G")
  nvim:prompt("edit", { open = false })
  nvim:wait_turns(1)
  T.eq(in_buffer(nvim), "first\n" .. replaced("line 20", "changed"))
  T.eq(
    nvim:lua(
      'return { vim.api.nvim_get_current_line(), vim.fn.getline("\'x"), vim.fn.foldclosed(14), vim.bo.modified }'
    ),
    { "line 25", "line 10", 13, false }
  )
  T.eq(nvim:events("CursorAgentEdit")[1].path, nvim.work .. "/a.txt")
  nvim:cmd("checktime")
  nvim:keys("u")
  T.eq(in_buffer(nvim), TEXT, "one undo takes it back")
  nvim:keys("<C-r>")
  nvim:keys("Goafter<Esc>")
  nvim:cmd("write")
  T.eq(on_disk(nvim), "first\n" .. replaced("line 20", "changed") .. "after\n")
end)

T.case("unsaved changes of the same lines are not reloaded over; the difference is offered", OPTS, function(nvim)
  start(nvim, { edit("a.txt", replaced("line 2", "theirs")) })
  nvim:keys("2GSmine<Esc>")
  nvim:prompt("edit", { open = false })
  nvim:wait_turns(1)
  T.contains(nvim:messages(), "the agent changed a.txt on disk; your unsaved changes are untouched")
  nvim:cmd("CursorAgent open")
  nvim:keys("<Esc>")
  nvim:wait_screen("conflict: a.txt (:CursorAgent conflicts)")
  nvim:cmd("CursorAgent close")
  T.eq(in_buffer(nvim), replaced("line 2", "mine"))
  nvim:cmd("CursorAgent conflicts")
  nvim:wait_card()
  nvim:keys("d")
  T.eq(nvim:lua("return { vim.fn.tabpagenr('$'), vim.fn.winnr('$'), vim.wo.diff }"), { 2, 2, true })
  nvim:cmd("tabclose")
  settle(nvim, "theirs")
  T.eq(in_buffer(nvim), replaced("line 2", "theirs"))
  T.eq(nvim:lua("return vim.bo[vim.fn.bufnr('a.txt')].modified"), false)
  nvim:cmd("CursorAgent open")
  nvim:wait_screen("Ask test")
  nvim:wait_screen_without("conflict:")
end)

---A file the agent deletes by itself.
---@param path string
---@return table[]
local function delete(path)
  local call = { toolCallId = "d-" .. path, title = "Delete", kind = "delete", status = "completed" }
  local update = { sessionUpdate = "tool_call", locations = { { path = "${cwd}/" .. path } } }
  return { { remove_file = path }, { update = vim.tbl_extend("force", update, call) } }
end

T.case("a buffer whose file the agent deletes keeps its text, and says how to bring it back", OPTS, function(nvim)
  start(nvim, { delete("a.txt"), delete("a.txt"), edit("a.txt", replaced("line 20", "theirs")), delete("a.txt") })
  nvim:prompt("delete", { open = false })
  nvim:wait_turns(1)
  local said = "the agent deleted or moved a.txt; its text is still in the buffer, and `:w` restores the file"
  ---@return integer
  local function times()
    -- A message may be wrapped within a word.
    return select(2, nvim:messages():gsub("%s", ""):gsub(vim.pesc((said:gsub("%s", ""))), ""))
  end
  T.eq(times(), 1)
  T.eq(in_buffer(nvim), TEXT)
  nvim:cmd("checktime")
  nvim:lua("vim.api.nvim_exec_autocmds('FocusGained', {})")
  T.eq(nvim:messages():match("E211[^\n]*"), nil, "Neovim has nothing to add")
  nvim:cmd("write")
  T.eq(on_disk(nvim), TEXT)
  nvim:prompt("again", { open = false })
  nvim:wait_turns(2)
  T.eq(times(), 2)
  T.eq(in_buffer(nvim), TEXT)
  -- The agent brings it back by itself, and takes it away again.
  nvim:prompt("write", { open = false })
  nvim:wait_turns(3)
  T.eq(in_buffer(nvim), replaced("line 20", "theirs"))
  nvim:prompt("and again", { open = false })
  nvim:wait_turns(4)
  T.eq(times(), 3)
end)

T.case("unsaved text in a very large file is named and kept, and never attached", OPTS, function(nvim)
  local line = ("x"):rep(1023) .. "\n"
  local big = line:rep(11 * 1024)
  local file = assert(io.open(nvim.work .. "/big.txt", "wb"))
  file:write(big)
  file:close()
  local call = { sessionUpdate = "tool_call", toolCallId = "e", title = "Edit", kind = "edit", status = "completed" }
  call.locations = { { path = "${cwd}/big.txt" } }
  local agent = start(nvim, {
    { { text = "read" } },
    { { write_file = { path = "big.txt", text = "theirs\n" .. big } }, { update = call } },
  })
  nvim:cmd("edit big.txt")
  nvim:keys("Smine<Esc>")
  nvim:cmd("CursorAgent open")
  nvim:keys("<Esc>")
  nvim:wait_screen("unsaved: big.txt")
  nvim:keys("ga")
  nvim:wait_screen("too large to attach: big.txt (gs saves)")
  nvim:lua("require('cursor_agent').setup({ prompt = { unsaved = 'attach' } })")
  nvim:prompt("read")
  nvim:wait_turns(1)
  T.eq(#agent:received("session/prompt")[1].params.prompt, 1)
  nvim:prompt("edit")
  nvim:wait_turns(2)
  local said = nvim:messages():gsub("\n", " "):gsub("  +", " ")
  T.contains(said, "the agent changed big.txt on disk; your unsaved changes are untouched")
  T.contains(said, "in its buffer, `:w!` writes yours, `:e!` takes the agent's")
  T.eq(nvim:lua("return vim.fn.getbufline('big.txt', 1)[1]"), "mine")
end)

T.case("a conflict is not written over by gs, and is settled in one place", OPTS, function(nvim)
  start(nvim, { edit("a.txt", replaced("line 2", "theirs")) })
  nvim:keys("2GSmine<Esc>")
  nvim:cmd("CursorAgent open")
  nvim:prompt("edit", { open = false })
  nvim:wait_turns(1)
  nvim:wait_screen("conflict: a.txt (:CursorAgent conflicts)")
  -- It is named once.
  nvim:wait_screen_without("unsaved:")
  nvim:lua(
    "vim.schedule(function() require('cursor_agent.chat.layout').enter_prompt(require('cursor_agent.chat.registry').current()) end)"
  )
  nvim:wait("vim.bo.filetype == 'cursoragent-prompt'", "the prompt")
  nvim:keys("<Esc>gs")
  nvim:wait(function()
    return nvim:messages():find("a.txt was changed by the agent too: :CursorAgent conflicts", 1, true)
  end, "it to be said")
  T.eq(on_disk(nvim), replaced("line 2", "theirs"), "nothing is written over")
  settle(nvim, "theirs")
  nvim:wait_screen_without("conflict:")
  nvim:wait_screen_without("unsaved:")
end)

T.case("text that was kept in a conflict is written without another question", OPTS, function(nvim)
  start(nvim, { edit("a.txt", replaced("line 2", "theirs")) })
  nvim:keys("2GSmine<Esc>")
  nvim:prompt("edit", { open = false })
  nvim:wait_turns(1)
  settle(nvim, "mine")
  T.eq(in_buffer(nvim), replaced("line 2", "mine"))
  T.eq(nvim:lua("return vim.bo.modified"), true)
  nvim:cmd("checktime")
  nvim:keys("u")
  T.eq(in_buffer(nvim), TEXT, "u takes back what was typed last")
  nvim:keys("<C-r>:write<CR>")
  nvim:wait(function()
    return on_disk(nvim) == replaced("line 2", "mine")
  end, "it to be written")
end)

T.case("an edit while the user types in the prompt takes neither the cursor nor the mode", OPTS, function(nvim)
  start(nvim, { edit("a.txt", "first\n" .. TEXT) })
  nvim:keys("25G")
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  nvim:keys("go<C-s>typing on")
  nvim:wait_turns(1)
  T.eq(nvim:lua("return { vim.fn.mode(), vim.api.nvim_get_current_line() }"), { "i", "typing on" })
  nvim:keys("<Esc>")
  nvim:cmd("wincmd h")
  T.eq(nvim:api("nvim_get_current_line"), "line 25")
end)

---@param nvim harness.Child
---@param text string
local function put(nvim, text)
  local file = assert(io.open(nvim.work .. "/a.txt", "wb"))
  file:write(text)
  file:close()
end

T.case("a file keeps its line ends, and is empty or without a last newline when the agent says so", OPTS, function(nvim)
  local texts = { "one\r\ntwo\r\nthree\r\n", "one\ntwo", "", "one\n" }
  local expected = { "one\r\ntwo\r\nthree\r\n", "one\r\ntwo", "", "one\r\n" }
  local turns = {}
  for _, text in ipairs(texts) do
    turns[#turns + 1] = { write("a.txt", text), read("a.txt") }
  end
  local agent = T.agent({ profile = "plain", turns = turns })
  nvim:use(agent)
  put(nvim, "one\r\ntwo\r\n")
  nvim:cmd("edit a.txt")
  for i, text in ipairs(expected) do
    nvim:prompt("write", { open = false })
    nvim:wait_turns(i)
    T.eq(on_disk(nvim), text, ("text %d"):format(i))
    T.eq(nvim:lua("return vim.bo[vim.fn.bufnr('a.txt')].modified"), false)
  end
  T.eq(agent:answers("fs/read_text_file")[3].result.content, "")
end)

T.case("a long file keeps its undo history and its marks when it changes on disk", OPTS, function(nvim)
  local lines = {} ---@type string[]
  for i = 1, 12000 do
    lines[i] = "long " .. i
  end
  local before = table.concat(lines, "\n") .. "\n"
  local after = before:gsub("long 3\n", "changed\n")
  local agent = T.agent({ profile = "plain", turns = { edit("a.txt", after) } })
  nvim:use(agent)
  put(nvim, before)
  nvim:cmd("edit a.txt")
  nvim:cmd("split")
  nvim:cmd("normal! 11000G")
  nvim:cmd("wincmd w")
  nvim:keys("9000Gmx")
  nvim:lua("vim.api.nvim_buf_set_extmark(0, vim.api.nvim_create_namespace('mine'), 8000, 2, {})")
  nvim:prompt("edit", { open = false })
  nvim:wait_turns(1)
  T.ok(in_buffer(nvim) == after, "it shows what is on disk")
  T.eq(
    nvim:lua([[return {
      vim.fn.line("."), vim.fn.line("'x"),
      vim.api.nvim_buf_get_extmarks(0, vim.api.nvim_create_namespace("mine"), 0, -1, {})[1][2],
      vim.api.nvim_win_get_cursor(vim.fn.win_getid(vim.fn.winnr("#")))[1],
    }]]),
    { 9000, 9000, 8000, 11000 }
  )
  nvim:keys("u")
  T.ok(in_buffer(nvim) == before, "one undo takes it back")
end)

T.case("a file in another encoding follows the disk too, and unsaved text in it is safe", OPTS, function(nvim)
  local agent = T.agent({ profile = "plain", turns = { {}, {} } })
  nvim:use(agent)
  nvim:lua("require('cursor_agent.bridge').load()")
  put(nvim, "caf\233\nend\n")
  nvim:cmd("set noautoread")
  nvim:cmd("edit ++enc=latin1 a.txt")
  T.eq(in_buffer(nvim), "café\nend\n")
  put(nvim, "th\233\nend\n")
  nvim:lua("require('cursor_agent.files').edited(vim.fn.fnamemodify('a.txt', ':p'))")
  T.eq(in_buffer(nvim), "thé\nend\n")
  nvim:keys("Gomine<Esc>")
  put(nvim, "sant\233\nend\n")
  nvim:lua("require('cursor_agent.files').edited(vim.fn.fnamemodify('a.txt', ':p'))")
  T.eq(in_buffer(nvim), "santé\nend\nmine\n", "both")
  put(nvim, "mis\233re\nend\nother\n")
  nvim:lua("require('cursor_agent.files').edited(vim.fn.fnamemodify('a.txt', ':p'))")
  T.eq(in_buffer(nvim), "santé\nend\nmine\n")
  T.contains(nvim:messages(), "the agent changed a.txt on disk; your unsaved changes are untouched")
  T.eq(nvim:lua("return require('cursor_agent.files.conflicts').list[1].theirs"), { "misére", "end", "other" })
end)

T.case("a write that waits for the user ends with the turn, or with the buffer", OPTS, function(nvim)
  local agent = start(nvim, {
    { write("a.txt", replaced("line 2", "theirs")) },
    { write("a.txt", replaced("line 2", "theirs")) },
    { write("a.txt", replaced("line 2", "once more")) },
  })
  nvim:keys("2GSmine<Esc>")
  nvim:prompt("write", { open = false })
  nvim:wait_screen("where you have unsaved changes")
  nvim:cmd("CursorAgent cancel")
  T.eq(nvim:wait_turns(1).stop_reason, "cancelled")
  T.eq(agent:answers("fs/write_text_file")[1].error.code, -32800)
  T.eq(nvim:lua("return #require('cursor_agent.files.conflicts').list"), 0)
  nvim:prompt("write", { open = false })
  local waits = "#require('cursor_agent.files.conflicts').list == 1"
  nvim:wait(waits, "the second write waits")
  nvim:cmd("bwipeout! a.txt")
  nvim:wait_turns(2)
  T.eq(agent:answers("fs/write_text_file")[2].error, nil)
  T.eq(on_disk(nvim), replaced("line 2", "theirs"))
  nvim:cmd("edit a.txt")
  nvim:keys("2GSmine again<Esc>")
  nvim:prompt("write", { open = false })
  nvim:wait(waits, "the third write waits")
  nvim:cmd("edit!")
  nvim:wait_turns(3)
  T.eq(agent:answers("fs/write_text_file")[3].error, nil)
  T.eq(on_disk(nvim), replaced("line 2", "once more"))
  T.eq(in_buffer(nvim), on_disk(nvim))
end)
