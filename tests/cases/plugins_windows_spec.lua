-- What `:edit` and other plugins open in a window of the chat, and plugins that scroll and draw there.

local T = require("harness")

local OPTS = {
  width = 120,
  height = 24,
  files = { ["a.lua"] = "a1\na2\na3\n", ["b.lua"] = "b1\nb2\nb3\n", ["dir/c.lua"] = "c1\n" },
}

---@param nvim harness.Child
---@param options table?
local function start(nvim, options)
  nvim:use(T.agent({ turns = { { { text = "Hello." } }, { { chunks = { count = 200, text = "line\n" } } } } }), options)
  nvim:cmd("edit a.lua")
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  nvim:prompt("go")
  nvim:wait_turns(1)
  nvim:keys("<Esc>")
  nvim:wait("vim.api.nvim_get_mode().mode == 'n'", "Normal mode")
end

---The names of the buffers in the tab's windows, from left to right.
---@param nvim harness.Child
---@return string[]
local function shown(nvim)
  return nvim:lua([[
    return vim.tbl_map(function(win)
      local name = vim.api.nvim_buf_get_name(vim.api.nvim_win_get_buf(win))
      return name:match("^cursor%-agent%-term://%d+/%a+") or vim.fs.basename(name)
    end, vim.api.nvim_tabpage_list_wins(0))
  ]])
end

---@param nvim harness.Child
---@param file string
local function expect_moved(nvim, file)
  nvim:wait(function()
    return vim.deep_equal(shown(nvim), { file, "cursor-agent-term://1/chat", "cursor-agent-term://1/prompt" })
  end, file .. " in the code window and the chat back")
  T.eq(nvim:lua("return vim.fs.basename(vim.api.nvim_buf_get_name(0))"), file)
  T.eq(nvim:lua("return vim.v.errmsg"), "")
  nvim:wait_screen("Hello.")
end

for _, kind in ipairs({ "chat", "prompt" }) do
  T.case("a file opened in the " .. kind .. " is in the code window, and the chat is back", OPTS, function(nvim)
    start(nvim)
    local function enter()
      nvim:lua("vim.api.nvim_set_current_win(vim.fn.bufwinid('cursor-agent-term://1/" .. kind .. "'))")
    end
    enter()
    nvim:keys(":edit b.lua<CR>")
    expect_moved(nvim, "b.lua")
    enter()
    nvim:keys(":buffer a.lua<CR>")
    expect_moved(nvim, "a.lua")
    -- As pickers do it: the buffer, then the cursor.
    enter()
    nvim:lua([[
      local buf = vim.fn.bufadd("b.lua")
      vim.fn.bufload(buf)
      vim.bo[buf].buflisted = true
      vim.api.nvim_win_set_buf(0, buf)
      vim.api.nvim_win_set_cursor(0, { 3, 1 })
    ]])
    expect_moved(nvim, "b.lua")
    T.eq(nvim:lua("return vim.api.nvim_win_get_cursor(0)"), { 3, 1 })
    -- The chat goes on: it takes a prompt, and its window has its options.
    enter()
    local column = kind == "chat" and " " or "%#CursorAgentFrame#│ "
    T.eq(nvim:lua("return { vim.wo.number, vim.wo.statuscolumn, vim.wo.signcolumn }"), { true, column, "no" })
    nvim:prompt("more")
    nvim:wait_turns(2)
    nvim:wait("vim.fn.line('w$', vim.fn.bufwinid('cursor-agent-term://1/chat')) > 190", "the chat to follow its text")
  end)
end

T.case("a file browser that takes over the window is moved too", OPTS, function(nvim)
  -- oil.nvim: a directory becomes a buffer of its own, with buftype acwrite, wiped when it is hidden.
  nvim:lua([[
    vim.api.nvim_create_user_command("Browse", function()
      local buf = vim.api.nvim_create_buf(false, false)
      vim.api.nvim_buf_set_name(buf, "oil:///dir")
      vim.bo[buf].buftype, vim.bo[buf].bufhidden = "acwrite", "wipe"
      vim.api.nvim_buf_set_lines(buf, 0, -1, false, { "c.lua" })
      vim.api.nvim_win_set_buf(0, buf)
    end, {})
  ]])
  start(nvim)
  nvim:lua("vim.api.nvim_set_current_win(vim.fn.bufwinid('cursor-agent-term://1/chat'))")
  nvim:keys(":Browse<CR>")
  expect_moved(nvim, "dir")
  T.eq(nvim:api("nvim_buf_get_lines", 0, 0, -1, false), { "c.lua" })
  T.eq(nvim:lua("return vim.bo.bufhidden"), "wipe")
end)

