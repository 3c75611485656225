-- A chat: one session of an agent, with the buffer that shows it and the prompt that feeds it.

local bridge = require("cursor_agent.bridge")
local buffers = require("cursor_agent.chat.buffers")
local chats = require("cursor_agent.chat.registry")
local config = require("cursor_agent.config")
local events = require("cursor_agent.bridge.events")

local M = {}

---@class cursor_agent.Chat
---@field key cursor_agent.Key
---@field buf integer
---@field agent string
---@field cwd string
---@field status cursor_agent.Status
---@field transcript cursor_agent.Transcript
---@field prompt cursor_agent.Prompt
local Chat = {}
Chat.__index = Chat

---@class (exact) cursor_agent.chat.Opts
---@field agent? string
---@field cwd? string
---@field mode? string
---@field model? string
---@field load? string the agent's session id to continue
---@field title? string its title in the agent's list

---@param chat cursor_agent.Chat
local function make_transcript(chat)
  chat.buf = buffers.make(chat.key, "chat")
  local buf = chat.buf
  local bo = vim.bo[buf]
  bo.undolevels = -1
  bo.modifiable = false
  bo.textwidth = 0
  -- Wrapped lines of lists and quotations are indented to their text.
  bo.formatlistpat = [[^\s*\%(\d\+[.)]\|[-*+>│·!?●✓✗…–]\)\s\+]]
  chat.transcript = require("cursor_agent.chat.transcript").new(buf, chat.cwd)
  pcall(vim.treesitter.language.register, "markdown", { "cursoragent", "cursoragent-prompt" })
  bo.filetype = "cursoragent"
  require("cursor_agent.keys").map(buf, "chat")
  require("cursor_agent.chat.layout").attach(chat, buf, "chat")
end

---Shows a session from the start in a new buffer, after the old one was deleted.
function Chat:revive()
  if buffers.is_gone(self.buf) then
    make_transcript(self)
    bridge.forget_entries(self.key)
    bridge.retell(self.key)
  end
  if buffers.is_gone(self.prompt.buf) then
    self.prompt = require("cursor_agent.prompt").new(self)
  end
  require("cursor_agent.chat.titles").name_buffers(self)
end

---Starts a session. The agent may still be starting when this returns.
---@param opts? cursor_agent.chat.Opts
---@return cursor_agent.Chat?, string?
function M.new(opts)
  opts = opts or {}
  local agent, name = config.agent(opts.agent)
  if not agent then
    return nil, ("unknown agent `%s`; expected one of %s"):format(name, table.concat(config.agent_names(), ", "))
  end
  local ready, why = bridge.load()
  if not ready then
    return nil, why
  end
  local spec, no_key = require("cursor_agent.agents.presets").spec(name, agent)
  if no_key then
    return nil, no_key
  end
  spec.cwd = vim.fs
    .normalize(vim.fn.fnamemodify(opts.cwd or require("cursor_agent.chat.workspace").root(), ":p"))
    :gsub("(.)/$", "%1")
  if vim.fn.isdirectory(spec.cwd) == 0 then
    return nil, ("%s is not a directory"):format(spec.cwd)
  end
  local chosen = require("cursor_agent.chat.next").get(name)
  spec.mode = opts.mode or chosen.mode or spec.mode
  spec.model = opts.model or chosen.model or spec.model
  spec.load, spec.title = opts.load, opts.title
  local key, problem = bridge.open(spec)
  if not key then
    return nil, problem
  end
  local chat = setmetatable({ key = key, agent = name, cwd = spec.cwd, status = assert(bridge.status(key)) }, Chat) --[[@as cursor_agent.Chat]]
  require("cursor_agent.colour.parsers").watch_files()
  chats.add(chat)
  chats.use(chat)
  make_transcript(chat)
  chat.prompt = require("cursor_agent.prompt").new(chat)
  events.emit("chat started", chat)
  if #chats.all() > 1 then
    events.emit("another chat", chat)
  end
  return chat
end

---Adopts a session that the library has and no chat shows: from the start, in new buffers.
---@param key cursor_agent.Key
---@param agent string
---@param cwd string
---@return cursor_agent.Chat?
function M.adopt(key, agent, cwd)
  local status = bridge.status(key)
  if not status then
    return nil
  end
  local chat = setmetatable({ key = key, agent = agent, cwd = cwd, status = status }, Chat) --[[@as cursor_agent.Chat]]
  require("cursor_agent.colour.parsers").watch_files()
  chats.add(chat)
  chats.use(chat)
  make_transcript(chat)
  chat.prompt = require("cursor_agent.prompt").new(chat)
  events.emit("chat started", chat)
  -- A turn may be running: start its clock, and watch the files it writes.
  local untitled = vim.deepcopy(status)
  untitled.title = nil
  events.emit("chat status", chat, untitled)
  bridge.forget_entries(key)
  bridge.retell(key)
  return chat
end

---The current tab's chat, or a new one.
---@param opts? { agent?: string, cwd?: string, mode?: string }
---@return cursor_agent.Chat?, string?
function M.ensure(opts)
  opts = opts or {}
  local chat = chats.current()
  if chat and (not opts.agent or opts.agent == chat.agent) then
    return chat
  end
  return M.new({ agent = opts.agent, cwd = opts.cwd, mode = opts.mode })
end

---Ends a session and drops its buffers.
---@param chat cursor_agent.Chat
function M.close(chat)
  require("cursor_agent.chat.layout").close(chat)
  bridge.close(chat.key)
  chat.prompt:save_draft()
  events.emit("chat closed", chat)
  chats.remove(chat)
  events.emit("chat gone", chat)
  local bufs = { chat.buf, chat.prompt.buf }
  for _, view in ipairs(require("cursor_agent.chat.transcript").views(chat)) do
    bufs[#bufs + 1] = view.buf
  end
  for _, buf in ipairs(bufs) do
    if vim.api.nvim_buf_is_valid(buf) then
      vim.api.nvim_buf_delete(buf, { force = true })
    end
  end
end

return M
