-- Finds the colours of code by Vim's syntax files, for the languages that come without a parser, a line at a time.

local M = {}

---Vim's own syntax files are slow: code beyond this stays plain.
local MAX_LINES = 400
local MAX_COLUMNS = 300
---A line that takes longer would be felt; the lines after it would too. On the processor: a busy machine is not the line's fault.
local MAX_LINE_SECONDS = 0.008

---@type table<string, string> what people write on a fence
local ALIASES = {
  bash = "sh",
  ["c++"] = "cpp",
  docker = "dockerfile",
  golang = "go",
  js = "javascript",
  jsx = "javascriptreact",
  py = "python",
  rb = "ruby",
  rs = "rust",
  shell = "sh",
  ts = "typescript",
  tsx = "typescriptreact",
  yml = "yaml",
  zsh = "sh",
}

---@type table<string, boolean> filetypes that have a syntax file
local known = {}

---@type table<string, integer> buffers that hold code while it is coloured, by syntax
local helpers = {}

---Whether there is a syntax file of a filetype. Some files of that directory are programs, which open windows: those are
---of no filetype, so they have no plugin for one.
---@param filetype string
---@return boolean
local function is_known(filetype)
  if known[filetype] == nil then
    local function has(pattern)
      return #vim.api.nvim_get_runtime_file(pattern:format(filetype), false) > 0
    end
    known[filetype] = filetype:find("^[%w_]+$") ~= nil
      and has("syntax/%s.vim")
      and (has("ftplugin/%s.vim") or has("ftplugin/%s.lua"))
  end
  return known[filetype]
end

---The syntax of a file, by its name.
---@param path string
---@return string?
function M.filetype_of(path)
  if path:match("%.%a*sh$") then
    -- Neovim 0.10 tells the kinds of shell scripts apart by a buffer's text alone.
    return "sh"
  end
  local filetype = vim.filetype.match({ filename = path })
  return filetype and is_known(filetype) and filetype or nil
end

---The syntax a fence names.
---@param info string
---@return string?
function M.filetype_of_fence(info)
  info = info:lower()
  local filetype = ALIASES[info] or info
  return is_known(filetype) and filetype or nil
end

---@param filetype string
---@param pause cursor_agent.syntax.Pause
---@return integer?
local function helper(filetype, pause)
  local buf = helpers[filetype]
  if buf and vim.api.nvim_buf_is_valid(buf) then
    return buf
  end
  pause(true)
  buf = vim.api.nvim_create_buf(false, true)
  vim.bo[buf].undolevels = -1
  vim.b[buf].is_bash = 1
  -- 'syntax' alone: 'filetype' would attach language servers and plugins. What a syntax file fails at silently is not
  -- the user's last error.
  local errmsg = vim.v.errmsg
  local ok = pcall(vim.api.nvim_set_option_value, "syntax", filetype, { buf = buf })
  vim.v.errmsg = errmsg
  if not ok then
    vim.api.nvim_buf_delete(buf, { force = true })
    return nil
  end
  helpers[filetype] = buf
  pause()
  return buf
end

---Adds the colours of a line of the current buffer.
---@param spans cursor_agent.syntax.Span[]
---@param row integer
---@param line string
local function add_line(spans, row, line)
  local last = math.min(#line, MAX_COLUMNS)
  local from, group = 0, nil ---@type integer, string?
  for col = 1, last + 1 do
    local id = col <= last and vim.fn.synIDtrans(vim.fn.synID(row + 1, col, 1)) or 0
    local here = id ~= 0 and vim.fn.synIDattr(id, "name") or nil
    if here ~= group then
      if group then
        spans[#spans + 1] =
          { from_row = row, from_col = from, to_row = row, to_col = col - 1, hl = group, priority = 100 }
      end
      from, group = col - 1, here
    end
  end
end

---The colours of a text. One at a time: texts of a language share a buffer.
---@param filetype string
---@param lines string[]
---@param pause cursor_agent.syntax.Pause
---@return cursor_agent.syntax.Span[]
function M.spans(filetype, lines, pause)
  local buf = #lines <= MAX_LINES and helper(filetype, pause)
  if not buf then
    return {}
  end
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  local spans = {} ---@type cursor_agent.syntax.Span[]
  for row, line in ipairs(lines) do
    local began = os.clock()
    vim.api.nvim_buf_call(buf, function()
      add_line(spans, row - 1, line)
    end)
    if os.clock() - began > MAX_LINE_SECONDS then
      break
    end
    pause()
    if not vim.api.nvim_buf_is_loaded(buf) then
      return {}
    end
  end
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, {})
  return spans
end

return M
