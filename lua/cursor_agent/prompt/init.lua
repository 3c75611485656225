-- The prompt of a chat: a buffer to write in, with its attachments, pastes, draft and history.

local chats = require("cursor_agent.chat.registry")
local draft = require("cursor_agent.prompt.draft")
local history = require("cursor_agent.prompt.history")
local notify = require("cursor_agent.notify")
local parsers = require("cursor_agent.colour.parsers")
local pastes = require("cursor_agent.prompt.paste")

local M = {}

---@class (exact) cursor_agent.prompt.Draft
---@field text string
---@field attached cursor_agent.context.Item[]

---@class (partial) cursor_agent.Prompt
---@field buf integer
---@field attached cursor_agent.context.Item[]
---@field pastes cursor_agent.context.Item[] their labels are in the text, or in that of a prompt sent before
---@field editing integer? number of the queued prompt being edited
---@field private now boolean? what is being sent stops the running turn
---@field private interrupted cursor_agent.prompt.Draft? what was being written before a queued prompt was edited
---@field private queued table<integer, cursor_agent.context.Item[]> attachments of the queued prompts
---@field sending cursor_agent.prompt.Sending
---@field bar string the line above the prompt
---@field chat cursor_agent.Chat
---@field private history cursor_agent.history.Entry[]? newest last
---@field private kept_back cursor_agent.context.Item[]? what a slash command was sent without
---@field private at integer? which of them is shown
---@field private kept string? what was being written before browsing them
---@field setting boolean we are setting the text
local Prompt = vim.tbl_extend(
  "error",
  require("cursor_agent.prompt.bar").methods,
  require("cursor_agent.prompt.submit"),
  require("cursor_agent.prompt.unsaved")
)
Prompt.__index = Prompt

local GROUP = vim.api.nvim_create_augroup("cursor_agent_prompt", {})

---@param chat cursor_agent.Chat
---@return cursor_agent.Prompt
function M.new(chat)
  local buf = require("cursor_agent.chat.buffers").make(chat.key, "prompt")
  local self = setmetatable({
    buf = buf,
    chat = chat,
    attached = {},
    pastes = {},
    queued = {},
    sending = require("cursor_agent.prompt.sending").new(chat),
    bar = "",
    setting = false,
  }, Prompt)
  chat.prompt = self
  local bo = vim.bo[buf]
  bo.textwidth = 0
  bo.formatlistpat = [[^\s*\%(\d\+[.)]\|[-*+>]\)\s\+]]
  bo.filetype = "cursoragent-prompt"
  -- There is nothing to highlight yet.
  parsers.fence_soon(buf, function()
    if parsers.fence(buf, "markdown") then
      pcall(vim.treesitter.start, buf, "markdown")
    end
  end)
  require("cursor_agent.keys").map(buf, "prompt")
  require("cursor_agent.chat.layout").attach(chat, buf, "prompt")
  require("cursor_agent.completion").attach(buf)
  self:watch()
  local kept = draft.read(chat)
  if kept then
    self:set_text((kept.text:gsub(pastes.LABEL, function(label)
      local text = kept.pastes and kept.pastes[label]
      return text and self:paste_of(text).label
    end)))
  end
  self:refresh()
  return self
end

---@return string
function Prompt:text()
  return table.concat(vim.api.nvim_buf_get_lines(self.buf, 0, -1, false), "\n")
end

