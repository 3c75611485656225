-- Fetches one file over HTTPS with curl or wget.

local task = require("cursor_agent.install.task")

local M = {}

local CONNECT_S = 15
local TRANSFER_S = 600

---A program may be there and yet be busybox's, which knows few options.
---@return boolean
local function is_gnu_wget()
  local output = task.run({ "wget", "--version" }, { timeout_ms = 5000 })
  return output ~= nil and output.stdout:find("GNU Wget", 1, true) ~= nil
end

---@param url string
---@param path string
---@return string[]?, string? problem
local function command(url, path)
  -- Plain HTTP is for a server on this machine, as in the tests: nothing is in between.
  local is_local = url:find("^http://127%.0%.0%.1[:/]") ~= nil
  if not is_local and not url:find("^https://") then
    return nil, url .. " is not an https address"
  end
  if vim.fn.executable("curl") == 1 then
    local schemes = is_local and "=http,https" or "=https"
    -- stylua: ignore
    return {
      "curl", "--fail", "--location", "--silent", "--show-error", "--proto", schemes, "--proto-redir", schemes,
      "--connect-timeout", tostring(CONNECT_S), "--max-time", tostring(TRANSFER_S), "--retry", "2",
      "--output", path, url,
    }
  elseif vim.fn.executable("wget") == 1 then
    if is_gnu_wget() then
      return { "wget", "--no-verbose", "--tries=2", "--timeout=" .. CONNECT_S, "-O", path, url }
    end
    return { "wget", "-q", "-T", tostring(CONNECT_S), "-O", path, url }
  end
  return nil, "neither curl nor wget is installed"
end

---@param url string
---@param path string
---@return boolean ok, string? problem
function M.fetch(url, path)
  local argv, problem = command(url, path)
  if not argv then
    return false, problem
  end
  local output, broken = task.run(argv, { timeout_ms = (TRANSFER_S + CONNECT_S) * 1000 })
  if not output then
    return false, broken
  elseif output.code ~= 0 then
    local said = vim.trim(output.stderr):match("[^\r\n]*$")
    return false, ("%s: %s"):format(url, said ~= "" and said or ("%s failed with code %d"):format(argv[1], output.code))
  end
  return true
end

return M
