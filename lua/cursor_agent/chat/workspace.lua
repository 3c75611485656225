-- The directory a new chat works in.

local config = require("cursor_agent.config")

local M = {}

---Where the user works: the current window's file, or else the code window's.
---@return integer buf
local function code_buffer()
  local buf = vim.api.nvim_get_current_buf()
  if vim.bo[buf].buftype == "" and vim.api.nvim_buf_get_name(buf) ~= "" then
    return buf
  end
  local win = require("cursor_agent.window.code").current()
  return win and vim.api.nvim_win_get_buf(win) or buf
end

---@type table<string, fun(): string?>
local ROOTS = {
  cwd = function()
    return vim.fn.getcwd()
  end,
  git = function()
    local name = vim.api.nvim_buf_get_name(code_buffer())
    return vim.fs.root(name ~= "" and vim.fs.dirname(name) or vim.fn.getcwd(), ".git")
  end,
  lsp = function()
    for _, client in ipairs(vim.lsp.get_clients({ bufnr = code_buffer() })) do
      if client.config.root_dir then
        return client.config.root_dir
      end
    end
  end,
  start = function()
    return vim.g.cursor_agent_started_in
  end,
}

---The project's root, according to `workspace.root`. With 'autochdir' the current directory is that of the current
---file.
---@return string
function M.root()
  local wanted = config.get().workspace.root
  local order = { wanted }
  if wanted == "auto" then
    order = vim.o.autochdir and { "git", "lsp", "start" } or { "cwd" }
  end
  for _, name in ipairs(order) do
    local found = ROOTS[name]()
    if found and vim.fn.isdirectory(found) == 1 then
      return found
    end
  end
  return vim.fn.getcwd()
end

return M
