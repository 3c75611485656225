-- Unexpected input from agents: odd bytes, odd markdown, odd order.

local T = require("harness")

local OPTS = { width = 120, height = 36, files = { ["a.lua"] = "local a\n" } }

---@param text string
---@return table
local function content(text)
  return { type = "content", content = { type = "text", text = text } }
end

---@param id string
---@param fields table
---@return table
local function tool(id, fields)
  return {
    update = vim.tbl_extend("force", { sessionUpdate = "tool_call", toolCallId = id, status = "completed" }, fields),
  }
end

---Plays one turn and goes to the chat.
---@param nvim harness.Child
---@param turn table[]
---@param options? table
local function play(nvim, turn, options)
  nvim:use(T.agent({ turns = { turn } }), options)
  nvim:cmd("edit a.lua")
  nvim:prompt("go")
  nvim:wait_turns(1)
  nvim:cmd("wincmd l")
  T.eq(nvim:lua("return vim.bo.filetype"), "cursoragent")
end

T.case("NUL bytes and control characters are shown wherever they come", OPTS, function(nvim)
  play(nvim, {
    { thought = "th\0ink" },
    { text = "one\0two\n\n```lua\nlocal x = '\0'\n```\n" },
    tool("r", { title = "Read a\0b\tc\7", kind = "read", locations = { { path = "${cwd}/a\0.lua" } } }),
    tool("x", { title = "`ls \0x`", kind = "execute", content = { content("o\0ut\27[31m\0red") } }),
    tool(
      "d",
      { kind = "edit", content = { { type = "diff", path = "${cwd}/a.lua", oldText = "\0", newText = "\0n" } } }
    ),
    { update = { sessionUpdate = "plan", entries = { { content = "do\0it", status = "pending", priority = "low" } } } },
    { text = "The end." },
  })
  nvim:wait_screen("The end.")
  for _, part in ipairs({ "one^@two", "Read   a^@.lua", "Run    ls ^@x", "- ^@", "+ ^@n", "do^@it" }) do
    nvim:wait_screen(part)
  end
  nvim:keys("gg/local x<CR>gy")
  T.eq(nvim:lua("return vim.fn.getreg('\"', 1, 1)"), { "local x = '\n'" })
  nvim:cmd("CursorAgent export talk.md")
  T.contains(table.concat(vim.fn.readfile(nvim.work .. "/talk.md"), "\1"), "one\ntwo")
  T.eq(nvim:messages():find("E976", 1, true), nil, "no error")
end)

