-- The prompt of a chat: a buffer to write in, what goes along with it, and the prompts sent before.

local chats = require("cursor_agent.chats")
local config = require("cursor_agent.config")
local context = require("cursor_agent.context")
local native = require("cursor_agent.native")
local notify = require("cursor_agent.notify")
local store = require("cursor_agent.store")

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
---@field bar string what stands above the prompt
---@field chat cursor_agent.Chat
---@field private history string[]? newest last
---@field private at integer? which of them is shown
---@field private kept string? what was being written before looking through them
---@field shown string[] the lines as last seen, to tell what a paste added
---@field setting boolean the text is being set by us
local Prompt = {}
Prompt.__index = Prompt

local NS = vim.api.nvim_create_namespace("cursor_agent_prompt")
local GROUP = vim.api.nvim_create_augroup("cursor_agent_prompt", {})

---A large paste comes in pieces; it is taken as one when nothing more has come for so long.
local PASTE_QUIET_MS = 60

---Lines of a line too long, the other form a large paste can take.
local PASTE_BYTES = 8000

---@param chat cursor_agent.Chat
---@return cursor_agent.Prompt
function M.new(chat)
  local buf = require("cursor_agent.chat").make_buffer(chat.key, "prompt")
  local self = setmetatable({
    buf = buf,
    chat = chat,
    attached = {},
    pastes = {},
    queued = {},
    bar = "",
    shown = { "" },
    setting = false,
  }, Prompt)
  chat.prompt = self
  local bo = vim.bo[buf]
  bo.completefunc = "v:lua.require'cursor_agent.complete'.completefunc"
  bo.textwidth = 0
  bo.formatlistpat = [[^\s*\%(\d\+[.)]\|[-*+>]\)\s\+]]
  bo.filetype = "cursoragent-prompt"
  pcall(vim.treesitter.start, buf, "markdown")
  require("cursor_agent.actions").map(buf, "prompt")
  require("cursor_agent.window").attach(chat, buf, "prompt")
  require("cursor_agent.complete").attach(buf)
  self:watch()
  local draft = self:draft()
  if draft then
    self:set_text(draft)
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

---@return string[] names under which a draft of this chat is kept
function Prompt:draft_names()
  local names = { "dir:" .. self.chat.cwd }
  if self.chat.status.session_id then
    table.insert(names, 1, self.chat.status.session_id)
  end
  return names
end

---What was being written here when Neovim was last left.
---@return string?
function Prompt:draft()
  for _, other in ipairs(chats.all()) do
    if other ~= self.chat and other.cwd == self.chat.cwd and not self.chat.status.session_id then
      return nil
    end
  end
  local drafts = store.read("drafts")
  for _, name in ipairs(self:draft_names()) do
    if type(drafts[name]) == "string" then
      return drafts[name]
    end
  end
end

function Prompt:save_draft()
  if not vim.api.nvim_buf_is_loaded(self.buf) then
    return
  end
  local text = self.interrupted and self.interrupted.text or self:text()
  -- A paste is remembered by this prompt only.
  for _, paste in ipairs(self.pastes) do
    local from, to = text:find(paste.label, 1, true)
    if from and to then
      text = text:sub(1, from - 1) .. paste.text .. text:sub(to + 1)
    end
  end
  local value = vim.trim(text) ~= "" and text or nil
  local names = self:draft_names()
  local drafts = store.read("drafts")
  local changed = false
  for _, name in ipairs(names) do
    changed = changed or drafts[name] ~= value
  end
  if changed then
    store.update("drafts", function(all)
      for _, name in ipairs(names) do
        all[name] = value
      end
    end)
  end
end

---@private
---@return string[]
function Prompt:load_history()
  if not self.history then
    self.history = store.read("history")[self.chat.cwd] or {}
  end
  return self.history
end