---Where the code window is.
local CODE = "vim.fn.win_getid(1)"

T.case("a file opened after a browser was moved is in the same window, not beside it", OPTS, function(nvim)
  -- neo-tree in the current window: it is put there again when its list is complete, and has a buffer for each window.
  nvim:lua([[
    _G.browse = function()
      local chat = vim.api.nvim_get_current_win()
      local function show(win, name)
        local buf = vim.api.nvim_create_buf(false, true)
        vim.api.nvim_buf_set_name(buf, name)
        vim.bo[buf].filetype = "neo-tree"
        vim.api.nvim_win_set_buf(win, buf)
        return buf
      end
      local first = show(chat, "tree [1]")
      vim.defer_fn(function()
        show(vim.fn.win_getid(1), "tree [2]")
        vim.defer_fn(function()
          vim.api.nvim_win_set_buf(chat, first)
          _G.browsed = true
        end, 30)
      end, 30)
    end
  ]])
  start(nvim)
  local win = nvim:lua("return " .. CODE)
  nvim:lua("vim.api.nvim_set_current_win(vim.fn.bufwinid('cursor-agent-term://1/chat'))")
  nvim:lua("_G.browse()")
  nvim:wait("_G.browsed", "the browser")
  expect_moved(nvim, "tree [1]")
  nvim:lua("vim.api.nvim_set_current_win(vim.fn.bufwinid('cursor-agent-term://1/chat'))")
  nvim:keys(":edit b.lua<CR>")
  expect_moved(nvim, "b.lua")
  T.eq(nvim:lua("return " .. CODE), win)
end)

T.case("a directory is left to the file browser that deals with it, and the code stays", OPTS, function(nvim)
  -- neo-tree: a moment later the window has what it had before, and the tree is beside it.
  nvim:cmd("silent! autocmd! FileExplorer")
  nvim:lua([[
    vim.api.nvim_create_autocmd("BufEnter", {
      callback = function(event)
        if vim.fn.isdirectory(vim.api.nvim_buf_get_name(event.buf)) == 0 or vim.bo[event.buf].buftype ~= "" then
          return
        end
        local win = vim.api.nvim_get_current_win()
        vim.defer_fn(function()
          vim.api.nvim_win_set_buf(win, vim.fn.bufnr("#"))
          vim.cmd("topleft 20vnew")
          vim.bo.buftype, vim.bo.filetype = "nofile", "tree"
          vim.api.nvim_buf_set_name(0, "tree")
          vim.api.nvim_buf_delete(event.buf, { force = true })
        end, 10)
      end,
    })
  ]])
  start(nvim)
  for _, kind in ipairs({ "chat", "prompt" }) do
    nvim:lua("vim.api.nvim_set_current_win(vim.fn.bufwinid('cursor-agent-term://1/" .. kind .. "'))")
    nvim:keys(":edit dir<CR>")
    nvim:wait("vim.bo.filetype == 'tree'", "the tree")
    nvim:wait("vim.fn.bufexists('dir') == 0", "the directory's buffer to go")
    T.eq(shown(nvim), { "tree", "a.lua", "cursor-agent-term://1/chat", "cursor-agent-term://1/prompt" })
    nvim:cmd("bwipeout!")
  end
  T.eq(nvim:lua("return vim.v.errmsg"), "")
end)

T.case("a file browser asked to reveal the current file has nothing to reveal in our buffers", OPTS, function(nvim)
  -- neo-tree: a name that is no terminal's is a path, and its directory is offered as the root. This is what it would reveal.
  nvim:lua([[
    _G.path_to_reveal = function()
      local short, long = vim.fn.expand("%"), vim.api.nvim_buf_get_name(0)
      if vim.api.nvim_win_get_config(0).relative ~= "" or short == "" or long == "" or long:match("term://") then
        return nil
      end
      return short == long and long or vim.fs.joinpath(vim.fn.getcwd(), short)
    end
  ]])
  start(nvim)
  local function reveal()
    return nvim:lua("return _G.path_to_reveal()")
  end
  nvim:wait("vim.fn.bufname('%'):find('go')", "the title in the name")
  T.eq(reveal(), nil)
  nvim:lua("vim.api.nvim_set_current_win(vim.fn.bufwinid('cursor-agent-term://1/chat'))")
  T.eq(reveal(), nil)
  for _, command in ipairs({ "log", "mcp", "review", "cloud", "status" }) do
    nvim:cmd("CursorAgent " .. command)
    for _, win in ipairs(nvim:api("nvim_tabpage_list_wins", 0)) do
      nvim:api("nvim_set_current_win", win)
      local path = reveal()
      T.ok(not path or vim.fs.basename(path) == "a.lua", ("%s: %s"):format(command, path))
    end
  end
end)

