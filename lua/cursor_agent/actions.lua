-- What each action does, by its name in `keys/list.lua`: for the `<Plug>` mappings and the keys in our buffers.

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

---Calls a library function for the current chat.
---@param name "cancel"|"retry"
---@return fun()
local function bridge(name)
  return with_chat(function(chat)
    return require("cursor_agent.bridge")[name](chat.key)
  end)
end

---Opens a chat the way a key or command does: the user may have to pick an agent first.
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

---A key in a window that shows a decision.
---@param name string
---@return fun(lhs: string?)
local function decide(name)
  return function(lhs)
    notify.report(require("cursor_agent.decide").key(name, lhs or ""))
  end
end

---A key in the log window.
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

---The first and last selected line; ends Visual mode. Nil when nothing is selected.
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

---Decides pending changes: those under the cursor or selected, those of the file, or all.
---@param name "keep_here"|"undo_here"
---@param what "hunk"|"file"|"turn"|"all"
---@return fun()
local function hunks(name, what)
  return function()
    notify.report(require("cursor_agent.review")[name](what, selected()))
  end
end

---A key in the list of undecided changes.
---@param name "go"|"decide"|"comment"|"close"
---@param ... any
---@return fun()
local function in_list(name, ...)
  local args = { ... }
  return function()
    notify.report(require("cursor_agent.review.list")[name](unpack(args)))
  end
end

---A key in the list of MCP servers.
---@param name "open"|"enable"|"disable"|"login"|"tools"|"refresh"
---@return fun()
local function in_mcp(name)
  return function()
    notify.report(require("cursor_agent.mcp").key(name))
  end
end

---A key in the cloud agents' dashboard.
---@param verb string
---@return fun()
local function in_cloud(verb)
  return function()
    notify.report(require("cursor_agent.cloud").key(verb))
  end
end

---A filter in the dashboard.
---@param name "state"|"repo"|"text"
---@return fun()
local function filter_cloud(name)
  return function()
    notify.report(require("cursor_agent.cloud").filter(name))
  end
end

---A dashboard action that is not about a single agent.
---@param name "open"|"set_filter"|"toggle_archived"|"refresh"|"close"
---@return fun()
local function of_dashboard(name)
  return function()
    local run = require("cursor_agent.cloud.dashboard")[name] --[[@as fun(): any, string?]]
    notify.report(run())
  end
end

---Opens an `mcp.json`.
---@param which "project"|"user"
---@return fun()
local function edit_mcp(which)
  return function()
    notify.report(require("cursor_agent.mcp").edit(which))
  end
end

---A key that works in any window.
---@param verdict "accept"|"reject"
---@return fun(lhs: string?)
local function pressed(verdict)
  return function(lhs)
    notify.report(require("cursor_agent.decide").pressed(verdict, lhs))
  end
end

