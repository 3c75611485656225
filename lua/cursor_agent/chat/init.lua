-- A chat: one session of an agent, with the buffer that shows it and the prompt that feeds it.

local chats = require("cursor_agent.chat.registry")
local config = require("cursor_agent.config")
local native = require("cursor_agent.bridge.native")

local M = {}

---@class (exact) cursor_agent.Chat
---@field key cursor_agent.Key
---@field buf integer
---@field agent string
---@field cwd string
---@field status cursor_agent.Status
---@field transcript cursor_agent.Transcript
---@field prompt cursor_agent.Prompt

---@class (exact) cursor_agent.chat.Opts
---@field agent? string
---@field cwd? string
---@field mode? string
---@field model? string
---@field load? string the agent's session id to go on with

---@param key cursor_agent.Key
---@param kind "chat"|"prompt"
---@return integer
function M.make_buffer(key, kind)
  local buf = vim.api.nvim_create_buf(false, true)
  vim.b[buf].cursor_agent_key = key
  vim.api.nvim_buf_set_name(buf, ("cursor-agent://%d/%s"):format(key, kind))
  local bo = vim.bo[buf]
  bo.bufhidden = "hide"
  bo.swapfile = false
  bo.buflisted = false
  vim.api.nvim_create_autocmd("BufUnload", {
    buffer = buf,
    desc = "cursor-agent: a buffer of a chat without its text is of no use, opening the chat makes a new one",
    callback = vim.schedule_wrap(function()
      if vim.api.nvim_buf_is_valid(buf) and vim.v.exiting == vim.NIL then
        pcall(vim.api.nvim_buf_delete, buf, { force = true })
      end
    end),
  })
  return buf
end

---@param chat cursor_agent.Chat
local function make_transcript(chat)
  chat.buf = M.make_buffer(chat.key, "chat")
  local buf = chat.buf
  local bo = vim.bo[buf]
  bo.undolevels = -1
  bo.modifiable = false
  bo.textwidth = 0
  -- Wrapped lines of lists and quotations are indented as far as their text is.
  bo.formatlistpat = [[^\s*\%(\d\+[.)]\|[-*+>│·!?✓✗…–]\)\s\+]]
  chat.transcript = require("cursor_agent.chat.transcript").new(buf, chat.cwd)
  pcall(vim.treesitter.language.register, "markdown", { "cursoragent", "cursoragent-prompt" })
  bo.filetype = "cursoragent"
  require("cursor_agent.actions").map(buf, "chat")
  require("cursor_agent.chat.window").attach(chat, buf, "chat")
end

---Whether a buffer of a chat is gone, text and all. One that was only unloaded goes as well.
---@param buf integer
---@return boolean
local function is_gone(buf)
  if vim.api.nvim_buf_is_loaded(buf) then
    return false
  end
  if vim.api.nvim_buf_is_valid(buf) then
    pcall(vim.api.nvim_buf_delete, buf, { force = true })
  end
  return true
end

---Shows a session from its beginning in a new buffer, after the old one was deleted.
---@param chat cursor_agent.Chat
function M.revive(chat)
  local library = native.get()
  if is_gone(chat.buf) then
    make_transcript(chat)
    if library then
      require("cursor_agent.bridge.drain").forget_entries(chat.key)
      library.retell(chat.key)
    end
  end
  if is_gone(chat.prompt.buf) then
    chat.prompt = require("cursor_agent.prompt").new(chat)
  end
end

---Starts a session. The agent may still be starting when this returns.
---@param opts? cursor_agent.chat.Opts
---@return cursor_agent.Chat?, string?
function M.new(opts)
  opts = opts or {}
  local agent, name = config.agent(opts.agent)
  if not agent then
    return nil, ("there is no agent `%s`; known are %s"):format(name, table.concat(config.agent_names(), ", "))
  end
  local library, why = native.get()
  if not library then
    return nil, why
  end
  local spec, no_key = require("cursor_agent.agents.presets").spec(name, agent)
  if no_key then
    return nil, no_key
  end
  spec.cwd = vim.fs.normalize(vim.fn.fnamemodify(opts.cwd or vim.fn.getcwd(), ":p")):gsub("(.)/$", "%1")
  if vim.fn.isdirectory(spec.cwd) == 0 then
    return nil, ("%s is not a directory"):format(spec.cwd)
  end
  spec.mode = opts.mode or spec.mode
  spec.model = opts.model or spec.model
  spec.load = opts.load
  local key, problem = library.open(spec)
  if not key then
    return nil, problem
  end
  ---@diagnostic disable-next-line: missing-fields the buffers are made from it below
  local chat = { key = key, agent = name, cwd = spec.cwd, status = assert(library.status(key)) } ---@type cursor_agent.Chat
  require("cursor_agent.colour.parsers").watch_files()
  chats.add(chat)
  chats.use(chat)
  make_transcript(chat)
  chat.prompt = require("cursor_agent.prompt").new(chat)
  require("cursor_agent.decide").setup()
  require("cursor_agent.chat.mksession")
  require("cursor_agent.agents.approval").tell_once(chat)
  return chat
end

---The chat of the current tab, or a new one.
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

---Ends a session and forgets its buffers.
---@param chat cursor_agent.Chat
function M.close(chat)
  require("cursor_agent.chat.window").close(chat)
  local library = native.peek()
  if library then
    library.close(chat.key)
  end
  chat.prompt:save_draft()
  require("cursor_agent.files.watch").turn(chat.key, chat.cwd, false)
  chats.remove(chat)
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

---Takes note of a new status.
---@param chat cursor_agent.Chat
---@param status cursor_agent.Status
function M.set_status(chat, status)
  if status.state == "failed" and status.error and status.error ~= chat.status.error then
    require("cursor_agent.agents.failure").note(chat, status.error)
  end
  require("cursor_agent.files.watch").turn(chat.key, chat.cwd, status.state == "running" or status.state == "waiting")
  local titled = status.title ~= chat.status.title
  chat.status = status
  require("cursor_agent.chat.winbar").update(chat, titled)
  require("cursor_agent.chat.progress").update(chat, status)
  chat.prompt:on_status(status)
  chat.prompt:refresh()
  require("cursor_agent.prompt.queue").refresh(chat)
  require("cursor_agent.decide").on_status(chat)
end

---What to call the agent.
---@param chat cursor_agent.Chat
---@return string
function M.agent_title(chat)
  local agent = config.agent(chat.agent)
  return agent and agent.title or chat.agent
end

return M
