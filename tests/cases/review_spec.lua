-- What an agent changed on disk: shown in the code, kept and undone by keys, and gone back to.

local T = require("harness")

---@return string[]
local function numbered()
  local lines = {}
  for i = 1, 30 do
    lines[i] = "line " .. i
  end
  return lines
end

local OLD = table.concat(numbered(), "\n") .. "\n"

---@param changes table<integer, string>
---@return string
local function changed(changes)
  local lines = numbered()
  for i, text in pairs(changes) do
    lines[i] = text
  end
  return table.concat(lines, "\n") .. "\n"
end

---A turn that writes a file on disk and tells of it, as Cursor does.
---@param path string
---@param old string
---@param new string
---@return table[]
local function edit(path, old, new)
  return {
    { write_file = { path = path, text = new } },
    {
      update = {
        sessionUpdate = "tool_call",
        toolCallId = "edit-" .. path .. "-" .. #new,
        title = "Edit " .. path,
        kind = "edit",
        status = "completed",
        content = { { type = "diff", path = path, oldText = old, newText = new } },
      },
    },
  }
end

local TWO = { [5] = "five", [25] = "twenty-five" }

---@param nvim table
---@return string[]
local function hunks(nvim)
  return nvim:lua([[
    return vim.tbl_map(function(hunk)
      return ("%s %d+%d %d+%d"):format(vim.fs.basename(hunk.path), hunk.old.line, hunk.old.count, hunk.new.line, hunk.new.count)
    end, require("cursor_agent").hunks())
  ]])
end

---@param nvim table
---@param name string
---@return string
local function disk(nvim, name)
  return nvim:lua(("return table.concat(vim.fn.readfile(%q, 'b'), string.char(10))"):format(name))
end

---@param nvim table
---@param turns table[][]
local function start(nvim, turns)
  nvim:use(T.agent({ turns = turns }))
  nvim:cmd("edit a.txt")
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  nvim:prompt("edit it")
  nvim:wait_turns(1)
end

T.case("a change costs the same however many files have changed", { width = 120, files = {} }, function(nvim)
  local turn = {} ---@type table[]
  for i = 1, 30 do
    vim.list_extend(turn, edit(("f%d.txt"):format(i), "", "new\n"))
  end
  nvim:use(T.agent({ turns = { turn } }))
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  nvim:lua([[
    local library = require("cursor_agent.bridge.native").peek()
    local list = library.review_files
    _G.listed = 0
    library.review_files = function(...)
      _G.listed = _G.listed + 1
      return list(...)
    end
  ]])
  nvim:prompt("edit them")
  nvim:wait_turns(1)
  nvim:wait("#require('cursor_agent').hunks() == 30", "30 hunks")
  T.ok(nvim:lua("return _G.listed") < 5, "all files are listed for each that changed")
end)

T.case(
  "shows hunks in the code, keeps one and undoes the other by keys",
  { width = 120, files = { ["a.txt"] = OLD } },
  function(nvim)
    start(nvim, { edit("a.txt", OLD, changed(TWO)) })
    nvim:wait("#require('cursor_agent').hunks() == 2", "both hunks")
    T.eq(hunks(nvim), { "a.txt 5+1 5+1", "a.txt 25+1 25+1" })
    nvim:cmd("stopinsert | wincmd t")
    nvim:wait_screen("− line 5")
    nvim:keys("gg]h")
    T.eq(nvim:lua("return vim.fn.line('.')"), 5)
    nvim:wait_screen("hunk 1/2")
    nvim:keys("<M-k>")
    nvim:wait("#require('cursor_agent').hunks() == 1", "one was kept")
    T.ok(not nvim:sees("− line 5"), "a kept hunk is not shown")
    nvim:keys("]h")
    T.eq(nvim:lua("return vim.fn.line('.')"), 25)
    nvim:keys("<M-u>")
    nvim:wait("#require('cursor_agent').hunks() == 0", "the other was undone")
    T.eq(disk(nvim, "a.txt"), changed({ [5] = "five" }))
    T.eq(nvim:lua("return { vim.fn.getline(25), vim.bo.modified }"), { "line 25", false })
    T.eq(nvim:lua("return vim.fn.maparg(']h', 'n')"), "", "the keys are there only where there are hunks")
  end
)

