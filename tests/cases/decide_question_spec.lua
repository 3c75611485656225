-- Questions: all of a request in one window, marked with real keys, ids back exactly as given.

local T = require("harness")

local ASK = "cursor/ask_question"
local ELICIT = "elicitation/create"

---@param questions table[]
---@param title? string
---@return table scenario
local function asking(questions, title)
  return {
    turns = {
      {
        {
          request = { method = ASK, params = { toolCallId = "q1", title = title, questions = questions } },
          ["then"] = { ["*"] = { { text = "Thank you." } } },
        },
      },
    },
  }
end

local STORE = {
  id = "store/1",
  prompt = "Which store should sessions use?",
  options = {
    { id = "sqlite:v3", label = "SQLite, one file and crash-safe" },
    { id = "jsonl ", label = "JSON lines" },
    { id = "", label = "None" },
  },
}

local EXTRAS = {
  id = "extras",
  prompt = "What else should it have?",
  allowMultiple = true,
  options = {
    { id = "t", label = "Tests" },
    { id = "d", label = "Documentation" },
    { id = "b", label = "A benchmark" },
  },
}

---@param agent harness.Agent
---@param method string
---@param nvim harness.Child
---@return table result
local function answer_to(agent, method, nvim)
  return nvim:wait(function()
    local answer = agent:answers(method)[1]
    return answer and answer.result
  end, "an answer")
end

---@param nvim harness.Child
local function enter(nvim)
  nvim:keys(":CursorAgent decisions<CR>")
  nvim:wait("vim.bo.filetype == 'cursoragent-decision'", "the card to be entered")
  nvim:wait_card()
end

T.case("one question: Enter on a choice answers with its id", { width = 80, height = 20 }, function(nvim)
  local agent = T.agent(asking({ STORE }))
  nvim:use(agent, { attention = { notify = false } })
  nvim:prompt("go", { open = false })
  nvim:wait_screen("Which store should sessions use?")
  enter(nvim)
  nvim:expect_screen("decide-question")
  nvim:keys("j<CR>")
  T.eq(answer_to(agent, ASK, nvim), {
    outcome = { outcome = "answered", answers = { { questionId = "store/1", selectedOptionIds = { "jsonl " } } } },
  })
  nvim:wait_turns(1)
  nvim:wait_screen_without("Which store")
end)

T.case("all questions of a request are answered in one window", { width = 80, height = 24 }, function(nvim)
  local agent = T.agent(asking({ STORE, EXTRAS }, "Before I begin"))
  nvim:use(agent, { attention = { notify = false } })
  nvim:prompt("go", { open = false })
  nvim:wait_screen("What else should it have?")
  enter(nvim)
  nvim:keys("jj<Space>k<Space>")
  nvim:wait_screen("(•) JSON lines")
  T.ok(nvim:sees("( ) None"), "one choice at a time")
  nvim:keys("G<Space>kk<Space>k")
  nvim:wait_screen("[x] A benchmark")
  nvim:expect_screen("decide-questions")
  nvim:keys("<CR>")
  T.eq(answer_to(agent, ASK, nvim).outcome.answers, {
    { questionId = "store/1", selectedOptionIds = { "jsonl " } },
    { questionId = "extras", selectedOptionIds = { "t", "b" } },
  })
end)

T.case("an open question is pointed out; nothing is sent before", { width = 80 }, function(nvim)
  local agent = T.agent(asking({ EXTRAS, STORE }))
  nvim:use(agent, { attention = { notify = false } })
  nvim:prompt("go", { open = false })
  nvim:wait_screen("What else")
  enter(nvim)
  nvim:keys("<CR>")
  nvim:wait_screen("“What else should it have?” has no answer yet; <CR> again skips it")
  nvim:keys("<CR>")
  nvim:wait_screen("“Which store should sessions use?” has no answer yet")
  T.eq(agent:answers(ASK), {})
  T.contains(nvim:lua("return vim.api.nvim_get_current_line()"), "SQLite")
  nvim:keys("3")
  nvim:wait_screen("(•) None")
  nvim:keys("<CR>")
  T.eq(answer_to(agent, ASK, nvim).outcome.answers, {
    { questionId = "extras", selectedOptionIds = {} },
    { questionId = "store/1", selectedOptionIds = { "" } },
  })
end)

T.case("a question pointed out before the card was left is pointed out again", { width = 80 }, function(nvim)
  local agent = T.agent(asking({ EXTRAS }))
  nvim:use(agent, { attention = { notify = false } })
  nvim:prompt("go", { open = false })
  nvim:wait_screen("What else")
  enter(nvim)
  nvim:keys("<CR>")
  nvim:wait_screen("has no answer yet; <CR> again skips it")
  nvim:keys("<Esc>")
  nvim:wait_screen_without("<CR> again skips it")
  enter(nvim)
  nvim:keys("<CR>")
  nvim:wait_screen("has no answer yet; <CR> again skips it")
  T.eq(agent:answers(ASK), {})
end)

