-- Keys in the code, only where there are hunks; the user's own mappings are restored when there are none. The keys that
-- go to the next hunk stay after the last one in a file was decided, as long as another file has some.

local M = {}

---@class (exact) cursor_agent.review.Key
---@field mode string
---@field lhs string
---@field before table? the buffer's own mapping, to be restored
---@field goes boolean? to another hunk

---@type table<integer, cursor_agent.review.Key[]>
local mapped = {}

local GOES = { ["hunk-next"] = true, ["hunk-prev"] = true }

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
  M.unmap(buf)
  local keymaps = require("cursor_agent.keys")
  local list = {} ---@type cursor_agent.review.Key[]
  for _, action in ipairs(require("cursor_agent.keys.list")) do
    for _, lhs in ipairs(keymaps.keys(action, "code")) do
      for _, mode in ipairs(keymaps.modes(action, "code")) do
        local before = local_map(buf, mode, lhs)
        list[#list + 1] = { mode = mode, lhs = lhs, before = before, goes = GOES[action.name] }
        vim.keymap.set(mode, lhs, function()
          keymaps.run(action.name, lhs)
        end, { buffer = buf, desc = "cursor-agent: " .. action.desc })
      end
    end
  end
  mapped[buf] = list
end

---@param buf integer
---@param stay boolean? those that go to another hunk stay
function M.unmap(buf, stay)
  local left = {} ---@type cursor_agent.review.Key[]
  for _, map in ipairs(mapped[buf] or {}) do
    if stay and map.goes then
      left[#left + 1] = map
    elseif vim.api.nvim_buf_is_valid(buf) then
      pcall(vim.keymap.del, map.mode, map.lhs, { buffer = buf })
      if map.before then
        vim.api.nvim_buf_call(buf, function()
          vim.fn.mapset(map.mode, false, map.before)
        end)
      end
    end
  end
  mapped[buf] = #left > 0 and left or nil
end

---Whether any buffer has them.
---@return boolean
function M.are_mapped()
  return next(mapped) ~= nil
end

---Nothing is undecided any more, in any file.
function M.unmap_all()
  for buf in pairs(mapped) do
    M.unmap(buf)
  end
end

return M
