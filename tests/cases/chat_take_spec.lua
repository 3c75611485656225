-- Moving in the chat and taking things out of it: turns, tool calls, files, output, code, the whole conversation.

local T = require("harness")

local FILES = { ["src/parser.lua"] = "local M = {}\n\nfunction M.list()\nend\n\nreturn M\n" }
local OPTS = { width = 140, height = 36, files = FILES }

---@param text string
---@return table
local function content(text)
  return { type = "content", content = { type = "text", text = text } }
end

local TURNS = {
  {
    { thought = "Let me see." },
    {
      update = {
        sessionUpdate = "tool_call",
        toolCallId = "r",
        title = "Read src/parser.lua",
        kind = "read",
        status = "completed",
        locations = { { path = "${cwd}/src/parser.lua", line = 3 } },
        content = { content("function M.list()\nend") },
        rawInput = { path = "src/parser.lua" },
      },
    },
    {
      update = {
        sessionUpdate = "tool_call",
        toolCallId = "x",
        title = "`make`",
        kind = "execute",
        status = "failed",
        content = { content(table.concat(vim.fn.map(vim.fn.range(1, 50), "'output ' . v:val"), "\n")) },
      },
    },
    { text = "Try this, see src/parser.lua:5 too:\n\n```lua\nlocal x = 1\nreturn x\n```\n" },
  },
  { { text = "Second answer." } },
}

---@param nvim harness.Child
local function start(nvim)
  nvim:use(T.agent({ turns = TURNS }))
  nvim:cmd("edit src/parser.lua")
  nvim:prompt("one")
  nvim:wait_turns(1)
  nvim:prompt("two")
  nvim:wait_turns(2)
  nvim:cmd("wincmd l")
  T.eq(nvim:lua("return vim.bo.filetype"), "cursoragent")
end

---@param nvim harness.Child
---@param text string
local function on_line(nvim, text)
  T.contains(nvim:api("nvim_get_current_line"), text)
end

T.case("jumps from turn to turn and from tool call to tool call, with counts", OPTS, function(nvim)
  start(nvim)
  nvim:keys("gg]]")
  on_line(nvim, "> two")
  nvim:keys("]]")
  on_line(nvim, "> two")
  nvim:keys("[[")
  on_line(nvim, "> one")
  nvim:keys("2]t")
  on_line(nvim, "✗ Run")
  nvim:keys("jj[t")
  on_line(nvim, "✗ Run")
  nvim:keys("[t")
  on_line(nvim, "✓ Read")
  nvim:keys("<C-o>")
  on_line(nvim, "✗ Run")
end)

T.case("<CR> opens a fold, then the file at its line; the chat stays", OPTS, function(nvim)
  start(nvim)
  nvim:keys("gg]t")
  T.ok(nvim:lua("return vim.fn.foldclosed('.') ~= -1"), "folded")
  nvim:keys("<CR>")
  T.eq(nvim:lua("return vim.fn.foldclosed('.')"), -1)
  nvim:keys("<CR>")
  nvim:wait("vim.fn.expand('%:t') == 'parser.lua'", "the code window")
  T.eq(nvim:lua("return { vim.fn.line('.'), vim.fn.winnr() }"), { 3, 1 })
  nvim:cmd("wincmd l")
  nvim:keys("/src.parser.lua:5<CR><CR>")
  nvim:wait("vim.fn.line('.') == 5 and vim.fn.expand('%:t') == 'parser.lua'", "line 5")
  nvim:cmd("wincmd l")
  nvim:keys("ggj<CR>")
  nvim:wait_screen("nothing to open here")
end)

T.case("searching finds what is folded and opens it", OPTS, function(nvim)
  start(nvim)
  nvim:keys("gg/Let me see<CR>")
  on_line(nvim, "  Let me see.")
  T.eq(nvim:lua("return vim.fn.foldclosed('.')"), -1)
end)

T.case("o shows the whole output, K explains, q closes", OPTS, function(nvim)
  start(nvim)
  nvim:keys("gg2]to")
  nvim:wait("vim.api.nvim_buf_line_count(0) == 50", "the output")
  T.eq(nvim:api("nvim_get_current_line"), "output 1")
  nvim:keys("q")
  nvim:cmd("wincmd l")
  nvim:keys("gg]tK")
  nvim:wait_screen("## input")
  nvim:wait_screen('"path": "src/parser.lua"')
  nvim:wait_screen("- kind: read")
  nvim:keys("q")
  nvim:wait_screen_without("## input")
end)