---@param text string
function Prompt:set_text(text)
  self.setting = true
  local lines = vim.split(text, "\n", { plain = true })
  parsers.fence(self.buf, "markdown")
  vim.api.nvim_buf_set_lines(self.buf, 0, -1, false, lines)
  self.setting = false
  for _, win in ipairs(vim.fn.win_findbuf(self.buf)) do
    vim.api.nvim_win_set_cursor(win, { #lines, #lines[#lines] })
  end
  self:refresh()
end

---Saves the unsent text across restarts of Neovim.
function Prompt:save_draft()
  if not vim.api.nvim_buf_is_loaded(self.buf) then
    return
  end
  local text = self.interrupted and self.interrupted.text or self:text()
  if text == "" and self.sending.held[1] then
    -- The agent does not have it yet.
    text = self.sending.held[1].text
  end
  local kept ---@type table<string, string>?
  for _, paste in ipairs(self:pastes_in(text)) do
    kept = kept or {}
    kept[paste.label] = paste.text
  end
  draft.save(self.chat, { text = text, pastes = kept })
end

---This prompt's paste with a given text, created if needed.
---@param text string
---@return cursor_agent.context.Item
function Prompt:paste_of(text)
  for _, paste in ipairs(self.pastes) do
    if paste.text == text then
      return paste
    end
  end
  local paste = pastes.item(vim.split(text, "\n", { plain = true }), #self.pastes + 1)
  table.insert(self.pastes, paste)
  return paste
end

---The pastes whose labels are in a text.
---@private
---@param text string
---@return cursor_agent.context.Item[]
function Prompt:pastes_in(text)
  return vim.tbl_filter(function(paste)
    return text:find(paste.label, 1, true) ~= nil
  end, self.pastes)
end

---Shows an older or a newer prompt.
---@param step -1|1
function Prompt:look_back(step)
  self.history = self.history or history.list(self.chat.cwd)
  local list = self.history
  local at = (self.at or #list + 1) + step
  if at < 1 or at > #list + 1 then
    return
  end
  if not self.at then
    self.kept = self:text()
  end
  if at > #list then
    self.at = nil
    self:set_text(self.kept or "")
  else
    self.at = at
    self:set_text(history.recall(list[at], function(text)
      return self:paste_of(text).label
    end))
  end
end

---@param label string
---@return boolean
function Prompt:has(label)
  for _, item in ipairs(self.attached) do
    if item.label == label then
      return true
    end
  end
  return false
end

---Attaches something to the prompt, replacing an earlier attachment of the same name.
---@param item cursor_agent.context.Item
function Prompt:attach(item)
  local place = #self.attached + 1
  for i, one in ipairs(self.attached) do
    place = one.label == item.label and not one.comment and i or place
  end
  self.attached[place] = item
  self:refresh()
end

---@param index integer
function Prompt:detach(index)
  table.remove(self.attached, index)
  self:refresh()
end

---What is attached and not being sent yet.
---@return cursor_agent.context.Item[]
function Prompt:unsent()
  local items = vim.list_slice(self.attached)
  if self.interrupted then
    vim.list_extend(items, self.interrupted.attached)
  end
  return items
end

---Removes an attachment.
---@param item cursor_agent.context.Item
function Prompt:forget(item)
  for _, list in ipairs({ self.attached, self.interrupted and self.interrupted.attached or {} }) do
    for i, one in ipairs(list) do
      if one == item then
        table.remove(list, i)
        break
      end
    end
  end
  self:refresh()
end

---Handles a change of the queue. A prompt that is being edited may have been sent meanwhile.
---@param status cursor_agent.Status
function Prompt:on_status(status)
  local waits = false
  for _, one in ipairs(status.queue or {}) do
    waits = waits or one.id == self.editing
  end
  if status.state == "idle" and (status.queued or 0) == 0 then
    self.queued = {}
  end
  if self.editing and not waits then
    self.editing = nil
    notify.notify("the prompt you are editing was already sent unchanged; this text will be a new prompt", "warn")
  end
end

local function save_drafts()
  for _, chat in ipairs(chats.all()) do
    chat.prompt:save_draft()
  end
end

function Prompt:watch()
  pastes.watch(self)
  vim.api.nvim_create_autocmd({ "TextChanged", "TextChangedI", "TextChangedP" }, {
    buffer = self.buf,
    group = GROUP,
    desc = "cursor-agent: fit the prompt to its text",
    callback = function()
      draft.soon(save_drafts)
      self:refresh()
      for _, win in ipairs(vim.fn.win_findbuf(self.buf)) do
        self:fit(win)
      end
    end,
  })
  vim.api.nvim_create_autocmd("BufLeave", {
    buffer = self.buf,
    group = GROUP,
    desc = "cursor-agent: save the draft",
    callback = function()
      self:save_draft()
    end,
  })
end

vim.api.nvim_create_autocmd("VimLeavePre", {
  group = GROUP,
  desc = "cursor-agent: save the drafts",
  callback = save_drafts,
})

vim.api.nvim_create_autocmd({ "BufModifiedSet", "BufWritePost", "BufDelete" }, {
  group = GROUP,
  desc = "cursor-agent: list unsaved buffers above the prompt",
  callback = vim.schedule_wrap(function()
    for _, chat in ipairs(chats.all()) do
      if #vim.fn.win_findbuf(chat.prompt.buf) > 0 then
        chat.prompt:refresh()
      end
    end
  end),
})

---@param chat cursor_agent.Chat
---@param before cursor_agent.Status
function M.on_status(chat, before)
  chat.prompt:on_status(chat.status)
  chat.prompt:refresh()
  local after = chat.status
  if after.turn_started_ms ~= before.turn_started_ms or after.queued ~= before.queued or after.mode ~= before.mode then
    chat.prompt:redraw_keys()
  end
end

return M
