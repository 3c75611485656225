-- Names the platform of the running Neovim as Rust does, for the files of a release.

local M = {}

local ARCHES = { x64 = "x86_64", arm64 = "aarch64" }

---Whether this process runs on musl. The loader in its own memory says so; a file of some other libc on disk would not.
---@return boolean
local function is_musl()
  local maps = io.open("/proc/self/maps", "r")
  if not maps then
    return vim.fn.glob("/lib/ld-musl-*.so.1") ~= ""
  end
  local text = maps:read("*a")
  maps:close()
  return text:find("ld-musl-", 1, true) ~= nil
end

---The target triple, such as `x86_64-unknown-linux-gnu`.
---@return string?, string? problem
function M.triple()
  if not jit then
    return nil, "this Neovim has no LuaJIT, which the library needs"
  end
  local arch = ARCHES[jit.arch]
  if arch and jit.os == "Linux" then
    return ("%s-unknown-linux-%s"):format(arch, is_musl() and "musl" or "gnu")
  elseif arch and jit.os == "OSX" then
    return arch .. "-apple-darwin"
  end
  return nil, ("none is built for %s on %s"):format(jit.os, jit.arch)
end

---@class (exact) cursor_agent.install.File
---@field name string its name in `lib/`
---@field asset string its name in a release
---@field built string its name among the results of cargo

---The companion programs, and the packages they are built from.
---@type { name: string, package: string }[]
M.programs = {
  { name = "cursor-agent-demo", package = "tools" },
  { name = "cursor-agent-acp", package = "adapter" },
  { name = "cursor-agent-cloud", package = "cloud" },
  { name = "cursor-agent-mcp", package = "cloud-mcp" },
  { name = "cursor-agent-connect", package = "connect" },
}

---The files of an installation: the library first, then the companion programs.
---@param triple string
---@return cursor_agent.install.File[]
function M.files(triple)
  -- Lua looks for `.so` on macOS as well: only cargo and the release call it otherwise.
  local suffix = triple:find("darwin", 1, true) and "dylib" or "so"
  local files = {
    {
      name = "cursor_agent.so",
      asset = ("cursor_agent-%s.%s"):format(triple, suffix),
      built = "libcursor_agent." .. suffix,
    },
  }
  for _, program in ipairs(M.programs) do
    files[#files + 1] = {
      name = program.name,
      asset = program.name .. "-" .. triple,
      built = program.name,
    }
  end
  return files
end

return M
