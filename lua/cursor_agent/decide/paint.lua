-- Puts a drawn block into a buffer: its lines, its marks, and its code in the colours of its language.

local highlights = require("cursor_agent.highlights")
local regex = require("cursor_agent.regex")
local syntax = require("cursor_agent.syntax")

local M = {}

local NS = vim.api.nvim_create_namespace("cursor_agent_decide")

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
  local filetype = regex.filetype_of(path)
  if filetype then
    syntax.mark(buf, NS, regex.spans(filetype, lines, "card", function() end), lines, place)
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
