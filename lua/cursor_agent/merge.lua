-- Lines of text compared and merged: what differs between two, and what two changed in a third.

local M = {}

---Lines `from` … `from + removed - 1` of the old text give way to `lines`. With none removed, they go in after `from`.
---@class (exact) cursor_agent.merge.Hunk
---@field from integer
---@field removed integer
---@field lines string[]

---@param lines string[]
---@return string
local function text_of(lines)
  return #lines > 0 and table.concat(lines, "\n") .. "\n" or ""
end

---What turns one text into another.
---@param old string[]
---@param new string[]
---@return cursor_agent.merge.Hunk[]
function M.diff(old, new)
  -- Renamed in 0.12; the old name is deprecated there.
  ---@diagnostic disable-next-line: deprecated
  local compare = vim.text and vim.text.diff or vim.diff
  local found = compare(text_of(old), text_of(new), { result_type = "indices", algorithm = "histogram" })
  local hunks = {} ---@type cursor_agent.merge.Hunk[]
  ---@cast found [integer, integer, integer, integer][]
  for _, at in ipairs(found) do
    hunks[#hunks + 1] = { from = at[1], removed = at[2], lines = vim.list_slice(new, at[3], at[3] + at[4] - 1) }
  end
  return hunks
end

---Applies hunks to a buffer, last first, so that marks, folds and cursors outside them stay where they are.
---@param buf integer
---@param hunks cursor_agent.merge.Hunk[]
function M.apply(buf, hunks)
  for i = #hunks, 1, -1 do
    local hunk = hunks[i]
    local first = hunk.removed == 0 and hunk.from or hunk.from - 1
    vim.api.nvim_buf_set_lines(buf, first, first + hunk.removed, false, hunk.lines)
  end
end

---The first and last line a hunk touches; one that only adds touches both its neighbours.
---@param hunk cursor_agent.merge.Hunk
---@return integer first
---@return integer last
local function touched(hunk)
  if hunk.removed == 0 then
    return hunk.from, hunk.from + 1
  end
  return hunk.from, hunk.from + hunk.removed - 1
end

---Puts together what two changed in one text. Nothing when both changed the same place in different ways.
---@param base string[]
---@param ours string[]
---@param theirs string[]
---@return string[]? merged
function M.three_way(base, ours, theirs)
  local mine, other = M.diff(base, ours), M.diff(base, theirs)
  local hunks = vim.list_slice(mine)
  for _, hunk in ipairs(other) do
    local first, last = touched(hunk)
    local same = false
    for _, own in ipairs(mine) do
      local own_first, own_last = touched(own)
      if vim.deep_equal(own, hunk) then
        same = true
      elseif first <= own_last and own_first <= last then
        return nil
      end
    end
    if not same then
      hunks[#hunks + 1] = hunk
    end
  end
  table.sort(hunks, function(a, b)
    return a.from < b.from
  end)
  local merged, at = {}, 1 ---@type string[], integer
  for _, hunk in ipairs(hunks) do
    local keep_to = hunk.removed == 0 and hunk.from or hunk.from - 1
    vim.list_extend(merged, base, at, keep_to)
    vim.list_extend(merged, hunk.lines)
    at = keep_to + hunk.removed + 1
  end
  return vim.list_extend(merged, base, at)
end

return M
