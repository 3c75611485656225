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
  { kind = "log", title = "In the log" },
  { kind = "reader", title = "In an output, an explanation or an export" },
  { kind = "review", title = "In the list of changes" },
}

---What Neovim itself has for a window of ours that is one of its own.
---@type table<cursor_agent.BufferKind, { [1]: string, [2]: string }[]>
local NEOVIMS = {
  review = {
    { "<CR>", "Go to the change" },
    { ":cnext :cprev", "Next and previous change, from anywhere" },
    { ":cclose", "Close the list" },
  },
}

---Keys as a person lists them: the digits in a row are one word, which fits into the column.
---@param keys string[]
---@return string
local function words(keys)
  local digits = #keys > 2 and table.concat(keys):match("^%d+$")
  return digits and ("%s-%s"):format(keys[1], keys[#keys]) or table.concat(keys, " ")
end

---@param kind? cursor_agent.BufferKind whose keys come first: those of the window one is in
---@return string[]
function M.lines(kind)
  local sections, rest = {}, {} ---@type { kind: cursor_agent.BufferKind, title: string }[]
  for _, section in ipairs(SECTIONS) do
    table.insert(section.kind == kind and sections or rest, section)
  end
  local lines = {} ---@type string[]
  for _, section in ipairs(vim.list_extend(sections, rest)) do
    if #lines > 0 then
      lines[#lines + 1] = ""
    end
    lines[#lines + 1] = " " .. section.title
    for _, key in ipairs(NEOVIMS[section.kind] or {}) do
      lines[#lines + 1] = ("   %-13s %s "):format(key[1], key[2])
    end
    for _, action in ipairs(actions.list) do
      local keys = actions.keys(action, section.kind)
      if #keys > 0 then
        local modes = actions.modes(action, section.kind)
        local where = vim.list_contains(modes, "i") and action.name ~= "send" and " (Insert mode too)" or ""
        lines[#lines + 1] = ("   %-13s %s%s "):format(words(keys), action.desc, where)
      end
    end
  end
  vim.list_extend(
    lines,
    { "", " za zo zc zR zM work on folds · every action has a <Plug>(cursor-agent-…) · q closes " }
  )
  return lines
end

---@param kind? cursor_agent.BufferKind of the window one is in, where its buffer does not say so
function M.open(kind)
  if vim.bo.filetype == "cursoragent-help" then
    return
  end
  scratch.open(M.lines(kind or vim.b.cursor_agent_kind), { name = "keys", filetype = "cursoragent-help", float = true })
end

return M
