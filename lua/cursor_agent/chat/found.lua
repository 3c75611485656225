-- `:CursorAgent search`: lines of stored conversations in the quickfix list, and jumping from there into the chat.

local chats = require("cursor_agent.chat.registry")
local format = require("cursor_agent.render.format")
local notify = require("cursor_agent.notify")
local past = require("cursor_agent.chat.past")

local M = {}

---How long to wait for the place to appear in a conversation that is being loaded.
local PATIENCE_MS = 10000

---How often to look for it.
local STEP_MS = 20

---The row of a hit in the chat, 0-based.
---@param chat cursor_agent.Chat
---@param hit cursor_agent.SearchHit
---@return integer?
local function row_of(chat, hit)
  local transcript = chat.transcript
  if not transcript.items[hit.entry] then
    return nil
  end
  local first, last = transcript:range(hit.entry)
  -- A long line is stored as an excerpt around the match, with dots where it was cut.
  local wanted = vim.trim(hit.text:gsub("^…", ""):gsub("…$", ""))
  for i, line in ipairs(vim.api.nvim_buf_get_lines(chat.buf, first, last, false)) do
    if line:find(wanted, 1, true) then
      return first + i - 1
    end
  end
  return first + transcript.items[hit.entry].gap
end

---Goes to a hit in its chat, once its text has been loaded.
---@param chat cursor_agent.Chat
---@param hit cursor_agent.SearchHit
---@param text string? what was searched for
---@param since integer
local function go(chat, hit, text, since)
  if not chats.get(chat.key) then
    return
  end
  local win = require("cursor_agent.chat.layout").chat_window(chat)
  local row = win and row_of(chat, hit)
  if win and row then
    vim.api.nvim_set_current_win(win)
    vim.cmd("stopinsert")
    vim.cmd("normal! m'")
    local line = vim.api.nvim_buf_get_lines(chat.buf, row, row + 1, false)[1] or ""
    local col = text and line:lower():find(text:lower(), 1, true) or 1
    vim.api.nvim_win_set_cursor(win, { row + 1, col - 1 })
    vim.cmd("normal! zvzz")
  elseif vim.uv.now() - since < PATIENCE_MS then
    vim.defer_fn(function()
      go(chat, hit, text, since)
    end, STEP_MS)
  else
    notify.notify("this place is no longer in the conversation", "warn")
  end
end

---Opens a hit's chat at that place.
---@param hit cursor_agent.SearchHit
---@param text? string what was searched for
---@return boolean?, string?
function M.open(hit, text)
  local key, why =
    require("cursor_agent.chat.sessions").load(hit.id, { agent = hit.agent, cwd = hit.cwd, enter = true })
  local chat = key and chats.get(key)
  if not chat then
    return nil, why
  end
  go(chat, hit, text, vim.uv.now())
  return true
end

---The hit on the current line of the quickfix list, if the list is ours, and what was searched for.
---@return cursor_agent.SearchHit?
---@return string?
local function hit_here()
  local list = vim.fn.getqflist({ context = 1, items = 1 })
  if type(list.context) ~= "table" or not list.context.cursor_agent then
    return nil
  end
  local item = list.items[vim.fn.line(".")]
  return item and type(item.user_data) == "table" and item.user_data or nil, list.context.cursor_agent
end

---`<CR>` in the quickfix window; in a list that is not ours, Neovim's default.
function M.enter()
  local hit, text = hit_here()
  if not hit then
    local keys = vim.api.nvim_replace_termcodes("<CR>", true, false, true)
    return vim.api.nvim_feedkeys(keys, "n", false)
  end
  vim.fn.setqflist({}, "a", { idx = vim.fn.line(".") })
  notify.report(M.open(hit, text))
end

---@param buf integer
local function map(buf)
  -- Not in a location list, and not over a key the user has mapped there.
  if vim.fn.getloclist(0, { filewinid = 0 }).filewinid ~= 0 or vim.fn.maparg("<CR>", "n", false, true).buffer == 1 then
    return
  end
  vim.keymap.set("n", "<CR>", M.enter, { buffer = buf, desc = "Open the chat at this place" })
end

local function setup()
  vim.api.nvim_create_autocmd("FileType", {
    group = vim.api.nvim_create_augroup("cursor_agent_found", {}),
    pattern = "qf",
    callback = function(args)
      map(args.buf)
    end,
  })
end

---Puts the lines of stored conversations that contain a text into the quickfix list, and opens it.
---@param text string
---@param all boolean search in all directories
---@return boolean?, string?
function M.search(text, all)
  local here = chats.current()
  return past.search(text, { all = all, cwd = here and here.cwd or nil }, function(hits, why)
    if not hits then
      return notify.notify(why or "the search failed", "error")
    elseif #hits == 0 then
      local where = all and "" or " in this directory"
      return notify.notify(("“%s” was not found in any stored conversation%s"):format(text, where))
    end
    local items = vim.tbl_map(function(hit)
      return {
        module = format.first_line(((hit.title or hit.id):gsub("%c", " ")), 40),
        lnum = hit.line,
        text = vim.trim(hit.text),
        valid = 1,
        user_data = hit,
      }
    end, hits)
    setup()
    vim.fn.setqflist({}, " ", { title = "Chats with " .. text, items = items, context = { cursor_agent = text } })
    vim.cmd("botright copen")
    map(vim.api.nvim_get_current_buf())
  end)
end

return M
