-- What each kind of entry looks like, in a chat of 80 columns and beside the code on a screen of 160.

local T = require("harness")

---@param id string
---@param fields table
---@return table
local function tool(id, fields)
  return {
    update = vim.tbl_extend("force", { sessionUpdate = "tool_call", toolCallId = id, status = "pending" }, fields),
  }
end

---@param id string
---@param fields table
---@return table
local function update(id, fields)
  return { update = vim.tbl_extend("force", { sessionUpdate = "tool_call_update", toolCallId = id }, fields) }
end

---@param text string
---@return table
local function content(text)
  return { type = "content", content = { type = "text", text = text } }
end

---Runs a scenario in both widths and compares the screen when the turn is over or waits.
---@param name string
---@param turn table[] steps
---@param prepare? fun(nvim: harness.Child) before the picture is taken
local function picture(name, turn, prepare)
  for _, width in ipairs({ 80, 160 }) do
    local opts = { width = width, height = 36, files = { ["src/parser.lua"] = "return {}\n" } }
    T.case(("%s, %d columns"):format(name, width), opts, function(nvim)
      nvim:use(T.agent({ turns = { turn } }), { window = { position = width == 80 and "tab" or "right" } })
      nvim:cmd("edit src/parser.lua")
      nvim:cmd("CursorAgent")
      nvim:wait_state("idle")
      nvim:keys("Make the parser accept trailing commas<C-s>")
      nvim:wait(function()
        local state = nvim:status().state
        return #nvim:events("CursorAgentTurnEnd") == 1 or (state == "waiting" and nvim:status().pending > 0)
      end, "the turn")
      nvim:keys("<Esc>")
      -- 0.10 draws a winbar in other colours; it has its own case.
      nvim:lua([[
        local buf = vim.fn.bufnr("cursor-agent-term://1/chat")
        for _, win in ipairs(vim.fn.win_findbuf(buf)) do
          vim.wo[win].winbar = ""
        end
      ]])
      if prepare then
        prepare(nvim)
      end
      -- Colours come a few milliseconds at a time; the picture is of all of them.
      nvim:screen()
      nvim:wait("require('cursor_agent.colour.painter').idle()")
      nvim:expect_screen(("chat-%s-%d"):format(name:gsub("%W+", "-"), width))
    end)
  end
end

picture("message", {
  { text = "# What I found\n\nThe list **rule** stops at `expr`, see [the parser](src/parser.lua#L3):\n\n" },
  {
    text = "1. a trailing comma is an error, and this line is long enough to be wrapped, so its indentation can be seen\n",
  },
  { text = "2. nothing tests it\n\n> quoted\n\n" },
  { text = "```lua\nlocal function list(items)\n  return #items > 0 -- all of them\nend\n```\n\n" },
  { text = "| a | b |\n|---|---|\n| 1 | 2 |\n\nDone.\n\n" },
})

picture("thought", {
  { thought = "First I look at the grammar.\n\nThen at the *parser*." },
  { text = "I looked.\n" },
  { thought = "One more thing to think about." },
}, function(nvim)
  -- The second one is opened: what is folded can be read.
  nvim:cmd("wincmd k")
  nvim:keys("Gzo")
end)

picture("tool calls", {
  tool("r", { title = "Read File", kind = "read" }),
  update("r", {
    title = "Read src/parser.lua",
    status = "completed",
    locations = { { path = "${cwd}/src/parser.lua", line = 12 } },
    content = { content("local M = {}\nreturn M\n") },
  }),
  tool("s", { title = "grep -n 'comma' in src", kind = "search", status = "in_progress" }),
  update("s", { status = "completed", content = { content("src/parser.lua:12: comma\nsrc/lexer.lua:3: comma") } }),
  tool("f", { title = "https://example.org/grammar", kind = "fetch", status = "completed" }),
  tool("d", {
    title = "Delete src/old.lua",
    kind = "delete",
    status = "completed",
    locations = { { path = "${cwd}/src/old.lua" } },
  }),
  tool("o", { title = "Look at the picture", kind = "other", status = "completed" }),
  update("o", {
    content = {
      { type = "content", content = { type = "image", mimeType = "image/png", data = "aGVsbG8=" } },
      { type = "content", content = { type = "resource_link", uri = "file://${cwd}/doc/a.md", name = "a.md" } },
    },
  }),
  tool("x", { title = "Do something that fails", kind = "other", status = "failed" }),
  update("x", { content = { content("no permission to do that") } }),
  { text = "That was all.\n" },
}, function(nvim)
  nvim:cmd("wincmd k")
  -- The attachments of the fifth call are folded.
  nvim:keys("gg]t]t]t]t]tzo")
end)

