-- Shows the questions of a request in one window: choices to select, texts to fill in, an address to open.

local card = require("cursor_agent.decide.card")
local frame = require("cursor_agent.decide.frame")
local format = require("cursor_agent.render.format")
local blocks = require("cursor_agent.render.block")

local M = {}

---@alias cursor_agent.decide.Question { id: string, prompt: string, options: { id: string, label: string }[], multiple: boolean, free_text: boolean?, required: boolean?, type: string?, default: any }

---What a line of the window is about.
---@class (exact) cursor_agent.decide.Row
---@field question integer
---@field option integer? its number; none for a text to fill in
---@field other boolean? an answer in the user's own words

---@class (exact) cursor_agent.decide.Marks what the user has marked so far
---@field chosen table<string, table<string, boolean>> option ids by question id
---@field texts table<string, string> by question id
---@field rows table<integer, cursor_agent.decide.Row> by line
---@field warned table<string, boolean> questions the user was reminded of: those may now be left empty

---@type table<integer, cursor_agent.decide.Marks> by decision: what was marked is still there when one comes back
local marks = {}

---Cursor's own questions have no type; the fields of an elicitation do, and are optional unless marked required.
---@param question cursor_agent.decide.Question
---@return boolean
local function is_field(question)
  return question.type ~= nil
end

---@param question cursor_agent.decide.Question
---@return boolean
local function needs_one(question)
  return not question.multiple and (question.required or not is_field(question))
end

---@param decision cursor_agent.Decision
---@return cursor_agent.decide.Marks
local function marks_of(decision)
  local found = marks[decision.id]
  if found then
    return found
  end
  found = { chosen = {}, texts = {}, rows = {}, warned = {} } ---@type cursor_agent.decide.Marks
  for _, question in ipairs(decision.questions or {}) do
    local chosen = {} ---@type table<string, boolean>
    local default = question.default
    for _, value in ipairs(type(default) == "table" and default or { default }) do
      if #question.options == 0 then
        found.texts[question.id] = tostring(value)
      end
      chosen[tostring(value)] = true
    end
    found.chosen[question.id] = chosen
  end
  marks[decision.id] = found
  return found
end

---The card was left: remind the user again next time.
function M.left()
  for _, given in pairs(marks) do
    given.warned = {}
  end
end

---Forgets what was selected.
---@param id integer
function M.forget(id)
  marks[id] = nil
end

