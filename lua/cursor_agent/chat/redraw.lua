-- Draws what depends on a window while Neovim redraws it: colours of what is visible, and asides where there is room.

local clock = require("cursor_agent.bridge.clock")
local format = require("cursor_agent.render.format")
local painter = require("cursor_agent.colour.painter")

local M = {}

local NS = vim.api.nvim_create_namespace("cursor_agent_decor")

local transcripts ---@type { of: (fun(buf: integer): cursor_agent.Transcript?), NS: { aside: integer } }?
local refreshing = {} ---@type table<integer, boolean>

---@class (exact) cursor_agent.redraw.Drawn
---@field chunks { [1]: string, [2]: string }[]
---@field width integer
---@field fits boolean beside the line
---@field wraps boolean the line takes more rows than one

---@type table<integer, cursor_agent.redraw.Drawn>? by row of the window being drawn
local asides
local now_ms = 0

---Redraws the windows of a buffer soon, so that what is not coloured yet is.
---@param buf integer
function M.refresh(buf)
  if refreshing[buf] then
    return
  end
  refreshing[buf] = true
  vim.schedule(function()
    refreshing[buf] = nil
    if vim.api.nvim_buf_is_valid(buf) then
      vim.api.nvim__redraw({ buf = buf, valid = false })
    end
  end)
end

---@param list cursor_agent.render.Aside[]
---@return cursor_agent.redraw.Drawn
local function compose(list)
  local chunks, width = {}, 0
  for _, aside in ipairs(list) do
    local text = "  " .. (aside.text or format.clock(now_ms - (aside.since or now_ms)))
    chunks[#chunks + 1] = { text, aside.hl }
    width = width + format.width(text)
  end
  if #chunks > 0 then
    -- It does not touch the edge.
    chunks[#chunks + 1] = { " ", "CursorAgentAside" }
    width = width + 1
  end
  return { chunks = chunks, width = width, fits = true, wraps = false }
end

---@param win integer
---@param buf integer
---@param top integer
---@param bottom integer
---@return boolean
local function on_win(_, win, buf, top, bottom)
  local self = transcripts and transcripts.of(buf)
  if not self or not transcripts then
    return false
  end
  self:on_room(self:room())
  painter.want(self, win, top, bottom)
  local marks = vim.api.nvim_buf_get_extmarks(buf, transcripts.NS.aside, { top, 0 }, { bottom, -1 }, {})
  if #marks == 0 then
    return false
  end
  asides = {}
  now_ms = clock.now_ms()
  local room = vim.api.nvim_win_get_width(win) - (vim.fn.getwininfo(win)[1] or { textoff = 0 }).textoff
  for _, mark in ipairs(marks) do
    local aside = compose(self.asides[mark[1]] or {})
    local line = vim.api.nvim_buf_get_lines(buf, mark[2], mark[2] + 1, false)[1] or ""
    local used = format.width(line)
    aside.fits = used + aside.width <= room
    aside.wraps = used > room
    if not aside.fits and not aside.wraps then
      -- The end of the line makes way: half a state says nothing.
      local counts = line:match("  [+-]%d[%d +-]*$") or ""
      local cut = used + aside.width + 1 - room
      -- A part of a number is another number.
      table.insert(aside.chunks, 1, { "…" .. (" "):rep(cut < #counts and #counts - cut or 0), "CursorAgentDetail" })
    end
    asides[mark[2]] = aside
  end
  return true
end

---@param buf integer
---@param row integer
local function on_line(_, _, buf, row)
  local aside = asides and asides[row]
  if aside then
    vim.api.nvim_buf_set_extmark(buf, NS, row, 0, {
      ephemeral = true,
      virt_text = aside.chunks,
      -- A right-aligned text hides what is under it, so a line of several rows gets it at its end.
      virt_text_pos = aside.wraps and "eol" or "right_align",
    })
  end
end

---Starts drawing; once.
---@param of { of: (fun(buf: integer): cursor_agent.Transcript?), NS: { aside: integer } } where transcripts are found
function M.setup(of)
  if transcripts then
    return
  end
  transcripts = of
  vim.api.nvim_set_decoration_provider(NS, { on_win = on_win, on_line = on_line })
end

return M
