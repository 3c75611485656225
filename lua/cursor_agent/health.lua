-- `:checkhealth cursor_agent`: what is missing or wrong, each with how to fix it.

require("cursor_agent.parts")

local M = {}

local redact = require("cursor_agent.bridge.redact")

---`vim.health`, with secrets removed from every line: people share these reports.
local health = setmetatable({}, {
  __index = function(_, name)
    return function(text, advice)
      if type(advice) == "table" then
        advice = vim.tbl_map(redact.text, advice)
      elseif advice then
        advice = redact.text(advice)
      end
      vim.health[name](redact.text(text), advice)
    end
  end,
})

-- How long to wait for Cursor's settings file.
local SETTINGS_MS = 2000

-- How long an agent may take to print its version or login; some start a whole runtime first.
local ASK_MS = 10000

---@param path string
---@return string
local function short(path)
  return vim.fn.fnamemodify(path, ":~")
end

---@param bytes integer
---@return string
local function size(bytes)
  if bytes < 1024 then
    return bytes .. " bytes"
  elseif bytes < 1024 * 1024 then
    return ("%.0f KiB"):format(bytes / 1024)
  end
  return ("%.1f MiB"):format(bytes / 1024 / 1024)
end

---@param text string
---@return string
local function indented(text)
  return (vim.trim(text):gsub("\n%s*", "\n    "))
end

local function check_neovim()
  health.start("Neovim")
  local version = vim.fn.execute("version"):match("NVIM v(%S+)") or ""
  if vim.fn.has("nvim-0.10") == 1 then
    health.ok("Neovim " .. version)
  else
    health.error("Neovim " .. version .. " is too old", "Install Neovim 0.10 or newer.")
  end
  if jit then
    health.ok(("%s on %s, %s"):format(jit.version, jit.os, jit.arch))
  else
    health.error("this Neovim has no LuaJIT, which the library needs", "Install a Neovim built with LuaJIT.")
  end
  for _, lang in ipairs({ "markdown", "markdown_inline" }) do
    if require("cursor_agent.colour.syntax").available(lang) then
      health.ok(("tree-sitter parser for %s"):format(lang))
    else
      health.warn(("no tree-sitter parser for %s: the chat is plain text"):format(lang), {
        "It comes with Neovim: check that its `lib/nvim` directory is in 'runtimepath'.",
        "Or `:TSInstall " .. lang .. "`, with nvim-treesitter.",
      })
    end
  end
end

local function check_library()
  health.start("Library")
  local bridge = require("cursor_agent.bridge")
  local release = require("cursor_agent.install.release")
  local paths = require("cursor_agent.bridge.paths")
  local root = paths.root()
  local ready, why = bridge.load()
  if ready then
    health.ok(("version %s, interface %d: %s"):format(bridge.version, bridge.abi, short(paths.library())))
    local built_from = release.read(root .. "/lib/built-from")
    local source = built_from and release.source_id(root)
    if source and built_from and vim.trim(built_from) ~= source then
      health.warn("it was built from different sources", ":CursorAgent build")
    end
  else
    health.error(indented(why or "it could not be loaded"), ":CursorAgent build")
    local triple, none = require("cursor_agent.install.platform").triple()
    health.info("platform: " .. (triple or none or "unknown"))
    local list = release.checksums(root)
    health.info(list.version and "prebuilt: release " .. list.version or "prebuilt: none for these sources")
    for _, program in ipairs({ "curl", "wget", "cargo" }) do
      health.info(
        ("%s: %s"):format(program, vim.fn.executable(program) == 1 and vim.fn.exepath(program) or "not found")
      )
    end
  end
  for _, program in ipairs({
    { "the demo agent", "cursor-agent-demo" },
    { "the headless adapter", "cursor-agent-acp" },
    { "the program for cloud agents", "cursor-agent-cloud" },
    { "the MCP server for cloud agents", "cursor-agent-mcp" },
    { "the program for agents reached by WebSocket", "cursor-agent-connect" },
  }) do
    local path = root .. "/lib/" .. program[2]
    if vim.fn.executable(path) == 0 then
      health.warn(("%s is missing: %s"):format(program[1], short(path)), ":CursorAgent build")
    end
  end
end

local function check_options()
  health.start("Options")
  local config = require("cursor_agent.config")
  config.get()
  if #config.problems == 0 then
    health.ok("all options are valid")
  end
  for _, problem in ipairs(config.problems) do
    health.warn(problem, ":help cursor-agent-options")
  end
end

