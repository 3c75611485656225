-- Takes code out of the chat: the fenced block under the cursor, yanked or put into the code window.

local format = require("cursor_agent.render.format")
local notify = require("cursor_agent.notify")

local M = {}

---The fenced block around a line. Lines count from 1.
---@param lines string[]
---@param at integer
---@return integer? first of the code
---@return integer? last
function M.block_at(lines, at)
  local fence, first ---@type string?, integer?
  for i, line in ipairs(lines) do
    local marks = line:match("^%s*(```+)") or line:match("^%s*(~~~+)")
    if marks and not fence then
      fence, first = marks, i
    elseif marks and fence and marks:sub(1, 1) == fence:sub(1, 1) and #marks >= #fence then
      if first and at >= first and at <= i then
        return first + 1, i - 1
      end
      fence, first = nil, nil
    end
  end
  -- Still open: the agent has not come to its end.
  if first and at >= first then
    return first + 1, #lines
  end
end

---@param chat cursor_agent.Chat
---@return string[]?, string?
local function code_here(chat)
  local transcript = chat.transcript
  local row = vim.api.nvim_win_get_cursor(0)[1] - 1
  local index, top = transcript:entry_at(row)
  if not index or vim.api.nvim_get_current_buf() ~= chat.buf then
    return nil, "the cursor is not on a code block"
  end
  local _, past = transcript:range(index)
  local lines = vim.api.nvim_buf_get_lines(chat.buf, top, past, false)
  local first, last = M.block_at(lines, row - top + 1)
  if not first or not last then
    return nil, "the cursor is not on a code block"
  end
  local wrapped = {} ---@type table<integer, boolean>
  local ns = require("cursor_agent.transcript").NS.wrapped
  for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(chat.buf, ns, { top, 0 }, { past, 0 }, {})) do
    wrapped[mark[2] - top + 1] = true
  end
  local code = {} ---@type string[]
  for i = first, last do
    if wrapped[i] and #code > 0 then
      code[#code] = code[#code] .. lines[i]
    else
      code[#code + 1] = lines[i]
    end
  end
  return code
end

---@param chat cursor_agent.Chat
---@return boolean?, string?
function M.yank(chat)
  local code, why = code_here(chat)
  if not code then
    return nil, why
  end
  local register = vim.v.register
  vim.fn.setreg(register, code, "l")
  notify.notify(("%s yanked"):format(format.plural(#code, "line")))
  return true
end

---@param chat cursor_agent.Chat
---@return boolean?, string?
function M.apply(chat)
  local code, why = code_here(chat)
  if not code then
    return nil, why
  end
  local win = require("cursor_agent.window").code_window()
  if not win then
    return nil, "there is no code window to put it in"
  end
  local buf = vim.api.nvim_win_get_buf(win)
  if not vim.bo[buf].modifiable then
    return nil, ("%s cannot be changed"):format(vim.api.nvim_buf_get_name(buf))
  end
  local line = vim.api.nvim_win_get_cursor(win)[1]
  local only = vim.api.nvim_buf_line_count(buf) == 1 and vim.api.nvim_buf_get_lines(buf, 0, 1, false)[1] == ""
  vim.api.nvim_buf_set_lines(buf, only and 0 or line, only and 1 or line, false, code)
  local name = format.path(vim.api.nvim_buf_get_name(buf), chat.cwd)
  notify.notify(
    ("%s put into %s below line %d"):format(
      format.plural(#code, "line"),
      name ~= "" and name or "the buffer",
      only and 0 or line
    )
  )
  return true
end

return M
