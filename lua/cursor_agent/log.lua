-- The messages exchanged with an agent, in a buffer to read, search and save.

local native = require("cursor_agent.native")

local M = {}

---@param chat cursor_agent.Chat
---@param method? string only messages of this method
---@return boolean?, string?
function M.open(chat, method)
  local library, why = native.get()
  if not library then
    return nil, why
  end
  local lines = library.log(chat.key, method ~= "" and method or nil)
  if #lines == 0 then
    return nil, "nothing was exchanged with the agent yet"
  end
  -- One message is one line of the buffer, whatever it holds.
  for i, line in ipairs(lines) do
    lines[i] = line:gsub("\n", " ")
  end
  require("cursor_agent.scratch").open(lines, {
    name = ("%d/log.jsonl"):format(chat.key),
    filetype = "json",
    modifiable = true,
  })
  return true
end

return M
