-- Resolves a path: which loaded buffer it means, and whether it still leads where it did before.

local bridge = require("cursor_agent.bridge")
local watch = require("cursor_agent.files.watch")

local M = {}

---The loaded buffer of a file, however its path is spelled.
---@param path string
---@return integer?
function M.buffer(path)
  local real = watch.real_path(path)
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buf) and vim.bo[buf].buftype == "" then
      local name = vim.api.nvim_buf_get_name(buf)
      if name == path or name == real or (name ~= "" and watch.real_path(name) == real) then
        return buf
      end
    end
  end
end

---Whether a path now leads somewhere else than when the rules and the user were asked about it: a link may have been
---planted since.
---@param path string
---@param real string? where it led
---@return boolean
function M.leads_elsewhere(path, real)
  return real ~= nil and bridge.is_loaded() and bridge.resolve(path) ~= real
end

---The error message for such a path.
---@param path string
---@return string
function M.elsewhere(path)
  return path .. ": it now leads somewhere else; nothing was done"
end

return M
