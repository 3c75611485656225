-- Compares and merges lines of text: the difference between two texts, and three-way merges.

local bridge = require("cursor_agent.bridge")

local M = {}

---Lines `from` … `from + removed - 1` of the old text are replaced with `lines`. If none are removed, `lines` go in
---after `from`.
---@class (exact) cursor_agent.merge.Hunk
---@field from integer
---@field removed integer
---@field lines string[]

---@param lines string[]
---@return string
local function text_of(lines)
  return #lines > 0 and table.concat(lines, "\n") .. "\n" or ""
end

---Texts that differ in more lines or places than this are not compared further: that would be noticeable.
local MANY_LINES, MANY_HUNKS = 20000, 1000

---The hunks that turn one text into another.
---@param old string[]
---@param new string[]
---@return cursor_agent.merge.Hunk[]
function M.diff(old, new)
  local first, last_old, last_new = 1, #old, #new
  while first <= last_old and first <= last_new and old[first] == new[first] do
    first = first + 1
  end
  while last_old >= first and last_new >= first and old[last_old] == new[last_new] do
    last_old, last_new = last_old - 1, last_new - 1
  end
  if last_old < first and last_new < first then
    return {}
  end
  local removed = last_old - first + 1
  ---@type cursor_agent.merge.Hunk what is between the lines both begin and end with
  local whole =
    { from = removed > 0 and first or first - 1, removed = removed, lines = vim.list_slice(new, first, last_new) }
  if removed == 0 or last_new < first or removed + #whole.lines > MANY_LINES then
    return { whole }
  end
  -- Renamed in 0.12; the old name is deprecated there.
  ---@diagnostic disable-next-line: deprecated
  local compare = vim.text and vim.text.diff or vim.diff
  -- The other algorithms take minutes for texts that differ in every second line.
  local opts = { result_type = "indices", algorithm = "myers" }
  local found = compare(text_of(vim.list_slice(old, first, last_old)), text_of(whole.lines), opts)
  ---@cast found [integer, integer, integer, integer][]
  if #found > MANY_HUNKS then
    return { whole }
  end
  local hunks = {} ---@type cursor_agent.merge.Hunk[]
  for _, at in ipairs(found) do
    local lines = vim.list_slice(whole.lines, at[3], at[3] + at[4] - 1)
    hunks[#hunks + 1] = { from = at[1] + first - 1, removed = at[2], lines = lines }
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

---This many bytes are merged synchronously; more would be noticeable while typing.
M.AT_ONCE_BYTES = 100 * 1024

---@class (exact) cursor_agent.merge.Texts each line with its end
---@field ours string the buffer's text
---@field theirs string the agent's text
---@field basis string? what the agent's text was based on
---@field saved string? the saved text of the basis, if that differs
---@field base string? what the buffer was loaded with, if the disk has changed since
---@field disk string? the text on disk then

---Merges texts in the library, off the main thread if they are long.
---@param want "merged"|"marked"|"places"
---@param texts cursor_agent.merge.Texts
---@param done fun(found: table?, count: integer?) hunks of the buffer, or places; nil if the texts conflict
function M.combine(want, texts, done)
  if texts.ours == "" and want ~= "places" then
    local found = done
    done = function(hunks)
      -- An empty buffer has one empty line, which is replaced.
      if hunks and hunks[1] then
        hunks[1].from, hunks[1].removed = 1, 1
      end
      found(hunks)
    end
  end
  local bytes = 0
  for _, text in pairs(texts) do
    bytes = bytes + #text
  end
  local id = bytes > M.AT_ONCE_BYTES and bridge.merge_later(want, texts) or nil
  if not id then
    return done(bridge.merge(want, texts))
  end
  bridge.await(id, function()
    done(bridge.merge_take(id))
  end)
end

return M
