-- No text of an agent aborts Neovim in a tree-sitter parser: nested too deeply it stays as it is, without colours.

local T = require("harness")

local OPTS = { width = 120, height = 40 }

---Lines markdown's parser has no room for.
local DEEP = {
  (">"):rep(260),
  ("> "):rep(260) .. "x",
  ("- "):rep(300) .. "x",
  ("> - 1. "):rep(120) .. "x",
  ("\t"):rep(140) .. "- x",
  "- " .. ("1) "):rep(258) .. "x",
  (" "):rep(600) .. "- x",
}

---A list nested line by line.
local STAIRS = {}
for i = 1, 300 do
  STAIRS[i] = (" "):rep(2 * i) .. "- x"
end

local TEXT = table.concat(DEEP, "\n\n") .. "\n\n" .. table.concat(STAIRS, "\n")

---Waits until what is on the screen has its colours.
---@param nvim harness.Child
local function settle(nvim)
  nvim:cmd("redraw!")
  nvim:wait("require('cursor_agent.colour.painter').idle()", "the colours")
  nvim:cmd("redraw!")
  T.eq(nvim:gone(), nil, "Neovim runs")
end

---@param nvim harness.Child
---@param turn table[]
---@param options? table
local function play(nvim, turn, options)
  nvim:use(T.agent({ turns = { turn } }), options)
  nvim:prompt("go")
  nvim:wait_turns(1)
  settle(nvim)
end

---Goes through the whole of a buffer.
---@param nvim harness.Child
local function read_all(nvim)
  nvim:keys("gg")
  for _ = 1, 12 do
    nvim:keys("<C-f>")
    settle(nvim)
  end
end

T.case("an answer of nothing but marks, as one and streamed one by one", OPTS, function(nvim)
  play(nvim, {
    { text = DEEP[1] .. "\n\n" },
    { chunks = { count = 260, text = ">", every_ms = 1 } },
    { text = "\n\n" },
    { chunks = { count = 300, text = "- ", every_ms = 0 } },
    { text = "\n\nThe **end**." },
  })
  nvim:wait_screen("The end.")
  settle(nvim)
  T.contains(nvim:texts("agent")[1], DEEP[1] .. "\n\n" .. DEEP[1], "the text is as it came")
end)

T.case("every shape, in answers, thoughts, fences, tool calls and what shows them", OPTS, function(nvim)
  play(nvim, {
    { text = TEXT .. "\n\nafter\n\n````markdown\n" .. TEXT .. "\n````\n\n> ```md\n" .. ("> "):rep(280) .. "\n" },
    { thought = TEXT },
    {
      update = {
        sessionUpdate = "tool_call",
        toolCallId = "t1",
        title = DEEP[1],
        kind = "edit",
        status = "completed",
        content = { { type = "diff", path = "${cwd}/a.md", oldText = "# a\n", newText = TEXT } },
        rawInput = { text = TEXT },
      },
    },
    {
      update = {
        sessionUpdate = "plan",
        entries = { { content = DEEP[1], status = "pending", priority = "low" } },
      },
    },
    { text = "The end." },
  })
  nvim:wait_screen("The end.")
  nvim:cmd("wincmd l")
  nvim:keys("zR")
  read_all(nvim)
  for _, at in ipairs({ "after", "a.md" }) do
    for _, key in ipairs({ "o", "K" }) do
      nvim:keys("gg/" .. at .. "<CR>" .. key)
      nvim:wait("vim.bo.filetype ~= 'cursoragent'", key .. " on " .. at)
      settle(nvim)
      nvim:lua("pcall(vim.treesitter.start)")
      settle(nvim)
      nvim:keys("q")
      nvim:wait("vim.bo.filetype == 'cursoragent'", "the chat")
    end
  end
  nvim:cmd("CursorAgent export")
  nvim:lua("pcall(vim.treesitter.start)")
  read_all(nvim)
  T.contains(table.concat(nvim:api("nvim_buf_get_lines", 0, 0, -1, false), "\n"), DEEP[4])
end)

