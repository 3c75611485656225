-- Logs in to an agent: runs its own login in a terminal window, then lets the session go on.

local bridge = require("cursor_agent.bridge")
local notify = require("cursor_agent.notify")

local M = {}

---@param chat cursor_agent.Chat? without one, the agent for new chats is logged in to
---@return boolean?, string?
function M.open(chat)
  local ready, why = bridge.load()
  if not ready then
    return nil, why
  end
  local agent, name = require("cursor_agent.config").agent(chat and chat.agent)
  local spec = agent and require("cursor_agent.agents.presets").spec(name, agent)
  local login = chat and chat.status.login
  if not chat and spec and spec.login_command then
    login = { command = spec.login_command, label = table.concat(spec.login_command, " ") }
  end
  if not login then
    return nil, ("%s has no login that runs in a terminal"):format(name)
  end
  if #login.command == 0 then
    -- Nothing to run: the label says what to set, and where.
    return nil, login.label
  end
  if vim.fn.executable(login.command[1]) == 0 then
    return nil, ("cannot run `%s`: `%s` is not on your PATH"):format(table.concat(login.command, " "), login.command[1])
  end
  -- What the agent runs in, its login does too: a proxy, another home.
  local env = spec and spec.env or {}
  require("cursor_agent.window.terminal").open(login.command, {
    cwd = chat and chat.cwd or nil,
    env = vim.tbl_extend("force", env, login.env or {}),
    on_exit = function(status, close)
      if status == 0 then
        notify.notify(("logged in to %s"):format(name))
        if chat then
          bridge.logged_in(chat.key)
        end
        close()
      else
        notify.notify(("`%s` ended with exit code %d"):format(table.concat(login.command, " "), status), "error")
      end
    end,
  })
  return true
end

return M
