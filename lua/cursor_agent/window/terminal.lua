-- Runs a command in a terminal window next to the code, for what the user has to answer or watch.

local M = {}

---@class (exact) cursor_agent.terminal.Opts
---@field cwd? string
---@field env? table<string, string>
---@field on_exit fun(code: integer, close: fun()) `close` closes the window

---@param command string[]
---@param opts cursor_agent.terminal.Opts
function M.open(command, opts)
  local code = require("cursor_agent.window.code").current()
  local buf = vim.api.nvim_create_buf(false, true)
  vim.bo[buf].bufhidden = "wipe"
  vim.api.nvim_open_win(buf, true, { split = code and "below" or "left", win = code or -1 })
  local function close()
    if vim.api.nvim_buf_is_valid(buf) then
      pcall(vim.api.nvim_buf_delete, buf, { force = true })
    end
  end
  local options = {
    cwd = opts.cwd,
    env = opts.env and next(opts.env) and opts.env or nil,
    on_exit = function(_, status)
      opts.on_exit(status, close)
    end,
  }
  if vim.fn.has("nvim-0.11") == 1 then
    options.term = true
    vim.fn.jobstart(command, options)
  else
    ---@diagnostic disable-next-line: deprecated
    vim.fn.termopen(command, options)
  end
  vim.cmd.startinsert()
end

return M
