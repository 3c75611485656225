-- Small files that persist across restarts: sent prompts with their pastes, and unsent drafts.

local bridge = require("cursor_agent.bridge")
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

---The content of each file, in words for the user.
local CONTENTS = { history = "the prompt history", drafts = "the drafts", pastes = "a large paste" }

-- The mode 0600.
local FILE_MODE = 384

---A larger file cannot be one of ours.
local MAX_BYTES = 64 * 1024 * 1024

---@type table<string, boolean> files that could not be written, which was said
local told = {}

---@param name string
---@return table? value
---@return string? text content that cannot be parsed, or nil if it cannot be read
local function load(name)
  local _, _, problem = vim.uv.fs_lstat(path_of(name))
  if problem == "ENOENT" or problem == "ENOTDIR" then
    return {}
  end
  local text = regular.read(path_of(name), MAX_BYTES)
  local ok, value = pcall(vim.json.decode, text or "", { luanil = { object = true, array = true } })
  if ok and type(value) == "table" then
    return value
  end
  return nil, text
end

---Identifies a version of a file: each write creates a new file.
---@param name string
---@return string
local function state_of(name)
  local stat = vim.uv.fs_lstat(path_of(name))
  return stat and ("%d %d.%d %d"):format(stat.ino, stat.mtime.sec, stat.mtime.nsec, stat.size) or ""
end

---@type table<string, (fun(value: table))[]> changes of a file that are yet to be made, oldest first
local waiting = {}

---@param value table
---@param changes (fun(value: table))[]
---@return table value
local function changed(value, changes)
  for _, change in ipairs(changes) do
    change(value)
  end
  return value
end

---Reads a file; a missing or broken one is empty.
---@param name string
---@return table
function M.read(name)
  return changed(load(name) or {}, waiting[name] or {})
end

---@param name string
---@param ok boolean?
---@param problem string?
local function tell(name, ok, problem)
  if not ok and not told[name] then
    local text = "%s could not be saved: %s\n  the previously saved version is still there"
    require("cursor_agent.notify").notify(text:format(CONTENTS[name] or name, problem), "warn")
  end
  told[name] = not ok
end

---Writes a file atomically, so that another Neovim never reads half of it.
---@param name string
---@param value table
---@param state? string write only if the file is in this state
---@return boolean written no message if it was left as it is
function M.write(name, value, state)
  if not private.make_dir(M.dir()) then
    -- There is no state directory, so nothing was ever stored.
    return true
  end
  local is_same = true
  local text = next(value) == nil and "{}" or vim.json.encode(value)
  local ok, problem = private.replace(path_of(name), text, state and function()
    is_same = state_of(name) == state
    return is_same
  end or nil)
  if is_same then
    tell(name, ok, problem)
  end
  return is_same
end

---Total size of stored texts; the oldest are removed first.
local TEXTS_BYTES = 8 * 1024 * 1024

---@param name? string
---@return string
local function text_path(name)
  return vim.fs.joinpath(M.dir(), "pastes", name or "")
end

---Removes the least recently used texts until the rest fit.
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

---Stores a text under a name derived from its content, so that equal texts are stored once.
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
---@return string? text nil if it is no longer stored
function M.kept_text(name)
  local text = regular.read(text_path(name), TEXTS_BYTES)
  return text and vim.fn.sha256(text):sub(1, 32) == name and text or nil
end

---How long to wait for another Neovim that is changing a file: blocking the editor, and when exiting.
local WAIT_MS, LEAVING_MS = 50, 5000

---Retry after this time.
local LATER_MS = 20

---An older claim was left behind by a Neovim that was killed.
local CLAIM_SECONDS = 10

---Replaces a lock if the file system has none: a file that only one process can create.
---@return fun()|false|nil unlock nil if no file can be created
local function claim()
  local path = vim.fs.joinpath(M.dir(), ".claim")
  local fd, _, problem = vim.uv.fs_open(path, "wx", FILE_MODE)
  if fd then
    vim.uv.fs_close(fd)
    return function()
      vim.uv.fs_unlink(path)
    end
  elseif problem ~= "EEXIST" then
    return nil
  end
  local stat = vim.uv.fs_lstat(path)
  if stat and os.time() - stat.mtime.sec > CLAIM_SECONDS then
    vim.uv.fs_unlink(path)
  end
  return false
end

---Keeps other Neovims from changing files of the store. The system releases the lock if this one is killed.
---@param wait_ms integer
---@return fun()? unlock nil while another one is changing a file
local function lock(wait_ms)
  local path = vim.fs.joinpath(M.dir(), ".lock")
  local until_ns = vim.uv.hrtime() + wait_ms * 1e6
  repeat
    local unlock = bridge.lock(path)
    if unlock == nil then
      unlock = claim()
    end
    if unlock == nil then
      return function() end
    elseif unlock then
      return unlock
    end
    vim.uv.sleep(1)
  until vim.uv.hrtime() > until_ns
end

local timer ---@type uv.uv_timer_t?

---How often to reread and write a file that another Neovim is writing despite the lock.
local TRIES = 20

---@param name string
---@param changes (fun(value: table))[]
---@param careful boolean keep what another Neovim writes meanwhile
---@return boolean done
local function write_changes(name, changes, careful)
  local state = state_of(name)
  local value, broken = load(name)
  if not value and not broken then
    tell(name, nil, path_of(name) .. " cannot be read")
    return true
  end
  if broken and broken ~= "" then
    private.replace(path_of(name) .. ".broken", broken)
  end
  return M.write(name, changed(value or {}, changes), careful and state or nil)
end

---Makes the pending changes. An exiting Neovim does not wait long for the lock, so a file that another one replaced
---after it was read is read again.
local function write_waiting()
  for name, changes in pairs(waiting) do
    waiting[name] = nil
    for try = 1, TRIES do
      if write_changes(name, changes, try < TRIES) then
        break
      end
    end
  end
end

---Makes the pending changes once no other Neovim is making any.
local function flush()
  local leaving = vim.v.exiting ~= vim.NIL
  local unlock = lock(leaving and LEAVING_MS or WAIT_MS)
  if not unlock and not leaving then
    timer = timer or assert(vim.uv.new_timer())
    timer:start(LATER_MS, 0, vim.schedule_wrap(flush))
    return
  end
  local ok, problem = pcall(write_waiting)
  if unlock then
    unlock()
  end
  if not ok then
    error(problem, 0)
  end
end

vim.api.nvim_create_autocmd("VimLeavePre", {
  group = vim.api.nvim_create_augroup("cursor_agent_store", {}),
  desc = "cursor-agent: save pending history and drafts",
  callback = function()
    if next(waiting) then
      flush()
    end
  end,
})

---Changes a file, starting from its content at write time, since another Neovim may have written it. `M.read` shows the
---change immediately, even while another Neovim keeps it from being written.
---@param name string
---@param change fun(value: table) may run more than once, each time on the current content
function M.update(name, change)
  private.make_dir(M.dir())
  waiting[name] = waiting[name] or {}
  table.insert(waiting[name], change)
  flush()
end

return M
