-- Writes the entries of a session into its chat buffer, each within its own lines.
--
-- They are in the order they came, except that a subagent's entries are below its task, one block per task. Another
-- buffer may show one such block alone.

local NS = require("cursor_agent.chat.namespaces")
local redraw = require("cursor_agent.chat.redraw")
local entry_folds = require("cursor_agent.chat.entry_folds")
local highlights = require("cursor_agent.colour.highlights")
local painter = require("cursor_agent.colour.painter")
local regions = require("cursor_agent.chat.regions")
local render = require("cursor_agent.render")

---@class (exact) cursor_agent.transcript.Item an entry as it stands in the buffer
---@field kind string
---@field gap integer lines between it and the entry above: 0 or 1
---@field done boolean
---@field text string? of a prompt
---@field started_ms integer
---@field parent integer? the task it is below
---@field depth integer how many tasks it is below, in this buffer
---@field tail cursor_agent.render.Tail? of streamed text
---@field goes_on cursor_agent.transcript.GoesOn? it starts inside a code block of an earlier message
---@field blocks cursor_agent.render.TextBlock[]? of streamed text; rows from the entry's own
---@field lit table<integer, integer|true> coloured blocks: true, or the number of bytes at that time
---@field lit_at integer when the last one was coloured
---@field drawn integer counts how often a block was rendered
---@field painting integer the value of `drawn` being coloured
---@field targets table<integer, cursor_agent.render.Target>? by row
---@field code cursor_agent.render.Code[]? not yet coloured
---@field asides integer[] marks of `asides`
---@field fold cursor_agent.transcript.Fold?

---@class (exact) cursor_agent.transcript.Fold
---@field first integer row, from the entry's own
---@field last integer row
---@field closed boolean
---@field block boolean? it covers everything below the task; its last row is that of its last entry
---@field made boolean? windows have it: a task with nothing below it has no fold yet

---A message continues a code block of an earlier one, since a tool call came between them. Its first line repeats the
---fence.
---@class (exact) cursor_agent.transcript.GoesOn
---@field from integer the entry it continues
---@field joined boolean whether that is in the middle of a line

---How the last closed window showed the chat.
---@class (exact) cursor_agent.transcript.Left
---@field seen integer? lines the user could have seen; nil: pinned to the end
---@field view vim.fn.winsaveview.ret
---@field closed table<integer, boolean> by entry whose fold the user opened or closed

---@class (partial) cursor_agent.Transcript
---@field buf integer
---@field items table<integer, cursor_agent.transcript.Item> by the number of the entry
---@field order integer[] entry numbers in buffer order
---@field private position table<integer, integer> index of each in `order`
---@field root integer? the task whose block this is
---@field context cursor_agent.render.Context
---@field conceal boolean
---@field fold_thoughts boolean
---@field tail cursor_agent.Tail
---@field asides table<integer, cursor_agent.render.Aside[]> by mark
---@field ticking table<integer, boolean> marks of asides that show elapsed time
---@field private next_aside integer
---@field private fenced boolean
---@field private left cursor_agent.transcript.Left?
---@field private open boolean the buffer may be written to
---@field private last_room integer? cells per line at the last drawing
---@field folds cursor_agent.EntryFolds which of them are folded
local Transcript = vim.tbl_extend(
  "error",
  require("cursor_agent.chat.positions"),
  require("cursor_agent.chat.blocks"),
  require("cursor_agent.chat.stream")
)
Transcript.__index = Transcript

---Cells left of the text in each window.
local MARGIN = 1

---Used while no window shows the chat.
local UNSEEN_ROOM = 60

---@type table<integer, cursor_agent.Transcript> by buffer
local by_buffer = {}

local M = { NS = NS }

---@param buf integer
---@return cursor_agent.Transcript?
function M.of(buf)
  return by_buffer[buf]
end

---The transcript of a chat that the current buffer shows: all of it, or a subagent's block.
---@param chat cursor_agent.Chat
---@return cursor_agent.Transcript
function M.here(chat)
  return by_buffer[vim.api.nvim_get_current_buf()] or chat.transcript
end