T.case("yanks a code block and puts it into the code window", OPTS, function(nvim)
  start(nvim)
  nvim:cmd("wincmd h")
  nvim:keys("2G")
  nvim:cmd("wincmd l")
  nvim:keys("gg/local x<CR>gy")
  T.eq(nvim:lua("return vim.fn.getreg('\"')"), "local x = 1\nreturn x\n")
  nvim:keys("gp")
  nvim:wait_screen("2 lines put into src/parser.lua below line 2")
  T.eq(nvim:lua("return vim.api.nvim_buf_get_lines(vim.fn.bufnr('parser.lua'), 1, 5, false)"), {
    "",
    "local x = 1",
    "return x",
    "function M.list()",
  })
  nvim:keys("gggy")
  nvim:wait_screen("the cursor is not on a code block")
end)

T.case("exports the conversation as markdown, to a buffer or a file", OPTS, function(nvim)
  start(nvim)
  nvim:cmd("CursorAgent export")
  local text = table.concat(nvim:api("nvim_buf_get_lines", 0, 0, -1, false), "\n")
  T.eq(nvim:lua("return vim.bo.filetype"), "markdown")
  for _, part in ipairs({
    "> one",
    "✓ Read   src/parser.lua:3",
    "```lua\nlocal x = 1\nreturn x\n```",
    "Second answer.",
  }) do
    T.contains(text, part)
  end
  nvim:keys("q")
  nvim:cmd("CursorAgent export talk.md")
  T.contains(table.concat(vim.fn.readfile(nvim.work .. "/talk.md"), "\n"), "Second answer.")
  nvim:keys(":CursorAgent export talk.md<CR>")
  nvim:wait_screen("already exists")
  nvim:keys(":CursorAgent export nowhere/talk.md<CR>")
  nvim:wait_screen("cursor-agent: could not save the export")
end)

T.case("g? lists the keys of the window one is in first", OPTS, function(nvim)
  start(nvim)
  nvim:cmd("wincmd j")
  nvim:keys("<Esc>g?")
  nvim:wait("vim.bo.filetype == 'cursoragent-help'", "the keys")
  T.eq(nvim:lua("return vim.fn.getline(1)"), " In the prompt")
  T.eq(
    nvim:lua([[
      local groups = {}
      for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, -1, { 0, 0 }, { 1, -1 }, { details = true })) do
        table.insert(groups, mark[4].hl_group)
      end
      return groups
    ]]),
    { "CursorAgentHelpTitle", "CursorAgentHelpKey" }
  )
  nvim:keys("/In the chat<CR>")
  T.eq(nvim:lua("return vim.fn.getline('.')"), " In the chat")
end)

T.case("g? lists the keys of every buffer", OPTS, function(nvim)
  start(nvim)
  nvim:keys("g?")
  nvim:wait_screen("In the chat")
  local text = table.concat(nvim:api("nvim_buf_get_lines", 0, 0, -1, false), "\n")
  T.contains(text, "]t            Next tool call")
  T.contains(text, "In the prompt")
  nvim:keys("q")
  nvim:wait_screen_without("In the chat")
end)

T.case("modes, models and options are chosen with vim.ui.select", OPTS, function(nvim)
  nvim:lua([[
    _G.asked = {}
    vim.ui.select = function(items, opts, on_choice)
      local names = {}
      for i, item in ipairs(items) do
        names[i] = opts.format_item(item)
      end
      table.insert(_G.asked, { opts.prompt, names })
      on_choice(items[2], 2)
    end
  ]])
  nvim:use(T.agent({ turns = {} }))
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  nvim:keys("<Esc>gm")
  nvim:wait("require('cursor_agent').status().mode == 'plan'", "the mode")
  local asked = nvim:lua("return _G.asked[1]")
  T.eq(asked[1], "Mode")
  T.contains(asked[2][1], "● ")
  nvim:keys("gM")
  nvim:wait(function()
    local status = nvim:status()
    return status.model == status.models[2].id
  end, "the model")
end)

T.case("an option there is not is answered with those there are", OPTS, function(nvim)
  local low = { value = "low", name = "Low" }
  local effort = { id = "effort", name = "Effort", type = "select", currentValue = "low", options = { low } }
  nvim:use(T.agent({ session = { configOptions = { effort } } }))
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  T.contains(nvim:cmd("CursorAgent option nonsense"), "no option `nonsense`; it has effort")
end)

