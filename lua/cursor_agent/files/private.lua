-- Creates files and directories that only the user can read, from their first byte and whatever the umask is.

local M = {}

-- The modes 0600 and 0700.
local FILE_MODE, DIR_MODE = 384, "0700"

local count = 0

---Makes a directory and those above it that are missing.
---@param path string
---@return boolean?, string? problem
function M.make_dir(path)
  local ok, made = pcall(vim.fn.mkdir, path, "p", DIR_MODE)
  if ok and made == 1 then
    return true
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

---Writes a file that does not exist yet. One that could not be written whole is removed again.
---@param path string
---@param pieces string|string[]
---@return boolean?, string? problem
function M.create(path, pieces)
  -- O_EXCL: neither another's file nor a link planted here is written to.
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

---Writes a file whole, beside the old one first: what reads it never sees half of it, and a full disk leaves it as it was.
---@param path string
---@param pieces string|string[]
---@return boolean?, string? problem
function M.replace(path, pieces)
  count = count + 1
  local beside = ("%s.%d-%d-%d.new"):format(path, vim.uv.os_getpid(), vim.uv.hrtime(), count)
  local ok, problem = M.create(beside, pieces)
  if not ok then
    return nil, problem
  end
  local renamed, why = vim.uv.fs_rename(beside, path)
  if not renamed then
    vim.uv.fs_unlink(beside)
  end
  return renamed and true or nil, why
end

return M
