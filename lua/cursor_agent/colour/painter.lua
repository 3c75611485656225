-- Colours what is visible of the chats, a few milliseconds at a time, between the things that matter more.

local bridge = require("cursor_agent.bridge")
local colour = require("cursor_agent.colour")

local M = {}

---While text comes faster than it can be shown, colours wait.
local FLOOD_MS = 20

---Work at once.
local BUDGET_NS = 2e6

---What takes longer than a frame waits until nothing was typed for this long.
local STILL_MS = 200

---@class (exact) cursor_agent.painter.View
---@field top integer
---@field bottom integer

---@type table<cursor_agent.Transcript, table<integer, cursor_agent.painter.View>> by window
local wanted = {}

---@type (fun(pause: cursor_agent.syntax.Pause))[] what is not in a chat, first come, first served
local jobs = {}

local timer = assert(vim.uv.new_timer())
local deadline = 0
local typed_at ---@type integer? when the last key was pressed, once that is needed
local work ---@type thread?

---@return boolean
local function typing()
  if not typed_at then
    typed_at = vim.uv.now()
    vim.on_key(function()
      typed_at = vim.uv.now()
    end, vim.api.nvim_create_namespace("cursor_agent_typing"))
  end
  return vim.uv.now() - typed_at < STILL_MS
end

---@async
---@param long boolean? what comes takes longer than a frame and cannot be stopped half-way
local function pause(long)
  while long and typing() do
    coroutine.yield(true)
  end
  if vim.uv.hrtime() > deadline then
    coroutine.yield()
  end
end

---@return boolean more
---@return boolean? later nothing can be done before the user stops typing
local function step()
  if not work and #jobs > 0 then
    work = coroutine.create(table.remove(jobs, 1))
  elseif not work then
    local transcript, views = next(wanted)
    if not transcript or not views then
      return false
    end
    local win, view = next(views)
    if not win or not view or not vim.api.nvim_buf_is_loaded(transcript.buf) then
      wanted[transcript] = nil
      return true
    end
    local piece = colour.next(transcript, view.top, view.bottom)
    if not piece then
      views[win] = nil
      return true
    end
    work = coroutine.create(piece)
  end
  local ok, result = coroutine.resume(work, pause)
  if not ok then
    require("cursor_agent.notify").once("colouring failed: " .. tostring(result), "warn")
  end
  if not ok or coroutine.status(work) == "dead" then
    work = nil
    return true
  end
  return true, result
end

local function run()
  if bridge.is_behind() then
    timer:start(FLOOD_MS, 0, vim.schedule_wrap(run))
    return
  end
  deadline = math.floor(vim.uv.hrtime() + BUDGET_NS)
  local more, later ---@type boolean, boolean?
  repeat
    -- One step at least, however slow the machine is.
    more, later = step()
  until not more or later or vim.uv.hrtime() >= deadline
  if more then
    -- A millisecond leaves room for input and drawing.
    timer:start(later and STILL_MS or 1, 0, vim.schedule_wrap(run))
  end
end

---Asks for the rows of a transcript that a window shows to be coloured.
---@param transcript cursor_agent.Transcript
---@param win integer
---@param top integer
---@param bottom integer
function M.want(transcript, win, top, bottom)
  local views = wanted[transcript]
  if views then
    views[win] = { top = top, bottom = bottom }
    return
  end
  wanted[transcript] = { [win] = { top = top, bottom = bottom } }
  if not timer:is_active() then
    timer:start(0, 0, vim.schedule_wrap(run))
  end
end

---Does something a few milliseconds at a time, before what is in the chats.
---@param job fun(pause: cursor_agent.syntax.Pause)
function M.soon(job)
  jobs[#jobs + 1] = job
  if not timer:is_active() then
    timer:start(0, 0, vim.schedule_wrap(run))
  end
end

---Loads what messages are read with before the first one comes.
function M.warm_up()
  M.soon(function(pause_between)
    local syntax = require("cursor_agent.colour.syntax")
    syntax.load("markdown", pause_between)
    syntax.load("markdown_inline", pause_between)
  end)
end

---Whether everything asked for is done.
---@return boolean
function M.idle()
  return work == nil and #jobs == 0 and next(wanted) == nil
end

return M
