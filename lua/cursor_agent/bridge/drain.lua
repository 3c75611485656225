-- Drains changes from the library and dispatches them to subscribers, a few milliseconds at a time.

local events = require("cursor_agent.bridge.events")
local native = require("cursor_agent.bridge.native")

local M = {}

---Work per turn of the event loop. More would be noticeable while typing.
local BUDGET_NS = 3e6

---Bytes taken from the library at a time. Building the tables takes time too, and cannot be interrupted.
local BATCH_BYTES = 4 * 1024

local taken = {} ---@type cursor_agent.Change[] taken and not dealt with yet
local at = 1 ---@type integer the next of them
local more = false ---@type boolean there is more in the library
local again ---@type uv.uv_timer_t?

---@type table<integer, fun(ok: boolean, value: any)> who waits for a result
local waiting = {}

---Calls back with the answer to a numbered request to the library.
---@param id integer
---@param callback fun(ok: boolean, value: any)
function M.await(id, callback)
  waiting[id] = callback
end

---The fields of each kind of change that are passed to subscribers, in this order.
---@type table<string, string[]>
local TELLS = {
  append = { "key", "entry", "text" },
  entry = { "key", "entry", "data" },
  status = { "key", "data" },
  decision = { "data" },
  decided = { "id", "how" },
  editor = { "id", "request", "key" },
  withdrawn = { "id" },
  edited = { "path", "key" },
  reviewed = { "paths" },
  notify = { "message", "level" },
}

---@param change cursor_agent.Change
local function dispatch(change)
  if change.type == "result" then
    local callback = waiting[change.id]
    waiting[change.id] = nil
    if callback then
      events.protect("result", callback, change.ok, change.value)
    end
  elseif change.type == "event" then
    events.protect("event", events.fire, change.name --[[@as string]], change.data)
  elseif TELLS[change.type] then
    local first, second, third = unpack(TELLS[change.type])
    events.emit(change.type, change[first], change[second], change[third])
  end
end

---@return cursor_agent.Change?
local function next_change()
  if at > #taken then
    local library = native.peek()
    if not library then
      return nil
    end
    taken, more = library.drain(BATCH_BYTES)
    at = 1
  end
  -- Removed before it is handled: a callback may run the event loop and drain what follows.
  local change = taken[at]
  at = at + 1
  return change
end

---Drops a session's entries that were drained but not handled yet: the library is about to send them again.
---@param key cursor_agent.Key
function M.forget_entries(key)
  local left = {} ---@type cursor_agent.Change[]
  for i = at, #taken do
    local change = taken[i]
    if change.key ~= key or (change.type ~= "append" and change.type ~= "entry") then
      left[#left + 1] = change
    end
  end
  taken, at = left, 1
end

---Whether there is more to handle: what is on the screen is about to change.
---@return boolean
function M.is_behind()
  return at <= #taken or more
end

local stopped = false ---@type boolean the plugin is loaded again, and what comes is for the one that takes over

---Handles what was drained, and drains no more.
function M.stop()
  while at <= #taken do
    at = at + 1
    dispatch(taken[at - 1])
  end
  stopped = true
  if again then
    again:stop()
    again:close()
    again = nil
  end
end

---Handles pending changes, and continues with the rest after the editor had its turn.
function M.drain()
  if stopped or vim.v.exiting ~= vim.NIL then
    -- Neovim is exiting and has already unloaded the buffers.
    return
  end
  local deadline = vim.uv.hrtime() + BUDGET_NS
  local over = false
  repeat
    local change = next_change()
    if not change then
      break
    end
    dispatch(change)
    over = vim.uv.hrtime() > deadline
  until over
  events.emit("drained", over and M.is_behind())
  if over then
    -- Even if nothing seems to be left: the library wakes Neovim only once until it is drained, and an earlier drain
    -- may have used up that wake-up.
    again = again or assert(vim.uv.new_timer())
    -- With the next turn of the event loop: keys and drawing come first, and no time is spent waiting.
    again:start(0, 0, vim.schedule_wrap(M.drain))
  end
end

return M
