-- Where the plugin, its library and its own log file are.

local M = {}

---The plugin's own directory.
---@return string
function M.root()
  local here = assert(debug.getinfo(1, "S")).source:sub(2)
  local file = vim.uv.fs_realpath(here) or here
  return file:sub(1, -1 - #"/lua/cursor_agent/bridge/paths.lua")
end

---@return string
function M.library()
  return M.root() .. "/lib/cursor_agent.so"
end

---@return string
function M.log()
  return vim.fs.joinpath(vim.fn.stdpath("log") --[[@as string]], "cursor-agent.log")
end

return M
