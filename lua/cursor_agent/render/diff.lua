-- Draws the hunks of a diff under a tool call, with line numbers and the file's own syntax.

local format = require("cursor_agent.render.format")

local M = {}

---@param hunks cursor_agent.Hunk[]
---@return integer width of the widest line number
local function number_width(hunks)
  local last = 1
  for _, hunk in ipairs(hunks) do
    last = math.max(last, hunk.old + #hunk.lines, hunk.new + #hunk.lines)
  end
  return #tostring(last)
end

---Adds a diff to a block.
---@param b cursor_agent.render.Builder
---@param content cursor_agent.ToolContent
---@param context cursor_agent.render.Context
---@param indent string
function M.add(b, content, context, indent)
  local hunks = content.hunks or {}
  local width = number_width(hunks)
  local gutter = indent .. context.icons.gutter .. " "
  local number_format = ("%%%dd "):format(width)
  local path = content.path or ""
  local new = { path = path, text = {}, rows = {} } ---@type cursor_agent.render.Code
  local old = { path = path, text = {}, rows = {} } ---@type cursor_agent.render.Code
  local shown, left = 0, content.hidden or 0

  for h, hunk in ipairs(hunks) do
    if h > 1 and shown < context.diff_lines then
      b:line({ { gutter, "CursorAgentGutter" }, { (" "):rep(width - 1) .. "⋮", "CursorAgentLineNr" } })
    end
    local old_line, new_line = hunk.old, hunk.new
    for i, item in ipairs(hunk.lines) do
      local sign, text = item[1], item[2]
      if shown >= context.diff_lines then
        left = left + 1
      else
        shown = shown + 1
        local number = sign == "-" and old_line or new_line
        local hl = sign == "+" and "CursorAgentDiffAdd" or sign == "-" and "CursorAgentDiffDelete" or nil
        local sign_hl = sign == "+" and "CursorAgentDiffAddSign" or sign == "-" and "CursorAgentDiffDeleteSign" or nil
        local row = b:line({
          { gutter .. number_format:format(number), "CursorAgentLineNr" },
          { sign .. " ", sign_hl },
          { text },
        })
        local col = #b.lines[row + 1] - #text
        if hl then
          b:mark(row, col - 2, { end_row = row + 1, end_col = 0, hl_group = hl, hl_eol = true, priority = 90 })
          for _, word in ipairs(hunk.words and hunk.words[i] or {}) do
            local from = col + word[1]
            local to = math.min(col + word[2], #b.lines[row + 1]) --[[@as integer]]
            if from < to then
              b:mark(row, from, { end_col = to, hl_group = hl .. "Word", priority = 91 })
            end
          end
        end
        b.targets[row] = { path = path, line = sign == "-" and math.max(new_line, 1) or number }
        -- What was taken out is read together with its surroundings as they were, the rest as it is now.
        if sign ~= "+" then
          table.insert(old.text, text)
          table.insert(old.rows, { row = row, col = col, apply = sign == "-" })
        end
        if sign ~= "-" then
          table.insert(new.text, text)
          table.insert(new.rows, { row = row, col = col, apply = true })
        end
      end
      old_line = old_line + (sign ~= "+" and 1 or 0)
      new_line = new_line + (sign ~= "-" and 1 or 0)
    end
  end

  if left > 0 then
    local row = b:line({
      { gutter, "CursorAgentGutter" },
      { ("%s %s more"):format(context.icons.more, format.plural(left, "line")), "CursorAgentMore" },
    })
    b.targets[row] = { output = true }
    -- The line that says so takes the place of one of them.
    b.left = (b.left or 0) + left - 1
  end
  for _, code in ipairs({ new, old }) do
    if #code.text > 0 then
      table.insert(b.code, code)
    end
  end
end

return M
