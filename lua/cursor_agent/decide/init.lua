-- Decisions that need the user: one queue for all sessions, oldest first, each answered once.
--
-- The library owns the decisions and answers each exactly once. This file only handles their display: the oldest that
-- was not postponed is in the card, and keys act on what is in the card.

local attention = require("cursor_agent.decide.attention")
local card = require("cursor_agent.decide.card")
local chords = require("cursor_agent.decide.chords")
local config = require("cursor_agent.config")
local conflict = require("cursor_agent.decide.conflict")
local format = require("cursor_agent.render.format")
local frame = require("cursor_agent.decide.frame")
local held = require("cursor_agent.decide.held")
local keys = require("cursor_agent.decide.keys")
local bridge = require("cursor_agent.bridge")
local notify = require("cursor_agent.notify")
local permission = require("cursor_agent.decide.permission")
local places = require("cursor_agent.decide.place")
local plan = require("cursor_agent.decide.plan")
local question = require("cursor_agent.decide.question")
local rules = require("cursor_agent.decide.rules")
local typed = require("cursor_agent.decide.typed")

local M = {}

---@type table<string, { card: fun(decision: cursor_agent.Decision): cursor_agent.decide.Card }>
local VIEWS = { permission = permission, plan = plan, conflict = conflict }

---@type integer? instead of the option `decisions.delay_ms`
M.SETTLE_MS = nil

---A key counts as an answer only if what it answers has been on the screen for this long; before that it was typed for
---something else.
---@return integer
local function settle_ms()
  return M.SETTLE_MS or math.max(config.get().decisions.delay_ms, 0)
end

---@type cursor_agent.Decision[] what waits, oldest first
local queue = {}

---@type table<integer, boolean> postponed by the user
local later = {}

---@type table<integer, integer> buffers with the details, by decision
local details = {}

local selected ---@type integer? the decision the user went to
local on_screen ---@type integer? the decision in the card
local shown_revision ---@type integer? of what is shown of it
local settles_at = 0 ---@type number ms; keys before that do nothing
local scheduled = false

---Until when the next decision is entered automatically: the user has just answered one in its card and has typed
---nothing since.
local enters_until = 0 ---@type number ms

---How long that lasts. An agent that asks one thing after another does so within this time.
M.NEXT_MS = 1000

local NS = vim.api.nvim_create_namespace("cursor_agent_next_decision")

---@return number
local function now_ms()
  return vim.uv.hrtime() / 1e6
end

---@param id integer
---@return cursor_agent.Decision?, integer?
local function find(id)
  for i, decision in ipairs(queue) do
    if decision.id == id then
      return decision, i
    end
  end
end

---Whether a decision is still open.
---@param id integer
---@return boolean
function M.waits(id)
  return find(id) ~= nil
end

---The decision for the card: the one the user went to, else the oldest that was not postponed.
---@return cursor_agent.Decision?
local function to_show()
  local chosen = selected and find(selected)
  if chosen and not later[chosen.id] then
    return chosen
  end
  selected = nil
  for _, decision in ipairs(queue) do
    if not later[decision.id] then
      return decision
    end
  end
end

---Whether a decision has its own window in this tab page.
---@param decision cursor_agent.Decision
---@return boolean
local function has_own_window(decision)
  if plan.window(decision.id) then
    return true
  end
  local buf = details[decision.id]
  for _, win in ipairs(buf and vim.fn.win_findbuf(buf) or {}) do
    if vim.api.nvim_win_get_tabpage(win) == vim.api.nvim_get_current_tabpage() then
      return true
    end
  end
  return false
end

---What a permission is about may become known only after it was requested.
---@param decision cursor_agent.Decision
local function refresh_tool(decision)
  local ready = bridge.is_loaded()
  local entry = ready and decision.entry and bridge.entry(decision.key, decision.entry)
  if entry and entry.tool and decision.kind == "permission" then
    decision.tool = entry.tool
  end
end

---Whether to enter the next decision; true once.
---@return boolean
local function takes_focus()
  local yes = now_ms() < enters_until
  if yes then
    enters_until = 0
    vim.on_key(nil, NS)
  end
  return yes
end

