-- Draws what depends on a window while Neovim redraws it: colours of visible text, and asides if there is room.

local clock = require("cursor_agent.bridge.clock")
local commands = require("cursor_agent.chat.commands")
local format = require("cursor_agent.render.format")
local painter = require("cursor_agent.colour.painter")

local M = {}

local NS = vim.api.nvim_create_namespace("cursor_agent_decor")

local transcripts ---@type { of: (fun(buf: integer): cursor_agent.Transcript?), NS: { aside: integer } }?
local refreshing = {} ---@type table<integer, boolean>

---@class (exact) cursor_agent.redraw.Drawn
---@field chunks { [1]: string, [2]: string }[]
---@field width integer
---@field wraps boolean the line takes more than one row
---@field col integer? the byte from which it covers the end of the line
---@field arrow { icon: string, col: integer, hl: string }? over the line

---@type table<integer, cursor_agent.redraw.Drawn>? by row of the window being drawn
local asides
local now_ms = 0

---Redraws a buffer's windows soon, to colour what is not coloured yet.
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
---@param cut boolean the end of the line is not visible
---@return cursor_agent.redraw.Drawn
local function compose(list, cut)
  local chunks, width = {}, 0
  for _, aside in ipairs(list) do
    if not aside.opened and (cut or not aside.when_cut) then
      local text = "  " .. (aside.text or format.clock(now_ms - (aside.since or now_ms)))
      chunks[#chunks + 1] = { text, aside.hl }
      width = width + format.width(text)
    end
  end
  if #chunks > 0 then
    -- Keep it off the window's edge.
    chunks[#chunks + 1] = { " ", "CursorAgentAside" }
    width = width + 1
  end
  return { chunks = chunks, width = width, wraps = false }
end

---@param win integer
---@param row integer
---@return boolean
local function is_folded(win, row)
  local function closed()
    return vim.fn.foldclosed(row + 1) ~= -1
  end
  if win == vim.api.nvim_get_current_win() then
    return closed()
  end
  return vim.api.nvim_win_call(win, closed)
end

---Where the last characters of a line begin that take up at least `cells` cells.
---@param line string
---@param cells integer
---@return integer col
---@return integer taken
local function last_cells(line, cells)
  local col, taken = #line, 0
  while col > 0 and taken < cells do
    local from = col + vim.str_utf_start(line, col)
    taken = taken + format.width(line:sub(from, col))
    col = from - 1
  end
  return col, taken
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
  commands.check(self, win, top, bottom)
  painter.want(self, win, top, bottom)
  local marks = vim.api.nvim_buf_get_extmarks(buf, transcripts.NS.aside, { top, 0 }, { bottom, -1 }, {})
  if #marks == 0 then
    return false
  end
  asides = {}
  now_ms = clock.now_ms()
  local room = vim.api.nvim_win_get_width(win) - (vim.fn.getwininfo(win)[1] or { textoff = 0 }).textoff
  for _, mark in ipairs(marks) do
    local line = vim.api.nvim_buf_get_lines(buf, mark[2], mark[2] + 1, false)[1] or ""
    local used = format.width(line)
    -- A closed fold is one row, however long its line is.
    local folded = used > room and is_folded(win, mark[2])
    local aside = compose(self.asides[mark[1]] or {}, folded)
    aside.wraps = used > room and not folded
    if aside.wraps then
      -- Rows are padded where a line breaks at a word, so the remainder is the last row.
      local past = vim.fn.virtcol({ mark[2] + 1, "$" }, false, win) --[[@as integer]]
      used = math.floor((past - 2) % room) + 1
    end
    local cut = math.floor(used + aside.width + 1 - room)
    local first = (self.asides[mark[1]] or {})[1]
    if first and first.gives_way and cut > 1 and not folded then
      aside.chunks = {}
    elseif folded and #aside.chunks > 0 then
      table.insert(aside.chunks, 1, { "…", "CursorAgentDetail" })
    elseif cut > 1 and #aside.chunks > 0 then
      -- Cut the line rather than the state: half a state says nothing.
      local counts = line:match("  [+-]%d[%d +-]*$") or ""
      local gap = 0
      if aside.wraps then
        local col, covered = last_cells(line, cut)
        aside.col, gap = col, covered - cut
      elseif cut < #counts then
        -- Part of a number would be a different number.
        gap = #counts - cut
      end
      table.insert(aside.chunks, 1, { "…" .. (" "):rep(gap), "CursorAgentDetail" })
    end
    for _, one in ipairs(self.asides[mark[1]] or {}) do
      if one.opened and not is_folded(win, mark[2]) then
        aside.arrow = { icon = one.opened.icon, col = one.opened.col, hl = one.hl }
      end
    end
    asides[mark[2]] = aside
  end
  return true
end

---@param buf integer
---@param row integer
local function on_line(_, _, buf, row)
  local aside = asides and asides[row]
  if aside and aside.arrow then
    vim.api.nvim_buf_set_extmark(buf, NS, row, aside.arrow.col, {
      ephemeral = true,
      virt_text = { { aside.arrow.icon, aside.arrow.hl } },
      virt_text_pos = "overlay",
    })
  end
  if aside and #aside.chunks > 0 then
    vim.api.nvim_buf_set_extmark(buf, NS, row, aside.col or 0, {
      ephemeral = true,
      virt_text = aside.chunks,
      -- Right-aligned text hides what is under it, so a line of several rows gets it at its end.
      virt_text_pos = aside.col and "overlay" or aside.wraps and "eol" or "right_align",
    })
  end
end

---Starts drawing; call once.
---@param of { of: (fun(buf: integer): cursor_agent.Transcript?), NS: { aside: integer } } finds transcripts
function M.setup(of)
  if transcripts then
    return
  end
  transcripts = of
  vim.api.nvim_set_decoration_provider(NS, { on_win = on_win, on_line = on_line })
end

return M
