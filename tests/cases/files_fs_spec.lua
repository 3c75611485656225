-- What an agent reads and writes through the editor: never stale text, never over what the user typed, never half a file.

local T = require("harness")
local small_disk = require("harness.small_disk")
local files = require("harness.file")

local put, get = files.write, files.read

local TEXT = table.concat(vim.fn.map(vim.fn.range(1, 30), "'line ' . v:val"), "\n") .. "\n"
local OPTS = { width = 120, height = 30, files = { ["a.txt"] = TEXT } }

---@param from string
---@param to string
---@param text string?
---@return string
local function replaced(from, to, text)
  return ((text or TEXT):gsub(vim.pesc(from) .. "\n", to .. "\n"))
end

---@param fields table?
---@return table
local function read(fields)
  local params = vim.tbl_extend("force", { sessionId = "${session}", path = "${cwd}/a.txt" }, fields or {})
  return { request = { method = "fs/read_text_file", params = params } }
end

---@param text string
---@return table
local function write(text)
  local params = { sessionId = "${session}", path = "${cwd}/a.txt", content = text }
  return { request = { method = "fs/write_text_file", params = params } }
end

---@param text string
---@return table
local function on_disk(text)
  return { write_file = { path = "a.txt", text = text } }
end

---@param nvim harness.Child
---@return string
local function in_buffer(nvim)
  return table.concat(nvim:lua("return vim.api.nvim_buf_get_lines(vim.fn.bufnr('a.txt'), 0, -1, false)"), "\n") .. "\n"
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

