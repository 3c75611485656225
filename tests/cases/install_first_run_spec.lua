-- From nothing to a first answer: what the README says, typed; and what is offered where no agent is installed.

local T = require("harness")
local Plugin = require("harness.plugin")

---Leaves only these programs on the child's PATH.
---@param child harness.Child
---@param programs table<string, string>
local function only(child, programs)
  Plugin.programs(child, vim.tbl_extend("keep", programs, { sh = "/bin/sh" }))
  -- Where Cursor's CLI would be found beside the PATH.
  child:lua("vim.env.HOME = ...", child.dir .. "/home")
end

---The Lua blocks of the README, in their order.
---@return string[]
local function readme_blocks()
  local file = assert(io.open(T.root .. "/README.md", "rb"))
  local text = file:read("*a")
  file:close()
  local blocks = {} ---@type string[]
  for block in text:gmatch("\n```lua\n(.-)\n```") do
    blocks[#blocks + 1] = block
  end
  return blocks
end

---Does what lazy.nvim does at startup with the README's block: nothing of a plugin that waits for its command, event or
---key is there before that, else its `plugin/` files are sourced and the module of its name is set up.
---@param child harness.Child
---@param plugin harness.Plugin
local function start_as_lazy_does(child, plugin)
  local spec = assert(loadstring("return " .. readme_blocks()[1]))()
  T.eq(spec[1], "cursor-agent/cursor-agent.nvim")
  child:lua("vim.cmd('silent! delcommand CursorAgent | mapclear | mapclear!')")
  if not (spec.lazy or spec.cmd or spec.keys or spec.event or spec.ft) then
    plugin:load(child)
    child:lua("require('cursor_agent').setup(...)", spec.opts)
  end
end

T.case("a fresh install, then the demo, answers the first prompt", { width = 120 }, function(child)
  local plugin = Plugin.copy(child)
  plugin:install_built()
  only(child, {})
  local result = plugin:build(child)
  T.ok(result.ok, result.error)
  start_as_lazy_does(child, plugin)
  child:keys(":CursorAgent<CR>")
  child:wait_screen("The agent cursor is not installed")
  child:wait_screen("1: Try the demo: no account, no network")
  child:wait_screen("2: Install cursor: curl https://cursor.com/install -fsS | bash")
  child:keys("1<CR>")
  child:wait_state("idle")
  child:wait("vim.bo.filetype == 'cursoragent-prompt'", "the prompt")
  child:keys("hello<C-s>")
  child:wait(function()
    return child:lua([[
      for _, entry in ipairs(require("cursor_agent").transcript() or {}) do
        if entry.kind == "agent" and #entry.text > 20 then
          return true
        end
      end
    ]])
  end, "an answer")
  T.eq(child:status().agent, "demo")
  child:cmd("CursorAgent cancel")
end)

T.case("the README's keys and its checkhealth work before anything was opened", { width = 120 }, function(child)
  local plugin = Plugin.copy(child)
  plugin:install_built()
  only(child, {})
  child:lua("vim.g.mapleader = ' '")
  start_as_lazy_does(child, plugin)
  local keys, options = readme_blocks()[2], readme_blocks()[3]
  T.contains(keys, "<Leader>aa")
  child:lua(keys)
  child:lua(options)
  T.eq(child:lua("return require('cursor_agent.config').problems"), {})
  child:cmd("checkhealth cursor_agent")
  local text = table.concat(child:api("nvim_buf_get_lines", 0, 0, -1, false), "\n")
  T.contains(text, "`agent` is not on your PATH")
  child:cmd("enew")
  child:keys(" aa")
  child:wait_screen("Try the demo: no account, no network")
  child:keys("1<CR>")
  child:wait_state("idle")
  child:keys("<Esc> aa")
  child:wait("#vim.api.nvim_list_wins() == 1", "the chat to be closed")
end)

T.case("another agent that is installed is offered, and used", { width = 120 }, function(child)
  only(child, { gemini = T.program })
  child:lua([[require("cursor_agent").setup({ agents = { gemini = { command = { "gemini", "acp" } } } })]])
  child:keys(":CursorAgent<CR>")
  child:wait_screen("3: Use gemini, which is installed")
  child:keys("3<CR>")
  child:wait_state("idle")
  T.eq(child:status().agent, "gemini")
  T.contains(child:messages(), 'setup({ agent = "gemini" })')
end)

T.case("the install command runs in a terminal, and the chat goes on by itself", { width = 120 }, function(child)
  only(child, {
    -- What cursor.com's script would leave behind.
    curl = ("#!/bin/sh\necho 'ln -s %s %s/bin/agent'\n"):format(T.program, child.dir),
    bash = "/bin/bash",
    ln = vim.fn.exepath("ln"),
  })
  child:keys(":CursorAgent<CR>")
  child:wait_screen("2: Install cursor")
  child:keys("2<CR>")
  child:wait_state("idle")
  T.eq(child:status().agent, "cursor")
  T.eq(child:lua("return vim.fn.exepath('agent') ~= ''"), true)
end)

T.case("an install that fails says so and leaves its output", { width = 120 }, function(child)
  only(child, { curl = "#!/bin/sh\necho 'echo no network here; exit 7'\n", bash = "/bin/bash" })
  child:keys(":CursorAgent<CR>")
  child:wait_screen("2: Install cursor")
  child:keys("2<CR>")
  child:wait_screen("no network here")
  child:wait(function()
    return child:messages():find("ended with exit code 7", 1, true)
  end, "the message")
end)

T.case("nothing chosen, nothing opened; the mapping and the prompt ask as well", function(child)
  only(child, {})
  child:keys(":CursorAgent<CR>")
  child:wait_screen("The agent cursor is not installed")
  child:keys("<CR>")
  child:wait_screen_without("Try the demo")
  T.eq(child:lua("return #vim.api.nvim_list_wins()"), 1)
  child:lua("vim.keymap.set('n', '<F5>', '<Plug>(cursor-agent-prompt)')")
  child:keys("<F5>")
  child:wait_screen("Try the demo")
  child:keys("<CR>")
  child:wait_screen_without("Try the demo")
  child:keys(":CursorAgent prompt hello there<CR>")
  child:wait_screen("Try the demo")
  child:keys("1<CR>")
  child:wait(function()
    return child:texts("user")[1] == "hello there"
  end, "the prompt to be sent")
  T.eq(child:status().agent, "demo")
  child:cmd("CursorAgent cancel")
end)

T.case("a script is not asked: it gets the error", function(child)
  only(child, {})
  child:use({ options = { command = { "/nowhere/at/all" } } }, { agent = "cursor" })
  child:lua("require('cursor_agent').open()")
  child:wait_state("failed")
  T.contains(child:status().error, "`agent` is not on your PATH")
end)

T.case("every preset names a program, how to install it, and how to go on", function(child)
  local agents = child:lua([[
    local presets = require("cursor_agent.agents.presets")
    local list = {}
    for name, agent in pairs(presets.agents) do
      list[name] = { agent = agent, install = presets.install_commands[name], spec = presets.spec(name, agent) }
    end
    return list
  ]])
  local names = vim.tbl_keys(agents)
  table.sort(names)
  T.eq(
    table.concat(names, " "),
    "auggie claude cline cloud codex copilot cursor cursor-headless demo droid fast-agent gemini goose grok kilo kimi "
      .. "opencode pi qoder qwen vibe"
  )
  for name, preset in pairs(agents) do
    T.ok(preset.agent.install_hint, name .. " has no hint")
    T.ok(name == "demo" or name == "cloud" or preset.install, name .. " has no install command")
  end
  T.eq(agents.cursor.spec.command, { "agent", "acp" })
  T.eq(agents.cursor.spec.auth_method, "cursor_login")
  T.eq(agents.cursor.spec.login_command, { "agent", "login" })
  T.eq(agents.gemini.spec.command, { "gemini", "--acp" })
end)

T.case("a key in the environment chooses the way to log in", function(child)
  local order = child:lua([[
    local presets = require("cursor_agent.agents.presets")
    local function order(name, env)
      local agent = vim.tbl_extend("force", presets.agents[name], { env = env })
      return presets.spec(name, agent).auth_order
    end
    vim.env.OPENAI_API_KEY, vim.env.CODEX_API_KEY = nil, nil
    local found = { plain = order("codex", {}), own = order("codex", { CODEX_API_KEY = "x" }) }
    vim.env.OPENAI_API_KEY = "x"
    found.shell = order("codex", {})
    found.gemini = order("gemini", { GEMINI_API_KEY = "x" })
    return found
  ]])
  -- Without one, the user is asked.
  T.eq(order.plain, nil)
  T.eq(order.own, { "api-key" })
  T.eq(order.shell, { "api-key" })
  T.eq(order.gemini, { "gemini-api-key" })
end)
