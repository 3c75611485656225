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
  if #login.command == 0 then
    -- Nothing to run: the label says what to set, and where.
    return nil, login.label
  end
  if vim.fn.executable(login.command[1]) == 0 then
    return nil, ("cannot run `%s`: there is no such program"):format(table.concat(login.command, " "))
  end
  -- What the agent runs in, its login does too: a proxy, another home.
  local agent, name = require("cursor_agent.config").agent(chat.agent)
  local env = agent and require("cursor_agent.presets").spec(name, agent).env or {}
  require("cursor_agent.terminal").open(login.command, {
    cwd = chat.cwd,
    env = vim.tbl_extend("force", env, login.env or {}),
    on_exit = function(status, close)
      if status == 0 then
        notify.notify(("logged in to %s"):format(chat.agent))
        library.logged_in(chat.key)
        close()
      else
        notify.notify(("`%s` ended with exit code %d"):format(table.concat(login.command, " "), status), "error")
      end
    end,
  })
  return true
end

return M
