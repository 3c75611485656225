-- What a buffer knows about its file: the state it was loaded in, its text at that time, and what is on disk now.

local regular = require("cursor_agent.files.regular")

local M = {}

---Neovim reloads larger files itself: reading and comparing them here would be noticeable while typing.
M.MAX_BYTES = 10 * 1024 * 1024

---Total size of the cached texts of open files.
local KEPT_BYTES = 64 * 1024 * 1024

---Files up to this size are read synchronously.
local AT_ONCE_BYTES = 512 * 1024

---Longer texts are compared piece by piece, off the main thread.
M.LONG_BYTES = 256 * 1024

---The state of a file that does not exist.
M.NONE = "none"

---A file as it was when its buffer was loaded or written: kept to tell a change on disk from one by the user.
---@class (exact) cursor_agent.loaded.Base
---@field state string
---@field bytes string

---@type table<integer, cursor_agent.loaded.Base> by buffer
local bases = {}

---What is on disk.
---@class (exact) cursor_agent.loaded.Disk
---@field state string
---@field text string its text as Neovim has it, each line with its line ending
---@field lines string[] split from it on demand
---@field eol boolean whether the last line ends in a newline
---@field bytes string

local NONBLOCK = vim.uv.constants.O_NONBLOCK or 0
local READ = (vim.uv.constants.O_RDONLY or 0) + NONBLOCK

---Identifies a state of a file. `plugin/cursor_agent.lua` builds the same string.
---@param stat uv.fs_stat.result?
---@return string
function M.state(stat)
  if not stat then
    return M.NONE
  end
  local m, c = stat.mtime, stat.ctime
  return ("%d.%d %d.%d %d %d"):format(m.sec, m.nsec, c.sec, c.nsec, stat.size, stat.ino)
end

---The state a buffer was last loaded or written in, if known.
---@param buf integer
---@return string?
function M.known(buf)
  return vim.b[buf].cursor_agent_loaded
end

---Records that a buffer has everything its file has, or that the user does not want it.
---@param buf integer
---@param disk? { state: string, bytes: string } nil if there is no file, or it was not read
function M.note(buf, disk)
  vim.b[buf].cursor_agent_loaded = disk and disk.state or M.state(vim.uv.fs_stat(vim.api.nvim_buf_get_name(buf)))
  bases[buf] = disk and { state = disk.state, bytes = disk.bytes } or nil
end

---A text as Neovim reads a file: each line with a line ending, including the last.
---@param text string
---@param buf integer
---@return string text
---@return boolean eol whether the last line had one
function M.whole(text, buf)
  if vim.bo[buf].fileformat == "dos" then
    text = text:gsub("\r\n", "\n")
  end
  local eol = text == "" or text:sub(-1) == "\n"
  return eol and text or text .. "\n", eol
end

---The lines of a text in which each has a line ending. `vim.split` would be noticeably slow.
---@param text string
---@return string[]
function M.cut(text)
  local lines, n = {}, 0 ---@type string[], integer
  for line in text:gmatch("([^\n]*)\n") do
    n = n + 1
    lines[n] = line
  end
  return lines
end

