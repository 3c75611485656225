-- `:CursorAgent {subcommand}`: what each subcommand does and how its arguments complete.

local chats = require("cursor_agent.chat.registry")
local format = require("cursor_agent.render.format")
local notify = require("cursor_agent.notify")

require("cursor_agent.parts")

local M = {}

---@class (exact) cursor_agent.command.Args
---@field rest string what follows the subcommand, as typed
---@field words string[] `rest` split into words
---@field bang boolean
---@field first integer? first line of the range, if one was given
---@field last integer?

---@class (exact) cursor_agent.Subcommand
---@field desc string
---@field run fun(args: cursor_agent.command.Args): any, string?
---@field words? integer the most words it takes; nil: any number (text or a path)
---@field complete? fun(words: string[]): string[] candidates for the last word

---@return cursor_agent.Chat?
local function current()
  return chats.current()
end

---@param work fun(chat: cursor_agent.Chat, args: cursor_agent.command.Args): any, string?
---@return fun(args: cursor_agent.command.Args): any, string?
local function with_chat(work)
  return function(args)
    local chat, why = chats.find()
    if not chat then
      return nil, why
    end
    return work(chat, args)
  end
end

---@param list { id: string }[]?
---@return string[]
local function ids(list)
  return vim.tbl_map(function(item)
    return item.id
  end, list or {})
end

---@param args cursor_agent.command.Args
---@param chat cursor_agent.Chat
---@return cursor_agent.context.Item?
local function selection(args, chat)
  if args.first and args.last then
    local buf = vim.api.nvim_get_current_buf()
    return require("cursor_agent.prompt.context").range(buf, args.first, args.last, chat.cwd)
  end
end

---@param name "mode"|"model"
---@return cursor_agent.Subcommand
local function chooser(name)
  return {
    desc = ("Set the %s, or choose one"):format(name),
    run = function(args)
      return require("cursor_agent.chat.pick").switch(name, args.rest ~= "" and args.rest or nil)
    end,
    complete = function()
      local chat = current()
      local known = chat and chat.status[name .. "s"] or {}
      if #known > 0 then
        return ids(known)
      end
      local agent, agent_name = require("cursor_agent.config").agent(chat and chat.agent)
      local ahead = require("cursor_agent.chat.next")
      return agent and agent.cursor and ids(name == "mode" and ahead.CURSOR_MODES or ahead.models(agent_name)) or {}
    end,
  }
end

---@param name "keep"|"undo"
---@return cursor_agent.Subcommand
local function decider(name)
  local verb = name == "keep" and "Keep" or "Undo"
  return {
    desc = verb .. " the change under the cursor, the changes in a range, in the `file`, of the last `turn`, or `all`",
    words = 1,
    run = function(args)
      local what = args.words[1] or "hunk"
      if what ~= "hunk" and what ~= "file" and what ~= "turn" and what ~= "all" then
        return nil, ("`%s` takes `file`, `turn` or `all`, not `%s`"):format(name, what)
      end
      local review = require("cursor_agent.review")
      return (name == "keep" and review.keep_here or review.undo_here)(what, args.first, args.last)
    end,
    complete = function()
      return { "file", "turn", "all" }
    end,
  }
end

---@param chat cursor_agent.Chat
---@param id string
---@return cursor_agent.ConfigOption?
local function option_of(chat, id)
  for _, option in ipairs(chat.status.options or {}) do
    if option.id == id then
      return option
    end
  end
end

