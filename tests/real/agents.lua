-- Released agents as npm has them, led to a scripted model on loopback, and cases that run with one of them.

local Model = require("real.model")
local T = require("harness")

local M = {}

-- As much as tests/real/install may take: its own limit, and that of another one it waits for.
local INSTALL_MS = 620000
-- Starting node and a program of 200 MB takes a second; half a minute on a machine that does much else.
M.START_MS = 60000
-- How long a cancelled turn may go on; measured: 30 ms. Far less than what it is cancelled for would take.
M.CANCEL_MS = 30000

local commands = {} ---@type table<string, string[]> by agent
local missing = {} ---@type table<string, string> why there is none, by agent
local model ---@type real.Model of the last case

---How each is led to the script; the names are the plugin's presets.
local AGENTS = {
  claude = {
    api = "anthropic",
    env = function(url)
      return {
        ANTHROPIC_BASE_URL = url,
        ANTHROPIC_API_KEY = "not-a-key",
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC = "1",
      }
    end,
  },
  gemini = {
    api = "gemini",
    auth_method = "gemini-api-key",
    env = function(url)
      -- In a directory that is not trusted it starts no MCP server.
      return { GOOGLE_GEMINI_BASE_URL = url, GEMINI_API_KEY = "not-a-key", GEMINI_CLI_TRUST_WORKSPACE = "true" }
    end,
  },
  codex = {
    api = "openai",
    env = function(url, dir)
      local home = dir .. "/codex"
      vim.fn.mkdir(home, "p")
      vim.fn.writefile({
        'model = "gpt-5.2-codex"',
        'model_provider = "scripted"',
        "[model_providers.scripted]",
        'name = "scripted"',
        ('base_url = "%s/v1"'):format(url),
        'env_key = "SCRIPTED_KEY"',
        'wire_api = "responses"',
        "[features]",
        "multi_agent = true",
      }, home .. "/config.toml")
      return { CODEX_HOME = home, SCRIPTED_KEY = "not-a-key" }
    end,
  },
}

AGENTS.qwen = {
  api = "chat",
  -- It is installed as a server.
  arguments = { "--acp" },
  env = function(url)
    -- A model it knows to see pictures.
    return { OPENAI_API_KEY = "not-a-key", OPENAI_BASE_URL = url .. "/v1", OPENAI_MODEL = "qwen3-vl-plus" }
  end,
}

---Installs an agent, once.
---@param name string
---@return string? why it cannot
local function install(name)
  if not commands[name] and not missing[name] then
    local result = vim.system({ T.root .. "/tests/real/install", name }, { text = true }):wait()
    if result.code == 0 then
      local command = vim.split(vim.trim(result.stdout or ""), "\n")
      local arguments = assert(AGENTS[name]).arguments
      if arguments then
        command = vim.list_extend({ command[1], command[2] }, arguments)
      end
      commands[name] = command
    else
      local lines = vim.split(vim.trim(result.stderr or ""), "\n")
      missing[name] = (lines[#lines]:gsub("^install: ", ""))
    end
  end
  return missing[name]
end

---Adds a case in which a preset starts the released agent, with a new model behind it.
---@param agent "claude"|"gemini"|"codex"|"qwen"
---@param name string
---@param run fun(child: harness.Child, model: real.Model, config: table)
---@param more? fun(child: harness.Child): table more options of the plugin
---@param mode? string the agent is started in
function M.case(agent, name, run, more, mode)
  local opts = {
    needs = function()
      return install(agent)
    end,
    needs_ms = INSTALL_MS,
    deadline_ms = 300000,
    files = { ["hello.txt"] = "Hello, world\nsecond line\n" },
  }
  T.case(name, opts, function(child)
    if model then
      model:stop()
    end
    local how = AGENTS[agent]
    model = Model.start(how.api)
    local options = {
      command = commands[agent],
      auth_method = how.auth_method,
      env = how.env(model.url, child.dir),
      mode = mode,
    }
    local config = { agent = agent, agents = { [agent] = options } }
    config = more and vim.tbl_extend("force", config, more(child)) or config
    child:use({ options = options }, config)
    run(child, model, config)
    T.eq(model:problem(), nil)
  end)
end

---Waits for a decision; gives it.
---@param child harness.Child
---@return table
function M.wait_decision(child)
  return child:wait(function()
    return child:lua("return require('cursor_agent').pending()[1]")
  end, "a decision", M.START_MS)
end

return M
