-- The agents known by name: how each is started, logged in to and installed.

local M = {}

---@class (exact) cursor_agent.Agent
---@field command string[] program and arguments
---@field env? table<string, string> on top of Neovim's own environment
---@field title? string what to call it; its name in `agents` otherwise
---@field auth_method? string what `authenticate` is called with when the agent asks for a login
---@field auth_order? string[] others, best first
---@field status_command? string[] says who is logged in, for `:checkhealth` and `:CursorAgent status`
---@field login_command? string[] what `:CursorAgent login` runs in a terminal
---@field version_command? string[] prints its version, for `:checkhealth`
---@field install_hint? string what to do when the program is not found
---@field cursor? boolean it is Cursor's CLI
---@field backend? "auto"|"acp"|"headless" Cursor: how the CLI is driven; `acp` without it
---@field headless_args? string[] Cursor: of `cursor-agent-acp`, when it drives the CLI
---@field endpoint? string Cursor: another server (`-e`)
---@field insecure? boolean Cursor: do not check the server's certificate (`-k`)
---@field api_key? string|fun(): string? Cursor: passed on as CURSOR_API_KEY, never on the command line
---@field auth_token? string|fun(): string? Cursor: passed on as CURSOR_AUTH_TOKEN
---@field mode? string set when a session starts
---@field model? string set when a session starts
---@field options? table<string, string|boolean> config options set when a session starts
---@field mcp_servers? table[]|table<string, table> more MCP servers: a list as in ACP's session/new, or by name as in mcp.json
---@field mcp_pass? "all"|"user"|"none"|string[] which servers of Cursor's mcp.json it is given
---@field additional_directories? string[]
---@field paths? table<string, string> directories here and where they are for the agent, which runs elsewhere
---@field url? string where it is reached by WebSocket, instead of `command`
---@field token? string|string[]|fun(): string? bearer for `url`, or a command that prints it

