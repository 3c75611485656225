-- Plans: read and edited as markdown, accepted with what the user made of them, followed by the todos.

local T = require("harness")
local files = require("harness.file")

local read = files.peek

local METHOD = "cursor/create_plan"

local TODOS = {
  { id = "1", content = "Look at how greetings are built", status = "completed" },
  { id = "2", content = "Greet the world when nobody is named", status = "in_progress" },
  { id = "3", content = "Write it down", status = "pending" },
}

local PLAN = {
  toolCallId = "p1",
  name = "A friendlier greeting!",
  overview = "Nobody should be greeted as nothing.",
  plan = "## Why\n\nWithout a name the greeting ends in the air.\n\n## How\n\n1. Look at `greet`.\n2. Give its name a default.",
  todos = TODOS,
  phases = {
    { name = "Understand", todos = { TODOS[1] } },
    { name = "Change", todos = { TODOS[2], TODOS[3] } },
  },
}

local MARKDOWN = [[
# A friendlier greeting!

Nobody should be greeted as nothing.

## Why

Without a name the greeting ends in the air.

## How

1. Look at `greet`.
2. Give its name a default.

## Todos

### Understand

- [x] Look at how greetings are built

### Change

- [~] Greet the world when nobody is named
- [ ] Write it down
]]

---@param plan? table
---@param after? table[] steps
---@return table scenario
local function planning(plan, after)
  local steps = { { request = { method = METHOD, params = plan or PLAN } } }
  return { turns = { vim.list_extend(steps, after or {}) } }
end

---@param nvim harness.Child
---@param agent harness.Agent
---@param number? integer
---@return table outcome
local function outcome(nvim, agent, number)
  return nvim:wait(function()
    local answer = agent:answers(METHOD)[number or 1]
    return answer and answer.result.outcome
  end, "an answer")
end

---@param nvim harness.Child
local function open_plan(nvim)
  nvim:wait_screen("proposes a plan")
  nvim:wait_card()
  nvim:keys(":CursorAgent decisions<CR>")
  nvim:wait("vim.bo.filetype == 'markdown'", "the plan")
end

