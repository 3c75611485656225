-- Takes what happened out of the library and hands it to the part of the editor it concerns, a few milliseconds at a time.

local chats = require("cursor_agent.chat.registry")
local native = require("cursor_agent.bridge.native")
local notify = require("cursor_agent.notify")

local M = {}

---Work at one go. More would be felt while typing.
local BUDGET_NS = 3e6

---Taken from the library at one go. Making the tables takes time as well, which nothing can interrupt.
local BATCH_BYTES = 4 * 1024

local taken = {} ---@type cursor_agent.Change[] taken and not dealt with yet
local at = 1 ---@type integer the next of them
local more = false ---@type boolean there is more in the library
local again ---@type uv.uv_timer_t?

---@type table<integer, fun(ok: boolean, value: any)> who waits for a result
local waiting = {}

---Calls back with the answer to a request the library gave a number.
---@param id integer
---@param callback fun(ok: boolean, value: any)
function M.await(id, callback)
  waiting[id] = callback
end

---@param name string
---@param data table?
function M.fire(name, data)
  vim.api.nvim_exec_autocmds("User", { pattern = name, modeline = false, data = data })
end

---@type table<string, fun(change: cursor_agent.Change, chat: cursor_agent.Chat?)>
local handlers = {
  append = function(change, chat)
    if chat then
      chat.transcript:append(change.entry --[[@as integer]], change.text or "")
      require("cursor_agent.chat.subagent").append(chat, change.entry --[[@as integer]], change.text or "")
    end
  end,
  entry = function(change, chat)
    if chat then
      local entry = change.data --[[@as cursor_agent.Entry]]
      chat.transcript:entry(change.entry --[[@as integer]], entry)
      require("cursor_agent.chat.subagent").entry(chat, change.entry --[[@as integer]], entry)
      if entry.tool then
        require("cursor_agent.chat.follow_agent").tool(chat, entry.tool)
      end
      local image = entry.tool and entry.tool.image
      if image and image.path then
        require("cursor_agent.chat.image").draw(chat, change.entry --[[@as integer]], image.path)
      end
    end
  end,
  status = function(change, chat)
    if chat then
      require("cursor_agent.chat").set_status(chat, change.data)
    end
  end,
  event = function(change)
    M.fire(change.name --[[@as string]], change.data)
  end,
  decision = function(change)
    require("cursor_agent.decide").on_decision(change.data)
  end,
  decided = function(change)
    require("cursor_agent.decide").on_decided(change.id --[[@as integer]], change.how or "")
  end,
  editor = function(change, chat)
    require("cursor_agent.chat.follow_agent").request(chat, change.request --[[@as cursor_agent.EditorRequest]])
    require("cursor_agent.files").serve(
      change.id --[[@as integer]],
      change.request --[[@as cursor_agent.EditorRequest]],
      change.key
    )
  end,
  withdrawn = function(change)
    require("cursor_agent.files").withdrawn(change.id --[[@as integer]])
  end,
  edited = function(change, chat)
    require("cursor_agent.files").edited(change.path --[[@as string]], chat)
  end,
  reviewed = function(change)
    local review = require("cursor_agent.review")
    review.start()
    review.changed(change.paths or {})
  end,
  result = function(change)
    local callback = waiting[change.id]
    waiting[change.id] = nil
    if callback then
      callback(change.ok, change.value)
    end
  end,
  notify = function(change)
    notify.notify(change.message or "", change.level)
  end,
}

---@param change cursor_agent.Change
local function dispatch(change)
  local chat = chats.get(change.key)
  if chat and not vim.api.nvim_buf_is_loaded(chat.buf) and (change.type == "append" or change.type == "entry") then
    -- The user deleted the buffer. The library keeps the transcript; opening the chat shows it again.
    return
  end
  local handler = handlers[change.type]
  if not handler then
    return
  end
  -- One change that cannot be shown must not keep back the ones behind it.
  local ok, problem = xpcall(handler, debug.traceback, change, chat)
  if not ok then
    notify.once(("a change of kind `%s` could not be shown: %s"):format(change.type, problem), "error")
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
  -- Taken out before it is dealt with: a callback may run the loop and drain what follows.
  local change = taken[at]
  at = at + 1
  return change
end

---Drops what was taken of a session's entries and not dealt with yet: they are about to be told of again.
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

---Whether there is more than was dealt with so far: what is on the screen will be gone in a moment.
---@return boolean
function M.behind()
  return at <= #taken or more
end

---Deals with what is there, and comes back for the rest after the editor had its turn.
function M.drain()
  if vim.v.exiting ~= vim.NIL then
    -- Neovim is leaving and has unloaded the buffers already.
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
  for _, chat in ipairs(chats.all()) do
    chat.transcript:finish(over and M.behind())
    require("cursor_agent.chat.subagent").finish(chat, over and M.behind())
  end
  if over then
    -- Also where nothing is known to be left: what comes while the library waits to be asked wakes nobody a second time,
    -- and what was taken before may have used up the wake-up.
    again = again or assert(vim.uv.new_timer())
    again:start(1, 0, vim.schedule_wrap(M.drain))
  end
end

return M
