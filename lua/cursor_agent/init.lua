-- The public interface: what commands, mappings and other people's configs call.
--
-- The map. Each file opens with what it is for; `make lint` keeps it true that no module requires itself in a circle, that
-- only bridge/ holds the library, and that no room knows the top.
--
-- The top
--   init         this file                            command   `:CursorAgent {subcommand}`
--   config       the options, their checks, defaults  actions   what each action does, by name
--   notify       every message to the user            health    `:checkhealth cursor_agent`
--   parts        which part hears of which event: the only file that names them all
--
-- The rooms, from the library to the screen, with their files (`init` is what a room is called for)
--   bridge/      the library: native loads it and ends it (how long exit may take), init calls it, drain hands on what it tells
--                (how long and how much at once), events are who hears of what, redact takes out secrets, clock, paths, types is
--                the contract
--   render/      pure: an entry becomes lines and marks. tool, message, markdown, todos, notice, diff, ansi; block and fence are what
--                they are made of, format writes numbers and times, icons has all signs, the spinner's frames among them; bisect
--   colour/      highlights are the groups; diff colours, glow; syntax, regex, markdown, queries find colours, painter spends the
--                time for it; guard and parsers say which text is safe to parse
--   keys/        list has the actions there are and their keys; global are those after a prefix, help is `g?`
--   window/      code is the user's window, scratch buffers to read in, terminal; quiet opens and closes without moving others
--   files/       text between agent, buffer and disk: serve (served, reply, put), changed and watch on disk (loaded, find, regular,
--                write_guard), merge, conflicts and how they are resolved (resolve, difference); private files, store is what
--                outlives Neovim
--   chat/        a chat: registry, sessions, buffers, handover, mksession, workspace, next (what new ones start with), titles;
--                its text: updates, transcript, positions, blocks, stream, rows and switch (the switcher), past, found, manage,
--                export, welcome; folds, entry_folds, regions, namespaces, redraw, tail (stays at the end); its windows: layout,
--                dress, foreign, winbar (the spinner's speed), statusline, progress; what keys do in it: links, places, outside,
--                jump, code, output, subagent, image, pick, follow_agent
--   picker/      a list to choose from: telescope, fzf, snacks, mini, or `vim.ui.select`; shared is what all of them do
--   prompt/      the prompt: bar (around it), context, sources, symbols, listing, unsaved, limit (what is attached, how much of it),
--                clipboard, dropped, paste (its label), reusable, slash, submit, sending, queue, draft, history
--   completion/  `/` and `@` in the prompt: items, companions; blink and cmp are the sources for these plugins
--   decide/      decisions: init is the queue and its guard delay; card, frame, place, paint; permission (its keys and their order),
--                question, plan, conflict; keys, chords, held, typed; rules, policy; todos (the panel); attention calls the user
--                who looks elsewhere
--   review/      what agents changed: marks in the code, list, keys, buffers, checkpoint, comment
--   agents/      presets, control, lookup, login, sign_in, account, approval, status, failure, welcome (when one is missing),
--                protocol_log
--   mcp/         `:CursorAgent mcp`: view, edit, cli
--   cloud/       `:CursorAgent cloud`: dashboard, rows, conversation, new, watch, git, demo; client is the companion program, server
--                the one for MCP, env what both are given
--   install/     how the library gets to the user: steps, release, platform, download, sha256, probe, task
--
-- `session` is a chat's key (a number) or the agent's session id (a string); without it the current tab's chat is meant.
-- A call that cannot do what it was asked returns nil and a message; it never raises for what a user can cause.

require("cursor_agent.parts")

local M = {}

---@alias cursor_agent.Session cursor_agent.Key|string

---@class (exact) cursor_agent.OpenOpts
---@field agent? string for a chat that has to be made first
---@field cwd? string
---@field mode? string
---@field enter? boolean go to the prompt; true unless said otherwise
---@field position? "right"|"left"|"bottom"|"float"|"tab" instead of the option's

---@class (exact) cursor_agent.NewOpts
---@field agent? string an entry of `agents`
---@field cwd? string
---@field mode? string
---@field model? string
---@field open? boolean false: no window
---@field enter? boolean go to the prompt

---@class (exact) cursor_agent.PromptOpts
---@field session? cursor_agent.Session
---@field context? (string|cursor_agent.Block)[] mentions such as "@src/parser.rs" or "@diff", or blocks
---@field open? boolean false: no window

---Takes chats over that an earlier load of the plugin has handed over, before anything is done with one.
local function take_over()
  if package.loaded["cursor_agent_handover"] then
    require("cursor_agent.chat.handover").take()
  end
end

---Runs a call that came from inside a fast event (a uv callback) as soon as the editor may be touched.
---@generic F: function
---@param work F
---@return F
local function deferrable(work)
  return function(...)
    if vim.in_fast_event() then
      local args = vim.F.pack_len(...)
      vim.schedule(function()
        require("cursor_agent.notify").report(work(vim.F.unpack_len(args)))
      end)
      return nil, "called in a fast event: scheduled to run right after it"
    end
    take_over()
    return work(...)
  end
end

---Runs something on the chat that is meant.
---@generic T
---@param session cursor_agent.Session?
---@param work fun(bridge: cursor_agent.Bridge, key: cursor_agent.Key): T?, string?
---@return T?, string?
local function on_chat(session, work)
  take_over()
  local chat, why = require("cursor_agent.chat.registry").find(session)
  if not chat then
    return nil, why
  end
  return work(require("cursor_agent.bridge"), chat.key)
end

---Records options. Optional; nothing is started.
---@param opts? table
function M.setup(opts)
  local config = require("cursor_agent.config")
  config.setup(opts)
  if config.get().keymaps.global or package.loaded["cursor_agent.keys.global"] then
    require("cursor_agent.keys.global").apply()
  end
end

---Opens the chat of the current tab, or a new one, and goes to its prompt.
---@param opts? cursor_agent.OpenOpts
---@return cursor_agent.Key?, string?
M.open = deferrable(function(opts)
  return require("cursor_agent.chat.sessions").open(opts)
end)

---Takes the chat off the current tab. The session goes on.
---@return boolean?, string?
M.close = deferrable(function()
  return require("cursor_agent.chat.sessions").close()
end)

---Opens the chat, or takes it off the current tab.
---@return cursor_agent.Key|boolean?, string?
M.toggle = deferrable(function()
  return require("cursor_agent.chat.sessions").toggle()
end)

---Starts a new session and shows it.
---@param opts? cursor_agent.NewOpts
---@return cursor_agent.Key?, string?
M.new = deferrable(function(opts)
  return require("cursor_agent.chat.sessions").new(opts)
end)

---Sends a prompt, or queues it while a turn runs. Without a chat it starts one.
---@param text string
---@param opts? cursor_agent.PromptOpts
---@return integer? number of the prompt; 0 while it waits for an attachment, such as a `@diff` from git
---@return string?
M.prompt = deferrable(function(text, opts)
  return require("cursor_agent.chat.sessions").prompt(text, opts)
end)

---Sends the last prompt again, with what was attached to it: after a turn that failed.
---@param session? cursor_agent.Session
---@return integer? number of the prompt
---@return string?
M.retry = deferrable(function(session)
  return on_chat(session, function(bridge, key)
    return bridge.retry(key)
  end)
end)

---Stops the turn: decisions that wait are answered as cancelled, the text so far stays.
---@param session? cursor_agent.Session
---@return boolean?, string?
M.cancel = deferrable(function(session)
  return on_chat(session, function(bridge, key)
    return bridge.cancel(key)
  end)
end)

---@param id string
---@param session? cursor_agent.Session
---@return boolean?, string?
M.set_mode = deferrable(function(id, session)
  return on_chat(session, function(bridge, key)
    return bridge.set_mode(key, tostring(id))
  end)
end)

---@param id string
---@param session? cursor_agent.Session
---@return boolean?, string?
M.set_model = deferrable(function(id, session)
  return on_chat(session, function(bridge, key)
    return bridge.set_model(key, tostring(id))
  end)
end)

---Sets a config option the agent offers; `status().options` lists them.
---@param id string
---@param value string|boolean
---@param session? cursor_agent.Session
---@return boolean?, string?
M.set_option = deferrable(function(id, value, session)
  if type(value) ~= "string" and type(value) ~= "boolean" then
    return nil, ("set_option: expected a string or a boolean, got %s"):format(type(value))
  end
  return on_chat(session, function(bridge, key)
    return bridge.set_option(key, tostring(id), value)
  end)
end)

---Past sessions: those stored here, those of Cursor's CLI, and what the agent of the current chat (or the one for new
---chats) lists, each once; live ones first, then newest first.
---@param callback fun(sessions: cursor_agent.PastSession[]?, message: string?)
---@return boolean?, string?
M.sessions = deferrable(function(callback)
  return require("cursor_agent.chat.past").list({}, callback)
end)