T.case(
  "undo brings back lines on disk and leaves unsaved ones unsaved",
  { width = 120, files = { ["a.txt"] = OLD } },
  function(nvim)
    start(nvim, { edit("a.txt", OLD, changed(TWO)) })
    nvim:wait("#require('cursor_agent').hunks() == 2", "both hunks")
    nvim:cmd("stopinsert | wincmd t")
    nvim:wait_screen("− line 5")
    nvim:keys("ggOmine<Esc>")
    nvim:wait("require('cursor_agent').hunks()[1].new.line == 6", "the hunks moved")
    T.eq(nvim:lua("return require('cursor_agent').undo({ all = true })"), 2)
    T.eq(disk(nvim, "a.txt"), OLD)
    T.eq(nvim:lua("return { vim.fn.getline(1), vim.fn.getline(6), vim.bo.modified }"), { "mine", "line 5", true })
    nvim:cmd("write")
    T.eq(disk(nvim, "a.txt"), "mine\n" .. OLD)
  end
)

T.case("undoes what is in no buffer, new and deleted files and what a command did", {
  width = 120,
  files = { ["a.txt"] = "a\n", ["gone.txt"] = "gone\n", ["b.txt"] = "b\n" },
}, function(nvim)
  start(nvim, {
    {
      { write_file = { path = "b.txt", text = "B\n" } },
      { write_file = { path = "new.txt", text = "new\n" } },
      { remove_file = "gone.txt" },
      {
        update = {
          sessionUpdate = "tool_call",
          toolCallId = "run",
          title = "`make`",
          kind = "execute",
          status = "completed",
          rawInput = { command = "make" },
        },
      },
    },
  })
  nvim:wait("#require('cursor_agent').hunks() == 3", "three files")
  T.eq(hunks(nvim), { "b.txt 1+1 1+1", "gone.txt 1+1 0+0", "new.txt 0+0 1+1" })
  T.eq(nvim:lua("return require('cursor_agent').undo({ all = true })"), 3)
  T.eq(disk(nvim, "b.txt"), "b\n")
  T.eq(disk(nvim, "gone.txt"), "gone\n")
  T.eq(nvim:lua("return vim.uv.fs_stat('new.txt')"), nil)
end)