T.case("what is marked is still there after q, and q does not answer", { width = 80 }, function(nvim)
  local agent = T.agent(asking({ EXTRAS }))
  nvim:use(agent, { attention = { notify = false } })
  nvim:prompt("go", { open = false })
  nvim:wait_screen("What else")
  enter(nvim)
  nvim:keys("j<Space>")
  nvim:wait_screen("[x] Documentation")
  nvim:keys("q")
  nvim:wait_screen_without("What else")
  T.eq(nvim:status().state, "waiting")
  T.eq(agent:answers(ASK), {})
  enter(nvim)
  nvim:wait_screen("[x] Documentation")
  nvim:keys("<CR>")
  T.eq(answer_to(agent, ASK, nvim).outcome.answers[1].selectedOptionIds, { "d" })
end)

T.case("s skips with a reason or without, Esc in between does nothing", { width = 80 }, function(nvim)
  local agent = T.agent(asking({ STORE }))
  nvim:use(agent, { attention = { notify = false } })
  nvim:prompt("go", { open = false })
  nvim:wait_screen("Which store")
  enter(nvim)
  nvim:keys("s")
  nvim:wait_screen("Reason for skipping")
  nvim:keys("<Esc>")
  nvim:wait_screen_without("Reason for skipping")
  T.eq(agent:answers(ASK), {})
  nvim:keys("s")
  nvim:wait_screen("Reason for skipping")
  nvim:keys("decide yourself<CR>")
  T.eq(answer_to(agent, ASK, nvim), { outcome = { outcome = "skipped", reason = "decide yourself" } })
end)

T.case("an answer in the user's own words goes back as the reason", { width = 80 }, function(nvim)
  local agent = T.agent(asking({ STORE }))
  nvim:use(agent, { attention = { notify = false } })
  nvim:prompt("go", { open = false })
  nvim:wait_screen("Other…")
  enter(nvim)
  nvim:keys("G<CR>")
  nvim:wait_screen("Your answer: ")
  nvim:keys("Postgres<CR>")
  T.eq(answer_to(agent, ASK, nvim), { outcome = { outcome = "skipped", reason = "Postgres" } })
end)

T.case("C cancels, and the plugin's own key for rejecting skips", { width = 80 }, function(nvim)
  local agent = T.agent({
    turns = {
      {
        { request = { method = ASK, params = { questions = { STORE } } } },
        { request = { method = ASK, params = { questions = { EXTRAS } } } },
      },
    },
  })
  nvim:use(agent, { attention = { notify = false } })
  nvim:lua([[vim.keymap.set("n", "N", "<Plug>(cursor-agent-reject)")]])
  nvim:lua([[vim.keymap.set("n", "Y", "<Plug>(cursor-agent-accept)")]])
  nvim:prompt("go", { open = false })
  nvim:wait_screen("Which store")
  enter(nvim)
  nvim:keys("C")
  nvim:wait(function()
    return #agent:answers(ASK) == 1
  end, "the first answer")
  nvim:wait_screen("What else")
  nvim:wait_card()
  nvim:keys("Y")
  nvim:wait("vim.bo.filetype == 'cursoragent-decision'", "accepting a question to lead into it")
  nvim:keys("<Esc>")
  nvim:wait("vim.bo.filetype == ''", "the way out")
  nvim:keys("N")
  nvim:wait_turns(1)
  T.eq(agent:answers(ASK)[1].result, { outcome = { outcome = "cancelled" } })
  T.eq(agent:answers(ASK)[2].result, { outcome = { outcome = "skipped" } })
end)

T.case("a question is answered through the Lua interface as well", { width = 80 }, function(nvim)
  local agent = T.agent(asking({ STORE, EXTRAS }))
  nvim:use(agent)
  nvim:prompt("go", { open = false })
  local event = nvim:wait(function()
    return nvim:events("CursorAgentDecision")[1]
  end, "the event")
  T.eq(event.kind, "question")
  T.eq(event.questions[2].multiple, true)
  local refused = nvim:lua(
    [[return select(2, require("cursor_agent").answer(..., { answers = { ["store/1"] = { "nonsense" } } }))]],
    event.id
  )
  T.contains(refused, 'has no option "nonsense"')
  nvim:lua([[require("cursor_agent").answer(..., { answers = { ["store/1"] = { "sqlite:v3" } } })]], event.id)
  nvim:wait_turns(1)
  T.eq(answer_to(agent, ASK, nvim).outcome.answers, { { questionId = "store/1", selectedOptionIds = { "sqlite:v3" } } })
end)

---@param params table
---@return table scenario
local function eliciting(params)
  return {
    profile = "plain",
    turns = {
      { { request = { method = ELICIT, params = params }, ["then"] = { ["*"] = { { text = "Thank you." } } } } },
    },
  }
