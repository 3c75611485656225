-- Builds the greeting.

local M = {}

function M.greet(name)
  return "Hello, " .. name
end

return M