---MCP servers of the options, as session/new has them.
---@param servers table[]|table<string, table>|nil
---@return table[]
function M.servers(servers)
  if not servers or vim.islist(servers) then
    return vim.deepcopy(servers or {}) --[[@as table[] ]]
  end
  local list = {} ---@type table[]
  for name, server in vim.spairs(servers) do
    list[#list + 1] = vim.tbl_extend("force", { name = name }, server)
  end
  return list
end

local root = require("cursor_agent.bridge.paths").root()

-- Drives Cursor's CLI without `acp`, by its headless mode.
local ADAPTER = root .. "/lib/cursor-agent-acp"

-- Joins the client with an agent that is reached by WebSocket.
local CONNECT = root .. "/lib/cursor-agent-connect"

-- Where to find Cursor's CLI if it is not on the PATH as `agent`: older releases only have the other name, and a Neovim
-- started from a desktop may lack its install directory on the PATH.
local OTHER_PLACES = { "cursor-agent", "~/.local/bin/agent", "~/.local/bin/cursor-agent" }

---@type table<string, cursor_agent.Agent>
M.agents = {
  cursor = {
    command = { "agent", "acp" },
    auth_method = "cursor_login",
    status_command = { "agent", "status" },
    login_command = { "agent", "login" },
    version_command = { "agent", "--version" },
    install_hint = "Install Cursor's CLI (https://cursor.com/docs/cli/installation), then run `agent login`; "
      .. "or try `:CursorAgent new demo`, which needs no account.",
    cursor = true,
    backend = "auto",
  },
  ["cursor-headless"] = {
    command = { ADAPTER },
    auth_method = "cursor_login",
    status_command = { "agent", "status" },
    login_command = { "agent", "login" },
    version_command = { "agent", "--version" },
    install_hint = "`:CursorAgent build` installs it together with the library.",
    cursor = true,
  },
  demo = {
    command = { root .. "/lib/cursor-agent-demo", "acp" },
    auth_method = "cursor_login",
    status_command = { root .. "/lib/cursor-agent-demo", "status" },
    login_command = { root .. "/lib/cursor-agent-demo", "login" },
    install_hint = "`:CursorAgent build` installs it together with the library.",
    cursor = true,
  },
  cloud = {
    command = { root .. "/lib/cursor-agent-cloud", "acp" },
    title = "cloud",
    install_hint = "`:CursorAgent build` installs it together with the library.",
  },
  claude = {
    command = { "claude-agent-acp" },
    install_hint = "npm install -g @agentclientprotocol/claude-agent-acp, then `:CursorAgent login`",
  },
  gemini = {
    command = { "gemini", "--acp" },
    login_command = { "gemini" },
    version_command = { "gemini", "--version" },
    install_hint = "npm install -g @google/gemini-cli",
  },
  codex = {
    command = { "codex-acp" },
    version_command = { "codex-acp", "--version" },
    install_hint = "npm install -g @agentclientprotocol/codex-acp",
  },
  opencode = {
    command = { "opencode", "acp" },
    login_command = { "opencode", "auth", "login" },
    version_command = { "opencode", "--version" },
    install_hint = "npm install -g opencode-ai",
  },
  goose = {
    command = { "goose", "acp" },
    login_command = { "goose", "configure" },
    version_command = { "goose", "--version" },
    install_hint = "npm install -g @aaif/goose, then run `goose configure`",
  },
  qwen = {
    command = { "qwen", "--acp" },
    login_command = { "qwen" },
    version_command = { "qwen", "--version" },
    install_hint = "npm install -g @qwen-code/qwen-code",
  },
  vibe = {
    command = { "vibe-acp" },
    login_command = { "vibe", "--setup" },
    version_command = { "vibe-acp", "--version" },
    install_hint = "uv tool install mistral-vibe, then run `vibe --setup`",
  },
  copilot = {
    command = { "copilot", "--acp" },
    login_command = { "copilot", "login" },
    version_command = { "copilot", "--version" },
    install_hint = "npm install -g @github/copilot, then run `copilot login`",
  },
  kimi = {
    command = { "kimi", "acp" },
    login_command = { "kimi", "login" },
    version_command = { "kimi", "--version" },
    install_hint = "npm install -g @moonshot-ai/kimi-code, then run `kimi login`",
  },
  auggie = {
    command = { "auggie", "--acp" },
    login_command = { "auggie", "login" },
    version_command = { "auggie", "--version" },
    install_hint = "npm install -g @augmentcode/auggie, then run `auggie login`",
  },
  cline = {
    command = { "cline", "--acp" },
    login_command = { "cline", "auth" },
    version_command = { "cline", "version" },
    install_hint = "npm install -g cline, then run `cline auth`",
  },
  droid = {
    command = { "droid", "exec", "--output-format", "acp" },
    login_command = { "droid" },
    version_command = { "droid", "--version" },
    install_hint = "npm install -g @factory/cli, then run `droid` and log in",
  },
  qoder = {
    command = { "qodercli", "--acp" },
    login_command = { "qodercli", "login" },
    version_command = { "qodercli", "--version" },
    install_hint = "npm install -g @qoder-ai/qodercli, then run `qodercli login`",
  },
  kilo = {
    command = { "kilo", "acp" },
    login_command = { "kilo", "auth", "login" },
    version_command = { "kilo", "--version" },
    install_hint = "npm install -g @kilocode/cli, then run `kilo auth login`",
  },
  grok = {
    command = { "grok", "agent", "stdio" },
    login_command = { "grok", "login" },
    version_command = { "grok", "--version" },
    install_hint = "npm install -g @xai-official/grok, then run `grok login`",
  },
  pi = {
    command = { "pi-acp" },
    login_command = { "pi" },
    version_command = { "pi", "--version" },
    install_hint = "npm install -g pi-acp @earendil-works/pi-coding-agent, then run `pi` and log in with /login",
  },
  ["fast-agent"] = {
    command = { "fast-agent-acp" },
    login_command = { "fast-agent", "model", "setup" },
    version_command = { "fast-agent", "--version" },
    install_hint = "uv tool install fast-agent-mcp, then set the key of a provider such as ANTHROPIC_API_KEY",
  },
}

---The shell command that installs an agent.
---@type table<string, string>
M.install_commands = {
  cursor = "curl https://cursor.com/install -fsS | bash",
  ["cursor-headless"] = "curl https://cursor.com/install -fsS | bash",
  claude = "npm install -g @agentclientprotocol/claude-agent-acp",
  gemini = "npm install -g @google/gemini-cli",
  codex = "npm install -g @agentclientprotocol/codex-acp",
  opencode = "npm install -g opencode-ai",
  goose = "npm install -g @aaif/goose",
  qwen = "npm install -g @qwen-code/qwen-code",
  vibe = "uv tool install mistral-vibe",
  copilot = "npm install -g @github/copilot",
  kimi = "npm install -g @moonshot-ai/kimi-code",
  auggie = "npm install -g @augmentcode/auggie",
  cline = "npm install -g cline",
  droid = "npm install -g @factory/cli",
  qoder = "npm install -g @qoder-ai/qodercli",
  kilo = "npm install -g @kilocode/cli",
  grok = "npm install -g @xai-official/grok",
  pi = "npm install -g pi-acp @earendil-works/pi-coding-agent",
  ["fast-agent"] = "uv tool install fast-agent-mcp",
}

---What to know about an agent before relying on it, for `:checkhealth` and the help.
---@type table<string, string>
M.notes = {
  cursor = "Edits files without asking, and does not see unsaved text. Choosing a model also changes Cursor's own settings.",
  ["cursor-headless"] = "Cursor's CLI in headless mode, for versions without `acp`. It cannot ask: tools that need approval are "
    .. "rejected unless `cursor-agent-acp` gets `--force`.",
  cloud = "A chat with a cloud agent: the first prompt starts it on the current repository and branch. Needs CURSOR_API_KEY "
    .. "or `cloud.api_key`; see |cursor-agent-cloud|.",
  claude = "Needs Node.js. `:CursorAgent login` offers a subscription or a Console account.",
  gemini = "Uses GEMINI_API_KEY if set, or else a Google login. Does not list past sessions, but can load stored ones "
    .. "by id.",
  codex = "Uses OPENAI_API_KEY or CODEX_API_KEY if set, or else a ChatGPT login. Rejecting ends the turn.",
  goose = 'Runs tools without asking, unless you change its mode: `agents.goose.mode = "smart_approve"`. '
    .. "Does not stop when asked; after a few seconds the plugin offers a restart.",
  qwen = 'Starts in a mode that rarely asks; `agents.qwen.mode = "default"` asks. Log in with `/auth` inside `qwen`.',
  vibe = 'Needs Python 3.12. Uses MISTRAL_API_KEY if set. Starts in a mode that edits without asking; `agents.vibe.mode = "ask"` asks.',
  copilot = "Needs Node.js 22 and a Copilot subscription.",
  kimi = "Install it from npm; the PyPI package is discontinued.",
  auggie = "Needs an Augment account: run `auggie login` in a shell first.",
  cline = "Has three login methods besides `cline auth`; `:CursorAgent login` asks which.",
  droid = "Uses FACTORY_API_KEY if set.",
  qoder = "Needs a Qoder account.",
  kilo = "A fork of opencode: works with any provider's key, or a Kilo account.",
  grok = "Uses XAI_API_KEY if set.",
  pi = "An adapter that runs `pi`, which must be on your PATH. Runs tools without asking. With pi's former package, "
    .. "@mariozechner/pi-coding-agent, no chat starts.",
  ["fast-agent"] = 'Needs a model: `agents["fast-agent"].command = { "fast-agent-acp", "--model", "sonnet" }`. '
    .. "The package fast-agent-acp does not start; fast-agent-mcp has the same program.",
}

---How to log in to an agent whose preset has no command for it.
---@type table<string, string>
M.logins = {
  cloud = "CURSOR_API_KEY",
  claude = ":CursorAgent login",
  codex = ":CursorAgent login",
}

---What a session with an agent can do, according to the agent when tested: load a past session, list and resume them,
---fork one, take images.
---@type table<string, string[]>
M.abilities = {
  cursor = { "load", "list", "image" },
  ["cursor-headless"] = { "load", "list", "resume", "image" },
  demo = { "load", "list", "image" },
  cloud = { "load", "list", "image" },
  claude = { "load", "list", "resume", "fork", "image" },
  gemini = { "load", "image" },
  codex = { "load", "list", "resume", "fork", "image" },
  opencode = { "load", "list", "resume", "fork", "image" },
  goose = { "load", "list", "image" },
  qwen = { "load", "list", "resume", "image" },
  vibe = { "load", "list", "fork", "image" },
  copilot = { "load", "list", "image" },
  kimi = { "load", "list", "resume", "fork", "image" },
  auggie = { "load", "list", "image" },
  cline = { "load", "image" },
  droid = { "load", "list", "resume", "image" },
  qoder = { "load", "list", "resume", "fork", "image" },
  kilo = { "load", "list", "resume", "fork", "image" },
  grok = { "load", "list", "resume" },
  pi = { "load", "list", "image" },
  ["fast-agent"] = { "load", "list", "resume", "image" },
}

---Other plugins, and how the chat works with each.
---@type { name: string, how: string }[]
M.companions = {
  { name = "blink.cmp", how = "gets the prompt's source, which is asked before its own" },
  { name = "nvim-cmp", how = "gets the prompt's source, which is asked before its own" },
  { name = "mini.completion", how = "is disabled in the prompt" },
  { name = "nvim-notify", how = "shows the plugin's messages" },
  { name = "noice, mini.notify", how = "show the plugin's messages, as does snacks.notifier" },
  { name = "oil, telescope", how = "open files in the code window, not in the chat" },
  { name = "mini.pick, fzf-lua", how = "open files in the code window, not in the chat" },
  { name = "neo-tree", how = "opens files in the code window; `reveal` does not prompt" },
  { name = "snacks.scroll", how = "is disabled in the chat" },
  { name = "mini.animate", how = "is disabled in the chat" },
  { name = "lualine", how = "shows the chat's title with the extension `cursor_agent`" },
  { name = "lazy.nvim", how = "`:Lazy reload` keeps chats, drafts and turns" },
  { name = "conform.nvim", how = "can format edited files when a turn ends" },
}

---The rows of the help's table of agents: name, command, install command, login, abilities.
---@return { name: string, command: string, install: string, login: string, can: string }[]
function M.rows()
  local rows = {} ---@type { name: string, command: string, install: string, login: string, can: string }[]
  for name, agent in vim.spairs(M.agents) do
    -- Show the plugin's own programs without their directory.
    local function shown(command)
      return (table.concat(command, " "):gsub("^.*/lib/cursor%-agent%-", "lib/cursor-agent-"))
    end
    rows[#rows + 1] = {
      name = name,
      command = shown(agent.command),
      install = M.install_commands[name] or "comes with the plugin",
      can = table.concat(M.abilities[name], ", "),
      login = M.logins[name] or agent.login_command and shown(agent.login_command) or "none",
    }
  end
  return rows
end

---Environment variables that select a login method.
---@type table<string, { [1]: string, [2]: string }[]>
local KEYS = {
  codex = { { "OPENAI_API_KEY", "api-key" }, { "CODEX_API_KEY", "api-key" } },
  gemini = { { "GOOGLE_GENAI_USE_VERTEXAI", "vertex-ai" }, { "GEMINI_API_KEY", "gemini-api-key" } },
  qwen = { { "OPENAI_API_KEY", "openai" } },
}

---Where we store which of several login methods was chosen.
local CHOSEN = "logins"

local chosen_before ---@type table<string, string>? by agent

---As they were on first use: an agent is identified by how it is started, which must not change.
---@return table<string, string>
local function chosen()
  if not chosen_before then
    chosen_before = {}
    for name, id in pairs(require("cursor_agent.files.store").read(CHOSEN)) do
      chosen_before[name] = type(id) == "string" and id or nil
    end
  end
  return chosen_before
end

---Stores the login method the user chose: the next Neovim uses it without asking.
---@param name string
---@param id string
function M.remember_login(name, id)
  require("cursor_agent.files.store").update(CHOSEN, function(value)
    value[name] = id
  end)
end

---@param name string
---@param agent cursor_agent.Agent
---@return string[]?
local function auth_order(name, agent)
  local order = {} ---@type string[]
  for _, key in ipairs(KEYS[name] or {}) do
    if (agent.env or {})[key[1]] or vim.env[key[1]] then
      order[#order + 1] = key[2]
    end
  end
  vim.list_extend(order, agent.auth_order or {})
  order[#order + 1] = chosen()[name]
  return #order > 0 and order or nil
end

---@param option string its path, for the message
---@param secret string|(fun(): string?)|nil
---@return string? value, string? problem what the user's function did instead of returning one
local function reveal(option, secret)
  if type(secret) ~= "function" then
    return secret --[[@as string?]]
  end
  local ok, value = pcall(secret)
  if not ok then
    return nil, ("option `%s`: the function failed: %s"):format(option, tostring(value))
  elseif value ~= nil and type(value) ~= "string" then
    return nil, ("option `%s`: the function returned a %s, not a string"):format(option, type(value))
  end
  return value
end

---@return string
local function find_cli()
  if vim.fn.executable("agent") == 0 then
    for _, other in ipairs(OTHER_PLACES) do
      local path = vim.fs.normalize(other)
      if vim.fn.executable(path) == 1 then
        return path
      end
    end
  end
  return "agent"
end

---The program to run, which may differ from the configured one.
---@param agent cursor_agent.Agent
---@return string
function M.program(agent)
  local program = agent.command[1]
  if agent.cursor and program == "agent" then
    return find_cli()
  end
  return program
end

---Cursor's CLI behind an agent: the program itself, or what the adapter drives.
---@param agent cursor_agent.Agent
---@return string
local function cli(agent)
  if agent.command[1] ~= ADAPTER then
    return M.program(agent)
  end
  for i, word in ipairs(agent.command) do
    if word == "--command" and agent.command[i + 1] then
      return vim.fs.normalize(agent.command[i + 1])
    end
  end
  return find_cli()
end

---Where an agent's program was found, and why that one; otherwise nil and what is missing.
---@param agent cursor_agent.Agent
---@return string? path, string why
function M.found(agent)
  local program = cli(agent)
  local path = vim.fn.exepath(program)
  if path == "" then
    return nil, ("%s is not on your PATH"):format(program)
  end
  local looked = agent.cursor and (agent.command[1] == "agent" or agent.command[1] == ADAPTER)
  if not looked or (agent.command[1] == ADAPTER and program ~= find_cli()) then
    return path, "named by `command`"
  elseif program == "agent" then
    return path, "`agent` on your PATH"
  elseif program == "cursor-agent" then
    return path, "`cursor-agent` on your PATH, which has no `agent`"
  end
  return path, "neither `agent` nor `cursor-agent` is on your PATH"
end

---Whether an agent's program is installed; for the adapter, also the CLI it drives.
---@param agent cursor_agent.Agent
---@return boolean
function M.is_installed(agent)
  return vim.fn.executable(agent.command[1] == ADAPTER and ADAPTER or M.program(agent)) == 1
    and vim.fn.executable(cli(agent)) == 1
end

---Whether Cursor's CLI is driven in its headless mode, where nothing can be asked.
---@param agent cursor_agent.Agent
---@param status cursor_agent.Status? of a chat with it
---@return boolean
function M.is_headless(agent, status)
  return agent.command[1] == ADAPTER or agent.backend == "headless" or (status ~= nil and status.backend == "headless")
end

---What is missing if an agent is not installed.
---@param agent cursor_agent.Agent
---@return string
function M.missing_program(agent)
  return agent.command[1] == ADAPTER and vim.fn.executable(ADAPTER) == 0 and ADAPTER or cli(agent)
end

---A command of an agent with the program that was found. What the preset says about `agent` also holds for
---`/opt/agent`, but not for a wrapper of another name.
---@param name string
---@param agent cursor_agent.Agent
---@param command string[]?
---@param flags? string[] the program's own, which go before its subcommand
---@return string[]?
local function resolve(name, agent, command, flags)
  if not command then
    return nil
  end
  local preset = M.agents[name]
  if agent.command[1] == ADAPTER and command[1] == "agent" then
    local full = { cli(agent) }
    vim.list_extend(full, flags or {})
    return vim.list_extend(full, command, 2)
  end
  local same = command[1] == agent.command[1]
    or (preset and command[1] == preset.command[1] and command[1] == vim.fs.basename(agent.command[1]))
  if not same then
    return vim.deepcopy(command)
  end
  local full = { M.program(agent) }
  vim.list_extend(full, flags or {})
  return vim.list_extend(full, command, 2)
end

---The command that prints an agent's version.
---@param name string
---@param agent cursor_agent.Agent
---@return string[]?
function M.version_command(name, agent)
  return resolve(name, agent, agent.version_command)
end

---The flags of Cursor's CLI that go before a subcommand.
---@param agent cursor_agent.Agent
---@return string[]
local function flags_of(agent)
  local flags = {} ---@type string[]
  if agent.cursor and agent.endpoint then
    vim.list_extend(flags, { "-e", agent.endpoint })
  end
  if agent.cursor and agent.insecure then
    table.insert(flags, "-k")
  end
  return flags
end

---The command that says who is logged in.
---@param name string
---@param agent cursor_agent.Agent
---@return string[]?
function M.status_command(name, agent)
  return resolve(name, agent, agent.status_command, flags_of(agent))
end

---Cursor's CLI behind an agent as a command, with its own flags and any wrapper: `ssh host agent`.
---@param agent cursor_agent.Agent
---@return string[]
function M.cli_command(agent)
  local command = { cli(agent) }
  if agent.command[1] ~= ADAPTER then
    for i = 2, #agent.command do
      if agent.command[i] == "acp" then
        vim.list_extend(command, agent.command, 2, i - 1)
        break
      end
    end
  end
  return vim.list_extend(command, flags_of(agent))
end

---The command of the adapter that drives this agent's CLI.
---@param agent cursor_agent.Agent
---@param flags string[] the CLI's own
---@return string[]
local function headless(agent, flags)
  local is_adapter = agent.command[1] == ADAPTER
  local command = is_adapter and vim.deepcopy(agent.command) or { ADAPTER }
  local program = M.program(agent)
  if not is_adapter and program ~= "agent" then
    vim.list_extend(command, { "--command", program })
  end
  vim.list_extend(command, agent.headless_args or {})
  local passed_on = vim.deepcopy(flags)
  -- What is before `acp` is the CLI's own.
  for i = 2, is_adapter and 0 or #agent.command do
    if agent.command[i] == "acp" or not vim.startswith(agent.command[2], "-") then
      break
    end
    passed_on[#passed_on + 1] = agent.command[i]
  end
  if #passed_on > 0 and not vim.list_contains(command, "--") then
    table.insert(command, "--")
  end
  return vim.list_extend(command, passed_on)
end

---Whether an agent's command is Cursor's CLI with `acp`, not a wrapper that runs it somewhere else.
---@param agent cursor_agent.Agent
---@return boolean
local function is_acp_of_cli(agent)
  local second = agent.command[2] or ""
  local name = vim.fs.basename(agent.command[1])
  local named = name == "agent" or name == "cursor-agent"
  return vim.list_contains(agent.command, "acp") and (second == "acp" or (named and vim.startswith(second, "-")))
end

---The command that connects to an agent by URL.
---@param agent cursor_agent.Agent
---@return string[]
function M.connect_command(agent)
  local command = { CONNECT, assert(agent.url) } ---@type string[]
  local token = agent.token
  if type(token) == "table" then
    table.insert(command, "--token-command")
    vim.list_extend(command, token)
  end
  return command
end

---Local directories and their counterparts for a remote agent, in the form the library compares.
---@param paths table<string, string>?
---@return table<string, string>?
local function mapped(paths)
  if not paths or not next(paths) then
    return nil
  end
  local clean = {} ---@type table<string, string>
  for here, there in pairs(paths) do
    clean[vim.fs.normalize(vim.fn.fnamemodify(here, ":p"))] = there
  end
  return clean
end

---What the library needs to start an agent: an `OpenSpec` without the session's own parts.
---@param name string
---@param agent cursor_agent.Agent
---@return cursor_agent.OpenSpec
---@return string? problem with a key or a token, which is left out then
function M.spec(name, agent)
  local problem ---@type string?
  local env = vim.deepcopy(agent.env or {})
  local flags = flags_of(agent)
  if agent.cursor then
    local key, no_key = reveal(("agents.%s.api_key"):format(name), agent.api_key)
    local token, no_token = reveal(("agents.%s.auth_token"):format(name), agent.auth_token)
    problem = no_key or no_token
    env.CURSOR_API_KEY = key or env.CURSOR_API_KEY
    env.CURSOR_AUTH_TOKEN = token or env.CURSOR_AUTH_TOKEN
  end
  if agent.url and type(agent.token) ~= "table" then
    local token, no_token = reveal(("agents.%s.token"):format(name), agent.token --[[@as string|(fun(): string?)|nil]])
    problem = problem or no_token
    env.ACP_TOKEN = token
  end
  local command, fallback = resolve(name, agent, agent.command, flags) or {}, nil ---@type string[], string[]?
  if agent.command[1] == ADAPTER or (agent.cursor and agent.backend == "headless") then
    command = headless(agent, flags)
  elseif agent.cursor and agent.backend == "auto" and is_acp_of_cli(agent) then
    fallback = headless(agent, flags)
  end
  return {
    agent = name,
    command = command,
    fallback = fallback,
    env = env,
    cwd = "",
    auth_method = agent.auth_method,
    auth_order = auth_order(name, agent),
    login_command = resolve(name, agent, agent.login_command, flags),
    install_hint = agent.install_hint,
    cursor = agent.cursor,
    mode = agent.mode,
    model = agent.model,
    options = agent.options,
    mcp_servers = agent.mcp_servers --[[@as table[]?]],
    mcp_files = agent.mcp_pass,
    paths = mapped(agent.paths),
    additional_directories = agent.additional_directories,
  },
    problem
end

return M
