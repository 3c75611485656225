-- Maps the keys of actions in a buffer according to the options, and tells which key an action has, for hints.

local config = require("cursor_agent.config")
local events = require("cursor_agent.bridge.events")
local list = require("cursor_agent.keys.list")

local M = {}

---@type table<string, cursor_agent.Action>
local by_name = {}
for _, action in ipairs(list) do
  by_name[action.name] = action
end

---Every action with a key in a kind of buffer, with each of its keys.
---@param kind cursor_agent.BufferKind
---@return fun(): cursor_agent.Action?, string?
function M.each(kind)
  return coroutine.wrap(function()
    for _, action in ipairs(list) do
      for _, lhs in ipairs(M.keys(action, kind)) do
        coroutine.yield(action, lhs)
      end
    end
  end)
end

---@param name string
---@return cursor_agent.Action
function M.action(name)
  return by_name[name]
end

---Runs an action by name.
---@param name string
---@param lhs? string the key that was pressed
function M.run(name, lhs)
  events.emit("action", name, lhs)
end

---The keys of an action in a kind of buffer, according to the options.
---@param action cursor_agent.Action
---@param kind cursor_agent.BufferKind
---@return string[]
function M.keys(action, kind)
  if kind == "global" then
    local global = config.get().keymaps.global
    local own = type(global) == "table" and global or {}
    local prefix = type(global) == "string" and global or own.prefix
    local chosen = own[action.name]
    if chosen ~= nil then
      return type(chosen) == "table" and chosen or chosen and { chosen } or {}
    end
    return prefix
        and vim.tbl_map(function(key)
          return tostring(prefix) .. key
        end, action.keys and action.keys.global or {})
      or {}
  end
  local chosen = (config.get().keymaps[kind] or {})[action.name]
  if chosen == false then
    return {}
  elseif type(chosen) == "string" then
    return { chosen }
  elseif type(chosen) == "table" then
    return chosen
  end
  return action.keys and action.keys[kind] or {}
end

---The first key of an action in a kind of buffer, for a hint.
---@param name string
---@param kind cursor_agent.BufferKind
---@return string?
function M.key(name, kind)
  return M.keys(by_name[name], kind)[1]
end

---@param action cursor_agent.Action
---@param kind cursor_agent.BufferKind
---@return string[]
function M.modes(action, kind)
  return action.modes and action.modes[kind] or { "n" }
end

---Runs an action whose key interrupts: not inside its mapping, which an interrupt would abort.
---@param action cursor_agent.Action
---@param lhs string
local function run_soon(action, lhs)
  vim.schedule(function()
    M.run(action.name, lhs)
  end)
end

---Handles a CTRL-C that bypassed its mapping: typed while Neovim was busy, it arrives as an interrupt.
local function on_interrupt()
  local kind, mode = vim.b.cursor_agent_kind, vim.api.nvim_get_mode().mode
  for _, action in ipairs(kind and list or {}) do
    for _, lhs in ipairs(action.interrupts and M.keys(action, kind) or {}) do
      local is_its = lhs:lower() == "<c-c>" and vim.list_contains(M.modes(action, kind), mode)
      if is_its and action.expr(lhs) == true then
        run_soon(action, lhs)
      end
    end
  end
end

vim.on_key(function(key)
  if key == "\3" then
    on_interrupt()
  end
end, vim.api.nvim_create_namespace("cursor_agent_interrupt"))

---Maps the keys of a kind of buffer.
---@param buf integer
---@param kind cursor_agent.BufferKind
function M.map(buf, kind)
  vim.b[buf].cursor_agent_kind = kind
  for _, action in ipairs(list) do
    for _, lhs in ipairs(M.keys(action, kind)) do
      local expr = action.expr
      local call_it = ("<Cmd>lua require('cursor_agent.keys').run(%q)<CR>"):format(action.name)
      vim.keymap.set(M.modes(action, kind), lhs, expr and function()
        local means = expr(lhs)
        if means == true and action.interrupts then
          run_soon(action, lhs)
          -- Not "": with an interrupt pending, Neovim would wait for the next key forever.
          return "<Ignore>"
        end
        return means == true and call_it or means or lhs
      end or function()
        M.run(action.name, lhs)
      end, {
        buffer = buf,
        expr = expr ~= nil,
        nowait = true,
        desc = "cursor-agent: " .. action.desc,
      })
    end
  end
end

return M
