-- The variables of the environment that say where Cursor's cloud API is and what the key is. Never arguments: those can be seen.

local M = {}

---Variables that say how the API is reached. The environment's own are passed on.
M.NAMES = {
  "CURSOR_API_KEY",
  "CURSOR_API_KEY_COMMAND",
  "CURSOR_API_URL",
  "CURSOR_BACKEND_URL",
  "CURSOR_TEAM_ID",
  "ALL_PROXY",
  "HTTPS_PROXY",
  "HTTP_PROXY",
  "NO_PROXY",
  "all_proxy",
  "https_proxy",
  "http_proxy",
  "no_proxy",
  "SSL_CERT_DIR",
  "SSL_CERT_FILE",
}

---Where the embedded fake is, once it runs.
---@type string?
M.demo_url = nil

---@param cloud { url: string?, api_key: (string|string[])? } the options
---@return table<string, string>
function M.of(cloud)
  if cloud.url == "demo" then
    -- Not Cursor, whatever the user's own environment says.
    return { CURSOR_API_KEY = "key_fake", CURSOR_API_URL = M.demo_url or "http://127.0.0.1:9" }
  end
  local env = {} ---@type table<string, string>
  if cloud.url then
    env.CURSOR_API_URL = cloud.url --[[@as string]]
  end
  if type(cloud.api_key) == "string" then
    env.CURSOR_API_KEY = cloud.api_key --[[@as string]]
  elseif cloud.api_key then
    -- Empty: the command is asked, not the environment.
    env.CURSOR_API_KEY = ""
    env.CURSOR_API_KEY_COMMAND = vim.json.encode(cloud.api_key)
  end
  return env
end

---All of them, the environment's own where the options say nothing.
---@param cloud { url: string?, api_key: (string|string[])? } the options
---@return table<string, string>
function M.all(cloud)
  local values = {} ---@type table<string, string>
  for _, name in ipairs(M.NAMES) do
    values[name] = vim.env[name]
  end
  return vim.tbl_extend("force", values, M.of(cloud))
end

return M