---@private
---@param text string
function Prompt:remember(text)
  local size = config.get().prompt.history_size
  store.update("history", function(all)
    local list = vim.tbl_filter(function(other)
      return other ~= text
    end, all[self.chat.cwd] or {})
    list[#list + 1] = text
    all[self.chat.cwd] = vim.list_slice(list, math.max(#list - size + 1, 1))
    self.history = all[self.chat.cwd]
  end)
  self.at, self.kept = nil, nil
end

---Shows an older or a newer prompt.
---@param step -1|1
function Prompt:look_back(step)
  local list = self:load_history()
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
    self:set_text(list[at])
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
    local ok, why = pcall(vim.api.nvim_buf_call, buf, function()
      vim.cmd("silent update")
    end)
    if not ok then
      failed[#failed + 1] = tostring(why):gsub("^.-(E%d+:)", "%1")
    end
  end
  self:refresh()
  if #failed > 0 then
    return nil, table.concat(failed, "\n")
  end
  return true
end

function Prompt:attach_unsaved()
  for _, buf in ipairs(self:unsaved()) do
    self:attach(context.unsaved(buf, self.chat.cwd))
  end
end

---Sends text with what is attached, or queues it while a turn runs.
---@param text string
---@param items cursor_agent.context.Item[]
---@param editing? integer the queued prompt this takes the place of
---@return integer?, string?
function Prompt:submit(text, items, editing)
  local library, why = native.get()
  if not library then
    return nil, why
  end
  if vim.trim(text) == "" and #items == 0 then
    return nil, "there is nothing to send"
  end
  local unsaved = config.get().prompt.unsaved
  if unsaved == "save" then
    local saved, problem = self:save_unsaved()
    if not saved then
      return nil, problem
    end
  elseif unsaved == "attach" then
    items = vim.list_slice(items)
    for _, buf in ipairs(self:unsaved()) do
      items[#items + 1] = context.unsaved(buf, self.chat.cwd)
    end
  end
  local blocks, problem = context.collect(text, items, self.chat.cwd)
  if not blocks then
    return nil, problem
  end
  local spec = { text = text, blocks = blocks } ---@type cursor_agent.PromptSpec
  local number, trouble
  if editing then
    local edited
    edited, trouble = library.queue_edit(self.chat.key, editing, spec)
    number = edited and editing or nil
  else
    number, trouble = library.prompt(self.chat.key, spec)
  end
  if number then
    self.queued[number] = #items > 0 and items or nil
  end
  return number, trouble
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
  for _, paste in ipairs(self.pastes) do
    if text:find(paste.label, 1, true) then
      items[#items + 1] = paste
    end
  end
  local number, why = self:submit(text, items, self.editing)
  if not number then
    return nil, why
  end
  self:remember(text)
  self:end_editing()
  self:save_draft()
  self.chat.transcript:go_to_tail()
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
  local draft = self.interrupted or { text = "", attached = {} }
  self.interrupted, self.editing = nil, nil
  self.attached = draft.attached
  self:set_text(draft.text)
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
  local conflict = require("cursor_agent.files").conflicts[1]
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
      if not self:has(label) then
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
    self.bar ~= "" and "%{%v:lua.require'cursor_agent.prompt'.winbar()%}" or "",
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
  local chat_win = require("cursor_agent.window").chat_window(self.chat, vim.api.nvim_win_get_tabpage(win))
  if not chat_win then
    return
  end
  local bar = self.bar ~= "" and 1 or 0
  local height = vim.api.nvim_win_get_height(win)
  local rows = vim.api.nvim_win_text_height(win, {}).all + bar
  local most = math.min(options.prompt_max_height, height + vim.api.nvim_win_get_height(chat_win) - 4)
  local wanted = math.max(math.min(rows, most), math.min(options.prompt_height + bar, most), 1)
  if wanted ~= height then
    local follows = chat_win and self.chat.transcript:is_at_tail(chat_win)
    vim.api.nvim_win_set_height(win, wanted)
    if follows then
      self.chat.transcript:go_to_tail(chat_win)
    end
  end
end

---Brings what is drawn around the text up to date.
function Prompt:refresh()
  if not vim.api.nvim_buf_is_loaded(self.buf) then
    return
  end
  vim.api.nvim_buf_clear_namespace(self.buf, NS, 0, -1)
  local lines = vim.api.nvim_buf_get_lines(self.buf, 0, 2, false)
  if #lines == 1 and lines[1] == "" then
    local say = self.chat.status.state == "running" and "Next prompt: it is queued until the turn ends"
      or ("Ask %s · <C-s> sends · / commands · @ context · g? keys"):format(
        require("cursor_agent.chat").agent_title(self.chat)
      )
    vim.api.nvim_buf_set_extmark(self.buf, NS, 0, 0, {
      virt_text = { { say, "CursorAgentPlaceholder" } },
      virt_text_pos = "overlay",
    })
  end
  local bar = self:compose_bar()
  if bar ~= self.bar then
    self.bar = bar
    for _, win in ipairs(vim.fn.win_findbuf(self.buf)) do
      self:dress(win)
      vim.api.nvim__redraw({ win = win, winbar = true })
    end
  end
end

---How many bytes of the first line stood before what was pasted, and how many of the last line after it.
---@param old string[] the lines that stood there
---@param lines string[] those that stand there now
---@param col integer? where in the first line the paste begins, where that is known
---@return integer head
---@return integer tail
local function around(old, lines, col)
  local first, last = lines[1], lines[#lines]
  local before, after = old[1] or "", old[#old] or ""
  if col and #old <= 1 and col <= #before and first:sub(1, col) == before:sub(1, col) then
    local rest = before:sub(col + 1)
    if rest == "" or last:sub(-#rest) == rest then
      return col, #rest
    end
  end
  -- Else what both have in common, in whole characters.
  local head, tail = 0, 0
  while head < #before and before:byte(head + 1) == first:byte(head + 1) do
    head = head + 1
  end
  while head > 0 and head < #first and vim.str_utf_start(first, head + 1) ~= 0 do
    head = head - 1
  end
  while tail < #after - (#old == 1 and head or 0) and after:byte(#after - tail) == last:byte(#last - tail) do
    tail = tail + 1
  end
  while tail > 0 and vim.str_utf_start(last, #last - tail + 1) ~= 0 do
    tail = tail - 1
  end
  return head, tail
end

---Turns pasted lines into an attachment whose name stands in the text instead.
---@private
---@param first integer
---@param old string[] the lines that stood there
---@param count integer lines that stand there now
---@param col integer? where in the first line it begins, where that is known
function Prompt:collapse(first, old, count, col)
  local tree = vim.api.nvim_buf_call(self.buf, vim.fn.undotree)
  if tree.seq_cur ~= tree.seq_last then
    -- Undo brought it back: the user wants it as text.
    return
  end
  local lines = vim.api.nvim_buf_get_lines(self.buf, first, first + count, false)
  if #lines ~= count then
    return
  end
  local head, tail = around(old, lines, col)
  local last = lines[#lines]
  local pasted = vim.list_slice(lines)
  pasted[#pasted] = last:sub(1, #last - tail)
  pasted[1] = pasted[1]:sub(head + 1)
  local item = context.paste(pasted, #self.pastes + 1)
  table.insert(self.pastes, item)
  self.setting = true
  vim.api.nvim_buf_call(self.buf, function()
    pcall(vim.cmd.undojoin)
  end)
  local text = lines[1]:sub(1, head) .. item.label .. last:sub(#last - tail + 1)
  vim.api.nvim_buf_set_lines(self.buf, first, first + count, false, { text })
  self.setting = false
  for _, win in ipairs(vim.fn.win_findbuf(self.buf)) do
    vim.api.nvim_win_set_cursor(win, { first + 1, head + #item.label })
  end
  self:refresh()
end

function Prompt:watch()
  local pending ---@type { first: integer, old: string[], count: integer }?
  local begins ---@type { row: integer, col: integer }? where the first of the lines that came last were put in
  local timer = assert(vim.uv.new_timer())
  vim.api.nvim_buf_attach(self.buf, false, {
    on_lines = function(_, _, _, first, last, new_last)
      local old = vim.list_slice(self.shown, first + 1, last)
      local new = vim.api.nvim_buf_get_lines(self.buf, first, new_last, false)
      local shown = vim.list_slice(self.shown, 1, first)
      vim.list_extend(shown, new)
      self.shown = vim.list_extend(shown, self.shown, last + 1)
      local limit = config.get().prompt.paste_lines
      if self.setting or limit == 0 then
        return
      end
      local bytes = 0
      for _, line in ipairs(new) do
        bytes = bytes + #line
      end
      for _, line in ipairs(old) do
        bytes = bytes - #line
      end
      if pending and first >= pending.first and first <= pending.first + pending.count then
        pending.count = pending.count + (new_last - last)
      elseif new_last - last >= limit or bytes > PASTE_BYTES then
        pending = { first = first, old = old, count = new_last - first }
      else
        return
      end
      timer:start(
        PASTE_QUIET_MS,
        0,
        vim.schedule_wrap(function()
          local paste, place = pending, begins
          pending, begins = nil, nil
          if paste and vim.api.nvim_buf_is_loaded(self.buf) then
            local col = place and place.row == paste.first and place.col or nil
            self:collapse(paste.first, paste.old, paste.count, col)
          end
        end)
      )
    end,
    on_bytes = function(_, _, _, row, col, _, old_rows, _, old_bytes, new_rows, _, new_bytes)
      if not pending and not self.setting then
        begins = (new_rows > old_rows or new_bytes - old_bytes > PASTE_BYTES) and { row = row, col = col } or nil
      end
    end,
    on_detach = function()
      timer:close()
    end,
  })
  vim.api.nvim_create_autocmd({ "TextChanged", "TextChangedI", "TextChangedP" }, {
    buffer = self.buf,
    group = GROUP,
    desc = "cursor-agent: fit the prompt to its text",
    callback = function()
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
  callback = function()
    for _, chat in ipairs(chats.all()) do
      chat.prompt:save_draft()
    end
  end,
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

---Shows why a prompt could not be sent.
---@param chat cursor_agent.Chat
---@return integer?, string?
function M.send(chat)
  return notify.report(chat.prompt:send())
end

return M
