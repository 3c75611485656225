-- The list of keys `g?` shows, made from the table of actions.

local keymaps = require("cursor_agent.keys")
local list = require("cursor_agent.keys.list")
local scratch = require("cursor_agent.window.scratch")

local M = {}

local NS = vim.api.nvim_create_namespace("cursor_agent_help")

---@type { kind: cursor_agent.BufferKind, title: string }[]
local SECTIONS = {
  { kind = "waiting", title = "Anywhere, while a decision is on the screen" },
  { kind = "chat", title = "In the chat" },
  { kind = "prompt", title = "In the prompt" },
  { kind = "queue", title = "In the list of queued prompts" },
  { kind = "permission", title = "On a permission card" },
  { kind = "question", title = "On a question card" },
  { kind = "conflict", title = "On the card of a conflict with unsaved text" },
  { kind = "plan-card", title = "On a plan's card" },
  { kind = "plan", title = "In a plan" },
  { kind = "todos", title = "In the todos" },
  { kind = "log", title = "In the log" },
  { kind = "reader", title = "In a tool's output, an explanation or an export" },
  { kind = "subagent", title = "In a subagent's buffer" },
  { kind = "review", title = "In the list of changes" },
  { kind = "mcp", title = "In the list of MCP servers" },
  { kind = "cloud", title = "In the list of cloud agents" },
  { kind = "code", title = "In a file with changes to review" },
  { kind = "global", title = "Anywhere" },
}

---Keys in readable form: a run of digits becomes one range, which fits the column.
---@param keys string[]
---@return string
local function words(keys)
  local digits = #keys > 2 and table.concat(keys):match("^%d+$")
  return digits and ("%s-%s"):format(keys[1], keys[#keys]) or table.concat(keys, " ")
end

---The actions of a kind of buffer in the order they are listed. Where they are few, those of every window come last, or
---are left out.
---@param kind cursor_agent.BufferKind
---@param is_here boolean it is the kind of the current window
---@return cursor_agent.Action[]
local function actions_of(kind, is_here)
  if kind == "chat" or kind == "prompt" or kind == "global" then
    return list
  end
  local own, shared = {}, {} ---@type cursor_agent.Action[], cursor_agent.Action[]
  for _, action in ipairs(list) do
    if not action.shared then
      own[#own + 1] = action
    elseif is_here then
      table.insert(shared, action.name == "help" and 1 or #shared + 1, action)
    end
  end
  return vim.list_extend(own, shared)
end

---@class (exact) cursor_agent.help.Mark
---@field bytes integer of the line's beginning
---@field hl string

---@param kind? cursor_agent.BufferKind list the keys of the current window first
---@return string[] lines
---@return table<integer, cursor_agent.help.Mark> marks by line
function M.lines(kind)
  local sections, rest = {}, {} ---@type { kind: cursor_agent.BufferKind, title: string }[]
  for _, section in ipairs(SECTIONS) do
    if section.kind ~= "global" or require("cursor_agent.config").get().keymaps.global then
      table.insert(section.kind == kind and sections or rest, section)
    end
  end
  local lines, marks = {}, {} ---@type string[], table<integer, cursor_agent.help.Mark>
  local function add(keys, about)
    lines[#lines + 1] = ("   %-13s %s "):format(keys, about)
    marks[#lines] = { bytes = 3 + #keys, hl = "CursorAgentHelpKey" }
  end
  for _, section in ipairs(vim.list_extend(sections, rest)) do
    if #lines > 0 then
      lines[#lines + 1] = ""
    end
    lines[#lines + 1] = " " .. section.title
    marks[#lines] = { bytes = 1 + #section.title, hl = "CursorAgentHelpTitle" }
    for _, action in ipairs(actions_of(section.kind, section.kind == kind)) do
      local keys = keymaps.keys(action, section.kind)
      if #keys > 0 then
        local modes = keymaps.modes(action, section.kind)
        local where = vim.list_contains(modes, "i") and action.name ~= "send" and " (Insert mode too)" or ""
        add(words(keys), action.desc .. where)
      end
    end
  end
  vim.list_extend(
    lines,
    { "", " za zo zc zR zM work on folds · every action has a <Plug>(cursor-agent-…) · q closes " }
  )
  return lines, marks
end

---@param kind? cursor_agent.BufferKind of the current window, where its buffer does not say so
function M.open(kind)
  if vim.bo.filetype == "cursoragent-help" then
    return
  end
  require("cursor_agent.colour.highlights").setup()
  local lines, marks = M.lines(kind or vim.b.cursor_agent_kind)
  local buf = scratch.open(lines, { name = "keys", filetype = "cursoragent-help", float = true })
  for line, mark in pairs(marks) do
    vim.api.nvim_buf_set_extmark(buf, NS, line - 1, 0, { end_col = mark.bytes, hl_group = mark.hl })
  end
end

return M
