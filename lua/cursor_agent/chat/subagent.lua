-- A subagent in its own buffer: shows what its block in the chat shows, while it works and afterwards.

local format = require("cursor_agent.render.format")
local bridge = require("cursor_agent.bridge")
local events = require("cursor_agent.bridge.events")
local buffer_names = require("cursor_agent.bridge.buffer_names")
local transcripts = require("cursor_agent.chat.transcript")

local M = {}

---Whether we subscribe to streamed text: only once a chat has such a buffer, and most never do.
local listens = false

---@param chat cursor_agent.Chat
---@param index integer
---@param entry cursor_agent.Entry
function M.on_entry(chat, index, entry)
  for _, view in ipairs(transcripts.views(chat)) do
    if view:shows(index, entry.parent) then
      view:entry(index, entry)
    elseif view.root == index then
      vim.b[view.buf].cursor_agent_title = M.title(entry)
      vim.cmd.redrawstatus({ bang = true })
    end
  end
end

---@param chat cursor_agent.Chat
---@param index integer
---@param text string
function M.on_append(chat, index, text)
  for _, view in ipairs(transcripts.views(chat)) do
    view:append(index, text)
  end
end

---Ends a batch of changes.
---@param chat cursor_agent.Chat
---@param flood boolean more changes follow immediately
function M.on_drained(chat, flood)
  for _, view in ipairs(transcripts.views(chat)) do
    view:finish(flood)
  end
end

---A subagent's name and state, in one line.
---@param entry cursor_agent.Entry
---@return string
function M.title(entry)
  local tool = entry.tool --[[@as cursor_agent.ToolCall]]
  local task = tool.task or { description = tool.title, subagent = "" } ---@type cursor_agent.Task
  local words = { format.first_line(task.description, 60) } ---@type string[]
  local state = task.state
  if task.waiting or state == "requires_action" then
    state = "needs approval"
  elseif not state or state == "idle" then
    state = tool.status == "in_progress" and "running" or tool.status == "completed" and "done" or tool.status
  end
  words[#words + 1] = state
  local duration = task.duration_ms or tool.duration_ms
  if duration and tool.status ~= "in_progress" then
    words[#words + 1] = duration >= format.SHOWN_MS and format.duration(duration) or nil
  end
  return table.concat(words, " · ")
end

---The line above a subagent's buffer.
---@return string
function M.bar()
  local title = vim.b[vim.api.nvim_get_current_buf()].cursor_agent_title or ""
  return ("%%#CursorAgentBarAgent# %s %%#CursorAgentBarState#%%<"):format((title:gsub("%%", "%%%%")))
end

---@param win integer
---@param buf integer
local function dress(win, buf)
  local conceal = require("cursor_agent.config").get().chat.conceal
  for name, value in pairs({
    number = true,
    relativenumber = false,
    numberwidth = 1,
    statuscolumn = " ",
    signcolumn = "no",
    foldcolumn = "0",
    colorcolumn = "",
    list = false,
    spell = false,
    wrap = true,
    linebreak = true,
    breakindent = true,
    breakindentopt = require("cursor_agent.chat.dress").LIST_INDENT,
    foldenable = true,
    foldmethod = "manual",
    foldtext = "",
    foldminlines = 0,
    winhighlight = "Folded:CursorAgentFolded",
    fillchars = "fold: ,eob: ",
    conceallevel = conceal and 2 or 0,
    concealcursor = "",
    winbar = "%{%v:lua.require'cursor_agent.chat.subagent'.bar()%}",
  }) do
    vim.api.nvim_set_option_value(name, value, { win = win, scope = "local" })
  end
  local view = transcripts.of(buf)
  if view then
    view:dress(win)
  end
end

---Creates a subagent's buffer and writes what there is so far.
---@param chat cursor_agent.Chat
---@param task integer
---@return integer buf
local function make(chat, task)
  local buf = vim.api.nvim_create_buf(false, true)
  vim.b[buf].cursor_agent_key = chat.key
  vim.api.nvim_buf_set_name(buf, buffer_names.of(("%d/subagent/%d"):format(chat.key, task)))
  local bo = vim.bo[buf]
  bo.bufhidden = "wipe"
  bo.swapfile = false
  bo.undolevels = -1
  bo.modifiable = false
  bo.textwidth = 0
  bo.formatlistpat = vim.bo[chat.buf].formatlistpat
  local view = transcripts.new(buf, chat.cwd, task)
  if not listens then
    listens = true
    for event, name in pairs({ entry = "on_entry", append = "on_append", drained = "on_drained" }) do
      events.on("chat " .. event, "cursor_agent.chat.subagent", name)
    end
  end
  local last = chat.transcript:last_of_block(task)
  local index = chat.transcript:next(task)
  while index and last ~= task do
    local entry = bridge.told(chat.key, index)
    if entry then
      view:entry(index, entry)
    end
    index = index ~= last and chat.transcript:next(index) or nil
  end
  view:finish(false)
  bo.filetype = "cursoragent"
  require("cursor_agent.keys").map(buf, "subagent")
  return buf
end

---Shows a subagent in its own buffer, which keeps updating, and goes there.
---@param chat cursor_agent.Chat
---@param task integer its entry
---@return boolean?, string?
function M.open(chat, task)
  local entry = bridge.told(chat.key, task)
  if not entry or not entry.tool or not entry.tool.task then
    return nil, "no subagent under the cursor"
  end
  local from = vim.api.nvim_get_current_win()
  local buf = vim.fn.bufnr(buffer_names.exactly(("%d/subagent/%d"):format(chat.key, task)))
  if buf == -1 then
    buf = make(chat, task)
  end
  vim.b[buf].cursor_agent_title = M.title(entry)
  local known = vim.fn.win_findbuf(buf)[1]
  if known then
    vim.api.nvim_set_current_win(known)
    return true
  end
  vim.b[buf].cursor_agent_from = from
  local win = require("cursor_agent.window.scratch").show(buf, chat)
  if not win then
    return nil, "no room for another window"
  end
  dress(win, buf)
  return true
end

---Shows the subagent whose block the cursor is in.
---@param chat cursor_agent.Chat
---@return boolean?, string?
function M.here(chat)
  local transcript = transcripts.here(chat)
  local index = transcript:entry_at(vim.api.nvim_win_get_cursor(0)[1] - 1)
  while index do
    local entry = bridge.told(chat.key, index)
    if entry and entry.tool and entry.tool.task then
      return M.open(chat, index)
    end
    index = transcript.items[index].parent
  end
  return nil, "no subagent under the cursor"
end

return M
