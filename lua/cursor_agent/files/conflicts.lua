-- Files with both unsaved text and a different text from an agent: listed here, and shown to the user as decisions.

local bridge = require("cursor_agent.bridge")

local M = {}

---@class (exact) cursor_agent.Conflict a file whose buffer has unsaved text an agent's text does not know of
---@field path string
---@field buf integer
---@field theirs string[]
---@field text string the same as one string, each line with its line ending
---@field eol boolean whether the agent's text ends in a newline
---@field basis string? what the agent's text was based on
---@field disk cursor_agent.loaded.Disk? what is on disk, if that is the agent's text
---@field request integer? the agent's request that is waiting for the answer
---@field what cursor_agent.EditorRequest? what it asked for
---@field key cursor_agent.Key? in which session
---@field again fun()? serves the request again from the start
---@field quiet boolean? the user was told about it just now
---@field decision integer? the decision about it, if no agent is waiting
---@field shown { tick: integer, text: string, places: cursor_agent.MergePlace[]?, count: integer }? where they collide

---@type cursor_agent.Conflict[] oldest first
M.list = {}

---Updates the line above each prompt that names the file in conflict.
function M.refresh()
  for _, chat in ipairs(require("cursor_agent.chat.registry").all()) do
    chat.prompt:refresh()
  end
end

---@param buf integer
---@return boolean
function M.has(buf)
  for _, conflict in ipairs(M.list) do
    if conflict.buf == buf then
      return true
    end
  end
  return false
end

---A buffer's conflict with the disk.
---@param buf integer
---@return cursor_agent.Conflict?
function M.on_disk(buf)
  for _, conflict in ipairs(M.list) do
    if conflict.buf == buf and not conflict.request then
      return conflict
    end
  end
end

---The conflict a decision is about.
---@param decision { id: integer, request: integer? }
---@return cursor_agent.Conflict?
function M.of(decision)
  for _, conflict in ipairs(M.list) do
    if conflict.decision == decision.id or (conflict.request and conflict.request == decision.request) then
      return conflict
    end
  end
end

---The conflict of a waiting request.
---@param request integer
---@return cursor_agent.Conflict?
function M.waiting(request)
  for _, conflict in ipairs(M.list) do
    if conflict.request == request then
      return conflict
    end
  end
end

---Removes a conflict from the list. A decision about it that no agent waits for is withdrawn.
---@param conflict cursor_agent.Conflict
function M.drop(conflict)
  for i, other in ipairs(M.list) do
    if other == conflict then
      table.remove(M.list, i)
      break
    end
  end
  local ready = conflict.decision and bridge.is_loaded()
  if ready and conflict.decision then
    bridge.conflict_over(conflict.decision)
    conflict.decision = nil
  end
  M.refresh()
end

---Ends a buffer's conflict with the disk.
---@param buf integer
function M.drop_on_disk(buf)
  local conflict = M.on_disk(buf)
  if conflict then
    M.drop(conflict)
  end
end

---Ends a conflict when the user discards the unsaved text some other way, with `:bdelete!` or `:edit!`.
---@param conflict cursor_agent.Conflict
function M.follow(conflict)
  local buf = conflict.buf
  vim.api.nvim_create_autocmd("BufUnload", {
    buffer = buf,
    desc = "cursor-agent: drop a conflict whose buffer is gone",
    callback = vim.schedule_wrap(function()
      local is_loaded = vim.api.nvim_buf_is_loaded(buf)
      if not vim.tbl_contains(M.list, conflict) or (is_loaded and vim.bo[buf].modified) then
        return
      end
      M.drop(conflict)
      if conflict.again then
        conflict.again()
      end
    end),
  })
end

---The chat that should ask about a file that changed on disk: the one that reported it, one working there, or the
---current one.
---@param path string
---@param chat cursor_agent.Chat?
---@return cursor_agent.Chat?
local function asker(path, chat)
  if chat then
    return chat
  end
  local chats = require("cursor_agent.chat.registry")
  for _, other in ipairs(chats.all()) do
    local state = other.status.state
    if (state == "running" or state == "waiting") and vim.startswith(path, other.cwd .. "/") then
      return other
    end
  end
  return chats.current() or chats.all()[1]
end

---Asks the user about a conflict.
---@param conflict cursor_agent.Conflict
---@param chat cursor_agent.Chat?
---@return boolean asked
function M.ask(conflict, chat)
  local ready = bridge.is_loaded()
  if not ready then
    return false
  end
  if conflict.request then
    bridge.reply(conflict.request, { ok = false, ask = true })
    return true
  end
  local found = asker(conflict.path, chat)
  conflict.decision = found and bridge.conflict(found.key, conflict.path) or nil
  return conflict.decision ~= nil
end

---Adds a conflict and asks the user about it.
---@param conflict cursor_agent.Conflict
---@param chat cursor_agent.Chat?
---@return boolean asked
function M.add(conflict, chat)
  table.insert(M.list, conflict)
  local asked = M.ask(conflict, chat)
  M.refresh()
  return asked
end

---A decision ended without an answer: the conflict with the disk remains, and `:CursorAgent conflicts` asks again.
---@param id integer
function M.ended(id)
  for _, conflict in ipairs(M.list) do
    if conflict.decision == id then
      conflict.decision = nil
    end
  end
end

---The decision about a conflict, even if its change has not been drained yet.
---@param conflict cursor_agent.Conflict
---@return cursor_agent.Decision?
function M.decision(conflict)
  local ready = bridge.is_loaded()
  for _, decision in ipairs(ready and bridge.pending() or {}) do
    if decision.kind == "conflict" and M.of(decision) == conflict then
      return decision
    end
  end
end

return M
