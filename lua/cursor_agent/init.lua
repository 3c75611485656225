-- The public interface: what commands, mappings and user configs call.
--
-- The map. Each file starts with its purpose. `make lint` checks that modules do not require each other in a cycle,
-- that only bridge/ holds the library, and that no room requires the top.
--
-- The top
--   init         this file                            command   `:CursorAgent {subcommand}`
--   config       the options in effect               actions   what each action does, by name
--   notify       every message to the user            health    `:checkhealth cursor_agent`
--   parts        which part handles which event: the only file that names them all
--
-- The rooms, from the library to the screen, with their files (`init` is a room's entry point)
--   bridge/      the library: native loads it and shuts it down (with the time limit at exit), init calls it, drain
--                dispatches its changes (how many and for how long at a time), events is the list of subscribers,
--                redact removes secrets, clock, paths, buffer_names, types is the contract
--   config/      schema lists the options with their defaults and help, values has the types an option can have, check
--                finds mistakes and what an unknown name meant
--   render/      pure: turns an entry into lines and marks. tool, message, markdown, todos, notice, diff, ansi; block
--                and fence are their building blocks, format writes numbers and times, icons has all signs including
--                the spinner frames; bisect
--   colour/      highlights defines the groups; diff colours, glow; syntax, regex, markdown, queries compute colours,
--                painter budgets the time; guard and parsers decide which text is safe to parse
--   keys/        list has all actions and their keys, kinds the buffers that have some; global has those after
--                a prefix, help is `g?`
--   window/      code is the user's window, scratch has buffers to read, terminal; quiet opens and closes windows
--                without moving others; words is what a window is called
--   files/       text between agent, buffer and disk: serve (served, reply, put), changed and watch for the disk
--                (loaded, find, regular, write_guard), merge, conflicts and how they are resolved (resolve,
--                difference); private files, store is what persists across restarts
--   chat/        a chat: registry, sessions, buffers, handover, mksession, workspace, next (settings of new chats),
--                titles; its text: updates, transcript, positions, blocks, stream, rows and switch (the switcher),
--                past, found, manage, export, welcome; folds, entry_folds, regions (for markdown plugins), namespaces,
--                redraw, commands (their colons), tail (stays at the end, and how often it is drawn in a flood); its windows: layout (where and
--                how large), dress (their options), foreign (other buffers opened in them), winbar (the line above,
--                with the spinner's speed), statusline, tabline, progress; its keys: links, places (paths and lines in
--                a text), outside (what may be opened outside Neovim), jump, code, output, subagent, image, pick
--                (modes, models, options), follow_agent
--   picker/      a list to choose from: telescope, fzf, snacks, mini, or `vim.ui.select`; shared is common to all of
--                them
--   prompt/      the prompt: bar (around it: the line above, the placeholder, the height), edge (the right side of its
--                frame), context and sources (what `@` names), symbols, listing (files), unsaved, limit (how much is
--                attached), clipboard, dropped, paste (its label, and what is large), reusable, slash, submit, sending,
--                queue, draft (when it is saved), history
--   completion/  `/` and `@` in the prompt: items, companions; blink and cmp are the sources for these plugins
--   decide/      decisions: init is the queue and its guard delay; card, frame, place, paint; permission (its keys and
--                their order), question, plan, conflict; keys, chords, held, typed; rules, policy; todos (the panel);
--                attention alerts a user who is looking elsewhere
--   review/      what agents changed: marks in the code, list, keys, buffers, checkpoint, comment
--   agents/      presets, control, lookup, login, sign_in, account, approval, status, failure, welcome (when an agent
--                is missing), protocol_log
--   mcp/         `:CursorAgent mcp`: view, edit, cli
--   cloud/       `:CursorAgent cloud`: dashboard, rows, conversation, new, watch, git, demo; client is the companion
--                program, server its MCP counterpart, env the environment of both
--   install/     how the library gets to the user: steps, release, platform, download, sha256, probe, task
--
-- `session` is a chat's key (a number) or the agent's session id (a string); by default the current tab's chat.
-- A call that fails returns nil and a message; it never raises for anything a user can cause.

require("cursor_agent.parts")

local M = {}

---@alias cursor_agent.Session cursor_agent.Key|string

---@class (exact) cursor_agent.OpenOpts
---@field agent? string for a chat that has to be created
---@field cwd? string
---@field mode? string
---@field enter? boolean go to the prompt; default true
---@field position? "right"|"left"|"bottom"|"float"|"tab" overrides the option

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

---Takes over chats that an earlier load of the plugin left behind. Call it before touching any chat.
local function take_over()
  if package.loaded["cursor_agent_handover"] then
    require("cursor_agent.chat.handover").take()
  end
end

---Lets a call made inside a fast event (a uv callback) run as soon as the editor may be touched.
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

---Runs a function with the chat `session` refers to.
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

---Stores options. Optional; starts nothing.
---@param opts? table
function M.setup(opts)
  local config = require("cursor_agent.config")
  config.setup(opts)
  if config.get().keymaps.global or package.loaded["cursor_agent.keys.global"] then
    require("cursor_agent.keys.global").apply()
  end
end

---Opens the current tab's chat, or a new one, and goes to its prompt.
---@param opts? cursor_agent.OpenOpts
---@return cursor_agent.Key?, string?
M.open = deferrable(function(opts)
  return require("cursor_agent.chat.sessions").open(opts)
end)

---Closes the chat's windows in the current tab. The session keeps running.
---@return boolean?, string?
M.close = deferrable(function()
  return require("cursor_agent.chat.sessions").close()
end)

---Opens the chat, or closes its windows in the current tab.
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

---Sends a prompt, or queues it while a turn runs. Starts a chat if there is none.
---@param text string
---@param opts? cursor_agent.PromptOpts
---@return integer? number of the prompt; 0 while it waits for an attachment, such as a `@diff` from git
---@return string?
M.prompt = deferrable(function(text, opts)
  return require("cursor_agent.chat.sessions").prompt(text, opts)
end)

---Sends the last prompt again with its attachments, after a failed turn.
---@param session? cursor_agent.Session
---@return integer? number of the prompt
---@return string?
M.retry = deferrable(function(session)
  return on_chat(session, function(bridge, key)
    return bridge.retry(key)
  end)
end)

---Stops the turn: open decisions are answered as cancelled, the text so far stays.
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

---Past sessions: those stored here, those of Cursor's CLI, and those listed by the agent of the current chat (or the
---default agent), without duplicates; live ones first, then newest first.
---@param callback fun(sessions: cursor_agent.PastSession[]?, message: string?)
---@return boolean?, string?
M.sessions = deferrable(function(callback)
  return require("cursor_agent.chat.past").list({}, callback)
end)

