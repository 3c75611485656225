-- Buffers of files under review: tells the library what they have and what is typed into them.

local loaded = require("cursor_agent.files.loaded")
local bridge = require("cursor_agent.bridge")
local watch = require("cursor_agent.files.watch")

local M = {}

---@type table<integer, string> buffers the library hears of, and the path it knows
local told = {}

---@type table<integer, boolean> buffers whose lines are the library's own doing just now
local quiet = {}

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

---@param buf integer
---@return string
local function text_of(buf)
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
      elseif quiet[buf] then
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
        told[buf] = nil
        local ready = bridge.is_loaded()
        if ready then
          bridge.review_unloaded(path)
        end
      end
    end,
  })
end

---Tells the library what the buffer of a file has, once it has all that the file has.
---@param path string
---@return integer? buf
function M.sync(path)
  local ready, buf = bridge.is_loaded(), M.find(path)
  if not ready or not buf then
    return nil
  end
  if loaded.is_current(buf, path) then
    local text = vim.bo[buf].modified and text_of(buf) or nil
    bridge.review_buffer(path, text, loaded.known(buf) or "")
    if not told[buf] then
      attach(buf, path)
    end
  end
  return buf
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
