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
  nvim:wait_screen("Nothing is undecided")
  nvim:keys(":CursorAgent review<CR>")
  nvim:wait_screen("nothing is undecided")
end)
