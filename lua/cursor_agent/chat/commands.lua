-- Keeps the colon of a command on the row of its name. Neovim breaks lines after a colon, whose 'breakat' is global: a row
-- that ends with `:` and the next one that begins with `CursorAgent` do not look like a command.
--
-- Before a colon that would be the last on its row, the rest of that row is filled with virtual spaces.

local M = {}

local NS = vim.api.nvim_create_namespace("cursor_agent_commands")

---A longer line is left as it is.
local MOST_BYTES = 4000

---@class (exact) cursor_agent.commands.State
---@field room integer
---@field scheduled boolean?
---@field done string? what was filled last: not twice the same, whatever comes of it

---@type table<cursor_agent.Transcript, cursor_agent.commands.State>
local known = setmetatable({}, { __mode = "k" })

---The commands in a line that have something before them: where each begins, with its quote, and its colon, in bytes.
---@param line string
---@return { from: integer, colon: integer }[]
local function commands_in(line)
  local found = {} ---@type { from: integer, colon: integer }[]
  local at = #line <= MOST_BYTES and line:find(":%a")
  while at do
    local from = line:sub(at - 1, at - 1):find("[`'\"(]") and at - 1 or at
    if from > 1 and line:sub(from - 1, from - 1):find("%s") and line:sub(1, from - 1):find("%S") then
      found[#found + 1] = { from = from, colon = at }
    end
    at = line:find(":%a", at + 1)
  end
  return found
end

---@param win integer
---@return integer
local function room_of(win)
  local info = vim.fn.getwininfo(win)[1]
  return math.floor(info.width - info.textoff)
end

---Whether a row ends with this colon. A character before a line break is as wide as the rest of its row.
---@param win integer
---@param row integer
---@param colon integer
---@param room integer
---@return integer? last column of the row, if so
local function row_end(win, row, colon, room)
  local last = vim.fn.virtcol({ row + 1, colon }, true, win)[2] --[[@as integer]]
  return last > 0 and last % room == 0 and last or nil
end

---@param buf integer
---@param win integer
---@param top integer
---@param bottom integer
local function fill(buf, win, top, bottom)
  local room = room_of(win)
  vim.api.nvim_buf_clear_namespace(buf, NS, top, bottom + 1)
  for i, line in ipairs(vim.api.nvim_buf_get_lines(buf, top, bottom + 1, false)) do
    local row = top + i - 1
    for _, command in ipairs(commands_in(line)) do
      local last = row_end(win, row, command.colon, room)
      if last then
        local first = vim.fn.virtcol({ row + 1, command.from }, true, win)[1] --[[@as integer]]
        vim.api.nvim_buf_set_extmark(buf, NS, row, command.from - 1, {
          virt_text = { { (" "):rep(math.max(last - first + 1, 1)) } },
          virt_text_pos = "inline",
          end_col = command.colon,
          invalidate = true,
        })
      end
    end
  end
end

---Whether the rows in view are not as they should be: a colon ends one, or spaces are where no command is.
---@param buf integer
---@param win integer
---@param top integer
---@param bottom integer
---@param room integer
---@return boolean
local function is_off(buf, win, top, bottom, room)
  local lines = vim.api.nvim_buf_get_lines(buf, top, bottom + 1, false)
  for i, line in ipairs(lines) do
    for _, command in ipairs(line:find(":", 1, true) and commands_in(line) or {}) do
      if row_end(win, top + i - 1, command.colon, room) then
        return true
      end
    end
  end
  for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(buf, NS, { top, 0 }, { bottom, -1 }, { details = true })) do
    local line = lines[mark[2] - top + 1] or ""
    if not assert(mark[4]).invalid and not line:sub(mark[3] + 1):find("^[`'\"(]?:%a") then
      return true
    end
  end
  return false
end

---Checks what a window is about to show. What is off is fixed right after.
---@param transcript cursor_agent.Transcript
---@param win integer
---@param top integer
---@param bottom integer
function M.check(transcript, win, top, bottom)
  local buf = transcript.buf
  local room = room_of(win)
  local state = known[transcript] or { room = room }
  known[transcript] = state
  if state.scheduled or room ~= transcript:narrowest() or not vim.wo[win].linebreak then
    return
  end
  local moved = state.room ~= room
  local what = ("%d %d %d %d"):format(vim.api.nvim_buf_get_changedtick(buf), room, top, bottom)
  if state.done == what or (not moved and not is_off(buf, win, top, bottom, room)) then
    return
  end
  state.scheduled, state.done = true, what
  vim.schedule(function()
    state.scheduled = nil
    if not vim.api.nvim_win_is_valid(win) or vim.api.nvim_win_get_buf(win) ~= buf then
      return
    end
    if moved then
      state.room = room_of(win)
      vim.api.nvim_buf_clear_namespace(buf, NS, 0, -1)
    end
    local at_end = transcript.tail:is_at(win)
    fill(buf, win, top, math.floor(math.min(bottom, vim.api.nvim_buf_line_count(buf) - 1)))
    if at_end then
      local cursor = vim.api.nvim_win_get_cursor(win)
      transcript.tail:go(win)
      vim.api.nvim_win_set_cursor(win, cursor)
    end
  end)
end

return M
