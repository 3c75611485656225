-- Keys in the code, only where there are hunks; mappings of the user's own come back when there are none.

local M = {}

---@type table<integer, { mode: string, lhs: string, before: table? }[]>
local mapped = {}

---@param buf integer
---@param mode string
---@param lhs string
---@return table? mapping of the buffer, to be put back
local function local_map(buf, mode, lhs)
  local found = vim.api.nvim_buf_call(buf, function()
    return vim.fn.maparg(lhs, mode, false, true)
  end)
  return found.buffer == 1 and found or nil
end

---@param buf integer
function M.map(buf)
  local keymaps = require("cursor_agent.keys")
  local list = {} ---@type { mode: string, lhs: string, before: table? }[]
  for _, action in ipairs(require("cursor_agent.keys.list")) do
    for _, lhs in ipairs(keymaps.keys(action, "code")) do
      for _, mode in ipairs(keymaps.modes(action, "code")) do
        list[#list + 1] = { mode = mode, lhs = lhs, before = local_map(buf, mode, lhs) }
        vim.keymap.set(mode, lhs, function()
          keymaps.run(action.name, lhs)
        end, { buffer = buf, desc = "cursor-agent: " .. action.desc })
      end
    end
  end
  mapped[buf] = list
end

---@param buf integer
function M.unmap(buf)
  for _, map in ipairs(mapped[buf] or {}) do
    pcall(vim.keymap.del, map.mode, map.lhs, { buffer = buf })
    if map.before then
      vim.api.nvim_buf_call(buf, function()
        vim.fn.mapset(map.mode, false, map.before)
      end)
    end
  end
  mapped[buf] = nil
end

return M
