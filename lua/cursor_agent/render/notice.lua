-- Draws notices: the end of a turn, an error, a rule's answer, an unknown update.

local format = require("cursor_agent.render.format")
local blocks = require("cursor_agent.render.block")

local M = {}

---The lines of a notice. Each command has one to itself: within a line that wraps, Neovim would break it after its colon.
---@param text string
---@return string[]
local function lines_of(text)
  local lines = {} ---@type string[]
  for _, line in ipairs(vim.split(vim.trim(text), "\r?\n")) do
    local parted = line:gsub(" · (:%a)", "\n  %1"):gsub("; (:%u)", "\n  %1")
    parted = parted:gsub("([^%s])[ ]+([(`\"']?:CursorAgent)", "%1\n  %2")
    vim.list_extend(lines, vim.split(parted, "\n"))
  end
  return lines
end

---@param b cursor_agent.render.Builder
---@param entry cursor_agent.Entry
---@param context cursor_agent.render.Context
local function add_text(b, entry, context)
  local level = entry.level or "info"
  local hl = level == "error" and "CursorAgentError" or level == "warning" and "CursorAgentWarning" or "CursorAgentInfo"
  local icon = context.icons[level] or context.icons.info
  local nested = blocks.indent(entry)
  for i, line in ipairs(lines_of(entry.text)) do
    local lead = i == 1 and icon .. " " or line:find("^%s") and "" or "  "
    b:line({ { nested .. lead, hl }, { line, hl } })
  end
end

---A rule across the window, with why the turn ended, how long it took and what it used.
---@param b cursor_agent.render.Builder
---@param entry cursor_agent.Entry
---@param context cursor_agent.render.Context
local function add_rule(b, entry, context)
  local failed = entry.level == "error"
  local words = { failed and "failed" or format.first_line(entry.text, 120) }
  if entry.duration_ms and entry.duration_ms >= format.SHOWN_MS then
    words[#words + 1] = format.duration(entry.duration_ms)
  end
  if entry.tokens then
    words[#words + 1] = format.count(entry.tokens) .. " tokens"
  end
  local rule = context.icons.rule
  local row = b:line({
    { rule:rep(2) .. " ", "CursorAgentRule" },
    { table.concat(words, " · "), failed and "CursorAgentError" or "CursorAgentStopped" },
  })
  -- Neovim cuts what does not fit, so the rule ends at the window's edge whatever its width.
  b:mark(row, 0, { virt_text = { { rule:rep(400), "CursorAgentRule" } }, virt_text_pos = "eol" })
end

---@param entry cursor_agent.Entry
---@param context cursor_agent.render.Context
---@return cursor_agent.render.Block
function M.render(entry, context)
  local b = blocks.builder()
  if entry.notice ~= "turn_end" or entry.level == "error" then
    add_text(b, entry, context)
  end
  if entry.notice == "turn_end" then
    add_rule(b, entry, context)
  end
  return b
end

return M