---Whether two such texts have the same lines. A single empty line equals no lines.
---@param one string
---@param other string
---@return boolean
function M.equal(one, other)
  return one == other or (#one <= 1 and #other <= 1)
end

---Encodings for which Neovim and iconv assume different byte orders, with the name that means Neovim's.
local BIG_ENDIAN = { ["utf-16"] = "utf-16be", ["ucs-2"] = "ucs-2be", ["ucs-4"] = "ucs-4be" }

---@param bytes string
---@param buf integer
---@return string? text nil if it is not in the buffer's encoding
---@return boolean eol
local function decode(bytes, buf)
  local encoding = vim.bo[buf].fileencoding
  local text = bytes ---@type string?
  if encoding ~= "" and encoding ~= "utf-8" then
    text = vim.iconv(bytes, BIG_ENDIAN[encoding] or encoding, "utf-8")
  end
  if not text then
    return nil, false
  end
  if vim.bo[buf].bomb then
    text = text:gsub("^\239\187\191", "")
  end
  if vim.bo[buf].fileformat == "mac" then
    -- CR ends lines here, and LF is an ordinary character.
    text = text:gsub("[\r\n]", { ["\r"] = "\n", ["\n"] = "\r" })
  end
  return M.whole(text, buf)
end

local LINES = {
  __index = function(disk, name)
    if name == "lines" then
      local lines = M.cut(disk.text)
      rawset(disk, "lines", lines)
      return lines
    end
  end,
}

---Reads regular files only: a pipe or a device might block the editor forever.
---@param path string
---@return string? bytes
---@return string state_or_problem
local function read_regular(path)
  for _ = 1, 3 do
    local fd, before = regular.open(path, M.MAX_BYTES)
    if not fd or type(before) == "string" then
      return nil, before --[[@as string]]
    end
    local bytes = vim.uv.fs_read(fd, M.MAX_BYTES + 1, 0)
    local after = vim.uv.fs_fstat(fd)
    vim.uv.fs_close(fd)
    if not bytes then
      return nil, "cannot be read"
    end
    -- Read again if it is being written right now.
    if M.state(before) == M.state(after) and M.state(vim.uv.fs_stat(path)) == M.state(after) then
      return bytes, M.state(after)
    end
  end
  return nil, "it is being written"
end

---The current content of a buffer's file.
---@param buf integer
---@param path string
---@return cursor_agent.loaded.Disk?
---@return string? problem
function M.disk(buf, path)
  local bytes, state = read_regular(path)
  if not bytes then
    return nil, state
  end
  local text, eol = decode(bytes, buf)
  if not text then
    return nil, "not in the encoding of its buffer"
  end
  local disk = { state = state, text = text, eol = eol, bytes = bytes }
  return setmetatable(disk, LINES) --[[@as cursor_agent.loaded.Disk]]
end

---The text a buffer was last loaded or written with; nil if it is no longer known.
---@param buf integer
---@param disk? cursor_agent.loaded.Disk what is on disk now
---@return string? text each line with its line ending
function M.base(buf, disk)
  local known = M.known(buf)
  if not known then
    return nil
  elseif known == M.NONE then
    return ""
  end
  local base = bases[buf]
  if disk and (disk.state == known or (base and base.state == known and base.bytes == disk.bytes)) then
    return disk.text
  elseif base and base.state == known then
    return (decode(base.bytes, buf))
  end
end

---The bytes of a buffer's file when it was last loaded or written, if known.
---@param buf integer
---@return string? bytes
---@return boolean? made whether there was no file
function M.base_bytes(buf)
  local known, base = M.known(buf), bases[buf]
  if known == M.NONE then
    return nil, true
  elseif base and base.state == known then
    return base.bytes
  end
end

---Whether the buffer has loaded everything that is on disk.
---@param buf integer
---@param path string
---@return boolean
function M.is_current(buf, path)
  return M.known(buf) == M.state(vim.uv.fs_stat(path))
end

---Caches the text of a buffer's file for when the disk changes. A small file with unsaved changes, or just written, is
---read right away, since it may be needed soon; any other asynchronously.
---@param buf integer
---@param written? boolean
function M.keep(buf, written)
  local path, known = vim.api.nvim_buf_get_name(buf), M.known(buf)
  if known == M.NONE or (bases[buf] and bases[buf].state == known) then
    return
  end
  local stat = known and (written or vim.bo[buf].modified) and vim.uv.fs_stat(path) or nil
  if stat and stat.size <= AT_ONCE_BYTES then
    local bytes, state = read_regular(path)
    if bytes then
      M.take(buf, state, bytes)
    end
    return
  end
  vim.uv.fs_open(path, READ, 0, function(_, fd)
    if not fd then
      return
    end
    local function done()
      vim.uv.fs_close(fd, function() end)
    end
    vim.uv.fs_fstat(fd, function(_, before)
      if not before or before.type ~= "file" or before.size > M.MAX_BYTES or (known and M.state(before) ~= known) then
        return done()
      end
      vim.uv.fs_read(fd, M.MAX_BYTES + 1, 0, function(_, bytes)
        vim.uv.fs_fstat(fd, function(_, after)
          done()
          if bytes and after and M.state(after) == M.state(before) then
            vim.schedule(function()
              M.take(buf, M.state(after), bytes)
            end)
          end
        end)
      end)
    end)
  end)
end

---@param buf integer
---@param state string
---@param bytes string
function M.take(buf, state, bytes)
  if not vim.api.nvim_buf_is_loaded(buf) then
    return
  end
  if not M.known(buf) and not vim.bo[buf].modified then
    -- Loaded before its state was recorded.
    local text = decode(bytes, buf)
    if text and M.equal(M.text(buf), text) then
      vim.b[buf].cursor_agent_loaded = state
    end
  end
  if M.known(buf) ~= state then
    return
  end
  local all = #bytes
  for other, base in pairs(bases) do
    all = all + (other ~= buf and #base.bytes or 0)
  end
  if all <= KEPT_BYTES then
    bases[buf] = { state = state, bytes = bytes }
  end
end

---Lines of a buffer as one string, each with its line ending. Neovim stores a NUL as a line feed.
---@param lines string[]
---@return string
local function joined(lines)
  -- Lines have no NUL, so any line feed found here is inside a line.
  if table.concat(lines, "\0"):find("\n", 1, true) then
    for i, line in ipairs(lines) do
      lines[i] = line:gsub("\n", "\0")
    end
  end
  return #lines > 0 and table.concat(lines, "\n") .. "\n" or ""
end

---The text of a buffer, each line with its line ending.
---@param buf integer
---@return string
function M.text(buf)
  return joined(M.lines(buf))
end

---Lines read from a buffer at a time; more would be noticeable.
M.PIECE = 5000

---The text of a buffer, read piece by piece if it is long. Its changedtick tells whether it changed meanwhile.
---@param buf integer
---@param done fun(text: string)
function M.text_in_pieces(buf, done)
  local count = vim.api.nvim_buf_line_count(buf)
  if count <= M.PIECE then
    return done(M.text(buf))
  end
  local pieces, at = {}, 0 ---@type string[], integer
  local function step()
    if not vim.api.nvim_buf_is_loaded(buf) then
      return done("")
    end
    pieces[#pieces + 1] = joined(vim.api.nvim_buf_get_lines(buf, at, at + M.PIECE, false))
    at = at + M.PIECE
    if at < count then
      vim.defer_fn(step, 1)
    else
      done(table.concat(pieces))
    end
  end
  step()
end

---The lines of a buffer. An empty buffer has none, though Neovim counts one.
---@param buf integer
---@return string[]
function M.lines(buf)
  local lines = vim.api.nvim_buf_get_lines(buf, 0, -1, false)
  return #lines == 1 and lines[1] == "" and {} or lines
end

---@param buf integer
---@return boolean
function M.is_empty(buf)
  return vim.api.nvim_buf_line_count(buf) == 1 and vim.api.nvim_buf_get_lines(buf, 0, 1, false)[1] == ""
end

---@param some string[]
---@param others string[]
---@return boolean
function M.same(some, others)
  if #some <= 1 and #others <= 1 then
    return (some[1] or "") == (others[1] or "")
  elseif #some ~= #others then
    return false
  end
  for i, line in ipairs(some) do
    if line ~= others[i] then
      return false
    end
  end
  return true
end

---Whether a plugin handles writing the buffer.
---@param buf integer
---@return boolean
local function written_by_plugin(buf)
  local path = vim.api.nvim_buf_get_name(buf)
  for _, cmd in ipairs(vim.api.nvim_get_autocmds({ event = "BufWriteCmd" })) do
    local pattern = cmd.pattern or ""
    local name = pattern:find("/", 1, true) and path or vim.fs.basename(path)
    local ok, found = pcall(function()
      return vim.regex(vim.fn.glob2regpat(pattern)):match_str(name)
    end)
    ---@diagnostic disable-next-line: undefined-field it is there when `buflocal` is true
    if cmd.buffer == buf or (not cmd.buflocal and ok and found) then
      return true
    end
  end
  return false
end

---Makes Neovim believe that a buffer was just written to its file: it takes over the file's time, and no longer asks
---about the change, at the next `:checktime` or at `:w`. Nothing is written, and the text stays as it is.
---@param buf integer
---@param modified boolean the value of 'modified' afterwards
---@return boolean
function M.sync(buf, modified)
  local done = false
  local before = vim.bo[buf].modified
  if not written_by_plugin(buf) then
    local write, readonly = vim.o.write, vim.bo[buf].readonly
    local id = vim.api.nvim_create_autocmd("BufWriteCmd", {
      buffer = buf,
      desc = "cursor-agent: adopt the file's modification time",
      callback = function()
        done = true
        vim.bo[buf].modified = false
      end,
    })
    vim.o.write = true
    pcall(vim.api.nvim_buf_call, buf, function()
      -- In a buffer of this type, only the autocommand above writes.
      vim.cmd("noautocmd setlocal modified buftype=acwrite")
      pcall(vim.cmd, "silent keepalt lockmarks write!") ---@diagnostic disable-line: param-type-mismatch
      vim.cmd("noautocmd setlocal buftype=")
    end)
    vim.o.write, vim.bo[buf].readonly = write, readonly
    vim.api.nvim_del_autocmd(id)
  end
  if done then
    vim.bo[buf].modified = modified
  else
    vim.bo[buf].modified = before
  end
  return done
end

---Stops Neovim from ever checking the file's time again: with a pipe it would read it, and block forever.
---@param buf integer
function M.never_look(buf)
  pcall(vim.api.nvim_buf_call, buf, function()
    local name = vim.fn.fnamemodify(vim.api.nvim_buf_get_name(buf), ":.")
    vim.cmd("silent! noautocmd keepalt file " .. vim.fn.fnameescape(name))
  end)
end

---Forgets a buffer that is gone.
---@param buf integer
function M.forget(buf)
  bases[buf] = nil
end

return M
