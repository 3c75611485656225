-- Puts a rendered block into a buffer: its lines and marks, and shortly after, its code in the colours of its language.

local colour = require("cursor_agent.colour")
local highlights = require("cursor_agent.colour.highlights")
local painter = require("cursor_agent.colour.painter")
local regex = require("cursor_agent.colour.regex")
local syntax = require("cursor_agent.colour.syntax")

local M = {}

local NS = vim.api.nvim_create_namespace("cursor_agent_decide")

---Cache the colours of this many texts, so that a redraw, as when a window grows, does not flicker.
local MOST_KEPT = 16

---Cached colours are applied together with the text, unless there are more than this.
local AT_ONCE = 300

---@type table<string, cursor_agent.syntax.Span[]|false> by path and text; false: being looked for
local kept = {}

---@type table<integer, cursor_agent.render.Block> what a buffer holds
local filled = {}

---@param code cursor_agent.render.Code
---@return string
local function key_of(code)
  return code.path .. "\n" .. table.concat(code.text, "\n")
end

---Colours what a buffer shows of a text.
---@param buf integer
---@param key string of the text
---@param spans cursor_agent.syntax.Span[]
---@param pause cursor_agent.syntax.Pause
local function colour_in(buf, key, spans, pause)
  local block = filled[buf]
  for _, code in ipairs(block and block.code or {}) do
    if key_of(code) == key then
      syntax.mark_in_steps(buf, NS, spans, code.text, pause, function()
        -- It may hold something else by now.
        local is_there = filled[buf] == block and vim.api.nvim_buf_is_loaded(buf)
        return is_there and function(i)
          return code.rows[i + 1]
        end or nil
      end)
    end
  end
end

---Computes the colours of a text, and applies them wherever it is shown by then.
---@param key string
---@param code cursor_agent.render.Code
local function look_for(key, code)
  if vim.tbl_count(kept) >= MOST_KEPT then
    kept = {}
  end
  kept[key] = false
  painter.soon(function(pause)
    local spans = colour.code(syntax.language_of(code.path), regex.filetype_of(code.path), code.text, pause)
    kept[key] = spans
    for _, buf in ipairs(vim.tbl_keys(filled)) do
      colour_in(buf, key, spans, pause)
    end
  end)
end

---Replaces the content of a buffer.
---@param buf integer
---@param block cursor_agent.render.Block
function M.fill(buf, block)
  local before = filled[buf]
  if before and vim.deep_equal(before.lines, block.lines) and vim.deep_equal(before.marks, block.marks) then
    -- Only its window has changed.
    return
  end
  if not before then
    vim.api.nvim_create_autocmd("BufUnload", {
      buffer = buf,
      desc = "cursor-agent: forget the text of a wiped decision",
      callback = function()
        filled[buf] = nil
      end,
    })
  end
  filled[buf] = block
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
    local key = key_of(code)
    local spans = kept[key]
    if spans and #spans <= AT_ONCE then
      colour_in(buf, key, spans, function() end)
    elseif spans then
      painter.soon(function(pause)
        colour_in(buf, key, spans, pause)
      end)
    elseif spans == nil then
      look_for(key, code)
    end
  end
end

return M