T.case("a directory that nothing deals with is moved", OPTS, function(nvim)
  start(nvim)
  nvim:lua("vim.api.nvim_set_current_win(vim.fn.bufwinid('cursor-agent-term://1/prompt'))")
  nvim:cmd("silent! autocmd! FileExplorer")
  nvim:keys(":edit dir<CR>")
  expect_moved(nvim, "dir")
end)

T.case("a buffer that an event deletes while it is moved does no harm", OPTS, function(nvim)
  start(nvim)
  nvim:lua([[
    vim.api.nvim_create_autocmd("BufEnter", {
      pattern = "b.lua",
      callback = function(event)
        if vim.fn.win_getid(1) == vim.api.nvim_get_current_win() then
          -- What mini.files does with a directory.
          vim.cmd("buffer a.lua")
          vim.api.nvim_buf_delete(event.buf, { force = true })
        end
      end,
    })
    vim.api.nvim_create_autocmd("BufLeave", {
      pattern = "stays.lua",
      callback = function() error("not now") end,
    })
  ]])
  local function enter()
    nvim:lua("vim.api.nvim_set_current_win(vim.fn.bufwinid('cursor-agent-term://1/prompt'))")
  end
  enter()
  nvim:keys(":edit b.lua<CR>")
  nvim:wait(function()
    return vim.deep_equal(shown(nvim), { "a.lua", "cursor-agent-term://1/chat", "cursor-agent-term://1/prompt" })
  end, "the chat back")
  nvim:wait("vim.fn.bufexists('b.lua') == 0", "the buffer to go")
  T.ok(not nvim:messages():find("foreign.lua", 1, true), nvim:messages())
  -- One that the user's autocommand keeps in place: a message says so, and nothing else happens.
  enter()
  nvim:keys(":edit stays.lua<CR>")
  nvim:wait(function()
    return nvim:messages():find("BufLeave Autocommands", 1, true)
  end, "the failure")
  T.ok(not nvim:messages():find("foreign.lua", 1, true), nvim:messages())
end)

T.case("a buffer put into the chat from another window moves, and the user stays", OPTS, function(nvim)
  start(nvim)
  nvim:cmd("1wincmd w")
  nvim:cmd("split")
  local here = nvim:lua("return vim.api.nvim_get_current_win()")
  nvim:lua([[
    local buf = vim.fn.bufadd("b.lua")
    vim.fn.bufload(buf)
    vim.api.nvim_win_set_buf(vim.fn.bufwinid("cursor-agent-term://1/prompt"), buf)
  ]])
  nvim:wait(function()
    return vim.list_contains(shown(nvim), "cursor-agent-term://1/prompt") and vim.list_contains(shown(nvim), "b.lua")
  end, "the prompt back")
  T.eq(nvim:lua("return vim.api.nvim_get_current_win()"), here)
end)