T.case(
  "goes back to the files before a prompt, and forth again",
  { width = 120, files = { ["a.txt"] = OLD } },
  function(nvim)
    start(nvim, { edit("a.txt", OLD, changed({ [1] = "one" })), edit("a.txt", changed({ [1] = "one" }), changed(TWO)) })
    nvim:wait("#require('cursor_agent').checkpoints() == 1", "the first checkpoint")
    nvim:prompt("and again")
    nvim:wait_turns(2)
    nvim:wait("#require('cursor_agent').checkpoints() == 2", "the second checkpoint")
    local done = nvim:lua([[
    local api = require("cursor_agent")
    local done = api.restore(api.checkpoints()[2].id)
    return { vim.fs.basename(done.restored[1]), #done.kept, vim.fn.getbufline("a.txt", 1)[1] }
  ]])
    T.eq(done, { "a.txt", 0, "line 1" })
    T.eq(disk(nvim, "a.txt"), OLD)
    nvim:lua("local api = require('cursor_agent') api.restore(api.checkpoints()[1].id)")
    T.eq(disk(nvim, "a.txt"), changed(TWO))
    nvim:lua("vim.fn.writefile({ 'mine' }, 'a.txt')")
    local kept = nvim:lua([[
    local api = require("cursor_agent")
    local points = api.checkpoints()
    local done = api.restore(points[#points].id)
    return { #done.restored, #done.kept }
  ]])
    T.eq(kept, { 0, 1 })
    T.eq(disk(nvim, "a.txt"), "mine\n")
  end
)

T.case(
  "going back keeps lines that were typed before an agent's write saved them",
  { width = 120, files = { ["a.txt"] = OLD, ["b.txt"] = OLD } },
  function(nvim)
    local write = { sessionId = "${session}", path = "${cwd}/a.txt", content = changed(TWO) }
    local turn = { { request = { method = "fs/write_text_file", params = write } } }
    nvim:use(T.agent({ turns = { vim.list_extend(turn, edit("b.txt", OLD, changed(TWO))) } }))
    nvim:cmd("edit a.txt")
    nvim:cmd("CursorAgent")
    nvim:wait_state("idle")
    nvim:cmd("stopinsert | wincmd t")
    nvim:keys("10GOmine<Esc>")
    nvim:lua("require('cursor_agent').prompt('edit it')")
    nvim:wait_turns(1)
    local mine = disk(nvim, "a.txt")
    T.ok(mine:find("mine\n", 1, true), "it was saved with the agent's lines")
    T.eq(hunks(nvim), { "a.txt 5+1 5+1", "a.txt 26+1 26+1", "b.txt 5+1 5+1", "b.txt 25+1 25+1" }, "it is the user's")
    -- Taking a hunk back is no change of the user's.
    T.eq(
      nvim:lua(
        "local agent = require('cursor_agent') return agent.undo({ hunk = agent.hunks({ path = 'b.txt' })[1].id })"
      ),
      1
    )
    nvim:keys(":CursorAgent checkpoint " .. nvim:lua("return require('cursor_agent').checkpoints()[1].id") .. "<CR>")
    nvim:wait("vim.fn.execute('messages'):find('kept, because you changed them since: a.txt', 1, true)", "why")
    T.eq({ disk(nvim, "a.txt"), disk(nvim, "b.txt") }, { mine, OLD })
    nvim:wait_screen("− line 5")
    local done = nvim:lua(
      "local agent = require('cursor_agent') return agent.restore(agent.checkpoints()[2].id, { force = true })"
    )
    T.eq({ #done.restored, #done.kept }, { 1, 0 })
    T.eq({ disk(nvim, "a.txt"), nvim:lua("return vim.fn.getline(10)") }, { OLD, "line 10" })
  end
)

T.case("lists files and hunks beside the code", { width = 120, files = { ["a.txt"] = OLD } }, function(nvim)
  start(nvim, { edit("a.txt", OLD, changed(TWO)) })
  nvim:wait("#require('cursor_agent').hunks() == 2", "both hunks")
  nvim:keys("<Esc>:CursorAgent review<CR>")
  nvim:wait_screen("a.txt  modified  +2 −2")
  T.eq(nvim:lua("return vim.bo.filetype"), "cursoragent-review")
  nvim:keys("G<CR>")
  nvim:wait("vim.fn.expand('%:t') == 'a.txt' and vim.fn.line('.') == 25", "the second hunk")
  nvim:keys("<C-w>p")
  nvim:keys("u")
  nvim:wait("#require('cursor_agent').hunks() == 1", "one was undone")
  nvim:keys("g?")
  nvim:wait_screen("In the list of changes")
  nvim:keys("q")
  nvim:cmd("CursorAgent keep all")
  nvim:wait_screen("No undecided changes")
  nvim:keys(":CursorAgent review<CR>")
  nvim:wait_screen("no undecided changes")
end)

T.case(
  "]h goes on to the next file when the last hunk of one is decided",
  { width = 120, files = { ["a.txt"] = OLD, ["b.txt"] = OLD, ["c.txt"] = "c\n" } },
  function(nvim)
    local turn = edit("a.txt", OLD, changed({ [5] = "five" }))
    vim.list_extend(turn, edit("b.txt", OLD, changed({ [7] = "seven" })))
    start(nvim, { turn })
    nvim:wait("#require('cursor_agent').hunks() == 2", "both hunks")
    nvim:cmd("stopinsert | wincmd t")
    nvim:wait_screen("− line 5")
    nvim:keys("gg]h<M-k>")
    nvim:wait("#require('cursor_agent').hunks() == 1", "one was kept")
    nvim:wait_screen("]h b.txt · 1 left")
    T.eq(nvim:lua("return vim.fn.maparg('<M-k>', 'n')"), "", "there is nothing to keep here")
    nvim:keys("]h")
    nvim:wait("vim.fn.expand('%:t') == 'b.txt' and vim.fn.line('.') == 7", "the other file")
    nvim:wait_screen("− line 7")
    nvim:keys("<M-u>")
    nvim:wait("#require('cursor_agent').hunks() == 0", "the other was undone")
    T.eq(disk(nvim, "b.txt"), OLD)
    for _, name in ipairs({ "a.txt", "b.txt", "c.txt" }) do
      nvim:cmd("edit " .. name)
      T.eq(nvim:lua("return vim.fn.maparg(']h', 'n')"), "", "no key is left in " .. name)
    end
  end
)

T.case(
  "what an agent wrote under unsaved text is merged, shown and undone; the text stays unsaved",
  { width = 120, files = { ["a.txt"] = OLD } },
  function(nvim)
    nvim:use(T.agent({ turns = { edit("a.txt", OLD, changed(TWO)) } }))
    nvim:cmd("edit a.txt")
    nvim:keys("10GSmine<Esc>")
    nvim:prompt("edit it", { open = false })
    nvim:wait_turns(1)
    nvim:wait_screen("− line 5")
    T.eq(hunks(nvim), { "a.txt 5+1 5+1", "a.txt 25+1 25+1" })
    T.eq(nvim:lua("return { vim.fn.getline(5), vim.fn.getline(10), vim.bo.modified }"), { "five", "mine", true })
    T.eq(#nvim:lua("return require('cursor_agent').pending()"), 0)
    nvim:keys("5G<M-u>")
    nvim:wait("#require('cursor_agent').hunks() == 1", "one was undone")
    T.eq(disk(nvim, "a.txt"), changed({ [25] = "twenty-five" }), "what is unsaved is not written")
    T.eq(nvim:lua("return { vim.fn.getline(5), vim.fn.getline(10), vim.bo.modified }"), { "line 5", "mine", true })
    nvim:keys(":write<CR>")
    nvim:wait("not vim.bo.modified", "it to be written")
    T.eq(disk(nvim, "a.txt"), changed({ [10] = "mine", [25] = "twenty-five" }))
    nvim:wait(function()
      -- Until what was just saved has been looked at, it is refused as changed on disk.
      nvim:keys(":CursorAgent undo all<CR>")
      return nvim:lua("return #require('cursor_agent').hunks() == 0")
    end, "all is undone")
    T.eq(disk(nvim, "a.txt"), changed({ [10] = "mine" }))
  end
)

T.case(
  "nothing is undone in a buffer that has yet to be settled with the disk",
  { width = 120, files = { ["a.txt"] = OLD, ["b.txt"] = OLD } },
  function(nvim)
    local turn = edit("a.txt", OLD, changed(TWO))
    vim.list_extend(turn, edit("b.txt", OLD, changed(TWO)))
    nvim:use(T.agent({ turns = { turn } }))
    nvim:cmd("edit a.txt")
    nvim:keys("5GSmine<Esc>")
    nvim:prompt("edit it", { open = false })
    nvim:wait_turns(1)
    nvim:wait("#require('cursor_agent').pending() == 1 and #require('cursor_agent').hunks() == 4", "the conflict")
    local why = nvim:lua("return select(2, require('cursor_agent').undo({ all = true }))")
    T.contains(why, "a.txt: resolve the conflict with your unsaved text first")
    T.eq(disk(nvim, "b.txt"), OLD, "the other file is undone")
    T.eq(nvim:lua("return vim.fn.getline(5)"), "mine")
    nvim:lua("local api = require('cursor_agent') api.answer(api.pending()[1].id, { option = 'mine' })")
    nvim:wait("#require('cursor_agent').hunks() == 0", "nothing of the agent's is left")
    T.eq(nvim:lua("return { vim.fn.getline(5), vim.fn.getline(25), vim.bo.modified }"), { "mine", "line 25", true })
  end
)

T.case(
  "a file that is edited and then deleted while it is open comes back as it was",
  { width = 120, files = { ["a.txt"] = OLD } },
  function(nvim)
    local turn = edit("a.txt", OLD, changed(TWO))
    vim.list_extend(turn, {
      { remove_file = "a.txt" },
      {
        update = {
          sessionUpdate = "tool_call",
          toolCallId = "rm",
          title = "Delete a.txt",
          kind = "delete",
          status = "completed",
          locations = { { path = "${cwd}/a.txt" } },
        },
      },
    })
    start(nvim, { turn })
    nvim:wait("require('cursor_agent').hunks()[1].old.count == 30", "the deletion")
    T.eq(nvim:lua("return require('cursor_agent').undo({ all = true })"), 1)
    T.eq(disk(nvim, "a.txt"), OLD)
    T.eq(nvim:lua("return table.concat(vim.fn.getbufline('a.txt', 1, '$'), string.char(10))") .. "\n", OLD)
    T.eq(nvim:lua("return vim.bo[vim.fn.bufnr('a.txt')].modified"), false)
  end
)

T.case(
  "a checkpoint is compared, and brought back in the files that are chosen, by keys",
  { width = 120, height = 40, files = { ["a.txt"] = OLD, ["b.txt"] = OLD, ["other.txt"] = OLD } },
  function(nvim)
    local turn = edit("a.txt", OLD, changed(TWO))
    vim.list_extend(turn, edit("b.txt", OLD, changed(TWO)))
    local other = assert(vim.uv.fs_stat(nvim.work .. "/other.txt"))
    start(nvim, { turn })
    nvim:wait("#(require('cursor_agent').checkpoints()[1] or { files = {} }).files == 2", "the checkpoint")
    nvim:lua("vim.fn.writefile({ 'mine' }, 'b.txt')")
    nvim:keys("<Esc>:CursorAgent checkpoint<CR>")
    nvim:wait_screen("edit it  (2 files: a.txt, b.txt)")
    nvim:keys("1<CR>")
    nvim:wait_screen("Restore some of the files…")
    nvim:keys("2<CR>")
    nvim:wait("vim.bo.filetype == 'diff'", "the difference")
    nvim:wait_screen("-five")
    nvim:wait_screen("b.txt  (you changed it since; it stays unless you force it)")
    nvim:cmd("tabonly | only")
    nvim:keys(":CursorAgent checkpoint<CR>")
    nvim:wait_screen("edit it  (2 files: a.txt, b.txt)")
    nvim:keys("1<CR>")
    nvim:wait_screen("Restore some of the files…")
    nvim:keys("3<CR>")
    nvim:wait_screen("2: [ ] b.txt  you changed it since")
    nvim:keys("2<CR>")
    nvim:wait_screen("3: [x] b.txt")
    nvim:wait_screen("1: Restore 1 file")
    nvim:keys("1<CR>")
    nvim:wait_screen("restored b.txt")
    nvim:keys("<CR>")
    T.eq(disk(nvim, "b.txt"), OLD, "the chosen file is as it was")
    T.eq(disk(nvim, "a.txt"), changed(TWO), "the other stays")
    T.eq(assert(vim.uv.fs_stat(nvim.work .. "/other.txt")).mtime, other.mtime)
    -- What was there before the restore comes back by the newest checkpoint.
    nvim:lua("local api = require('cursor_agent') api.restore(api.checkpoints()[1].id)")
    T.eq(disk(nvim, "b.txt"), "mine\n")
  end
)

T.case("old checkpoints are removed beyond the limit, with a message", {
  width = 120,
  files = { ["a.txt"] = ("x"):rep(300 * 1024) .. "\n", ["b.txt"] = ("y"):rep(900 * 1024) .. "\n" },
}, function(nvim)
  nvim:use(T.agent({ turns = { edit("a.txt", "x", "X\n"), edit("b.txt", "y", "Y\n") } }), {
    checkpoints = { max_mb = 1 },
  })
  for i, name in ipairs({ "a.txt", "b.txt" }) do
    nvim:cmd("edit " .. name)
    nvim:prompt("edit it", { open = false })
    nvim:wait_turns(i)
  end
  nvim:wait(function()
    return nvim:messages():find("removed the 1 oldest checkpoint", 1, true)
  end, "it to be said")
  T.eq(nvim:lua("return #require('cursor_agent').checkpoints()"), 1)
end)

T.case(
  "an old text is shown where its file was deleted, and comes back by a key",
  { width = 120, files = { ["a.txt"] = "a\n", ["gone.txt"] = "one\ntwo\n" } },
  function(nvim)
    start(nvim, {
      {
        { remove_file = "gone.txt" },
        {
          update = {
            sessionUpdate = "tool_call",
            toolCallId = "rm",
            title = "Delete gone.txt",
            kind = "delete",
            status = "completed",
            locations = { { path = "${cwd}/gone.txt" } },
          },
        },
      },
    })
    nvim:wait("#require('cursor_agent').hunks() == 1", "the deletion")
    nvim:keys("<Esc>:CursorAgent review<CR>")
    nvim:wait_screen("gone.txt  deleted  +0 −2")
    nvim:wait_screen("− two")
    nvim:keys("u")
    nvim:wait("#require('cursor_agent').hunks() == 0", "it to be undone")
    T.eq(disk(nvim, "gone.txt"), "one\ntwo\n")
    T.eq(nvim:lua("return vim.fn.getbufline('gone.txt', 1, '$')"), { "one", "two" })
  end
)

local FOUR = { [3] = "three", [9] = "nine", [15] = "fifteen", [21] = "twenty-one" }

---A turn that makes four changes in each of three files.
---@return table[]
local function edit_three()
  local steps = {}
  for _, path in ipairs({ "a.txt", "b.txt", "c.txt" }) do
    vim.list_extend(steps, edit(path, OLD, changed(FOUR)))
  end
  return steps
end

local THREE = { width = 120, files = { ["a.txt"] = OLD, ["b.txt"] = OLD, ["c.txt"] = OLD } }

T.case("decides a selection, a range, a file and all; goes through files that are not loaded", THREE, function(nvim)
  start(nvim, { edit_three() })
  T.eq(#hunks(nvim), 12, "all of it is known when the turn is over")
  nvim:cmd("stopinsert | wincmd t")
  nvim:wait_screen("− line 3")
  nvim:keys("ggV10G<M-u>")
  nvim:wait("#require('cursor_agent').hunks() == 10", "two undone")
  T.eq(disk(nvim, "a.txt"), changed({ [15] = "fifteen", [21] = "twenty-one" }))
  T.eq(nvim:lua("return vim.api.nvim_get_mode().mode"), "n")
  nvim:keys("14GVG<M-k>")
  nvim:wait("#require('cursor_agent').hunks({ path = 'a.txt' }) == 0", "two kept")
  local function place()
    return nvim:lua("return vim.fn.expand('%:t') .. ':' .. vim.fn.line('.')")
  end
  nvim:keys("]h")
  T.eq(place(), "b.txt:3")
  nvim:keys("[h")
  T.eq(place(), "c.txt:21", "round the end")
  nvim:keys("]h]h]h")
  T.eq(place(), "b.txt:15")
  nvim:cmd("1,9CursorAgent undo")
  T.eq(#hunks(nvim), 6)
  nvim:cmd("CursorAgent keep")
  nvim:cmd("CursorAgent undo file")
  T.eq(disk(nvim, "b.txt"), changed({ [15] = "fifteen" }))
  T.eq(#hunks(nvim), 4)
  nvim:cmd("CursorAgent undo all")
  T.eq(disk(nvim, "c.txt"), OLD)
  T.eq({ hunks(nvim), nvim:messages() }, { {}, "" })
end)

T.case("the list shows the change under its cursor, also in files that are not loaded", THREE, function(nvim)
  start(nvim, { edit_three() })
  nvim:keys("<Esc>:CursorAgent review<CR>")
  nvim:wait("vim.bo.filetype == 'cursoragent-review'", "the list")
  nvim:keys("/c.txt<CR>jj")
  nvim:wait_screen("− line 9")
  -- A key that only moves decides nothing.
  nvim:keys("kj")
  T.eq({ #hunks(nvim), nvim:lua("return vim.bo.filetype") }, { 12, "cursoragent-review" })
  T.eq(nvim:lua("return vim.fn.bufname(vim.fn.winbufnr(1))"), "c.txt")
  nvim:keys("a")
  nvim:wait("#require('cursor_agent').hunks({ path = 'c.txt' }) == 3", "it is kept")
  nvim:keys("<M-u>")
  nvim:wait("#require('cursor_agent').hunks({ path = 'c.txt' }) == 2", "the next is undone")
  T.eq(disk(nvim, "c.txt"), changed({ [3] = "three", [9] = "nine", [21] = "twenty-one" }))
  nvim:keys("<CR>")
  T.eq(nvim:lua("return { vim.fn.expand('%:t'), vim.fn.line('.') }"), { "c.txt", 21 })
end)

T.case("what the user edits away or commits needs no decision", THREE, function(nvim)
  local git = "assert(vim.system({ 'sh', '-c', ... }):wait().code == 0)"
  nvim:lua(git, "git init -q && git add -A && git -c user.name=a -c user.email=a@b commit -qm one")
  start(nvim, { edit_three() })
  nvim:cmd("stopinsert | wincmd t")
  nvim:wait_screen("− line 3")
  nvim:keys("3Gccline 3<Esc>")
  nvim:wait("#require('cursor_agent').hunks({ path = 'a.txt' }) == 3", "it is edited away")
  nvim:wait_screen_without("− line 3")
  nvim:keys(":w<CR>")
  nvim:lua(git, "git -c user.name=a -c user.email=a@b commit -qm two b.txt")
  nvim:wait("#require('cursor_agent').hunks({ path = 'b.txt' }) == 0", "it is committed")
  T.eq(#hunks(nvim), 7)
  nvim:lua(git, "git -c user.name=a -c user.email=a@b commit -qam three")
  nvim:wait("#require('cursor_agent').hunks() == 0", "all of it is")
  nvim:wait_screen_without("− line 9")
  T.eq(nvim:lua("return vim.fn.maparg(']h', 'n')"), "")
end)

T.case("bad options get a message that says what is expected", { files = { ["a.txt"] = OLD } }, function(nvim)
  nvim:lua("assert(require('cursor_agent.bridge').load())")
  for call, said in pairs({
    ["hunks(5)"] = "a table of options",
    ["hunks('x')"] = "a table of options",
    ["hunks({ path = 5 })"] = "path: expected a path",
    ["keep({ hunk = 'x' })"] = "hunk: expected a hunk's id",
    ["keep({ hunk = 1.5 })"] = "hunk: expected a hunk's id",
    ["undo({ hunk = -1 })"] = "hunk: expected a hunk's id",
    ["undo({ all = 'x' })"] = "all: expected true or false",
    ["undo({ path = 'a.txt', lines = { 1 } })"] = "lines: expected the first and the last line",
    ["undo({ turn = 'first' })"] = "turn: expected the number of a turn",
    ["undo({ all = true, session = 'nope' })"] = "unknown session nope",
    ["undo({})"] = "expected { hunk = id }",
    ["undo()"] = "expected { hunk = id }",
    ["restore()"] = "expected a checkpoint's id",
    ["restore({})"] = "expected a checkpoint's id",
    ["restore('x', 5)"] = "a table of options",
    ["restore('x', { files = 'a.txt' })"] = "files: expected a list of paths",
    ["restore('x', { files = { 5 } })"] = "files: expected a list of paths",
    ["restore('x', { force = 5 })"] = "force: expected true or false",
  }) do
    local got = nvim:lua(("local found, why = require('cursor_agent').%s return { found == nil, why }"):format(call))
    T.ok(got[1] == true and got[2]:find(said, 1, true), call .. " said " .. vim.inspect(got))
  end
end)
