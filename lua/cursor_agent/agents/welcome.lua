-- The first run: what to do when the agent is not installed.

local chats = require("cursor_agent.chat.registry")
local config = require("cursor_agent.config")
local bridge = require("cursor_agent.bridge")
local notify = require("cursor_agent.notify")
local presets = require("cursor_agent.agents.presets")

local M = {}

---Continues with an agent: the requested one, or the one chosen instead.
---@alias cursor_agent.welcome.Go fun(agent: string?): any, string?

---Whether an agent is a preset whose program is not installed. One with the user's own command has an error to show.
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
    -- Same program as `cursor`, which is offered already.
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
      -- Neovim's own list is still on the screen: a message below it would need confirming.
      vim.cmd.redraw()
      item.run()
    end
  end)
end

---Continues if the agent is installed; otherwise asks what to do instead. For keys and commands.
---@param agent string? the requested agent; default: the option's
---@param go cursor_agent.welcome.Go
---@param fresh? boolean start a new session even if there is one
---@return any, string?
function M.enter(agent, go, fresh)
  local name = agent or config.get().agent
  local chat = not fresh and chats.current()
  local serves = chat and (not agent or chat.agent == agent)
  -- Without a UI the user cannot be asked, and without the library there is nothing to offer.
  if serves or not is_missing(name) or #vim.api.nvim_list_uis() == 0 or not bridge.load() then
    return go(agent)
  end
  offer(name, go)
  return true
end

return M
