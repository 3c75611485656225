-- What is drawn around a prompt's text: the line above it, the placeholder of an empty one, and its window's height.

local bridge = require("cursor_agent.bridge")
local chats = require("cursor_agent.chat.registry")
local config = require("cursor_agent.config")
local conflicts = require("cursor_agent.files.conflicts")
local context = require("cursor_agent.prompt.context")
local edge = require("cursor_agent.prompt.edge")
local events = require("cursor_agent.bridge.events")
local format = require("cursor_agent.render.format")
local keys = require("cursor_agent.keys")
local notify = require("cursor_agent.notify")
local winbar = require("cursor_agent.chat.winbar")
local window = require("cursor_agent.window.quiet")

local M = {}

---@class (partial) cursor_agent.Prompt
local Prompt = {}

---Instead of an attachment's number: the old conversation attached to the next prompt.
local CARRIED = 0

local NS = vim.api.nvim_create_namespace("cursor_agent_prompt")

---Whether the window above the prompt draws the top of its frame, in its statusline.
---@return boolean
local function has_top()
  return vim.o.laststatus ~= 3
end

---Whether the prompt has a statusline for the bottom of its frame. With 'laststatus' 0 only windows above others have one.
---@return boolean
local function has_bottom()
  return vim.o.laststatus == 1 or vim.o.laststatus == 2
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
    parts[#parts + 1] = "%#CursorAgentQueued#waiting for " .. format.bar_text(self.sending:waits_for())
  end
  local conflict = conflicts.list[1]
  if conflict then
    -- Before anything that may not fit: an agent may be waiting for it.
    parts[#parts + 1] = ("%%#CursorAgentWarning#conflict: %s%%#CursorAgentDetail# (:CursorAgent conflicts)"):format(
      format.bar_text(vim.fs.basename(conflict.path))
    )
  end
  if self.chat.status.carry then
    parts[#parts + 1] = ("%%#CursorAgentContext#%s %%%d@v:lua.require'cursor_agent.prompt.bar'.on_click@%%#CursorAgentDetail#%s%%X"):format(
      format.bar_text(self.chat.status.carry),
      CARRIED,
      icons.remove
    )
  end
  for i, item in ipairs(self.attached) do
    parts[#parts + 1] = ("%%#CursorAgentContext#%s %%%d@v:lua.require'cursor_agent.prompt.bar'.on_click@%%#CursorAgentDetail#%s%%X"):format(
      format.bar_text(item.label),
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
        format.bar_text(list)
      )
    end
  end
  local queued = self.chat.status.queued or 0
  if queued > 0 and not has_bottom() then
    parts[#parts + 1] = ("%%#CursorAgentQueued#queued %d"):format(queued)
  end
  -- If space is short, cut the end, not the beginning.
  return #parts > 0 and " " .. table.concat(parts, "   ") .. "%<" or ""
end

local BORDER = "%#CursorAgentFrame#"

---Most cells of the frame for the name of a mode.
local MODE_CELLS = 20

---The chat whose window is being drawn.
---@return cursor_agent.Chat?
local function drawn()
  return chats.of_buffer(vim.api.nvim_get_current_buf())
end

---The key of an action that works while typing, if there is one.
---@param name string
---@return string?
local function typed_key(name)
  local action = keys.action(name)
  for _, lhs in ipairs(keys.keys(action, "prompt")) do
    if lhs ~= "<CR>" then
      return lhs
    end
  end
  return keys.key(name, "prompt")
end

---The keys that work in the current state, as many as fit.
---@param chat cursor_agent.Chat
---@param room integer
---@return string
function M.hints(chat, room)
  local busy = chat.status.turn_started_ms ~= nil
  local hints = {} ---@type string[]
  ---@param lhs string?
  ---@param what string
  local function hint(lhs, what)
    local text = lhs and lhs .. " " .. what
    if text and format.width(table.concat(hints, " · ") .. " · " .. text) <= room then
      hints[#hints + 1] = text
    end
  end
  hint(typed_key("send"), busy and "queue" or "send")
  if busy then
    hint(typed_key("cancel"), "stop")
    hint(typed_key("send-now"), "send now")
  else
    hint("@", "attach")
    hint("/", "commands")
  end
  hint(keys.key("help", "prompt"), "keys")
  return table.concat(hints, " · ")
end

---The top of the prompt's frame: who is asked, and the chat's title, or the keys if the frame has no bottom.
---@return string
function M.top()
  local chat = drawn()
  if not chat then
    return ""
  end
  local icons, border = chat.transcript.context.icons, BORDER
  -- The first prompt is already visible in the chat.
  local title = chat.status.title_from ~= "prompt" and chat.status.title or nil
  local agent = config.agent_title(chat.agent)
  -- A corner, "Ask" and spaces on the left; a line and a corner on the right.
  local room = vim.api.nvim_win_get_width(0) - format.width(agent) - 9
  local about = title and room > 12 and (" %s "):format(format.first_line(title, room - 4)) or ""
  if not has_bottom() then
    local hints = M.hints(chat, room - 4)
    about = hints ~= "" and (" %s "):format(hints) or ""
  end
  return ("%s%s %%#CursorAgentFrameTitle#Ask %s %s%s%%#CursorAgentFrameKeys#%s%s%s%s"):format(
    border,
    icons.corner_top,
    format.bar_text(agent),
    border,
    icons.rule:rep(math.max(room - format.width(about), 0)),
    format.bar_text(about),
    border,
    icons.rule,
    icons.corner_top_end
  )
end

---The bottom of the frame: the keys that work in the current state, and what is queued.
---@return string
function M.bottom()
  local chat = drawn()
  if not chat then
    return ""
  end
  local icons, border = chat.transcript.context.icons, BORDER
  local queued = chat.status.queued or 0
  local mode = winbar.mode(chat.status)
  local right = {} ---@type string[]
  right[#right + 1] = queued > 0 and queued .. " queued" or nil
  right[#right + 1] = mode and format.first_line(mode, MODE_CELLS)
  local tail, hints ---@type string, string
  repeat
    tail = table.concat(right, " · ")
    hints = M.hints(chat, vim.api.nvim_win_get_width(0) - 7 - (tail ~= "" and format.width(tail) + 2 or 0))
    -- The winbar also shows the mode and the queue, but not the key that stops.
    local enough = not chat.status.turn_started_ms or not typed_key("cancel") or hints:find(" stop", 1, true)
  until enough or not table.remove(right)
  return ("%s%s %%#CursorAgentFrameKeys#%s %s%%=%s%s%s%s"):format(
    border,
    icons.corner_bottom,
    format.bar_text(hints),
    border,
    tail ~= "" and ("%%#CursorAgentFrameKeys# %s "):format(format.bar_text(tail)) or "",
    border,
    icons.rule,
    icons.corner_bottom_end
  )
end

---The statusline shared by all windows, in a chat window: the chat's title, not its buffer's name.
---@return string
function M.shared()
  local chat = drawn()
  if not chat then
    return ""
  end
  local words = require("cursor_agent.chat.titles").of(chat)
  local agent = config.agent_title(chat.agent)
  return (" %s · %s%%=%%-14.(%%l,%%c%%V%%) %%P "):format(format.bar_text(agent), format.bar_text(words))
end

---The winbar of the prompt being drawn: what is attached, or the top of its frame if no statusline is above it.
---@return string
function M.winbar()
  local chat = drawn()
  if not chat then
    return ""
  end
  local bar, gutter = chat.prompt.bar, BORDER .. chat.transcript.context.icons.gutter
  if bar == "" and not has_top() then
    return M.top()
  end
  return ("%s%s%%=%s"):format(gutter, bar, gutter)
end

---A click on an attachment's remove sign.
---@param index integer
function M.on_click(index)
  local win = vim.fn.getmousepos().winid
  local chat = win ~= 0 and chats.of_buffer(vim.api.nvim_win_get_buf(win))
  if chat and index == CARRIED then
    notify.report(bridge.drop_carry(chat.key))
  elseif chat then
    chat.prompt:detach(index)
  end
end

---Sets the options of a window that has started to show the prompt.
---@param win integer
function Prompt:dress(win)
  vim.api.nvim_set_option_value(
    "winbar",
    -- An empty value would fall back to the user's global winbar.
    (self.bar ~= "" or vim.go.winbar ~= "" or not has_top())
        and not window.is_float(win)
        and vim.api.nvim_win_get_height(win) > 1
        and "%{%v:lua.require'cursor_agent.prompt.bar'.winbar()%}"
      or "",
    { win = win, scope = "local" }
  )
  self:fit(win)
end

---Fits the window's height to its text, within the limits of the options.
---@param win integer
function Prompt:fit(win)
  if vim.api.nvim_win_get_config(win).relative ~= "" then
    return
  end
  local options = config.get().window
  local chat_win = window.showing(self.chat.buf, vim.api.nvim_win_get_tabpage(win))[1]
  if not chat_win then
    return
  end
  local bar = (self.bar ~= "" or vim.go.winbar ~= "" or not has_top()) and 1 or 0
  local height = vim.api.nvim_win_get_height(win)
  -- Without the empty rows of the frame below the text.
  local last = vim.api.nvim_buf_line_count(self.buf) - 1
  local rows = vim.api.nvim_win_text_height(win, { end_row = last }).all + bar
  local most = math.min(options.prompt_max_height, height + vim.api.nvim_win_get_height(chat_win) - 4)
  local wanted = math.max(math.min(rows, most), math.min(options.prompt_height + bar, most), 1)
  if wanted ~= height then
    local pinned = chat_win and self.chat.transcript.tail:is_at(chat_win)
    vim.api.nvim_win_set_height(win, wanted)
    if pinned then
      self.chat.transcript.tail:go(chat_win)
    end
  end
  if rows <= wanted and vim.fn.line("w0", win) > 1 then
    -- It was scrolled before it became tall enough.
    vim.api.nvim_win_call(win, function()
      vim.fn.winrestview({ topline = 1, skipcol = 0 })
    end)
  end
  edge.refresh(self.buf)
end

---The placeholder of an empty prompt, as much of it as fits.
---@private
---@return string
function Prompt:placeholder()
  local room = vim.o.columns
  for _, win in ipairs(vim.fn.win_findbuf(self.buf)) do
    local info = vim.fn.getwininfo(win)[1]
    room = math.min(room, info.width - info.textoff)
  end
  local choices = { "Ask, or type / for commands and @ for files", "Ask, / for commands, @ for files", "Ask" }
  -- A background subagent's question does not hold a prompt back.
  if self.chat.status.turn_started_ms then
    choices = { "Next prompt, queued until the turn ends", "Queued until the turn ends", "Queued" }
  end
  for _, words in ipairs(choices) do
    -- The last column is the frame's.
    if format.width(words) < room then
      return words
    end
  end
  return ""
end

---Updates what is drawn around the text.
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

---Redraws the bottom of the frame. Neovim does that by itself only when text changes.
function Prompt:redraw_keys()
  for _, win in ipairs(vim.fn.win_findbuf(self.buf)) do
    vim.api.nvim__redraw({ win = win, statusline = true })
  end
end

M.methods = Prompt

return M
