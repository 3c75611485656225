-- Comments on code for the agent: attached to the next prompt, shown at their lines until it is sent.

local chats = require("cursor_agent.chat.registry")
local context = require("cursor_agent.prompt.context")
local format = require("cursor_agent.render.format")
local bridge = require("cursor_agent.bridge")
local events = require("cursor_agent.bridge.events")

local M = {}

local NS = vim.api.nvim_create_namespace("cursor_agent_comments")

---How much of a comment is shown at its line and above the prompt.
local SHOWN_CHARS = { line = 60, label = 24 }

---@class (exact) cursor_agent.review.Comment
---@field text string
---@field buf integer
---@field first integer
---@field last integer
---@field code string[] the lines, as they were last seen
---@field removed string[]? what was there before the agent's change, if it is about one
---@field only_removed boolean? nothing replaced it
---@field mark integer? where it is shown

---@type table<cursor_agent.review.Comment, boolean> those that are shown
local shown = {}

---@param comment cursor_agent.review.Comment
local function remove_mark(comment)
  if comment.mark and vim.api.nvim_buf_is_valid(comment.buf) then
    vim.api.nvim_buf_del_extmark(comment.buf, NS, comment.mark)
  end
  comment.mark = nil
end

---Updates a comment's line numbers and lines.
---@param comment cursor_agent.review.Comment
local function look(comment)
  if not vim.api.nvim_buf_is_loaded(comment.buf) then
    return
  end
  local at = comment.mark and vim.api.nvim_buf_get_extmark_by_id(comment.buf, NS, comment.mark, { details = true })
    or {}
  if at[1] then
    comment.first = at[1] + 1
    comment.last = math.max((at[3] and at[3].end_row or at[1]) + 1, comment.first)
  else
    comment.mark = nil
  end
  local last = math.min(comment.last, vim.api.nvim_buf_line_count(comment.buf))
  comment.code = vim.api.nvim_buf_get_lines(comment.buf, math.min(comment.first, last) - 1, last, false)
end

---@param comment cursor_agent.review.Comment
local function show(comment)
  shown[comment] = true
  if not vim.api.nvim_buf_is_loaded(comment.buf) then
    return
  end
  look(comment)
  if comment.mark then
    return
  end
  local count = vim.api.nvim_buf_line_count(comment.buf)
  local first, last = math.min(comment.first, count), math.min(comment.last, count)
  local icons = require("cursor_agent.render.icons").pick(require("cursor_agent.config").get().chat.icons)
  comment.mark = vim.api.nvim_buf_set_extmark(comment.buf, NS, first - 1, 0, {
    end_row = last - 1,
    end_col = #(vim.api.nvim_buf_get_lines(comment.buf, last - 1, last, false)[1] or ""),
    sign_text = icons.comment,
    sign_hl_group = "CursorAgentComment",
    virt_text = {
      { ("%s %s"):format(icons.comment, format.first_line(comment.text, SHOWN_CHARS.line)), "CursorAgentComment" },
    },
    priority = 6,
  })
end

