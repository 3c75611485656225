-- Files of a case: read and written whole, byte for byte.

local M = {}

---The text of a file; nil if it cannot be read.
---@param path string
---@return string?
function M.peek(path)
  local file = io.open(path, "rb")
  if not file then
    return nil
  end
  local text = file:read("*a")
  file:close()
  return text
end

---The text of a file, which has to exist.
---@param path string
---@return string
function M.read(path)
  local text = M.peek(path)
  return text or error(("cannot read %s"):format(path), 2)
end

---Writes a file, and makes its directory.
---@param path string
---@param text string
function M.write(path, text)
  vim.fn.mkdir(vim.fs.dirname(path), "p")
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
end

return M