T.case("a plan, and a card for a change of markdown", OPTS, function(nvim)
  nvim:use(T.agent({
    turns = {
      { { request = { method = "cursor/create_plan", params = { toolCallId = "p", name = DEEP[1], plan = TEXT } } } },
      {
        {
          permission = {
            toolCall = {
              toolCallId = "t",
              title = DEEP[2],
              kind = "edit",
              content = { { type = "diff", path = "${cwd}/a.md", oldText = "", newText = TEXT } },
            },
          },
        },
      },
    },
  }))
  nvim:prompt("plan")
  nvim:wait_screen("proposes a plan")
  nvim:keys("<Esc>:CursorAgent decisions<CR>")
  nvim:wait("vim.bo.filetype == 'markdown'", "the plan's buffer")
  nvim:lua("pcall(vim.treesitter.start)")
  read_all(nvim)
  -- Without those lines the rest is markdown again.
  nvim:cmd("%delete _")
  nvim:api("nvim_buf_set_lines", 0, 0, -1, false, { "# Short", "", "> **fine**" })
  settle(nvim)
  T.ok(nvim:lua("return next(vim.treesitter.get_parser(0, 'markdown'):parse(true)) ~= nil"), "it is parsed again")
  nvim:keys("gA")
  nvim:wait_turns(1)
  nvim:prompt("edit")
  nvim:wait_screen("asks to edit a file")
  settle(nvim)
end)

T.case("the prompt, and what was written before", OPTS, function(nvim)
  play(nvim, { { text = "Fine." } })
  nvim:cmd("CursorAgent prompt")
  nvim:wait("vim.bo.filetype == 'cursoragent-prompt'", "the prompt")
  nvim:keys("<Esc>")
  for _, line in ipairs(DEEP) do
    nvim:api("nvim_buf_set_lines", 0, 0, -1, false, { line })
    settle(nvim)
  end
  nvim:api("nvim_buf_set_lines", 0, 0, -1, false, { "some **bold** text" })
  settle(nvim)
  T.ok(nvim:lua("return next(vim.treesitter.get_parser(0, 'markdown'):trees()) ~= nil"), "it is parsed again")
  nvim:api("nvim_buf_set_lines", 0, 0, -1, false, { "" })
  nvim:keys("i" .. (">"):rep(260))
  settle(nvim)
end)

T.case("markdown files the user has open, or opens, that an agent wrote", {
  width = 120,
  height = 40,
  files = { ["a.md"] = "# a\n\nsome **text**\n" },
}, function(nvim)
  nvim:cmd("autocmd FileType markdown lua vim.treesitter.start()")
  nvim:cmd("edit a.md")
  settle(nvim)
  nvim:use(T.agent({
    turns = {
      {
        { write_file = { path = "b.md", text = TEXT } },
        {
          request = {
            method = "fs/write_text_file",
            params = { sessionId = "${session}", path = "${cwd}/a.md", content = TEXT },
          },
        },
      },
    },
  }))
  nvim:prompt("write")
  nvim:wait_turns(1)
  nvim:cmd("wincmd t")
  nvim:wait("vim.fn.bufnr('a.md') > 0 and vim.api.nvim_buf_line_count(vim.fn.bufnr('a.md')) > 100", "the text")
  settle(nvim)
  nvim:cmd("buffer a.md")
  read_all(nvim)
  nvim:cmd("edit b.md")
  read_all(nvim)
  nvim:cmd("edit!")
  read_all(nvim)
  nvim:cmd("%delete _")
  nvim:api("nvim_buf_set_lines", 0, 0, -1, false, { "# Short" })
  settle(nvim)
  T.ok(nvim:lua("return next(vim.treesitter.get_parser(0, 'markdown'):trees()) ~= nil"), "it is parsed again")
  vim.fn.writefile({ "# fine", "", "> quoted" }, nvim.work .. "/d.md")
  nvim:cmd("edit d.md")
  settle(nvim)
  T.ok(nvim:lua("return vim.treesitter.get_node({ pos = { 2, 2 } }) ~= nil"), "other files have their trees")
end)

