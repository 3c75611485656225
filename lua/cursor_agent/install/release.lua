-- What the plugin's own files say of its release: version, interface number, checksums, and where the files are.

local sha256 = require("cursor_agent.install.sha256")

local M = {}

local RELEASES = "https://github.com/cursor-agent/cursor-agent.nvim/releases/download"

---What the library is made of. `scripts/source-id` lists the same.
local SOURCES = { "Cargo.toml", "Cargo.lock", ".cargo/config.toml", "src", "crates/*/Cargo.toml", "crates/*/src" }

---@param path string
---@return string?
function M.read(path)
  local file = io.open(path, "rb")
  if not file then
    return nil
  end
  local text = file:read("*a")
  file:close()
  return text
end

---@param root string
---@return string?
function M.version(root)
  return (M.read(root .. "/Cargo.toml") or ""):match('\nversion = "([^"]+)"')
end

---The number the Lua code compares with the library's. Read, not asked for: another version may be loaded by now.
---@param root string
---@return integer?
function M.abi(root)
  return tonumber((M.read(root .. "/lua/cursor_agent/bridge/native.lua") or ""):match("\n%S*%s?%S*ABI = (%d+)")) --[[@as integer?]]
end

---A short name for exactly these sources of the library; nil where they are not, as in a package without them.
---@param root string
---@return string?
function M.source_id(root)
  local paths = {} ---@type string[]
  for _, pattern in ipairs(SOURCES) do
    for _, path in ipairs(vim.fn.glob(root .. "/" .. pattern, true, true)) do
      if vim.fn.isdirectory(path) == 1 then
        for name, kind in vim.fs.dir(path, { depth = 20 }) do
          if kind == "file" then
            paths[#paths + 1] = (path .. "/" .. name):sub(#root + 2)
          end
        end
      else
        paths[#paths + 1] = path:sub(#root + 2)
      end
    end
  end
  if not vim.list_contains(paths, "src/lib.rs") then
    return nil
  end
  table.sort(paths)
  local lines = {} ---@type string[]
  for _, path in ipairs(paths) do
    lines[#lines + 1] = ("%s  %s\n"):format(sha256.hex(M.read(root .. "/" .. path) or ""), path)
  end
  return sha256.hex(table.concat(lines)):sub(1, 16)
end

---@class (exact) cursor_agent.install.Checksums
---@field version string? of the release
---@field source string? the sources its files were built from
---@field files table<string, string> asset → SHA-256

---The checksums of the release, which came with these sources.
---@param root string
---@return cursor_agent.install.Checksums
function M.checksums(root)
  local list = { files = {} } ---@type cursor_agent.install.Checksums
  for line in (M.read(root .. "/checksums.txt") or ""):gmatch("[^\r\n]+") do
    local key, value = line:match("^# (%w+): (%S+)$")
    local sum, asset = line:match("^(%x+) [ *](%S+)$")
    if key == "version" then
      list.version = value
    elseif key == "source" then
      list.source = value
    elseif sum and #sum == 64 then
      list.files[asset] = sum:lower()
    end
  end
  return list
end

---@param version string
---@param asset string
---@return string
function M.url(version, asset)
  local base = vim.env.CURSOR_AGENT_RELEASES or RELEASES
  return ("%s/v%s/%s"):format((base:gsub("/+$", "")), version, asset)
end

return M