picture("diff", {
  tool("e", { title = "Edit File", kind = "edit", status = "in_progress" }),
  update("e", {
    title = "Edit src/parser.lua",
    status = "completed",
    locations = { { path = "${cwd}/src/parser.lua" } },
    content = {
      {
        type = "diff",
        path = "${cwd}/src/parser.lua",
        oldText = "local M = {}\n\nfunction M.list(items)\n  return items\nend\n\nreturn M\n",
        newText = "local M = {}\n\n---All but the last comma.\nfunction M.list(items, trailing)\n  return items, trailing\nend\n\nreturn M\n",
      },
    },
  }),
  tool("m", { title = "Rename everywhere", kind = "edit", status = "completed" }),
  update("m", {
    content = {
      { type = "diff", path = "${cwd}/src/new.lua", newText = "return 1\n" },
      { type = "diff", path = "${cwd}/src/b.lua", oldText = "local a = 1\n", newText = "local b = 1\n" },
    },
  }),
  { text = "Both are changed.\n" },
})

picture("commands", {
  tool("a", { title = "`cargo test parser`", kind = "execute", status = "in_progress" }),
  update("a", {
    status = "completed",
    rawOutput = { exitCode = 0, stdout = "running 3 tests\ntest result: ok\n", stderr = "" },
  }),
  tool("b", { title = "`cargo clippy`", kind = "execute", status = "in_progress" }),
  update("b", {
    status = "completed",
    rawOutput = { exitCode = 101, stdout = "", stderr = "" },
    content = {
      content(
        "\27[1m\27[31merror\27[0m: unused variable: `item`\n  \27[34m-->\27[0m src/parser.rs:12:9\n"
          .. table.concat(vim.fn.map(vim.fn.range(1, 40), "'  | line ' . v:val"), "\n")
          .. "\n\27[32mhelp\27[0m: remove it\n"
      ),
    },
  }),
  { text = "It fails.\n" },
})

picture("permission", {
  tool("p", { title = "`cargo test parser`", kind = "execute" }),
  {
    permission = {
      toolCall = {
        toolCallId = "p",
        title = "`cargo test parser`",
        kind = "execute",
        content = { content("Not in allowlist: cargo test") },
      },
    },
  },
})

picture("todos", {
  {
    update = {
      sessionUpdate = "plan",
      entries = {
        { content = "grammar", priority = "high", status = "completed" },
        { content = "parser", priority = "high", status = "in_progress" },
        { content = "docs", priority = "low", status = "pending" },
      },
    },
  },
  { text = "I go on.\n" },
})

picture("long todos", {
  {
    request = {
      method = "cursor/update_todos",
      params = {
        toolCallId = "t",
        merge = false,
        todos = {
          { id = "1", content = "Extend the grammar with an optional comma", status = "completed" },
          { id = "2", content = "Teach the parser to accept it in every kind of list", status = "in_progress" },
          { id = "3", content = "Write the tests", status = "pending" },
          { id = "4", content = "Change the formatter too", status = "cancelled" },
        },
      },
    },
  },
  { text = "I go on.\n" },
})

picture("notices", {
  { update = { sessionUpdate = "notice", severity = "info", title = "Using a cached index" } },
  { update = { sessionUpdate = "notice", severity = "warning", title = "Slow", description = "The model is busy." } },
  { update = { sessionUpdate = "something_new", value = 1 } },
  { text = "Half an ans" },
  { stop = "max_tokens" },
})

picture("error", {
  { text = "I am abou" },
  { error = { code = -32603, message = "The model is not available" } },
})

