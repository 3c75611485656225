-- Turns an entry of the transcript into lines and marks: a table in, a table out, no buffer touched.

local M = {}

---Entries whose text is written as it streams in, instead of being rendered as a block.
---@param kind string
---@return boolean
function M.streams(kind)
  return kind == "agent" or kind == "thought"
end

local WORDS = { agent = true, thought = true, user = true }

---Whether an empty line stands between two entries. Tool calls form a compact list, and so does what stands below a task,
---except that messages are told apart.
---@param above { kind: string, depth: integer }? the entry above
---@param kind string
---@param depth integer
---@return boolean
function M.gap(above, kind, depth)
  if not above then
    return false
  elseif depth > 0 then
    return above.depth == depth and WORDS[above.kind] == true and WORDS[kind] == true
  end
  local before = above.depth > 0 and "tool" or above.kind
  return not (before == "tool" and kind == "tool")
end

---@param entry cursor_agent.Entry
---@param context cursor_agent.render.Context
---@return cursor_agent.render.Block
function M.entry(entry, context)
  if entry.kind == "tool" then
    return require("cursor_agent.render.tool").render(entry, context)
  elseif entry.kind == "plan" then
    return require("cursor_agent.render.todos").render(entry, context)
  elseif entry.kind == "user" then
    return require("cursor_agent.render.message").prompt(entry, context)
  end
  return require("cursor_agent.render.notice").render(entry, context)
end

return M
