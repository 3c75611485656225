-- The variables of the environment that say where Cursor's cloud API is and what the key is. Never arguments: those can be seen.

local M = {}

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

return M
