-- Everything a key can do: one table that feeds the `<Plug>` mappings, the keys of our buffers and the `g?` help.

local chats = require("cursor_agent.chat.registry")
local notify = require("cursor_agent.notify")

local M = {}

---Runs something for the current tab's chat.
---@param work fun(chat: cursor_agent.Chat): any, string?
---@return fun()
local function with_chat(work)
  return function()
    local chat, why = chats.find()
    if not chat then
      notify.notify(why or "", "warn")
      return
    end
    notify.report(work(chat))
  end
end

---Runs a call of the library for the current chat.
---@param name "cancel"|"retry"
---@return fun()
local function bridge(name)
  return with_chat(function(chat)
    return require("cursor_agent.bridge")[name](chat.key)
  end)
end

---Runs what a person asked for, who may have to choose first.
---@param name "open"|"toggle"|"new"
---@return fun()
local function pick(name)
  return function()
    local run = require("cursor_agent.chat.pick")[name] --[[@as fun(): any, string?]]
    notify.report(run())
  end
end

---Runs a function of a module for the current chat.
---@param module string
---@param name string
---@param ... any
---@return fun()
local function call(module, name, ...)
  local args = { ... }
  return with_chat(function(chat)
    return require(module)[name](chat, unpack(args))
  end)
end

---A key of a window that shows a decision.
---@param name string
---@return fun(lhs: string?)
local function decide(name)
  return function(lhs)
    notify.report(require("cursor_agent.decide").key(name, lhs or ""))
  end
end

---A key of the log's window.
---@param name "show_message"|"choose_method"|"ask_and_save"|"refresh"
---@return fun()
local function of_log(name)
  return function()
    local run = require("cursor_agent.agents.protocol_log")[name] --[[@as fun(): any, string?]]
    notify.report(run())
  end
end

---Moves between undecided changes.
---@param name "jump"
---@param step 1|-1
---@return fun()
local function hunk(name, step)
  return function()
    notify.report(require("cursor_agent.review")[name](step))
  end
end

---The lines that are selected, and Visual mode ended; nothing otherwise.
---@return integer? first
---@return integer? last
local function selected()
  if not vim.api.nvim_get_mode().mode:find("^[vV\22]") then
    return nil
  end
  local first, last = vim.fn.line("v"), vim.fn.line(".")
  vim.api.nvim_feedkeys(vim.keycode("<Esc>"), "nx", false)
  return math.min(first, last), math.max(first, last)
end

---Decides undecided changes: those under the cursor or selected, of the file, or all.
---@param name "keep_here"|"undo_here"
---@param what "hunk"|"file"|"turn"|"all"
---@return fun()
local function hunks(name, what)
  return function()
    notify.report(require("cursor_agent.review")[name](what, selected()))
  end
end

---A key of the list of undecided changes.
---@param name "follow"|"decide"|"comment"|"close"
---@param ... any
---@return fun()
local function in_list(name, ...)
  local args = { ... }
  return function()
    notify.report(require("cursor_agent.review.list")[name](unpack(args)))
  end
end

---A key of the user's own, pressed anywhere.
---@param verdict "accept"|"reject"
---@return fun()
local function pressed(verdict)
  return function()
    notify.report(require("cursor_agent.decide").pressed(verdict))
  end
end

---Rows of the cursor's line up to the cursor, and all of them.
---@return integer
---@return integer
local function rows_of_line()
  local row = vim.api.nvim_win_get_cursor(0)[1] - 1
  local here = vim.fn.virtcol(".") --[[@as integer]]
  local past = vim.fn.virtcol("$") --[[@as integer]]
  local vcol = math.floor(math.max(math.min(here, past - 1), 1))
  local upto = vim.api.nvim_win_text_height(0, { start_row = row, end_row = row, end_vcol = vcol }).all
  return upto, vim.api.nvim_win_text_height(0, { start_row = row, end_row = row }).all