---@type table<string, cursor_agent.Subcommand>
M.subcommands = {
  open = {
    desc = "Open the chat",
    words = 1,
    run = function(args)
      return require("cursor_agent.chat.pick").open(args.words[1])
    end,
    complete = function()
      return require("cursor_agent.config").agent_names()
    end,
  },
  close = {
    desc = "Close the chat; the session keeps running. With !, end it",
    words = 0,
    run = with_chat(function(chat, args)
      if args.bang then
        require("cursor_agent.chat").close(chat)
        return true
      end
      return require("cursor_agent").close()
    end),
  },
  toggle = {
    desc = "Open or close the chat",
    words = 0,
    run = function()
      return require("cursor_agent.chat.pick").toggle()
    end,
  },
  new = {
    desc = "Start a new chat, with {agent} or the default one",
    words = 1,
    run = function(args)
      return require("cursor_agent.chat.pick").new(args.words[1])
    end,
    complete = function()
      return require("cursor_agent.config").agent_names()
    end,
  },
  prompt = {
    desc = "Send a prompt, with the range attached. Without text, open the prompt",
    run = function(args)
      return require("cursor_agent.agents.welcome").enter(nil, function(agent)
        local chat, why = require("cursor_agent.chat").ensure({ agent = agent })
        if not chat then
          return nil, why
        end
        local item = selection(args, chat)
        if args.rest == "" then
          require("cursor_agent.notify").report(require("cursor_agent.chat.layout").open(chat, { enter = true }))
          if item then
            chat.prompt:attach(item)
          end
          return true
        end
        local number, problem = chat.prompt:submit_elsewhere(args.rest, item and { item } or {})
        if number then
          require("cursor_agent.notify").report(require("cursor_agent.chat.layout").open(chat))
        end
        return number, problem
      end)
    end,
  },
  cancel = {
    desc = "Stop the turn",
    words = 0,
    run = function()
      return require("cursor_agent").cancel()
    end,
  },
  retry = {
    desc = "Send the last prompt again, with its attachments",
    words = 0,
    run = function()
      return require("cursor_agent").retry()
    end,
  },
  stop = {
    desc = "End the agent's process; the transcript stays",
    words = 0,
    run = with_chat(function(chat)
      return require("cursor_agent.agents.control").stop(chat)
    end),
  },
  restart = {
    desc = "Restart the agent and continue the session",
    words = 0,
    run = with_chat(function(chat)
      return require("cursor_agent.agents.control").restart(chat)
    end),
  },
  mode = chooser("mode"),
  model = chooser("model"),
  option = {
    desc = "Set one of the agent's options: {id} {value}, or choose one",
    words = 2,
    run = with_chat(function(chat, args)
      local id, value = args.words[1], args.words[2]
      if not id or not value then
        return require("cursor_agent.chat.pick").option(chat, id)
      end
      return require("cursor_agent").set_option(id, value)
    end),
    complete = function(words)
      local chat = current()
      if not chat then
        return {}
      elseif #words <= 1 then
        return ids(chat.status.options)
      end
      local option = option_of(chat, words[1])
      if option and option.type == "boolean" then
        return { "on", "off" }
      end
      return ids(option and option.values)
    end,
  },
  sessions = {
    desc = "List the chats, live ones first, and switch to one",
    words = 0,
    run = function()
      return require("cursor_agent.chat.switch").open()
    end,
  },
  resume = {
    desc = "Continue the last chat in this directory",
    words = 0,
    run = function()
      return require("cursor_agent.chat.switch").resume()
    end,
  },
  next = {
    desc = "Go to the next chat that needs an answer",
    words = 0,
    run = function()
      return require("cursor_agent.chat.switch").next_waiting()
    end,
  },
  load = {
    desc = "Continue a past session, by {id} or title",
    run = function(args)
      if args.rest == "" then
        return require("cursor_agent.chat.switch").open()
      end
      return require("cursor_agent.chat.manage").load(args.rest)
    end,
    complete = function(words)
      return require("cursor_agent.chat.manage").complete(words, true)
    end,
  },
  search = {
    desc = "Search this directory's stored conversations for {text} and list the matches in the quickfix window. With !, search all",
    run = function(args)
      return require("cursor_agent.chat.found").search(args.rest, args.bang)
    end,
  },
  fork = {
    desc = "Start another chat as a copy of this one, if the agent supports it",
    words = 0,
    run = with_chat(function(chat)
      return require("cursor_agent.chat.manage").fork(chat)
    end),
  },
  rename = {
    desc = "Rename this chat to {name}, or ask for a name; with {id} {name}, rename a past one",
    run = function(args)
      return require("cursor_agent.chat.manage").rename(args.rest)
    end,
    complete = function(words)
      return #words == 1 and require("cursor_agent.chat.manage").complete(words, false) or {}
    end,
  },
  accept = {
    desc = "Accept the current decision",
    words = 0,
    run = function()
      return require("cursor_agent").accept()
    end,
  },
  reject = {
    desc = "Reject the current decision",
    words = 0,
    run = function()
      return require("cursor_agent").reject()
    end,
  },
  decisions = {
    desc = "Go to the current decision",
    words = 0,
    run = function()
      return require("cursor_agent.decide").open()
    end,
  },
  todos = {
    desc = "Show or hide the todos",
    words = 0,
    run = with_chat(function(chat)
      return require("cursor_agent.decide.todos").toggle(chat)
    end),
  },
  context = {
    desc = "Attach a range or {mention} … to the next prompt; `clear` removes all attachments",
    run = function(args)
      local chat, why = require("cursor_agent.chat").ensure()
      if not chat then
        return nil, why
      end
      local context = require("cursor_agent.prompt.context")
      if args.rest == "clear" then
        chat.prompt.attached = {}
        chat.prompt:refresh()
        return true
      end
      local item = selection(args, chat)
      if item then
        chat.prompt:attach(item)
      elseif #args.words == 0 then
        require("cursor_agent.chat.pick").add_context()
      end
      for _, word in ipairs(args.words) do
        local name = (word:gsub("^@", ""))
        if name == "clipboard" then
          -- Read now: the clipboard may hold something else by the time the prompt is sent.
          require("cursor_agent.prompt.clipboard").attach(chat)
        else
          local named, problem = context.resolve(name, chat.cwd)
          if not named then
            return nil, problem
          end
          chat.prompt:attach(named)
        end
      end
      return true
    end,
    complete = function(words)
      local names = vim.list_extend({ "clear" }, require("cursor_agent.prompt.context").names)
      return vim.list_extend(names, vim.fn.getcompletion(words[#words] or "", "file"))
    end,
  },
  queue = {
    desc = "List the queued prompts",
    words = 0,
    run = with_chat(function(chat)
      return require("cursor_agent.prompt.queue").open(chat)
    end),
  },
  conflicts = {
    desc = "Resolve conflicts between your unsaved changes and an agent's",
    words = 0,
    run = function()
      return require("cursor_agent.decide").open_conflict()
    end,
  },
  export = {
    desc = "Show the conversation as markdown, or write it to {file}",
    run = with_chat(function(chat, args)
      return require("cursor_agent.chat.export").open(chat, args.rest)
    end),
    complete = function(words)
      return vim.fn.getcompletion(words[#words] or "", "file")
    end,
  },
  review = {
    desc = "List the undecided changes, or only those of this `session` or its last `turn`",
    words = 1,
    run = function(args)
      local list = require("cursor_agent.review.list")
      local what = args.words[1]
      if not what then
        return list.open()
      elseif what ~= "session" and what ~= "turn" then
        return require("cursor_agent.review.checkpoint").preview(what)
      end
      local chat, why = chats.find()
      if not chat then
        return nil, why
      end
      return list.open(chat, what == "turn" and chat.status.turns or nil)
    end,
    complete = function()
      return { "session", "turn" }
    end,
  },
  keep = decider("keep"),
  undo = decider("undo"),
  comment = {
    desc = "Comment on the line, the change or a range in the next prompt, with {text} or after asking for it. With !, remove the comment",
    run = function(args)
      local comment = require("cursor_agent.review.comment")
      if args.bang then
        local line = vim.api.nvim_win_get_cursor(0)[1]
        return comment.remove(vim.api.nvim_get_current_buf(), args.first or line, args.last or line)
      end
      return comment.here(args.first, args.last, args.rest)
    end,
  },
  follow = {
    desc = "Start or stop showing what the agent reads and edits in another window; with `here`, in this one once you leave it",
    words = 1,
    run = function(args)
      return require("cursor_agent.chat.follow_agent").toggle(args.words[1])
    end,
    complete = function()
      return { "here", "on", "off" }
    end,
  },
  checkpoint = {
    desc = "List the checkpoints and restore one; with {id}, restore that one. With !, also files you changed since",
    words = 1,
    run = with_chat(function(chat, args)
      local checkpoint = require("cursor_agent.review.checkpoint")
      if args.words[1] then
        return checkpoint.run(args.words[1], args.bang)
      end
      return checkpoint.choose(chat)
    end),
    complete = function()
      return ids(require("cursor_agent.review.checkpoint").list() or {})
    end,
  },
  log = {
    desc = "Show the messages exchanged with the agent, or only those of {method}; `save {file}` saves them without secrets",
    run = with_chat(function(chat, args)
      if args.words[1] == "save" then
        return require("cursor_agent.agents.protocol_log").save(chat, vim.trim(args.rest:sub(5)))
      end
      return require("cursor_agent.agents.protocol_log").open(chat, args.rest)
    end),
    complete = function(words)
      if words[1] == "save" and #words > 1 then
        return vim.fn.getcompletion(words[#words], "file")
      end
      return {
        "save",
        "initialize",
        "authenticate",
        "session/new",
        "session/load",
        "session/prompt",
        "session/update",
        "session/cancel",
        "session/request_permission",
      }
    end,
  },
  build = {
    desc = "Install the library, prebuilt or with cargo; `prebuilt` or `cargo` to choose",
    words = 1,
    run = function(args)
      return require("cursor_agent.install").build(args.words[1])
    end,
    complete = function()
      return require("cursor_agent.install").ways
    end,
  },
  mcp = {
    desc = "List the MCP servers; `enable`, `disable`, `login` or `tools` {server}; `edit [user]` opens the file",
    words = 2,
    run = function(args)
      return require("cursor_agent.mcp").run(args.words)
    end,
    complete = function(words)
      return require("cursor_agent.mcp").complete(words)
    end,
  },
  cloud = {
    desc = "Show the cloud agents; `new [prompt]` starts one, `send` hands this chat over; `open`, `follow`, `stop`, "
      .. "`browse`, `diff`, `checkout`, `artifacts`, `usage`, `archive`, `unarchive` or `delete` {id}; `me`, `models`, `repos`",
    run = function(args)
      return require("cursor_agent.cloud").run(args.rest)
    end,
    complete = function(words)
      return require("cursor_agent.cloud").complete(words)
    end,
  },
  login = {
    desc = "Log in to the agent, with {method}; without it, ask if there are several",
    words = 1,
    run = function(args)
      return require("cursor_agent.agents.login").open(current(), args.words[1])
    end,
    complete = function()
      return require("cursor_agent.agents.login").ids(current())
    end,
  },
  status = {
    desc = "Show the agent, how it is signed in, what needs approval, what is running and what is stored",
    words = 0,
    run = function()
      return require("cursor_agent.agents.status").open(current())
    end,
  },
  logout = {
    desc = "Log out of the agent, if it supports that",
    words = 0,
    run = with_chat(function(chat)
      return require("cursor_agent.agents.account").logout(chat)
    end),
  },
  delete = {
    desc = "Permanently delete a past session, by {id} or title, also from the agent if it supports that. With !, do not ask",
    run = function(args)
      if args.rest == "" then
        return nil, "`delete` needs a session: :CursorAgent delete {id}; :CursorAgent sessions lists them"
      end
      return require("cursor_agent.chat.manage").delete(args.rest, args.bang)
    end,
    complete = function(words)
      return require("cursor_agent.chat.manage").complete(words, true)
    end,
  },
}

---@return string[]
function M.names()
  local names = vim.tbl_keys(M.subcommands)
  table.sort(names)
  return names
end

---The message for a subcommand that got more words than it takes.
---@param name string
---@param count integer how many it takes
---@param words string[]
---@return string
local function too_many(name, count, words)
  local left = table.concat(words, " ", count + 1)
  if count == 0 then
    return ("`%s` takes no arguments, got `%s`"):format(name, left)
  end
  return ("`%s` takes only %s, got `%s` too"):format(name, format.plural(count, "word"), left)
end

---Runs `:CursorAgent`.
---@param args vim.api.keyset.create_user_command.command_args
function M.run(args)
  if package.loaded["cursor_agent_handover"] then
    require("cursor_agent.chat.handover").take()
  end
  local name, rest = args.args:match("^(%S*)%s*(.-)%s*$")
  -- People also type `:CursorAgent close!`.
  local plain = name and name:match("^(%a+)!$")
  if plain and M.subcommands[plain] then
    name = plain
  end
  if not name or name == "" then
    name = args.range > 0 and "prompt" or "toggle"
  end
  local subcommand = M.subcommands[name]
  if not subcommand then
    notify.notify(("unknown subcommand `%s`; expected one of %s"):format(name, table.concat(M.names(), ", ")), "error")
    return
  end
  local words = vim.split(rest or "", "%s+", { trimempty = true })
  if subcommand.words and #words > subcommand.words then
    notify.notify(too_many(name, subcommand.words, words), "error")
    return
  end
  notify.report(subcommand.run({
    rest = rest or "",
    words = words,
    bang = args.bang or plain ~= nil,
    first = args.range > 0 and args.line1 or nil,
    last = args.range > 0 and args.line2 or nil,
  }))
end

---@param lead string
---@param line string
---@param pos integer
---@return string[]
function M.complete(lead, line, pos)
  local typed = line:sub(1, pos):match("CursorAgent!?%s+(.*)$") or ""
  local words = vim.split(typed, "%s+")
  local candidates = {} ---@type string[]
  if #words <= 1 then
    candidates = M.names()
  else
    local subcommand = M.subcommands[table.remove(words, 1)]
    if subcommand and subcommand.complete then
      candidates = subcommand.complete(words)
    end
  end
  return vim.tbl_filter(function(candidate)
    return candidate:sub(1, #lead):lower() == lead:lower()
  end, candidates)
end

return M
