-- Unsaved text and an agent's write: merged where they do not overlap, a decision like any other where they do.

local T = require("harness")

local TEXT = table.concat(vim.fn.map(vim.fn.range(1, 30), "'line ' . v:val"), "\n") .. "\n"
local OPTS = { width = 100, height = 30, files = { ["a.txt"] = TEXT } }
local WRITE = "fs/write_text_file"

---@param from string
---@param to string
---@param text string?
---@return string
local function replaced(from, to, text)
  return ((text or TEXT):gsub(vim.pesc(from) .. "\n", to .. "\n"))
end

---@param text string
---@param session string?
---@return table
local function write(text, session)
  local params = { sessionId = session or "${session}", path = "${cwd}/a.txt", content = text }
  return { request = { method = WRITE, params = params } }
end

---A file the agent changes by itself, and says so.
---@param text string
---@return table[]
local function edit(text)
  local call = { toolCallId = "e", title = "Edit", kind = "edit", status = "completed" }
  local update = { sessionUpdate = "tool_call", locations = { { path = "${cwd}/a.txt" } } }
  return { { write_file = { path = "a.txt", text = text } }, { update = vim.tbl_extend("force", update, call) } }
end

---@param nvim harness.Child
---@return string
local function in_buffer(nvim)
  return table.concat(nvim:lua("return vim.api.nvim_buf_get_lines(vim.fn.bufnr('a.txt'), 0, -1, false)"), "\n") .. "\n"
end

---@param nvim harness.Child
---@return string
local function on_disk(nvim)
  local file = assert(io.open(nvim.work .. "/a.txt", "rb"))
  local text = file:read("*a")
  file:close()
  return text
end

---Waits for a decision, and gives it.
---@param nvim harness.Child
---@return table
local function pending(nvim)
  nvim:wait("#(require('cursor_agent').pending() or {}) == 1", "a decision")
  return nvim:lua("return require('cursor_agent').pending()[1]")
end

---An agent that writes over line 2, where the user has typed something.
---@param nvim harness.Child
---@param turns table[]?
---@return harness.Agent
local function collide(nvim, turns)
  local agent = T.agent({ profile = "plain", turns = turns or { { write(replaced("line 2", "theirs")) } } })
  nvim:use(agent, { agents = { test = { title = "cursor" } } })
  nvim:cmd("edit a.txt")
  nvim:keys("2GSmine<Esc>")
  nvim:prompt("write", { open = false })
  pending(nvim)
  -- A command typed before the call would be covered by it.
  nvim:wait(function()
    return nvim:messages():find("unsaved changes", 1, true) ~= nil
  end, "the call")
  return agent
end

---Goes into the card and waits until keys count.
---@param nvim harness.Child
---@param command string?
local function enter(nvim, command)
  nvim:keys((":%s<CR>"):format(command or "CursorAgent decisions"))
  nvim:wait("vim.bo.filetype == 'cursoragent-decision'", "the card")
  nvim:wait_card()
end

---@param nvim harness.Child
---@param agent harness.Agent
---@return table
local function answer_of(nvim, agent)
  nvim:wait(function()
    return #agent:answers(WRITE) == 1
  end, "the answer to the write")
  return agent:answers(WRITE)[1]
end