---Starts a program and returns a function that collects its output, so that all of them run in parallel.
---@param command string[]?
---@param env? table<string, string>
---@return fun(): string? output of both streams, or nil if it could not be run or did not exit
local function ask(command, env)
  if not command or vim.fn.executable(command[1]) == 0 then
    return function() end
  end
  local started, job = pcall(vim.system, command, { text = true, timeout = ASK_MS, env = env })
  return function()
    local result = started and job:wait()
    if not result or result.code == 124 or result.signal ~= 0 then
      return nil
    end
    return vim.trim((result.stdout or "") .. (result.stderr or ""))
  end
end

---@class (exact) cursor_agent.health.Check
---@field name string
---@field agent cursor_agent.Agent
---@field spec cursor_agent.OpenSpec
---@field problem string?
---@field version fun(): string?
---@field status_command string[]?
---@field login fun(): string?

---@param chosen boolean
---@param check cursor_agent.health.Check
local function check_login(chosen, check)
  local sign_in = require("cursor_agent.agents.sign_in")
  local command = check.status_command
  local given = sign_in.given(check.name, check.agent, check.spec)
  if given then
    health.ok(sign_in.describe(given, check.name, check.agent))
    if command then
      health.info(sign_in.beside(command, check.login(), given))
    end
    return
  elseif not command then
    return
  end
  local said = check.login()
  if not said then
    if chosen then
      health.warn(("`%s` did not answer"):format(redact.command(command)), "Run it in a terminal to see why.")
    end
  elseif sign_in.is_signed_out(said) then
    if chosen then
      local shell = redact.command(check.spec.login_command or { "" })
      local steps = { ":CursorAgent login", "or in a shell: " .. shell }
      if check.agent.cursor then
        steps[#steps + 1] = "or set CURSOR_API_KEY, or `agents." .. check.name .. ".api_key`"
      end
      health.error("not logged in", steps)
    else
      health.info("not logged in")
    end
  else
    health.ok(("signed in with a login: `%s` says %s"):format(redact.command(command), said:match("%S[^\n]*") or "so"))
  end
end

---What Cursor asks before it acts. The file is read asynchronously, so a hanging disk does not block the report.
---@param check cursor_agent.health.Check
local function check_approval(check)
  local approval = require("cursor_agent.agents.approval")
  local config, over = nil, false ---@type cursor_agent.CliConfig?, boolean
  approval.read(check.spec.env, function(read)
    config, over = read, true
  end)
  vim.wait(SETTINGS_MS, function()
    return over
  end, 5)
  if not config then
    return
  end
  local say = (config.problem or config.approval_mode == "unrestricted") and health.warn or health.info
  say(approval.sentence(config, require("cursor_agent.agents.presets").is_headless(check.agent)))
  health.info(approval.settings(config))
end

local function check_agents()
  local config = require("cursor_agent.config")
  local presets = require("cursor_agent.agents.presets")
  local chosen = config.get().agent
  local bridge = require("cursor_agent.bridge")
  local ready = bridge.load()
  local checks = {} ---@type cursor_agent.health.Check[]
  local names = vim.tbl_filter(function(name)
    -- Same program as `cursor`, which is reported already.
    return name ~= "cursor-headless" or name == chosen
  end, config.agent_names())
  for _, name in ipairs(names) do
    local agent = config.agent(name) --[[@as cursor_agent.Agent]]
    local spec, problem = presets.spec(name, agent)
    if ready then
      bridge.learn(spec)
    end
    local status_command = presets.status_command(name, agent)
    table.insert(checks, name == chosen and 1 or #checks + 1, {
      name = name,
      agent = agent,
      spec = spec,
      problem = problem,
      version = ask(presets.version_command(name, agent), spec.env),
      status_command = status_command,
      login = ask(status_command, spec.env),
    })
  end
  local missing = {} ---@type string[]
  for _, check in ipairs(checks) do
    local is_chosen = check.name == chosen
    local command = redact.command(check.spec.command)
    local here = presets.is_installed(check.agent)
    local preset = presets.agents[check.name]
    -- A command the user configured should exist; a preset that is not installed is fine.
    local own = not preset or not vim.deep_equal(preset.command, check.agent.command)
    if here or is_chosen or own then
      health.start(("Agent %s%s"):format(check.name, is_chosen and " (used for new chats)" or ""))
    end
    if check.problem then
      health.error(check.problem, "Fix the function, or set CURSOR_API_KEY in the environment instead.")
    end
    if here then
      local version = check.version()
      version = version and version:match("[^\n]*%d[^\n]*")
      health.ok(("`%s`%s"):format(command, version and ", version " .. vim.trim(version) or ""))
      if check.spec.fallback then
        health.info(("where it has no `acp`: `%s`"):format(redact.command(check.spec.fallback)))
      end
      check_login(is_chosen, check)
      if config.is_cursor(check.name) then
        check_approval(check)
      end
      local note = presets.notes[check.name]
      if note then
        health.info(note)
      end
    elseif is_chosen then
      health.error(("`%s`: `%s` is not on your PATH"):format(command, presets.missing_program(check.agent)), {
        check.agent.install_hint or "Install it.",
        ("Or set `agents.%s.command` to where it is, or `agent` to another one."):format(check.name),
        "Or try the plugin without an account: :CursorAgent new demo",
      })
    elseif own then
      health.warn(
        ("`%s`: `%s` is not on your PATH"):format(command, presets.missing_program(check.agent)),
        ("Install it, or set `agents.%s.command` to where it is."):format(check.name)
      )
    else
      missing[#missing + 1] = check.name
    end
  end
  if #missing > 0 then
    health.start("Other agents")
    health.info("not installed (optional): " .. table.concat(missing, ", "))
  end
end

local function check_chats()
  health.start("Chats")
  local all = require("cursor_agent.chat.registry").all()
  if #all == 0 then
    health.info("none in this Neovim")
  end
  for _, chat in ipairs(all) do
    local line = ("%d: %s in %s, %s"):format(chat.key, chat.agent, short(chat.cwd), chat.status.state)
    if chat.status.error then
      health.error(line .. "\n    " .. indented(chat.status.error), {
        chat.status.needs_login and ":CursorAgent login"
          or chat.status.state == "idle" and ":CursorAgent retry sends the prompt again."
          or ":CursorAgent restart tries again.",
        ":CursorAgent log shows the protocol log.",
      })
    else
      health.ok(line)
    end
  end
  local last = require("cursor_agent.agents.failure").last()
  if last then
    health.info(
      ("last failure, %s, %s in %s:\n    %s"):format(
        os.date("%Y-%m-%d %H:%M", last.at),
        last.agent,
        short(last.cwd),
        indented(last.message)
      )
    )
  end
end

---@param dir string
---@return integer files, integer bytes
local function measure(dir)
  local files, bytes = 0, 0
  for name, kind in vim.fs.dir(dir, { depth = 10 }) do
    if kind == "file" then
      local stat = vim.uv.fs_stat(dir .. "/" .. name)
      files, bytes = files + 1, bytes + (stat and stat.size or 0)
    end
  end
  return files, bytes
end

local function check_files()
  health.start("Files")
  local log = require("cursor_agent.bridge.paths").log()
  local stat = vim.uv.fs_stat(log)
  health.info(("log: %s, %s"):format(short(log), stat and size(stat.size) or "not written yet"))
  local dir = require("cursor_agent.files.store").dir()
  local files, bytes = measure(dir)
  health.info(("drafts and history: %s, %d files, %s"):format(short(dir), files, size(bytes)))
  if vim.fn.isdirectory(dir) == 1 and vim.fn.filewritable(dir) ~= 2 then
    health.warn(short(dir) .. " cannot be written to: drafts and history are lost at exit", "chmod u+w " .. dir)
  end
end

---Optional companion plugins: their module and what they are used for.
local OPTIONAL = {
  { "render-markdown", "render-markdown.nvim", "draws headings and tables in the chat" },
  { "blink.cmp", "blink.cmp", "completes `/` and `@` in the prompt" },
  { "cmp", "nvim-cmp", "completes `/` and `@` in the prompt" },
  { "snacks", "snacks.nvim", "draws images, and serves vim.ui.select" },
  { "image", "image.nvim", "draws images" },
}

local function check_plugins()
  health.start("Optional plugins")
  for _, plugin in ipairs(OPTIONAL) do
    local module, name, use = unpack(plugin)
    local path = module:gsub("%.", "/")
    local here = package.loaded[module] ~= nil
      or #vim.api.nvim_get_runtime_file(("lua/%s/init.lua"):format(path), false) > 0
      or #vim.api.nvim_get_runtime_file(("lua/%s.lua"):format(path), false) > 0
    if here then
      health.ok(("%s: %s"):format(name, use))
    else
      health.info(("%s is not loaded; it %s"):format(name, use))
    end
  end
end

function M.check()
  check_neovim()
  check_library()
  check_options()
  check_agents()
  check_chats()
  check_files()
  check_plugins()
end

return M
