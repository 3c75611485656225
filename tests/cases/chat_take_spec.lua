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
  nvim:wait_screen("exists already")
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

T.case("what the user opened stays open when the call is drawn anew, and in a window opened later", OPTS, function(nvim)
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
  nvim:wait_screen("Read y")
  T.ok(not nvim:sees("│ c"), "closed in the new window")
end)
