-- How much of something is attached to a prompt, and the words for what was cut.

local fences = require("cursor_agent.render.fence")
local format = require("cursor_agent.render.format")

local M = {}

---Attached text is cut at this many lines, and at this many bytes.
M.LINES = 500
M.BYTES = 64 * 1024

---@param n integer
---@return string
local function counted(n)
  local text = tostring(n):reverse():gsub("(%d%d%d)", "%1,"):reverse()
  return (text:gsub("^,", ""))
end

---The lines that fit, and words for what was cut, if anything. A single line that is too long is cut.
---@param lines string[]
---@param side "first"|"last" which end is kept
---@param what string what a line is: "line", "entry"
---@param many string
---@return string[] kept
---@return string? cut "first 500 of 1,200 lines"
function M.lines(lines, side, what, many)
  local kept, bytes = {}, 0 ---@type string[], integer
  local at, step = side == "first" and 1 or #lines, side == "first" and 1 or -1
  while lines[at] and #kept < M.LINES and bytes + #lines[at] + 1 <= M.BYTES do
    kept[#kept + 1] = lines[at]
    bytes = bytes + #lines[at] + 1
    at = at + step
  end
  if #lines > 0 and #kept == 0 then
    local line = lines[at]
    -- At a character boundary.
    local part = side == "first" and line:sub(1, M.BYTES + vim.str_utf_start(line, M.BYTES + 1))
      or line:sub(#line - M.BYTES + 1 + vim.str_utf_end(line, #line - M.BYTES))
    return { part }, ("%s %s of %s"):format(side, format.bytes(#part), format.bytes(#table.concat(lines, "\n")))
  end
  if side == "last" then
    local turned = {} ---@type string[]
    for i = #kept, 1, -1 do
      turned[#turned + 1] = kept[i]
    end
    kept = turned
  end
  if #kept == #lines then
    return kept
  end
  return kept, ("%s %s of %s %s"):format(side, counted(#kept), counted(#lines), #lines == 1 and what or many)
end

---Text as a fenced block that fences inside it cannot close.
---@param lines string[]
---@param language string
---@return string
function M.fenced(lines, language)
  local fence = fences.around(lines)
  return ("%s%s\n%s\n%s"):format(fence, language, table.concat(lines, "\n"), fence)
end

---An attachment of lines read now; its name and its text say what was cut.
---@param name string `@quickfix`
---@param title string the agent's heading for it
---@param lines string[]
---@param side "first"|"last"
---@param what string
---@param many string
---@return cursor_agent.context.Item
function M.item(name, title, lines, side, what, many)
  local kept, cut = M.lines(lines, side, what, many)
  local label = cut and ("%s (%s)"):format(name, cut) or ("%s (%s)"):format(name, format.plural(#lines, what, many))
  local text = ("%s%s:\n%s"):format(title, cut and (", %s"):format(cut) or "", M.fenced(kept, ""))
  return {
    label = label,
    blocks = function()
      return { { type = "text", label = label, text = text } }
    end,
  }
end

return M
