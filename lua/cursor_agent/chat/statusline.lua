-- A short text about the current chat for the user's own statusline.

local chats = require("cursor_agent.chat.registry")
local clock = require("cursor_agent.bridge.clock")
local format = require("cursor_agent.render.format")

local M = {}

local used = false

---The text about cloud agents.
local cloud = ""

---Cheap enough for every redraw: it only reads the last status.
---@return string
function M.text()
  used = true
  local chat = chats.current()
  if not chat then
    return cloud
  end
  local status = chat.status
  local words = { require("cursor_agent.config").agent_title(chat.agent) }
  if status.state == "running" or status.state == "waiting" then
    local now = clock.now_ms()
    words[#words + 1] = format.clock(now - (status.turn_started_ms or now))
  elseif status.state ~= "idle" then
    words[#words + 1] = status.state
  end
  if (status.pending or 0) > 0 then
    words[#words + 1] = status.pending .. " waiting"
  end
  if (status.queued or 0) > 0 then
    words[#words + 1] = status.queued .. " queued"
  end
  local done, all = require("cursor_agent.render.todos").progress(status.todos or {})
  if all > 0 then
    words[#words + 1] = ("%d/%d"):format(done, all)
  end
  if cloud ~= "" then
    words[#words + 1] = cloud
  end
  return table.concat(words, " ")
end

---@param words string about the cloud agents that work or ask; empty for none
function M.set_cloud(words)
  cloud = words
  M.redraw()
end

---Redraws statuslines if one shows this text.
function M.redraw()
  if used then
    vim.cmd.redrawstatus({ bang = true })
  end
end

return M
