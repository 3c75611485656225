-- Large pastes in a prompt: each becomes an attachment whose label is in the text.

local config = require("cursor_agent.config")
local dropped = require("cursor_agent.prompt.dropped")
local format = require("cursor_agent.render.format")

local M = {}

---A large paste arrives in pieces; treat it as complete once nothing has come for this long.
local QUIET_MS = 60

---A paste of few but very long lines is large too.
local LARGE_BYTES = 8000

---Pattern of a paste's label in the text.
M.LABEL = "%[paste %d+: %d+ lines?%]"

---A paste as an attachment, with its label for the text.
---@param lines string[]
---@param number integer
---@return cursor_agent.context.Item
function M.item(lines, number)
  -- The newline at its end ends the last line.
  local count = lines[#lines] == "" and #lines - 1 or #lines
  local label = ("[paste %d: %s]"):format(number, format.plural(count, "line"))
  local text = table.concat(lines, "\n")
  return {
    label = label,
    text = text,
    blocks = function()
      return { { type = "text", label = label, text = ("%s\n%s"):format(label, text) } }
    end,
  }
end

---Whether the added text is a large paste.
---@param old string[] the previous lines
---@param new string[] the current lines
---@param limit integer lines
---@return boolean
local function is_large(old, new, limit)
  local bytes = 0
  for _, line in ipairs(new) do
    bytes = bytes + #line
  end
  for _, line in ipairs(old) do
    bytes = bytes - #line
  end
  return #new - #old >= limit or bytes > LARGE_BYTES
end

---How many bytes of the first line were before the pasted text, and how many of the last line after it.
---@param old string[] the previous lines
---@param lines string[] the current lines
---@param col integer? where in the first line the paste begins, if known
---@return integer head
---@return integer tail
local function around(old, lines, col)
  local first, last = lines[1], lines[#lines]
  local before, after = old[1] or "", old[#old] or ""
  if col and #old <= 1 and col <= #before and first:sub(1, col) == before:sub(1, col) then
    local rest = before:sub(col + 1)
    if rest == "" or last:sub(-#rest) == rest then
      return col, #rest
    end
  end
  -- Otherwise their common prefix and suffix, in whole characters.
  local head, tail = 0, 0
  while head < #before and before:byte(head + 1) == first:byte(head + 1) do
    head = head + 1
  end
  while head > 0 and head < #first and vim.str_utf_start(first, head + 1) ~= 0 do
    head = head - 1
  end
  while tail < #after - (#old == 1 and head or 0) and after:byte(#after - tail) == last:byte(#last - tail) do
    tail = tail + 1
  end
  while tail > 0 and vim.str_utf_start(last, #last - tail + 1) ~= 0 do
    tail = tail - 1
  end
  return head, tail
end

---Turns pasted lines into an attachment, with its label in the text instead.
---@param prompt cursor_agent.Prompt
---@param first integer
---@param old string[] the previous lines
---@param count integer number of current lines
---@param col integer? where in the first line it begins, if known
local function collapse(prompt, first, old, count, col)
  local tree = vim.api.nvim_buf_call(prompt.buf, vim.fn.undotree)
  if tree.seq_cur ~= tree.seq_last then
    -- Undo brought it back: the user wants it as text.
    return
  end
  local lines = vim.api.nvim_buf_get_lines(prompt.buf, first, first + count, false)
  if #lines ~= count or not is_large(old, lines, config.get().prompt.paste_lines) then
    -- It was removed meanwhile.
    return
  end
  local head, tail = around(old, lines, col)
  local last = lines[#lines]
  local pasted = vim.list_slice(lines)
  pasted[#pasted] = last:sub(1, #last - tail)
  pasted[1] = pasted[1]:sub(head + 1)
  local item = M.item(pasted, #prompt.pastes + 1)
  table.insert(prompt.pastes, item)
  prompt.setting = true
  vim.api.nvim_buf_call(prompt.buf, function()
    pcall(vim.cmd.undojoin)
  end)
  local text = lines[1]:sub(1, head) .. item.label .. last:sub(#last - tail + 1)
  vim.api.nvim_buf_set_lines(prompt.buf, first, first + count, false, { text })
  prompt.setting = false
  for _, win in ipairs(vim.fn.win_findbuf(prompt.buf)) do
    vim.api.nvim_win_set_cursor(win, { first + 1, head + #item.label })
  end
  prompt:refresh()
end

---Watches for pastes into a prompt.
---@param prompt cursor_agent.Prompt
function M.watch(prompt)
  local shown = { "" } ---@type string[] the lines as last seen, to tell what a paste added
  local pending ---@type { first: integer, old: string[], count: integer }?
  local begins ---@type { row: integer, col: integer }? where the first of the lines that came last were put in
  local timer = assert(vim.uv.new_timer())
  vim.api.nvim_buf_attach(prompt.buf, false, {
    on_lines = function(_, _, _, first, last, new_last)
      local old = vim.list_slice(shown, first + 1, last)
      local new = vim.api.nvim_buf_get_lines(prompt.buf, first, new_last, false)
      local lines = vim.list_extend(vim.list_slice(shown, 1, first), new)
      shown = vim.list_extend(lines, shown, last + 1)
      local limit = config.get().prompt.paste_lines
      if prompt.setting or limit == 0 then
        -- Sent, or replaced with another text: the pasted text is no longer there.
        pending = nil
        return
      end
      if pending and first >= pending.first and first <= pending.first + pending.count then
        pending.count = pending.count + (new_last - last)
      elseif is_large(old, new, limit) then
        pending = { first = first, old = old, count = new_last - first }
      else
        return
      end
      timer:start(
        QUIET_MS,
        0,
        vim.schedule_wrap(function()
          local paste, place = pending, begins
          pending, begins = nil, nil
          if paste and vim.api.nvim_buf_is_loaded(prompt.buf) then
            local col = place and place.row == paste.first and place.col or nil
            collapse(prompt, paste.first, paste.old, paste.count, col)
          end
        end)
      )
    end,
    on_bytes = function(_, _, _, row, col, _, old_rows, _, old_bytes, new_rows, new_cols, new_bytes)
      if prompt.setting then
        return
      end
      if old_bytes == 0 then
        dropped.on_put(prompt, row, col, new_rows, new_cols, new_bytes)
      end
      if not pending then
        begins = (new_rows > old_rows or new_bytes - old_bytes > LARGE_BYTES) and { row = row, col = col } or nil
      end
    end,
    on_detach = function()
      timer:close()
    end,
  })
end

return M
