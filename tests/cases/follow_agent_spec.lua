-- Following the agent: another window shows what it reads and edits, and the user's own stays as it is.

local T = require("harness")

---@param from integer
---@param to integer
---@param other? table<integer, string>
---@return string
local function numbered(from, to, other)
  local lines = {}
  for i = from, to do
    lines[#lines + 1] = other and other[i] or "line " .. i
  end
  return table.concat(lines, "\n") .. "\n"
end

local OLD = numbered(1, 100)
local NEW = numbered(1, 100, { [60] = "sixty" })
local FILES = { ["mine.txt"] = OLD, ["read.txt"] = OLD, ["edit.txt"] = OLD }

---@param id string
---@param path string
---@param line integer
---@return table
local function read(id, path, line)
  return {
    update = {
      sessionUpdate = "tool_call",
      toolCallId = id,
      title = "Read " .. path,
      kind = "read",
      status = "completed",
      locations = { { path = "${cwd}/" .. path, line = line } },
    },
  }
end

---@return table[]
local function edit()
  return {
    { write_file = { path = "edit.txt", text = NEW } },
    {
      update = {
        sessionUpdate = "tool_call",
        toolCallId = "edit-1",
        title = "Edit edit.txt",
        kind = "edit",
        status = "completed",
        content = { { type = "diff", path = "${cwd}/edit.txt", oldText = OLD, newText = NEW } },
      },
    },
  }
end

---@param nvim table
---@return [string, integer][] file and line of each window with code
local function windows(nvim)
  return nvim:lua([[
    local list = {}
    for _, win in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
      local buf = vim.api.nvim_win_get_buf(win)
      if vim.bo[buf].buftype == "" and vim.api.nvim_win_get_config(win).relative == "" then
        table.insert(list, { vim.fs.basename(vim.api.nvim_buf_get_name(buf)), vim.api.nvim_win_get_cursor(win)[1] })
      end
    end
    return list
  ]])
end

---@param nvim table
---@param turns table[][]
local function start(nvim, turns)
  nvim:use(T.agent({ turns = turns }))
  nvim:cmd("edit mine.txt")
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  nvim:cmd("stopinsert | wincmd t")
  nvim:keys("7G")
end

---@param nvim table
---@param expected [string, integer][]
local function expect(nvim, expected)
  nvim:wait(function()
    return vim.deep_equal(windows(nvim), expected)
  end, vim.inspect(expected) .. ", there is " .. vim.inspect(windows(nvim)))
end

T.case("is off unless asked for", { width = 120, files = FILES }, function(nvim)
  start(nvim, { { read("r1", "read.txt", 40) } })
  nvim:prompt("look")
  nvim:wait_turns(1)
  T.eq(windows(nvim), { { "mine.txt", 7 } })
end)

T.case(
  "shows what is read and edited in another window, with what was written",
  { width = 120, height = 40, files = FILES },
  function(nvim)
    local turn = { read("r1", "read.txt", 40), { wait_ms = 400 } }
    vim.list_extend(turn, edit())
    table.insert(turn, { wait_ms = 400 })
    start(nvim, { turn, { read("r2", "read.txt", 80) } })
    nvim:keys(":CursorAgent follow<CR>")
    nvim:wait_screen("following the agent in")
    nvim:keys("<Esc>")
    local before = nvim:lua("return vim.api.nvim_get_current_win()")
    nvim:lua("require('cursor_agent').prompt('look')")
    expect(nvim, { { "mine.txt", 7 }, { "read.txt", 40 } })
    expect(nvim, { { "mine.txt", 7 }, { "edit.txt", 60 } })
    local glows = [[vim.iter(vim.api.nvim_buf_get_extmarks(vim.fn.bufnr("edit.txt"),
    vim.api.nvim_create_namespace("cursor_agent_glow"), 0, -1, {})):map(function(mark) return mark[2] + 1 end):totable()]]
    nvim:wait(("vim.deep_equal(%s, { 60 })"):format(glows), "what was written stands out")
    nvim:wait(("#%s == 0"):format(glows), "and does not for long")
    nvim:wait_turns(1)
    T.eq(nvim:lua("return { vim.api.nvim_get_current_win(), vim.fn.line('.') }"), { before, 7 })
    -- Off again: nothing moves.
    nvim:keys(":CursorAgent follow<CR>")
    nvim:wait_screen("stopped following the agent")
    nvim:keys("<Esc>")
    nvim:lua("require('cursor_agent').prompt('again')")
    nvim:wait_turns(2)
    T.eq(windows(nvim), { { "mine.txt", 7 }, { "edit.txt", 60 } })
  end
)

T.case(
  "follows by option, in a window there is, while the user types",
  { width = 120, height = 40, files = FILES },
  function(nvim)
    start(nvim, { { { wait_ms = 300 }, read("r1", "read.txt", 40) } })
    nvim:lua(
      "require('cursor_agent').setup(vim.tbl_deep_extend('force', vim.deepcopy(require('cursor_agent.config').get()), { follow = { enabled = true } }))"
    )
    nvim:cmd("split mine.txt")
    nvim:keys("20Go")
    nvim:lua("require('cursor_agent').prompt('look')")
    nvim:keys("typ")
    expect(nvim, { { "mine.txt", 21 }, { "read.txt", 40 } })
    nvim:keys("ed")
    T.eq(nvim:lua("return { vim.api.nvim_get_mode().mode, vim.api.nvim_get_current_line() }"), { "i", "typed" })
  end
)

T.case(
  "the window of one's choice is left alone while one is in it, and closing it ends it",
  { width = 120, height = 40, files = FILES },
  function(nvim)
    start(nvim, { { read("r1", "read.txt", 40) }, { read("r2", "read.txt", 50) }, { read("r3", "read.txt", 60) } })
    nvim:cmd("split edit.txt")
    nvim:keys("3G:CursorAgent follow here<CR>")
    nvim:wait_screen("following the agent in this window")
    nvim:keys("<Esc>")
    nvim:lua("require('cursor_agent').prompt('look')")
    nvim:wait_turns(1)
    T.eq(windows(nvim), { { "edit.txt", 3 }, { "mine.txt", 7 } })
    nvim:cmd("wincmd j")
    nvim:lua("require('cursor_agent').prompt('look')")
    expect(nvim, { { "read.txt", 50 }, { "mine.txt", 7 } })
    nvim:wait_turns(2)
    nvim:keys(":1close<CR>")
    nvim:wait_screen("its window was closed")
    nvim:keys("<Esc>")
    nvim:lua("require('cursor_agent').prompt('look')")
    nvim:wait_turns(3)
    T.eq(windows(nvim), { { "mine.txt", 7 } })
  end
)
