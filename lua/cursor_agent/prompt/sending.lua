-- Prompts being sent: passed to the library in order, each once its attachments are ready.

local context = require("cursor_agent.prompt.context")
local bridge = require("cursor_agent.bridge")
local notify = require("cursor_agent.notify")

local M = {}

---@class (exact) cursor_agent.prompt.Outgoing
---@field text string
---@field items cursor_agent.context.Item[] what is attached, mentions included
---@field attached cursor_agent.context.Item[] without the mentions
---@field editing integer? the queued prompt this replaces
---@field now boolean? it stops the running turn
---@field came_back fun(outgoing: cursor_agent.prompt.Outgoing)? what to do with one that could not be sent

---@class cursor_agent.prompt.Sending
---@field held cursor_agent.prompt.Outgoing[] waiting for an attachment, oldest first
---@field private chat cursor_agent.Chat
local Sending = {}
Sending.__index = Sending

---@param chat cursor_agent.Chat
---@return cursor_agent.prompt.Sending
function M.new(chat)
  return setmetatable({ held = {}, chat = chat }, Sending)
end

---Stops the turn and sends a queued prompt next. If it is no longer queued, it is already being sent.
---@param key cursor_agent.Key
---@param number integer
function M.jump_queue(key, number)
  local status = bridge.status(key)
  for _, one in ipairs(status and status.queue or {}) do
    if one.id == number then
      notify.report(bridge.queue_send_now(key, number))
    end
  end
end

---@private
---@param outgoing cursor_agent.prompt.Outgoing
---@return integer?, string?
function Sending:hand_over(outgoing)
  local ready, why = bridge.load()
  if not ready then
    return nil, why
  end
  local blocks, problem = context.blocks(outgoing.items)
  if not blocks then
    return nil, problem
  end
  local open = require("cursor_agent.review.buffers").open_files()
  local spec = { text = outgoing.text, blocks = blocks, open = open } ---@type cursor_agent.PromptSpec
  -- Before the agent can do anything.
  require("cursor_agent.files.watch").turn(self.chat, true)
  local number, trouble
  if outgoing.editing then
    local edited
    edited, trouble = bridge.queue_edit(self.chat.key, outgoing.editing, spec)
    number = edited and outgoing.editing or nil
  else
    number, trouble = bridge.prompt(self.chat.key, spec)
  end
  if number then
    self.chat.prompt:note_queued(number, outgoing.attached)
    if outgoing.now then
      M.jump_queue(self.chat.key, number)
    end
  end
  return number, trouble
end

---What the oldest waiting prompt is waiting for.
---@return string
function Sending:waits_for()
  for _, item in ipairs(self.held[1] and self.held[1].items or {}) do
    if item.prepare then
      return item.waits_for or item.label
    end
  end
  return "an attachment"
end

---Handles the oldest waiting prompt, then the next one.
---@private
function Sending:work_off()
  local outgoing = self.held[1]
  if not outgoing then
    return
  end
  context.prepare(outgoing.items, function(why)
    local number, trouble
    if not why then
      number, trouble = self:hand_over(outgoing)
    end
    table.remove(self.held, 1)
    if not number then
      if outgoing.came_back then
        outgoing.came_back(outgoing)
      end
      notify.report(nil, why or trouble)
    end
    self.chat.prompt:refresh()
    self:work_off()
  end)
end

---Sends a prompt now, or as soon as its attachments are ready and those before it are sent.
---@param outgoing cursor_agent.prompt.Outgoing
---@return integer? number of the prompt; 0 while it is not sent yet
---@return string?
function Sending:send(outgoing)
  if #self.held == 0 and not context.takes_time(outgoing.items) then
    return self:hand_over(outgoing)
  end
  table.insert(self.held, outgoing)
  if #self.held == 1 then
    self:work_off()
  end
  return 0
end

return M
