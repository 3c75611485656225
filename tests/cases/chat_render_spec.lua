-- Rendering as tables: text and entries in, lines and marks out. No buffer is involved.

local T = require("harness")

vim.opt.runtimepath:prepend(T.root)

local ansi = require("cursor_agent.render.ansi")
local code = require("cursor_agent.chat.code")
local context = require("cursor_agent.prompt.context")
local format = require("cursor_agent.render.format")
local message = require("cursor_agent.render.message")
local places = require("cursor_agent.chat.places")
local render = require("cursor_agent.render")

---Lines of text that came in pieces.
---@param prefix string
---@param pieces string[]
---@return string[] lines
---@return { [1]: integer, [2]: string? }[] blocks
---@return integer soft breaks
local function write(prefix, pieces)
  local tail = message.tail(prefix)
  local lines, blocks, soft = { "" }, {}, 0
  for _, text in ipairs(pieces) do
    local piece = message.append(tail, text)
    local row = #lines
    for _, block in ipairs(piece.blocks) do
      local last = blocks[#blocks]
      if last and last[1] == row + block.row then
        last[2] = block.code
      else
        table.insert(blocks, { row + block.row, block.code })
      end
    end
    lines[row] = lines[row] .. piece.first
    vim.list_extend(lines, piece.rest)
    soft = soft + vim.tbl_count(piece.soft)
  end
  return lines, blocks, soft
end

T.case("streamed text is the same however it is cut", function()
  local text =
    "# Head\r\n\nOne *two*\nthree\n\n```lua\nlocal x\n\nlocal y\n```\n\n    code\n\n- a\n\n  b\n\nend ü€😀"
  local whole, blocks = write("", { text })
  T.eq(whole[1], "# Head")
  T.eq(whole[#whole], "end ü€😀")
  T.eq(
    vim.tbl_map(function(block)
      return { whole[block[1]], block[2] }
    end, blocks),
    { { "# Head" }, { "One *two*" }, { "```lua", "lua" }, { "" }, { "- a" }, { "end ü€😀" } },
    "where a block of markdown begins"
  )
  for size = 1, 9 do
    local pieces = {}
    for at = 1, #text, size do
      pieces[#pieces + 1] = text:sub(at, at + size - 1)
    end
    local lines, again = write("", pieces)
    T.eq(lines, whole, ("in pieces of %d bytes"):format(size))
    T.eq(again, blocks, ("blocks in pieces of %d bytes"):format(size))
  end
end)

T.case("each line has its prefix, empty ones without the space at its end", function()
  T.eq(write("> ", { "a\n\nb" }), { "> a", ">", "> b" })
  T.eq(write("> ", { "a\n", "\n", "b" }), { "> a", ">", "> b" })
  T.eq(write("  ", { "a\n\nb" }), { "  a", "", "  b" })
end)

T.case("empty lines at the end of a text are written when something follows them", function()
  T.eq(write("", { "a\n\n" }), { "a" })
  T.eq(write("", { "a\n", " \r\n", "\n\t" }), { "a" })
  T.eq(write("", { "a\n", " \n", "\n\t", "b\n" }), { "a", " ", "", "\tb" })
  T.eq(write("", { "a ", " \n", "b" }), { "a  ", "b" })
  T.eq(write("", { "\n\n" }), { "" })
  T.eq(write("", { "\n", "\n", " \n  a\n", "\nb" }), { "  a", "", "b" }, "and those at its beginning never are")
end)

T.case("an endless line is broken between characters, and none is lost", function()
  for _, unit in ipairs({ "x", "word ", "ü", "😀" }) do
    local text = unit:rep(20000)
    local lines, _, soft = write("", { text:sub(1, 7), text:sub(8) })
    T.eq(table.concat(lines), text)
    T.eq(soft, #lines - 1)
    for _, line in ipairs(lines) do
      T.ok(#line <= message.MAX_LINE_BYTES, "a line is too long")
      T.ok(vim.str_utf_end(line, #line) == 0, "a character is cut")
    end
  end
end)

T.case("terminal colours become spans", function()
  local function check(line, plain, spans)
    local text, found = ansi.line(line)
    T.eq(text, plain)
    T.eq(
      vim.tbl_map(function(span)
        return { span.from, span.to, span.hl }
      end, found),
      spans
    )
  end
  check("plain", "plain", {})
  check("\27[31mred\27[0m x", "red x", { { 0, 3, "CursorAgentAnsi_1_n_" } })
  check("\27[1;32mok\27[22m!\27[m", "ok!", { { 0, 2, "CursorAgentAnsi_2_n_B" }, { 2, 3, "CursorAgentAnsi_2_n_" } })
  check(
    "\27[38;5;208mo\27[48;2;1;2;3mp",
    "op",
    { { 0, 1, "CursorAgentAnsi_208_n_" }, { 1, 2, "CursorAgentAnsi_208_x010203_" } }
  )
  check("\27[38:5:208mo\27[48:2::1:2:3mp\27[38:2:4:5:6mq", "opq", {
    { 0, 1, "CursorAgentAnsi_208_n_" },
    { 1, 2, "CursorAgentAnsi_208_x010203_" },
    { 2, 3, "CursorAgentAnsi_x040506_x010203_" },
  })
  check("\27[4:3mcurly\27[4:0mnone", "curlynone", { { 0, 5, "CursorAgentAnsi_n_n_U" } })
  check("\27[91mbright\27[39;49m", "bright", { { 0, 6, "CursorAgentAnsi_9_n_" } })
  check("\27]8;;http://x\27\\link\27]8;;\27\\", "link", {})
  check("\27]0;title\7text\27[2K\27[3A", "text", {})
  check("10%\r50%\r100%", "100%", {})
  check("\27[", "", {})
  T.eq(ansi.style("CursorAgentAnsi_208_x010203_BU"), { fg = "208", bg = "#010203", bold = true, underline = true })
end)

---@param tool table
---@param entry? table
---@param options? table
---@return cursor_agent.render.Block
local function draw(tool, entry, options)
  local defaults = { id = "t", title = "", kind = "other", status = "completed", locations = {}, content = {} }
  local whole = vim.tbl_extend("force", { kind = "tool", text = "", done = true, started_ms = 0 }, entry or {})
  whole.tool = vim.tbl_extend("force", defaults, tool)
  local narrow = {
    cwd = "/w",
    icons = require("cursor_agent.render.icons").sets.unicode,
    diff_lines = 4,
    output_lines = 5,
    fold_tools = true,
  }
  local context_of = vim.tbl_extend("force", narrow, options or {}) --[[@as cursor_agent.render.Context]]
  return render.entry(whole --[[@as cursor_agent.Entry]], context_of)
end

T.case("a tool call says what and where in one line", function()
  local function check(tool, line)
    T.eq(draw(tool).lines[1], line)
  end
  check({ title = "Read File", kind = "read", status = "pending" }, "· Read   File")
  check({ title = "Read File", kind = "read", locations = { { path = "/w/a.lua", line = 3 } } }, "✓ Read   a.lua:3")
  check(
    { title = "Reading lines 1-9", kind = "read", locations = { { path = "/w/a.lua" } } },
    "✓ Read   a.lua  Reading lines 1-9"
  )
  check({ title = "`ls -l`", kind = "execute", exit_code = 0 }, "✓ Run    ls -l")
  check({ title = "Terminal", kind = "execute", command = "ls\nrm x" }, "✓ Run    ls …")
  check({ title = "`ls`", kind = "execute", exit_code = 2 }, "✗ Run    ls  exit 2")
  check({ title = "`ls`", kind = "execute", signal = "SIGKILL" }, "✗ Run    ls  SIGKILL")
  check({ title = "x", status = "in_progress" }, "… Tool   x")
  check({ title = "x", status = "cancelled" }, "– Tool   x")
  check({ title = "x", status = "completed", rejected = true }, "– Tool   x")
  check({ title = "x", status = "failed", rejected = true }, "– Tool   x")
  check({ title = "x", decision = 3, status = "pending" }, "● Tool   x")
  check({ title = "brand new", kind = "juggle" }, "✓ Tool   brand new")
  check({ title = "x", task = { description = "Look", subagent = "explore" } }, "✓ Task   Look  explore")
end)

T.case("long output keeps its ends and says how much is left out", function()
  local text = table.concat(vim.fn.range(1, 20), "\n")
  local block = draw({ kind = "execute", title = "`seq 20`", content = { { type = "text", text = text } } })
  T.eq(
    block.lines,
    { "✓ Run    seq 20", "  │ 1", "  │ 2", "  │ 3", "  │ ▸ 15 more lines", "  │ 19", "  │ 20" }
  )
  T.eq(block.targets[4], { output = true })
  T.eq(block.closed, true)
  local preview = { type = "text", head = { "1", "2", "3", "4", "5", "6" }, tail = { "19", "20" }, lines = 20 }
  T.eq(draw({ kind = "execute", title = "`seq 20`", content = { preview } }).lines, block.lines, "of a preview")
  local read = draw({ kind = "read", title = "x", content = { preview } })
  T.eq(read.lines, { "✓ Read   x", "  │ 1", "  │ 2", "  │ 3", "  │ 4", "  │ 5", "  │ ▸ 15 more lines" })
  T.eq(draw({ status = "failed", content = { preview } }).closed, false, "what failed is open")
  T.eq(draw({ content = { preview } }, nil, { fold_tools = false }).closed, false)
  T.eq(draw({ title = "x" }).closed, nil, "without details there is nothing to fold")
end)

T.case("a diff has numbers, targets and its code in both versions", function()
  local block = draw({
    kind = "edit",
    title = "Edit a.lua",
    content = {
      {
        type = "diff",
        path = "/w/a.lua",
        added = 2,
        removed = 1,
        hunks = {
          { old = 9, new = 9, lines = { { " ", "a" }, { "-", "b" }, { "+", "B" }, { "+", "C" }, { " ", "d" } } },
        },
      },
    },
  })
  T.eq(block.lines, {
    "✓ Edit   a.lua  +2 -1",
    "  │  9   a",
    "  │ 10 - b",
    "  │ 10 + B",
    "  │ 11 + C",
    "  │ ▸ 1 line more",
  })
  T.eq(block.targets[0], { path = "/w/a.lua", line = 9 })
  T.eq(block.targets[2], { path = "/w/a.lua", line = 10 })
  T.eq(block.targets[4], { path = "/w/a.lua", line = 11 })
  T.eq(block.code[1].text, { "a", "B", "C" })
  T.eq(block.code[2].text, { "a", "b" })
  T.eq(block.closed, false, "an edit stays open")
end)

T.case("empty lines without end cost what they are", function()
  local tail = message.tail("")
  message.append(tail, "text")
  -- Of a hundred at a time, among the last of them, what took least: what a busy machine adds to the others is not meant.
  local least = math.huge
  for hundred = 1, 200 do
    local began = vim.uv.hrtime()
    for _ = 1, 100 do
      T.eq(message.append(tail, "\n").rest, {})
    end
    least = hundred > 150 and math.min(least, vim.uv.hrtime() - began) or least
  end
  T.ok(least < 10e6, ("%.1f ms for a hundred of them"):format(least / 1e6))
  T.eq(#message.append(tail, "more").rest, 20000)
end)

T.case("the width of a text is the same in every window", function(nvim)
  nvim:cmd("vsplit | vertical resize 20 | setlocal wrap linebreak breakindent tabstop=4")
  local widths = nvim:lua(
    [[
    return vim.tbl_map(require("cursor_agent.render.format").width, { ... })
  ]],
    "  a text that is longer than the window",
    "a\tb",
    "",
    "ü漢😀",
    "a\0b"
  )
  T.eq(widths, { 39, 9, 0, 5, 4 })
end)

T.case("numbers as people read them", function()
  T.eq(format.duration(340), "0.3s")
  T.eq(format.duration(42400), "42s")
  T.eq(format.duration(62000), "1:02")
  T.eq(format.clock(3661000), "1:01:01")
  T.eq(format.count(999), "999")
  T.eq(format.count(12345), "12.3k")
  T.eq(format.count(2000000), "2M")
  T.eq(format.path("/w/src/a", "/w"), "src/a")
  T.eq(format.path("/wide/a", "/w"), "/wide/a")
  T.eq(format.first_line("\n one\ntwo", 20), "one …")
  T.eq(format.first_line(("ü"):rep(30), 5), "üüüü…")
end)

T.case("mentions are found where they are meant", function()
  T.eq(context.mentions("@a.lua and @src/b.lua:3-9, (not me@example.org) `@code` @{with space.md}."), {
    "with space.md",
    "a.lua",
    "src/b.lua:3-9",
  })
  T.eq(context.mentions("```\n@x\n```\n@diff"), { "diff" })
end)

T.case("what a line names is found under the cursor", function()
  ---One of the things the text may name is this; the disk says which.
  local function check(line, mark, target)
    local found = places.at(line, (line:find(mark, 1, true)) - 1)
    for _, place in ipairs(found) do
      if vim.deep_equal(place, target) then
        return
      end
    end
    T.eq(found, { target }, line)
  end
  check("error at src/a.rs:12:9 here", "a.rs", { path = "src/a.rs", line = 12 })
  check("error at src/a.rs:12:9: here", "a.rs", { path = "src/a.rs", line = 12 })
  check("src/a.rs(12,9): error", "a.rs", { path = "src/a.rs", line = 12 })
  check("see src/a.rs#L7-L9.", "a.rs", { path = "src/a.rs", line = 7 })
  check("see src/a.rs:3-9, too", "a.rs", { path = "src/a.rs", line = 3 })
  check("see `src/a.rs` too", "src", { path = "src/a.rs" })
  check("see **src/a.rs:3** too", "src", { path = "src/a.rs", line = 3 })
  check("see (@src/a.rs).", "src", { path = "src/a.rs" })
  check("see src/あ.rs:2", "src", { path = "src/あ.rs", line = 2 })
  check("  │ src/│あ.rs:2", "あ", { path = "あ.rs", line = 2 })
  check("see app/(group)/[id].tsx too", "[id]", { path = "app/(group)/[id].tsx" })
  check("see `my dir/a b.rs:3` too", "b.rs", { path = "my dir/a b.rs", line = 3 })
  check('see "my dir/a b.rs" too', "b.rs", { path = "my dir/a b.rs" })
  check("see file:///w/a%20b.rs#L3", "a%20b", { path = "/w/a b.rs", line = 3 })
  check("[the parser](src/a.lua#L3) it is", "parser", { path = "src/a.lua", line = 3 })
  check("[a](src/a.lua:3) it is", "a", { path = "src/a.lua", line = 3 })
  check("[a](<my dir/a.lua>) it is", "a]", { path = "my dir/a.lua" })
  check("[a](my%20dir/a.lua) it is", "a]", { path = "my dir/a.lua" })
  check("[a](file:///w/a%20b.lua#L3) it is", "a]", { path = "/w/a b.lua", line = 3 })
  check("go to https://example.org/x.", "https", { url = "https://example.org/x" })
  check("[docs](https://example.org)", "docs", { url = "https://example.org" })
  check("```12:15:src/a.rs", "src", { path = "src/a.rs", line = 12 })
  T.eq(places.at("[top](#top)", 1), {}, "a place in the text itself")
end)

T.case("the code block around a line", function()
  local lines = { "text", "```lua", "a", "```", "", "~~~~", "```", "b", "~~~~", "```sh", "open" }
  T.eq({ code.block_at(lines, 3) }, { 3, 3, "" })
  T.eq({ code.block_at(lines, 2) }, { 3, 3, "" })
  T.eq({ code.block_at(lines, 5) }, {})
  T.eq({ code.block_at(lines, 8) }, { 7, 8, "" })
  T.eq({ code.block_at(lines, 11) }, { 11, 11, "" })
  T.eq({ code.block_at({ "```md", "```lua", "a", "```" }, 3) }, { 2, 3, "" }, "a fence with a language ends none")
  T.eq({ code.block_at({ "a ```b``` c", "d" }, 2) }, {}, "code within a line")
  T.eq({ code.block_at({ "- ```lua", "  a", "  ```" }, 2) }, { 2, 2, "  " })
  T.eq({ code.block_at({ "> ```lua", "> a", "out" }, 3) }, {}, "beyond the quotation")
end)

T.case("each command of a notice has a line to itself", function()
  local icons = require("cursor_agent.render.icons").sets.unicode
  local block = render.entry({
    kind = "notice",
    text = "cursor: the agent stopped\n  agent acp → a · b; c\n  :CursorAgent restart tries again · :CursorAgent log shows the "
      .. "protocol log · :checkhealth cursor_agent\nunknown; :CursorAgent log has it",
    done = true,
    started_ms = 0,
    level = "error",
  }, { cwd = "/", icons = icons, diff_lines = 9, output_lines = 9, fold_tools = false })
  T.eq(block.lines, {
    icons.error .. " cursor: the agent stopped",
    "  agent acp → a · b; c",
    "  :CursorAgent restart tries again",
    "  :CursorAgent log shows the protocol log",
    "  :checkhealth cursor_agent",
    "  unknown",
    "  :CursorAgent log has it",
  })
end)