picture("subagent", {
  {
    request = {
      method = "cursor/task",
      params = {
        toolCallId = "k",
        description = "Look for other parsers",
        prompt = "Look",
        subagentType = "explore",
        model = "composer-2",
        durationMs = 4200,
      },
    },
  },
  {
    request = {
      method = "cursor/generate_image",
      params = {
        toolCallId = "g",
        description = "A logo",
        filePath = "${cwd}/logo.png",
      },
    },
  },
  { text = "Both done.\n" },
})

T.case("what markdown is read with is made ready once", function(nvim)
  nvim:use(T.agent({ turns = { { { text = "Some **strong** words." } } } }))
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  nvim:wait("require('cursor_agent.colour.painter').idle()")
  nvim:lua([[
    collectgarbage()
    collectgarbage()
    _G.compiled = {}
    local parse = vim.treesitter.query.parse
    vim.treesitter.query.parse = function(lang, ...)
      table.insert(_G.compiled, lang)
      return parse(lang, ...)
    end
  ]])
  nvim:lua("require('cursor_agent').prompt('go')")
  nvim:wait_turns(1)
  nvim:wait_screen("Some strong words.")
  nvim:wait("require('cursor_agent.colour.painter').idle()")
  T.eq(nvim:lua("return _G.compiled"), {})
end)

