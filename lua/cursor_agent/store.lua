-- Small files that outlive Neovim: prompts that were sent with their pastes, and drafts that were not.

local M = {}

---@return string
function M.dir()
  return vim.fs.joinpath(vim.fn.stdpath("state") --[[@as string]], "cursor-agent")
end

---Whether a directory is there, or could be made.
---@param path string
---@return boolean
local function make_dir(path)
  local ok, made = pcall(vim.fn.mkdir, path, "p", "0700")
  return ok and made == 1
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
  if not make_dir(M.dir()) then
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

---So many bytes of texts are kept, in all; the oldest go first.
local TEXTS_BYTES = 8 * 1024 * 1024

---@param name? string
---@return string
local function text_path(name)
  return vim.fs.joinpath(M.dir(), "pastes", name or "")
end

---Removes the texts that were used longest ago, until the rest fit.
local function drop_texts()
  local texts, bytes = {}, 0 ---@type { path: string, size: integer, used: number }[], integer
  for name in vim.fs.dir(text_path()) do
    local stat = vim.uv.fs_stat(text_path(name))
    if stat then
      texts[#texts + 1] = { path = text_path(name), size = stat.size, used = stat.mtime.sec + stat.mtime.nsec / 1e9 }
      bytes = bytes + stat.size
    end
  end
  table.sort(texts, function(a, b)
    return a.used < b.used
  end)
  for _, text in ipairs(texts) do
    if bytes <= TEXTS_BYTES then
      return
    end
    vim.uv.fs_unlink(text.path)
    bytes = bytes - text.size
  end
end

---Keeps a text under a name made from it, so that the same text is kept once.
---@param text string
---@return string name
function M.keep_text(text)
  local name = vim.fn.sha256(text):sub(1, 32)
  if #text <= TEXTS_BYTES and make_dir(text_path()) then
    local file = io.open(text_path(name), "wb")
    if file then
      file:write(text)
      file:close()
      drop_texts()
    end
  end
  return name
end

---@param name string
---@return string? text nil when it is no longer kept
function M.kept_text(name)
  local file = io.open(text_path(name), "rb")
  local text = file and file:read("*a")
  if file then
    file:close()
  end
  return text and vim.fn.sha256(text):sub(1, 32) == name and text or nil
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