---The chosen options, or the text, in the agent's order and with its ids.
---@param question cursor_agent.decide.Question
---@param given cursor_agent.decide.Marks
---@return string[]
local function values(question, given)
  if #question.options == 0 then
    local text = given.texts[question.id]
    return text and text ~= "" and { text } or {}
  end
  local list = {} ---@type string[]
  for _, option in ipairs(question.options) do
    if given.chosen[question.id][option.id] then
      list[#list + 1] = option.id
    end
  end
  return list
end

---@param question cursor_agent.decide.Question
---@param is_chosen boolean
---@return string
local function box(question, is_chosen)
  if question.multiple then
    return is_chosen and "[x] " or "[ ] "
  end
  local ascii = require("cursor_agent.config").get().chat.icons == "ascii"
  return is_chosen and (ascii and "(*) " or "(•) ") or "( ) "
end

---@param b cursor_agent.render.Builder
---@param text string
---@param hl string?
local function add_lines(b, text, hl)
  for _, line in ipairs(vim.split(vim.trim(text), "\n", { plain = true })) do
    b:line({ { line, hl } })
  end
end

---@param decision cursor_agent.Decision
---@return cursor_agent.render.Builder
local function body(decision)
  local b = blocks.builder()
  local given = marks_of(decision)
  local questions = decision.questions or {}
  given.rows = {}
  local title = vim.trim(decision.title)
  if title ~= "" and not (questions[1] and vim.trim(questions[1].prompt) == title) then
    add_lines(b, title)
    b:line({})
  end
  for i, question in ipairs(questions) do
    if i > 1 then
      b:line({})
    end
    local note = question.multiple and " (any number)" or question.required and " (needed)" or ""
    add_lines(b, question.prompt .. note, "CursorAgentQuestion")
    for j, option in ipairs(question.options) do
      local is_chosen = given.chosen[question.id][option.id] == true
      local row = b:line({
        { box(question, is_chosen), is_chosen and "CursorAgentChosen" or "CursorAgentDetail" },
        { option.label ~= "" and option.label or option.id, is_chosen and "CursorAgentChosen" or nil },
      })
      given.rows[row + 1] = { question = i, option = j }
    end
    if #question.options == 0 and (is_field(question) or question.free_text) then
      local text = given.texts[question.id]
      local row = b:line({
        { "> ", "CursorAgentDetail" },
        text and text ~= "" and { text, "CursorAgentChosen" }
          or { ("(%s)"):format(question.type or "text"), "CursorAgentPlaceholder" },
      })
      given.rows[row + 1] = { question = i }
    end
  end
  local only = #questions == 1 and questions[1]
  if only and not is_field(only) then
    local row = b:line({ { "( ) ", "CursorAgentDetail" }, { "Other…", "CursorAgentDetail" } })
    given.rows[row + 1] = { question = 1, other = true }
  end
  return b
end

---The line of a question's first choice.
---@param given cursor_agent.decide.Marks
---@param question integer
---@return integer?
local function first_line_of(given, question)
  local best ---@type integer?
  for line, row in pairs(given.rows) do
    if row.question == question and not row.other and (not best or line < best) then
      best = line
    end
  end
  return best
end

---The line for a free-text answer, if there is nothing to choose.
---@param given cursor_agent.decide.Marks
---@return integer?
local function other_line(given)
  for line, row in pairs(given.rows) do
    if row.other then
      return line
    end
  end
end

---@param decision cursor_agent.Decision
---@return cursor_agent.render.Builder
local function address(decision)
  local b = blocks.builder()
  if vim.trim(decision.title) ~= "" then
    add_lines(b, decision.title)
    b:line({})
  end
  local url = decision.url or ""
  -- The host is what the user has to check.
  local scheme, host, rest = url:match("^(%a[%w+.-]*://)([^/?#]*)(.*)$")
  if scheme and host and rest then
    b:line({ { scheme, "CursorAgentDetail" }, { host, "CursorAgentWarning" }, { rest, "CursorAgentDetail" } })
  else
    b:line({ { url, "CursorAgentWarning" } })
  end
  return b
end

---The card of a question.
---@param decision cursor_agent.Decision
---@return cursor_agent.decide.Card
function M.card(decision)
  local title = require("cursor_agent.decide.permission").asker(decision)
  if decision.url then
    return {
      kind = "question",
      title = title .. " asks to open a page",
      hints = frame.hints("question", {
        { "open-address", "open it" },
        { "question-skip", "decline" },
        { "question-cancel", "cancel" },
        { "next-decision", "next" },
        { "decision-later", "later" },
      }),
      body = function()
        return address(decision)
      end,
    }
  end
  body(decision)
  local first = (decision.questions or {})[1]
  return {
    kind = "question",
    title = title .. " asks",
    hints = frame.hints("question", {
      { "question-choose", first and #first.options == 0 and is_field(first) and "fill in" or "choose" },
      { "question-answer", "answer" },
      { "question-skip", "skip" },
      { "next-decision", "next" },
      { "decision-later", "later" },
      { "question-cancel", "cancel" },
    }),
    body = function()
      return body(decision)
    end,
    cursor = first_line_of(marks_of(decision), 1) or other_line(marks_of(decision)) or 1,
  }
end

---@param decision cursor_agent.Decision
---@param question cursor_agent.decide.Question
---@param option integer
local function toggle(decision, question, option)
  local chosen = marks_of(decision).chosen
  local id = question.options[option].id
  if question.multiple then
    chosen[question.id][id] = not chosen[question.id][id] or nil
  elseif chosen[question.id][id] and not needs_one(question) then
    chosen[question.id] = {}
  else
    chosen[question.id] = { [id] = true }
  end
  card.say(nil)
end

---Asks for a text. A reply that comes after the decision has ended is dropped.
---@param prompt string
---@param default string?
---@param use fun(text: string)
local function ask(prompt, default, use)
  vim.ui.input({ prompt = prompt, default = default }, function(text)
    if text then
      use(text)
    end
  end)
end

---@class (exact) cursor_agent.decide.Answering
---@field answer fun(answer: table): boolean?, string? answers the decision
---@field is_pending fun(): boolean

---@param decision cursor_agent.Decision
---@param row cursor_agent.decide.Row
---@param how cursor_agent.decide.Answering
local function fill(decision, row, how)
  local question = (decision.questions or {})[row.question]
  if row.other then
    ask("Your answer: ", nil, function(text)
      if vim.trim(text) ~= "" and how.is_pending() then
        require("cursor_agent.notify").report(how.answer({ skip = true, reason = text }))
      end
    end)
    return
  end
  if not question then
    return
  end
  local given = marks_of(decision)
  ask(question.prompt .. " ", given.texts[question.id], function(text)
    given.texts[question.id] = text
    card.say(nil)
  end)
end

---@param decision cursor_agent.Decision
---@return cursor_agent.decide.Row?
local function row_here(decision)
  return marks_of(decision).rows[card.line()]
end

---Selects the choice under the cursor, or fills in the text.
---@param decision cursor_agent.Decision
---@param how cursor_agent.decide.Answering
---@return boolean?, string?
function M.choose(decision, how)
  local row = row_here(decision)
  local question = row and (decision.questions or {})[row.question]
  if not row or not question then
    return nil, "nothing to choose on this line"
  elseif row.option then
    toggle(decision, question, row.option)
  else
    fill(decision, row, how)
  end
  return true
end

---Selects the nth choice of the question under the cursor.
---@param decision cursor_agent.Decision
---@param number integer?
---@return boolean?, string?
function M.choose_number(decision, number)
  local row = row_here(decision) or { question = 1 }
  local question = (decision.questions or {})[row.question]
  if not question or not question.options[number] then
    return nil, ("no choice %s"):format(tostring(number))
  end
  toggle(decision, question, number --[[@as integer]])
  return true
end

---Answers all questions, or goes to the first unanswered one.
---@param decision cursor_agent.Decision
---@param how cursor_agent.decide.Answering
---@return boolean?, string?
function M.answer(decision, how)
  local given = marks_of(decision)
  local row = row_here(decision)
  local here = row and (decision.questions or {})[row.question]
  if row and here and row.option and needs_one(here) and #values(here, given) == 0 then
    toggle(decision, here, row.option)
  elseif row and here and not row.option and (row.other or (here.required and #values(here, given) == 0)) then
    fill(decision, row, how)
    return true
  end
  local answers = vim.empty_dict() ---@type table<string, string[]>
  for i, question in ipairs(decision.questions or {}) do
    local list = values(question, given)
    local may_be_empty = is_field(question) and not question.required
      or question.multiple and not question.required and given.warned[question.id]
    if #list == 0 and not may_be_empty then
      given.warned[question.id] = true
      card.move_to(first_line_of(given, i) or 1)
      local again = question.multiple and not question.required and "; <CR> again skips it" or ""
      card.say(
        ("“%s” has no answer yet%s"):format(format.first_line(question.prompt, again == "" and 34 or 28), again)
      )
      return true
    end
    if #list > 0 or not is_field(question) then
      answers[question.id] = list
    end
  end
  return how.answer({ answers = answers })
end

---Skips the questions, with a reason if one is given.
---@param decision cursor_agent.Decision
---@param how cursor_agent.decide.Answering
---@return boolean?, string?
function M.skip(decision, how)
  local first = (decision.questions or {})[1]
  if decision.url or (first and is_field(first)) then
    -- An elicitation has no field for a reason.
    return how.answer({ skip = true })
  end
  ask("Reason for skipping (optional): ", nil, function(reason)
    if how.is_pending() then
      reason = vim.trim(reason)
      require("cursor_agent.notify").report(how.answer({ skip = true, reason = reason ~= "" and reason or nil }))
    end
  end)
  return true
end

---Opens the address and tells the agent so.
---@param decision cursor_agent.Decision
---@param how cursor_agent.decide.Answering
---@return boolean?, string?
function M.open_address(decision, how)
  local url = decision.url
  if not url then
    return nil, "no URL to open"
  end
  if not url:match("^https?://") then
    -- Any other scheme could start a program on this machine.
    return nil, ("only http and https URLs are opened; this is %s"):format(url)
  end
  local _, problem = require("cursor_agent.chat.outside").open_url(url)
  if problem then
    return nil, problem
  end
  return how.answer({ accept = true })
end

return M