---The folds of the current window: first and last line of each, and whether it is closed. Opens them all.
---@param nvim harness.Child
---@return { [1]: string, [2]: string, [3]: boolean }[]
local function folds(nvim)
  return nvim:lua([[
    local found, closed = {}, {}
    for line = 1, vim.fn.line("$") do
      closed[line] = vim.fn.foldclosed(line) ~= -1
    end
    vim.cmd("normal! zM")
    local line = 1
    while line <= vim.fn.line("$") do
      local last = vim.fn.foldclosedend(line)
      if last ~= -1 then
        found[#found + 1] = { vim.fn.getline(line), vim.fn.getline(last), closed[line] }
        line = last
      end
      line = line + 1
    end
    vim.cmd("normal! zR")
    return found
  ]])
end

T.case("a call keeps its fold, and its neighbours theirs, however its lines change", OPTS, function(nvim)
  local function lines(text, count)
    return content((text .. "\n"):rep(count))
  end
  ---@param id string
  ---@param fields table
  local function update(id, fields)
    return { update = vim.tbl_extend("force", { sessionUpdate = "tool_call_update", toolCallId = id }, fields) }
  end
  nvim:use(T.agent({
    turns = {
      {
        tool("a", { title = "A", content = { lines("a", 3) } }),
        tool("b", { title = "B", content = { lines("b", 3) } }),
        tool("c", { title = "C", content = { lines("c", 3) } }),
        { text = "Done." },
      },
      { update("b", { content = { lines("b", 6) } }) },
      { update("b", { title = "B2" }), update("a", { content = { lines("a", 5) } }) },
      { update("b", { content = { lines("x", 2) } }), update("c", { title = "C2" }) },
      { update("b", { content = {} }) },
    },
  }))
  nvim:cmd("edit a.lua")
  nvim:prompt("1")
  nvim:wait_turns(1)
  nvim:cmd("wincmd l")
  ---@param turn integer
  ---@param b string[] its first and its last line
  ---@param c string its first line
  local function check(turn, b, c)
    local expected = { { "✓ Tool   A", "  │ a", true }, { b[1], b[2], true }, { c, "  │ c", true } }
    T.eq(folds(nvim), expected, "after turn " .. turn)
    nvim:cmd("normal! zM")
  end
  local function next_turn(turn)
    nvim:prompt(tostring(turn))
    nvim:wait_turns(turn)
  end
  check(1, { "✓ Tool   B", "  │ b" }, "✓ Tool   C")
  next_turn(2)
  check(2, { "✓ Tool   B", "  │ b" }, "✓ Tool   C")
  next_turn(3)
  check(3, { "✓ Tool   B2", "  │ b" }, "✓ Tool   C")
  next_turn(4)
  check(4, { "✓ Tool   B2", "  │ x" }, "✓ Tool   C2")
  nvim:cmd("normal! zR")
  nvim:keys("gg/│ x<CR>j")
  T.eq(nvim:api("nvim_get_current_line"), "  │ x")
  next_turn(5)
  T.eq(#folds(nvim), 2, "without details there is nothing to fold")
  T.eq(nvim:api("nvim_get_current_line"), "✓ Tool   B2", "the cursor stays with its call")
end)

T.case("a call about very many places shows some of them, and all on demand", OPTS, function(nvim)
  local locations = {}
  for i = 1, 200 do
    locations[i] = { path = ("${cwd}/f%d.lua"):format(i), line = i }
  end
  play(nvim, {
    tool("s", { title = "grep x", kind = "search", status = "failed", locations = locations }),
    tool("t", {
      title = "grep y",
      kind = "search",
      locations = { locations[1], locations[2] },
      content = { content("\27[31mred\27[0m") },
    }),
  })
  nvim:wait_screen("187 more places")
  T.ok(nvim:api("nvim_buf_line_count", 0) < 30, "it stays compact")
  nvim:keys("gg/more places<CR><CR>")
  nvim:wait("vim.fn.getline('$') == 'f200.lua:200'", "all of them")
  nvim:keys("q")
  T.eq(nvim:lua("return vim.bo.filetype"), "cursoragent", "back where it was asked for")
  nvim:keys("gg2]to")
  nvim:wait("vim.fn.line('$') == 4", "places and output")
  T.eq(nvim:api("nvim_buf_get_lines", 0, 0, -1, false), { "f1.lua:1", "f2.lua:2", "", "red" })
  local ns = nvim:lua("return vim.api.nvim_get_namespaces().cursor_agent_output")
  T.eq(nvim:api("nvim_buf_get_extmarks", 0, ns, 0, -1, {})[1][2], 3, "the colour stands where the text does")
end)

T.case("true colours of a command's output have a place in a terminal with 256", OPTS, function(nvim)
  play(nvim, {
    tool("x", {
      title = "`ls`",
      kind = "execute",
      status = "failed",
      content = { content("\27[38;2;254;136;1mhot\27[0m \27[48;2;9;9;9mnight") },
    }),
  })
  nvim:wait_screen("hot night")
  T.eq(nvim:lua("return vim.api.nvim_get_hl(0, { name = 'CursorAgentAnsi_xfe8801_n_' }).ctermfg"), 208)
  T.eq(nvim:lua("return vim.api.nvim_get_hl(0, { name = 'CursorAgentAnsi_n_x090909_' }).ctermbg"), 232)
end)

T.case("lines that end as in DOS are shown, and shown in full, without their ends", OPTS, function(nvim)
  play(nvim, {
    { text = "one\r" },
    { text = "\ntwo\r\n\r\n```lua\r\nlocal x\r\n```\r\n" },
    tool("x", { title = "`type a`", kind = "execute", status = "failed", content = { content("three\r\nfour\r\n") } }),
  })
  nvim:wait_screen("│ four")
  nvim:keys("ggjjo")
  nvim:wait("vim.fn.getline(2) == 'two'", "the text in full")
  nvim:keys("q]to")
  nvim:wait("vim.fn.getline(2) == 'four'", "the output in full")
  for _, line in ipairs(nvim:screen()) do
    T.eq(line:find("^M", 1, true), nil, line)
  end
end)

T.case("the time of a prompt hides none of its text, whatever its length", { width = 100, height = 24 }, function(nvim)
  local turns = {} ---@type table[]
  for i = 1, 60 do
    turns[i] = { { text = "Yes." } }
  end
  nvim:use(T.agent({ turns = turns }))
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  local turn = 0
  for length = 30, 50, 2 do
    turn = turn + 1
    local text = ("abc "):rep(20):sub(1, length - 5) .. " END" .. turn
    nvim:lua("require('cursor_agent').prompt(...)", text)
    nvim:wait_turns(turn)
    nvim:wait_screen(" END" .. turn)
  end
end)

T.case("of a title too long for the window its beginning is shown", { width = 60, height = 20 }, function(nvim)
  nvim:use(T.agent({
    turns = {
      { { update = { sessionUpdate = "session_info_update", title = "It begins " .. ("and goes on "):rep(9) } } },
    },
  }))
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  nvim:keys("go<C-s>")
  nvim:wait_turns(1)
  nvim:wait_screen(" It begins an…")
end)

T.case("a title that comes alone is shown at once", { width = 60, height = 20 }, function(nvim)
  -- After the turn, when nothing else is drawn.
  local title = { update = { sessionUpdate = "session_info_update", title = "About a parser" } }
  nvim:use(T.agent({ on = { ["session/set_mode"] = { { profile = true }, title } } }))
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  nvim:lua("require('cursor_agent').set_mode('ask')")
  nvim:wait_screen(" About a pars…")
end)
