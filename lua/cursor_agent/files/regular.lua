-- Regular files and nothing else: opening a pipe stops the editor until something writes to it, a device may never end.

local M = {}

local NONBLOCK = vim.uv.constants.O_NONBLOCK or 0
local READ = (vim.uv.constants.O_RDONLY or 0) + NONBLOCK

local group = vim.api.nvim_create_augroup("cursor_agent_regular", {})

---Whether there is something at a path that is neither a file nor a directory.
---@param path string
---@return boolean
function M.is_odd(path)
  local stat = vim.uv.fs_stat(path)
  return stat ~= nil and stat.type ~= "file" and stat.type ~= "directory"
end

---Opens a file to read it. What was opened is what counts: another may have taken its place since it was looked at.
---@param path string
---@param max_bytes integer a larger file is not opened
---@return integer? fd
---@return uv.fs_stat.result|string stat_or_problem
function M.open(path, max_bytes)
  if M.is_odd(path) then
    -- A device may do something when it is merely opened.
    return nil, "not a regular file"
  end
  local fd, problem = vim.uv.fs_open(path, READ, 0)
  if not fd then
    return nil, problem or "cannot be read"
  end
  local stat = vim.uv.fs_fstat(fd)
  if stat and stat.type == "file" and stat.size <= max_bytes then
    return fd, stat
  end
  vim.uv.fs_close(fd)
  return nil, stat and stat.type == "file" and "too large" or "not a regular file"
end

---Reads a whole file.
---@param path string
---@param max_bytes integer
---@return string? bytes
---@return string? problem
function M.read(path, max_bytes)
  local fd, problem = M.open(path, max_bytes)
  if not fd then
    return nil, problem --[[@as string]]
  end
  local bytes = vim.uv.fs_read(fd, max_bytes + 1, 0)
  vim.uv.fs_close(fd)
  if not bytes then
    return nil, "cannot be read"
  elseif #bytes > max_bytes then
    return nil, "too large"
  end
  return bytes
end

---Keeps Neovim from reading what has taken the place of a buffer's file, and the text in the buffer. Once there is a file
---again, that is read as ever.
---@param buf integer
---@param kept { lines: string[], modified: boolean }? the text, where it was loaded
---@param tell fun(buf: integer)
function M.fence(buf, kept, tell)
  vim.api.nvim_clear_autocmds({ group = group, buffer = buf })
  vim.api.nvim_create_autocmd("BufReadCmd", {
    group = group,
    buffer = buf,
    desc = "cursor-agent: do not read what is no regular file",
    callback = function()
      if M.is_odd(vim.api.nvim_buf_get_name(buf)) then
        vim.api.nvim_buf_set_lines(buf, 0, -1, false, kept and kept.lines or {})
        vim.bo[buf].modified = kept ~= nil and kept.modified
        vim.schedule(function()
          if vim.api.nvim_buf_is_valid(buf) then
            tell(buf)
          end
        end)
        return
      end
      vim.api.nvim_clear_autocmds({ group = group, buffer = buf })
      vim.schedule(function()
        if vim.api.nvim_buf_is_loaded(buf) and not vim.bo[buf].modified then
          vim.api.nvim_buf_call(buf, function()
            vim.cmd("silent! keepalt edit")
          end)
        end
      end)
    end,
  })
end

return M
