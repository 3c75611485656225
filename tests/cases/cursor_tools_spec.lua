-- Tool calls as Cursor's CLI sends them: new files, rejected calls, results in the raw output, todos.

local T = require("harness")

---@param fields table
---@return table step
local function call(fields)
  return { update = vim.tbl_extend("force", { sessionUpdate = "tool_call_update", toolCallId = "t" }, fields) }
end

---@param title string
---@param kind string
---@param id? string
---@return table step
local function start(title, kind, id)
  return {
    update = {
      sessionUpdate = "tool_call",
      toolCallId = id or "t",
      title = title,
      kind = kind,
      status = "pending",
      rawInput = vim.empty_dict(),
    },
  }
end

---@param nvim harness.Child
---@param steps table[]
---@param opts? table
---@return harness.Agent
local function play(nvim, steps, opts)
  local agent = T.agent({ turns = { steps } })
  nvim:use(agent, opts or { attention = { notify = false } })
  nvim:prompt("go")
  return agent
end

---@param nvim harness.Child
---@return table tool of the only tool call
local function tool(nvim)
  return nvim:lua([[
    for _, entry in ipairs(require("cursor_agent").transcript()) do
      if entry.tool then return entry.tool end
    end
  ]])
end

---@param nvim harness.Child
---@return string
local function exported(nvim)
  nvim:cmd("CursorAgent export")
  nvim:wait("vim.bo.filetype == 'markdown'", "the export")
  return table.concat(nvim:api("nvim_buf_get_lines", 0, 0, -1, false), "\n")
end