T.case("stale: a file changed on disk is read as it is there, and not put back by a write", OPTS, function(nvim)
  local changed = replaced("line 20", "formatted")
  local agent = start(nvim, {
    { on_disk(changed), read(), write(replaced("line 2", "theirs", changed)) },
    -- What it has read is not what is there any more: both are kept.
    {
      read(),
      on_disk(replaced("line 20", "sed")),
      write(replaced("line 9", "last", replaced("line 2", "theirs", changed))),
    },
    -- The same lines: it has to look again.
    { read(), on_disk(replaced("line 2", "sed")), write(replaced("line 2", "never")) },
  })
  nvim:prompt("one", { open = false })
  nvim:wait_turns(1)
  T.eq(agent:answers("fs/read_text_file")[1].result.content, changed)
  T.eq(get(nvim.work .. "/a.txt"), replaced("line 2", "theirs", changed))
  T.eq(in_buffer(nvim), get(nvim.work .. "/a.txt"))
  nvim:prompt("two", { open = false })
  nvim:wait_turns(2)
  T.eq(get(nvim.work .. "/a.txt"), replaced("line 9", "last", replaced("line 20", "sed")))
  nvim:prompt("three", { open = false })
  nvim:wait_turns(3)
  local answers = agent:answers("fs/write_text_file")
  T.contains(answers[#answers].error.message, "has changed since you read it; read it again")
  T.eq(get(nvim.work .. "/a.txt"), replaced("line 2", "sed"))
  nvim:wait(function()
    return in_buffer(nvim) == replaced("line 2", "sed")
  end, "the buffer to follow")
  T.eq(nvim:lua("return vim.bo.modified"), false)
end)

T.case("stale: a file that was deleted is not there, and can be made again", OPTS, function(nvim)
  local agent = start(nvim, { { read(), write("new\n"), read(), write("newer\n") } })
  assert(vim.uv.fs_unlink(nvim.work .. "/a.txt"))
  nvim:prompt("write", { open = false })
  nvim:wait_turns(1)
  local reads, writes = agent:answers("fs/read_text_file"), agent:answers("fs/write_text_file")
  T.eq(reads[1].error.code, -32002, "there is no such file")
  T.eq({ writes[1].error, writes[2].error }, {})
  T.eq(reads[2].result.content, "new\n")
  T.eq(get(nvim.work .. "/a.txt"), "newer\n")
  T.eq(in_buffer(nvim), "newer\n")
  T.eq(nvim:lua("return vim.bo.modified"), false)
end)

T.case("stale: beside unsaved text, what the disk has gained is no line the user removed", OPTS, function(nvim)
  local gained = replaced("line 20", "line 20\ngained")
  local agent = start(nvim, { { on_disk(gained), write(replaced("line 10", "theirs", gained)) } })
  nvim:keys("2GSmine<Esc>")
  nvim:prompt("write", { open = false })
  nvim:wait_turns(1)
  T.eq(agent:answers("fs/write_text_file")[1].error, nil)
  local all = replaced("line 2", "mine", replaced("line 10", "theirs", gained))
  T.eq(in_buffer(nvim), all)
  T.eq(get(nvim.work .. "/a.txt"), all)
end)

T.case("stale: unsaved text is read with what the disk has gained", OPTS, function(nvim)
  local gained = replaced("line 20", "line 20\ngained")
  local agent = start(nvim, { { on_disk(gained), read(), read({ line = 21, limit = 1 }) } })
  nvim:keys("2GSmine<Esc>")
  nvim:prompt("read", { open = false })
  nvim:wait_turns(1)
  local reads = agent:answers("fs/read_text_file")
  T.eq(reads[1].result.content, replaced("line 2", "mine", gained))
  T.eq(reads[2].result.content, "gained\n")
  T.eq(get(nvim.work .. "/a.txt"), gained)
end)

T.case("stale: an agent that read the unsaved text does not lose what the disk has gained", OPTS, function(nvim)
  local gained = replaced("line 20", "line 20\ngained")
  start(nvim, { { read(), on_disk(gained), write(replaced("line 10", "theirs", replaced("line 2", "mine"))) } })
  nvim:keys("2GSmine<Esc>")
  nvim:prompt("write", { open = false })
  nvim:wait_turns(1)
  T.eq(get(nvim.work .. "/a.txt"), replaced("line 2", "mine", replaced("line 10", "theirs", gained)))
end)

T.case("stale: the same in a file whose lines end in a carriage return", OPTS, function(nvim)
  local function mac(text)
    return (text:gsub("\n", "\r"))
  end
  local gained = replaced("line 20", "line 20\ngained")
  local agent = T.agent({
    profile = "plain",
    turns = { { on_disk(mac(gained)), write(replaced("line 10", "theirs", gained)) } },
  })
  nvim:use(agent)
  put(nvim.work .. "/a.txt", mac(TEXT))
  nvim:cmd("set fileformats=unix,dos,mac")
  nvim:cmd("edit a.txt")
  nvim:keys("2GSmine<Esc>")
  nvim:prompt("write", { open = false })
  nvim:wait_turns(1)
  local all = replaced("line 2", "mine", replaced("line 10", "theirs", gained))
  T.eq(in_buffer(nvim), all)
  T.eq(get(nvim.work .. "/a.txt"), mac(all))
end)

T.case("served: a part of the text, or what was typed since, is no ground to replace the whole", OPTS, function(nvim)
  local agent = start(nvim, {
    { read({ line = 2, limit = 1 }), write(replaced("line 2", "theirs")) },
    { read(), { wait_cancel = true } },
    { write(replaced("line 2", "theirs")) },
  })
  nvim:keys("2GSmine<Esc>")
  nvim:prompt("write", { open = false })
  local waits = "#require('cursor_agent.files.conflicts').list == 1"
  nvim:wait(waits, "the write waits")
  T.eq(agent:answers("fs/read_text_file")[1].result.content, "mine\n")
  T.eq(in_buffer(nvim), replaced("line 2", "mine"))
  nvim:cmd("CursorAgent cancel")
  nvim:wait_turns(1)
  nvim:prompt("read", { open = false })
  nvim:wait(function()
    return #agent:answers("fs/read_text_file") == 2
  end, "the read")
  nvim:cmd("CursorAgent cancel")
  nvim:wait_turns(2)
  nvim:keys("2GSmine once more<Esc>")
  nvim:prompt("write", { open = false })
  nvim:wait(waits, "the write waits")
  T.eq(in_buffer(nvim), replaced("line 2", "mine once more"))
  nvim:cmd("CursorAgent cancel")
  nvim:wait_turns(3)
end)

T.case("served: what one session has read is nothing another one knows", OPTS, function(nvim)
  local agent = T.agent({
    profile = "plain",
    on = {
      ["session/prompt"] = {
        { read(), { stop = "end_turn" } },
        { write(replaced("line 2", "theirs")), { stop = "end_turn" } },
      },
      ["session/new"] = { { { reply = { sessionId = "one" } } }, { { reply = { sessionId = "two" } } } },
    },
  })
  nvim:use(agent)
  nvim:cmd("edit a.txt")
  nvim:keys("2GSmine<Esc>")
  nvim:prompt("read", { open = false })
  nvim:wait_turns(1)
  nvim:lua("require('cursor_agent').new({ open = false })")
  nvim:wait("#require('cursor_agent.chat.registry').all() == 2", "a second session")
  nvim:lua(
    "require('cursor_agent').prompt('write', { open = false, session = require('cursor_agent.chat.registry').all()[2].key })"
  )
  nvim:wait("#require('cursor_agent.files.conflicts').list == 1", "the write waits")
  T.eq(nvim:lua("return vim.fn.getbufline('a.txt', 2)[1]"), "mine")
end)

T.case("a write in an encoding that lacks a character is an error, and changes nothing", OPTS, function(nvim)
  local agent = T.agent({ profile = "plain", turns = { { write("20 €\n") }, { write("thé\n") } } })
  nvim:use(agent)
  put(nvim.work .. "/a.txt", "caf\233\n")
  nvim:cmd("edit a.txt")
  T.eq(nvim:lua("return vim.bo.fileencoding"), "latin1")
  nvim:prompt("write", { open = false })
  nvim:wait_turns(1)
  T.contains(
    agent:answers("fs/write_text_file")[1].error.message,
    "line 1 has characters that cannot be written in latin1"
  )
  T.eq(get(nvim.work .. "/a.txt"), "caf\233\n")
  T.eq(nvim:lua("return { vim.bo.modified, vim.fn.getline(1), vim.fn.line('$') }"), { false, "café", 1 })
  nvim:prompt("write", { open = false })
  nvim:wait_turns(2)
  T.eq(get(nvim.work .. "/a.txt"), "th\233\n")
end)

T.case("a read-only file or buffer is not written, and the agent gets an error", OPTS, function(nvim)
  local agent = start(nvim, { { write("theirs\n") }, { write("theirs\n") }, { write("theirs\n") } })
  assert(vim.uv.fs_chmod(nvim.work .. "/a.txt", 292))
  nvim:prompt("write", { open = false })
  nvim:wait_turns(1)
  T.contains(agent:answers("fs/write_text_file")[1].error.message, "read-only")
  assert(vim.uv.fs_chmod(nvim.work .. "/a.txt", 420))
  nvim:cmd("setlocal readonly")
  nvim:keys("2GSmine<Esc>u")
  nvim:prompt("write", { open = false })
  nvim:wait_turns(2)
  T.contains(agent:answers("fs/write_text_file")[2].error.message, "read-only")
  T.eq(get(nvim.work .. "/a.txt"), TEXT)
  T.eq(in_buffer(nvim), TEXT)
  T.eq(nvim:lua("return { vim.bo.modified, vim.bo.readonly }"), { false, true })
  nvim:cmd("setlocal noreadonly")
  nvim:prompt("write", { open = false })
  nvim:wait_turns(3)
  T.eq(get(nvim.work .. "/a.txt"), "theirs\n")
end)

T.case("a file that cannot be backed up is not written, and the agent gets an error", OPTS, function(nvim)
  local agent = start(nvim, { { write("theirs\n") } })
  -- `:write!` would write without one.
  nvim:cmd("set backupcopy=yes backupdir=/proc/none")
  nvim:prompt("write", { open = false })
  nvim:wait_turns(1)
  T.contains(agent:answers("fs/write_text_file")[1].error.message, "ackup file")
  T.eq(get(nvim.work .. "/a.txt"), TEXT)
  T.eq(in_buffer(nvim), TEXT)
  T.eq(nvim:lua("return vim.bo.modified"), false)
end)

for _, copy in ipairs({ "auto", "yes", "no", "auto,breaksymlink,breakhardlink" }) do
  T.case("links of an open file are kept with 'backupcopy' " .. copy, OPTS, function(nvim)
    local link = { sessionId = "${session}", path = "${cwd}/link.txt", content = "through the link\n" }
    local agent = T.agent({
      profile = "plain",
      turns = { { write("theirs\n") }, { { request = { method = "fs/write_text_file", params = link } } } },
    })
    nvim:use(agent)
    assert(vim.uv.fs_link(nvim.work .. "/a.txt", nvim.work .. "/hard.txt"))
    assert(vim.uv.fs_symlink("a.txt", nvim.work .. "/link.txt"))
    nvim:cmd("set backupcopy=" .. copy)
    nvim:cmd("edit a.txt")
    nvim:prompt("write", { open = false })
    nvim:wait_turns(1)
    T.eq(get(nvim.work .. "/hard.txt"), "theirs\n")
    nvim:cmd("bwipeout | edit link.txt")
    nvim:prompt("write", { open = false })
    nvim:wait_turns(2)
    T.eq(get(nvim.work .. "/hard.txt"), "through the link\n")
    T.eq(assert(vim.uv.fs_lstat(nvim.work .. "/link.txt")).type, "link")
    T.eq(nvim:lua("return vim.o.backupcopy"), copy)
    for _, answer in ipairs(agent:answers("fs/write_text_file")) do
      T.eq(answer.error, nil)
    end
  end)
end

for _, how in ipairs({ "as it is", "without backups" }) do
  T.case("a full disk leaves the file and the buffer as they were: " .. how, OPTS, function(nvim)
    local dir = nvim.work .. "/small"
    small_disk(nvim, dir, function(fill)
      put(dir .. "/a.txt", TEXT)
      local params =
        { sessionId = "${session}", path = dir .. "/a.txt", content = ("x"):rep(70):rep(2000, "\n") .. "\n" }
      local step = { request = { method = "fs/write_text_file", params = params } }
      local agent = T.agent({ profile = "plain", turns = { {}, { step }, { step } } })
      nvim:use(agent)
      nvim:prompt("warm up", { open = false })
      nvim:wait_turns(1)
      if how == "without backups" then
        nvim:cmd("set nobackup nowritebackup")
      end
      nvim:cmd("edit small/a.txt")
      nvim:keys("2GSmine<Esc>:write<CR>")
      fill()
      nvim:prompt("write", { open = false })
      nvim:wait_turns(2)
      T.ok(agent:answers("fs/write_text_file")[1].error, "the agent gets an error")
      T.eq(get(dir .. "/a.txt"), replaced("line 2", "mine"))
      T.eq(nvim:lua("return vim.fn.readdir(...)", dir), { "a.txt" })
      T.eq(nvim:lua("return { vim.bo.modified, vim.fn.line('$') }"), { false, 30 })
      nvim:keys("u")
      T.eq(nvim:lua("return { vim.bo.modified, vim.fn.getline(2) }"), { true, "line 2" }, "undo goes on where it was")
      nvim:prompt("write", { open = false })
      nvim:wait("#require('cursor_agent.files.conflicts').list == 1", "the conflict")
      nvim:cmd("CursorAgent cancel")
      nvim:wait_turns(3)
      T.eq(nvim:lua("return vim.fn.getline(2)"), "line 2")
      T.eq(get(dir .. "/a.txt"), replaced("line 2", "mine"))
    end)
  end)
end

T.case("an open file that became a pipe stops nothing", OPTS, function(nvim)
  local report = { sessionUpdate = "tool_call", toolCallId = "e", title = "Edit", kind = "edit", status = "completed" }
  report.locations = { { path = "${cwd}/a.txt" } }
  local agent = start(nvim, { { { update = report }, read(), write("theirs\n") } })
  assert(vim.uv.fs_unlink(nvim.work .. "/a.txt"))
  T.eq(vim.system({ "mkfifo", nvim.work .. "/a.txt" }):wait().code, 0)
  nvim:prompt("edit", { open = false })
  nvim:wait_turns(1)
  T.contains(agent:answers("fs/read_text_file")[1].error.message, "not a regular file")
  T.contains(agent:answers("fs/write_text_file")[1].error.message, "not a regular file")
  nvim:api("nvim_ui_set_focus", true)
  nvim:cmd("checktime")
  T.eq(in_buffer(nvim), TEXT)
  T.contains(nvim:messages():gsub("\n", " "), "no longer a regular file")
end)

T.case("files in no buffer keep their encoding, or are refused with a reason", OPTS, function(nvim)
  ---@param path string
  ---@param fields table?
  ---@return table
  local function fs(path, fields)
    local method = fields and fields.content and "fs/write_text_file" or "fs/read_text_file"
    local params = vim.tbl_extend("force", { sessionId = "${session}", path = "${cwd}/" .. path }, fields or {})
    return { request = { method = method, params = params } }
  end
  local agent = T.agent({
    profile = "plain",
    turns = {
      {
        fs("latin1"),
        fs("utf16"),
        fs("binary"),
        fs("big"),
        fs("big", { line = 1, limit = 1 }),
        fs("japanese"),
        fs("latin1", { content = "thé\r\n" }),
        fs("utf16", { content = "€\n" }),
        fs("binary", { content = "text\n" }),
        fs("japanese", { content = "本\n" }),
        fs("latin1", { content = "20 €\n" }),
        fs("link", { content = "text\n" }),
      },
    },
  })
  nvim:use(agent)
  nvim:cmd("set fileencodings=ucs-bom,utf-8,cp932,latin1")
  put(nvim.work .. "/latin1", "caf\233\r\n\240\n")
  put(nvim.work .. "/utf16", "\255\254a\0\n\0")
  put(nvim.work .. "/binary", "\127ELF\0\0\1")
  put(nvim.work .. "/japanese", "\147\250\n")
  put(nvim.work .. "/big", "first\n" .. ("x"):rep(1023) .. "\n")
  T.eq(vim.system({ "truncate", "-s", "600M", nvim.work .. "/big" }):wait().code, 0)
  assert(vim.uv.fs_symlink(nvim.work .. "/nowhere", nvim.work .. "/link"))
  nvim:prompt("go", { open = false })
  nvim:wait_turns(1)
  local read_, wrote = agent:answers("fs/read_text_file"), agent:answers("fs/write_text_file")
  T.eq(read_[1].result.content, "café\r\nð\n")
  T.eq(read_[2].result.content, "a\n")
  T.contains(read_[3].error.message, "not a text file")
  T.contains(read_[4].error.message, "read a part of it with line and limit")
  T.eq(read_[5].result.content, "first\n")
  T.eq(read_[6].result.content, "日\n")
  T.eq(get(nvim.work .. "/latin1"), "th\233\r\n")
  T.eq(get(nvim.work .. "/utf16"), "\255\254\172\32\n\0")
  T.contains(wrote[3].error.message, "nothing was written")
  T.eq(get(nvim.work .. "/binary"), "\127ELF\0\0\1")
  T.eq(get(nvim.work .. "/japanese"), "\150\123\n")
  T.contains(wrote[5].error.message, "has no “€”")
  T.eq(assert(vim.uv.fs_lstat(nvim.work .. "/link")).type, "link", "a link stays one")
  T.eq(get(nvim.work .. "/nowhere"), "text\n", "and the text is where it leads")
end)
