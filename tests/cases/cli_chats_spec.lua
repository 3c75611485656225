-- Chats of Cursor's CLI in the switcher: what it wrote is listed, shown and carried on, and left as it was. What its stores
-- hold is tested in crates/store/tests.

local T = require("harness")

---@param path string
---@param lines table[]
local function write(path, lines)
  vim.fn.mkdir(vim.fs.dirname(path), "p")
  vim.fn.writefile(vim.tbl_map(vim.json.encode, lines), path)
end

---The transcript a headless run leaves.
---@param nvim harness.Child
---@param id string
---@param asked string
---@param said string
---@return string path
local function transcript(nvim, id, asked, said)
  local slug = vim.trim(nvim.work:gsub("[^%w]+", " ")):gsub(" ", "-")
  local path = ("%s/home/.cursor/projects/%s/agent-transcripts/%s/%s.jsonl"):format(nvim.dir, slug, id, id)
  local function message(role, text)
    return { role = role, message = { content = { { type = "text", text = text } } } }
  end
  local call = { type = "tool_use", name = "Shell", input = { command = "ls -la" } }
  write(path, {
    message("user", ("<user_info>a machine</user_info>\n<user_query>\n%s\n</user_query>"):format(asked)),
    message("assistant", said),
    { role = "assistant", message = { content = { call } } },
    { type = "turn_ended", status = "success" },
  })
  return path
end

---@param nvim harness.Child
---@param scenario table
---@return harness.Agent
local function use(nvim, scenario)
  local agent = T.agent(scenario)
  nvim:use(agent, { agents = { test = { cursor = true } } })
  return agent
end

T.case("what a headless run left is listed, shown, and carried into a new session", { width = 120 }, function(nvim)
  local path = transcript(nvim, "run-1", "fix the build", "It was the linker.")
  transcript(nvim, "run-2", "name the crate", "Call it store.")
  local bytes = vim.fn.readblob(path)
  local agent = use(nvim, { turns = { { { text = "I see." } } } })
  nvim:keys(":CursorAgent sessions<CR>")
  nvim:wait_screen("Type number")
  local rows = vim.tbl_filter(function(line)
    return line:match("^%d+: ") ~= nil
  end, nvim.screen_state:lines())
  T.eq(#rows, 2)
  local number ---@type string?
  for _, row in ipairs(rows) do
    T.contains(row, "terminal")
    number = row:find("fix the build", 1, true) and row:match("^%d+") or number
  end
  nvim:keys(assert(number) .. "<CR>")
  nvim:wait_screen("It was the linker.")
  nvim:wait_screen("ls -la")
  nvim:wait_screen("the conversation so far (1 kB) ×")
  nvim:wait_state("idle")
  T.eq(nvim:texts("user"), { "fix the build" })
  T.contains(table.concat(nvim:texts("notice"), "\n"), "cannot continue chats from Cursor's CLI")
  T.eq(#agent:received("session/load"), 0)
  nvim:prompt("go on")
  nvim:wait_turns(1)
  T.contains(agent:received("session/prompt")[1].params.prompt[2].text, "Assistant: It was the linker.")
  T.eq(vim.fn.readblob(path), bytes)
  -- It is ours from now on, and in the list once.
  nvim:lua("require('cursor_agent').sessions(function(found) _G.found = found end)")
  nvim:wait("_G.found ~= nil", "the list")
  local found = nvim:lua([[
    return vim.tbl_map(function(one) return { one.title, one.source, one.live } end, _G.found)
  ]])
  table.sort(found, function(a, b)
    return a[1] .. a[2] < b[1] .. b[2]
  end)
  T.eq(found, {
    { "fix the build", "cli", false },
    { "fix the build", "stored", true },
    { "name the crate", "cli", false },
  })
end)

T.case("a chat that takes the place of another is in the list once until it goes on", { width = 120 }, function(nvim)
  transcript(nvim, "run-1", "fix the build", "It was the linker.")
  use(nvim, {})
  nvim:lua("require('cursor_agent').load('run-1')")
  nvim:wait_screen("It was the linker.")
  nvim:wait_state("idle")
  nvim:lua("require('cursor_agent').sessions(function(found) _G.found = found end)")
  nvim:wait("_G.found ~= nil", "the list")
  T.eq(nvim:lua("return #_G.found"), 1)
  T.eq(nvim:lua("return _G.found[1].live"), true)
end)

T.case("what was listed is loaded with the agent and in the directory it belongs to", function(nvim)
  local elsewhere = nvim.dir .. "/elsewhere"
  vim.fn.mkdir(elsewhere, "p")
  local other = T.agent({ turns = { { { text = "Yes." } } } })
  local test = T.agent({})
  nvim:use(test, { agents = { other = other.options } })
  nvim:lua("require('cursor_agent').new({ agent = 'other', cwd = ..., open = false })", elsewhere)
  nvim:lua("assert(require('cursor_agent').prompt('ask the other', { session = 1, open = false }))")
  nvim:wait_turns(1)
  local id = nvim:lua("return require('cursor_agent').status(1).session_id")
  nvim:quit("qa!")
  nvim:wait_exit()
  nvim:again()
  local knows = T.agent({ sessions = { { sessionId = id, updates = {} } } })
  nvim:use(T.agent({}), { agents = { other = knows.options } })
  nvim:keys((":CursorAgent load %s<CR>"):format(id))
  nvim:wait(function()
    return #knows:received("session/load") == 1
  end, "the other agent to be asked")
  T.eq(knows:received("session/load")[1].params.cwd, elsewhere)
  nvim:wait_state("idle")
  T.eq(nvim:texts("agent"), { "Yes." })
end)