T.case("an option that is on or off takes the words for it, and no others", OPTS, function(nvim)
  nvim:use(T.agent({ profile = "plain" }))
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  local option = nvim:lua([[
    for i, option in ipairs(require("cursor_agent").status().options) do
      if option.type == "boolean" then
        return { id = option.id, at = i }
      end
    end
  ]])
  for _, words in ipairs({ { "yes", "no" }, { "on", "off" }, { "true", "false" } }) do
    for i, value in ipairs({ true, false }) do
      nvim:cmd(("CursorAgent option %s %s"):format(option.id, words[i]))
      nvim:wait(
        ("require('cursor_agent').status().options[%d].value == %s"):format(option.at, tostring(value)),
        ("`%s` to be %s"):format(words[i], tostring(value))
      )
    end
  end
  local said = nvim:cmd(("CursorAgent option %s maybe"):format(option.id))
  T.contains(said, option.id .. " must be true or false, not maybe")
end)

T.case("what the user opened stays open when the call is redrawn, and in a window opened later", OPTS, function(nvim)
  nvim:use(T.agent({
    turns = {
      {
        {
          update = {
            sessionUpdate = "tool_call",
            toolCallId = "r",
            title = "Read x",
            kind = "read",
            status = "completed",
            content = { content("a\nb") },
          },
        },
        {
          update = {
            sessionUpdate = "tool_call",
            toolCallId = "s",
            title = "Read y",
            kind = "read",
            status = "completed",
            content = { content("c\nd") },
          },
        },
      },
      {
        { update = { sessionUpdate = "tool_call_update", toolCallId = "r", content = { content("a\nb\nmore") } } },
      },
    },
  }))
  nvim:prompt("one")
  nvim:wait_turns(1)
  nvim:cmd("wincmd l")
  nvim:keys("gg]tzo")
  nvim:prompt("two")
  nvim:wait_turns(2)
  nvim:wait_screen("│ more")
  T.ok(not nvim:sees("│ c"), "the other one is still closed")
  nvim:cmd("CursorAgent close")
  nvim:cmd("CursorAgent open")
  nvim:wait_screen("Read   y")
  T.ok(not nvim:sees("│ c"), "closed in the new window")
end)

T.case("<CR> follows a path however it is written", {
  width = 140,
  height = 36,
  files = { ["src/あ.lua"] = "1\n2\n3\n", ["my dir/a b.lua"] = "1\n2\n3\n" },
}, function(nvim)
  nvim:use(T.agent({
    turns = {
      {
        {
          text = "a src/あ.lua:2 x\n\nb `my dir/a b.lua:3` x\n\nc [link](<my dir/a b.lua>)\n\nd file://${cwd}/my%20dir/a%20b.lua#L2\n\n"
            .. "e **src/あ.lua:3**\n\nf [top](#top)",
        },
      },
    },
  }))
  nvim:prompt("go")
  nvim:wait_turns(1)
  ---@param first string
  ---@param keys string
  ---@param place string
  local function check(first, keys, place)
    nvim:cmd("2wincmd w")
    nvim:keys(("gg/^%s <CR>%s<CR>"):format(first, keys))
    nvim:wait(("(vim.fn.expand('%%:.') .. ':' .. vim.fn.line('.')) == %q"):format(place), place)
  end
  check("a", "W", "src/あ.lua:2")
  check("b", "WW", "my dir/a b.lua:3")
  check("c", "W", "my dir/a b.lua:3")
  check("d", "W", "my dir/a b.lua:2")
  check("e", "W", "src/あ.lua:3")
  nvim:cmd("2wincmd w")
  nvim:keys("gg/^f <CR>W<CR>")
  nvim:wait_screen("nothing to open here")
end)

T.case("<CR> finds room for a file where the code window must keep its own", OPTS, function(nvim)
  start(nvim)
  nvim:cmd("1wincmd w | edit other.lua | setlocal winfixbuf")
  nvim:cmd("2wincmd w")
  nvim:keys("gg/src.parser.lua:5<CR><CR>")
  nvim:wait("vim.fn.expand('%:t') == 'parser.lua'", "a window of its own")
  T.eq(nvim:lua("return { vim.fn.line('.'), #vim.api.nvim_tabpage_list_wins(0) }"), { 5, 4 })

  nvim:cmd("close | set nohidden")
  nvim:cmd("1wincmd w | setlocal nowinfixbuf")
  nvim:keys("iunsaved<Esc>")
  nvim:cmd("2wincmd w")
  nvim:keys("gg/src.parser.lua:5<CR><CR>")
  nvim:wait("vim.fn.expand('%:t') == 'parser.lua'", "a window of its own")
  -- What was written is still there.
  nvim:wait_screen("unsaved")
end)

