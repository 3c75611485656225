-- What the agent of each session takes a file to have.

local M = {}

---@type table<cursor_agent.Key, table<integer, string>> by session and buffer
local texts = {}

---Takes note of the whole text an agent was given or has written. A part of it, or what another one read, is no ground to
---replace all of it.
---@param key cursor_agent.Key?
---@param buf integer
---@param text string each line with its end
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