---Finds the lines of stored conversations that contain a text: in the current directory, in `opts.cwd`, or with
---`opts.all` everywhere. Ignores case unless the text has a capital letter.
---@param text string
---@param opts? cursor_agent.past.Opts
---@param callback fun(hits: cursor_agent.SearchHit[]?, message: string?)
---@return boolean?, string?
M.search = deferrable(function(text, opts, callback)
  return require("cursor_agent.chat.past").search(text, opts, callback)
end)

---Continues a past session.
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

---Decisions that need the user, oldest first.
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
  return require("cursor_agent.decide").answer_call(id, answer)
end)

---Accepts the open decision: allows once, or accepts the plan.
---@return boolean?, string?
M.accept = deferrable(function()
  return require("cursor_agent.decide").accept()
end)

---Rejects the open decision.
---@return boolean?, string?
M.reject = deferrable(function()
  return require("cursor_agent.decide").reject()
end)

---The conversation, in full.
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

---Undecided changes that agents made on disk, by path and line.
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

---Undoes hunks: restores the old lines on disk and in the buffer; unsaved text stays unsaved.
---@param opts cursor_agent.review.Opts
---@return integer? count
---@return string?
M.undo = deferrable(function(opts)
  return require("cursor_agent.review").undo(opts)
end)

---States to restore, newest first: one before each prompt whose turn changed files.
---@param session? cursor_agent.Session
---@return cursor_agent.Checkpoint[]?, string?
function M.checkpoints(session)
  return require("cursor_agent.review.checkpoint").list(session)
end

---Restores files to a checkpoint; `files` selects some, `force` includes what you have changed since.
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

---Called by lazy.nvim before it reloads the plugin: live chats keep running, and the reloaded plugin takes them over.
function M.deactivate()
  require("cursor_agent.chat.handover").give()
end

if package.loaded["cursor_agent_handover"] then
  -- Deferred: `setup` comes first.
  vim.schedule(take_over)
end

return M