T.case("a code block is taken as it is meant, out of lists, quotations and other blocks", OPTS, function(nvim)
  local long = ("x"):rep(9000)
  nvim:use(T.agent({
    turns = {
      {
        { text = "````md\n```lua\nlocal a\n```\n````\n\n1. one\n\n   ```lua\n   local b\n     local c\n\n   ```\n\n" },
        { text = "> ```lua\r\n> local d\r\n> ```\r\n\n~~~sh\n" .. long .. "\n~~~\n" },
      },
    },
  }))
  nvim:cmd("edit new.lua")
  nvim:prompt("one")
  nvim:wait_turns(1)
  nvim:cmd("wincmd l")
  ---@param text string
  ---@param code string[]
  local function check(text, code)
    nvim:keys(("gg/%s<CR>gy"):format(text))
    T.eq(nvim:lua("return vim.fn.getreg('\"', 1, 1)"), code)
  end
  check("local a", { "```lua", "local a", "```" })
  check("local b", { "local b", "  local c", "" })
  check("local d", { "local d" })
  check("xxx", { long })
  nvim:keys("gg/local b<CR>gp")
  T.eq(
    nvim:lua("return vim.api.nvim_buf_get_lines(vim.fn.bufnr('new.lua'), 0, -1, false)"),
    { "local b", "  local c", "" }
  )
  nvim:cmd("1windo setlocal nomodifiable")
  nvim:cmd("2wincmd w")
  nvim:keys("gp")
  nvim:wait_screen("new.lua is not modifiable")
end)

T.case("a block that was left open ends with its message in an export", OPTS, function(nvim)
  nvim:use(T.agent({
    turns = {
      {
        { text = "Look:\r\n\r\n```lua\r\nlocal x" },
        {
          update = {
            sessionUpdate = "tool_call",
            toolCallId = "e",
            title = "Edit",
            kind = "edit",
            status = "completed",
            content = { { type = "diff", path = "${cwd}/a.md", oldText = "```\na\n", newText = "```\nb\n" } },
          },
        },
      },
    },
  }))
  nvim:prompt("one")
  nvim:wait_turns(1)
  nvim:cmd("CursorAgent export talk.md")
  local text = table.concat(vim.fn.readfile(nvim.work .. "/talk.md"), "\n")
  T.contains(text, "Look:\n\n```lua\nlocal x\n```\n")
  T.contains(text, "  ````diff\n   ```\n  -a\n  +b\n  ````\n")
end)

T.case("the last line of a diff keeps its colour when the call below it changes", OPTS, function(nvim)
  local function call(id, kind, fields)
    return { update = vim.tbl_extend("force", { sessionUpdate = id, toolCallId = kind, kind = kind }, fields) }
  end
  local diff = { type = "diff", path = "${cwd}/a.lua", oldText = "a\n", newText = "a\nb\nc\n" }
  nvim:use(T.agent({
    turns = {
      {
        call("tool_call", "edit", { title = "Edit", status = "completed", content = { diff } }),
        call("tool_call", "execute", { title = "`make`", status = "in_progress" }),
        { wait_ms = 100 },
        call("tool_call_update", "execute", { status = "completed", content = { content("made") } }),
      },
    },
  }))
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  nvim:keys("go<C-s>")
  nvim:wait_turns(1)
  local added = nvim:lua([[
    local buf, ns = vim.fn.bufnr("cursor-agent-term://1/chat"), vim.api.nvim_create_namespace("cursor_agent_mark")
    local lines = {}
    for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(buf, ns, 0, -1, { details = true })) do
      if mark[4].hl_eol then
        table.insert(lines, vim.trim(vim.fn.getbufline(buf, mark[2] + 1)[1]:match("%+(.*)")))
      end
    end
    return lines
  ]])
  T.eq(added, { "b", "c" })
end)