T.case("a collision is a decision: listed, told, counted, shown; the agent waits", OPTS, function(nvim)
  nvim:lua([[
    vim.api.nvim_create_autocmd("User", { pattern = "CursorAgentDecision", callback = function(event)
      _G.told = event.data
    end })
  ]])
  local agent = collide(nvim)
  local decision = pending(nvim)
  T.eq(decision.kind, "conflict")
  T.eq(decision.path, nvim.work .. "/a.txt")
  T.eq(decision.session_id, nvim:status().session_id)
  T.contains(decision.title, "a.txt")
  local ids = vim.tbl_map(function(option)
    return option.id
  end, decision.options)
  T.eq(ids, { "mine", "theirs", "both" })
  nvim:wait("_G.told ~= nil", "the event")
  T.eq(nvim:lua("return { _G.told.id, _G.told.kind, _G.told.path }"), { decision.id, "conflict", decision.path })
  T.eq({ nvim:status().state, nvim:status().pending }, { "waiting", 1 })
  T.contains(nvim:lua("return require('cursor_agent').statusline()"), "1 waiting")
  -- The chat is out of sight: the user is called as for a permission.
  T.contains(nvim:messages(), "the agent wants to write a.txt, where you have unsaved changes")
  nvim:wait_screen("cursor wants to write where you have unsaved changes")
  nvim:wait_screen("- mine")
  nvim:wait_screen("+ theirs")
  nvim:expect_screen("conflict-card")
  T.eq(#agent:answers(WRITE), 0, "the agent waits")
  T.eq(in_buffer(nvim), replaced("line 2", "mine"))
  T.eq(on_disk(nvim), TEXT)
end)

T.case("keys: mine refuses the write, and the agent reads why", OPTS, function(nvim)
  local agent = collide(nvim)
  enter(nvim)
  nvim:keys("m")
  T.contains(answer_of(nvim, agent).error.message, "unsaved changes in this file and kept them")
  nvim:wait_turns(1)
  T.eq({ in_buffer(nvim), on_disk(nvim) }, { replaced("line 2", "mine"), TEXT })
  T.eq(nvim:lua("return { vim.bo[vim.fn.bufnr('a.txt')].modified, #require('cursor_agent').pending() }"), { true, 0 })
  nvim:wait_screen_without("unsaved changes")
  T.eq(nvim:status().state, "idle")
end)

for _, how in ipairs({ "edit", "bdelete", "enew | bwipeout a.txt" }) do
  T.case("what is saved while the agent waits is not written over: " .. how, OPTS, function(nvim)
    local agent = collide(nvim)
    nvim:keys((":w<CR>:%s<CR>"):format(how))
    T.contains(answer_of(nvim, agent).error.message, "the file has changed since you read it")
    nvim:wait_turns(1)
    T.eq(on_disk(nvim), replaced("line 2", "mine"))
  end)

  T.case("what is let go of while the agent waits is written over: " .. how, OPTS, function(nvim)
    local agent = collide(nvim)
    nvim:keys((":%s<CR>"):format(how:gsub("edit", "%0!"):gsub("bdelete", "%0!"):gsub("bwipeout", "%0!")))
    T.eq(answer_of(nvim, agent).error, nil)
    nvim:wait_turns(1)
    T.eq(on_disk(nvim), replaced("line 2", "theirs"))
  end)
end

T.case("keys: theirs is written, and undo has mine", OPTS, function(nvim)
  local agent = collide(nvim)
  enter(nvim, "CursorAgent conflicts")
  nvim:keys("t")
  T.eq(answer_of(nvim, agent).error, nil)
  nvim:wait_turns(1)
  T.eq({ in_buffer(nvim), on_disk(nvim) }, { replaced("line 2", "theirs"), replaced("line 2", "theirs") })
  T.eq(nvim:lua("return vim.bo.modified"), false)
  nvim:keys("u")
  T.eq(in_buffer(nvim), replaced("line 2", "mine"))
end)

T.case(
  "keys: both are in the buffer between markers, unsaved, and the agent is asked to read again",
  OPTS,
  function(nvim)
    local agent = collide(nvim, { { write(replaced("line 2", "theirs", replaced("line 20", "clean"))) } })
    enter(nvim)
    nvim:keys("b")
    T.contains(answer_of(nvim, agent).error.message, "merging this file by hand; read it again before writing")
    nvim:wait_turns(1)
    local both = "<<<<<<< yours\nmine\n=======\ntheirs\n>>>>>>> agent"
    T.eq(in_buffer(nvim), replaced("line 2", both, replaced("line 20", "clean")))
    T.eq(on_disk(nvim), TEXT)
    T.eq(nvim:lua("return vim.bo.modified"), true)
    nvim:keys("u")
    T.eq(in_buffer(nvim), replaced("line 2", "mine"))
  end
)

T.case("keys: d shows both texts side by side, its keys answer there, and all is as before", OPTS, function(nvim)
  local agent = collide(nvim)
  enter(nvim)
  nvim:keys("d")
  nvim:wait("vim.fn.tabpagenr('$') == 2", "the tab")
  T.eq(nvim:lua("return { vim.fn.winnr('$'), vim.wo.diff, vim.fn.getline(2) }"), { 2, true, "theirs" })
  nvim:wait_screen("keep mine")
  nvim:expect_screen("conflict-side-by-side")
  nvim:keys("q")
  nvim:wait("vim.fn.tabpagenr('$') == 1", "the tab to be closed")
  nvim:wait("vim.bo.filetype == 'cursoragent-decision'", "the card")
  T.eq(#agent:answers(WRITE), 0)
  nvim:wait_card()
  nvim:keys("d")
  nvim:wait("vim.fn.tabpagenr('$') == 2", "the tab")
  nvim:wait_card()
  nvim:keys("m")
  T.ok(answer_of(nvim, agent).error)
  nvim:wait("vim.fn.tabpagenr('$') == 1", "the tab to be closed")
  T.eq(in_buffer(nvim), replaced("line 2", "mine"))
  T.eq(nvim:lua("return { vim.wo.diff, vim.fn.bufname() }"), { false, "a.txt" })
end)

T.case("keys: q puts it off, and it is found again", OPTS, function(nvim)
  local agent = collide(nvim)
  enter(nvim)
  nvim:keys("q")
  nvim:wait_screen_without("wants to write where")
  T.eq({ #agent:answers(WRITE), nvim:status().state }, { 0, "waiting" })
  enter(nvim, "CursorAgent conflicts")
  nvim:keys("C")
  T.contains(answer_of(nvim, agent).error.message, "nothing was written")
  T.eq({ in_buffer(nvim), on_disk(nvim) }, { replaced("line 2", "mine"), TEXT })
end)

for _, by in ipairs({
  { "{ option = 'mine' }", "mine", "kept them" },
  { "{ reject = true }", "mine", "kept them" },
  { "{ cancel = true }", "mine", "cancelled this write" },
  { "{ option = 'theirs' }", "theirs" },
  { "{ accept = true }", "theirs" },
}) do
  T.case("answer(id, " .. by[1] .. ")", OPTS, function(nvim)
    local agent = collide(nvim)
    local id = pending(nvim).id
    T.contains(
      nvim:lua("return ({ require('cursor_agent').answer(..., { option = 'no such' }) })[2]", id),
      "mine, theirs, both"
    )
    T.eq(nvim:lua(("return require('cursor_agent').answer(..., %s)"):format(by[1]), id), true)
    local message = (answer_of(nvim, agent).error or {}).message
    T.eq(message ~= nil, by[3] ~= nil)
    T.contains(message or "", by[3] or "")
    nvim:wait_turns(1)
    T.eq(in_buffer(nvim), replaced("line 2", by[2]))
    T.eq(on_disk(nvim), by[2] == "mine" and TEXT or replaced("line 2", "theirs"))
    T.eq(nvim:lua("return require('cursor_agent').answer(..., { accept = true }) == nil", id), true)
    T.eq(#agent:answers(WRITE), 1)
  end)
end

T.case("no rule and no always answers it; accept and reject by command do", OPTS, function(nvim)
  nvim:lua("require('cursor_agent').setup({ policy = { { action = 'allow' }, { action = 'allow', kind = 'edit' } } })")
  local agent = collide(nvim, { { write(replaced("line 2", "one")) }, { write(replaced("line 2", "two")) } })
  nvim:wait_screen("wants to write where you have unsaved changes")
  nvim:cmd("CursorAgent reject")
  T.contains(answer_of(nvim, agent).error.message, "kept them")
  nvim:wait_turns(1)
  nvim:prompt("write", { open = false })
  pending(nvim)
  nvim:cmd("CursorAgent accept")
  nvim:wait_turns(2)
  T.eq(on_disk(nvim), replaced("line 2", "two"))
end)

for how, ends in
  vim.spairs({
    cancel = "require('cursor_agent').cancel()",
    close = "require('cursor_agent.bridge.native').peek().close(require('cursor_agent.chat.registry').current().key)",
  })
do
  T.case("a turn or a session that ends answers it as cancelled: " .. how, OPTS, function(nvim)
    local agent = collide(nvim)
    nvim:lua(ends)
    T.contains(answer_of(nvim, agent).error.message, "nothing was written")
    nvim:wait("#require('cursor_agent.files.conflicts').list == 0", "nothing to be left")
    nvim:wait_screen_without("wants to write where")
    T.eq({ in_buffer(nvim), on_disk(nvim) }, { replaced("line 2", "mine"), TEXT })
  end)
end

T.case("text typed since is what is kept, taken back or marked", OPTS, function(nvim)
  local agent = collide(nvim)
  nvim:keys("3GSmine too<Esc>")
  enter(nvim)
  nvim:keys("b")
  T.ok(answer_of(nvim, agent).error)
  local text = in_buffer(nvim)
  T.contains(text, "mine too\n")
  T.contains(text, "<<<<<<< yours\nmine\n")
  T.contains(text, "theirs\n")
end)

T.case("what the agent changed on disk is a decision too, though no agent waits", OPTS, function(nvim)
  local agent = collide(nvim, { edit(replaced("line 2", "theirs")), edit(replaced("line 2", "again")) })
  nvim:wait_turns(1)
  local decision = pending(nvim)
  T.eq({ decision.kind, decision.path }, { "conflict", nvim.work .. "/a.txt" })
  T.contains(decision.title, "the agent changed a.txt on disk; your unsaved changes are untouched")
  nvim:wait(function()
    return nvim:status().state == "idle"
  end, "the session to be idle")
  T.eq(nvim:status().pending, 1)
  enter(nvim)
  nvim:keys("b")
  nvim:wait("#require('cursor_agent').pending() == 0", "it to be settled")
  local both = "<<<<<<< yours\nmine\n=======\ntheirs\n>>>>>>> agent"
  T.eq(in_buffer(nvim), replaced("line 2", both))
  T.eq(on_disk(nvim), replaced("line 2", "theirs"))
  nvim:cmd("write")
  T.eq(on_disk(nvim), replaced("line 2", both), "it was asked and answered")
  nvim:keys("2GS2<Esc>")
  nvim:prompt("again", { open = false })
  nvim:wait_turns(2)
  pending(nvim)
  T.eq(nvim:lua("return require('cursor_agent').accept()"), true)
  nvim:wait("#require('cursor_agent').pending() == 0", "it to be settled")
  T.eq(in_buffer(nvim), replaced("line 2", "again"))
  T.eq(nvim:lua("return vim.bo.modified"), false)
  T.eq(#agent:answers(WRITE), 0)
end)

T.case("a conflict with the disk ends when it is written over", OPTS, function(nvim)
  collide(nvim, { edit(replaced("line 2", "theirs")) })
  nvim:wait_turns(1)
  nvim:cmd("write!")
  T.eq(nvim:lua("return #require('cursor_agent').pending()"), 0)
  T.eq(nvim:status().pending, 0)
  nvim:wait_screen_without("changed a file that you have not saved")
end)

T.case("a long text is put together beside the editor's work", OPTS, function(nvim)
  local lines = {}
  for i = 1, 40000 do
    lines[i] = ("line %d"):format(i)
  end
  local long = table.concat(lines, "\n") .. "\n"
  local file = assert(io.open(nvim.work .. "/a.txt", "wb"))
  file:write(long)
  file:close()
  local clean = replaced("line 30000", "theirs", long)
  local agent = T.agent({
    profile = "plain",
    turns = { { write(clean) }, { write(replaced("line 2", "theirs", clean)) } },
  })
  nvim:use(agent)
  nvim:cmd("edit a.txt")
  nvim:keys("2GSmine<Esc>")
  nvim:prompt("write", { open = false })
  nvim:wait_turns(1)
  T.eq(agent:answers(WRITE)[1].error, nil)
  T.eq(on_disk(nvim) == replaced("line 2", "mine", clean), true)
  nvim:keys("2GSmine again<Esc>")
  nvim:prompt("write", { open = false })
  pending(nvim)
  nvim:wait_screen("- mine again")
  enter(nvim)
  nvim:keys("b")
  nvim:wait_turns(2)
  nvim:wait("vim.fn.getline(2) == '<<<<<<< yours'", "the markers")
  T.eq(nvim:lua("return vim.fn.getline(2, 7)"), {
    "<<<<<<< yours",
    "mine again",
    "=======",
    "theirs",
    ">>>>>>> agent",
    "line 3",
  })
end)
