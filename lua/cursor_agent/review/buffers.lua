-- Buffers of files under review: tells the library what they have and what is typed into them.

local loaded = require("cursor_agent.files.loaded")
local bridge = require("cursor_agent.bridge")
local watch = require("cursor_agent.files.watch")

local M = {}

---@type table<integer, string> buffers the library hears of, and the path it knows
local told = {}

---@type table<integer, boolean> buffers whose lines are the library's own doing just now
local quiet = {}

---@type table<integer, [boolean, string][]> what buffers went through before the library heard of them: whether an agent did
---it, and the text
local went = {}

---@type table<integer, boolean> long buffers whose text is being told
local telling = {}

---@type table<integer, string> long buffers of which everything was told, and the state of the file they have
local known = {}

---Called with the path when hunks may have moved.
---@param _path string
function M.on_typed(_path) end

---The loaded buffer of a file.
---@param path string absolute, without links
---@return integer?
function M.find(path)
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buf) and vim.bo[buf].buftype == "" then
      local name = vim.api.nvim_buf_get_name(buf)
      if name == path or (name ~= "" and watch.real_path(name) == path) then
        return buf
      end
    end
  end
end

---The path of a buffer's file as the library knows it.
---@param buf integer
---@return string?
function M.path(buf)
  local name = vim.api.nvim_buf_get_name(buf)
  if name ~= "" and vim.bo[buf].buftype == "" then
    return watch.real_path(name)
  end
end

---Runs something that changes the lines of a buffer and is no typing of the user's.
---@generic T
---@param buf integer
---@param work fun(): T
---@return T
function M.quietly(buf, work)
  local before = quiet[buf]
  quiet[buf] = true
  local ok, result = pcall(work)
  quiet[buf] = before
  if not ok then
    error(result, 0)
  end
  return result
end

---The text of a buffer, as it would be written.
---@param buf integer
---@return string
function M.text(buf)
  local lines = loaded.lines(buf)
  local text = table.concat(lines, "\n")
  return #lines > 0 and vim.bo[buf].endofline and text .. "\n" or text
end

---@param buf integer
---@param path string
local function attach(buf, path)
  told[buf] = path
  vim.api.nvim_buf_attach(buf, false, {
    on_lines = function(_, _, _, first, last, new_last)
      local ready = bridge.is_loaded()
      if told[buf] ~= path or not ready then
        return true
      elseif quiet[buf] or telling[buf] then
        return
      end
      bridge.review_typed(path, first, last, vim.api.nvim_buf_get_lines(buf, first, new_last, false))
      M.on_typed(path)
    end,
    on_reload = function()
      vim.schedule(function()
        M.sync(path)
        M.on_typed(path)
      end)
    end,
    on_detach = function()
      if told[buf] == path then
        told[buf], known[buf] = nil, nil
        if bridge.is_loaded() then
          bridge.review_unloaded(path)
        end
      end
    end,
  })
end

---@param buf integer
---@param path string
---@param text string? nothing when it is what the file has
local function tell(buf, path, text)
  local state = loaded.known(buf) or ""
  if not told[buf] and #bridge.review_hunks({ path = path }) == 0 then
    -- Not under review; what it went through counts when it is.
    return
  end
  if went[buf] and not told[buf] then
    if not bridge.review_went(path, went[buf], text, state) then
      -- The library has yet to see the file in this state, and says when it has.
      return
    end
  else
    bridge.review_buffer(path, text, state)
  end
  went[buf] = nil
  if not told[buf] then
    attach(buf, path)
  end
end

---A buffer was read again: what it went through before is over.
---@param buf integer
function M.was_read(buf)
  went[buf] = nil
end

---What an agent wrote was merged into a buffer.
---@param buf integer
---@param before string
---@param after string
function M.merged(buf, before, after)
  if not told[buf] then
    went[buf] = went[buf] or {}
    vim.list_extend(went[buf], { { false, before }, { true, after } })
  end
end

---Tells the library the text of a long buffer, which takes a moment.
---@param buf integer
---@param path string
local function tell_long(buf, path)
  if telling[buf] then
    return
  end
  telling[buf] = true
  local tick, state = vim.api.nvim_buf_get_changedtick(buf), loaded.known(buf)
  ---@return boolean
  local function is_same()
    return vim.api.nvim_buf_is_loaded(buf)
      and vim.api.nvim_buf_get_changedtick(buf) == tick
      and loaded.known(buf) == state
  end
  local function done()
    telling[buf] = nil
    if is_same() then
      known[buf] = state
      if not told[buf] then
        attach(buf, path)
      end
      M.on_typed(path)
    elseif vim.api.nvim_buf_is_loaded(buf) then
      M.sync(path)
    end
  end
  loaded.text_in_pieces(buf, function(text)
    if not bridge.is_loaded() or not is_same() then
      return done()
    end
    text = vim.bo[buf].endofline and text or text:sub(1, -2)
    local id = bridge.review_buffer_later(path, text, state or "")
    if id then
      bridge.await(id, done)
    else
      telling[buf] = nil
    end
  end)
end

---Tells the library what the buffer of a file has, once it has all that the file has.
---@param path string
---@return integer? buf
function M.sync(path)
  local buf = M.find(path)
  if not bridge.is_loaded() or not buf then
    return nil
  end
  if loaded.is_current(buf, path) then
    if not vim.bo[buf].modified then
      tell(buf, path)
    elseif vim.api.nvim_buf_line_count(buf) > loaded.PIECE then
      if not told[buf] or known[buf] ~= loaded.known(buf) then
        tell_long(buf, path)
      end
    else
      tell(buf, path, M.text(buf))
    end
  end
  return buf
end

---The user decided to have none of what an agent wrote to a file last.
---@param buf integer
function M.is_mine(buf)
  went[buf] = nil
  local path = M.path(buf)
  if path and bridge.is_loaded() then
    bridge.review_mine(path, M.text(buf))
  end
end

---Whether the library knows what a buffer has, so that its hunks are where the library says.
---@param buf integer
---@param path string
---@return boolean
function M.in_step(buf, path)
  return told[buf] == path and not telling[buf] and vim.uv.fs_stat(path) ~= nil
end

---The files that buffers have, for a prompt that is about to be sent.
---@return string[]
function M.open_files()
  local paths = {} ---@type string[]
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buf) and vim.bo[buf].buftype == "" then
      local name = vim.api.nvim_buf_get_name(buf)
      if name:sub(1, 1) == "/" then
        paths[#paths + 1] = name
      end
    end
  end
  return paths
end

---The user wrote a buffer to its file.
---@param buf integer
function M.written(buf)
  local ready, path = bridge.is_loaded(), M.path(buf)
  if ready and path and not quiet[buf] then
    bridge.review_wrote(path, true)
  end
end

return M