end

---Whether `<Up>` means the action: at the border of the text. Within a line that wraps it means the row above.
---@return boolean|string
local function on_first_row()
  if vim.api.nvim_win_get_cursor(0)[1] > 1 or vim.fn.pumvisible() == 1 then
    return false
  end
  return rows_of_line() == 1 or "<Cmd>normal! gk<CR>"
end

---The same for `<Down>`.
---@return boolean|string
local function on_last_row()
  if vim.api.nvim_win_get_cursor(0)[1] < vim.api.nvim_buf_line_count(0) or vim.fn.pumvisible() == 1 then
    return false
  end
  local upto, all = rows_of_line()
  return upto == all or "<Cmd>normal! gj<CR>"
end

---In the order `g?` lists them.
---@type cursor_agent.Action[]
M.list = {
  {
    name = "send",
    desc = "Send the prompt, or queue it while a turn runs",
    run = with_chat(function(chat)
      return chat.prompt:send()
    end),
    keys = { prompt = { "<CR>", "<C-s>" } },
    modes = { prompt = { "n", "i" } },
    expr = function(lhs)
      return lhs ~= "<CR>" or vim.api.nvim_get_mode().mode:sub(1, 1) ~= "i"
    end,
  },
  {
    name = "cancel",
    desc = "Stop the turn",
    run = bridge("cancel"),
    keys = { chat = { "<C-c>" }, prompt = { "<C-c>" } },
  },
  { name = "retry", desc = "Send the last prompt again", run = bridge("retry"), keys = { chat = { "R" } } },
  {
    name = "focus",
    desc = "Go to the prompt",
    run = with_chat(function(chat)
      require("cursor_agent.chat.layout").enter_prompt(chat)
      return true
    end),
    keys = { chat = { "i", "a", "I", "A" } },
  },
  {
    name = "follow",
    desc = "Open the subagent, fold, file, line, link or output under the cursor",
    run = call("cursor_agent.chat.links", "follow"),
    keys = { chat = { "<CR>" }, subagent = { "<CR>" } },
  },
  {
    name = "open-outside",
    desc = "Open the image, file or link under the cursor outside of Neovim",
    run = call("cursor_agent.chat.links", "open_outside"),
    keys = { chat = { "gx" }, subagent = { "gx" } },
  },
  {
    name = "file",
    desc = "Open the file under the cursor",
    run = call("cursor_agent.chat.links", "file"),
    keys = { chat = { "gf" }, subagent = { "gf" } },
  },
  {
    name = "subagent",
    desc = "Show the subagent under the cursor in a buffer of its own",
    run = call("cursor_agent.chat.subagent", "here"),
    keys = { chat = { "gS" }, subagent = { "gS" } },
  },
  {
    name = "output",
    desc = "Show the whole output or diff of the tool call",
    run = call("cursor_agent.chat.output", "open"),
    keys = { chat = { "o" }, subagent = { "o" } },
  },
  {
    name = "explain",
    desc = "Explain the entry: times, raw input and output",
    run = call("cursor_agent.chat.output", "explain"),
    keys = { chat = { "K" }, subagent = { "K" } },
  },
  {
    name = "next-turn",
    desc = "Next turn",
    run = call("cursor_agent.chat.jump", "turn", 1),
    keys = { chat = { "]]" } },
  },
  {
    name = "prev-turn",
    desc = "Previous turn",
    run = call("cursor_agent.chat.jump", "turn", -1),
    keys = { chat = { "[[" } },
  },
  {
    name = "next-tool",
    desc = "Next tool call",
    run = call("cursor_agent.chat.jump", "tool", 1),
    keys = { chat = { "]t" }, subagent = { "]t" } },
  },
  {
    name = "prev-tool",
    desc = "Previous tool call",
    run = call("cursor_agent.chat.jump", "tool", -1),
    keys = { chat = { "[t" }, subagent = { "[t" } },
  },
  {
    name = "yank-code",
    desc = "Yank the code block",
    run = call("cursor_agent.chat.code", "yank"),
    keys = { chat = { "gy" }, subagent = { "gy" } },
  },
  {
    name = "apply-code",
    desc = "Put the code block below the cursor of the code window",
    run = call("cursor_agent.chat.code", "apply"),
    keys = { chat = { "gp" }, subagent = { "gp" } },
  },
  {
    name = "history-prev",
    desc = "Older prompt, on the first line",
    run = with_chat(function(chat)
      chat.prompt:look_back(-1)
      return true
    end),
    keys = { prompt = { "<Up>" } },
    modes = { prompt = { "n", "i" } },
    expr = on_first_row,
  },
  {
    name = "history-next",
    desc = "Newer prompt, on the last line",
    run = with_chat(function(chat)
      chat.prompt:look_back(1)
      return true
    end),
    keys = { prompt = { "<Down>" } },
    modes = { prompt = { "n", "i" } },
    expr = on_last_row,
  },
  {
    name = "save-unsaved",
    desc = "Save the modified buffers of the workspace",
    run = with_chat(function(chat)
      return chat.prompt:save_unsaved()
    end),
    keys = { chat = { "gs" }, prompt = { "gs" } },
  },
  {
    name = "attach-unsaved",
    desc = "Send the text of modified buffers along",
    run = with_chat(function(chat)
      chat.prompt:attach_unsaved()
      return true
    end),
    keys = { chat = { "ga" }, prompt = { "ga" } },
  },
  {
    name = "detach",
    desc = "Take an attachment away",
    run = call("cursor_agent.chat.pick", "detach"),
    keys = { prompt = { "gx" } },
  },
  {
    name = "cycle-mode",
    desc = "Next mode of the agent",
    run = call("cursor_agent.chat.pick", "cycle_mode"),
    keys = { chat = { "<S-Tab>" }, prompt = { "<S-Tab>" } },
    modes = { prompt = { "n", "i" } },
    expr = function()
      return vim.fn.pumvisible() == 0
    end,
  },
  {
    name = "mode",
    desc = "Choose the mode",
    run = call("cursor_agent.chat.pick", "mode"),
    keys = { chat = { "gm" }, prompt = { "gm" } },
  },
  {
    name = "model",
    desc = "Choose the model",
    run = call("cursor_agent.chat.pick", "model"),
    keys = { chat = { "gM" }, prompt = { "gM" } },
  },
  {
    name = "option",
    desc = "Choose an option of the agent",
    run = call("cursor_agent.chat.pick", "option"),
    keys = { chat = { "gO" } },
  },
  {
    name = "queue",
    desc = "List the queued prompts",
    run = call("cursor_agent.prompt.queue", "open"),
    keys = { chat = { "gq" }, prompt = { "gQ" } },
  },
  { name = "accept", desc = "Accept the decision on the screen", run = pressed("accept") },
  { name = "reject", desc = "Reject the decision on the screen", run = pressed("reject") },
  {
    name = "decisions",
    desc = "Go to the decision that waits",
    run = function()
      notify.report(require("cursor_agent.decide").open())
    end,
    keys = { chat = { "gd" }, prompt = { "gd" } },
  },
  {
    name = "todos",
    desc = "Show or hide the todos",
    run = call("cursor_agent.decide.todos", "toggle"),
  },
  { name = "toggle", desc = "Open or close the chat", run = pick("toggle") },
  { name = "open", desc = "Open the chat", run = pick("open") },
  {
    name = "close",
    desc = "Close the chat; the session goes on",
    run = function()
      notify.report(require("cursor_agent.chat.sessions").close())
    end,
    keys = { chat = { "q" } },
  },
  {
    name = "new",
    desc = "Start a new session",
    run = pick("new"),
  },
  {
    name = "prompt",
    desc = "Open the prompt; from Visual mode with the selection attached",
    run = function()
      require("cursor_agent.chat.pick").prompt_with_selection()
    end,
  },
  {
    name = "add-context",
    desc = "Attach the file, or from Visual mode the selection, to the next prompt",
    run = function()
      require("cursor_agent.chat.pick").add_context()
    end,
  },
  {
    name = "stop",
    desc = "End the agent's process; the transcript stays",
    run = call("cursor_agent.agents.control", "stop"),
  },
  {
    name = "restart",
    desc = "Start the agent anew and go on with the session",
    run = call("cursor_agent.agents.control", "restart"),
  },
  {
    name = "sessions",
    desc = "Choose a past session to go on with",
    run = function()
      notify.report(require("cursor_agent.chat.pick").sessions())
    end,
  },
  { name = "login", desc = "Log in to the agent in a terminal", run = call("cursor_agent.agents.login", "open") },
  { name = "export", desc = "Show the conversation as markdown", run = call("cursor_agent.chat.export", "open") },
  {
    name = "log",
    desc = "Show the messages exchanged with the agent",
    run = call("cursor_agent.agents.protocol_log", "open"),
  },
  {
    name = "queue-edit",
    desc = "Edit the queued prompt in the prompt window",
    run = call("cursor_agent.prompt.queue", "edit"),
    keys = { queue = { "<CR>" } },
  },
  {
    name = "queue-remove",
    desc = "Take the prompt out of the queue",
    run = call("cursor_agent.prompt.queue", "remove"),
    keys = { queue = { "dd" } },
  },
  {
    name = "queue-up",
    desc = "Send it earlier",
    run = call("cursor_agent.prompt.queue", "move", -1),
    keys = { queue = { "K" } },
  },
  {
    name = "queue-down",
    desc = "Send it later",
    run = call("cursor_agent.prompt.queue", "move", 1),
    keys = { queue = { "J" } },
  },
  {
    name = "queue-send-now",
    desc = "Stop the running turn and send it now",
    run = call("cursor_agent.prompt.queue", "send_now"),
    keys = { queue = { "<C-s>" } },
  },
  {
    name = "queue-close",
    desc = "Close the list",
    run = call("cursor_agent.prompt.queue", "close"),
    keys = { queue = { "q" } },
  },
  { name = "allow-once", desc = "Allow once", run = decide("allow-once"), keys = { permission = { "a" } } },
  { name = "allow-always", desc = "Allow always", run = decide("allow-always"), keys = { permission = { "A" } } },
  { name = "reject-once", desc = "Reject", run = decide("reject-once"), keys = { permission = { "r" } } },
  { name = "reject-always", desc = "Reject always", run = decide("reject-always"), keys = { permission = { "R" } } },
  {
    name = "choose-number",
    desc = "Choose by number",
    run = decide("choose-number"),
    keys = {
      permission = { "1", "2", "3", "4", "5", "6", "7", "8", "9" },
      question = { "1", "2", "3", "4", "5", "6", "7", "8", "9" },
      conflict = { "1", "2", "3" },
    },
  },
  {
    name = "reject-with-message",
    desc = "Reject, and say why in the next prompt",
    run = decide("reject-with-message"),
    keys = { permission = { "e" } },
  },
  {
    name = "decision-details",
    desc = "Show the whole diff, both texts or all details in a tab",
    run = decide("decision-details"),
    keys = { permission = { "d" }, conflict = { "d" } },
  },
  {
    name = "question-choose",
    desc = "Choose, or fill in the text",
    run = decide("question-choose"),
    keys = { question = { "<Space>" } },
  },
  {
    name = "question-answer",
    desc = "Answer all questions",
    run = decide("question-answer"),
    keys = { question = { "<CR>" } },
  },
  {
    name = "open-address",
    desc = "Open the page",
    run = decide("open-address"),
    keys = { question = { "o", "gx" } },
  },
  {
    name = "question-skip",
    desc = "Skip the questions, with a reason",
    run = decide("question-skip"),
    keys = { question = { "s" } },
  },
  {
    name = "question-cancel",
    desc = "Answer as cancelled",
    run = decide("question-cancel"),
    keys = { question = { "C" } },
  },
  {
    name = "conflict-mine",
    desc = "Keep your unsaved text",
    run = decide("conflict-mine"),
    keys = { conflict = { "m" } },
  },
  {
    name = "conflict-theirs",
    desc = "Take the agent's text; yours stays in the undo history",
    run = decide("conflict-theirs"),
    keys = { conflict = { "t" } },
  },
  {
    name = "conflict-both",
    desc = "Put both into the buffer, with conflict markers",
    run = decide("conflict-both"),
    keys = { conflict = { "b" } },
  },
  {
    name = "conflict-cancel",
    desc = "Answer as cancelled: nothing is written",
    run = decide("conflict-cancel"),
    keys = { conflict = { "C" } },
  },
  {
    name = "plan-open",
    desc = "Read and edit the plan",
    run = decide("plan-open"),
    keys = { ["plan-card"] = { "<CR>" } },
  },
  {
    name = "plan-accept",
    desc = "Accept the plan as it stands in the buffer",
    run = decide("plan-accept"),
    keys = { plan = { "gA" }, ["plan-card"] = { "gA" } },
  },
  {
    name = "plan-reject",
    desc = "Reject the plan with a reason",
    run = decide("plan-reject"),
    keys = { plan = { "gR" }, ["plan-card"] = { "gR" } },
  },
  {
    name = "plan-cancel",
    desc = "Answer the plan as cancelled",
    run = decide("plan-cancel"),
    keys = { plan = { "gC" }, ["plan-card"] = { "gC" } },
  },
  {
    name = "next-decision",
    desc = "Next decision",
    run = decide("next-decision"),
    keys = { permission = { "<Tab>" }, question = { "<Tab>" }, conflict = { "<Tab>" }, ["plan-card"] = { "<Tab>" } },
  },
  {
    name = "previous-decision",
    desc = "Previous decision",
    run = decide("previous-decision"),
    keys = {
      permission = { "<S-Tab>" },
      question = { "<S-Tab>" },
      conflict = { "<S-Tab>" },
      ["plan-card"] = { "<S-Tab>" },
    },
  },
  {
    name = "decision-later",
    desc = "Put it off: it waits",
    run = decide("decision-later"),
    keys = { permission = { "q" }, question = { "q" }, conflict = { "q" }, ["plan-card"] = { "q" }, plan = { "q" } },
  },
  {
    name = "decision-leave",
    desc = "Back to the window one came from",
    run = decide("decision-leave"),
    keys = { permission = { "<Esc>" }, question = { "<Esc>" }, conflict = { "<Esc>" }, ["plan-card"] = { "<Esc>" } },
  },
  {
    name = "todos-follow",
    desc = "Go to the plan, or to the todos in the chat",
    run = call("cursor_agent.decide.todos", "follow"),
    keys = { todos = { "<CR>" } },
  },
  {
    name = "todos-close",
    desc = "Close the todos",
    run = call("cursor_agent.decide.todos", "close"),
    keys = { todos = { "q" } },
  },
  { name = "log-message", desc = "Show the whole message", run = of_log("show_message"), keys = { log = { "<CR>" } } },
  {
    name = "log-filter",
    desc = "Show the messages of one method",
    run = of_log("choose_method"),
    keys = { log = { "f" } },
  },
  { name = "log-save", desc = "Save the log, secrets removed", run = of_log("ask_and_save"), keys = { log = { "s" } } },
  { name = "log-refresh", desc = "Read the log anew", run = of_log("refresh"), keys = { log = { "r" } } },
  {
    name = "reader-close",
    desc = "Close the window and go back",
    run = function()
      require("cursor_agent.window.scratch").close()
    end,
    keys = { log = { "q" }, reader = { "q" }, subagent = { "q" } },
  },
  {
    name = "hunk-next",
    desc = "Go to the next undecided change, in this file or another",
    run = hunk("jump", 1),
    keys = { code = { "]h" } },
  },
  {
    name = "hunk-prev",
    desc = "Go to the previous undecided change",
    run = hunk("jump", -1),
    keys = { code = { "[h" } },
  },
  {
    name = "hunk-keep",
    desc = "Keep the change under the cursor, or those selected",
    run = hunks("keep_here", "hunk"),
    keys = { code = { "<M-k>" } },
    modes = { code = { "n", "x" } },
  },
  {
    name = "hunk-undo",
    desc = "Undo the change under the cursor, or those selected",
    run = hunks("undo_here", "hunk"),
    keys = { code = { "<M-u>" } },
    modes = { code = { "n", "x" } },
  },
  { name = "file-keep", desc = "Keep all changes of this file", run = hunks("keep_here", "file") },
  { name = "file-undo", desc = "Undo all changes of this file", run = hunks("undo_here", "file") },
  { name = "turn-keep", desc = "Keep all changes of the last turn", run = hunks("keep_here", "turn") },
  { name = "turn-undo", desc = "Undo all changes of the last turn", run = hunks("undo_here", "turn") },
  { name = "keep-all", desc = "Keep everything that is undecided", run = hunks("keep_here", "all") },
  { name = "undo-all", desc = "Undo everything that is undecided", run = hunks("undo_here", "all") },
  {
    name = "comment",
    desc = "Comment on the line, the change or the selection, for the next prompt",
    run = function()
      notify.report(require("cursor_agent.review.comment").here(selected()))
    end,
    keys = { code = { "<M-c>" } },
    modes = { code = { "n", "x" } },
  },
  {
    name = "follow-agent",
    desc = "Show what the agent reads and edits in another window, or stop that",
    run = function()
      notify.report(require("cursor_agent.chat.follow_agent").toggle())
    end,
  },
  {
    name = "go-back",
    desc = "Go back to the files before the prompt under the cursor",
    run = call("cursor_agent.review.checkpoint", "before_prompt"),
    keys = { chat = { "gu" } },
  },
  {
    name = "review",
    desc = "List what is undecided, beside the code",
    run = function()
      notify.report(require("cursor_agent.review.list").open())
    end,
  },
  {
    name = "checkpoints",
    desc = "Go back to files before a prompt",
    run = call("cursor_agent.review.checkpoint", "choose"),
  },
  {
    name = "review-follow",
    desc = "Go to the change",
    run = in_list("follow"),
    keys = { review = { "<CR>" } },
  },
  {
    name = "review-keep",
    desc = "Keep the change, or the file",
    run = in_list("decide", "keep"),
    keys = { review = { "k", "<M-k>" } },
  },
  {
    name = "review-undo",
    desc = "Undo the change, or the file",
    run = in_list("decide", "undo"),
    keys = { review = { "u", "<M-u>" } },
  },
  {
    name = "review-comment",
    desc = "Comment on the change, for the next prompt",
    run = in_list("comment"),
    keys = { review = { "c", "<M-c>" } },
  },
  { name = "review-close", desc = "Close the list", run = in_list("close"), keys = { review = { "q" } } },
  {
    name = "help",
    desc = "List the keys",
    run = function()
      require("cursor_agent.keys.help").open()
    end,
    keys = {
      chat = { "g?" },
      prompt = { "g?" },
      queue = { "g?" },
      permission = { "g?" },
      question = { "g?" },
      conflict = { "g?" },
      plan = { "g?" },
      ["plan-card"] = { "g?" },
      todos = { "g?" },
      log = { "g?" },
      reader = { "g?" },
      subagent = { "g?" },
      review = { "g?" },
    },
  },
}

return M
