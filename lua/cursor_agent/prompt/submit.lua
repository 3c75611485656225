-- Sends or queues a prompt, takes back one that could not be sent, and edits a queued one.

local bridge = require("cursor_agent.bridge")
local config = require("cursor_agent.config")
local context = require("cursor_agent.prompt.context")
local history = require("cursor_agent.prompt.history")
local notify = require("cursor_agent.notify")
local reusable = require("cursor_agent.prompt.reusable")
local slash = require("cursor_agent.prompt.slash")

---@class (partial) cursor_agent.Prompt
local Prompt = {}

---Unsent comments for the agent: they are attached to the next prompt, however it is sent.
---@return cursor_agent.context.Item[]
function Prompt:comments()
  return vim.tbl_filter(function(item)
    return item.comment ~= nil
  end, self:unsent())
end

---Sends a text that was not written here, with the unsent comments.
---@param text string
---@param items cursor_agent.context.Item[]
---@return integer?, string?
function Prompt:submit_elsewhere(text, items)
  local comments = self:comments()
  self.kept_back = nil
  local number, why = self:submit(text, vim.list_extend(vim.list_slice(items), comments))
  if not number then
    return nil, why
  end
  for _, item in ipairs(comments) do
    if not vim.list_contains(self.kept_back or {}, item) then
      self:forget(item)
    end
  end
  self.kept_back = nil
  return number
end

---Sends text with what is attached, or queues it while a turn runs.
---@param text string
---@param items cursor_agent.context.Item[]
---@param editing? integer the queued prompt this replaces
---@param came_back? fun(outgoing: cursor_agent.prompt.Outgoing) what to do when it turns out later that it cannot be sent
---@return integer? number of the prompt; 0 while it is not sent yet
---@return string?
function Prompt:submit(text, items, editing, came_back)
  local ready, why = bridge.load()
  if not ready then
    return nil, why
  end
  if vim.trim(text) == "" and #items == 0 then
    return nil, "nothing to send"
  end
  -- The library may know more commands than have been drained so far.
  local status = bridge.status(self.chat.key) or self.chat.status
  local expanded, no_text = reusable.expand(text, self.chat.cwd, status.commands)
  if no_text then
    return nil, no_text
  end
  text = expanded or text
  local unsaved = config.get().prompt.unsaved
  local command = slash.command(text, status)
  if command then
    return self:submit_command(command, text, items, editing, came_back)
  elseif unsaved == "save" then
    local saved, problem = self:save_unsaved()
    if not saved then
      return nil, problem
    end
  elseif unsaved == "attach" then
    items = vim.list_extend(vim.list_slice(items), self:unsaved_items()) ---@type cursor_agent.context.Item[]
  end
  local all, problem = context.collect(text, items, self.chat.cwd)
  if not all then
    return nil, problem
  end
  return self.sending:send({
    text = text,
    items = all,
    attached = items,
    editing = editing,
    came_back = came_back,
    now = self.now,
  })
end

