-- Regular files only: opening a pipe blocks the editor until something writes to it, and a device may never end.

local M = {}

local NONBLOCK = vim.uv.constants.O_NONBLOCK or 0
local READ = (vim.uv.constants.O_RDONLY or 0) + NONBLOCK

local group = vim.api.nvim_create_augroup("cursor_agent_regular", {})

---Whether a path is something other than a file or a directory.
---@param path string
---@return boolean
function M.is_odd(path)
  local stat = vim.uv.fs_stat(path)
  return stat ~= nil and stat.type ~= "file" and stat.type ~= "directory"
end

---Opens a file for reading. Checks the opened file itself: another may have taken its place since the path was checked.
---@param path string
---@param max_bytes integer larger files are not opened
---@return integer? fd
---@return uv.fs_stat.result|string stat_or_problem
function M.open(path, max_bytes)
  if M.is_odd(path) then
    -- Merely opening a device may have an effect.
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

---Keeps Neovim from reading what has replaced a buffer's file, and keeps the buffer's text. Once there is a regular
---file again, it is read as usual.
---@param buf integer
---@param kept { lines: string[], modified: boolean }? the text, if it was loaded
---@param tell fun(buf: integer)
function M.fence(buf, kept, tell)
  vim.api.nvim_clear_autocmds({ group = group, buffer = buf })
  vim.api.nvim_create_autocmd("BufReadCmd", {
    group = group,
    buffer = buf,
    desc = "cursor-agent: do not read pipes and devices",
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
