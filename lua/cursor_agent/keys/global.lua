-- Keys that work everywhere: those after the prefix `keymaps.global`.

local keymaps = require("cursor_agent.keys")

local M = {}

---@type { mode: string, lhs: string, run: fun() }[] what is mapped now
local mapped = {}

---Removes the keys, except those the user has mapped again.
local function clear()
  for _, map in ipairs(mapped) do
    if vim.fn.maparg(map.lhs, map.mode, false, true).callback == map.run then
      vim.keymap.del(map.mode, map.lhs)
    end
  end
  mapped = {}
end

---The modes to map a key in. A chord that inserts no text also works in Insert mode.
---@param action cursor_agent.Action
---@param lhs string
---@return string[]
local function modes_of(action, lhs)
  local modes = vim.list_slice(keymaps.modes(action, "global"))
  if lhs:find("^<[CMAD]%-[^<>]+>$") or lhs:find("^<F%d+>$") then
    modes[#modes + 1] = "i"
  end
  return modes
end

---Maps the keys according to the options.
function M.apply()
  clear()
  for action, lhs in keymaps.each("global") do
    local function run()
      keymaps.run(action.name, lhs)
    end
    for _, mode in ipairs(modes_of(action, lhs)) do
      vim.keymap.set(mode, lhs, run, { desc = "cursor-agent: " .. action.desc })
      mapped[#mapped + 1] = { mode = mode, lhs = lhs, run = run }
    end
  end
end

return M
