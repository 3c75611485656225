-- The prompt of a chat: a buffer to write in, what goes along with it, and sending it.

local chats = require("cursor_agent.chat.registry")
local config = require("cursor_agent.config")
local context = require("cursor_agent.prompt.context")
local events = require("cursor_agent.bridge.events")
local draft = require("cursor_agent.prompt.draft")
local format = require("cursor_agent.render.format")
local history = require("cursor_agent.prompt.history")
local bridge = require("cursor_agent.bridge")
local notify = require("cursor_agent.notify")
local slash = require("cursor_agent.prompt.slash")

local M = {}

---@class (exact) cursor_agent.prompt.Draft
---@field text string
---@field attached cursor_agent.context.Item[]

---@class cursor_agent.Prompt
---@field buf integer
---@field attached cursor_agent.context.Item[]
---@field pastes cursor_agent.context.Item[] their labels stand in the text, or in that of a prompt sent before
---@field editing integer? number of the queued prompt being edited
---@field private interrupted cursor_agent.prompt.Draft? what was being written before a queued prompt was taken back
---@field private queued table<integer, cursor_agent.context.Item[]> what goes along with the prompts that wait
---@field outbox cursor_agent.Outbox
---@field bar string what stands above the prompt
---@field chat cursor_agent.Chat
---@field private history cursor_agent.history.Entry[]? newest last
---@field private kept_back cursor_agent.context.Item[]? what a slash command was sent without
---@field private at integer? which of them is shown
---@field private kept string? what was being written before looking through them
---@field setting boolean the text is being set by us
local Prompt = {}
Prompt.__index = Prompt

local NS = vim.api.nvim_create_namespace("cursor_agent_prompt")
local GROUP = vim.api.nvim_create_augroup("cursor_agent_prompt", {})

---The draft is kept when nothing was typed for so long: Neovim may be killed.
local DRAFT_MS = 1000

