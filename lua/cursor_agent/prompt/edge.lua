-- The right side of the frame around the prompt. The other sides are the statuscolumn and the statuslines.

local chats = require("cursor_agent.chat.registry")
local format = require("cursor_agent.render.format")
local window = require("cursor_agent.window.quiet")

local M = {}

local NS = vim.api.nvim_create_namespace("cursor_agent_prompt_edge")

---A longer line is not measured on every redraw: it has no side.
local MOST_BYTES = 4000

---Columns for text in a window.
---@param win integer
---@return integer
local function room(win)
  local info = vim.fn.getwininfo(win)[1]
  return math.floor(info.width - info.textoff)
end

---Whether the last cell of a line's row has text in it, which the frame must not hide.
---@param win integer
---@param row integer of the buffer, from 0
---@param line string
---@param last integer virtual column of that cell
---@return boolean
local function is_full(win, row, line, last)
  local col = vim.fn.virtcol2col(win, row + 1, last)
  local char = col > 0 and vim.fn.strpart(line, col - 1, 1, 1) or ""
  if char == "" or char:find("^%s") then
    return false
  end
  -- A character before a line break is as wide as the rest of its row.
  local first = vim.fn.virtcol({ row + 1, col }, true, win)[1] --[[@as integer]]
  return first + format.width(char) - 1 >= last
end

---@param buf integer
---@param row integer
---@param col integer
---@param at integer column of the window
---@param icon string
local function draw(buf, row, col, at, icon)
  vim.api.nvim_buf_set_extmark(buf, NS, row, col, {
    ephemeral = true,
    virt_text = { { icon, "CursorAgentFrame" } },
    virt_text_win_col = at,
  })
end

---@param win integer
---@param buf integer
---@param row integer
local function on_line(_, win, buf, row)
  local chat = chats.of_buffer(buf)
  local line = vim.api.nvim_buf_get_lines(buf, row, row + 1, false)[1]
  if not chat or not line or #line > MOST_BYTES then
    return
  end
  local icon, width = chat.transcript.context.icons.gutter, room(win)
  if format.width(line) < width then
    return draw(buf, row, 0, width - 1, icon)
  end
  local rows = vim.api.nvim_win_text_height(win, { start_row = row, end_row = row }).all
  for i = 1, rows do
    if not is_full(win, row, line, i * width) then
      local first = i == 1 and 1 or vim.fn.virtcol2col(win, row + 1, (i - 1) * width + 1)
      draw(buf, row, math.max(math.floor(first) - 1, 0), width - 1, icon)
    end
  end
end

---Whether a window has a frame made of its statuscolumn: not a float, which has a border.
---@param win integer
---@param buf integer
---@return boolean
local function is_framed(win, buf)
  local chat = chats.of_buffer(buf)
  return chat ~= nil and chat.prompt ~= nil and chat.prompt.buf == buf and not window.is_float(win)
end

---Draws the sides of the rows below a prompt's text.
---@param buf integer
function M.refresh(buf)
  local chat = chats.of_buffer(buf)
  vim.api.nvim_buf_clear_namespace(buf, NS, 0, -1)
  local last = vim.api.nvim_buf_line_count(buf) - 1
  local below, width ---@type integer?, integer?
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    if is_framed(win, buf) then
      local rows = vim.api.nvim_win_text_height(win, { end_row = last }).all
      local left = vim.api.nvim_win_get_height(win) - vim.fn.getwininfo(win)[1].winbar - rows
      below = math.floor(math.min(below or left, left))
      if width and width ~= room(win) then
        -- The same lines cannot have their sides in two places.
        return
      end
      width = room(win)
    end
  end
  if not chat or not below or below < 1 or not width or width < 2 then
    return
  end
  local lines = {} ---@type { [1]: string, [2]: string? }[][]
  for i = 1, below do
    lines[i] = { { (" "):rep(width - 1) }, { chat.transcript.context.icons.gutter, "CursorAgentFrame" } }
  end
  local text = vim.api.nvim_buf_get_lines(buf, last, last + 1, false)[1] or ""
  -- At the end of the text: a line that is begun there moves it down before the screen is drawn.
  vim.api.nvim_buf_set_extmark(buf, NS, last, #text, { virt_lines = lines })
end

vim.api.nvim_set_decoration_provider(NS, {
  on_win = function(_, win, buf)
    return is_framed(win, buf)
  end,
  on_line = on_line,
})

return M
