-- `:CursorAgent review`: the undecided files and hunks, next to the code.

local chats = require("cursor_agent.chat.registry")
local format = require("cursor_agent.render.format")
local bridge = require("cursor_agent.bridge")
local events = require("cursor_agent.bridge.events")
local buffer_names = require("cursor_agent.bridge.buffer_names")

local M = {}

local NAME = "review"
local NS = vim.api.nvim_create_namespace("cursor_agent_review_list")

---@class (exact) cursor_agent.review.Row
---@field path string
---@field hunk cursor_agent.ReviewHunk?

---@type cursor_agent.review.Row[]
local rows = {}

---What the list is about.
local listens = false

---@type { key: cursor_agent.Key?, turn: integer? }
local about = {}

---@return integer?
local function buffer()
  local buf = vim.fn.bufnr(buffer_names.exactly(NAME))
  return buf > 0 and vim.api.nvim_buf_is_loaded(buf) and buf or nil
end

---@param hunk cursor_agent.ReviewHunk
---@return string
local function first_line(hunk)
  return vim.trim(hunk.added or (hunk.removed or {})[1] or "")
end

---@return string[] lines
---@return { row: integer, from: integer, to: integer, group: string }[] marks
local function build()
  local ready = bridge.is_loaded()
  local lines, spots = {}, {} ---@type string[], { row: integer, from: integer, to: integer, group: string }[]
  rows = {}
  local cwd = vim.fn.getcwd()
  for _, file in ipairs(ready and bridge.review_files(about.key, about.turn) or {}) do
    local head = ("%s  %s  +%d −%d"):format(format.path(file.path, cwd), file.state, file.added, file.removed)
    if file.stuck then
      head = head .. "  cannot be undone: " .. file.stuck
    end
    lines[#lines + 1] = head
    rows[#lines] = { path = file.path }
    local named = #format.path(file.path, cwd)
    spots[#spots + 1] = { row = #lines, from = 0, to = named, group = "CursorAgentPath" }
    spots[#spots + 1] = { row = #lines, from = named, to = #head, group = "CursorAgentDetail" }
    local select = { path = file.path, key = about.key, turn = about.turn }
    for _, hunk in ipairs(ready and bridge.review_hunks(select, true) or {}) do
      if hunk.old.count + hunk.new.count > 0 then
        local place = ("%6d"):format(math.max(hunk.new.line, 1))
        local added = ("  %4s"):format("+" .. hunk.new.count)
        -- The minus sign has three bytes.
        local removed = (" %6s  "):format("−" .. hunk.old.count)
        lines[#lines + 1] = place .. added .. removed .. first_line(hunk)
        rows[#lines] = { path = file.path, hunk = hunk }
        local at = 0
        for _, part in ipairs({
          { place, "CursorAgentLineNr" },
          { added, "CursorAgentAdded" },
          { removed, "CursorAgentRemoved" },
        }) do
          spots[#spots + 1] = { row = #lines, from = at, to = at + #part[1], group = part[2] }
          at = at + #part[1]
        end
      end
    end
  end
  return lines, spots
end

---@param buf integer
local function draw(buf)
  local lines, spots = build()
  if #lines == 0 then
    lines = { "No undecided changes." }
  end
  vim.bo[buf].modifiable = true
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.bo[buf].modifiable = false
  vim.api.nvim_buf_clear_namespace(buf, NS, 0, -1)
  for _, spot in ipairs(spots) do
    vim.api.nvim_buf_set_extmark(buf, NS, spot.row - 1, spot.from, { end_col = spot.to, hl_group = spot.group })
  end
end

---The list's statusline: how much there is, and the keys.
---@return string
function M.statusline()
  local files, changes = 0, 0
  for _, row in pairs(rows) do
    files = files + (row.hunk and 0 or 1)
    changes = changes + (row.hunk and 1 or 0)
  end
  local keymaps = require("cursor_agent.keys")
  local keys = {} ---@type string[]
  for _, one in ipairs({
    { "review-follow", "go" },
    { "review-keep", "keep" },
    { "review-undo", "undo" },
    { "review-comment", "comment" },
    { "help", "keys" },
  }) do
    local key = keymaps.key(one[1], "review")
    keys[#keys + 1] = key and ("%s %s"):format(key:gsub("%%", "%%%%"), one[2]) or nil
  end
  local count = ("%s in %s"):format(format.plural(changes, "change"), format.plural(files, "file"))
  return (" %s%%=%%<%s "):format(count, table.concat(keys, " · "))
end

---Redraws the list if it is open.
function M.refresh()
  local buf = buffer()
  if buf and vim.fn.bufwinid(buf) ~= -1 then
    draw(buf)
  end
end

---The row under the cursor.
---@return cursor_agent.review.Row?
local function current()
  return rows[vim.api.nvim_win_get_cursor(0)[1]]
end

---Goes to the hunk or file under the cursor.
---@return boolean?, string?
function M.go()
  local row = current()
  if not row then
    return nil, "no change on this line"
  end
  local nothing = { line = 1, count = 0 }
  local hunk = row.hunk or { id = 0, path = row.path, old = nothing, new = nothing, key = 0, turn = 0 }
  return require("cursor_agent.review").go_to(hunk)
end

---Keeps or undoes what is under the cursor.
---@param how "keep"|"undo"
---@return integer?, string?
function M.decide(how)
  local row = current()
  if not row then
    return nil, "no change on this line"
  end
  -- For a file, only the list's session: another one may have changed it too.
  local opts = row.hunk and { hunk = row.hunk.id } or { path = row.path, session = about.key, turn = about.turn }
  local review = require("cursor_agent.review")
  return (how == "keep" and review.keep or review.undo)(opts)
end

---Comments on the change under the cursor, or on the first line of the file.
---@return boolean?, string?
function M.comment()
  local row = current()
  if not row or not row.hunk then
    return nil, "no change on this line"
  end
  return require("cursor_agent.review.comment").on_hunk(row.hunk)
end

---Closes the list.
function M.close()
  local buf = buffer()
  local win = buf and vim.fn.bufwinid(buf) or -1
  if win ~= -1 then
    vim.api.nvim_win_close(win, false)
  end
end

---@type string? the row that is shown beside the list
local shown

---Shows the hunk or file under the cursor in the code window; the cursor stays in the list.
local function show_beside()
  local row = current()
  local name = row and ("%s %s"):format(row.path, row.hunk and row.hunk.id or "")
  if name == shown or not row or not require("cursor_agent.window.code").current() then
    return
  end
  shown = name
  local list = vim.api.nvim_get_current_win()
  M.go()
  if vim.api.nvim_win_is_valid(list) then
    vim.api.nvim_set_current_win(list)
  end
end

---Opens the list below the code, and shows the first hunk.
---@param chat cursor_agent.Chat?
---@param turn integer?
---@return boolean?, string?
function M.open(chat, turn)
  if not listens then
    listens = true
    events.on("hunks changed", "cursor_agent.review.list", "refresh")
  end
  about = { key = chat and chat.key, turn = turn }
  local ready, why = bridge.load()
  if not ready then
    return nil, why
  end
  local files = bridge.review_files(about.key, about.turn)
  if #files == 0 then
    return nil, "no undecided changes: agents have changed no files, or everything was kept or undone"
  end
  local code = require("cursor_agent.window.code").current()
  if code then
    vim.api.nvim_set_current_win(code)
  end
  local buf = buffer()
  if not buf then
    buf = vim.api.nvim_create_buf(false, true)
    vim.api.nvim_buf_set_name(buf, buffer_names.of(NAME))
    vim.bo[buf].filetype = "cursoragent-review"
    require("cursor_agent.keys").map(buf, "review")
    vim.api.nvim_create_autocmd("CursorMoved", {
      buffer = buf,
      -- A file opened for this triggers the usual autocommands.
      nested = true,
      desc = "cursor-agent: show the change under the cursor beside the list",
      callback = show_beside,
    })
  end
  draw(buf)
  local win = vim.fn.bufwinid(buf)
  if win == -1 then
    local height = math.min(vim.api.nvim_buf_line_count(buf), 10)
    vim.cmd(("belowright sbuffer %d | resize %d"):format(buf, height))
    vim.wo.winfixheight = true
    vim.wo.cursorline = true
    vim.wo.wrap = false
    vim.wo.number = false
    vim.wo.relativenumber = false
    vim.wo.signcolumn = "no"
    local bar = vim.o.laststatus == 3 and "winbar" or "statusline"
    vim.api.nvim_set_option_value(bar, "%{%v:lua.require'cursor_agent.review.list'.statusline()%}", { scope = "local" })
  else
    vim.api.nvim_set_current_win(win)
  end
  for i, row in pairs(rows) do
    if row.hunk and i == 2 then
      vim.api.nvim_win_set_cursor(0, { 2, 0 })
    end
  end
  shown = nil
  show_beside()
  return true
end

---The chat whose changes are listed, for commands.
---@return cursor_agent.Chat?
function M.chat()
  return chats.get(about.key)
end

return M
