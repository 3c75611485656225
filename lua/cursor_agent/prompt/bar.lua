-- What is drawn around the text of a prompt: the line above it, what an empty one says, and how high its window is.

local chats = require("cursor_agent.chat.registry")
local config = require("cursor_agent.config")
local conflicts = require("cursor_agent.files.conflicts")
local context = require("cursor_agent.prompt.context")
local events = require("cursor_agent.bridge.events")
local format = require("cursor_agent.render.format")

local M = {}

---@class (partial) cursor_agent.Prompt
local Prompt = {}

local NS = vim.api.nvim_create_namespace("cursor_agent_prompt")

---@param text string
---@return string
local function escape(text)
  return (text:gsub("%%", "%%%%"):gsub("[\r\n]", " "))
end

---What is attached, unsaved, queued or in conflict, in one line.
---@private
---@return string
function Prompt:compose_bar()
  local icons = self.chat.transcript.context.icons
  local parts = {} ---@type string[]
  if self.editing then
    parts[#parts + 1] = "%#CursorAgentBarWaiting#editing a queued prompt"
  end
  if #self.sending.held > 0 then
    parts[#parts + 1] = "%#CursorAgentQueued#waits for git"
  end
  local conflict = conflicts.list[1]
  if conflict then
    -- Before what there may be no room for: an agent may wait for it.
    parts[#parts + 1] = ("%%#CursorAgentWarning#conflict: %s%%#CursorAgentDetail# (:CursorAgent conflicts)"):format(
      escape(vim.fs.basename(conflict.path))
    )
  end
  for i, item in ipairs(self.attached) do
    parts[#parts + 1] = ("%%#CursorAgentContext#%s %%%d@v:lua.require'cursor_agent.prompt.bar'.on_click@%%#CursorAgentDetail#%s%%X"):format(
      escape(item.label),
      i,
      icons.remove
    )
  end
  if config.get().prompt.unsaved == "ask" then
    local names = {} ---@type string[]
    for _, buf in ipairs(self:unsaved()) do
      local label = context.unsaved(buf, self.chat.cwd).label
      if not self:has(label) and not conflicts.has(buf) then
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
    self.bar ~= "" and vim.api.nvim_win_get_height(win) > 1 and "%{%v:lua.require'cursor_agent.prompt.bar'.winbar()%}"
      or "",
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
    local pinned = chat_win and self.chat.transcript.tail:is_at(chat_win)
    vim.api.nvim_win_set_height(win, wanted)
    if pinned then
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

M.methods = Prompt

return M
