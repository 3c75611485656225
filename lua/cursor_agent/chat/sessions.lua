-- Opens, starts, loads and prompts chats, for the public functions of the same names.

local chats = require("cursor_agent.chat.registry")

local M = {}

---Opens the current tab's chat, or a new one, and goes to its prompt.
---@param opts? cursor_agent.OpenOpts
---@return cursor_agent.Key?, string?
function M.open(opts)
  opts = opts or {}
  local chat, why = require("cursor_agent.chat").ensure(opts)
  if not chat then
    return nil, why
  end
  local shown, problem =
    require("cursor_agent.chat.layout").open(chat, { enter = opts.enter ~= false, position = opts.position })
  if not shown then
    return nil, problem
  end
  return chat.key
end

---Closes the chat's windows in the current tab. The session keeps running.
---@return boolean?, string?
function M.close()
  local chat, why = chats.find()
  if not chat then
    return nil, why
  end
  require("cursor_agent.chat.layout").close(chat)
  return true
end

---Opens the chat, or closes its windows in the current tab.
---@return cursor_agent.Key|boolean?, string?
function M.toggle()
  local chat = chats.current()
  if chat and require("cursor_agent.chat.layout").is_open(chat) then
    return M.close()
  end
  return M.open()
end

---@param chat cursor_agent.Chat
---@param opts? { enter?: boolean }
local function show(chat, opts)
  require("cursor_agent.notify").report(require("cursor_agent.chat.layout").open(chat, opts))
end

---Starts a new session and shows it.
---@param opts? cursor_agent.NewOpts
---@return cursor_agent.Key?, string?
function M.new(opts)
  opts = opts or {}
  local chat, why = require("cursor_agent.chat").new({
    agent = opts.agent,
    cwd = opts.cwd,
    mode = opts.mode,
    model = opts.model,
  })
  if not chat then
    return nil, why
  end
  if opts.open ~= false then
    show(chat, { enter = opts.enter })
  end
  return chat.key
end

---Sends a prompt, or queues it while a turn runs. Starts a chat if there is none.
---@param text string
---@param opts? cursor_agent.PromptOpts
---@return integer? number of the prompt; 0 while it waits for an attachment, such as a `@diff` from git
---@return string?
function M.prompt(text, opts)
  opts = opts or {}
  if type(text) ~= "string" then
    return nil, ("prompt: expected a string, got %s"):format(type(text))
  end
  local chat, why
  if opts.session then
    chat, why = chats.find(opts.session)
  else
    chat, why = require("cursor_agent.chat").ensure()
  end
  if not chat then
    return nil, why
  end
  local items, problem = require("cursor_agent.prompt.context").read(opts.context, chat.cwd)
  if not items then
    return nil, problem
  end
  local number, trouble = chat.prompt:submit_elsewhere(text, items)
  if number and opts.open ~= false then
    show(chat)
  end
  return number, trouble
end

---Continues a past session.
---@param id string the agent's session id
---@param opts? cursor_agent.NewOpts
---@return cursor_agent.Key?, string?
function M.load(id, opts)
  opts = opts or {}
  local chat = chats.find(id)
  local here = chats.current()
  local why
  if not chat then
    local known = require("cursor_agent.chat.past").known(id)
    chat, why = require("cursor_agent.chat").new({
      -- An id from `list` may belong to the current chat's agent.
      agent = opts.agent or known and known.agent or here and here.agent,
      cwd = opts.cwd or known and known.cwd,
      title = known and known.title_from == "agent" and known.title or nil,
      mode = opts.mode,
      model = opts.model,
      load = id,
    })
  end
  if not chat then
    return nil, why
  end
  chats.use(chat)
  if opts.open ~= false then
    show(chat, { enter = opts.enter })
  end
  return chat.key
end

return M
