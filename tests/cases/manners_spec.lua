-- Manners: what the plugin costs before it is used, and what of the user's it leaves alone.

local T = require("harness")

T.case("plugin/ requires nothing and is a small part of a bare start", function(child)
  T.eq(
    child:lua([[
      return vim.tbl_filter(function(name)
        return vim.startswith(name, "cursor_agent")
      end, vim.tbl_keys(package.loaded))
    ]]),
    {}
  )
  local best = math.huge
  for i = 1, 5 do
    local log = ("%s/startup-%d"):format(child.dir, i)
    local run = child:lua(
      [[
        local root, log = ...
        return vim.system({ vim.v.progpath, "--clean", "--headless", "--cmd", "set rtp^=" .. root,
          "--startuptime", log, "+qall" }):wait()
      ]],
      T.root,
      log
    )
    T.eq(run.code, 0, run.stderr)
    local own, whole ---@type number?, number?
    for line in io.lines(log) do
      -- clock, then what it took with all it sourced, then what it took itself.
      own = own or tonumber(line:match("^%S+%s+(%S+)%s+%S+: sourcing .*/plugin/cursor_agent%.lua$"))
      whole = tonumber(line:match("^(%S+)%s+%S+: %-%-%- NVIM STARTED")) or whole
    end
    best = math.min(best, assert(own) / assert(whole))
  end
  -- A bare start takes about 12 ms, this about 0.6 of them; the machine's speed is not what is tested.
  T.ok(best < 0.1, ("plugin/cursor_agent.lua took %.1f %% of a bare start"):format(best * 100))
end)