---@type table<string, (fun(lhs: string?))?> with the key that was pressed, if one was
local DOES = {
  send = with_chat(function(chat)
    return chat.prompt:send()
  end),
  ["send-now"] = with_chat(function(chat)
    return chat.prompt:send_now()
  end),
  cancel = bridge("cancel"),
  retry = bridge("retry"),
  focus = with_chat(function(chat)
    require("cursor_agent.chat.layout").enter_prompt(chat)
    return true
  end),
  follow = call("cursor_agent.chat.links", "open"),
  ["open-outside"] = call("cursor_agent.chat.links", "open_outside"),
  file = call("cursor_agent.chat.links", "file"),
  subagent = call("cursor_agent.chat.subagent", "here"),
  output = call("cursor_agent.chat.output", "open"),
  explain = call("cursor_agent.chat.output", "explain"),
  ["next-turn"] = call("cursor_agent.chat.jump", "turn", 1),
  ["prev-turn"] = call("cursor_agent.chat.jump", "turn", -1),
  ["next-tool"] = call("cursor_agent.chat.jump", "tool", 1),
  ["prev-tool"] = call("cursor_agent.chat.jump", "tool", -1),
  ["yank-code"] = call("cursor_agent.chat.code", "yank"),
  ["apply-code"] = call("cursor_agent.chat.code", "apply"),
  ["history-prev"] = with_chat(function(chat)
    chat.prompt:look_back(-1)
    return true
  end),
  ["history-next"] = with_chat(function(chat)
    chat.prompt:look_back(1)
    return true
  end),
  ["save-unsaved"] = with_chat(function(chat)
    return chat.prompt:save_unsaved()
  end),
  ["attach-unsaved"] = with_chat(function(chat)
    chat.prompt:attach_unsaved()
    return true
  end),
  ["attach-image"] = call("cursor_agent.prompt.clipboard", "attach"),
  detach = call("cursor_agent.chat.pick", "detach"),
  ["cycle-mode"] = call("cursor_agent.chat.pick", "cycle_mode"),
  mode = call("cursor_agent.chat.pick", "mode"),
  model = call("cursor_agent.chat.pick", "model"),
  option = call("cursor_agent.chat.pick", "option"),
  queue = call("cursor_agent.prompt.queue", "open"),
  accept = pressed("accept"),
  reject = pressed("reject"),
  decisions = function()
    notify.report(require("cursor_agent.decide").open())
  end,
  todos = call("cursor_agent.decide.todos", "toggle"),
  toggle = pick("toggle"),
  open = pick("open"),
  close = function()
    notify.report(require("cursor_agent.chat.sessions").close())
  end,
  new = pick("new"),
  prompt = function()
    require("cursor_agent.chat.pick").prompt_with_selection()
  end,
  ["add-context"] = function()
    require("cursor_agent.chat.pick").add_context()
  end,
  stop = call("cursor_agent.agents.control", "stop"),
  restart = call("cursor_agent.agents.control", "restart"),
  sessions = function()
    notify.report(require("cursor_agent.chat.switch").open())
  end,
  ["next-waiting"] = function()
    notify.report(require("cursor_agent.chat.switch").next_waiting())
  end,
  resume = function()
    notify.report(require("cursor_agent.chat.switch").resume())
  end,
  login = call("cursor_agent.agents.login", "open"),
  export = call("cursor_agent.chat.export", "open"),
  log = call("cursor_agent.agents.protocol_log", "open"),
  ["queue-edit"] = call("cursor_agent.prompt.queue", "edit"),
  ["queue-remove"] = call("cursor_agent.prompt.queue", "remove"),
  ["queue-up"] = call("cursor_agent.prompt.queue", "move", -1),
  ["queue-down"] = call("cursor_agent.prompt.queue", "move", 1),
  ["queue-send-now"] = call("cursor_agent.prompt.queue", "send_now"),
  ["queue-close"] = call("cursor_agent.prompt.queue", "close"),
  ["allow-once"] = decide("allow-once"),
  ["allow-always"] = decide("allow-always"),
  ["reject-once"] = decide("reject-once"),
  ["reject-always"] = decide("reject-always"),
  ["choose-number"] = decide("choose-number"),
  ["reject-with-message"] = decide("reject-with-message"),
  ["decision-details"] = decide("decision-details"),
  ["question-choose"] = decide("question-choose"),
  ["question-answer"] = decide("question-answer"),
  ["open-address"] = decide("open-address"),
  ["question-skip"] = decide("question-skip"),
  ["question-cancel"] = decide("question-cancel"),
  ["conflict-mine"] = decide("conflict-mine"),
  ["conflict-theirs"] = decide("conflict-theirs"),
  ["conflict-both"] = decide("conflict-both"),
  ["conflict-cancel"] = decide("conflict-cancel"),
  ["plan-open"] = decide("plan-open"),
  ["plan-accept"] = decide("plan-accept"),
  ["plan-reject"] = decide("plan-reject"),
  ["plan-cancel"] = decide("plan-cancel"),
  ["next-decision"] = decide("next-decision"),
  ["previous-decision"] = decide("previous-decision"),
  ["decision-later"] = decide("decision-later"),
  ["decision-leave"] = decide("decision-leave"),
  ["todos-follow"] = call("cursor_agent.decide.todos", "go"),
  ["todos-close"] = call("cursor_agent.decide.todos", "close"),
  ["log-message"] = of_log("show_message"),
  ["log-filter"] = of_log("choose_method"),
  ["log-save"] = of_log("ask_and_save"),
  ["log-refresh"] = of_log("refresh"),
  ["reader-close"] = function()
    require("cursor_agent.window.scratch").close()
  end,
  ["hunk-next"] = hunk("jump", 1),
  ["hunk-prev"] = hunk("jump", -1),
  ["hunk-keep"] = hunks("keep_here", "hunk"),
  ["hunk-undo"] = hunks("undo_here", "hunk"),
  ["file-keep"] = hunks("keep_here", "file"),
  ["file-undo"] = hunks("undo_here", "file"),
  ["turn-keep"] = hunks("keep_here", "turn"),
  ["turn-undo"] = hunks("undo_here", "turn"),
  ["keep-all"] = hunks("keep_here", "all"),
  ["undo-all"] = hunks("undo_here", "all"),
  comment = function()
    notify.report(require("cursor_agent.review.comment").here(selected()))
  end,
  ["follow-agent"] = function()
    notify.report(require("cursor_agent.chat.follow_agent").toggle())
  end,
  ["go-back"] = call("cursor_agent.review.checkpoint", "before_prompt"),
  review = function()
    notify.report(require("cursor_agent.review.list").open())
  end,
  checkpoints = call("cursor_agent.review.checkpoint", "choose"),
  ["review-follow"] = in_list("go"),
  ["review-keep"] = in_list("decide", "keep"),
  ["review-undo"] = in_list("decide", "undo"),
  ["review-comment"] = in_list("comment"),
  ["review-close"] = in_list("close"),
  mcp = function()
    notify.report(require("cursor_agent.mcp").open())
  end,
  ["mcp-open"] = in_mcp("open"),
  ["mcp-enable"] = in_mcp("enable"),
  ["mcp-disable"] = in_mcp("disable"),
  ["mcp-login"] = in_mcp("login"),
  ["mcp-tools"] = in_mcp("tools"),
  ["mcp-edit"] = edit_mcp("project"),
  ["mcp-edit-user"] = edit_mcp("user"),
  ["mcp-refresh"] = in_mcp("refresh"),
  cloud = of_dashboard("open"),
  ["cloud-open"] = in_cloud("open"),
  ["cloud-follow-up"] = in_cloud("follow"),
  ["cloud-stop"] = in_cloud("stop"),
  ["cloud-browse"] = in_cloud("browse"),
  ["cloud-diff"] = in_cloud("diff"),
  ["cloud-checkout"] = in_cloud("checkout"),
  ["cloud-artifacts"] = in_cloud("artifacts"),
  ["cloud-usage"] = in_cloud("usage"),
  ["cloud-archive"] = in_cloud("archive"),
  ["cloud-delete"] = in_cloud("delete"),
  ["cloud-new"] = function()
    notify.report(require("cursor_agent.cloud").run("new"))
  end,
  ["cloud-state"] = filter_cloud("state"),
  ["cloud-repo"] = filter_cloud("repo"),
  ["cloud-text"] = filter_cloud("text"),
  ["cloud-all"] = of_dashboard("set_filter"),
  ["cloud-archived"] = of_dashboard("toggle_archived"),
  ["cloud-refresh"] = of_dashboard("refresh"),
  ["cloud-close"] = of_dashboard("close"),
  help = function()
    require("cursor_agent.keys.help").open()
  end,
}

---All actions, in the order `g?` lists them, each with its description.
M.list = vim.tbl_map(function(action)
  return vim.tbl_extend("error", action, { run = assert(DOES[action.name], action.name) })
end, require("cursor_agent.keys.list"))

---Runs an action by name.
---@param name string
---@param lhs? string the key that was pressed
function M.run(name, lhs)
  local run = DOES[name]
  if run then
    run(lhs)
  end
end

return M
