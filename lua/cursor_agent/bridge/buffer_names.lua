-- The names of the plugin's buffers.

local M = {}

-- File browsers that reveal the current file take every name for a path, except one with `term://` in it: neo-tree would
-- offer to change into the directory `cursor-agent:/1`. Neovim takes only letters and dashes for a scheme.
local SCHEME = "cursor-agent-term://"

---@param rest string
---@return string
function M.of(rest)
  return SCHEME .. rest
end

---The pattern of `bufnr()` for exactly this name.
---@param rest string
---@return string
function M.exactly(rest)
  return "^" .. vim.fn.escape(SCHEME .. rest, "[]*?{}\\") .. "$"
end

---What follows the scheme; nil for a buffer that is not the plugin's.
---@param name string
---@return string?
function M.rest(name)
  return vim.startswith(name, SCHEME) and name:sub(#SCHEME + 1) or nil
end

return M
