-- The first run: what to do when the agent is not installed.

local chats = require("cursor_agent.chat.registry")
local config = require("cursor_agent.config")
local bridge = require("cursor_agent.bridge")
local notify = require("cursor_agent.notify")
local presets = require("cursor_agent.agents.presets")

local M = {}

---Goes on with an agent: the one that was asked for, or the one chosen instead.
---@alias cursor_agent.welcome.Go fun(agent: string?): any, string?

---Whether an agent is a preset whose program is not here. One with a command of the user's own has an error to show.
---@param name string
---@return boolean
local function is_missing(name)
  local agent, preset = config.agent(name), presets.agents[name]
  if not agent or not preset or name == "demo" or not vim.deep_equal(agent.command, preset.command) then
    return false
  end
  return not presets.is_installed(agent)
end

---Agents that are installed, sorted.
---@return string[]
local function installed()
  return vim.tbl_filter(function(name)
    local agent = config.agent(name) --[[@as cursor_agent.Agent]]
    -- The same program as `cursor`, which is offered already.
    return name ~= "demo" and name ~= "cloud" and name ~= "cursor-headless" and presets.is_installed(agent)
  end, config.agent_names())
end

---@param name string
---@param go cursor_agent.welcome.Go
local function install(name, go)
  local command = presets.install_commands[name]
  require("cursor_agent.window.terminal").open({ "sh", "-c", command }, {
    on_exit = function(code, close)
      if code ~= 0 then
        notify.notify(("`%s` ended with exit code %d"):format(command, code), "error")
        return
      end
      close()
      notify.notify(name .. " is installed")
      notify.report(go(name))
    end,
  })
end

---@param name string
---@param go cursor_agent.welcome.Go
local function offer(name, go)
  local items = {} ---@type { label: string, run: fun() }[]
  ---@param label string
  ---@param run fun()
  local function add(label, run)
    items[#items + 1] = { label = label, run = run }
  end
  add("Try the demo: no account, no network", function()
    notify.report(go("demo"))
  end)
  local command = presets.install_commands[name]
  if command then
    add(("Install %s: %s"):format(name, command), function()
      install(name, go)
    end)
  end
  for _, other in ipairs(installed()) do
    add(("Use %s, which is installed"):format(other), function()
      notify.notify(('to make that the default: require("cursor_agent").setup({ agent = %q })'):format(other))
      notify.report(go(other))
    end)
  end
  vim.ui.select(items, {
    prompt = ("The agent %s is not installed: `%s` is not on your PATH"):format(
      name,
      presets.missing_program(presets.agents[name])
    ),
    kind = "cursor_agent",
    format_item = function(item)
      return item.label
    end,
  }, function(item)
    if item then
      -- Neovim's own list is still on the screen: a message under it would want to be confirmed.
      vim.cmd.redraw()
      item.run()
    end
  end)
end

---Goes on when the agent is there; otherwise asks what to do instead. For what a person asked by key or command.
---@param agent string? the agent that was asked for; the option's without one
---@param go cursor_agent.welcome.Go
---@param fresh? boolean a new session is wanted even where there is one
---@return any, string?
function M.enter(agent, go, fresh)
  local name = agent or config.get().agent
  local chat = not fresh and chats.current()
  local serves = chat and (not agent or chat.agent == agent)
  -- Without a user interface the user cannot be asked, and without the library nothing to offer.
  if serves or not is_missing(name) or #vim.api.nvim_list_uis() == 0 or not bridge.load() then
    return go(agent)
  end
  offer(name, go)
  return true
end

return M
