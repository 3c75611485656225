-- Small files that outlive Neovim: prompts that were sent with their pastes, and drafts that were not.

local private = require("cursor_agent.files.private")
local regular = require("cursor_agent.files.regular")

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

---What is in each file, as a person would call it.
local CONTENTS = { history = "the prompts you sent", drafts = "what you were writing", pastes = "a large paste" }

---A larger file is not one of these.
local MAX_BYTES = 64 * 1024 * 1024

---@type table<string, boolean> files that could not be written, which was said
local told = {}

---@param name string
---@return table? value
---@return string? text what is there and cannot be understood, or nothing when it cannot be read
local function load(name)
  if not vim.uv.fs_lstat(path_of(name)) then
    return {}
  end
  local text = regular.read(path_of(name), MAX_BYTES)
  local ok, value = pcall(vim.json.decode, text or "", { luanil = { object = true, array = true } })
  if ok and type(value) == "table" then
    return value
  end
  return nil, text
end

---Reads a file; a missing or broken one is empty.
---@param name string
---@return table
function M.read(name)
  return load(name) or {}
end

---@param name string
---@param ok boolean?
---@param problem string?
local function tell(name, ok, problem)
  if not ok and not told[name] then
    local text = "%s could not be saved: %s\n  what was saved before is still there"
    require("cursor_agent.notify").notify(text:format(CONTENTS[name] or name, problem), "warn")
  end
  told[name] = not ok
end

---Writes a file whole: beside it first, so that another Neovim never reads half of it.
---@param name string
---@param value table
function M.write(name, value)
  if not private.make_dir(M.dir()) then
    -- Where there is no place for it, nothing was ever kept.
    return
  end
  tell(name, private.replace(path_of(name), next(value) == nil and "{}" or vim.json.encode(value)))
end

---How long another Neovim is waited for; writing takes it a moment.
local WAIT_NS = 250e6
---A lock of this many seconds was forgotten.
local FORGOTTEN_S = 10
-- The mode 0600.
local LOCK_MODE = 384

---Whether the Neovim that locked a file is gone.
---@param path string
---@return boolean
local function is_forgotten(path)
  local stat = vim.uv.fs_stat(path)
  local said = stat and regular.read(path, 64)
  if not stat or not said then
    return false
  end
  local pid = tonumber(said)
  return os.time() - stat.mtime.sec > FORGOTTEN_S or (pid ~= nil and vim.uv.kill(pid, 0) == nil)
end

---Keeps other Neovims from changing a file, if that is possible at all.
---@param name string
---@return fun() unlock
local function lock(name)
  local path = path_of(name) .. ".lock"
  local pid = vim.uv.os_getpid()
  local until_ns = vim.uv.hrtime() + WAIT_NS
  repeat
    local fd, _, code = vim.uv.fs_open(path, "wx", LOCK_MODE)
    if fd then
      vim.uv.fs_write(fd, tostring(pid))
      vim.uv.fs_close(fd)
      return function()
        vim.uv.fs_unlink(path)
      end
    elseif code ~= "EEXIST" then
      break
    elseif is_forgotten(path) then
      -- Of several who find it, one succeeds.
      local aside = ("%s.%d"):format(path, pid)
      if vim.uv.fs_rename(path, aside) then
        vim.uv.fs_unlink(aside)
      end
    else
      vim.uv.sleep(1)
    end
  until vim.uv.hrtime() > until_ns
  return function() end
end

---This many bytes of texts are kept, in all; the oldest go first.
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
  if #text <= TEXTS_BYTES and private.make_dir(text_path()) then
    local ok, problem = private.replace(text_path(name), text)
    tell("pastes", ok, problem)
    if ok then
      drop_texts()
    end
  end
  return name
end

---@param name string
---@return string? text nil when it is no longer kept
function M.kept_text(name)
  local text = regular.read(text_path(name), TEXTS_BYTES)
  return text and vim.fn.sha256(text):sub(1, 32) == name and text or nil
end

---Changes a file: reads it again, since another Neovim may have written it, and keeps others from writing meanwhile.
---@param name string
---@param change fun(value: table)
function M.update(name, change)
  private.make_dir(M.dir())
  local unlock = lock(name)
  local value, broken = load(name)
  if not value and not broken then
    unlock()
    return tell(name, nil, path_of(name) .. " cannot be read")
  elseif broken and broken ~= "" then
    private.replace(path_of(name) .. ".broken", broken)
  end
  local all = value or {}
  local ok, problem = pcall(change, all)
  if ok then
    M.write(name, all)
  end
  unlock()
  if not ok then
    error(problem, 0)
  end
end

return M