end

local FORM = {
  sessionId = "${session}",
  mode = "form",
  message = "To publish, I need a few things.",
  requestedSchema = {
    type = "object",
    required = { "name", "count" },
    properties = {
      name = { type = "string", title = "Name" },
      count = { type = "integer", title = "Copies", default = 2 },
      public = { type = "boolean", title = "Public" },
      licence = { type = "string", title = "Licence", enum = { "MIT", "GPL" } },
      note = { type = "string", title = "Note" },
    },
  },
}

T.case(
  "a form: texts are filled in, types kept, what is needed is asked for",
  { width = 80, height = 30 },
  function(nvim)
    local agent = T.agent(eliciting(FORM))
    nvim:use(agent, { attention = { notify = false } })
    nvim:prompt("go", { open = false })
    nvim:wait_screen("To publish, I need a few things.")
    enter(nvim)
    nvim:wait_screen("> 2")
    nvim:keys("/Note<CR>j<CR>")
    nvim:wait_screen("“Name” has no answer yet")
    T.contains(nvim:lua("return vim.api.nvim_get_current_line()"), "> (string)")
    nvim:keys("<CR>")
    nvim:wait_screen("Name ")
    nvim:keys("Ada<CR>")
    nvim:wait_screen("> Ada")
    nvim:keys("/> 2<CR><Space><C-u>many<CR>")
    nvim:wait_screen("> many")
    nvim:keys("<CR>")
    nvim:wait_screen('takes a whole number, not "many"')
    T.eq(agent:answers(ELICIT), {})
    nvim:keys("<Space><C-u>3<CR>")
    nvim:wait_screen("> 3")
    nvim:keys("/Yes<CR><Space>")
    nvim:wait_screen("(•) Yes")
    nvim:keys("/MIT<CR><Space>")
    nvim:wait_screen("(•) MIT")
    nvim:keys("<Space>")
    nvim:wait_screen("( ) MIT")
    nvim:keys("/GPL<CR><Space><CR>")
    T.eq(answer_to(agent, ELICIT, nvim), {
      action = "accept",
      content = { name = "Ada", count = 3, public = true, licence = "GPL" },
    })
  end
)

T.case("a form is declined or cancelled by the same keys", { width = 80 }, function(nvim)
  local form = { message = "Well?", requestedSchema = { type = "object", properties = { a = { type = "string" } } } }
  local agent = T.agent({
    profile = "plain",
    turns = { { { request = { method = ELICIT, params = form } }, { request = { method = ELICIT, params = form } } } },
  })
  nvim:use(agent, { attention = { notify = false } })
  nvim:prompt("go", { open = false })
  nvim:wait_screen("Well?")
  enter(nvim)
  nvim:expect_screen("decide-form")
  nvim:keys("s")
  nvim:wait("#require('cursor_agent').pending(1) == 1 and require('cursor_agent').pending(1)[1].id == 2", "the second")
  nvim:wait_screen("Well?")
  enter(nvim)
  nvim:keys("C")
  nvim:wait_turns(1)
  T.eq(agent:answers(ELICIT)[1].result, { action = "decline" })
  T.eq(agent:answers(ELICIT)[2].result, { action = "cancel" })
end)

T.case("a page is opened by a key of the user's only", { width = 80 }, function(nvim)
  local agent = T.agent({
    profile = "plain",
    turns = {
      {
        {
          request = {
            method = ELICIT,
            params = {
              mode = "url",
              message = "Please log in.",
              url = "https://auth.example.com/login?code=1",
              elicitationId = "e1",
            },
          },
        },
        {
          request = {
            method = ELICIT,
            params = { mode = "url", message = "And this.", url = "file:///etc/passwd", elicitationId = "e2" },
          },
        },
      },
    },
  })
  nvim:use(agent, { attention = { notify = false } })
  nvim:lua("_G.opened = {} vim.ui.open = function(url) table.insert(_G.opened, url) end")
  nvim:prompt("go", { open = false })
  nvim:wait_screen("https://auth.example.com/login?code=1")
  T.contains(nvim:lua("return select(2, require('cursor_agent').accept())"), "cannot be accepted, only answered")
  enter(nvim)
  nvim:expect_screen("decide-address")
  T.eq(nvim:lua("return _G.opened"), {})
  nvim:keys("o")
  nvim:wait_screen("And this.")
  T.eq(nvim:lua("return _G.opened"), { "https://auth.example.com/login?code=1" })
  enter(nvim)
  nvim:keys("o")
  nvim:wait_screen("only http and https URLs are opened")
  T.eq(#nvim:lua("return _G.opened"), 1)
  nvim:keys("s")
  nvim:wait_turns(1)
  T.eq(agent:answers(ELICIT)[1].result, { action = "accept" })
  T.eq(agent:answers(ELICIT)[2].result, { action = "decline" })
end)
