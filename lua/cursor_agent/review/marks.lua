-- Hunks in the code: signs, the old lines as virtual lines, the changed words, and hints for the hunk under the cursor.

local bridge = require("cursor_agent.bridge")

local M = {}

local SIGNS = vim.api.nvim_create_namespace("cursor_agent_hunks")
local HINT = vim.api.nvim_create_namespace("cursor_agent_hunk_hint")

---A hunk with more lines on both sides gets no word highlights.
local WORD_LINES = 40
---At most this many old lines are shown; the rest are counted.
local OLD_LINES = 200
---Below gitsigns and mini.diff: if there is room for only one sign, theirs stays. The line is coloured anyway.
local PRIORITY = 5
---This many hunks are drawn at a time, with a pause for the editor in between.
local BATCH = 50

---@type table<integer, integer> by buffer: counts its redraws, so that one that is overtaken stops
local drawing = {}

---@param text string
---@param marks [integer, integer][]
---@param plain string
---@param changed string
---@return [string, string][]
local function chunks(text, marks, plain, changed)
  local out, at = {}, 1 ---@type [string, string][], integer
  for _, mark in ipairs(marks) do
    if mark[1] + 1 > at then
      out[#out + 1] = { text:sub(at, mark[1]), plain }
    end
    out[#out + 1] = { text:sub(mark[1] + 1, mark[2]), changed }
    at = mark[2] + 1
  end
  if at <= #text or #out == 0 then
    out[#out + 1] = { text:sub(at), plain }
  end
  return out
end

---@param text string
---@param buf integer
---@return string
local function shown(text, buf)
  -- Tabs of a virtual line would be drawn from its own beginning, which is where the text begins too.
  return (text:gsub("\t", (" "):rep(vim.bo[buf].tabstop)):gsub("%c", "?"))
end

---@param buf integer
---@param hunk cursor_agent.ReviewHunk
---@param count integer lines of the buffer
local function draw_hunk(buf, hunk, count)
  local ready = bridge.is_loaded()
  local removed = hunk.removed or {}
  local kind = hunk.old.count == 0 and "Add" or hunk.new.count == 0 and "Delete" or "Change"
  local words = {} ---@type table<integer, [integer, integer][]>
  if kind == "Change" and #removed == hunk.new.count and #removed <= WORD_LINES and ready then
    local lines = vim.api.nvim_buf_get_lines(buf, hunk.new.line - 1, hunk.new.line - 1 + hunk.new.count, false)
    for i, line in ipairs(lines) do
      local pair = bridge.review_words(removed[i] or "", line)
      words[i] = pair[1]
      for _, mark in ipairs(pair[2]) do
        vim.api.nvim_buf_set_extmark(buf, SIGNS, hunk.new.line - 2 + i, mark[1], {
          end_col = math.min(mark[2], #line),
          hl_group = "CursorAgentHunkAddWord",
          priority = 210,
          strict = false,
        })
      end
    end
  end
  for i = 1, hunk.new.count do
    local row = hunk.new.line - 2 + i
    if row < count then
      vim.api.nvim_buf_set_extmark(buf, SIGNS, row, 0, {
        sign_text = "┃",
        sign_hl_group = "CursorAgentHunk" .. kind .. "Sign",
        line_hl_group = "CursorAgentHunkAdd",
        priority = PRIORITY,
      })
    end
  end
  if #removed > 0 then
    local lines = {} ---@type [string, string][][]
    for i = 1, math.min(#removed, OLD_LINES) do
      local marks = words[i]
      local line = marks and chunks(removed[i] or "", marks, "CursorAgentHunkDelete", "CursorAgentHunkDeleteWord")
        or { { removed[i] or "", "CursorAgentHunkDelete" } }
      for _, chunk in ipairs(line) do
        chunk[1] = shown(chunk[1], buf)
      end
      table.insert(line, 1, { "− ", "CursorAgentHunkDeleteSign" })
      lines[i] = line
    end
    if #removed > OLD_LINES then
      lines[#lines + 1] = { { ("… %d more lines"):format(#removed - OLD_LINES), "CursorAgentMore" } }
    end
    -- Lines removed at the end have no line below them.
    local row = hunk.new.count > 0 and hunk.new.line - 1 or hunk.new.line
    -- Nothing can scroll above the only line of an empty buffer.
    local above = row < count
      and not (count == 1 and row == 0 and vim.api.nvim_buf_get_lines(buf, 0, 1, false)[1] == "")
    vim.api.nvim_buf_set_extmark(buf, SIGNS, math.min(row, count - 1), 0, {
      virt_lines = lines,
      virt_lines_above = above,
      sign_text = kind == "Delete" and "▁" or nil,
      sign_hl_group = kind == "Delete" and "CursorAgentHunkDeleteSign" or nil,
      priority = PRIORITY,
    })
  end
end

---Virtual lines above the first line are hidden unless a window is scrolled to show them.
---@param buf integer
---@param hunk cursor_agent.ReviewHunk?
local function show_above_first(buf, hunk)
  local count = hunk and math.min(#(hunk.removed or {}), OLD_LINES) or 0
  if not hunk or count == 0 or hunk.new.line > 1 or (hunk.new.line == 1 and hunk.new.count == 0) then
    return
  end
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    vim.api.nvim_win_call(win, function()
      if vim.fn.line("w0") == 1 then
        vim.fn.winrestview({ topfill = math.min(count, vim.api.nvim_win_get_height(win) - 1) })
      end
    end)
  end
end

---Draws the hunks of a buffer.
---@param buf integer
---@param hunks cursor_agent.ReviewHunk[]
function M.draw(buf, hunks)
  drawing[buf] = (drawing[buf] or 0) + 1
  local number = drawing[buf]
  vim.api.nvim_buf_clear_namespace(buf, SIGNS, 0, -1)
  local function batch(from)
    if drawing[buf] ~= number or not vim.api.nvim_buf_is_loaded(buf) then
      return
    end
    local count = vim.api.nvim_buf_line_count(buf)
    for i = from, math.min(from + BATCH - 1, #hunks) do
      draw_hunk(buf, hunks[i], count)
    end
    if from == 1 then
      show_above_first(buf, hunks[1])
    end
    if from + BATCH <= #hunks then
      vim.defer_fn(function()
        batch(from + BATCH)
      end, 1)
    end
  end
  batch(1)
end

---Removes what was drawn.
---@param buf integer
function M.clear(buf)
  drawing[buf] = nil
  if vim.api.nvim_buf_is_loaded(buf) then
    vim.api.nvim_buf_clear_namespace(buf, SIGNS, 0, -1)
    vim.api.nvim_buf_clear_namespace(buf, HINT, 0, -1)
  end
end

---As much as fits: in full, then shortened, then only the keys.
---@param parts [string, string?][]
---@param width integer
---@return string? text nothing where there is no room for the most of it
local function hint_text(parts, width)
  local full, short = {}, {} ---@type string[], string[]
  for i, part in ipairs(parts) do
    full[i], short[i] = part[1], part[2] or part[1]
  end
  local forms = {
    full,
    vim.list_extend({ short[1] }, vim.list_slice(full, 2, #full - 1)),
    vim.list_slice(full, 2, #full - 1),
    short,
    vim.list_slice(short, 1, #short - 1),
  }
  for _, words in ipairs(forms) do
    local text = " " .. table.concat(words, " · ") .. " "
    if #words > 0 and vim.fn.strdisplaywidth(text) <= width then
      return text
    end
  end
end

---The room beside a line's text in the windows that show it, and the total.
---@param buf integer
---@param line integer
---@return integer beside
---@return integer all
local function room(buf, line)
  local own = vim.fn.strdisplaywidth(vim.api.nvim_buf_get_lines(buf, line - 1, line, false)[1] or "")
  local width, before = vim.o.columns, 0
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    local info = vim.fn.getwininfo(win)[1]
    if info then
      -- A new window has not drawn its numbers and signs yet.
      width, before = math.min(width, info.width), math.max(before, info.textoff)
    end
  end
  return width - before - own, width - before
end

---Shows what can be done here: at the right of a line, or below it if its text leaves no room. Without arguments
---removes it.
---@param buf integer
---@param line integer? from 1
---@param parts [string, string?][]? each in full and short
function M.hint(buf, line, parts)
  vim.api.nvim_buf_clear_namespace(buf, HINT, 0, -1)
  if not line or not parts or line > vim.api.nvim_buf_line_count(buf) then
    return
  end
  local beside, all = room(buf, line)
  local text = hint_text(parts, beside - 1)
  local opts = { hl_mode = "combine", priority = 20 } ---@type vim.api.keyset.set_extmark
  if text then
    opts.virt_text, opts.virt_text_pos = { { text, "CursorAgentHunkHint" } }, "right_align"
  else
    text = hint_text(parts, all) or parts[1][1]
    local blank = (" "):rep(math.max(all - vim.fn.strdisplaywidth(text), 0))
    opts.virt_lines = { { { blank }, { text, "CursorAgentHunkHint" } } }
  end
  vim.api.nvim_buf_set_extmark(buf, HINT, line - 1, 0, opts)
end

return M
