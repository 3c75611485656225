-- The MCP server for cloud agents, `lib/cursor-agent-mcp`, among those that sessions are given (`cloud.mcp`).

local M = {}

M.NAME = "cursor-cloud"

---These servers and ours, unless one of them has its name.
---@param servers table[] as in session/new
---@param cloud { url: string?, api_key: (string|string[])? } the options
---@return table[]
function M.added(servers, cloud)
  for _, server in ipairs(servers) do
    if server.name == M.NAME then
      return servers
    end
  end
  -- Agents start MCP servers with an environment of their own, in which these may be missing.
  local values = require("cursor_agent.cloud.env").all(cloud)
  local env = {} ---@type { name: string, value: string }[]
  for name, value in vim.spairs(values) do
    env[#env + 1] = { name = name, value = value }
  end
  local all = vim.deepcopy(servers)
  all[#all + 1] = {
    name = M.NAME,
    command = require("cursor_agent.bridge.paths").root() .. "/lib/cursor-agent-mcp",
    args = { "stdio" },
    env = env,
  }
  return all
end

return M