T.case("files that a modeline, or the user, makes markdown, coloured before anyone else sees them", OPTS, function(nvim)
  nvim:cmd("set modeline modelines=5")
  nvim:cmd("autocmd FileType * lua pcall(vim.treesitter.start)")
  nvim:lua("vim.treesitter.language.register('markdown', 'rmd')")
  local names = { "a.rmd", "notes.txt", "README" }
  local steps = {}
  for i, name in ipairs(names) do
    steps[i] = { write_file = { path = name, text = TEXT .. "\n\n<!-- vim: set ft=markdown: -->\n" } }
  end
  play(nvim, steps)
  nvim:cmd("wincmd t")
  for _, name in ipairs(names) do
    nvim:cmd("edit " .. name)
    settle(nvim)
    nvim:keys("<C-f>")
    settle(nvim)
    nvim:cmd("edit!")
    settle(nvim)
    nvim:api("nvim_buf_set_lines", 0, 0, -1, false, { "# Short", "", "> quoted" })
    settle(nvim)
    T.ok(nvim:lua("return next(vim.treesitter.get_parser(0, 'markdown'):parse()) ~= nil"), "it is parsed again")
    nvim:cmd("set nomodified")
  end
end)

---A help file with an example in markdown, which its parser hands to that of markdown.
---@param example string
---@return string
local function help_with(example)
  return "*x.txt*  About x\n\nExample: >markdown\n " .. example:gsub("\n", "\n ") .. "\n<\nThe end.\n vim:ft=help:\n"
end

T.case("files of other kinds with markdown in them, which an agent wrote", {
  width = 120,
  height = 40,
  files = { ["x.txt"] = help_with("some **text**"), ["z.txt"] = help_with("some **text**") },
}, function(nvim)
  nvim:cmd("edit z.txt")
  nvim:cmd("set filetype=text")
  nvim:cmd("edit x.txt")
  nvim:cmd("set filetype=help")
  settle(nvim)
  local hostile = help_with(TEXT)
  nvim:use(T.agent({
    turns = {
      {
        { write_file = { path = "y.txt", text = hostile } },
        {
          request = {
            method = "fs/write_text_file",
            params = { sessionId = "${session}", path = "${cwd}/x.txt", content = hostile },
          },
        },
      },
      {
        {
          request = {
            method = "fs/write_text_file",
            params = { sessionId = "${session}", path = "${cwd}/z.txt", content = hostile },
          },
        },
      },
    },
  }))
  nvim:prompt("write")
  nvim:wait_turns(1)
  nvim:cmd("wincmd t")
  nvim:cmd("buffer x.txt")
  nvim:wait("vim.api.nvim_buf_line_count(0) > 100", "the text")
  read_all(nvim)
  nvim:lua("assert(vim.treesitter.highlighter.active[vim.api.nvim_get_current_buf()], 'it is coloured')")
  nvim:cmd("edit!")
  read_all(nvim)
  nvim:cmd("edit y.txt")
  nvim:cmd("set filetype=help")
  read_all(nvim)
  -- One that is coloured only later.
  nvim:cmd("buffer z.txt")
  nvim:lua("vim.treesitter.start(0, 'vimdoc'); vim.bo.filetype = 'help'")
  nvim:prompt("write again")
  nvim:wait_turns(2)
  nvim:wait("vim.api.nvim_buf_line_count(vim.fn.bufnr('z.txt')) > 100", "the text")
  nvim:cmd("wincmd t")
  nvim:cmd("buffer z.txt")
  read_all(nvim)
  nvim:api("nvim_buf_set_lines", 0, 0, -1, false, vim.split(help_with("some **text**"), "\n"))
  settle(nvim)
  T.ok(nvim:lua("return next(vim.treesitter.get_parser(0):parse(true)) ~= nil"), "it is parsed again")
end)

T.case("plugins that draw the chat's markdown, and vim.treesitter.start on it", OPTS, function(nvim)
  nvim:lua([[
    package.loaded["render-markdown"] = {}
    vim.api.nvim_create_autocmd("FileType", {
      pattern = "cursoragent",
      callback = function(args)
        local function read()
          vim.treesitter.get_parser(args.buf):parse(true)
        end
        vim.treesitter.start(args.buf, "markdown")
        vim.api.nvim_buf_attach(args.buf, false, { on_lines = function()
          read()
          vim.schedule(read)
        end })
      end,
    })
  ]])
  play(nvim, {
    { text = "A *fine* text.\n" },
    { update = { sessionUpdate = "tool_call", toolCallId = "t", title = "x", kind = "other", status = "completed" } },
    { text = "x\n" },
    { chunks = { count = 260, text = ">", every_ms = 1 } },
    { text = "\n" .. TEXT },
    { update = { sessionUpdate = "tool_call", toolCallId = "u", title = "x", kind = "other", status = "completed" } },
    { text = "The end." },
  })
  nvim:wait_screen("The end.")
  T.ok(
    nvim:lua([[
      local chat = require("cursor_agent.chat.registry").current()
      local trees = vim.treesitter.get_parser(chat.buf, "markdown"):parse()
      return vim.tbl_count(trees) >= 2
    ]]),
    "the other messages are markdown"
  )
end)

