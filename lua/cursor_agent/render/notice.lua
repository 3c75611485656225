-- Draws what neither side said: the end of a turn, an error, a policy's answer, an update nobody knows.

local format = require("cursor_agent.render.format")
local render = require("cursor_agent.render")

local M = {}

---Why a turn ended, in words.
local STOPPED = {
  cancelled = "cancelled",
  max_tokens = "the model ran out of tokens",
  max_turn_requests = "too many requests in one turn",
  refusal = "the model refused",
}

---@param entry cursor_agent.Entry
---@param context cursor_agent.render.Context
---@return cursor_agent.render.Block
local function turn_end(entry, context)
  local b = render.builder()
  local words = {} ---@type string[]
  local reason = entry.stop_reason
  local usual = reason == nil or reason == "end_turn"
  if not usual then
    words[1] = STOPPED[reason] or reason
  elseif entry.text ~= "" then
    words[1] = format.first_line(entry.text, 200)
  end
  if entry.duration_ms then
    words[#words + 1] = format.duration(entry.duration_ms)
  end
  if entry.tokens then
    words[#words + 1] = format.count(entry.tokens) .. " tokens"
  end
  local rule = context.icons.rule
  local hl = usual and "CursorAgentRule" or "CursorAgentStopped"
  local row = b:line({
    { rule:rep(2) .. " ", "CursorAgentRule" },
    { table.concat(words, " · "), hl },
  })
  -- Neovim cuts what does not fit, so the rule ends at the window's edge whatever its width.
  b:mark(row, 0, { virt_text = { { rule:rep(400), "CursorAgentRule" } }, virt_text_pos = "eol" })
  return b
end

---@param entry cursor_agent.Entry
---@param context cursor_agent.render.Context
---@return cursor_agent.render.Block
function M.render(entry, context)
  if entry.notice == "turn_end" then
    return turn_end(entry, context)
  end
  local b = render.builder()
  local level = entry.level or "info"
  local hl = level == "error" and "CursorAgentError" or level == "warning" and "CursorAgentWarning" or "CursorAgentInfo"
  local icon = context.icons[level] or context.icons.info
  local nested = entry.parent and "  " or ""
  local lines = vim.split(entry.text, "\r?\n")
  for i, line in ipairs(lines) do
    local lead = i == 1 and icon .. " " or line:find("^%s") and "" or "  "
    b:line({ { nested .. lead, hl }, { line, hl } })
  end
  return b
end

return M
