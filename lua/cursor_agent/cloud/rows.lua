-- A cloud agent as a line of the dashboard, the totals, and the filters. Pure.

local format = require("cursor_agent.render.format")

local M = {}

---@class (exact) cursor_agent.cloud.State
---@field words string
---@field icon string of the chat's icons
---@field group string
---@field live boolean? it works

---@type table<string, cursor_agent.cloud.State>
M.states = {
  creating = { words = "creating", icon = "running", group = "CursorAgentRunning", live = true },
  running = { words = "running", icon = "running", group = "CursorAgentRunning", live = true },
  asks = { words = "asks", icon = "waiting", group = "CursorAgentWaiting" },
  finished = { words = "finished", icon = "done", group = "CursorAgentDone" },
  error = { words = "error", icon = "failed", group = "CursorAgentFailed" },
  stopped = { words = "stopped", icon = "cancelled", group = "CursorAgentCancelled" },
  expired = { words = "expired", icon = "failed", group = "CursorAgentFailed" },
  loading = { words = "…", icon = "pending", group = "CursorAgentPending" },
  active = { words = "active", icon = "pending", group = "CursorAgentPending" },
  idle = { words = "idle", icon = "pending", group = "CursorAgentPending" },
}

---The order of the totals, and of the choice of a filter.
M.order = { "running", "creating", "asks", "finished", "error", "stopped", "expired", "active", "idle" }

---@param state string
---@return cursor_agent.cloud.State
function M.state(state)
  return M.states[state] or { words = state, icon = "pending", group = "CursorAgentPending" }
end

---How long ago, in one word.
---@param ms number?
---@return string
function M.age(ms)
  if not ms then
    return ""
  end
  local minutes = math.floor(math.max(ms, 0) / 60000)
  if minutes < 1 then
    return "now"
  elseif minutes < 60 then
    return minutes .. "m"
  elseif minutes < 48 * 60 then
    return math.floor(minutes / 60) .. "h"
  end
  return math.floor(minutes / 1440) .. "d"
end

---The branch, the pull request, or why it failed.
---@param row cursor_agent.cloud.Row
---@return string
function M.where(row)
  if row.why then
    return (row.why:gsub("%s+", " "))
  end
  local number = row.pr and row.pr:match("/(%d+)/?$")
  local pr = row.pr and (number and "PR #" .. number or "PR") or nil
  if pr and row.branch then
    return pr .. " " .. row.branch
  end
  return pr or row.branch or (row.ref and "from " .. row.ref) or ""
end

---@param text string
---@param cells integer
---@return string
local function cell(text, cells)
  text = text:gsub("[%c]", " ")
  if format.width(text) > cells then
    text = format.first_cells(text, cells - 1) .. "…"
  end
  return text .. (" "):rep(cells - format.width(text))
end

---How wide the columns are whose width depends on the window.
---@param width integer of the window
---@param widest integer the longest name of a repository
---@return integer name
---@return integer repo
---@return integer place
local function columns(width, widest)
  local repo = math.max(math.min(widest, math.max(math.floor(width * 0.22), 15)), 10)
  -- What is left for the name and the place, after the other columns.
  local room = math.max(width - 29 - repo, 28)
  local name = math.max(math.floor(room * 0.5), 14)
  return name, repo, math.max(room - name, 12)
end

---What stands above the columns.
---@param width integer of the window
---@param widest integer the longest name of a repository
---@return string
function M.titles(width, widest)
  local name, repo, place = columns(width, widest)
  return ("   %s %s %s %s %4s  %7s"):format(
    cell("state", 9),
    cell("name", name),
    cell("repository", repo),
    cell("pull request, branch", place),
    "age",
    "time"
  )
end

---@class (exact) cursor_agent.cloud.Spot
---@field from integer bytes
---@field to integer
---@field group string

---The line of an agent, and what is coloured in it.
---@param row cursor_agent.cloud.Row
---@param width integer of the window
---@param now_ms number by the server's clock
---@param icons cursor_agent.Icons
---@param widest integer the longest name of a repository
---@return string line
---@return cursor_agent.cloud.Spot[] spots
function M.line(row, width, now_ms, icons, widest)
  local state = M.state(row.state)
  local name_cells, repo_cells, place_cells = columns(width, widest)
  local elapsed = row.elapsed_ms
  if state.live and row.started_ms then
    elapsed = math.max(now_ms - row.started_ms, 0)
  end
  local parts = {
    { " " .. cell(icons[state.icon] or " ", 2), state.group },
    { cell(state.words, 9) .. " ", state.group },
    { cell(row.archived and row.name .. " (archived)" or row.name, name_cells) .. " ", "CursorAgentToolTitle" },
    { cell(row.repo or "", repo_cells) .. " ", "CursorAgentPath" },
    { cell(M.where(row), place_cells) .. " ", row.why and "CursorAgentError" or "CursorAgentDetail" },
    { ("%4s"):format(M.age(row.created_ms and now_ms - row.created_ms)), "CursorAgentDetail" },
  }
  if elapsed then
    parts[#parts + 1] = { ("  %7s"):format(format.clock(elapsed)), "CursorAgentDetail" }
  end
  local line, spots = "", {} ---@type string, cursor_agent.cloud.Spot[]
  for _, part in ipairs(parts) do
    spots[#spots + 1] = { from = #line, to = #line + #part[1], group = part[2] }
    line = line .. part[1]
  end
  return line, spots
end

---@class (exact) cursor_agent.cloud.Filter
---@field state? string
---@field repo? string
---@field text? string

---@param row cursor_agent.cloud.Row
---@param filter cursor_agent.cloud.Filter
---@return boolean
function M.matches(row, filter)
  if filter.state and row.state ~= filter.state and not (filter.state == "running" and row.state == "creating") then
    return false
  elseif filter.repo and row.repo ~= filter.repo then
    return false
  elseif filter.text then
    local all = table.concat({ row.name, row.repo or "", row.branch or "", row.pr or "", row.why or "", row.id }, "\n")
    return all:lower():find(filter.text:lower(), 1, true) ~= nil
  end
  return true
end

---@param filter cursor_agent.cloud.Filter
---@return string
function M.filter_words(filter)
  local words = {} ---@type string[]
  for _, word in ipairs({
    filter.state or false,
    filter.repo or false,
    filter.text and "“" .. filter.text .. "”" or false,
  }) do
    words[#words + 1] = word or nil
  end
  return #words > 0 and table.concat(words, ", ") or "all"
end

---How many are in each state, in words.
---@param list cursor_agent.cloud.Row[]
---@return string
function M.totals(list)
  local counts = {} ---@type table<string, integer>
  for _, row in ipairs(list) do
    counts[row.state] = (counts[row.state] or 0) + 1
  end
  local words = {} ---@type string[]
  for _, state in ipairs(M.order) do
    if counts[state] then
      words[#words + 1] = ("%d %s"):format(counts[state], M.states[state].words)
    end
  end
  return #words > 0 and table.concat(words, " · ") or "none"
end

return M
