-- A first conversation: opened by command, typed, streamed, stopped, gone on with.

local T = require("harness")

T.case("opens beside the code, sends what is typed, and shows the answer", { width = 120, height = 24 }, function(nvim)
  local agent = T.agent({ turns = { { { text = "Hello **there**.\n\n```lua\n" }, { text = "local x = 1\n```\n" } } } })
  nvim:use(agent)
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  nvim:keys("Say hello<C-s>")
  nvim:wait_turns(1)
  nvim:keys("<Esc>")
  nvim:wait_screen("local x = 1")
  T.eq(agent:received("session/prompt")[1].params.prompt, { { type = "text", text = "Say hello" } })
  T.eq(nvim:texts("agent"), { "Hello **there**.\n\n```lua\nlocal x = 1\n```\n" })
  T.eq(nvim:lua("return vim.bo[vim.fn.bufnr('cursor-agent-term://1/chat')].filetype"), "cursoragent")
  T.eq(nvim:lua("return vim.bo.filetype"), "cursoragent-prompt")
  T.eq(nvim:api("nvim_buf_get_lines", 0, 0, -1, false), { "" }, "the prompt is empty again")
end)

T.case("stops a turn by command and goes on with the next prompt", { width = 100 }, function(nvim)
  local agent = T.agent({ turns = { { { text = "Counting: " }, { wait_cancel = true } }, { { text = "Second." } } } })
  nvim:use(agent)
  nvim:prompt("count")
  nvim:wait_screen("Counting:")
  nvim:cmd("CursorAgent cancel")
  T.eq(nvim:wait_turns(1).stop_reason, "cancelled")
  nvim:wait_screen("cancelled")
  nvim:prompt("again")
  nvim:wait_turns(2)
  nvim:wait_screen("Second.")
  T.eq(nvim:texts("agent"), { "Counting: ", "Second." })
end)

T.case("a missing program is named with what to do", { width = 110 }, function(nvim)
  nvim:lua([[require("cursor_agent").setup({ agents = { cursor = { command = { "/nowhere/agent", "acp" } } } })]])
  nvim:cmd("CursorAgent")
  nvim:wait_state("failed")
  local messages = nvim:wait(function()
    local text = nvim:messages()
    return text:find("/nowhere/agent", 1, true) and text
  end, "a message")
  T.contains(messages, "cursor-agent: ")
  T.contains(messages, "cursor.com/docs/cli/installation")
  T.contains(nvim:status().error, "/nowhere/agent acp")
  nvim:wait_screen("failed · :CursorAgent restart")
end)

T.case("an unknown subcommand says so and lists the known ones", function(nvim)
  nvim:keys(":CursorAgent frobnicate<CR>")
  nvim:wait_screen("(:messages)")
  T.contains(nvim:messages(), "unknown subcommand `frobnicate`")
  T.contains(nvim:messages(), "cancel, checkpoint, close")
end)

T.case("subcommands and their arguments complete", function(nvim)
  nvim:use(T.agent({ profile = "cursor" }))
  T.eq(nvim:lua("return vim.fn.getcompletion('CursorAgent ca', 'cmdline')"), { "cancel" })
  T.ok(vim.tbl_contains(nvim:lua("return vim.fn.getcompletion('CursorAgent new ', 'cmdline')"), "claude"))
  nvim:cmd("CursorAgent open")
  nvim:wait_state("idle")
  T.eq(nvim:lua("return vim.fn.getcompletion('CursorAgent mode p', 'cmdline')"), { "plan" })
end)

T.case("wrong options are named once, and by checkhealth", function(nvim)
  nvim:lua([[require("cursor_agent").setup({ agnet = "x", window = { width = "wide" } })]])
  nvim:wait(function()
    return nvim:messages():find("unknown option `agnet`, did you mean `agent`?", 1, true)
  end, "the message")
  T.contains(nvim:messages(), "option `window.width`: expected a number, got string")
  nvim:cmd("checkhealth cursor_agent")
  local text = table.concat(nvim:api("nvim_buf_get_lines", 0, 0, -1, false), "\n")
  T.contains(text, "unknown option `agnet`")
end)

T.case("each action has its <Plug> mapping", function(nvim)
  local names = nvim:lua([[
    return vim.tbl_map(function(action) return action.name end, require("cursor_agent.actions").list)
  ]])
  for _, name in ipairs(names) do
    for _, mode in ipairs({ "n", "x", "i" }) do
      local map = nvim:lua(
        "local lhs, mode = ... return vim.fn.maparg(lhs, mode, false, true)",
        ("<Plug>(cursor-agent-%s)"):format(name),
        mode
      )
      T.eq({ map.mode and true, map.desc }, { true, "cursor-agent: " .. name:gsub("-", " ") }, mode .. " " .. name)
    end
  end
  local mapped = vim.tbl_filter(function(map)
    return vim.startswith(map.lhs, "<Plug>(cursor-agent-")
  end, nvim:api("nvim_get_keymap", "n"))
  T.eq(#mapped, #names, "no mapping without an action")
end)

T.case("messages go through a plugin's vim.notify whole, and never stop Neovim's own", function(nvim)
  nvim:lua([[
    _G.told = {}
    vim.notify = function(message, level, opts)
      table.insert(_G.told, { message, level, opts.title })
    end
  ]])
  nvim:cmd("CursorAgent frobnicate")
  local told = nvim:lua("return _G.told[1]")
  T.contains(told[1], "cursor-agent: unknown subcommand `frobnicate`")
  T.eq({ told[2], told[3] }, { vim.log.levels.ERROR, "cursor-agent" })
end)

T.case("words that a subcommand does not take are named, and nothing is done", { width = 120 }, function(nvim)
  nvim:use(T.agent({ turns = {} }))
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  for _, command in ipairs({ "stop", "restart", "close" }) do
    nvim:keys(("<Esc>:CursorAgent %s claude now<CR>"):format(command))
    nvim:wait_screen(("`%s` takes no arguments, got `claude now`"):format(command))
  end
  nvim:keys(":CursorAgent new test demo<CR>")
  nvim:wait_screen("`new` takes only 1 word, got `demo` too")
  T.eq(nvim:status().state, "idle")
  T.ok(nvim:lua("return vim.fn.bufwinid('cursor-agent-term://1/chat') ~= -1"), "the chat is open still")
  nvim:cmd("CursorAgent close!")
  nvim:wait("vim.fn.bufexists('cursor-agent-term://1/chat') == 0", "the session to end")
end)