T.case("the library is loaded by the first use, not by setup", function(child)
  child:lua([[require("cursor_agent").setup({ agent = "demo" })]])
  T.eq(child:lua("return package.loaded.cursor_agent_native == nil"), true)
  T.eq(#T.processes(), 1)
end)

T.case("no key is mapped outside the plugin's own buffers", { height = 30, width = 120 }, function(child)
  local function global()
    return child:lua([[
      local found = {}
      for _, mode in ipairs({ "n", "x", "s", "o", "i", "c", "t" }) do
        for _, map in ipairs(vim.api.nvim_get_keymap(mode)) do
          local own = vim.startswith(map.lhs, "<Plug>(cursor-agent-")
          table.insert(found, not own and mode .. " " .. map.lhs or nil)
        end
      end
      table.sort(found)
      return found
    ]])
  end
  local bare = child:lua([[
    local script = "for _, m in ipairs({'n','x','s','o','i','c','t'}) do for _, map in ipairs(vim.api.nvim_get_keymap(m)) do "
      .. "print(m .. ' ' .. map.lhs) end end"
    local run = vim.system({ vim.v.progpath, "--clean", "--headless", "+lua " .. script, "+qall" }, { text = true }):wait()
    local lines = vim.split(vim.trim(run.stderr), "\r?\n")
    table.sort(lines)
    return lines
  ]])
  T.eq(global(), bare)
  -- Nor by its use.
  child:use(
    T.agent({ turns = { { { permission = { toolCall = { toolCallId = "a", title = "`ls`", kind = "execute" } } } } } })
  )
  child:prompt("go")
  child:wait_screen("asks to run")
  child:cmd("CursorAgent decisions")
  child:cmd("CursorAgent todos")
  T.eq(global(), bare)
end)

T.case("each mapping of the plugin's buffers says what it does", function(child)
  child:use(T.agent({}))
  child:cmd("CursorAgent")
  child:wait_state("idle")
  local mute = child:lua([[
    local found = {}
    for _, mode in ipairs({ "n", "i" }) do
      for _, map in ipairs(vim.api.nvim_buf_get_keymap(0, mode)) do
        if not map.desc then
          table.insert(found, map.lhs)
        end
      end
    end
    return found
  ]])
  T.eq(mute, {})
end)

T.case("messages come through vim.notify with a title", function(child)
  child:lua([[
    _G.said = {}
    vim.notify = function(message, level, opts)
      table.insert(_G.said, { message = message, level = level, title = (opts or {}).title })
    end
  ]])
  child:keys(":CursorAgent frobnicate<CR>")
  local said = child:wait("_G.said[1]", "a message")
  T.eq(said.title, "cursor-agent")
  T.eq(said.level, vim.log.levels.ERROR)
  T.contains(said.message, "frobnicate")
end)

T.case("a long message in wide characters is shown as far as it fits, and waits for no key", function(child)
  for _, text in ipairs({ ("漢字"):rep(60), "漢字\n" .. ("漢字"):rep(60), ("漢字"):rep(18) }) do
    -- Later: where Neovim waits for a key it answers nothing.
    child:lua_later("require('cursor_agent.notify').notify(...) _G.shown = true", text)
    child:wait_screen("(:messages)")
    T.eq(child:api("nvim_get_mode").blocking, false)
    child:wait("_G.shown", "the message")
    child:lua("_G.shown = nil vim.cmd('echo')")
    child:wait_screen_without("(:messages)")
  end
end)

T.case("a message that is cut keeps what to do about it, and both ends of a path", function(child)
  local path = "/home/someone/.local/share/nvim/lazy/cursor-agent.nvim/lib/cursor_agent.so"
  local texts = {
    -- The remedy in a line of its own, far behind in the first one, and in one that fits.
    [("vibe is not logged in: %s\n  :CursorAgent login runs `vibe --setup`"):format(("word "):rep(30))] = "… · :CursorAgent login (:messages)",
    [("the library %s is of no use, %s: run `:CursorAgent build`"):format(path, ("word "):rep(30))] = "the library /home/…/cursor_agent… · :CursorAgent build (:messages)",
    [("cannot read %s\n  permission denied"):format(path)] = "cannot read /home/…/cursor_agent.so (:messages)",
    ["run `:CursorAgent build`: the library is not built\n  " .. path] = "run `:CursorAgent build`: the library is not built (:messages)",
  }
  for text, shown in vim.spairs(texts) do
    child:lua_later("require('cursor_agent.notify').notify(...)", text)
    child:wait_screen(shown)
    T.ok(not text:find(":CursorAgent", 1, true) or child:sees(":CursorAgent"), "what to do is cut off")
    T.eq(child:api("nvim_get_mode").blocking, false)
    T.contains(child:messages():gsub("%s+", ""), (text:gsub("%s+", "")))
    child:lua("vim.cmd('messages clear') vim.cmd('echo')")
    child:wait_screen_without(shown)
  end
end)

T.case("highlights are defaults: a colorscheme and the user have the last word", function(child)
  child:lua([[vim.api.nvim_set_hl(0, "CursorAgentUser", { bold = true })]])
  child:use(T.agent({}))
  child:cmd("CursorAgent")
  child:wait_state("idle")
  T.eq(child:lua("return vim.api.nvim_get_hl(0, { name = 'CursorAgentUser' }).bold"), true)
  T.eq(child:lua("return vim.api.nvim_get_hl(0, { name = 'CursorAgentPath' }).link"), "Directory")
  child:cmd("colorscheme blue")
  T.eq(child:lua("return vim.api.nvim_get_hl(0, { name = 'CursorAgentPath' }).link"), "Directory")
end)

T.case("nothing that is drawn beside text has a ground of its own in Neovim's colorschemes", function(child)
  child:use(T.agent({}))
  child:cmd("CursorAgent")
  child:wait_state("idle")
  local found = child:lua([[
    local found = {}
    for _, scheme in ipairs(vim.fn.getcompletion("", "color")) do
      vim.cmd.colorscheme(scheme)
      local normal = vim.api.nvim_get_hl(0, { name = "Normal", link = false }).bg
      for _, name in ipairs({ "Gutter", "Rule", "Wrapped", "Aside", "LineNr", "Detail", "More" }) do
        local hl = vim.api.nvim_get_hl(0, { name = "CursorAgent" .. name, link = false })
        if hl.reverse or (hl.bg and hl.bg ~= normal) then
          table.insert(found, scheme .. " " .. name)
        end
      end
    end
    return found
  ]])
  T.eq(found, {})
end)

-- A value, and the corner it gives. Neovim 0.11 knows names only.
local BORDERS = { double = "╔", none = "asks to run", ["1,-,2,|,3,-,4,|"] = "--2" }

for value, corner in vim.spairs(BORDERS) do
  T.case(("'winborder' %s is honoured where there is one"):format(value), { width = 120, height = 30 }, function(child)
    child:use(
      T.agent({ turns = { { { permission = { toolCall = { toolCallId = "a", title = "`ls`", kind = "execute" } } } } } })
    )
    local known = child:lua("local value = ...; return (pcall(function() vim.o.winborder = value end))", value)
    child:prompt("go")
    child:wait(function()
      return child:lua("return #require('cursor_agent').pending() == 1")
    end, "the permission")
    child:wait_screen("asks to run")
    child:wait_screen(known and corner or "╭")
    -- The chat as a float of its own has the same border.
    child:cmd("CursorAgent close")
    child:lua("require('cursor_agent').open({ position = 'float' })")
    child:wait("vim.bo.filetype == 'cursoragent-prompt'", "the prompt in a float")
    T.eq(child:lua("return vim.v.errmsg"), "")
  end)
end

T.case("a user interface that is attached from elsewhere shows the same", { width = 100 }, function(child)
  child:use(T.agent({ turns = { { { text = "Words over a wire." } } } }))
  child:prompt("hello")
  child:wait_turns(1)
  -- As --remote-ui and GUIs do: another size, another screen.
  child:api("nvim_ui_try_resize", 90, 20)
  child:wait_screen("Words over a wire.")
end)

T.case("terminals come and go by --remote-ui while a turn runs", { width = 100, height = 30 }, function(child)
  local ask = {
    permission = { toolCall = { toolCallId = "a", title = "`ls`", kind = "execute" } },
    ["then"] = { ["allow-once"] = { { text = " Allowed from afar." } } },
  }
  child:use(T.agent({ turns = { { { text = "Words over a wire." }, ask }, { { text = "Out of sight." } } } }))
  local function uis()
    return child:lua("return #vim.api.nvim_list_uis()")
  end
  child:prompt("hello")
  child:wait_screen("asks to run")

  -- A terminal with few colours, smaller than the first one: Neovim draws what both have room for.
  local seen = {} ---@type string[]
  local job = vim.fn.jobstart({ vim.v.progpath, "--server", child:lua("return vim.v.servername"), "--remote-ui" }, {
    pty = true,
    width = 80,
    height = 24,
    env = { TERM = "screen", COLORTERM = "" },
    on_stdout = function(_, data)
      vim.list_extend(seen, data)
    end,
  })
  T.ok(job > 0, "the terminal did not start")
  child:wait(function()
    local text = table.concat(seen)
    return uis() == 2 and text:find("Words over", 1, true) and text:find("asks to run", 1, true)
  end, "the chat and the decision in the second terminal")
  T.eq(child:lua("return { vim.o.columns, vim.o.lines }"), { 80, 24 })
  vim.fn.chansend(job, "\27:CursorAgent accept\r")
  child:wait(function()
    return table.concat(seen):find("Allowed from", 1, true)
  end, "the answer in the second terminal")
  child:wait_turns(1)
  -- The line drops.
  vim.fn.jobstop(job)
  child:wait(function()
    return uis() == 1
  end, "the second terminal to be gone")
  child:wait_screen("Allowed from afar.")

  -- A turn out of sight, and a screen of another size that comes later.
  child:api("nvim_ui_detach")
  T.eq(uis(), 0)
  child:lua("require('cursor_agent').prompt('again')")
  child:wait_turns(2)
  child:api("nvim_ui_attach", 90, 26, { rgb = true, ext_linegrid = true, ext_hlstate = true })
  child:wait_screen("Out of sight.")
  T.eq(child:lua("return vim.v.errmsg"), "")
end)

T.case(
  "a GUI that draws windows, messages and the command line by itself has all of it",
  { width = 100 },
  function(child)
    local ask = {
      permission = { toolCall = { toolCallId = "a", title = "`ls`", kind = "execute" } },
      ["then"] = { ["allow-once"] = { { text = " Allowed." } } },
    }
    child:use(T.agent({ turns = { { { text = "Words." }, ask } } }))
    child:api("nvim_ui_detach")
    child:api("nvim_ui_attach", 100, 30, {
      rgb = true,
      ext_linegrid = true,
      ext_multigrid = true,
      ext_messages = true,
      ext_cmdline = true,
      ext_popupmenu = true,
    })
    child:keys(":CursorAgent<CR>")
    child:wait_state("idle")
    child:keys("hello<C-s>")
    child:wait("#require('cursor_agent').pending() == 1", "the permission")
    child:keys("<Esc>:CursorAgent accept<CR>")
    child:wait_turns(1)
    T.eq(child:texts("agent"), { "Words.", " Allowed." })
    child:keys(":CursorAgent decisions<CR>")
    child:keys(":CursorAgent<CR>")
    child:wait("#vim.api.nvim_list_wins() == 1", "the chat to be closed")
    T.eq(child:lua("return vim.v.errmsg"), "")
  end
)

T.case("Neovim's Progress event reports a running turn, where it exists", function(child)
  local knows = child:lua([[
    if vim.fn.exists("##Progress") == 0 then
      return false
    end
    _G.told = {}
    vim.api.nvim_create_autocmd("Progress", {
      pattern = "cursor-agent",
      callback = function(event)
        table.insert(_G.told, event.data.status .. " " .. event.data.percent)
      end,
    })
    return true
  ]])
  local todos = {
    { id = "1", content = "one", status = "completed" },
    { id = "2", content = "two", status = "pending" },
  }
  local update = { method = "cursor/update_todos", params = { toolCallId = "t", todos = todos, merge = false } }
  -- Statuses that follow each other at once reach the editor as one: the turn goes on when one was told.
  local gate = { expect = "session/set_mode" }
  child:use(T.agent({ turns = { { { text = "a" }, gate, { request = update, wait = true }, gate, { text = "b" } } } }))
  child:prompt("hello")
  child:wait(function()
    return child:texts("agent")[1] == "a"
  end, "the turn to run")
  ---@param said string
  local function wait_told(said)
    if knows then
      child:wait(("_G.told[#_G.told] == %q"):format(said), said .. " to be told")
    end
  end
  wait_told("running 0")
  child:lua("require('cursor_agent').set_mode('plan')")
  wait_told("running 50")
  child:lua("require('cursor_agent').set_mode('ask')")
  child:wait_turns(1)
  child:wait_state("idle")
  wait_told("success 100")
  T.eq(child:lua("return vim.v.errmsg"), "")
end)

T.case(
  "the prompt is written in with nomodifiable set, and with nvim -M",
  { args = { "-M" }, width = 100 },
  function(child)
    child:use(T.agent({ turns = { { { text = "Hello." } } } }))
    child:cmd("set nomodifiable")
    child:cmd("CursorAgent")
    child:wait_state("idle")
    child:keys("hi there<C-s>")
    child:wait_turns(1)
    T.eq(child:texts("user"), { "hi there" })
    child:wait_screen("Hello.")
    T.eq(child:messages():find("E21"), nil)
  end
)

T.case(
  "with 'autochdir' a chat works in the project's root",
  { files = { ["src/deep/a.lua"] = "return 1\n", ["lib/b.lua"] = "return 2\n" }, args = { "src/deep/a.lua" } },
  function(child)
    child:use(T.agent({}))
    child:cmd("set autochdir | edit")
    child:wait("vim.fn.getcwd():find('deep$') ~= nil", "the directory of the file")
    child:lua("require('cursor_agent').new({ open = false })")
    T.eq(child:status().cwd, child.work, "where Neovim was started")
    vim.fn.mkdir(child.work .. "/src/.git", "p")
    child:lua("require('cursor_agent').new({ open = false })")
    T.eq(child:status().cwd, child.work .. "/src", "the repository")
    child:lua("require('cursor_agent').setup({ agent = 'test', agents = ..., workspace = { root = 'cwd' } })", {
      test = T.agent({}).options,
    })
    child:lua("require('cursor_agent').new({ open = false })")
    T.eq(child:status().cwd, child.work .. "/src/deep", "as the option says")
  end
)
