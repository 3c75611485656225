-- Logs in to an agent: runs its own login in a terminal window, then lets the session go on.

local native = require("cursor_agent.native")
local notify = require("cursor_agent.notify")

local M = {}

---@param chat cursor_agent.Chat
---@return boolean?, string?
function M.open(chat)
  local library, why = native.get()
  if not library then
    return nil, why
  end
  local login = chat.status.login
  if not login then
    return nil, ("%s has no login that runs in a terminal"):format(chat.agent)
  end
  if vim.fn.executable(login.command[1]) == 0 then
    return nil, ("cannot run `%s`: there is no such program"):format(table.concat(login.command, " "))
  end
  local code = require("cursor_agent.window").code_window()
  local buf = vim.api.nvim_create_buf(false, true)
  vim.bo[buf].bufhidden = "wipe"
  vim.api.nvim_open_win(buf, true, { split = code and "below" or "left", win = code or -1 })
  -- Where the agent looks for its login may depend on its own environment.
  local agent = require("cursor_agent.config").get().agents[chat.agent]
  local env = vim.tbl_extend("force", agent and agent.env or {}, login.env or {})
  local options = {
    cwd = chat.cwd,
    env = next(env) and env or nil,
    on_exit = function(_, status)
      if status == 0 then
        notify.notify(("logged in to %s"):format(chat.agent))
        library.logged_in(chat.key)
        if vim.api.nvim_buf_is_valid(buf) then
          pcall(vim.api.nvim_buf_delete, buf, { force = true })
        end
      else
        notify.notify(("`%s` ended with exit code %d"):format(table.concat(login.command, " "), status), "error")
      end
    end,
  }
  if vim.fn.has("nvim-0.11") == 1 then
    options.term = true
    vim.fn.jobstart(login.command, options)
  else
    ---@diagnostic disable-next-line: deprecated
    vim.fn.termopen(login.command, options)
  end
  vim.cmd.startinsert()
  return true
end

return M
