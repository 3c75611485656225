-- What each session's agent believes a file contains.

local M = {}

---@type table<cursor_agent.Key, table<integer, string>> by session and buffer
local texts = {}

---Records the whole text an agent was given or has written. Having read a part, or another agent's read, does not
---entitle it to replace the whole file.
---@param key cursor_agent.Key?
---@param buf integer
---@param text string each line with its line ending
function M.note(key, buf, text)
  if key then
    texts[key] = texts[key] or {}
    texts[key][buf] = text
  end
end

---@param key cursor_agent.Key?
---@param buf integer
---@return string?
function M.text(key, buf)
  return texts[key] and texts[key][buf]
end

return M