---Where a line of text stands on the screen.
---@param screen harness.Screen
---@param text string
---@param from integer the first column to look at, from 1
---@return harness.Cell[]?
local function cells_of(screen, text, from)
  for _, row in ipairs(screen.cells) do
    for col = from, screen.width - #text + 1 do
      local found = true
      for i = 1, #text do
        found = found and row[col + i - 1].text == text:sub(i, i)
      end
      if found then
        return vim.list_slice(row, col, col + #text - 1)
      end
    end
  end
end

local C_CODE = {
  "#include <stdio.h>",
  "#define MAX(a, b) ((a) > (b) ? (a) : (b))",
  "typedef struct node { struct node *next; int value; } node_t;",
  "extern int (*scan)(void *, const char *names);",
  "/* Walks over the list. */",
  "static inline long walk(const node_t *first, size_t n)",
  "{",
  "  for (size_t i = 0; i < n && first != NULL; i++) {",
  "    if (first->value == 'x') goto done; // early",
  '    printf("%d\\n", MAX(first->value, 0x1f));',
  "    first = first->next;",
  "  }",
  "done:",
  "  return sizeof(struct node) * n;",
}

T.case("code in the chat has the colours it has in a file", {
  width = 160,
  height = 40,
  files = { ["list.c"] = table.concat(C_CODE, "\n") .. "\n" },
}, function(nvim)
  nvim:use(T.agent({ turns = { { { text = ("```c\n%s\n```\n"):format(table.concat(C_CODE, "\n")) } } } }))
  nvim:cmd("edit list.c")
  nvim:lua("vim.treesitter.start(0, 'c')")
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  nvim:lua("require('cursor_agent').prompt('go')")
  nvim:wait_turns(1)
  nvim:wait("require('cursor_agent.colour.painter').idle()")
  nvim:wait_screen("goto done")
  local screen = nvim.screen_state
  local groups = {} ---@type table<string, boolean>
  nvim:wait(function()
    local same = true
    for _, line in ipairs(C_CODE) do
      local text = #line > 1 and vim.trim(line) or ""
      local file, chat = cells_of(screen, text, 1), cells_of(screen, text, 81)
      for i = 1, file and chat and #text or 0 do
        local group = screen:group(assert(file)[i])
        groups[group] = true
        same = same and group == screen:group(assert(chat)[i])
      end
    end
    return same
  end, "the colours of the file in the chat")
  T.ok(vim.tbl_count(groups) > 6, "there are several colours")
end)

---Shows a line of C in the chat and waits until a word of it is drawn in a group.
---@param nvim harness.Child
---@param before string Lua, before anything is coloured
---@param word string
---@param group string
local function expect_group(nvim, before, word, group)
  nvim:use(T.agent({ turns = { { { text = "```c\nconst int name = 1; // a (word\n```\n" } } } }))
  nvim:lua(before)
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  nvim:lua("require('cursor_agent').prompt('go')")
  nvim:wait_turns(1)
  local screen = nvim.screen_state
  nvim:wait(function()
    local cells = cells_of(screen, word, 1)
    return cells and screen:group(cells[1]) == group
  end, ("%s in %s"):format(word, group))
end

T.case("a query that was set in place of the files counts", function(nvim)
  expect_group(nvim, [[vim.treesitter.query.set("c", "highlights", "(identifier) @keyword")]], "name", "Statement")
end)

T.case("a pattern that does not fit the parser costs its own colours alone", {
  files = {
    ["after/queries/c/highlights.scm"] = '; extends\n(no_such_node ") (") @error\n((comment) @keyword (#match? @keyword "a \\\\(word"))\n',
  },
}, function(nvim)
  expect_group(nvim, "vim.opt.runtimepath:append(vim.fn.getcwd() .. '/after')", "// a (word", "Statement")
end)

T.case("a language is made ready when nothing is typed", function(nvim)
  nvim:use(T.agent({ turns = { { { text = "```c\nint x;\n```\n" } } } }))
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  nvim:lua([[
    local get, typed = vim.treesitter.query.get, 0
    vim.on_key(function() typed = vim.uv.hrtime() end)
    vim.treesitter.query.get = function(lang, name)
      if lang == "c" then
        _G.still_ms = _G.still_ms or (vim.uv.hrtime() - typed) / 1e6
      end
      return get(lang, name)
    end
  ]])
  nvim:keys("Go on<C-s>")
  nvim:wait_screen("int x;")
  nvim:keys("one more thing")
  nvim:wait("_G.still_ms ~= nil", "the language is loaded")
  local still = nvim:lua("return _G.still_ms")
  T.ok(still >= 190, ("a key was typed %d ms before"):format(still))
end)

---The colours on a line of the chat that holds a text, as `group text`.
---@param nvim harness.Child
---@param text string
---@return string[]
local function colours(nvim, text)
  return nvim:lua(
    [[
    local buf, wanted = require("cursor_agent.chat.registry").all()[1].buf, ...
    local ns = vim.api.nvim_get_namespaces().cursor_agent_syntax
    local found = {}
    for row, line in ipairs(vim.api.nvim_buf_get_lines(buf, 0, -1, false)) do
      if line:find(wanted, 1, true) then
        for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(buf, ns, { row - 1, 0 }, { row - 1, -1 }, { details = true })) do
          found[#found + 1] = ("%s %s"):format(mark[4].hl_group, line:sub(mark[3] + 1, mark[4].end_col))
        end
      end
    end
    return found
  ]],
    text
  )
end

T.case("a long list without an empty line has its colours to the end", function(nvim)
  local items = {} ---@type string[]
  for i = 1, 800 do
    items[i] = ("- item %d is about `code%d` and some words more\n"):format(i, i)
  end
  nvim:use(T.agent({ turns = { { { text = table.concat(items) } } } }))
  nvim:prompt("go")
  nvim:wait_turns(1)
  nvim:wait_screen("item 800")
  nvim:wait(function()
    return vim.list_contains(colours(nvim, "item 800 "), "@markup.raw.markdown_inline `code800`")
  end, "the colours of the last item")
end)

T.case("marks that are not closed hold nothing up", function(nvim)
  nvim:use(T.agent({ turns = { { { text = ("*_`[(<![**"):rep(1500) } } } }))
  nvim:lua([[
    local last = os.clock()
    _G.longest = 0
    vim.uv.new_timer():start(1, 1, function()
      _G.longest = math.max(_G.longest, os.clock() - last)
      last = os.clock()
    end)
  ]])
  nvim:prompt("go")
  nvim:wait_turns(1)
  nvim:wait(function()
    return #colours(nvim, "*_`[(") > 0
  end, "colours")
  nvim:wait("require('cursor_agent.colour.painter').idle()")
  local longest = nvim:lua("return _G.longest")
  T.ok(longest < 1, ("nothing could be typed for %.1f s on the processor"):format(longest))
end)

T.case("a query of the user's own counts, but for what Neovim cannot make sense of", {
  files = {
    ["after/queries/lua/highlights.scm"] = table.concat({
      ";; extends",
      '((identifier) @mine (#eq? @mine "special"))',
      "(no_such_node) @wrong",
      "((string) @strange (#of-a-plugin? @strange))",
      '("unclosed',
    }, "\n"),
  },
}, function(nvim)
  nvim:lua("vim.opt.runtimepath:append(vim.fn.getcwd() .. '/after')")
  nvim:use(T.agent({ turns = { { { text = "```lua\nlocal special = 'x'\n```\n" } } } }))
  nvim:prompt("go")
  nvim:wait_turns(1)
  nvim:wait(function()
    return #colours(nvim, "special") > 0
  end, "colours")
  T.eq(colours(nvim, "special"), { "@keyword.lua local", "@mine.lua special", "@operator.lua =", "@string.lua 'x'" })
end)

T.case("of two captures of a node the one of the higher priority counts", function(nvim)
  nvim:lua(
    "vim.treesitter.query.set('lua', 'highlights', ...)",
    "((identifier) @first (#set! priority 120)) (identifier) @second"
  )
  nvim:use(T.agent({ turns = { { { text = "```lua\nlocal special = 'x'\n```\n" } } } }))
  nvim:prompt("go")
  nvim:wait_turns(1)
  nvim:wait(function()
    return #colours(nvim, "special") > 0
  end, "colours")
  T.eq(colours(nvim, "special"), { "@first.lua special" })
end)

T.case("code of a language without a parser has the colours of Vim's syntax file", { width = 100 }, function(nvim)
  local windows = #nvim:api("nvim_list_wins")
  -- The last name is that of a program among the syntax files.
  local message = "```py\ndef greet():\n    return 1\n```\n\n```hitest\nplain\n```\n"
  local diff = { type = "diff", path = "/x/a.py", oldText = "x = 1\n", newText = "while True: pass\n" }
  local call = { sessionUpdate = "tool_call", toolCallId = "e", title = "Edit", kind = "edit", status = "completed" }
  call.content = { diff }
  nvim:use(T.agent({ turns = { { { text = message }, { update = call }, { text = "Done." } } } }))
  nvim:prompt("go")
  nvim:wait_turns(1)
  nvim:wait_screen("Done.")
  for text, expected in pairs({ ["def greet"] = "Statement def", ["while True"] = "Statement while" }) do
    nvim:wait(function()
      return vim.list_contains(colours(nvim, text), expected)
    end, expected)
  end
  T.eq(colours(nvim, "plain"), {})
  T.eq(#nvim:api("nvim_list_wins"), windows + 2, "the chat's windows and no other")
end)

T.case("a tool call that changes very many files shows some diffs and counts the rest", {
  width = 100,
  height = 40,
}, function(nvim)
  local diffs = {}
  for i = 1, 60 do
    local old, new = {}, {}
    for k = 1, 10 do
      old[k], new[k] = ("old %d of %d"):format(k, i), ("new %d of %d"):format(k, i)
    end
    diffs[i] = {
      type = "diff",
      path = ("${cwd}/src/f%02d.txt"):format(i),
      oldText = table.concat(old, "\n") .. "\n",
      newText = table.concat(new, "\n") .. "\n",
    }
  end
  local call = { sessionUpdate = "tool_call", toolCallId = "t", title = "Rename", kind = "edit", status = "completed" }
  nvim:use(T.agent({ turns = { { { update = vim.tbl_extend("force", call, { content = diffs }) } } } }))
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  nvim:lua("require('cursor_agent').prompt('go')")
  nvim:wait_turns(1)
  -- Six diffs of 20 lines, then the names of twelve files.
  nvim:wait_screen("src/f07.txt  +10 -10")
  nvim:wait_screen("src/f18.txt  +10 -10")
  nvim:wait_screen("42 more files")
  nvim:cmd("wincmd k")
  nvim:keys("<Esc>Go")
  nvim:wait("vim.fn.search('new 10 of 60', 'nw') > 0", "all of them in a buffer of their own")
end)

T.case("a state right of a line is whole, wherever the line wraps", { width = 80, height = 70 }, function(nvim)
  local steps, count = {}, 0
  for length = 8, 40, 2 do
    count = count + 1
    steps[#steps + 1] = {
      permission = {
        toolCall = { toolCallId = "t" .. length, title = ("`run %s end`"):format(("x"):rep(length)), kind = "execute" },
      },
      wait = false,
      name = "t" .. length,
    }
  end
  for length = 8, 40, 2 do
    steps[#steps + 1] = { join = "t" .. length }
  end
  nvim:use(T.agent({ turns = { steps } }))
  nvim:prompt("go")
  nvim:wait(function()
    return nvim:lua("return #require('cursor_agent').pending()") == count
  end, "all of them")
  nvim:cmd("CursorAgent open")
  nvim:keys("<Esc><C-w>kgg")
  nvim:lua("vim.api.nvim_win_set_height(0, 60)")
  nvim:wait(function()
    local _, whole = table.concat(nvim:screen(), "\n"):gsub("needs approval ", "")
    return whole >= count - 1
  end, "each state")
end)

T.case("a folded run whose line is too long shows how it ended, and how long it took", { width = 80 }, function(nvim)
  local function run(id, exit_code, pause)
    local title = ("`cargo run --example %s`"):format(("a-long-name "):rep(5))
    return {
      {
        update = { sessionUpdate = "tool_call", toolCallId = id, title = title, kind = "execute", status = "pending" },
      },
      { wait_ms = pause },
      {
        update = {
          sessionUpdate = "tool_call_update",
          toolCallId = id,
          status = exit_code == 0 and "completed" or "failed",
          rawOutput = { exitCode = exit_code, stdout = "one\ntwo\n" },
        },
      },
    }
  end
  local steps = {}
  for id, one in ipairs({ { 0, 1300 }, { 101, 1300 }, { 7, 0 } }) do
    vim.list_extend(steps, run("t" .. id, one[1], one[2]))
  end
  steps[#steps + 1] = { text = "Done." }
  nvim:use(T.agent({ turns = { steps } }))
  nvim:prompt("go")
  nvim:wait_screen("Done.")
  nvim:cmd("CursorAgent open")
  nvim:keys("<Esc><C-w>kzM")
  for _, window in ipairs({ "the chat", "another window" }) do
    nvim:wait_screen("…  exit 101  1.")
    nvim:wait(function()
      return table.concat(nvim:screen(), "\n"):find("…  exit 7 ", 1, true)
    end, "the exit code of a short run, from " .. window)
    nvim:keys("<C-w>h")
  end
  nvim:keys("<C-w>lzR")
  nvim:wait_screen_without("…  exit")
  nvim:wait_screen("exit 101")
end)

for icons, arrows in pairs({ unicode = { "▸", "▾" }, ascii = { ">", "v" } }) do
  T.case(("the arrow of a thought matches its fold, %s"):format(icons), { width = 100, height = 20 }, function(nvim)
    local turn = { { thought = "Commas are never eaten.\n\nNot here." }, { text = "Done." } }
    nvim:use(T.agent({ turns = { turn } }), { chat = { icons = icons } })
    nvim:prompt("go")
    nvim:wait_screen("Done.")
    nvim:wait_screen(" " .. arrows[1] .. " Thought")
    nvim:cmd("wincmd l")
    nvim:keys("gg/Thought<CR>zo")
    nvim:wait_screen(" " .. arrows[2] .. " Thought")
    nvim:wait_screen("Commas")
    nvim:keys("zc")
    nvim:wait_screen(" " .. arrows[1] .. " Thought")
    nvim:keys("<CR>")
    nvim:wait_screen(" " .. arrows[2] .. " Thought")
    nvim:keys("zM")
    nvim:wait_screen(" " .. arrows[1] .. " Thought")
    nvim:cmd("CursorAgent close | CursorAgent open")
    nvim:wait_screen(" " .. arrows[1] .. " Thought")
  end)
end