T.case("a new file of Cursor's is shown, counted and listed with its real lines", { width = 100 }, function(nvim)
  play(nvim, {
    start("Edit File", "edit"),
    { write_file = { path = "notes/to do.md", text = "# Notes\n\none\n" } },
    call({
      status = "completed",
      content = {
        {
          type = "diff",
          path = "${cwd}/notes/to do.md",
          oldText = "-- /dev/null",
          newText = "++ b/notes/to do.md\n# Notes\n\none\n",
        },
      },
    }),
  })
  nvim:wait_turns(1)
  nvim:wait_screen("Edit   notes/to do.md  +3")
  T.ok(nvim:sees("# Notes"), "its first line")
  T.ok(not nvim:sees("/dev/null"), "no header")
  T.ok(not nvim:sees("b/notes"), "no header")
  local changes = nvim:lua("return require('cursor_agent').changes()")
  T.eq(#changes, 1)
  T.eq(changes[1].state, "created")
  T.contains(changes[1].path, "/notes/to do.md")
  T.eq(changes[1].hunks[1].lines, { { "+", "# Notes" }, { "+", "" }, { "+", "one" } })
  local text = exported(nvim)
  T.contains(text, "+# Notes")
  T.ok(not text:find("/dev/null", 1, true), "no header in the export")
end)

T.case("a call rejected on the card is shown as rejected though Cursor completes it", { width = 100 }, function(nvim)
  local agent = play(nvim, {
    start("Terminal", "execute"),
    {
      permission = { toolCall = { toolCallId = "t", title = "`rm -rf build`", kind = "execute", status = "pending" } },
      ["then"] = { ["*"] = { call({ status = "completed" }), { text = "Then not." } } },
    },
  })
  nvim:wait_screen("rm -rf build")
  nvim:keys(":CursorAgent decisions<CR>")
  nvim:wait("vim.bo.filetype == 'cursoragent-decision'", "the card to be entered")
  nvim:wait_card()
  nvim:keys("r")
  nvim:wait_turns(1)
  T.eq(agent:answers("session/request_permission")[1].result.outcome.optionId, "reject-once")
  nvim:wait_screen("– Run    rm -rf build")
  nvim:wait_screen("rejected")
  T.ok(not nvim:sees("✓ Run"), "not done")
  T.eq({ tool(nvim).status, tool(nvim).rejected }, { "rejected", true })
  T.contains(exported(nvim), "rm -rf build (rejected)")
end)

T.case("a call a rule rejects, and one cancelled with its turn, are no edits", { width = 100 }, function(nvim)
  local edit = { { type = "diff", path = "${cwd}/a.txt", oldText = "a\n", newText = "b\n" } }
  local asked = { toolCallId = "t", title = "Edit a.txt", kind = "edit", content = edit }
  local agent = T.agent({
    turns = {
      {
        { permission = { toolCall = asked }, ["then"] = { ["*"] = { call({ status = "completed" }) } } },
      },
      {
        {
          permission = { toolCall = vim.tbl_extend("force", asked, { toolCallId = "u", kind = "other" }) },
          ["then"] = { ["*"] = { call({ toolCallId = "u", status = "completed" }) } },
        },
        { wait_cancel = true },
      },
    },
  })
  nvim:use(agent, { attention = { notify = false }, policy = { { action = "reject", kind = "edit" } } })
  nvim:prompt("go")
  nvim:wait_turns(1)
  nvim:wait_screen("rejected")
  T.eq(tool(nvim).status, "rejected")
  nvim:prompt("go on")
  nvim:wait_state("waiting")
  nvim:cmd("CursorAgent cancel")
  T.eq(nvim:wait_turns(2).stop_reason, "cancelled")
  nvim:wait_screen("cancelled")
  local statuses = nvim:lua([[
    return vim.iter(require("cursor_agent").transcript()):map(function(e) return e.tool and e.tool.status end):totable()
  ]])
  T.eq(statuses, { "rejected", "cancelled" })
  T.eq(nvim:lua("return require('cursor_agent').changes()"), {})
end)

---@param nvim harness.Child
---@return table<string, string> statuses of all tool calls by id
local function statuses(nvim)
  return nvim:lua([[
    local found = {}
    for _, entry in ipairs(require("cursor_agent").transcript()) do
      if entry.tool then found[entry.tool.id] = entry.tool.status end
    end
    return found
  ]])
end

local KEPT = { ["kept.txt"] = "mine\n", ["kept too.txt"] = "mine\n", ["gone.txt"] = "mine\n", ["odd.txt"] = "mine\n" }

T.case(
  "what Cursor denies without asking is shown as rejected, and no file is listed",
  { width = 100, height = 50, files = KEPT },
  function(nvim)
    local at = function(path)
      return { locations = { { path = "${cwd}/" .. path } }, rawInput = { path = "${cwd}/" .. path } }
    end
    local steps = {}
    ---@param id string
    ---@param kind string
    ---@param title string
    ---@param details table
    ---@param act? table what it does all the same
    local function add(id, kind, title, details, act)
      local told = vim.tbl_extend("force", details, { toolCallId = id, title = title, status = "in_progress" })
      vim.list_extend(steps, { start("Tool", kind, id), call(told) })
      vim.list_extend(steps, act and { { wait_ms = 50 }, act } or {})
      table.insert(steps, call({ toolCallId = id, status = "completed" }))
    end
    add("edit", "edit", "Edit kept.txt", at("kept.txt"))
    add("delete", "delete", "Delete kept.txt", at("kept.txt"))
    add("read", "read", "Read kept.txt", at("kept.txt"))
    add("shell", "execute", "`sudo rm x`", { rawInput = { command = "sudo rm x" } })
    add("fetch", "fetch", "Fetch https://example.org", { rawInput = { url = "https://example.org" } })
    add("web", "search", "Web search: neovim", { rawInput = { query = "neovim" } })
    add("mcp", "other", "github: delete_repo", { rawInput = { name = "x" } })
    -- In one message, without a beginning.
    local once =
      { sessionUpdate = "tool_call", toolCallId = "once", title = "Edit", kind = "edit", status = "completed" }
    table.insert(steps, call(vim.tbl_extend("force", at("kept too.txt"), once)))
    -- These have nothing to show either, but did it.
    add("deleted", "delete", "Delete gone.txt", at("gone.txt"), { remove_file = "gone.txt" })
    add("written", "edit", "Edit odd.txt", at("odd.txt"), { write_file = { path = "odd.txt", text = "theirs\n" } })
    vim.list_extend(steps, {
      start("Read File", "read", "empty"),
      call({ toolCallId = "empty", status = "completed", rawOutput = { content = "" } }),
    })
    play(nvim, steps)
    nvim:wait_turns(1)
    T.eq(statuses(nvim), {
      edit = "rejected",
      delete = "rejected",
      read = "rejected",
      shell = "rejected",
      fetch = "rejected",
      web = "rejected",
      mcp = "rejected",
      once = "rejected",
      deleted = "completed",
      written = "completed",
      empty = "completed",
    })
    nvim:wait_screen("– Edit   kept.txt")
    T.ok(not nvim:sees("✓ Edit   kept"), "not shown as done")
    local changes = nvim:lua([[
      return vim.iter(require("cursor_agent").changes()):map(function(change)
        return vim.fs.basename(change.path) .. " " .. change.state
      end):totable()
    ]])
    table.sort(changes)
    T.eq(changes, { "gone.txt deleted", "odd.txt modified" })
    local edited = vim.tbl_map(function(event)
      return vim.fs.basename(event.path)
    end, nvim:events("CursorAgentEdit"))
    T.eq(edited, { "gone.txt", "odd.txt" })
  end
)

T.case("what only the raw output has is shown, with the exit code", { width = 100, height = 40 }, function(nvim)
  play(nvim, {
    start("Read File", "read", "r"),
    call({ toolCallId = "r", rawInput = { path = "src/lib.rs" } }),
    call({ toolCallId = "r", status = "completed", rawOutput = { content = "pub fn read_me() {}\n" } }),
    start("Terminal", "execute", "x"),
    call({ toolCallId = "x", title = "`make test`", rawInput = { command = "make test" } }),
    call({
      toolCallId = "x",
      status = "completed",
      rawOutput = { exitCode = 2, stdout = "running 3 tests\n", stderr = "1 failed\n" },
    }),
    start("grep", "search", "g"),
    call({ toolCallId = "g", rawInput = { pattern = "fn main", path = "src" } }),
    call({ toolCallId = "g", status = "completed", rawOutput = { totalMatches = 12, truncated = true } }),
  }, { attention = { notify = false }, chat = { fold_tools = false } })
  nvim:wait_turns(1)
  nvim:wait_screen("Read   src/lib.rs")
  nvim:wait_screen("pub fn read_me() {}")
  nvim:wait_screen("✗ Run    make test  exit 2")
  nvim:wait_screen("running 3 tests")
  nvim:wait_screen("1 failed")
  nvim:wait_screen("Search fn main")
  nvim:wait_screen("12 matches, not all of them shown")
end)

T.case("todos of a tool call and of a request without a session are one list", { width = 100 }, function(nvim)
  local all = {
    { id = "1", content = "Read the grammar", status = "TODO_STATUS_COMPLETED" },
    { id = "2", content = "Accept commas", status = "TODO_STATUS_IN_PROGRESS" },
  }
  local agent = play(nvim, {
    {
      update = {
        sessionUpdate = "tool_call",
        toolCallId = "t",
        title = "Update TODOs",
        kind = "other",
        status = "pending",
        rawInput = { _toolName = "updateTodos" },
      },
    },
    call({ rawInput = { _toolName = "updateTodos", todos = all, merge = false } }),
    { request = { method = "cursor/update_todos", params = { toolCallId = "t", todos = all, merge = false } } },
    call({ status = "completed" }),
    { expect = "session/set_mode" },
    {
      request = {
        method = "cursor/update_todos",
        params = { todos = { { id = "2", status = "TODO_STATUS_COMPLETED" } }, merge = true },
      },
    },
  })
  nvim:wait("#require('cursor_agent').status().todos == 2", "the todos")
  nvim:keys(":CursorAgent todos<CR>")
  nvim:wait_screen("Todos 1/2")
  nvim:lua("require('cursor_agent').set_mode('plan')")
  nvim:wait_turns(1)
  nvim:wait_screen("Todos 2/2")
  T.eq(#nvim:lua("return require('cursor_agent').status().todos"), 2)
  T.eq(#agent:answers("cursor/update_todos"), 2)
  T.eq(#nvim:texts("plan"), 1)
end)
