-- Cloud agents that work: followed by the companion program, and told of when they end or ask.

local client = require("cursor_agent.cloud.client")
local conversation = require("cursor_agent.cloud.conversation")
local events = require("cursor_agent.bridge.events")
local rows = require("cursor_agent.cloud.rows")

local M = {}

---@type table<string, cursor_agent.cloud.Row> what is watched
local watched = {}
---@type table<string, boolean> asked a question that was not answered yet
local asking = {}

---The waits before a program that ended by itself is started again; after the last, it is left alone.
local RESTARTS_MS = { 1000, 5000, 30000 }
local restarts = 0

---What is watched, in words; empty without anything.
---@return string
local function words()
  local count, questions = 0, vim.tbl_count(asking)
  for id in pairs(watched) do
    count = count + (asking[id] and 0 or 1)
  end
  local list = {} ---@type string[]
  if count > 0 then
    list[#list + 1] = ("%d running"):format(count)
  end
  if questions > 0 then
    list[#list + 1] = ("%d asking"):format(questions)
  end
  return #list > 0 and "cloud " .. table.concat(list, ", ") or ""
end

local function changed()
  events.emit("cloud watched", words())
end

local function tell_program()
  local ids = vim.tbl_keys(watched)
  table.sort(ids)
  if #ids > 0 or client.is_running() then
    client.request("watch", { ids = ids }, function() end)
  end
end

---Watches those of the rows that work; forgets those that do not.
---@param list cursor_agent.cloud.Row[]
function M.see(list)
  local different = false
  restarts = 0
  for _, row in ipairs(list) do
    local live = rows.state(row.state).live or false
    if live then
      different = different or watched[row.id] == nil or asking[row.id] ~= nil
      asking[row.id] = nil
      watched[row.id] = row
    elseif watched[row.id] and row.state ~= "loading" then
      -- The program reports its end.
      watched[row.id].state = row.state
    end
  end
  if different then
    tell_program()
    changed()
  end
end

---The program has ended by itself: it is started again for what is watched, a few times.
---@param message string why it ended
function M.gone(message)
  if next(watched) == nil then
    return
  end
  restarts = restarts + 1
  local wait = RESTARTS_MS[restarts]
  if wait then
    vim.defer_fn(function()
      if next(watched) ~= nil then
        tell_program()
      end
    end, wait)
    return
  end
  watched, asking, restarts = {}, {}, 0
  changed()
  require("cursor_agent.notify").notify(("stopped watching cloud agents. %s"):format(message), "warn")
end

---@param id string
function M.forget(id)
  asking[id] = nil
  if watched[id] then
    watched[id] = nil
    tell_program()
  end
  changed()
end

---@param row cursor_agent.cloud.Row
local function say_question(row)
  local format = require("cursor_agent.render.format")
  local question = format.first_line(vim.trim(row.result or ""):match("[^\n]*$") or "", 100)
  require("cursor_agent.decide.attention").say(("cloud agent “%s” asks: %s"):format(row.name, question), "warn")
end

---The user has opened the conversation: a question at the end of a run was seen. One in the middle of a run stays until it is answered.
---@param id string
function M.seen(id)
  if asking[id] and not watched[id] then
    asking[id] = nil
    changed()
  end
end

---A watched agent asks in the middle of its run.
---@param row cursor_agent.cloud.Row
function M.asked(row)
  if watched[row.id] then
    asking[row.id] = true
    changed()
    if not conversation.in_view(row.id) then
      say_question(row)
    end
  end
end

---A run of a watched agent has ended.
---@param params { row: cursor_agent.cloud.Row }
function M.ended(params)
  local row = params.row
  if not watched[row.id] then
    return
  end
  watched[row.id] = nil
  asking[row.id] = row.state == "asks" or nil
  tell_program()
  changed()
  -- A chat tells of its turns itself, of those that were begun elsewhere too.
  conversation.catch_up(row.id)
  local told = conversation.in_view(row.id) or (row.state ~= "asks" and conversation.chat(row.id) ~= nil)
  if row.state == "stopped" or told then
    return
  end
  local format = require("cursor_agent.render.format")
  local took = row.elapsed_ms and (" after " .. format.duration(row.elapsed_ms)) or ""
  local first = row.result and format.first_line(row.result, 100) or ""
  local attention = require("cursor_agent.decide.attention")
  if row.state == "asks" and row.result then
    say_question(row)
  elseif row.state == "finished" then
    attention.say(
      ("cloud agent “%s” finished%s%s"):format(row.name, took, first ~= "" and ": " .. first or ""),
      "info"
    )
  else
    local why = row.why and ": " .. format.first_line(row.why, 100) or ""
    attention.say(
      ("cloud agent “%s” ended%s (%s)%s"):format(row.name, took, rows.state(row.state).words, why),
      "error"
    )
  end
end

---It can no longer be followed.
---@param params { id: string, message: string }
function M.lost(params)
  local row = watched[params.id]
  if row then
    M.forget(params.id)
    require("cursor_agent.notify").notify(
      ("stopped watching the cloud agent “%s”. %s"):format(row.name, params.message),
      "warn"
    )
  end
end

return M