T.case("a code block that tool calls cut in pieces is one block, and what follows it is text", OPTS, function(nvim)
  local function call(id)
    return { update = { sessionUpdate = "tool_call", toolCallId = id, title = "Read " .. id, status = "completed" } }
  end
  nvim:use(T.agent({
    turns = {
      {
        { text = "Look:\n\n```lua\nlocal a = 1\n\n" },
        call("r1"),
        { text = "local b =" },
        call("r2"),
        { text = " 2\n" },
        call("r3"),
        { text = "local c = 3\n```" },
        call("r4"),
        { text = "\nThe end, **bold**.\n\n```sh\nls" },
      },
      { { text = "Another turn." } },
    },
  }))
  nvim:cmd("edit new.lua")
  nvim:prompt("one")
  nvim:wait_turns(1)
  nvim:prompt("two")
  nvim:wait_turns(2)
  nvim:cmd("wincmd l")
  for _, part in ipairs({ "local a", "local b", "^ 2", "local c" }) do
    nvim:keys(("gg/%s<CR>gy"):format(part))
    T.eq(nvim:lua("return vim.fn.getreg('\"', 1, 1)"), { "local a = 1", "", "local b = 2", "local c = 3" }, part)
  end
  nvim:keys("gg/The end<CR>gy")
  nvim:wait_screen("the cursor is not on a code block")
  nvim:keys("gg/Another<CR>gy")
  nvim:wait_screen("the cursor is not on a code block")
  local function groups(text)
    return nvim:lua(
      [[
        local row = vim.fn.search(..., "nw") - 1
        local ns = vim.api.nvim_create_namespace("cursor_agent_syntax")
        local found = {}
        for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, ns, { row, 0 }, { row, -1 }, { details = true })) do
          found[mark[4].hl_group or ""] = true
        end
        return found
      ]],
      text
    )
  end
  nvim:wait(function()
    return groups("local c")["@keyword.lua"] and groups("The end")["@markup.strong.markdown_inline"]
  end, "code to be coloured as code and text as text")
  nvim:cmd("CursorAgent export talk.md")
  local text = table.concat(vim.fn.readfile(nvim.work .. "/talk.md"), "\n")
  T.contains(text, "```lua\nlocal c = 3\n```\n")
  T.contains(text, "\nThe end, **bold**.\n")
  T.contains(text, "\nAnother turn.\n")
end)

T.case("g? lists the keys in the log, in an output and in an export, and q in the list goes back", OPTS, function(nvim)
  start(nvim)
  local function check(keys, title, key)
    nvim:keys(keys)
    nvim:keys("g?")
    nvim:wait("vim.bo.filetype == 'cursoragent-help'", "the keys")
    T.eq(nvim:lua("return vim.fn.getline(1)"), title)
    T.contains(table.concat(nvim:api("nvim_buf_get_lines", 0, 0, 8, false), "\n"), key)
    nvim:keys("g?q")
    nvim:wait("vim.bo.filetype ~= 'cursoragent-help'", "the previous window")
    nvim:keys("q")
    nvim:wait("vim.bo.filetype == 'cursoragent'", "the chat")
  end
  check(":CursorAgent log<CR>", " In the log", "   f             Show the messages of one method")
  check("gg2]to", " In a tool's output, an explanation or an export", "   q             Close the window and go back")
  check(":CursorAgent export<CR>", " In a tool's output, an explanation or an export", "   g?            List the keys")
end)

T.case("an export that was changed is neither closed by q nor written over", OPTS, function(nvim)
  start(nvim)
  nvim:keys(":CursorAgent export<CR>")
  nvim:wait("vim.bo.filetype == 'markdown'", "the export")
  nvim:keys("u")
  T.ok(nvim:lua("return vim.fn.line('$')") > 5, "undoing does not empty it")
  nvim:keys("ggOMy own words<Esc>q")
  nvim:wait_screen("this has changes: :w {file} saves them, :q! discards them")
  T.eq(nvim:lua("return vim.fn.getline(1)"), "My own words")
  nvim:cmd("wincmd l")
  nvim:keys(":CursorAgent export<CR>")
  nvim:wait_screen("this export has changes")
  T.eq(nvim:lua("return vim.fn.getline(1)"), "My own words")
  nvim:keys(":write<CR>")
  nvim:wait_screen("name a file: :w {file}")
  nvim:keys(":quit<CR>")
  nvim:wait_screen("E37: No write since last change")
  nvim:keys(":write mine.md<CR>")
  nvim:wait_screen("written")
  nvim:wait("not vim.bo.modified", "it to be taken for saved")
  T.eq(vim.fn.readfile(nvim.work .. "/mine.md")[1], "My own words")
  nvim:keys("q")
  nvim:wait("vim.bo.filetype ~= 'markdown'", "it to be closed")
end)