---Finds the lines of stored conversations that hold a text: those of the current directory, of `opts.cwd`, or with
---`opts.all` of all. Without a capital letter in the text, case does not matter.
---@param text string
---@param opts? cursor_agent.past.Opts
---@param callback fun(hits: cursor_agent.SearchHit[]?, message: string?)
---@return boolean?, string?
M.search = deferrable(function(text, opts, callback)
  return require("cursor_agent.chat.past").search(text, opts, callback)
end)

---Goes on with a past session.
---@param id string the agent's session id
---@param opts? cursor_agent.NewOpts
---@return cursor_agent.Key?, string?
M.load = deferrable(function(id, opts)
  return require("cursor_agent.chat.sessions").load(id, opts)
end)

---What a session is doing. Without any chat the state is `stopped`.
---@param session? cursor_agent.Session
---@overload fun(): cursor_agent.Status
---@return cursor_agent.Status?, string?
function M.status(session)
  if session ~= nil or require("cursor_agent.chat.registry").current() then
    return on_chat(session, function(bridge, key)
      return bridge.status(key)
    end)
  end
  local config = require("cursor_agent.config").get()
  return {
    state = "stopped",
    agent = config.agent,
    cwd = vim.fn.getcwd(),
    pending = 0,
    queued = 0,
    modes = {},
    models = {},
    options = {},
    commands = {},
    queue = {},
    todos = {},
    error = require("cursor_agent.bridge").failure(),
  } --[[@as cursor_agent.Status]]