T.case("is announced, read, edited, accepted and saved", { width = 90, height = 36 }, function(nvim)
  local agent = T.agent(planning())
  nvim:use(agent, { attention = { notify = false } })
  nvim:prompt("go", { open = false })
  nvim:wait_screen("proposes a plan")
  nvim:expect_screen("decide-plan-card")
  local before = nvim:api("nvim_get_current_win")
  open_plan(nvim)
  T.eq(table.concat(nvim:api("nvim_buf_get_lines", 0, 0, -1, false), "\n") .. "\n", MARKDOWN)
  nvim:expect_screen("decide-plan")
  nvim:keys("GoAnd tell <Esc>aeverybody<Esc>gA")
  local result = outcome(nvim, agent)
  local path = nvim.work .. "/.cursor/plans/a-friendlier-greeting.md"
  T.eq(result, { outcome = "accepted", planUri = "file://" .. path })
  T.eq(read(path), MARKDOWN .. "And tell everybody\n")
  nvim:wait_turns(1)
  local said = nvim:lua("return table.concat(vim.fn.getbufline('cursor-agent-term://1/chat', 1, '$'), '\\n')")
  T.contains(said, "✓ Plan   A friendlier greeting")
  nvim:wait_screen("plan saved as .cursor/plans/a-friendlier")
  T.eq(nvim:api("nvim_get_current_win"), before)
  T.eq(#nvim:api("nvim_list_wins"), 1)
end)

T.case("is there again, keys and all, after its buffer was deleted", { width = 90 }, function(nvim)
  local agent = T.agent(planning())
  nvim:use(agent, { attention = { notify = false } })
  nvim:prompt("go", { open = false })
  open_plan(nvim)
  nvim:cmd("bdelete!")
  nvim:wait("vim.bo.filetype == ''", "the plan to close")
  nvim:cmd("CursorAgent decisions")
  nvim:wait("vim.bo.filetype == 'markdown'", "the plan")
  T.eq(table.concat(nvim:api("nvim_buf_get_lines", 0, 0, -1, false), "\n") .. "\n", MARKDOWN)
  nvim:wait_card()
  nvim:keys("gA")
  T.eq(outcome(nvim, agent).outcome, "accepted")
  T.eq(read(nvim.work .. "/.cursor/plans/a-friendlier-greeting.md"), MARKDOWN)
end)

T.case("is accepted unread by one key, and does not overwrite another plan", { width = 90 }, function(nvim)
  local agent = T.agent({
    turns = {
      {
        { request = { method = METHOD, params = { name = "Same", overview = "The first.", plan = "first" } } },
        { request = { method = METHOD, params = { name = "Same", plan = "# same\n\nsecond" } } },
        { request = { method = METHOD, params = { plan = "third" } } },
      },
    },
  })
  nvim:use(agent, { attention = { notify = false } })
  nvim:lua([[vim.keymap.set("n", "Y", "<Plug>(cursor-agent-accept)")]])
  nvim:prompt("go", { open = false })
  nvim:wait_screen("The first.")
  nvim:wait_card()
  nvim:keys("Y")
  outcome(nvim, agent, 1)
  nvim:wait_screen_without("The first.")
  nvim:wait_screen("proposes a plan")
  nvim:wait_card()
  nvim:keys("Y")
  outcome(nvim, agent, 2)
  nvim:wait("#require('cursor_agent').pending(1) == 1", "the third plan")
  T.eq(nvim:lua("return { require('cursor_agent').accept() }"), { true })
  nvim:wait_turns(1)
  local plans = nvim.work .. "/.cursor/plans/"
  T.eq(outcome(nvim, agent, 2).planUri, "file://" .. plans .. "same-2.md")
  T.eq(read(plans .. "same.md"), "# Same\n\nThe first.\n\nfirst\n")
  T.eq(read(plans .. "same-2.md"), "# same\n\nsecond\n", "its name is not said twice")
  T.eq(read(plans .. "plan.md"), "third\n")
end)

T.case("is rejected with a reason, by the buffer's key", { width = 90 }, function(nvim)
  local agent = T.agent(planning())
  nvim:use(agent, { attention = { notify = false } })
  nvim:prompt("go", { open = false })
  open_plan(nvim)
  nvim:keys("gR")
  nvim:wait_screen("Reason for rejecting the plan")
  nvim:keys("<Esc>")
  nvim:wait_screen_without("Reason for rejecting the plan")
  T.eq(agent:answers(METHOD), {})
  nvim:keys("gR")
  nvim:wait_screen("Reason for rejecting the plan")
  nvim:keys("too much<CR>")
  T.eq(outcome(nvim, agent), { outcome = "rejected", reason = "too much" })
  nvim:wait("#vim.api.nvim_list_wins() == 1", "the plan to close")
  T.eq(vim.uv.fs_stat(nvim.work .. "/.cursor"), nil, "nothing is saved")
end)

T.case("leads back to the previous window, also after showing its keys", { width = 90, height = 30 }, function(nvim)
  local agent = T.agent(planning())
  nvim:use(agent, { attention = { notify = false } })
  nvim:cmd("edit code.lua")
  nvim:prompt("go")
  nvim:cmd("CursorAgent open")
  nvim:keys("<Esc>")
  open_plan(nvim)
  nvim:keys("g?")
  nvim:wait("vim.bo.filetype == 'cursoragent-help'", "the keys")
  nvim:keys("q")
  nvim:wait("vim.bo.filetype == 'markdown'", "the plan again")
  nvim:keys("gA")
  nvim:wait_turns(1)
  T.eq(nvim:lua("return vim.bo.filetype"), "cursoragent-prompt")
end)

T.case("put off with what the user changed in it, and cancelled later", { width = 90, height = 30 }, function(nvim)
  local agent = T.agent(planning())
  nvim:use(agent, { attention = { notify = false } })
  nvim:prompt("go", { open = false })
  open_plan(nvim)
  nvim:keys("ccChanged<Esc>q")
  nvim:wait("#vim.api.nvim_list_wins() == 1", "the plan to close")
  T.eq(nvim:status().state, "waiting")
  nvim:keys(":CursorAgent decisions<CR>")
  nvim:wait("vim.api.nvim_get_current_line() == 'Changed'", "the plan as it was left")
  nvim:keys("gC")
  T.eq(outcome(nvim, agent), { outcome = "cancelled" })
  nvim:wait("#vim.api.nvim_list_wins() == 1", "the plan to close")
end)

T.case("what the user wrote stays when the turn is cancelled meanwhile", { width = 90, height = 30 }, function(nvim)
  local agent = T.agent(planning())
  nvim:use(agent, { attention = { notify = false } })
  nvim:prompt("go", { open = false })
  open_plan(nvim)
  nvim:keys("ccMy own words<Esc>")
  nvim:wait("vim.api.nvim_get_current_line() == 'My own words'")
  nvim:lua("require('cursor_agent').cancel()")
  T.eq(outcome(nvim, agent), { outcome = "cancelled" })
  nvim:wait_screen("This plan was cancelled; your text stays in this buffer")
  T.eq(nvim:api("nvim_get_current_line"), "My own words")
  nvim:keys("gA")
  nvim:wait_screen("already decided")
end)

T.case("a plan that cannot be saved is not accepted, and the option is named", { width = 100 }, function(nvim)
  local agent = T.agent(planning())
  nvim:use(agent, { attention = { notify = false }, plan = { directory = "/dev/null/plans" } })
  nvim:prompt("go", { open = false })
  nvim:wait_screen("proposes a plan")
  local why = nvim:lua("return select(2, require('cursor_agent').accept())")
  T.contains(why, "the plan could not be saved")
  T.contains(why, "plan.directory")
  T.eq(agent:answers(METHOD), {})
  nvim:lua("require('cursor_agent').setup({ plan = { directory = '' } })")
  T.eq(nvim:lua("return { require('cursor_agent').accept() }"), { true })
  T.eq(outcome(nvim, agent), { outcome = "accepted" })
end)

T.case("what the user changed reaches the agent also where plans are not saved", { width = 100 }, function(nvim)
  local agent = T.agent({
    turns = {
      {
        { request = { method = METHOD, params = PLAN } },
        { request = { method = METHOD, params = PLAN } },
      },
    },
  })
  nvim:use(agent, { attention = { notify = false }, plan = { directory = "" } })
  nvim:prompt("go", { open = false })
  open_plan(nvim)
  nvim:keys("ccMy own words<Esc>gA")
  local result = outcome(nvim, agent, 1)
  T.eq(result.outcome, "accepted")
  T.eq(read((result.planUri:gsub("^file://", ""))), (MARKDOWN:gsub("^[^\n]*", "My own words")))
  nvim:wait_screen("your edited plan is in")
  nvim:wait("#require('cursor_agent').pending(1) == 1", "the second plan")
  open_plan(nvim)
  nvim:keys("gA")
  T.eq(outcome(nvim, agent, 2), { outcome = "accepted" }, "one that was only read is in no file")
  T.eq(vim.uv.fs_stat(nvim.work .. "/.cursor"), nil)
end)

T.case(":w saves the plan and decides nothing", { width = 100, height = 30 }, function(nvim)
  local agent = T.agent(planning())
  nvim:use(agent, { attention = { notify = false } })
  nvim:prompt("go", { open = false })
  open_plan(nvim)
  local path = nvim.work .. "/.cursor/plans/a-friendlier-greeting.md"
  nvim:keys("ccMy words<Esc>:w<CR>")
  nvim:wait_screen("the plan is saved, not accepted (gA accepts it): .cursor")
  T.eq(read(path), (MARKDOWN:gsub("^[^\n]*", "My words")))
  T.eq(nvim:lua("return vim.bo.modified"), false)
  nvim:keys(":w copy.md<CR>")
  nvim:wait(function()
    return read(nvim.work .. "/copy.md") == read(path)
  end, "the copy")
  nvim:keys("ccMy last words<Esc>:wq<CR>")
  nvim:wait("#vim.api.nvim_list_wins() == 1", "the plan to close")
  T.eq(agent:answers(METHOD), {})
  nvim:keys(":CursorAgent decisions<CR>")
  nvim:wait("vim.api.nvim_get_current_line() == 'My last words'", "the plan as it was left")
  nvim:wait_card()
  nvim:keys("gA")
  T.eq(outcome(nvim, agent), { outcome = "accepted", planUri = "file://" .. path }, "the same file")
  T.eq(read(path), (MARKDOWN:gsub("^[^\n]*", "My last words")))
end)

T.case(":w says so where plans are not saved", { width = 100, height = 30 }, function(nvim)
  local agent = T.agent(planning())
  nvim:use(agent, { attention = { notify = false }, plan = { directory = "" } })
  nvim:prompt("go", { open = false })
  open_plan(nvim)
  nvim:keys("ccMy words<Esc>:w<CR>")
  nvim:wait_screen("the plan is kept, not accepted (gA accepts it): your")
  T.eq(nvim:messages():find("E382", 1, true), nil)
  T.eq(agent:answers(METHOD), {})
end)

T.case("opens in a split or a tab where the option says so", { width = 90, height = 30 }, function(nvim)
  local agent = T.agent({
    turns = { { { request = { method = METHOD, params = PLAN } }, { request = { method = METHOD, params = PLAN } } } },
  })
  nvim:use(agent, { attention = { notify = false }, plan = { position = "split" } })
  nvim:prompt("go", { open = false })
  open_plan(nvim)
  T.eq(nvim:lua("return vim.api.nvim_win_get_config(0).relative"), "")
  nvim:keys("gA")
  outcome(nvim, agent, 1)
  nvim:wait("#require('cursor_agent').pending(1) == 1", "the second plan")
  nvim:lua("require('cursor_agent').setup({ plan = { position = 'tab' } })")
  open_plan(nvim)
  T.eq(nvim:lua("return vim.fn.tabpagenr('$')"), 2)
  nvim:keys("gA")
  outcome(nvim, agent, 2)
  nvim:wait("vim.fn.tabpagenr('$') == 1", "the tab to close")
end)

T.case(
  "later todo updates show on an accepted plan, and its text is left alone",
  { width = 90, height = 36 },
  function(nvim)
    local agent = T.agent(planning(nil, {
      { expect = "session/set_mode" },
      {
        request = {
          method = "cursor/update_todos",
          params = {
            toolCallId = "u1",
            merge = false,
            todos = {
              { id = "1", content = TODOS[1].content, status = "completed" },
              { id = "2", content = TODOS[2].content, status = "completed" },
              { id = "3", content = TODOS[3].content, status = "in_progress" },
            },
          },
        },
      },
    }))
    nvim:use(agent, { attention = { notify = false } })
    nvim:prompt("go", { open = false })
    nvim:wait_screen("proposes a plan")
    nvim:lua("require('cursor_agent').accept()")
    outcome(nvim, agent)
    nvim:cmd("edit .cursor/plans/a-friendlier-greeting.md")
    nvim:lua("require('cursor_agent').set_mode('plan')")
    nvim:wait_turns(1)
    nvim:wait_screen("- [✓] Greet the world when nobody is named")
    nvim:wait_screen("- [▸] Write it down")
    nvim:expect_screen("decide-plan-todos")
    T.eq(table.concat(nvim:api("nvim_buf_get_lines", 0, 0, -1, false), "\n") .. "\n", MARKDOWN)
    T.eq(nvim:lua("return vim.bo.modified"), false)
  end
)
