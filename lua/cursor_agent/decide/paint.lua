-- Puts a drawn block into a buffer: its lines, its marks, and its code in the colours of its language.

local highlights = require("cursor_agent.highlights")
local syntax = require("cursor_agent.syntax")

local M = {}

local NS = vim.api.nvim_create_namespace("cursor_agent_decide")

---Vim's own syntax files are slow: code beyond this stays plain.
local MAX_REGEX_LINES = 400
local MAX_REGEX_COLUMNS = 300

---@type table<string, integer> buffers that hold code while it is coloured, by syntax
local helpers = {}

---@param name string
---@return integer?
local function helper(name)
  local buf = helpers[name]
  if buf and vim.api.nvim_buf_is_valid(buf) then
    return buf
  end
  buf = vim.api.nvim_create_buf(false, true)
  vim.bo[buf].undolevels = -1
  vim.b[buf].is_bash = 1
  -- 'syntax' alone: 'filetype' would attach language servers and plugins. What a syntax file fails at silently is not
  -- the user's last error.
  local errmsg = vim.v.errmsg
  local ok = pcall(vim.api.nvim_set_option_value, "syntax", name, { buf = buf })
  vim.v.errmsg = errmsg
  if not ok then
    vim.api.nvim_buf_delete(buf, { force = true })
    return nil
  end
  helpers[name] = buf
  return buf
end

---Colours lines by Vim's syntax files, for the languages that come without a parser.
---@param buf integer
---@param name string
---@param lines string[]
---@param place fun(row: integer): cursor_agent.syntax.Place?
local function by_regex(buf, name, lines, place)
  local scratch = #lines <= MAX_REGEX_LINES and helper(name)
  if not scratch then
    return
  end
  vim.api.nvim_buf_set_lines(scratch, 0, -1, false, lines)
  vim.api.nvim_buf_call(scratch, function()
    for row, line in ipairs(lines) do
      local at = place(row - 1)
      local from, group = 0, nil ---@type integer, string?
      local last = math.min(#line, MAX_REGEX_COLUMNS)
      for col = 1, at and at.apply and last + 1 or 0 do
        local id = col <= last and vim.fn.synIDtrans(vim.fn.synID(row, col, 1)) or 0
        local name_here = id ~= 0 and vim.fn.synIDattr(id, "name") or nil
        if name_here ~= group then
          if group and at then
            vim.api.nvim_buf_set_extmark(buf, NS, at.row, at.col + from, {
              end_col = at.col + col - 1,
              hl_group = group,
              priority = 100,
              strict = false,
            })
          end
          from, group = col - 1, name_here
        end
      end
    end
  end)
  vim.api.nvim_buf_set_lines(scratch, 0, -1, false, {})
end

---@param path string
---@return string?
local function filetype_of(path)
  if path:match("%.%a*sh$") then
    -- Neovim 0.10 tells the kinds of shell scripts apart by a buffer's text alone.
    return "sh"
  end
  return (vim.filetype.match({ filename = path }))
end

---Colours code in a buffer.
---@param buf integer
---@param path string decides the language
---@param lines string[]
---@param place fun(row: integer): cursor_agent.syntax.Place?
local function colour(buf, path, lines, place)
  local lang = syntax.language_of(path)
  if lang and syntax.available(lang) then
    syntax.paint(buf, NS, lang, lines, place, false)
    return
  end
  local filetype = filetype_of(path)
  if filetype then
    by_regex(buf, filetype, lines, place)
  end
end

---Replaces what a buffer holds.
---@param buf integer
---@param block cursor_agent.render.Block
function M.fill(buf, block)
  vim.bo[buf].modifiable = true
  vim.api.nvim_buf_clear_namespace(buf, NS, 0, -1)
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, block.lines)
  vim.bo[buf].modifiable = false
  vim.bo[buf].modified = false
  for _, mark in ipairs(block.marks) do
    local opts = vim.tbl_extend("force", mark.opts, { strict = false })
    if type(opts.hl_group) == "string" then
      highlights.ensure(opts.hl_group --[[@as string]])
    end
    vim.api.nvim_buf_set_extmark(buf, NS, mark.row, mark.col, opts)
  end
  for _, code in ipairs(block.code) do
    colour(buf, code.path, code.text, function(i)
      return code.rows[i + 1]
    end)
  end
end

return M