---Sends a slash command as the whole prompt. Pastes become part of it; other attachments stay for the next one.
---@private
---@param command string
---@param text string
---@param items cursor_agent.context.Item[]
---@param editing? integer
---@param came_back? fun(outgoing: cursor_agent.prompt.Outgoing)
---@return integer?, string?
function Prompt:submit_command(command, text, items, editing, came_back)
  if config.get().prompt.unsaved == "save" then
    local saved, problem = self:save_unsaved()
    if not saved then
      return nil, problem
    end
  end
  text = vim.trim(text)
  local mentioned = context.collect(text, {}, self.chat.cwd) or {}
  local kept = {} ---@type cursor_agent.context.Item[]
  for _, item in ipairs(items) do
    local first, last = text:find(item.label, 1, true)
    if vim.list_contains(self.pastes, item) and first and last and item.text then
      text = text:sub(1, first - 1) .. item.text .. text:sub(last + 1)
    else
      kept[#kept + 1] = item
    end
  end
  local number, why = self.sending:send({
    text = text,
    items = {},
    attached = {},
    editing = editing,
    came_back = came_back,
    now = self.now,
  })
  if not number then
    return nil, why
  end
  local labels = vim.tbl_map(function(item)
    return item.label
  end, kept) ---@type string[]
  if #labels > 0 then
    for _, item in ipairs(kept) do
      self:attach(item)
    end
    self.kept_back = kept
    notify.notify(("`/%s` is sent alone; attached to the next prompt: %s"):format(command, table.concat(labels, ", ")))
  elseif #mentioned > 0 then
    notify.notify(("`/%s` is sent alone: its mentions are sent as text"):format(command))
  elseif config.get().prompt.unsaved == "attach" and #self:unsaved() > 0 then
    notify.notify(("`/%s` is sent alone: unsaved changes are not attached (gs saves)"):format(command))
  end
  return number
end

---Records the attachments of a prompt that was passed on, which may be queued.
---@param number integer
---@param items cursor_agent.context.Item[]
function Prompt:note_queued(number, items)
  self.queued[number] = #items > 0 and items or nil
end

---Takes a prompt back that could not be sent, unless another one is being written.
---@private
---@param outgoing cursor_agent.prompt.Outgoing
function Prompt:take_back(outgoing)
  if not vim.api.nvim_buf_is_loaded(self.buf) then
    return
  elseif vim.trim(self:text()) ~= "" or self.editing then
    notify.notify("the unsent prompt is in the history", "warn")
    return
  end
  self.attached = vim.tbl_filter(function(item)
    return not vim.list_contains(self.pastes, item)
  end, outgoing.attached)
  self:set_text(outgoing.text)
end

---Sends the current text, or else the first queued prompt, and stops the running turn.
---@return integer?, string?
function Prompt:send_now()
  if vim.trim(self:text()) ~= "" or #self.attached > 0 or self.editing then
    self.now = true
    local number, why = self:send()
    self.now = nil
    return number, why
  end
  local first = (self.chat.status.queue or {})[1]
  if not first then
    return nil, "nothing to send"
  end
  local sent, why = bridge.queue_send_now(self.chat.key, first.id)
  return sent and first.id or nil, why
end

---Sends the current text.
---@return integer?, string?
function Prompt:send()
  require("cursor_agent.completion").close()
  local text = vim.trim(self:text())
  if self.editing and text == "" then
    self:end_editing()
    notify.notify("the queued prompt stays as it was")
    return 0
  end
  local items = vim.list_slice(self.attached)
  local pastes = self:pastes_in(text)
  vim.list_extend(items, pastes)
  self.kept_back = nil
  local number, why = self:submit(text, items, self.editing, function(outgoing)
    self:take_back(outgoing)
  end)
  if not number then
    return nil, why
  end
  self.history = history.add(self.chat.cwd, text, pastes)
  self.at, self.kept = nil, nil
  self:end_editing()
  for _, item in ipairs(self.kept_back or {}) do
    self:attach(item)
  end
  self.kept_back = nil
  self:save_draft()
  self.chat.transcript.tail:go()
  return number
end

---Moves a queued prompt back into the buffer to edit it. The current text comes back afterwards.
---@param number integer
---@param text string
function Prompt:edit_queued(number, text)
  if not self.interrupted then
    self.interrupted = { text = self:text(), attached = self.attached }
  end
  self.editing = number
  self.attached = {}
  for _, item in ipairs(self.queued[number] or {}) do
    if not vim.list_contains(self.pastes, item) then
      table.insert(self.attached, item)
    end
  end
  self:set_text(text)
end

---Empties the prompt, or brings back what was being written before a queued one was taken into it.
---@private
function Prompt:end_editing()
  local before = self.interrupted or { text = "", attached = {} }
  self.interrupted, self.editing = nil, nil
  self.attached = before.attached
  self:set_text(before.text)
end

return Prompt
