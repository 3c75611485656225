-- The list of keys `g?` shows, made from the table of actions.

local actions = require("cursor_agent.actions")
local scratch = require("cursor_agent.scratch")

local M = {}

---@type { kind: cursor_agent.BufferKind, title: string }[]
local SECTIONS = {
  { kind = "chat", title = "In the chat" },
  { kind = "prompt", title = "In the prompt" },
  { kind = "queue", title = "In the list of queued prompts" },
  { kind = "permission", title = "In a permission" },
  { kind = "question", title = "In a question" },
  { kind = "plan-card", title = "In the card of a plan" },
  { kind = "plan", title = "In a plan" },
  { kind = "todos", title = "In the todos" },
}

---@return string[]
function M.lines()
  local lines = {} ---@type string[]
  for _, section in ipairs(SECTIONS) do
    if #lines > 0 then
      lines[#lines + 1] = ""
    end
    lines[#lines + 1] = " " .. section.title
    for _, action in ipairs(actions.list) do
      local keys = actions.keys(action, section.kind)
      if #keys > 0 then
        local modes = actions.modes(action, section.kind)
        local where = vim.list_contains(modes, "i") and action.name ~= "send" and " (Insert mode too)" or ""
        lines[#lines + 1] = ("   %-13s %s%s "):format(table.concat(keys, " "), action.desc, where)
      end
    end
  end
  vim.list_extend(
    lines,
    { "", " za zo zc zR zM work on folds · every action has a <Plug>(cursor-agent-…) · q closes " }
  )
  return lines
end

function M.open()
  scratch.open(M.lines(), { name = "keys", filetype = "cursoragent-help", float = true })
end

return M
