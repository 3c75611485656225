-- Small files that outlive Neovim: prompts that were sent and drafts that were not.

local M = {}

---@return string
function M.dir()
  return vim.fs.joinpath(vim.fn.stdpath("state") --[[@as string]], "cursor-agent")
end

---@param name string
---@return string
local function path_of(name)
  return vim.fs.joinpath(M.dir(), name .. ".json")
end

---Reads a file; a missing or broken one is empty.
---@param name string
---@return table
function M.read(name)
  local file = io.open(path_of(name), "rb")
  if not file then
    return {}
  end
  local text = file:read("*a")
  file:close()
  local ok, value = pcall(vim.json.decode, text, { luanil = { object = true, array = true } })
  return ok and type(value) == "table" and value or {}
end

---Writes a file whole: beside it first, so that another Neovim never reads half of it.
---@param name string
---@param value table
function M.write(name, value)
  if vim.fn.mkdir(M.dir(), "p", "0700") == 0 then
    return
  end
  local beside = ("%s.%d"):format(path_of(name), vim.uv.os_getpid())
  local file = io.open(beside, "wb")
  if not file then
    return
  end
  file:write(next(value) == nil and "{}" or vim.json.encode(value))
  file:close()
  vim.uv.fs_rename(beside, path_of(name))
end

---Changes a file: reads it anew, since another Neovim may have written it.
---@param name string
---@param change fun(value: table)
function M.update(name, change)
  local value = M.read(name)
  change(value)
  M.write(name, value)
end

return M
