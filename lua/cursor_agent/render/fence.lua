-- Reads the fences of code blocks in markdown: what begins one, what ends it, what stands before its lines.

local M = {}

---@class (exact) cursor_agent.render.Fence
---@field marks string
---@field info string
---@field prefix string what its lines begin with, in a list or a quotation; the mark of a list's item as spaces
---@field item boolean it stands beside the mark of a list's item

---The fence a line is; nil for any other line.
---@param line string
---@return cursor_agent.render.Fence?
function M.read(line)
  if not line:find("```", 1, true) and not line:find("~~~", 1, true) then
    return nil
  end
  local lead = line:match("^[%s>]*") or ""
  local item = line:match("^[-*+]%s+", #lead + 1) or line:match("^%d+[.)]%s+", #lead + 1) or ""
  local at = #lead + #item + 1
  local marks, info = line:match("^(```+)%s*([^`]*)$", at)
  if not marks then
    marks, info = line:match("^(~~~+)%s*(.*)$", at)
  end
  if not marks or not info then
    return nil
  end
  return { marks = marks, info = vim.trim(info), prefix = lead .. (" "):rep(#item), item = item ~= "" }
end

---Whether a fence stands by itself: beside no mark of a list and in no quotation.
---@param fence cursor_agent.render.Fence
---@return boolean
function M.is_plain(fence)
  return not fence.item and not fence.prefix:find(">", 1, true)
end

---Whether a fence ends the block another one began.
---@param fence cursor_agent.render.Fence
---@param marks string that it began with
---@return boolean
function M.ends(fence, marks)
  return fence.info == "" and fence.marks:sub(1, 1) == marks:sub(1, 1) and #fence.marks >= #marks
end

---A line of a block without what its list or quotation puts before it.
---@param line string
---@param prefix string
---@return string
function M.strip(line, prefix)
  local at = 1
  for i = 1, #prefix do
    local quote = prefix:sub(i, i) == ">"
    local char = line:sub(at, at)
    if (quote and char == ">") or (not quote and char:match("^%s$")) then
      at = at + 1
    end
  end
  return line:sub(at)
end

---The fence of a block that a text leaves open.
---@param lines string[]
---@return cursor_agent.render.Fence?
function M.unclosed(lines)
  local open ---@type cursor_agent.render.Fence?
  for _, line in ipairs(lines) do
    local fence = M.read(line)
    if fence and not open then
      open = fence
    elseif fence and open and M.ends(fence, open.marks) then
      open = nil
    end
  end
  return open
end

---Marks that no line of a text can end a block with.
---@param lines string[]
---@return string
function M.around(lines)
  local marks = "```"
  for _, line in ipairs(lines) do
    local own = line:match("^[%s>]*(```+)")
    if own and #own >= #marks then
      marks = own .. "`"
    end
  end
  return marks
end

return M