---The unsent comments, with the prompt they are attached to.
---@return { prompt: cursor_agent.Prompt, item: cursor_agent.context.Item, comment: cursor_agent.review.Comment }[]
local function waiting()
  local list = {} ---@type { prompt: cursor_agent.Prompt, item: cursor_agent.context.Item, comment: cursor_agent.review.Comment }[]
  for _, chat in ipairs(chats.all()) do
    for _, item in ipairs(chat.prompt:unsent()) do
      if item.comment then
        list[#list + 1] = { prompt = chat.prompt, item = item, comment = item.comment }
      end
    end
  end
  return list
end

---Shows exactly the unsent comments.
function M.sync()
  local still = {} ---@type table<cursor_agent.review.Comment, boolean>
  for _, one in ipairs(waiting()) do
    still[one.comment] = true
    show(one.comment)
  end
  for comment in pairs(shown) do
    if not still[comment] then
      look(comment)
      remove_mark(comment)
      shown[comment] = nil
    end
  end
end

---@param comment cursor_agent.review.Comment
---@param cwd string
---@return string short
---@return string span
local function place(comment, cwd)
  local name = vim.api.nvim_buf_is_valid(comment.buf) and vim.api.nvim_buf_get_name(comment.buf) or ""
  local short = name ~= "" and format.path(name, cwd) or ("buffer %d"):format(comment.buf)
  local span = comment.first == comment.last and tostring(comment.first)
    or ("%d-%d"):format(comment.first, comment.last)
  return short, span
end

---What is sent to the agent.
---@param comment cursor_agent.review.Comment
---@param cwd string
---@return string
local function told(comment, cwd)
  look(comment)
  local short, span = place(comment, cwd)
  local code, language = comment.code, ""
  if comment.removed then
    language = "diff"
    code = {}
    for _, line in ipairs(comment.removed) do
      code[#code + 1] = "-" .. line
    end
    for _, line in ipairs(comment.only_removed and {} or comment.code) do
      code[#code + 1] = "+" .. line
    end
  elseif vim.api.nvim_buf_is_valid(comment.buf) then
    language = vim.bo[comment.buf].filetype
  end
  local what = comment.removed and "Comment on your change at line" or "Comment on line"
  if span:find("-", 1, true) then
    what = what .. "s"
  end
  return ("%s %s of %s:\n%s\n%s"):format(what, span, short, context.fenced(code, language), comment.text)
end

---@param comment cursor_agent.review.Comment
---@param chat cursor_agent.Chat
---@return cursor_agent.context.Item
local function item_of(comment, chat)
  local short, span = place(comment, chat.cwd)
  local label = ("%s:%s “%s”"):format(short, span, format.first_line(comment.text, SHOWN_CHARS.label))
  local plain, number = label, 1
  while chat.prompt:has(label) do
    -- One of several comments with the same words on the same line.
    number = number + 1
    label = ("%s (%d)"):format(plain, number)
  end
  return {
    label = label,
    comment = comment,
    blocks = function()
      local text = told(comment, chat.cwd)
      local name = vim.api.nvim_buf_is_valid(comment.buf) and vim.api.nvim_buf_get_name(comment.buf) or ""
      return {
        { type = "text", label = label, path = name ~= "" and name or nil, line = comment.first, text = text },
      }
    end,
  }
end

---The undecided change at a line of a buffer.
---@param buf integer
---@param line integer
---@return cursor_agent.ReviewHunk?
local function hunk_at(buf, line)
  local ready = bridge.is_loaded()
  local path = require("cursor_agent.review.buffers").path(buf)
  for _, hunk in ipairs(ready and path and bridge.review_hunks({ path = path }, true) or {}) do
    local first = hunk.new.line
    if hunk.new.count > 0 and line >= first and line < first + hunk.new.count then
      return hunk
    elseif hunk.new.count == 0 and hunk.old.count > 0 and (line == first or line == first + 1) then
      return hunk
    end
  end
end

---The comments on some lines.
---@param buf integer
---@param first integer
---@param last integer
---@return { prompt: cursor_agent.Prompt, item: cursor_agent.context.Item, comment: cursor_agent.review.Comment }[]
local function on_lines(buf, first, last)
  return vim.tbl_filter(function(one)
    look(one.comment)
    return one.comment.buf == buf and one.comment.first <= last and one.comment.last >= first
  end, waiting())
end

---Removes the comments on some lines.
---@param buf integer
---@param first integer
---@param last integer
---@return integer? count
---@return string?
function M.remove(buf, first, last)
  local found = on_lines(buf, first, last)
  for _, one in ipairs(found) do
    one.prompt:forget(one.item)
  end
  if #found == 0 then
    return nil, "no comment on this line"
  end
  return #found
end

---Adds a comment, to be sent with the next prompt.
---@param buf integer
---@param first integer
---@param last integer
---@param text string
---@param hunk cursor_agent.ReviewHunk? the change it is about
---@return boolean?, string?
local function add(buf, first, last, text, hunk)
  local chat, why = require("cursor_agent.chat").ensure()
  if not chat then
    return nil, why
  elseif not vim.api.nvim_buf_is_loaded(buf) then
    return nil, "the buffer of the comment is gone"
  end
  local comment = {
    text = vim.trim(text),
    buf = buf,
    first = first,
    last = last,
    code = {},
    removed = hunk and (hunk.removed or {}),
    only_removed = hunk and hunk.new.count == 0,
  } ---@type cursor_agent.review.Comment
  if hunk then
    comment.first = math.max(hunk.new.line, 1)
    comment.last = hunk.new.count > 0 and hunk.new.line + hunk.new.count - 1 or comment.first
  end
  chat.prompt:attach(item_of(comment, chat))
  return true
end

---Comments on lines of the current buffer. Asks for the text if none is given; an existing comment can be edited.
---@param first integer? default: the cursor's line, or the change it is in
---@param last integer?
---@param text string?
---@return boolean?, string?
function M.here(first, last, text)
  local buf = vim.api.nvim_get_current_buf()
  if vim.b[buf].cursor_agent_kind or vim.bo[buf].buftype ~= "" then
    return nil, "comments go on lines of files; move to one first"
  end
  local line = vim.api.nvim_win_get_cursor(0)[1]
  local hunk = not first and hunk_at(buf, line) or nil
  local from, to = first or line, last or first or line
  if text and vim.trim(text) ~= "" then
    return add(buf, from, to, text, hunk)
  end
  local before = on_lines(buf, from, to)[1]
  vim.ui.input({
    prompt = ("Comment on %s: "):format(
      hunk and "the change" or from == to and "line " .. from or ("lines %d-%d"):format(from, to)
    ),
    default = before and before.comment.text or nil,
  }, function(said)
    if said == nil then
      return
    end
    if before then
      before.prompt:forget(before.item)
    end
    if vim.trim(said) ~= "" then
      require("cursor_agent.notify").report(add(buf, from, to, said, hunk))
    end
  end)
  return true
end

---Comments on a change from the list, whose file may not be open yet.
---@param hunk cursor_agent.ReviewHunk
---@return boolean?, string?
function M.on_hunk(hunk)
  if require("cursor_agent.files.regular").is_odd(hunk.path) then
    return nil, ("%s is not a regular file"):format(hunk.path)
  end
  local buf = vim.fn.bufadd(hunk.path)
  vim.fn.bufload(buf)
  vim.ui.input({ prompt = "Comment on the change: " }, function(said)
    if said and vim.trim(said) ~= "" then
      require("cursor_agent.notify").report(add(buf, hunk.new.line, hunk.new.line, said, hunk))
    end
  end)
  return true
end

vim.api.nvim_create_autocmd("BufReadPost", {
  group = vim.api.nvim_create_augroup("cursor_agent_comments", {}),
  desc = "cursor-agent: show comments in a buffer that was reloaded",
  callback = vim.schedule_wrap(M.sync),
})

-- Shows in the code what is attached to a prompt.
events.on("prompt changed", "cursor_agent.review.comment", "sync")

return M
