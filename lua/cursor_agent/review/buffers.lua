-- Buffers of files under review: tells the library what they contain and what is typed into them.

local loaded = require("cursor_agent.files.loaded")
local bridge = require("cursor_agent.bridge")
local watch = require("cursor_agent.files.watch")

local M = {}

---@type table<integer, string> buffers the library hears of, and the path it knows
local told = {}

---@type table<integer, string> the file whose text a buffer has: a link may lead to another by now
local files = {}

---@type table<integer, boolean> buffers whose lines are the library's own doing just now
local quiet = {}

---@type table<integer, fun()[]> what has yet to be told of long buffers, in order; there while something is being told
local telling = {}

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

---Runs something that changes a buffer's lines without counting as the user's typing.
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
---@return boolean
local function is_long(buf)
  return vim.api.nvim_buf_line_count(buf) > loaded.PIECE
end

---@param buf integer
---@param path string
local function attach(buf, path)
  if told[buf] == path then
    return
  end
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
        M.on_typed(path)
      end)
    end,
    on_detach = function()
      if told[buf] == path then
        told[buf] = nil
        if bridge.is_loaded() then
          bridge.review_unloaded(path)
        end
      end
    end,
  })
end

---Reports what is pending about a long buffer, one item after the other.
---@param buf integer
---@param path string
local function go_on(buf, path)
  local queue = telling[buf]
  if not queue then
    return
  end
  local first = table.remove(queue, 1) ---@type fun()?
  if first and vim.api.nvim_buf_is_loaded(buf) and bridge.is_loaded() then
    return first()
  end
  telling[buf] = nil
  if bridge.is_loaded() and vim.api.nvim_buf_is_loaded(buf) and #bridge.review_hunks({ path = path }) > 0 then
    attach(buf, path)
  end
  M.on_typed(path)
end

---Reports something about a long buffer after everything before it. What is typed meanwhile is reported afterwards, as
---a whole.
---@param buf integer
---@param path string
---@param work fun() continues when it is done
local function tell_later(buf, path, work)
  local begun = telling[buf] ~= nil
  telling[buf] = telling[buf] or {}
  table.insert(telling[buf], work)
  if not begun then
    go_on(buf, path)
  end
end

---Reports a long buffer's text as the user's work, until it no longer changes meanwhile.
---@param buf integer
---@param path string
local function tell_text(buf, path)
  local tick = vim.api.nvim_buf_get_changedtick(buf)
  loaded.text_in_pieces(buf, function(text)
    if not vim.api.nvim_buf_is_loaded(buf) or not bridge.is_loaded() then
      return go_on(buf, path)
    elseif vim.api.nvim_buf_get_changedtick(buf) ~= tick then
      return tell_text(buf, path)
    end
    text = vim.bo[buf].endofline and text or text:sub(1, -2)
    local id = bridge.review_text_later(path, text)
    if not id then
      return go_on(buf, path)
    end
    bridge.await(id, function()
      if vim.api.nvim_buf_is_loaded(buf) and vim.api.nvim_buf_get_changedtick(buf) ~= tick then
        return tell_text(buf, path)
      end
      go_on(buf, path)
    end)
  end)
end

---@class (exact) cursor_agent.review.Took
---@field state string the state of the file that the buffer has taken in
---@field bytes string? the file's content
---@field before string? the buffer's text just before; for a long one only if mixed
---@field hunks cursor_agent.merge.Hunk[]? what was applied to it, if there are unsaved lines
---@field same boolean? the buffer took in none of it
---@field author { key: cursor_agent.Key, turn: integer }? the agent and turn that made the change, if known
---@field mixed boolean? the file now has lines that were unsaved before

---A buffer has taken in its file's new content, or was read: reports it immediately, in the order things happen to the
---buffer.
---@param buf integer
---@param took cursor_agent.review.Took
function M.took(buf, took)
  local path = M.path(buf)
  if not path or not bridge.is_loaded() then
    return
  end
  if files[buf] and files[buf] ~= path then
    -- Its previous text was of another file, so no agent made this from that.
    took = { state = took.state, bytes = took.bytes }
    loaded.forget(buf)
  end
  files[buf] = path
  local author = took.author or {}
  ---@type cursor_agent.Taking
  local taking = {
    state = took.state,
    bytes = took.bytes,
    same = took.same,
    key = author.key,
    turn = author.turn,
    mixed = took.mixed,
  }
  local long = is_long(buf)
  if not long or told[buf] ~= path then
    taking.base, taking.made = loaded.base_bytes(buf)
  end
  if not long then
    taking.before = took.before
    taking.text = took.hunks and M.text(buf) or nil
    if bridge.review_took(path, taking) then
      attach(buf, path)
    end
    return
  end
  local whole = told[buf] ~= path and (took.hunks or took.same) and not took.mixed
  if not whole then
    taking.edits = took.hunks
    taking.before = took.mixed and took.before or nil
  end
  local tick = vim.api.nvim_buf_get_changedtick(buf)
  tell_later(buf, path, function()
    local id = bridge.review_took_later(path, taking)
    if not id then
      return go_on(buf, path)
    end
    bridge.await(id, function()
      local typed = vim.api.nvim_buf_is_loaded(buf) and (whole or vim.api.nvim_buf_get_changedtick(buf) ~= tick)
      if typed and #bridge.review_hunks({ path = path }) > 0 then
        attach(buf, path)
        return tell_text(buf, path)
      end
      go_on(buf, path)
    end)
  end)
end

---A buffer has what its file had when it was last read or written, and perhaps unsaved lines.
---@param path string
---@return integer? buf
function M.sync(path)
  local buf = M.find(path)
  if not bridge.is_loaded() or not buf then
    return nil
  elseif not telling[buf] and bridge.review_has_buffer(path) == false then
    local state = loaded.known(buf)
    if not state or state == loaded.NONE or not loaded.is_current(buf, path) then
      return buf
    end
    local hunks = vim.bo[buf].modified and {} or nil
    M.took(buf, { state = state, hunks = hunks })
  end
  return buf
end

---Whether the library knows a buffer's text, so that its hunks are where the library says.
---@param buf integer
---@param path string
---@return boolean
function M.in_step(buf, path)
  local has = not telling[buf] and bridge.review_has_buffer(path)
  return has == true and told[buf] == path and vim.uv.fs_stat(path) ~= nil
end

---The files open in buffers, for a prompt that is about to be sent.
---@return string[]
function M.open_files()
  local paths = {} ---@type string[]
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buf) and vim.bo[buf].buftype == "" then
      local name = vim.api.nvim_buf_get_name(buf)
      if name:sub(1, 1) == "/" then
        paths[#paths + 1] = name
        files[buf] = files[buf] or watch.real_path(name)
      end
    end
  end
  return paths
end

vim.api.nvim_create_autocmd({ "BufReadPost", "BufNewFile", "BufFilePost", "BufUnload" }, {
  group = vim.api.nvim_create_augroup("cursor_agent_review_buffers", {}),
  desc = "cursor-agent: note which file a buffer shows",
  callback = function(args)
    files[args.buf] = args.event ~= "BufUnload" and M.path(args.buf) or nil
  end,
})

---The user wrote a buffer to its file.
---@param buf integer
function M.written(buf)
  local ready, path = bridge.is_loaded(), M.path(buf)
  local stat = path and vim.uv.fs_stat(path)
  if ready and path and stat and not quiet[buf] then
    bridge.review_saved(path, loaded.state(stat))
  end
end

return M
