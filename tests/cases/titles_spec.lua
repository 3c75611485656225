-- Titles where Neovim would show the name of a buffer: tab line, statusline, lists of buffers.

local T = require("harness")

local OPTS = { width = 100, height = 24, files = { ["src/a.lua"] = "return 1\n", ["b.lua"] = "return 2\n" } }

---@param nvim harness.Child
---@return string
local function top(nvim)
  return (nvim:screen()[1]:gsub("%s+$", ""))
end

---@param nvim harness.Child
---@param text string
local function wait_top(nvim, text)
  nvim:wait(function()
    return top(nvim) == text
  end, ("the tab line %q, not %q"):format(text, top(nvim)))
end

---@param nvim harness.Child
local function start(nvim)
  nvim:use(T.agent({ turns = { { { text = "Hello." } }, { { text = "Bye." } } } }))
  nvim:cmd("edit src/a.lua")
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
end

T.case("the default tab line has the chat's title, and is Neovim's own again without a chat", OPTS, function(nvim)
  start(nvim)
  nvim:cmd("set showtabline=2")
  wait_top(nvim, " 3 New chat")
  nvim:keys("Fix 100% of src/a.lua<C-s>")
  nvim:wait_turns(1)
  wait_top(nvim, " 3 Fix 100% of src/a.lua")
  nvim:lua("require('cursor_agent.chat.titles').give(require('cursor_agent.chat.registry').current(), 'Parser')")
  wait_top(nvim, " 3 Parser")
  nvim:cmd("set showtabline=1")
  nvim:wait("vim.o.tabline == ''", "nothing to be set where no tab line is shown")
  -- What the others show is what Neovim shows.
  nvim:keys("<Esc><C-w>h:tabnew b.lua<CR>")
  nvim:wait("vim.o.tabline ~= ''", "the tab line")
  local ours = top(nvim)
  nvim:cmd("tabprevious | wincmd l | wincmd j")
  nvim:wait("vim.bo.filetype == 'cursoragent-prompt'", "the prompt")
  nvim:wait(function()
    return top(nvim):find("^ 3 Parser  b.lua +X$") ~= nil
  end, "the title of the chat")
  nvim:cmd("wincmd t | CursorAgent close")
  nvim:wait("vim.o.tabline == ''", "Neovim's own tab line")
  nvim:cmd("vsplit | vsplit | tabnext")
  T.eq(top(nvim), ours, "drawn as Neovim draws it")
end)

T.case("a 'tabline' of the user's is left alone, whenever it is set", OPTS, function(nvim)
  nvim:cmd("set showtabline=2 tabline=MINE")
  start(nvim)
  nvim:lua("vim.wait(20)")
  wait_top(nvim, "MINE")
  nvim:cmd("set tabline=")
  wait_top(nvim, " 3 New chat")
  nvim:cmd("set tabline=OTHER")
  nvim:cmd("tabnew | CursorAgent")
  wait_top(nvim, "OTHER")
end)

T.case("long titles in many tab pages keep their beginnings, and each tab page its label", OPTS, function(nvim)
  start(nvim)
  nvim:keys("A title that is too long for a label in the tab line of Neovim, 漢字漢字漢字漢字<C-s>")
  nvim:wait_turns(1)
  for i = 1, 6 do
    nvim:cmd("tabnew b.lua")
    nvim:wait("vim.fn.tabpagenr('$') == " .. i + 1, "a tab page")
  end
  nvim:wait(function()
    return top(nvim):find("^ 3 A title t… ") and select(2, top(nvim):gsub("b%.lua", "")) == 6
  end, "seven labels")
  nvim:api("nvim_input_mouse", "left", "press", "", 0, 0, 3)
  nvim:wait("vim.fn.tabpagenr() == 1", "a click to go to the chat")
end)

T.case("no window of the plugin shows the name of its buffer", OPTS, function(nvim)
  start(nvim)
  nvim:keys("Fix the parser<C-s>")
  nvim:wait_turns(1)
  nvim:keys("<Esc>")
  for command, title in
    vim.spairs({
      log = "Protocol log",
      status = "Status",
      export = "Export",
      mcp = "MCP servers",
    })
  do
    nvim:cmd("CursorAgent " .. command)
    nvim:wait_screen(title)
    T.eq(nvim:sees("cursor-agent-term"), false, command)
    nvim:keys(":q!<CR>")
    nvim:wait_screen_without(title .. "  ")
  end
  T.contains(nvim:lua("return vim.fn.execute('ls!')"), "prompt: Fix the parser")
  -- A statusline of the user's own is left alone.
  nvim:cmd("set statusline=%t\\ MINE | CursorAgent log")
  nvim:wait_screen("log MINE")
end)
