-- The wall clock in milliseconds, as the library counts it.

local M = {}

---@return integer
function M.now_ms()
  local seconds, micros = vim.uv.gettimeofday()
  return (seconds or os.time()) * 1000 + math.floor((micros or 0) / 1000)
end

return M
