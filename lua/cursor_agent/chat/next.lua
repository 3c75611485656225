-- The mode and model for new chats, chosen while there is no session to set them in.

local M = {}

---Cursor's modes, available in every session.
M.CURSOR_MODES = {
  { id = "agent", name = "Agent", description = "Full agent capabilities with tool access" },
  { id = "plan", name = "Plan", description = "Plans before it changes anything" },
  { id = "ask", name = "Ask", description = "Answers, and changes nothing" },
}

---@class (exact) cursor_agent.next.Choice
---@field mode string?
---@field model string?

---@type table<string, cursor_agent.next.Choice> by agent
local chosen = {}

---@type table<string, { id: string, name: string, description: string? }[]> by agent, as its CLI listed them
local listed = {}

---What was chosen for new chats with an agent.
---@param agent string
---@return cursor_agent.next.Choice
function M.get(agent)
  return chosen[agent] or {}
end

---Chooses for new chats with an agent.
---@param agent string
---@param what "mode"|"model"
---@param id string
function M.set(agent, what, id)
  chosen[agent] = chosen[agent] or {}
  chosen[agent][what] = id
end

---The models an agent's CLI listed, if it has been asked.
---@param agent string
---@return { id: string, name: string, description: string? }[]?
function M.models(agent)
  return listed[agent]
end

---Reads what `agent models` printed: lines of `id - Name`, one marked as the default.
---@param agent string
---@param output string
---@return { id: string, name: string, description: string? }[]
function M.read_models(agent, output)
  local models = {} ---@type { id: string, name: string, description: string? }[]
  for line in vim.gsplit(output, "\n", { plain = true }) do
    local id, name = vim.trim(line:gsub("\27%[[%d;]*m", "")):match("^(%S+)%s+%-%s+(.+)$")
    if id and name then
      local plain, mark = name:match("^(.-)%s+%(([^()]*)%)$")
      models[#models + 1] = { id = id, name = plain or name, description = mark }
    end
  end
  if #models > 0 then
    listed[agent] = models
  end
  return models
end

return M
