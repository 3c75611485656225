-- Creates files and directories that only the user can read, from the first byte on and whatever the umask.

local M = {}

-- The modes 0600 and 0700.
local FILE_MODE, DIR_MODE = 384, "0700"

---How often to retry creating directories that another Neovim is creating too.
local MAKE_DIR_TRIES = 20

local count = 0

---Creates a directory and its missing parents.
---@param path string
---@return boolean?, string? problem
function M.make_dir(path)
  local ok, made ---@type boolean, any
  for _ = 1, MAKE_DIR_TRIES do
    ok, made = pcall(vim.fn.mkdir, path, "p", DIR_MODE)
    if ok and made == 1 then
      return true
    end
    -- Neovim raises an error if another Neovim is creating the same directories: it says that one already exists.
    if not tostring(made):find("E739:.*exists") then
      break
    end
  end
  return nil, (tostring(made):gsub("^.-(E%d+: )", "%1"))
end

---@param fd integer
---@param pieces string|string[]
---@return boolean?, string? problem
local function write_all(fd, pieces)
  for _, piece in ipairs(type(pieces) == "table" and pieces or { pieces }) do
    while piece ~= "" do
      local written, problem = vim.uv.fs_write(fd, piece)
      if not written then
        return nil, problem
      end
      piece = piece:sub(written + 1)
    end
  end
  return true
end

---Writes a file that does not exist yet. If it cannot be written completely, it is removed again.
---@param path string
---@param pieces string|string[]
---@return boolean?, string? problem
function M.create(path, pieces)
  -- O_EXCL: never write to someone else's file or to a link planted here.
  local fd, problem = vim.uv.fs_open(path, "wx", FILE_MODE)
  if not fd then
    return nil, problem
  end
  local ok, failed = write_all(fd, pieces)
  local closed, not_closed = vim.uv.fs_close(fd)
  if ok and closed then
    return true
  end
  vim.uv.fs_unlink(path)
  return nil, ("%s: %s"):format(path, failed or not_closed)
end

---Replaces a file atomically: readers never see half of it, and a full disk leaves the old one intact.
---@param path string
---@param pieces string|string[]
---@param still? fun(): boolean checked right before the old one is replaced; if false, the old one stays
---@return boolean?, string? problem
function M.replace(path, pieces, still)
  count = count + 1
  local beside = ("%s.%d-%d-%d.new"):format(path, vim.uv.os_getpid(), vim.uv.hrtime(), count)
  local ok, problem = M.create(beside, pieces)
  if not ok then
    return nil, problem
  end
  local renamed, why ---@type boolean?, string?
  if still and not still() then
    why = path .. " changed in the meantime"
  else
    renamed, why = vim.uv.fs_rename(beside, path)
  end
  if not renamed then
    vim.uv.fs_unlink(beside)
  end
  return renamed and true or nil, why
end

return M