end

---Decisions that wait for the user, oldest first.
---@param session? cursor_agent.Session
---@return cursor_agent.Decision[]?, string?
function M.pending(session)
  if session == nil and not require("cursor_agent.chat.registry").current() then
    return {}
  end
  return on_chat(session, function(bridge, key)
    return bridge.pending(key)
  end)
end

---Answers a decision: `{ option = … }`, `{ answers = … }`, `{ skip = true }`, `{ accept = true }`, `{ reject = true }`
---or `{ cancel = true }`.
---@param id integer
---@param answer table
---@return boolean?, string?
M.answer = deferrable(function(id, answer)
  if type(id) ~= "number" or type(answer) ~= "table" then
    return nil, "answer: expected the number of a decision and a table"
  end
  return require("cursor_agent.decide").answer(id, answer)
end)

---Accepts the decision that waits: allows once, or accepts the plan.
---@return boolean?, string?
M.accept = deferrable(function()
  return require("cursor_agent.decide").accept()
end)

---Rejects the decision that waits.
---@return boolean?, string?
M.reject = deferrable(function()
  return require("cursor_agent.decide").reject()
end)

---The conversation, nothing cut.
---@param session? cursor_agent.Session
---@return cursor_agent.Entry[]?, string?
function M.transcript(session)
  return on_chat(session, function(bridge, key)
    return bridge.transcript(key)
  end)
end

---The files the agent changed.
---@param session? cursor_agent.Session
---@return cursor_agent.FileChange[]?, string?
function M.changes(session)
  return on_chat(session, function(bridge, key)
    return bridge.changes(key)
  end)
end

---What agents changed on disk and is undecided, by path and line.
---@param opts? { session: cursor_agent.Session?, path: string? }
---@return { id: integer, path: string, old: cursor_agent.ReviewLines, new: cursor_agent.ReviewLines, turn: integer, session_id: string? }[]?
---@return string?
function M.hunks(opts)
  return require("cursor_agent.review").hunks(opts)
end

---Keeps hunks: `{ hunk = id }`, `{ path = … }`, `{ turn = n }` (or "last") or `{ all = true }`, with `session`.
---@param opts cursor_agent.review.Opts
---@return integer? count
---@return string?
M.keep = deferrable(function(opts)
  return require("cursor_agent.review").keep(opts)
end)

---Undoes hunks: the old lines come back on disk and in the buffer; what is not saved stays, unsaved.
---@param opts cursor_agent.review.Opts
---@return integer? count
---@return string?
M.undo = deferrable(function(opts)
  return require("cursor_agent.review").undo(opts)
end)

---States to go back to, newest first: one before each prompt whose turn changed files.
---@param session? cursor_agent.Session
---@return cursor_agent.Checkpoint[]?, string?
function M.checkpoints(session)
  return require("cursor_agent.review.checkpoint").list(session)
end

---Brings files back to what they were at a checkpoint; `files` for some, `force` also for what you changed since.
---@param id string
---@param opts? { files: string[]?, force: boolean? }
---@return { restored: string[], kept: string[] }?, string?
M.restore = deferrable(function(id, opts)
  local done, why = require("cursor_agent.review.checkpoint").restore(id, opts)
  return done, why
end)

---A short text for a statusline, cheap to call on every redraw.
---@return string
function M.statusline()
  return require("cursor_agent.chat.statusline").text()
end

---Called by lazy.nvim before it loads the plugin again: live chats stay alive, and the plugin takes them over when it is back.
function M.deactivate()
  require("cursor_agent.chat.handover").give()
end

if package.loaded["cursor_agent_handover"] then
  -- Not at once: `setup` comes first.
  vim.schedule(take_over)
end

return M
