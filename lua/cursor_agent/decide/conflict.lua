-- Shows where unsaved text and an agent's text conflict, and the ways to resolve it.

local conflicts = require("cursor_agent.files.conflicts")
local format = require("cursor_agent.render.format")
local frame = require("cursor_agent.decide.frame")
local merge = require("cursor_agent.files.merge")
local blocks = require("cursor_agent.render.block")

local M = {}

---Called when the conflicting places of a decision on the screen have been found.
M.on_known = function() end

---@param decision cursor_agent.Decision
---@return string
function M.title(decision)
  local asker = require("cursor_agent.decide.permission").asker(decision)
  local what = decision.request and "wants to write where you have unsaved changes"
    or "changed a file that you have not saved"
  return ("%s %s"):format(asker, what)
end

---Finds the conflicting places, once for each state of the texts.
---@param conflict cursor_agent.Conflict
local function compare(conflict)
  local tick = vim.api.nvim_buf_get_changedtick(conflict.buf)
  local shown = conflict.shown
  if shown and shown.tick == tick and shown.text == conflict.text then
    return
  end
  shown = { tick = tick, text = conflict.text, count = 0 }
  conflict.shown = shown
  local ours = require("cursor_agent.files.loaded").text(conflict.buf)
  local at_once = true
  merge.combine("places", { ours = ours, theirs = conflict.text, basis = conflict.basis }, function(places, count)
    shown.places, shown.count = places or {}, count or 0
    if not at_once then
      M.on_known()
    end
  end)
  at_once = false
end

---The places as a diff: the buffer's text, and the agent's instead.
---@param shown { places: cursor_agent.MergePlace[], count: integer }
---@param path string
---@return cursor_agent.ToolContent
local function diff_of(shown, path)
  local hunks, hidden = {}, 0 ---@type cursor_agent.Hunk[], integer
  for _, place in ipairs(shown.places) do
    local lines = {} ---@type { [1]: " "|"+"|"-", [2]: string }[]
    for _, line in ipairs(place.ours) do
      lines[#lines + 1] = { "-", format.first_line(line, 400) }
    end
    for _, line in ipairs(place.agents) do
      lines[#lines + 1] = { "+", format.first_line(line, 400) }
    end
    hidden = hidden + place.hidden
    table.insert(hunks, { old = place.mine, new = place.theirs, lines = lines })
  end
  return { type = "diff", path = path, hunks = hunks, hidden = hidden }
end

---@param decision cursor_agent.Decision
---@param max integer most lines of the difference
---@return cursor_agent.render.Builder
local function body(decision, max)
  local b = blocks.builder()
  local path = decision.path or ""
  local row = b:line({
    { format.path(path, decision.cwd), "CursorAgentPath" },
    { "  - yours", "CursorAgentRemoved" },
    { "  + the agent's", "CursorAgentAdded" },
  })
  b.targets[row] = { path = path }
  local conflict = conflicts.of(decision)
  if not conflict or not vim.api.nvim_buf_is_loaded(conflict.buf) then
    return b
  end
  compare(conflict)
  local shown = conflict.shown
  if not shown or not shown.places then
    b:line({ { "  …", "CursorAgentDetail" } })
    return b
  end
  require("cursor_agent.render.diff").add(b, diff_of(shown --[[@as any]], path), {
    cwd = decision.cwd,
    icons = require("cursor_agent.render.icons").pick(require("cursor_agent.config").get().chat.icons),
    diff_lines = max,
    output_lines = 0,
    fold_tools = false,
  }, "")
  if shown.count > #shown.places then
    b:line({ { ("  %s more"):format(format.plural(shown.count - #shown.places, "place")), "CursorAgentMore" } })
  end
  return b
end

---@return cursor_agent.decide.Hint[]
local function hints()
  return frame.hints("conflict", {
    { "conflict-mine", "keep mine" },
    { "conflict-theirs", "take the agent's" },
    { "conflict-both", "both, with markers" },
    { "decision-details", "side by side" },
    { "conflict-cancel", "answer as cancelled" },
    { "next-decision", "next" },
    { "decision-later", "later" },
  })
end

---The card of a conflict.
---@param decision cursor_agent.Decision
---@return cursor_agent.decide.Card
function M.card(decision)
  return {
    kind = "conflict",
    title = M.title(decision),
    short_title = decision.request and "Write over unsaved changes?" or "Changed on disk and here",
    hints = hints(),
    body = function(_, most)
      return body(decision, math.min(most or 400, 400))
    end,
  }
end

---What an answer means; the library reads it the same way.
---@param answer table
---@return "mine"|"theirs"|"both"|"cancel"
function M.choice(answer)
  if answer.cancel then
    return "cancel"
  end
  return answer.option or (answer.accept and "theirs" or "mine")
end

---@type table<integer, integer> windows with the user's text, by the buffer with the agent's beside it
local beside = {}

---Shows both texts side by side in a new tab page. The card's keys work in the agent's.
---@param decision cursor_agent.Decision
---@return integer? buf nil if there is no room
function M.details(decision)
  local conflict = conflicts.of(decision)
  if not conflict or not vim.api.nvim_buf_is_loaded(conflict.buf) then
    return nil
  end
  local buf, mine = require("cursor_agent.files").show_difference(conflict)
  if not buf or not mine then
    return nil
  end
  beside[buf] = mine
  vim.b[buf].cursor_agent_decision = decision.id
  vim.api.nvim_set_option_value("winbar", frame.bar(hints()), { win = 0, scope = "local" })
  -- A winbar on each, so that the lines stay level.
  vim.api.nvim_set_option_value("winbar", "%#CursorAgentKeyText# yours, unsaved", { win = mine, scope = "local" })
  require("cursor_agent.keys").map(buf, "conflict")
  return buf
end

---The buffer with the agent's text is being closed, and so is the window beside it.
---@param buf integer
function M.close(buf)
  local win = beside[buf]
  beside[buf] = nil
  if win and vim.api.nvim_win_is_valid(win) then
    -- If the text is shown nowhere else its buffer becomes hidden.
    pcall(vim.api.nvim_win_close, win, true)
  end
end

return M