---Enters the next decision too, unless the user types something before it comes.
local function enter_next()
  enters_until = now_ms() + M.NEXT_MS
  vim.on_key(function(_, typed_keys)
    if typed_keys ~= "" then
      enters_until = 0
      vim.on_key(nil, NS)
    end
  end, NS)
end

---Who asks, if not the agent of the visible chat: a subagent, or another chat.
---@param decision cursor_agent.Decision
---@param with_subagent boolean the title does not name it
---@return string?
local function origin(decision, with_subagent)
  local words = {} ---@type string[]
  if decision.subagent and with_subagent then
    words[1] = ('subagent "%s"'):format(format.first_line(decision.subagent, 60))
  end
  local chats = require("cursor_agent.chat.registry")
  local win, in_view = places.chat_window()
  local other = win and in_view and in_view.key ~= decision.key or not win and #chats.all() > 1
  local chat = other and chats.get(decision.key)
  if chat then
    local title = chat.status.title
    words[#words + 1] = title and title ~= "" and ('chat "%s"'):format(format.first_line(title, 60))
      or ("another chat (%s)"):format(config.agent_title(chat.agent))
  end
  return #words > 0 and table.concat(words, " · ") or nil
end

---Updates what the card shows.
local function refresh()
  local decision = to_show()
  chords.set(decision ~= nil)
  if not decision or has_own_window(decision) then
    on_screen, shown_revision = decision and decision.id or nil, decision and decision.revision or nil
    card.close()
    return
  end
  -- A call that changed counts as new: the user has to read it again.
  local is_new = on_screen ~= decision.id or shown_revision ~= decision.revision or not card.is_open()
  if is_new then
    refresh_tool(decision)
    settles_at = now_ms() + settle_ms()
  end
  on_screen, shown_revision = decision.id, decision.revision
  local view = (VIEWS[decision.kind] or question).card(decision)
  if #queue > 1 then
    local _, at = find(decision.id)
    view.count = ("%d of %d"):format(at, #queue)
  else
    view.hints = vim.tbl_filter(function(hint)
      return hint.action ~= "next-decision"
    end, view.hints)
  end
  view.from = function(with_subagent)
    return origin(decision, with_subagent)
  end
  view.footer = function()
    return frame.reminder(decision)
  end
  card.show(view, is_new)
  if is_new and takes_focus() then
    card.enter()
  end
end

---Many may come and go at once; refresh once for all of them.
local function refresh_soon()
  if scheduled then
    return
  end
  scheduled = true
  vim.schedule(function()
    scheduled = false
    refresh()
  end)
end

---@param id integer
local function delete_details(id)
  local buf = details[id]
  details[id] = nil
  if buf and vim.api.nvim_buf_is_valid(buf) then
    conflict.close(buf)
    pcall(vim.api.nvim_buf_delete, buf, { force = true })
  end
end

---Removes a decision from the queue and the screen.
---@param id integer
---@param how string
local function drop(id, how)
  local _, at = find(id)
  if at then
    table.remove(queue, at)
  end
  typed.watch(#queue > 0)
  later[id] = nil
  question.forget(id)
  plan.forget(id, how)
  delete_details(id)
  refresh_soon()
end

---A decision in a few words.
---@param decision cursor_agent.Decision
---@return string
local function in_words(decision)
  if decision.kind == "conflict" then
    return format.first_line(decision.title, 200) .. "\n  :CursorAgent conflicts shows the difference and resolves it"
  end
  local title = decision.kind == "permission" and permission.title(decision)
    or ("%s %s"):format(decision.agent, decision.kind == "plan" and "proposes a plan" or "asks")
  return ("%s: %s"):format(title, format.first_line(require("cursor_agent.bridge.redact").text(decision.title), 80))
end

---An open decision is about something else now, or more is known about it.
---@param decision cursor_agent.Decision
---@param at integer
local function on_changed(decision, at)
  local before = queue[at]
  queue[at] = decision
  local buf = details[decision.id]
  if buf and decision.kind == "permission" and vim.api.nvim_buf_is_valid(buf) then
    permission.fill_details(buf, decision)
  end
  if before.revision ~= decision.revision and on_screen == decision.id then
    settles_at = now_ms() + settle_ms()
  end
  refresh()
end

---A decision arrived or changed.
---@param decision cursor_agent.Decision
function M.on_decision(decision)
  local _, at = find(decision.id)
  if at then
    return on_changed(decision, at)
  end
  rules.guard(decision, M)
  queue[#queue + 1] = decision
  typed.watch(true)
  local known = decision.kind == "conflict" and require("cursor_agent.files.conflicts").of(decision)
  if not known or not known.quiet then
    attention.decision(decision, in_words(decision))
  end
  refresh_soon()
  require("cursor_agent.bridge.events").fire("CursorAgentDecision", decision)
end

---A decision was answered or withdrawn.
---@param id integer
---@param how string? user, policy, cancelled, withdrawn
function M.on_decided(id, how)
  if find(id) then
    drop(id, how or "")
  end
  require("cursor_agent.files.conflicts").ended(id)
end

---Redraws: what is on the screen may have changed.
function M.redraw()
  if on_screen then
    refresh_soon()
  end
end

---The default decision: the one on the screen, else the oldest.
---@return cursor_agent.Decision?, string?
function M.current()
  local decision = on_screen and find(on_screen) or to_show() or queue[1] ---@type cursor_agent.Decision?
  if not decision then
    -- One whose change has not been drained yet.
    decision = bridge.is_loaded() and bridge.pending()[1] or nil
  end
  if not decision then
    return nil, "nothing needs a decision"
  end
  return decision
end

---Answers a decision on behalf of the user.
---@param id integer
---@param answer table as in `require("cursor_agent").answer`
---@param revision? integer the one the user was looking at
---@return boolean?, string?
function M.answer(id, answer, revision)
  local ready, why = bridge.load()
  if not ready then
    return nil, why
  end
  local decision = find(id)
  if not decision then
    for _, other in ipairs(bridge.pending()) do
      decision = other.id == id and other or decision
    end
  end
  local path ---@type string?
  if decision and decision.kind == "plan" and answer.accept and not answer.plan_uri then
    local problem
    path, problem = plan.save(decision)
    if problem then
      return nil, problem
    end
    answer = vim.tbl_extend("force", answer, {
      plan_uri = path and vim.uri_from_fname(path),
      plan = plan.text(decision.id),
    })
  end
  answer = vim.tbl_extend("force", answer, { revision = revision, at = os.date("%H:%M") })
  local done, problem = bridge.answer(id, answer)
  if not done then
    return nil, problem
  end
  if decision and decision.kind == "conflict" then
    require("cursor_agent.files").decided(decision, conflict.choice(answer))
  end
  if decision and path then
    plan.accepted(path, decision.key)
    local say = config.get().plan.directory ~= "" and "plan saved as %s"
      or "your edited plan is in %s, for the agent, until Neovim exits"
    notify.notify(say:format(format.path(path, decision.cwd)))
  end
  drop(id, "user")
  return true
end

---Answers a decision by its number, for `require("cursor_agent").answer`: a typed call is for what was there when typing
---began.
---@param id integer
---@param answer table
---@return boolean?, string?
function M.answer_call(id, answer)
  local decision = find(id)
  local revision = answer.revision ---@type integer?
  if decision and not revision then
    local seen, unseen = typed.saw_this(decision, on_screen ~= id or now_ms() >= settles_at)
    if not seen then
      return nil, unseen
    end
    revision = typed.is_typing() and decision.revision or nil
  end
  return M.answer(id, answer, revision)
end

---The answer that accepts or rejects a decision.
---@param decision cursor_agent.Decision
---@param verdict "accept"|"reject"
---@return table?, string?
function M.verdict(decision, verdict)
  if decision.kind == "permission" then
    return { kind = verdict == "accept" and "allow_once" or "reject_once" }
  elseif decision.kind == "plan" or decision.kind == "conflict" then
    return verdict == "accept" and { accept = true } or { reject = true }
  elseif verdict == "accept" then
    return nil, "a question cannot be accepted, only answered; :CursorAgent decisions goes to it"
  end
  return { skip = true }
end

---Accepts or rejects the current decision.
---@param verdict "accept"|"reject"
---@return boolean?, string?
function M.decide(verdict)
  local decision, why = M.current()
  if not decision then
    return nil, why
  end
  local seen, unseen = typed.saw(decision, now_ms() >= settles_at)
  if not seen then
    -- Never decide something the user has not seen.
    later[decision.id] = nil
    selected = find(decision.id) and decision.id or selected
    refresh_soon()
    return nil, unseen
  end
  local answer, problem = M.verdict(decision, verdict)
  if not answer then
    return nil, problem
  end
  return M.answer(decision.id, answer, decision.revision)
end

---Allows once, or accepts the plan.
---@return boolean?, string?
function M.accept()
  return M.decide("accept")
end

---Rejects once, or rejects the plan, or skips the question.
---@return boolean?, string?
function M.reject()
  return M.decide("reject")
end

---Whether the card has been on the screen long enough to be read. A key that comes too early must pause first, so that
---a held key decides only one thing.
---@return boolean
local function is_settled()
  local now = now_ms()
  if now < settles_at then
    settles_at = now + settle_ms()
    return false
  end
  return true
end

---Whether a key would decide now: the card has been on the screen long enough.
---@return boolean
function M.takes_keys()
  return on_screen ~= nil and find(on_screen) ~= nil and now_ms() >= settles_at
end

---Goes to a decision: into the card, or to the plan.
---@param id? integer default: the current one
---@return boolean?, string?
function M.open(id)
  local decision, why
  if id then
    decision = find(id)
  else
    decision, why = M.current()
  end
  if not decision then
    return nil, why or "already decided"
  end
  if not find(decision.id) then
    queue[#queue + 1] = decision
  end
  later[decision.id] = nil
  selected = decision.id
  local buf = details[decision.id]
  if buf and vim.api.nvim_buf_is_valid(buf) then
    vim.api.nvim_set_current_win(vim.fn.win_findbuf(buf)[1])
    return true
  elseif decision.kind == "plan" then
    card.close()
    plan.open(decision)
    refresh()
    return true
  end
  refresh()
  if not card.enter() then
    return nil, "no room to show the decision"
  end
  -- What was typed before the card was entered was not meant for it.
  if vim.fn.getchar(1) ~= 0 then
    settles_at = math.max(settles_at, now_ms() + settle_ms())
  end
  return true
end

---Shows this chat's decisions before those of others. Enters nothing.
---@param key cursor_agent.Key
function M.show(key)
  for _, decision in ipairs(queue) do
    if decision.key == key then
      later[decision.id] = nil
      selected = decision.id
      refresh_soon()
      return
    end
  end
end

---Goes to the decision about the oldest conflict.
---@return boolean?, string?
function M.open_conflict()
  local conflicts, files = require("cursor_agent.files.conflicts"), require("cursor_agent.files")
  local oldest = files.oldest_conflict()
  if not oldest then
    return nil, "no file has both unsaved changes and changes of an agent"
  end
  local decision = conflicts.decision(oldest)
  if not decision and conflicts.ask(oldest) then
    decision = conflicts.decision(oldest)
  end
  if not decision then
    -- There is no chat that could ask.
    files.show_difference(oldest)
    return true
  end
  if not M.waits(decision.id) then
    M.on_decision(decision)
  end
  return M.open(decision.id)
end

---Whether the user is in a window that shows a decision.
---@return boolean
local function is_inside()
  return card.has_focus() or vim.b.cursor_agent_decision ~= nil
end

---A key for accepting or rejecting, pressed anywhere.
---@param verdict "accept"|"reject"
---@param lhs? string the key
---@return boolean?, string?
function M.pressed(verdict, lhs)
  local decision, why = M.current()
  if not decision then
    return nil, why
  end
  if on_screen ~= decision.id or (later[decision.id] and not has_own_window(decision)) then
    -- Nothing is decided unseen.
    later[decision.id] = nil
    selected = decision.id
    refresh()
    return true
  elseif not is_settled() or (lhs and held.is_held(lhs)) then
    return true
  elseif decision.kind == "question" and verdict == "accept" then
    return M.open(decision.id)
  end
  local entered = is_inside()
  local done, problem = M.decide(verdict)
  if done and lhs then
    held.note(lhs)
    vim.schedule(function()
      if not chords.are_on() then
        held.guard(lhs)
      end
    end)
  end
  if done and entered then
    enter_next()
  end
  return done, problem
end

---Shows the decision that stands `step` further in the queue.
---@param step integer
---@return boolean?, string?
function M.go(step)
  local decision = M.current()
  local _, at = find(decision and decision.id or -1)
  if not at or #queue < 2 then
    return nil, "no other decision is open"
  end
  local next_one = queue[(at - 1 + step) % #queue + 1]
  later[next_one.id] = nil
  local entered = card.has_focus()
  selected = next_one.id
  refresh()
  if entered then
    card.enter()
  end
  return true
end

---Leaves the details if the user is in them.
---@param decision cursor_agent.Decision
---@return boolean
function M.close_details(decision)
  local buf = details[decision.id]
  if not buf or vim.api.nvim_get_current_buf() ~= buf then
    return false
  end
  delete_details(decision.id)
  return true
end

---Hides a decision; it stays open.
---@param decision cursor_agent.Decision
---@return boolean
function M.put_off(decision)
  later[decision.id] = true
  if selected == decision.id then
    selected = nil
  end
  plan.close(decision.id)
  if M.close_details(decision) then
    -- Back into the card.
    return M.open(decision.id) == true
  end
  refresh()
  return true
end

---Shows everything about a permission, or both sides of a conflict, instead of the card.
---@param decision cursor_agent.Decision
---@return boolean?, string?
function M.show_details(decision)
  local win = details[decision.id] and vim.fn.win_findbuf(details[decision.id])[1]
  if win then
    vim.api.nvim_set_current_win(win)
    return true
  end
  refresh_tool(decision)
  card.close()
  local buf = (decision.kind == "conflict" and conflict or permission).details(decision)
  if not buf then
    M.open(decision.id)
    return nil, "no room for the details"
  end
  details[decision.id] = buf
  vim.api.nvim_create_autocmd("BufWipeout", {
    buffer = buf,
    desc = "cursor-agent: clean up when the details are closed",
    callback = function()
      details[decision.id] = nil
      refresh_soon()
    end,
  })
  refresh()
  return true
end

---A key has closed the window of a decision, and may still be held down.
---@param decision cursor_agent.Decision
---@param lhs string
local function guard_key(decision, lhs)
  if find(decision.id) and not later[decision.id] then
    return
  end
  held.note(lhs)
  -- The next decision may take its place first, and has its own guard.
  vim.schedule(function()
    if not card.has_focus() and not vim.b.cursor_agent_decision then
      held.guard(lhs)
    end
  end)
end

---A key in a window that shows a decision.
---@param name string
---@param lhs string
---@return boolean?, string?
function M.key(name, lhs)
  local own = vim.b.cursor_agent_decision
  local shown = own or on_screen
  local decision = shown and find(shown)
  if not decision and own then
    return nil, "already decided"
  elseif not decision then
    -- It was just answered; the card is about to show the next one.
    refresh_soon()
    return true
  elseif not is_settled() or held.is_held(lhs) then
    return true
  end
  local done, why = keys.press(name, decision, lhs)
  guard_key(decision, lhs)
  if not find(decision.id) then
    enter_next()
  end
  if not done and why and card.has_focus() then
    -- Show the message where the user is looking.
    card.say(why)
    return true
  end
  return done, why
end

vim.api.nvim_create_autocmd("TabEnter", {
  group = vim.api.nvim_create_augroup("cursor_agent_decide", {}),
  desc = "cursor-agent: show the decision in the current tab page",
  callback = function()
    if #queue > 0 then
      refresh_soon()
    end
  end,
})

keys.queue = M
typed.current = M.current
typed.all = function()
  return queue
end

card.on_closed = function()
  local decision = on_screen and find(on_screen)
  if decision then
    M.put_off(decision)
  end
end

card.on_focus = function(entered)
  if not entered then
    question.left()
  elseif vim.fn.getchar(1) ~= 0 then
    settles_at = math.max(settles_at, now_ms() + settle_ms())
  end
end

conflict.on_known = M.redraw

plan.on_closed = function(id)
  local decision = find(id)
  if decision then
    M.put_off(decision)
  end
end

return M