T.case("the buffer of a subagent", OPTS, function(nvim)
  local running = { state = "running" }
  play(nvim, {
    { update = { sessionUpdate = "subagent_update", sessionId = "a", title = "Deep work", state = running } },
    {
      update = { sessionUpdate = "agent_message_chunk", content = { type = "text", text = TEXT } },
      session = "a",
    },
    { text = "The end." },
  })
  nvim:cmd("wincmd l")
  nvim:lua([[
    local chat = require("cursor_agent.chat.registry").current()
    for index, item in pairs(chat.transcript.items) do
      if item.kind == "tool" then
        assert(require("cursor_agent.chat.subagent").open(chat, index))
        return
      end
    end
  ]])
  nvim:wait("vim.api.nvim_buf_get_name(0):find('subagent') ~= nil", "its buffer")
  nvim:lua("vim.treesitter.start(0, 'markdown')")
  read_all(nvim)
end)

T.case("the guard holds back what nests too deeply, and nothing that people write", OPTS, function(nvim)
  ---@param lang string
  ---@param text string
  ---@return boolean
  local function safe(lang, text)
    return nvim:lua(
      "return require('cursor_agent.colour.guard').safe(...)",
      lang,
      vim.split(text, "\n", { plain = true })
    )
  end
  for _, line in ipairs(DEEP) do
    T.ok(not safe("markdown", line), line)
    T.ok(not safe("rust", "/// " .. line), "in a comment, where markdown may be injected")
  end
  local stairs = {}
  for i = 1, 300 do
    stairs[i] = (" "):rep(i) .. "if x:"
  end
  T.ok(not safe("python", table.concat(stairs, "\n")))
  T.ok(not safe("javascript", ("`${"):rep(300)))
  T.ok(not safe("html", ("<div>"):rep(500)))
  T.ok(not safe("bash", "cat <<" .. ("E"):rep(300)))
  T.ok(not safe("rust", "r" .. ("#"):rep(300) .. '"'))
  for _, path in ipairs({
    "README.md",
    "CHANGELOG.md",
    "crates/engine/src/screen/view.rs",
    "lua/cursor_agent/config/schema.lua",
    "scripts/help.txt",
  }) do
    local text = table.concat(vim.fn.readfile(T.root .. "/" .. path), "\n")
    T.ok(safe(path:match("md$") and "markdown" or path:match("rs$") and "rust" or "lua", text), path)
  end
  T.ok(safe("markdown", ("> "):rep(40) .. "x"))
  T.ok(safe("markdown", ("-"):rep(500)), "a long rule")
  T.ok(safe("cpp", ("std::cout << value << std::endl;\n"):rep(200)))
end)

T.case("ten thousand generated documents in every parser Neovim brings", { needs_ms = 120000 }, function(nvim)
  local seed = tonumber(vim.env.FUZZ_SEED) or os.time() % 100000
  local out = nvim.work .. "/fuzz"
  local done = vim
    .system({ vim.v.progpath, "--clean", "--headless", "-l", T.root .. "/tests/fuzz/parsers.lua" }, {
      env = {
        FUZZ_ROOT = T.root,
        FUZZ_SEED = tostring(seed),
        FUZZ_DOCUMENTS = vim.env.FUZZ_DOCUMENTS or "10000",
        FUZZ_OUT = out,
      },
    })
    :wait()
  local said = table.concat(vim.fn.readfile(out), "\n")
  T.ok(
    done.code == 0 and said:find("^done"),
    ("FUZZ_SEED=%d ended with %d at %s: %s"):format(seed, done.code, said, done.stderr)
  )
end)
