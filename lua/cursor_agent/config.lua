-- The options in effect: the defaults, `vim.g.cursor_agent` and what was passed to `setup`, merged and checked.
-- `config/schema.lua` lists every option.

local check = require("cursor_agent.config.check")
local events = require("cursor_agent.bridge.events")
local schema = require("cursor_agent.config.schema")

local M = {}

M.schema, M.check = schema.fields, check.check

---@return table
local function defaults()
  local result = { agents = vim.deepcopy(require("cursor_agent.agents.presets").agents) }
  for _, f in ipairs(schema.fields) do
    if f.default ~= nil then
      local node, names = result, vim.split(f.path, ".", { plain = true })
      for i = 1, #names - 1 do
        node[names[i]] = node[names[i]] or {}
        node = node[names[i]]
      end
      node[names[#names]] = vim.deepcopy(f.default)
    end
  end
  return result
end

local given ---@type table? what `setup` was called with
local merged ---@type cursor_agent.Config?
M.problems = {} ---@type string[] what is wrong with the options, for `:checkhealth`

---@class (exact) cursor_agent.Config
---@field agent string
---@field agents table<string, cursor_agent.Agent>
---@field mcp_servers table[]|table<string, table>
---@field mcp { pass: "all"|"user"|"none"|string[] }
---@field window { position: "right"|"left"|"bottom"|"float"|"tab", width: number, height: number, prompt_height: integer, prompt_max_height: integer, start_insert: boolean }
---@field chat { icons: string|table<string, string>, fold_thoughts: boolean, fold_tools: boolean, diff_lines: integer, output_lines: integer, conceal: boolean }
---@field picker "auto"|"select"|"snacks"|"telescope"|"fzf-lua"|"mini.pick"
---@field prompt { autocomplete: boolean, history_size: integer, paste_lines: integer, unsaved: "ask"|"save"|"attach"|"ignore" }
---@field prompts table<string, string|{ text: string, description: string? }>
---@field policy cursor_agent.policy.Rule[]
---@field decisions { delay_ms: integer }
---@field workspace { root: "auto"|"cwd"|"git"|"lsp"|"start", roots: string[] }
---@field plan { directory: string, position: "float"|"split"|"tab" }
---@field cloud { url: string?, api_key: (string|string[])?, model: string?, mode: "agent"|"plan", auto_pr: boolean, mcp: boolean }
---@field follow { enabled: boolean }
---@field review { signs: boolean }
---@field memory { enabled: boolean, max_age_days: integer, max_mb: integer }
---@field checkpoints { enabled: boolean, max_mb: integer, max_days: integer }
---@field attention { notify: boolean, terminal: "off"|"bell"|"osc9"|"osc777" }
---@field keymaps { global: string|false|table<string, string|string[]|false> } | table<string, table<string, string|string[]|false>>

---Stores options; validates them but does not apply anything.
---@param opts? table
function M.setup(opts)
  given = opts
  merged = nil
  M.get()
  events.emit("configured")
end

local wrong_rules = false

---Whether a rule has a mistake: then no rule applies and everything asks.
---@return boolean
function M.has_wrong_rules()
  return wrong_rules
end

---The effective options: defaults, then `vim.g.cursor_agent`, then what was passed to `setup`.
---@return cursor_agent.Config
function M.get()
  if merged then
    return merged
  end
  local global, global_problems, global_wrong = check.check(vim.g.cursor_agent)
  local own, own_problems, own_wrong = check.check(given)
  local config = vim.tbl_deep_extend("force", defaults(), global, own) --[[@as cursor_agent.Config]]
  -- Lists are replaced, not merged by position.
  for _, opts in ipairs({ global, own }) do
    for name, agent in pairs(opts.agents or {}) do
      for key, value in pairs(agent) do
        if vim.islist(value) then
          config.agents[name][key] = value
        end
      end
    end
  end
  config.keymaps = config.keymaps or {}

  local problems = vim.list_extend(global_problems, own_problems)
  for name, agent in pairs(config.agents) do
    if agent.url then
      agent.command = require("cursor_agent.agents.presets").connect_command(agent)
    end
    if not agent.command or #agent.command == 0 then
      table.insert(problems, ("option `agents.%s.command` is missing"):format(name))
      config.agents[name] = nil
    end
  end
  if not config.agents[config.agent] then
    table.insert(problems, ("option `agent`: `agents.%s` does not exist"):format(config.agent))
    config.agent = "cursor"
  end
  wrong_rules = (global_wrong.policy or own_wrong.policy) == true
  if wrong_rules then
    -- Without the broken rule the others may allow more than the user meant, so drop all of them and ask about
    -- everything.
    config.policy = {}
  end
  local presets = require("cursor_agent.agents.presets")
  for _, agent in pairs(config.agents) do
    agent.mcp_servers = vim.list_extend(presets.servers(agent.mcp_servers), presets.servers(config.mcp_servers))
    agent.mcp_pass = agent.mcp_pass or config.mcp.pass
  end
  M.problems = problems
  merged = config
  if #problems > 0 then
    -- Scheduled so that `setup` does not interrupt start-up with a message to confirm.
    vim.schedule(function()
      require("cursor_agent.notify").once(table.concat(problems, "\n  "), "warn")
    end)
  end
  return config
end

---The options of one agent.
---@param name? string
---@return cursor_agent.Agent?, string
function M.agent(name)
  local config = M.get()
  name = name or config.agent
  local agent = config.agents[name]
  if agent and name == "cloud" then
    local env = vim.tbl_extend("force", require("cursor_agent.cloud.env").all(config.cloud), agent.env or {})
    agent = vim.tbl_extend("force", agent, { env = env })
  elseif agent and config.cloud.mcp then
    agent = vim.tbl_extend("force", agent, {
      mcp_servers = require("cursor_agent.cloud.server").added(agent.mcp_servers --[[@as table[] ]], config.cloud),
    })
  end
  return agent, name
end

---The display name of an agent.
---@param name string
---@return string
function M.agent_title(name)
  local agent = M.get().agents[name]
  return agent and agent.title or name
end

---Whether an agent is Cursor's CLI itself, not the demo that imitates it.
---@param name string
---@return boolean
function M.is_cursor(name)
  local agent = M.agent(name)
  return agent ~= nil and agent.cursor == true and name ~= "demo"
end

---The names of all agents, sorted.
---@return string[]
function M.agent_names()
  local names = vim.tbl_keys(M.get().agents)
  table.sort(names)
  return names
end

return M
