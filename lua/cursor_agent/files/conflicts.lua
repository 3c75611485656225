-- Files with both unsaved text and another text of an agent's: listed here, put before the user as decisions.

local bridge = require("cursor_agent.bridge")

local M = {}

---@class (exact) cursor_agent.Conflict a file whose buffer has unsaved text an agent's text does not know of
---@field path string
---@field buf integer
---@field theirs string[]
---@field text string the same as one text, each line with its end
---@field eol boolean whether the agent's text ends in a newline
---@field basis string? what the agent's text was made from
---@field disk cursor_agent.loaded.Disk? what is on disk, when that is the agent's text
---@field request integer? the agent waits for the answer
---@field what cursor_agent.EditorRequest? what it has asked for
---@field key cursor_agent.Key? in which session
---@field again fun()? has the request served from the start
---@field quiet boolean? the user has just been told of it
---@field decision integer? the decision about it, where no agent waits
---@field shown { tick: integer, text: string, places: cursor_agent.MergePlace[]?, count: integer }? where they collide

---@type cursor_agent.Conflict[] oldest first
M.list = {}

---Has the line above each prompt say which file is in conflict.
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

---The conflict of a buffer with what is on disk.
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

---The conflict of a request that waits.
---@param request integer
---@return cursor_agent.Conflict?
function M.waiting(request)
  for _, conflict in ipairs(M.list) do
    if conflict.request == request then
      return conflict
    end
  end
end

---Takes a conflict off the list. A decision about it that no agent waits for goes with it.
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

---Ends the conflict of a buffer with what is on disk.
---@param buf integer
function M.drop_on_disk(buf)
  local conflict = M.on_disk(buf)
  if conflict then
    M.drop(conflict)
  end
end

---Ends a conflict when the user lets go of the unsaved text otherwise, by `:bdelete!` or `:edit!`.
---@param conflict cursor_agent.Conflict
function M.follow(conflict)
  local buf = conflict.buf
  vim.api.nvim_create_autocmd("BufUnload", {
    buffer = buf,
    desc = "cursor-agent: drop a conflict whose unsaved text is gone",
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

---Which chat is to ask about a file that changed on disk: the one that said so, one at work there, the current one.
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

---Puts a conflict before the user.
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

---Adds a conflict and puts it before the user.
---@param conflict cursor_agent.Conflict
---@param chat cursor_agent.Chat?
---@return boolean asked
function M.add(conflict, chat)
  table.insert(M.list, conflict)
  local asked = M.ask(conflict, chat)
  M.refresh()
  return asked
end

---A decision ended without an answer: what is on disk goes on being in conflict, and `:CursorAgent conflicts` asks again.
---@param id integer
function M.ended(id)
  for _, conflict in ipairs(M.list) do
    if conflict.decision == id then
      conflict.decision = nil
    end
  end
end

---The decision about a conflict, which may not have been told of yet.
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