---The other buffers that show parts of a chat.
---@param chat cursor_agent.Chat
---@return cursor_agent.Transcript[]
function M.views(chat)
  local list = {} ---@type cursor_agent.Transcript[]
  for buf, transcript in pairs(by_buffer) do
    local loaded = transcript.root ~= nil and vim.api.nvim_buf_is_loaded(buf)
    if loaded and vim.b[buf].cursor_agent_key == chat.key then
      list[#list + 1] = transcript
    end
  end
  return list
end

---@param buf integer
---@param cwd string
---@param root? integer show only this task's block
---@return cursor_agent.Transcript
function M.new(buf, cwd, root)
  local options = require("cursor_agent.config").get().chat
  local self = setmetatable({
    buf = buf,
    items = {},
    order = {},
    position = {},
    root = root,
    context = {
      cwd = cwd,
      icons = require("cursor_agent.render.icons").pick(options.icons),
      diff_lines = options.diff_lines,
      output_lines = options.output_lines,
      fold_tools = options.fold_tools,
    },
    conceal = options.conceal,
    fold_thoughts = options.fold_thoughts,
    tail = require("cursor_agent.chat.tail").new(buf),
    asides = {},
    ticking = {},
    next_aside = 1,
    open = false,
    fenced = false,
  }, Transcript)
  self.folds = entry_folds.new(self)
  by_buffer[buf] = self
  require("cursor_agent.colour.parsers").fence_soon(buf, function()
    self:fence()
  end)
  highlights.setup()
  redraw.setup(M)
  painter.warm_up()
  vim.api.nvim_create_autocmd("BufWipeout", {
    buffer = buf,
    desc = "cursor-agent: forget the transcript of a wiped buffer",
    callback = function()
      by_buffer[buf] = nil
    end,
  })
  return self
end

---@return integer[]
function Transcript:windows()
  return vim.fn.win_findbuf(self.buf)
end

---Cells per line in the narrowest window; nil if no window shows the chat.
---@return integer?
function Transcript:narrowest()
  local room ---@type integer?
  for _, win in ipairs(self:windows()) do
    local width = vim.api.nvim_win_get_width(win) - MARGIN
    room = math.min(room or width, width)
  end
  return room
end

---Cells per line for drawing markdown; nil if another plugin draws it, or if it is not drawn.
---@return integer?
function Transcript:room()
  if not self.conceal or require("cursor_agent.colour.parsers").has_reader() then
    return nil
  end
  return self:narrowest() or UNSEEN_ROOM
end

---Redraws everything that depends on the windows' width, as it becomes visible.
---@param room integer?
function Transcript:on_room(room)
  if self.last_room and self.last_room ~= room then
    for _, item in pairs(self.items) do
      item.lit = {}
    end
  end
  self.last_room = room
end

---Keeps parsers away from text that must not be parsed. Call it before the first text.
function Transcript:fence()
  if not self.fenced then
    self.fenced = true
    regions.fence(self)
  end
end

---Makes the buffer writable, once per batch of changes.
---@private
function Transcript:begin()
  if not self.open then
    self:fence()
    self.open = true
    vim.bo[self.buf].modifiable = true
    self.tail:note()
  end
end

---Whether a batch of changes is being written.
---@return boolean
function Transcript:is_open()
  return self.open
end

---Ends a batch of changes.
---@param flood boolean more changes follow immediately
function Transcript:finish(flood)
  if self.open then
    self.open = false
    if vim.api.nvim_buf_is_valid(self.buf) then
      vim.bo[self.buf].modifiable = false
      vim.bo[self.buf].modified = false
      self.folds:make()
    end
  end
  if self.tail:scroll(flood) then
    regions.update(self)
  end
end

---Adds an entry to the buffer, or renders it again.
---@param index integer
---@param entry cursor_agent.Entry
function Transcript:entry(index, entry)
  self:begin()
  local fresh = self.items[index] == nil
  if render.streams(entry.kind) then
    self:message(index, entry, fresh)
    return
  end
  local known = self.items[index]
  if known and known.text and entry.kind == "user" and entry.text == "" then
    -- A prompt that a replay sends in pieces is not repeated once it is complete.
    entry.text = known.text
  end
  local task = self.items[entry.parent or 0]
  entry.depth = task and task.depth + 1 or 0
  local block = render.entry(entry, self.context)
  if fresh then
    self:decorate(index, self:add(index, entry, block.lines), block)
  else
    self:put(index, block)
  end
  local item = assert(self.items[index])
  item.done = entry.done
  item.text = entry.kind == "user" and entry.text or nil
end

---Appends to an entry.
---@param index integer
---@param text string
function Transcript:append(index, text)
  local item = self.items[index]
  if not item then
    return
  end
  self:begin()
  if item.tail then
    self:stream(index, text)
  elseif item.text then
    item.text = item.text .. text
    self:put(
      index,
      render.entry({
        kind = item.kind --[[@as "user"]],
        text = item.text,
        done = false,
        started_ms = item.started_ms,
        parent = item.parent,
        depth = item.depth,
      }, self.context)
    )
  end
end

---Records how a window that is about to close shows the chat, for the next one.
---@param win integer
function Transcript:leave(win)
  self.left = {
    seen = self.tail:leave(win),
    view = vim.api.nvim_win_call(win, vim.fn.winsaveview),
    closed = self.folds:by_hand(win),
  }
end

---Sets the folds of a window that has just started to show the chat, and restores the previous window's position.
---@param win integer
function Transcript:dress(win)
  local left = self.left
  self.folds:dress(win, left and left.closed or {})
  if left and left.seen then
    self.tail:resume(win, left.seen)
    vim.api.nvim_win_call(win, function()
      vim.fn.winrestview(left.view)
    end)
  else
    self.tail:go(win)
  end
end

---The last line that matters: of a tool call its first one, since the others are details.
---@return integer
function Transcript:last_heading()
  local last = vim.api.nvim_buf_line_count(self.buf)
  local index, top = self:entry_at(last - 1)
  return index and self.items[index].kind == "tool" and top + 1 or last
end

---The target of a row.
---@param row integer
---@return cursor_agent.render.Target?
---@return integer? index of the entry
function Transcript:target(row)
  local index, top = self:entry_at(row)
  if not index then
    return nil, nil
  end
  local targets = self.items[index].targets
  return targets and targets[row - top], index
end

return M
