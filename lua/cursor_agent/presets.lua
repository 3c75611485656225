-- The agents known by name: how each is started, logged in to and installed.

local M = {}

---@class (exact) cursor_agent.Agent
---@field command string[] program and arguments
---@field env? table<string, string> on top of Neovim's own environment
---@field title? string what to call it; its name in `agents` otherwise
---@field auth_method? string what `authenticate` is called with
---@field status_command? string[] prints "Not logged in" when signed out
---@field login_command? string[] what `:CursorAgent login` runs in a terminal
---@field install_hint? string what to do when the program is not found
---@field cursor? boolean it is Cursor's CLI
---@field endpoint? string Cursor: another server (`-e`)
---@field insecure? boolean Cursor: do not check the server's certificate (`-k`)
---@field api_key? string|fun(): string? Cursor: passed on as CURSOR_API_KEY, never on the command line
---@field auth_token? string|fun(): string? Cursor: passed on as CURSOR_AUTH_TOKEN
---@field mode? string set when a session starts
---@field model? string set when a session starts
---@field options? table<string, string|boolean> config options set when a session starts
---@field mcp_servers? table[] as in ACP's session/new
---@field additional_directories? string[]

local root = require("cursor_agent.native").root()

---@type table<string, cursor_agent.Agent>
M.agents = {
  cursor = {
    command = { "agent", "acp" },
    auth_method = "cursor_login",
    status_command = { "agent", "status" },
    login_command = { "agent", "login" },
    install_hint = "Install Cursor's CLI (https://cursor.com/docs/cli/installation), then run `agent login`; "
      .. "or try `:CursorAgent new demo`, which needs no account.",
    cursor = true,
  },
  demo = {
    command = { root .. "/lib/cursor-agent-demo", "acp" },
    auth_method = "cursor_login",
    install_hint = "`:CursorAgent build` installs it together with the library.",
    cursor = true,
  },
  claude = {
    command = { "claude-agent-acp" },
    install_hint = "npm install -g @agentclientprotocol/claude-agent-acp",
  },
  gemini = {
    command = { "gemini", "--acp" },
    install_hint = "npm install -g @google/gemini-cli",
  },
  codex = {
    command = { "codex-acp" },
    install_hint = "npm install -g @agentclientprotocol/codex-acp",
  },
  opencode = {
    command = { "opencode", "acp" },
    login_command = { "opencode", "auth", "login" },
    install_hint = "npm install -g opencode-ai",
  },
  goose = {
    command = { "goose", "acp" },
    login_command = { "goose", "configure" },
    install_hint = "npm install -g @aaif/goose, then run `goose configure`",
  },
  qwen = {
    command = { "qwen", "--acp" },
    install_hint = "npm install -g @qwen-code/qwen-code",
  },
}

---@param secret string|(fun(): string?)|nil
---@return string?
local function reveal(secret)
  if type(secret) == "function" then
    return secret()
  end
  return secret --[[@as string?]]
end

---What the library needs to know to start an agent: everything of an `OpenSpec` but the session's own parts.
---@param name string
---@param agent cursor_agent.Agent
---@return cursor_agent.OpenSpec
function M.spec(name, agent)
  local env = vim.deepcopy(agent.env or {})
  local flags = {} ---@type string[]
  local program = agent.command[1]
  local status_command = agent.status_command
  if agent.cursor then
    -- Grok installs a program named `agent` as well, and older releases of Cursor's CLI have only this name.
    if program == "agent" and vim.fn.executable("agent") == 0 and vim.fn.executable("cursor-agent") == 1 then
      program = "cursor-agent"
    end
    if agent.endpoint then
      vim.list_extend(flags, { "-e", agent.endpoint })
    end
    if agent.insecure then
      table.insert(flags, "-k")
    end
    env.CURSOR_API_KEY = reveal(agent.api_key) or env.CURSOR_API_KEY
    env.CURSOR_AUTH_TOKEN = reveal(agent.auth_token) or env.CURSOR_AUTH_TOKEN
    if env.CURSOR_API_KEY or env.CURSOR_AUTH_TOKEN then
      -- `agent status` speaks of the login stored on disk, which a key makes needless.
      status_command = nil
    end
  end

  ---@param command string[]?
  ---@return string[]?
  local function with_flags(command)
    if not command or command[1] ~= agent.command[1] then
      return command and vim.deepcopy(command)
    end
    -- The flags are the program's own, so they stand before its subcommand.
    local full = { program }
    vim.list_extend(full, flags)
    return vim.list_extend(full, command, 2)
  end

  return {
    agent = name,
    command = with_flags(agent.command) or {},
    env = env,
    cwd = "",
    auth_method = agent.auth_method,
    status_command = with_flags(status_command),
    login_command = with_flags(agent.login_command),
    install_hint = agent.install_hint,
    cursor = agent.cursor,
    mode = agent.mode,
    model = agent.model,
    options = agent.options,
    mcp_servers = agent.mcp_servers,
    additional_directories = agent.additional_directories,
  }
end

return M