T.case("a file opened in a split of the chat is beside the code", OPTS, function(nvim)
  start(nvim)
  for kind, command in pairs({ chat = "split", prompt = "vsplit" }) do
    nvim:lua("vim.api.nvim_set_current_win(vim.fn.bufwinid('cursor-agent-term://1/" .. kind .. "'))")
    nvim:keys((":%s +2 b.lua<CR>"):format(command))
    nvim:wait(function()
      local names = shown(nvim)
      return #names == 4 and names[3] == "cursor-agent-term://1/chat" and names[4] == "cursor-agent-term://1/prompt"
    end, "the file beside the code")
    T.eq(nvim:lua("return { vim.fs.basename(vim.api.nvim_buf_get_name(0)), vim.fn.line('.') }"), { "b.lua", 2 })
    local at = nvim:lua("return { vim.fn.win_screenpos(1), vim.fn.win_screenpos(2) }")
    T.eq(at[1][command == "split" and 2 or 1], at[2][command == "split" and 2 or 1], "the same direction")
    nvim:keys(":close<CR>")
    nvim:wait(function()
      return #shown(nvim) == 3
    end, "the split to close")
  end
  -- A second look at the chat, and help, are what they were asked to be.
  nvim:lua("vim.api.nvim_set_current_win(vim.fn.bufwinid('cursor-agent-term://1/chat'))")
  nvim:keys(":split<CR>")
  nvim:wait(function()
    return #shown(nvim) == 4
  end, "the split")
  local chats = vim.tbl_filter(function(name)
    return name == "cursor-agent-term://1/chat"
  end, shown(nvim))
  T.eq(#chats, 2)
  nvim:keys(":close<CR>:help<CR>")
  nvim:wait("vim.bo.buftype == 'help'", "help")
  T.eq(nvim:lua("return vim.v.errmsg"), "")
end)

T.case("without a code window a file opened in the chat gets one", OPTS, function(nvim)
  start(nvim)
  nvim:cmd("1wincmd w | close")
  nvim:lua("vim.api.nvim_set_current_win(vim.fn.bufwinid('cursor-agent-term://1/chat'))")
  nvim:keys(":edit b.lua<CR>")
  expect_moved(nvim, "b.lua")
end)

T.case("a chat in a float makes room for a file opened in it", OPTS, function(nvim)
  start(nvim, { window = { position = "float" } })
  nvim:keys(":edit b.lua<CR>")
  nvim:wait(function()
    return vim.deep_equal(shown(nvim), { "b.lua" })
  end, "the file alone")
  nvim:cmd("CursorAgent open")
  nvim:wait_screen("Hello.")
end)

---snacks.scroll and mini.animate: a window that was scrolled is put back, and moved there in steps.
local SCROLLER = [[
  local at = {}
  vim.api.nvim_create_autocmd("WinScrolled", {
    callback = function()
      for id in pairs(vim.v.event) do
        local win = tonumber(id)
        local buf = win and vim.api.nvim_win_is_valid(win) and vim.api.nvim_win_get_buf(win)
        if buf and vim.b[buf].snacks_scroll ~= false and vim.b[buf].minianimate_disable ~= true then
          _G.animated = _G.animated or vim.b[buf].cursor_agent_key
          local target = vim.api.nvim_win_call(win, vim.fn.winsaveview)
          vim.api.nvim_win_call(win, function() vim.fn.winrestview({ topline = at[win] or 1, lnum = at[win] or 1 }) end)
          at[win] = target.topline
        end
      end
    end,
  })
]]

T.case("plugins that scroll smoothly leave the chat alone: it follows its text", OPTS, function(nvim)
  nvim:lua(SCROLLER)
  start(nvim)
  nvim:prompt("more")
  nvim:wait_turns(2)
  nvim:wait("vim.fn.line('w$', vim.fn.bufwinid('cursor-agent-term://1/chat')) > 190", "the chat to follow its text")
  T.eq(nvim:lua("return _G.animated"), nil)
  for _, name in ipairs({ "chat", "prompt" }) do
    local buf = nvim:lua("return vim.fn.bufnr('cursor-agent-term://1/" .. name .. "')")
    T.eq(nvim:lua("return { vim.b[...].snacks_indent, vim.b[...].miniindentscope_disable }", buf), { false, true })
  end
end)

---lualine, as far as extensions go: their winbar is put on windows of their filetypes, else its own.
T.case("the lualine extension has the chat's winbar and title", OPTS, function(nvim)
  start(nvim)
  nvim:lua("vim.api.nvim_set_current_win(vim.fn.bufwinid('cursor-agent-term://1/chat'))")
  local texts = nvim:lua([[
    local extension = require("lualine.extensions.cursor_agent")
    assert(vim.list_contains(extension.filetypes, vim.bo.filetype))
    local bar = extension.winbar.lualine_c[1]
    assert(bar.cond())
    local title = extension.sections.lualine_a[1]()
    return { vim.api.nvim_eval_statusline(bar[1](), {}).str, vim.api.nvim_eval_statusline(title, {}).str }
  ]])
  T.contains(texts[1], "test")
  T.ok(texts[2] ~= "", "a title")
  nvim:lua("vim.api.nvim_set_current_win(vim.fn.bufwinid('cursor-agent-term://1/prompt'))")
  -- The keys as they are mapped.
  T.contains(nvim:lua("return require('lualine.extensions.cursor_agent').sections.lualine_z[1]()"), "<C-s> send")
end)
