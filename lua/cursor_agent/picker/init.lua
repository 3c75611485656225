-- Lets the user choose from a list, with an installed picker plugin or `vim.ui.select`.

local config = require("cursor_agent.config")
local notify = require("cursor_agent.notify")
local shared = require("cursor_agent.picker.shared")

local M = {}

---How to detect each plugin, in order of preference.
---@type { name: string, found: fun(): boolean }[]
local PLUGINS = {
  {
    name = "snacks",
    found = function()
      local ok, snacks = pcall(require, "snacks")
      if not ok or type(snacks) ~= "table" then
        return false
      end
      -- Most people who have snacks use other parts of it.
      local options = type(snacks.config) == "table" and rawget(snacks.config, "picker")
      return not (type(options) == "table" and options.enabled == false) and type(snacks.picker) == "table"
    end,
  },
  {
    name = "telescope",
    found = function()
      return (pcall(require, "telescope.pickers"))
    end,
  },
  {
    name = "fzf-lua",
    found = function()
      return (pcall(require, "fzf-lua"))
    end,
  },
  {
    name = "mini.pick",
    found = function()
      -- It does nothing until its `setup()` was called.
      return shared.mini() ~= nil
    end,
  },
}

---@type table<string, string> the module that serves each picker
local MODULES = {
  snacks = "cursor_agent.picker.snacks",
  telescope = "cursor_agent.picker.telescope",
  ["fzf-lua"] = "cursor_agent.picker.fzf",
  ["mini.pick"] = "cursor_agent.picker.mini",
}

---Which picker the user has.
---@return string
function M.which()
  local wanted = config.get().picker
  if wanted ~= "auto" then
    return wanted
  end
  for _, plugin in ipairs(PLUGINS) do
    if plugin.found() then
      return plugin.name
    end
  end
  return "select"
end

---@param list cursor_agent.picker.List
local function ask(list)
  vim.ui.select(list.rows, {
    prompt = list.title,
    kind = "cursor_agent",
    format_item = function(row)
      return shared.text(list, row)
    end,
  }, function(row)
    if row then
      list.choose(row)
    end
  end)
end

---Shows a list.
---@param list cursor_agent.picker.List
function M.open(list)
  local name = M.which()
  local module = MODULES[name]
  if not module then
    return ask(list)
  end
  local ok, problem = pcall(function()
    require(module).open(list)
  end)
  if not ok then
    notify.once(("%s cannot show the list: %s"):format(name, tostring(problem):match("^[^\n]*")), "warn")
    ask(list)
  end
end

return M
