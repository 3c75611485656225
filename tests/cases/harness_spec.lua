-- The harness itself: a test that cannot fail proves nothing.

local T = require("harness")

---Compares as a test run does, also while the references are updated.
---@param child harness.Child
---@param name string
---@return boolean same
---@return any message
local function compare(child, name)
  local update = vim.env.UPDATE_SCREENSHOTS
  vim.env.UPDATE_SCREENSHOTS = nil
  local same, message = pcall(child.expect_screen, child, name, 200)
  vim.env.UPDATE_SCREENSHOTS = update
  return same, message
end

T.case("typed keys reach the buffer and the screen", { width = 40, height = 8 }, function(child)
  child:keys("ihello, <Esc>aworld<CR>宽 wide<Esc>")
  child:wait_screen("宽 wide")
  T.eq(child:lua("return vim.api.nvim_buf_get_lines(0, 0, -1, false)"), { "hello, world", "宽 wide" })
  child:expect_screen("harness-typed")
end)

T.case("a float is part of the screenshot, highlights by name", { width = 40, height = 8 }, function(child)
  child:lua([[
    local buffer = vim.api.nvim_create_buf(false, true)
    vim.api.nvim_buf_set_lines(buffer, 0, -1, false, { "float" })
    vim.api.nvim_open_win(buffer, false, { relative = "editor", row = 1, col = 10, width = 8, height = 1, border = "rounded" })
    vim.api.nvim_buf_add_highlight(buffer, -1, "DiagnosticError", 0, 0, 2)
  ]])
  child:expect_screen("harness-float")
end)

T.case("a screen that scrolls is followed", { width = 30, height = 8 }, function(child)
  child:lua([[
    local lines = {}
    for i = 1, 50 do lines[i] = "line " .. i end
    vim.api.nvim_buf_set_lines(0, 0, -1, false, lines)
  ]])
  child:keys("5<C-e>")
  child:wait_screen("line 11")
  T.eq(vim.trim(child:screen()[1]), "line 6")
  child:keys("2<C-y>")
  child:wait_screen_without("line 11")
  T.eq(vim.trim(child:screen()[1]), "line 4")
end)

T.case("half a frame is not seen", function()
  local screen = require("harness.screen").new(4, 1)
  screen:redraw({ { "grid_line", { 1, 0, 0, { { "n" }, { "e" }, { "w" } } } }, { "flush", {} } })
  screen:redraw({ { "grid_clear", { 1 } } })
  T.eq(screen:lines(), { "new " })
  screen:redraw({ { "grid_line", { 1, 0, 0, { { "o" } } } }, { "flush", {} } })
  T.eq(screen:lines(), { "o   " })
end)

T.case("a screen that differs from its reference fails with both rows", { width = 40, height = 8 }, function(child)
  child:keys("isomething else<Esc>")
  child:wait_screen("something else")
  local ok, message = compare(child, "harness-typed")
  T.eq(ok, false)
  T.contains(message, "expected 01|hello, world")
  T.contains(message, "actual   01|something else")
end)

T.case("a reference that is missing fails", function(child)
  local ok, message = compare(child, "no-such-reference")
  T.eq(ok, false)
  T.contains(message, "no reference no-such-reference.txt")
end)

T.case("a child that dies is named, with its signal", function(child)
  child:lua_later("vim.uv.kill(vim.uv.os_getpid(), 'sigkill')")
  child:wait_exit()
  local ok, message = pcall(child.lua, child, "return 1")
  T.eq(ok, false)
  T.contains(message, "Neovim is gone (signal 9)")
end)

T.case("a child that hangs fails its case in time", { deadline_ms = 1500 }, function(child)
  child:lua("vim.cmd.file('hanging')")
  local ok, message = pcall(child.lua, child, "while true do end")
  T.eq(ok, false)
  T.contains(message, "no answer within")
  T.contains(child:post_mortem(), "Neovim does not answer")
end)

T.case("an error in the child is an error of the case", function(child)
  local ok, message = pcall(child.lua, child, "error('broken on purpose')")
  T.eq(ok, false)
  T.contains(message, "broken on purpose")
end)

T.case("every process a child starts is found by its mark", function(child)
  local pid = child:lua("return vim.system({ 'sleep', '1000' }, { detach = true }).pid")
  T.ok(T.alive(pid))
  local both = { child:pid(), pid }
  -- A process has no environment for a moment between its start and its program's.
  child:wait(function()
    local pids = vim.tbl_map(function(one)
      return one.pid
    end, T.processes())
    table.sort(pids)
    return vim.deep_equal(pids, both)
  end, "exactly these two")
  child:quit()
  local ok, message = pcall(T.expect_no_process, 300)
  T.eq(ok, false)
  T.contains(message, ("%d sleep 1000"):format(pid))
  vim.uv.kill(pid, "sigkill")
  T.expect_no_process()
  T.eq(T.alive(pid), false)
end)

T.case("what differs from run to run is made equal, in its width", function(child)
  local normalise = require("harness.reference").normalise
  local function check(line, expected)
    T.eq(normalise(line, child.dir), expected)
  end
  check("at 14:02, took 1:23", "at 00:00, took 0:00")
  check("Read  0.3s · 12s · 45ms", "Read  0.0s · 00s · 00ms")
  check("3 tests, 12 lines", "3 tests, 12 lines")
  check("⠹ busy", "⠿ busy")
  local path = normalise(child.work, child.dir)
  T.eq(path:match("^TMP~+/proj$") ~= nil, true)
  T.eq(#path, #child.work)
end)