---A modified buffer of more is not sent along as text: no agent could read that much.
local UNSAVED_BYTES = 10 * 1024 * 1024

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
    outbox = require("cursor_agent.prompt.sending").new(chat),
    bar = "",
    setting = false,
  }, Prompt)
  chat.prompt = self
  local bo = vim.bo[buf]
  bo.completefunc = "v:lua.require'cursor_agent.completion'.completefunc"
  bo.textwidth = 0
  bo.formatlistpat = [[^\s*\%(\d\+[.)]\|[-*+>]\)\s\+]]
  require("cursor_agent.colour.parsers").fence(buf, "markdown")
  bo.filetype = "cursoragent-prompt"
  pcall(vim.treesitter.start, buf, "markdown")
  require("cursor_agent.keys").map(buf, "prompt")
  require("cursor_agent.chat.layout").attach(chat, buf, "prompt")
  require("cursor_agent.completion").attach(buf)
  self:watch()
  local kept = draft.read(chat)
  if kept then
    self:set_text((kept.text:gsub(context.PASTE_LABEL, function(label)
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
  vim.api.nvim_buf_set_lines(self.buf, 0, -1, false, lines)
  self.setting = false
  for _, win in ipairs(vim.fn.win_findbuf(self.buf)) do
    vim.api.nvim_win_set_cursor(win, { #lines, #lines[#lines] })
  end
  self:refresh()
end

---Keeps what is being written, for when Neovim is gone.
function Prompt:save_draft()
  if not vim.api.nvim_buf_is_loaded(self.buf) then
    return
  end
  local text = self.interrupted and self.interrupted.text or self:text()
  if text == "" and self.outbox.held[1] then
    -- Nobody has it yet.
    text = self.outbox.held[1].text
  end
  local pastes ---@type table<string, string>?
  for _, paste in ipairs(self:pastes_in(text)) do
    pastes = pastes or {}
    pastes[paste.label] = paste.text
  end
  draft.save(self.chat, { text = text, pastes = pastes })
end

---The paste of this prompt that has a text, made where there is none.
---@param text string
---@return cursor_agent.context.Item
function Prompt:paste_of(text)
  for _, paste in ipairs(self.pastes) do
    if paste.text == text then
      return paste
    end
  end
  local paste = context.paste(vim.split(text, "\n", { plain = true }), #self.pastes + 1)
  table.insert(self.pastes, paste)
  return paste
end

---The pastes whose labels stand in a text.
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

---Attaches something to the prompt; once.
---@param item cursor_agent.context.Item
function Prompt:attach(item)
  if not self:has(item.label) then
    table.insert(self.attached, item)
    self:refresh()
  end
end

---@param index integer
function Prompt:detach(index)
  table.remove(self.attached, index)
  self:refresh()
end

---What is attached and not on its way yet.
---@return cursor_agent.context.Item[]
function Prompt:unsent()
  local items = vim.list_slice(self.attached)
  if self.interrupted then
    vim.list_extend(items, self.interrupted.attached)
  end
  return items
end

---Takes something away that is attached.
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

---Comments for the agent that wait: they go with the next prompt, however it is sent.
---@return cursor_agent.context.Item[]
function Prompt:comments()
  return vim.tbl_filter(function(item)
    return item.comment ~= nil
  end, self:unsent())
end

---Sends a text that was not written here, with the comments that wait.
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

---Modified buffers of the workspace: an agent that reads the disk does not see what is in them.
---@return integer[]
function Prompt:unsaved()
  local found = {} ---@type integer[]
  local root = self.chat.cwd .. "/"
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buf) and vim.bo[buf].modified and vim.bo[buf].buftype == "" then
      if vim.api.nvim_buf_get_name(buf):sub(1, #root) == root then
        found[#found + 1] = buf
      end
    end
  end
  return found
end

---@return boolean?, string?
function Prompt:save_unsaved()
  local failed = {} ---@type string[]
  for _, buf in ipairs(self:unsaved()) do
    if require("cursor_agent.files.conflicts").has(buf) then
      -- Neovim would ask, in the middle of it all, whether to write over what the agent wrote.
      local name = vim.fs.basename(vim.api.nvim_buf_get_name(buf))
      failed[#failed + 1] = ("%s was changed by the agent too: :CursorAgent conflicts"):format(name)
    else
      local ok, why = pcall(vim.api.nvim_buf_call, buf, function()
        vim.cmd("silent update")
      end)
      if not ok then
        local stopped = tostring(why):find("Keyboard interrupt", 1, true)
        local name = vim.fs.basename(vim.api.nvim_buf_get_name(buf))
        failed[#failed + 1] = stopped and ("%s was changed on disk: :CursorAgent conflicts"):format(name)
          or tostring(why):gsub("^.-(E%d+:)", "%1")
      end
    end
  end
  self:refresh()
  if #failed > 0 then
    return nil, table.concat(failed, "\n")
  end
  return true
end

---The text of the modified buffers, to go along. Of those too large for that the user is told.
---@private
---@return cursor_agent.context.Item[]
function Prompt:unsaved_items()
  local items, large = {}, {} ---@type cursor_agent.context.Item[], string[]
  for _, buf in ipairs(self:unsaved()) do
    if vim.api.nvim_buf_get_offset(buf, vim.api.nvim_buf_line_count(buf)) > UNSAVED_BYTES then
      large[#large + 1] = vim.fs.basename(vim.api.nvim_buf_get_name(buf))
    else
      items[#items + 1] = context.unsaved(buf, self.chat.cwd)
    end
  end
  if #large > 0 then
    notify.notify(("too large to attach: %s (gs saves)"):format(table.concat(large, ", ")), "warn")
  end
  return items
end

function Prompt:attach_unsaved()
  for _, item in ipairs(self:unsaved_items()) do
    self:attach(item)
  end
end

---Sends text with what is attached, or queues it while a turn runs.
---@param text string
---@param items cursor_agent.context.Item[]
---@param editing? integer the queued prompt this takes the place of
---@param came_back? fun(letter: cursor_agent.outbox.Letter) what to do when it turns out later that it cannot be sent
---@return integer? number of the prompt; 0 while it is on its way
---@return string?
function Prompt:submit(text, items, editing, came_back)
  local ready, why = bridge.load()
  if not ready then
    return nil, why
  end
  if vim.trim(text) == "" and #items == 0 then
    return nil, "there is nothing to send"
  end
  local unsaved = config.get().prompt.unsaved
  local command = slash.command(text, self.chat.status)
  if command then
    return self:submit_command(command, text, items, editing, came_back)
  elseif unsaved == "save" then
    local saved, problem = self:save_unsaved()
    if not saved then
      return nil, problem
    end
  elseif unsaved == "attach" then
    items = vim.list_extend(vim.list_slice(items), self:unsaved_items())
  end
  local all, problem = context.collect(text, items, self.chat.cwd)
  if not all then
    return nil, problem
  end
  return self.outbox:send({ text = text, items = all, attached = items, editing = editing, came_back = came_back })
end

---Sends a slash command as the whole prompt. Pastes become a part of it, what else was to be attached stays for the next one.
---@private
---@param command string
---@param text string
---@param items cursor_agent.context.Item[]
---@param editing? integer
---@param came_back? fun(letter: cursor_agent.outbox.Letter)
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
  local number, why =
    self.outbox:send({ text = text, items = {}, attached = {}, editing = editing, came_back = came_back })
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
    notify.notify(("`/%s` is sent alone: what it mentions is sent as text"):format(command))
  elseif config.get().prompt.unsaved == "attach" and #self:unsaved() > 0 then
    notify.notify(("`/%s` is sent alone: unsaved changes are not attached (gs saves)"):format(command))
  end
  return number
end

---Takes note of what goes along with a prompt that was handed over, which may have to wait.
---@param number integer
---@param items cursor_agent.context.Item[]
function Prompt:note_queued(number, items)
  self.queued[number] = #items > 0 and items or nil
end

---Takes a prompt back that could not be sent, unless another one is being written.
---@private
---@param letter cursor_agent.outbox.Letter
function Prompt:take_back(letter)
  if not vim.api.nvim_buf_is_loaded(self.buf) then
    return
  elseif vim.trim(self:text()) ~= "" or self.editing then
    notify.notify("the prompt that was not sent is in the history", "warn")
    return
  end
  self.attached = vim.tbl_filter(function(item)
    return not vim.list_contains(self.pastes, item)
  end, letter.attached)
  self:set_text(letter.text)
end

---Sends what is written.
---@return integer?, string?
function Prompt:send()
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
  local number, why = self:submit(text, items, self.editing, function(letter)
    self:take_back(letter)
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

---Takes a queued prompt back into the buffer to edit it. What was being written comes back afterwards.
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

---Takes note of what is queued now. One that is being edited may have been sent meanwhile.
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
    notify.notify("the prompt you are editing was sent as it was; sending this sends a new one", "warn")
  end
end

---@param text string
---@return string
local function escape(text)
  return (text:gsub("%%", "%%%%"):gsub("[\r\n]", " "))
end

---What goes along, in one line.
---@private
---@return string
function Prompt:compose_bar()
  local icons = self.chat.transcript.context.icons
  local parts = {} ---@type string[]
  if self.editing then
    parts[#parts + 1] = "%#CursorAgentBarWaiting#editing a queued prompt"
  end
  if #self.outbox.held > 0 then
    parts[#parts + 1] = "%#CursorAgentQueued#waits for git"
  end
  local conflict = require("cursor_agent.files.conflicts").list[1]
  if conflict then
    -- Before what there may be no room for: an agent may wait for it.
    parts[#parts + 1] = ("%%#CursorAgentWarning#conflict: %s%%#CursorAgentDetail# (:CursorAgent conflicts)"):format(
      escape(vim.fs.basename(conflict.path))
    )
  end
  for i, item in ipairs(self.attached) do
    parts[#parts + 1] = ("%%#CursorAgentContext#%s %%%d@v:lua.require'cursor_agent.prompt'.on_click@%%#CursorAgentDetail#%s%%X"):format(
      escape(item.label),
      i,
      icons.remove
    )
  end
  if config.get().prompt.unsaved == "ask" then
    local names = {} ---@type string[]
    for _, buf in ipairs(self:unsaved()) do
      local label = context.unsaved(buf, self.chat.cwd).label
      if not self:has(label) and not require("cursor_agent.files.conflicts").has(buf) then
        names[#names + 1] = vim.fs.basename(vim.api.nvim_buf_get_name(buf))
      end
    end
    if #names > 0 then
      local list = #names > 3 and ("%s +%d"):format(table.concat(names, " ", 1, 2), #names - 2)
        or table.concat(names, " ")
      parts[#parts + 1] = ("%%#CursorAgentWarning#unsaved: %s%%#CursorAgentDetail# (gs save · ga attach)"):format(
        escape(list)
      )
    end
  end
  local queued = self.chat.status.queued or 0
  if queued > 0 then
    parts[#parts + 1] = ("%%#CursorAgentQueued#queued %d"):format(queued)
  end
  -- Where there is little room its end is cut, not its beginning.
  return #parts > 0 and " " .. table.concat(parts, "   ") .. "%<" or ""
end

---The line above the prompt being drawn.
---@return string
function M.winbar()
  local chat = chats.of_buffer(vim.api.nvim_get_current_buf())
  return chat and chat.prompt.bar or ""
end

---A click on the sign that takes an attachment away.
---@param index integer
function M.on_click(index)
  local win = vim.fn.getmousepos().winid
  local chat = win ~= 0 and chats.of_buffer(vim.api.nvim_win_get_buf(win))
  if chat then
    chat.prompt:detach(index)
  end
end

---Options of a window that has come to show the prompt.
---@param win integer
function Prompt:dress(win)
  vim.api.nvim_set_option_value(
    "winbar",
    self.bar ~= "" and vim.api.nvim_win_get_height(win) > 1 and "%{%v:lua.require'cursor_agent.prompt'.winbar()%}" or "",
    { win = win, scope = "local" }
  )
  self:fit(win)
end

---As high as its text, within what the options allow.
---@param win integer
function Prompt:fit(win)
  if vim.api.nvim_win_get_config(win).relative ~= "" then
    return
  end
  local options = config.get().window
  local chat_win = require("cursor_agent.chat.layout").chat_window(self.chat, vim.api.nvim_win_get_tabpage(win))
  if not chat_win then
    return
  end
  local bar = self.bar ~= "" and 1 or 0
  local height = vim.api.nvim_win_get_height(win)
  local rows = vim.api.nvim_win_text_height(win, {}).all + bar
  local most = math.min(options.prompt_max_height, height + vim.api.nvim_win_get_height(chat_win) - 4)
  local wanted = math.max(math.min(rows, most), math.min(options.prompt_height + bar, most), 1)
  if wanted ~= height then
    local follows = chat_win and self.chat.transcript.tail:is_at(chat_win)
    vim.api.nvim_win_set_height(win, wanted)
    if follows then
      self.chat.transcript.tail:go(chat_win)
    end
  end
end

---What an empty prompt says, as much of it as there is room for.
---@private
---@return string
function Prompt:placeholder()
  local room = vim.o.columns
  for _, win in ipairs(vim.fn.win_findbuf(self.buf)) do
    local info = vim.fn.getwininfo(win)[1]
    room = math.min(room, info.width - info.textoff)
  end
  -- What a subagent in the background asks keeps no prompt back.
  if self.chat.status.turn_started_ms then
    local say = "Next prompt: it is queued until the turn ends"
    return #say <= room and say or "Next prompt, queued"
  end
  local say = "Ask " .. config.agent_title(self.chat.agent)
  for _, word in ipairs({ "<C-s> sends", "/ commands", "@ context", "g? keys" }) do
    local more = say .. " · " .. word
    if format.width(more) > room then
      break
    end
    say = more
  end
  return say
end

---Brings what is drawn around the text up to date.
function Prompt:refresh()
  if not vim.api.nvim_buf_is_loaded(self.buf) then
    return
  end
  vim.api.nvim_buf_clear_namespace(self.buf, NS, 0, -1)
  local lines = vim.api.nvim_buf_get_lines(self.buf, 0, 2, false)
  if #lines == 1 and lines[1] == "" then
    vim.api.nvim_buf_set_extmark(self.buf, NS, 0, 0, {
      virt_text = { { self:placeholder(), "CursorAgentPlaceholder" } },
      virt_text_pos = "overlay",
    })
  end
  events.emit("prompt changed")
  local bar = self:compose_bar()
  if bar ~= self.bar then
    self.bar = bar
    for _, win in ipairs(vim.fn.win_findbuf(self.buf)) do
      self:dress(win)
      vim.api.nvim__redraw({ win = win, winbar = true })
    end
  end
end

local saver = assert(vim.uv.new_timer())

local function save_drafts()
  for _, chat in ipairs(chats.all()) do
    chat.prompt:save_draft()
  end
end

function Prompt:watch()
  require("cursor_agent.prompt.paste").watch(self)
  vim.api.nvim_create_autocmd({ "TextChanged", "TextChangedI", "TextChangedP" }, {
    buffer = self.buf,
    group = GROUP,
    desc = "cursor-agent: fit the prompt to its text, and keep that",
    callback = function()
      saver:start(DRAFT_MS, 0, vim.schedule_wrap(save_drafts))
      self:refresh()
      for _, win in ipairs(vim.fn.win_findbuf(self.buf)) do
        self:fit(win)
      end
    end,
  })
  vim.api.nvim_create_autocmd("BufLeave", {
    buffer = self.buf,
    group = GROUP,
    desc = "cursor-agent: keep the draft",
    callback = function()
      self:save_draft()
    end,
  })
end

vim.api.nvim_create_autocmd("VimLeavePre", {
  group = GROUP,
  desc = "cursor-agent: keep the drafts",
  callback = save_drafts,
})

vim.api.nvim_create_autocmd({ "BufModifiedSet", "BufWritePost", "BufDelete" }, {
  group = GROUP,
  desc = "cursor-agent: name the unsaved buffers above the prompt",
  callback = vim.schedule_wrap(function()
    for _, chat in ipairs(chats.all()) do
      if #vim.fn.win_findbuf(chat.prompt.buf) > 0 then
        chat.prompt:refresh()
      end
    end
  end),
})

---@param chat cursor_agent.Chat
function M.on_status(chat)
  chat.prompt:on_status(chat.status)
  chat.prompt:refresh()
end

return M
