-- Conversations on disk where it is hard: Neovim killed at any moment, replays that come late or know less, outputs without
-- end, files that cannot be written, two Neovims.

local T = require("harness")
local small_disk = require("harness.small_disk")

---@param nvim harness.Child
---@return string[]
local function files(nvim)
  return vim.fn.glob(nvim.dir .. "/home/.local/share/nvim/cursor-agent/sessions/*/*.chat", true, true)
end

---Starts Neovim again with another agent.
---@param nvim harness.Child
---@param scenario table
---@param options table?
---@return harness.Agent
local function again(nvim, scenario, options)
  if not nvim:gone() then
    nvim:quit("qa!")
    nvim:wait_exit()
  end
  nvim:again()
  local agent = T.agent(scenario)
  nvim:use(agent, options)
  return agent
end

---@param nvim harness.Child
---@param id string?
---@return string[]
local function load(nvim, id)
  nvim:lua("require('cursor_agent').load(...)", id or "session-1")
  nvim:wait_state("idle")
  return nvim:lua([[
    return vim.tbl_map(function(entry) return entry.kind .. ": " .. entry.text end, require("cursor_agent").transcript())
  ]])
end

---@param kind string
---@param text string
---@return table
local function chunk(kind, text)
  return { sessionUpdate = kind, content = { type = "text", text = text } }
end

---@param id string
---@param text string?
---@param status string?
---@return table
local function call(id, text, status)
  return {
    update = {
      sessionUpdate = text and "tool_call_update" or "tool_call",
      toolCallId = id,
      title = "call " .. id,
      kind = "execute",
      status = status or "in_progress",
      content = text and { { type = "content", content = { type = "text", text = text } } } or nil,
    },
  }
end

---What is shown of the last turn, in order: each word is numbered.
---@param nvim harness.Child
---@return string[]
local function words(nvim)
  return nvim:lua([[
    local words = {}
    for _, entry in ipairs(require("cursor_agent").transcript() or {}) do
      local text = entry.text
      if entry.kind == "tool" then
        text = ""
        for _, content in ipairs(entry.tool and entry.tool.content or entry.content or {}) do
          text = text .. (content.text or "")
        end
      end
      if entry.kind ~= "notice" then
        for word in text:gmatch("w%d+") do words[#words + 1] = word end
      end
    end
    return words
  ]])
end

for attempt = 1, 4 do
  T.case(
    ("killed among messages, thoughts and outputs, all that is older is there (%d)"):format(attempt),
    function(nvim)
      local steps, number = {}, 0
      local function word()
        number = number + 1
        return ("w%d "):format(number)
      end
      for round = 1, 40 do
        for _ = 1, 4 do
          vim.list_extend(steps, { { thought = word() }, { wait_ms = 3 } })
        end
        for _ = 1, 4 do
          vim.list_extend(steps, { { text = word() }, { wait_ms = 3 } })
        end
        local id, output = "t" .. round, ""
        steps[#steps + 1] = call(id)
        for _ = 1, 4 do
          output = output .. word()
          vim.list_extend(steps, { call(id, output), { wait_ms = 3 } })
        end
        steps[#steps + 1] = call(id, output, "completed")
      end
      nvim:use(T.agent({ turns = { steps } }))
      nvim:prompt("count")
      math.randomseed(vim.uv.hrtime() % 2 ^ 31)
      local wanted = math.random(10, 250)
      local seen = {} ---@type string[]
      nvim:wait(function()
        seen = words(nvim)
        return #seen >= wanted
      end, "some words")
      -- What is older than this has to be there.
      vim.wait(100)
      nvim:kill("sigkill")
      nvim:wait_exit()
      again(nvim, {})
      load(nvim)
      local got = words(nvim)
      T.ok(#got >= #seen, ("%d of %d"):format(#got, #seen))
      for i, one in ipairs(got) do
        T.eq(one, "w" .. i)
      end
    end
  )
end

T.case("a large output that stops growing is there a moment later, and is written once", function(nvim)
  local line = ("x"):rep(99) .. "\n"
  local steps = { call("big") }
  for i = 1, 30 do
    vim.list_extend(steps, { call("big", line:rep(i * 400) .. "w" .. i .. "\n"), { wait_ms = 20 } })
  end
  steps[#steps + 1] = { wait_cancel = true }
  nvim:use(T.agent({ turns = { steps } }))
  nvim:prompt("print")
  nvim:wait(function()
    return words(nvim)[1] == "w30"
  end, "the output")
  -- Long enough for a busy machine: what was left for later must not wait for the next word.
  vim.wait(1000)
  nvim:kill("sigkill")
  nvim:wait_exit()
  local size = assert(vim.uv.fs_stat(files(nvim)[1])).size
  T.ok(size < 40 * 1000 * 1000, size .. " bytes")
  again(nvim, {})
  load(nvim)
  T.eq(words(nvim), { "w30" })
end)

T.case("a turn that ends at once is on disk, with its time", function(nvim)
  nvim:use(T.agent({ turns = { { { text = "yes" } }, { { text = "no" } } } }))
  nvim:prompt("one")
  nvim:wait_turns(1)
  nvim:prompt("two")
  nvim:wait_turns(2)
  local before = os.time()
  vim.wait(100)
  nvim:kill("sigkill")
  nvim:wait_exit()
  local text = assert(io.open(files(nvim)[1], "rb")):read("*a")
  local meta = vim.json.decode(text:match('({"meta":[^\n]*)\n$') or "{}").meta
  T.ok(meta, "the last record says what is known: " .. text:sub(-300))
  T.eq(meta.prompt, "one")
  T.ok(math.abs(meta.updated_ms / 1000 - before) < 5)
end)

local TURN =
  { { thought = "hm" }, { text = "Let me look. " }, call("c1"), call("c1", "out", "completed"), { text = "Fixed." } }
local SHOWN = { "user: fix it", "thought: hm", "agent: Let me look. ", "tool: call c1", "agent: Fixed." }
local REPLAY = {
  chunk("user_message_chunk", "fix it"),
  chunk("agent_message_chunk", "Let me look. Fixed."),
}

---@param nvim harness.Child
local function earlier(nvim)
  nvim:use(T.agent({ turns = { TURN } }))
  nvim:prompt("fix it")
  nvim:wait_turns(1)
end

---Without the notices about the turn's end.
---@param list string[]
---@return string[]
local function said(list)
  return vim.tbl_filter(function(line)
    return not vim.startswith(line, "notice: ")
  end, list)
end

T.case("a replay that joins what calls stood between is not news", function(nvim)
  earlier(nvim)
  again(nvim, { sessions = { { sessionId = "session-1", updates = REPLAY } } })
  T.eq(said(load(nvim)), SHOWN)
end)

T.case("a replay that comes long after the session is loaded is not shown twice", function(nvim)
  earlier(nvim)
  local late = { { profile = true }, { wait_ms = 900 } }
  for _, update in ipairs(REPLAY) do
    vim.list_extend(late, { { update = update, session = "session-1" }, { wait_ms = 400 } })
  end
  vim.list_extend(late, {
    { update = chunk("user_message_chunk", "from elsewhere"), session = "session-1" },
    { update = chunk("agent_message_chunk", "Yes."), session = "session-1" },
  })
  local agent = again(nvim, {
    sessions = { { sessionId = "session-1", updates = {} } },
    turns = { { { text = "On." } } },
    on = { ["session/load"] = late },
  })
  load(nvim)
  nvim:wait(function()
    return nvim:texts("agent")[3] == "Yes."
  end, "what is new in it")
  local expected = vim.list_extend(vim.deepcopy(SHOWN), { "user: from elsewhere", "agent: Yes." })
  T.eq(said(load(nvim)), expected)
  nvim:prompt("go on")
  nvim:wait_turns(1)
  T.eq(said(load(nvim)), vim.list_extend(expected, { "user: go on", "agent: On." }))
  T.eq(#agent:received("session/load"), 1)
end)

T.case("a turn the agent has forgotten stays, and the one before is there once", function(nvim)
  nvim:use(T.agent({ turns = { TURN, { { text = "Wait" }, { wait_cancel = true } } } }))
  nvim:prompt("fix it")
  nvim:wait_turns(1)
  nvim:prompt("and now?")
  nvim:wait(function()
    return nvim:texts("agent")[3] == "Wait"
  end, "the second turn")
  vim.wait(100)
  nvim:kill("sigkill")
  nvim:wait_exit()
  again(nvim, { sessions = { { sessionId = "session-1", updates = REPLAY } } })
  T.eq(said(load(nvim)), vim.list_extend(vim.deepcopy(SHOWN), { "user: and now?", "agent: Wait" }))
end)

T.case("an agent that cannot load is named, and the next prompt has the conversation with it", function(nvim)
  earlier(nvim)
  local agent = again(nvim, {
    initialize = { agentCapabilities = { loadSession = false } },
    turns = { { { text = "I see." } } },
  })
  load(nvim)
  T.contains(
    table.concat(nvim:texts("notice"), "\n"),
    "test cannot load past sessions; your next prompt starts a new session, with"
  )
  nvim:wait_screen("the conversation so far (1 kB) ×")
  nvim:prompt("go on")
  nvim:wait_turns(1)
  T.contains(agent:received("session/prompt")[1].params.prompt[2].text, "Assistant: Fixed.")
end)

T.case("of a long conversation as much is attached as it says", function(nvim)
  local turns = {}
  for i = 1, 30 do
    turns[i] = { { text = ("answer %d "):format(i) .. ("long "):rep(500) } }
  end
  nvim:use(T.agent({ turns = turns }))
  for i = 1, 30 do
    nvim:prompt("question " .. i)
    nvim:wait_turns(i)
  end
  local agent = again(nvim, { turns = { { { text = "I see." } } } })
  load(nvim)
  local label = nvim:status().carry --[[@as string]]
  local kept, all = label:match("%(last (%d+) kB of (%d+) kB%)")
  local kept_kb = assert(tonumber(kept), label)
  T.ok(kept_kb <= 33 and tonumber(all) > 70, label)
  nvim:prompt("go on")
  nvim:wait_turns(1)
  local text = agent:received("session/prompt")[1].params.prompt[2].text
  T.ok(math.abs(#text / 1000 - kept_kb) < 2, #text .. " bytes")
  T.contains(text, "answer 30")
  T.ok(not text:find("question 1\n", 1, true), "the beginning is left out")
end)

T.case("a full disk is one message, and the chat continues", { width = 120 }, function(nvim)
  local dir = nvim.dir .. "/home/.local/share/nvim/cursor-agent/sessions"
  small_disk(nvim, dir, function(fill)
    local big = { { text = ("one two three four five six seven\n"):rep(6000) } }
    nvim:use(T.agent({ turns = { { { text = "warm" } }, big, big, { { text = "still here" } } } }))
    nvim:prompt("go", { open = false })
    nvim:wait_turns(1)
    fill()
    nvim:prompt("more", { open = false })
    nvim:wait_turns(2)
    nvim:prompt("more", { open = false })
    nvim:wait_turns(3)
    nvim:prompt("more", { open = false })
    nvim:wait_turns(4)
    T.eq(nvim:texts("agent")[4], "still here")
    local text = nvim:messages():gsub("%s*\n%s*", " ")
    local _, times = text:gsub("could not store", "")
    T.eq(times, 1, text)
  end)
end)

---Runs a part of a case with a directory that cannot be written, where the system lets that be made.
---@param nvim harness.Child
---@param work fun()
local function read_only(nvim, work)
  local dir = vim.fs.dirname(vim.fs.dirname(files(nvim)[1]))
  local mounted = vim.system({ "mount", "--bind", dir, dir }):wait().code == 0
    and vim.system({ "mount", "-o", "remount,ro,bind", dir }):wait().code == 0
  if not mounted then
    for _, path in ipairs(vim.list_extend(files(nvim), { vim.fs.dirname(files(nvim)[1]), dir })) do
      vim.uv.fs_chmod(path, 365) -- r-xr-xr-x
    end
  end
  local ok, problem = pcall(work)
  nvim:stop()
  if mounted then
    vim.system({ "umount", "-l", dir }):wait()
  end
  if not ok then
    error(problem, 0)
  end
end

T.case("a read-only store is shown, with one message that nothing is added", { width = 120 }, function(nvim)
  earlier(nvim)
  nvim:quit("qa!")
  nvim:wait_exit()
  local bytes = vim.fn.readblob(files(nvim)[1])
  read_only(nvim, function()
    again(nvim, {
      sessions = { { sessionId = "session-1", updates = REPLAY } },
      turns = { { { text = "On." } }, { { text = "And on." } } },
    })
    T.eq(said(load(nvim)), SHOWN)
    for i = 1, 2 do
      nvim:prompt("go on")
      nvim:wait_turns(i)
    end
    vim.wait(200)
    local told = table.concat(nvim:texts("notice"), "\n") .. nvim:messages()
    local _, times = told:gsub("could not store", "")
    T.eq(times, 1, told)
    T.contains(told, "the chat continues")
    -- Another chat is not told of the same again.
    nvim:cmd("CursorAgent new")
    nvim:prompt("hello")
    nvim:wait_turns(3)
    vim.wait(200)
    _, times = (table.concat(nvim:texts("notice"), "\n") .. nvim:messages()):gsub("could not store", "")
    T.eq(times, 0)
  end)
  T.eq(vim.fn.readblob(files(nvim)[1]), bytes)
end)

T.case("two Neovims have one conversation open, and nothing of either is lost", function(nvim)
  earlier(nvim)
  again(
    nvim,
    { sessions = { { sessionId = "session-1", updates = REPLAY } }, turns = { { { text = "From the first." } } } }
  )
  load(nvim)
  local other = nvim:lua([[
    local other = vim.fn.jobstart({ vim.v.progpath, "--embed", "--headless", "--clean", "-n" }, { rpc = true })
    vim.rpcrequest(other, "nvim_exec_lua", "vim.opt.rtp:prepend(...)", { vim.fn.fnamemodify(vim.api.nvim_get_runtime_file("lua/cursor_agent/init.lua", false)[1], ":h:h:h") })
    vim.rpcrequest(other, "nvim_exec_lua", "require('cursor_agent').setup(...)", { { agent = "test", agents = { test = require("cursor_agent.config").agent("test") and { command = require("cursor_agent.config").agent("test").command } } } })
    vim.rpcrequest(other, "nvim_exec_lua", "require('cursor_agent').load('session-1')", {})
    _G.other = other
    return other
  ]])
  T.ok(other > 0)
  nvim:wait(function()
    return nvim:lua([[
      return vim.rpcrequest(_G.other, "nvim_exec_lua", "local s = require('cursor_agent').status() return s and s.state == 'idle'", {})
    ]])
  end, "the other to have it")
  local notices = nvim:lua([[
    return vim.rpcrequest(_G.other, "nvim_exec_lua", "return vim.tbl_map(function(e) return e.kind .. ': ' .. e.text end, require('cursor_agent').transcript())", {})
  ]])
  T.contains(table.concat(notices, "\n"), "this conversation is also open in another Neovim")
  nvim:prompt("in the first")
  nvim:wait_turns(1)
  nvim:lua([[vim.rpcrequest(_G.other, "nvim_exec_lua", "require('cursor_agent').prompt('in the second')", {})]])
  nvim:wait(function()
    return nvim:lua([[
      return vim.rpcrequest(_G.other, "nvim_exec_lua", "local s = require('cursor_agent').status() return s.state == 'idle' and s.turns == 1", {})
    ]])
  end, "the other's turn")
  nvim:lua([[vim.rpcnotify(_G.other, "nvim_command", "qa!") vim.fn.jobwait({ _G.other }, 5000)]])
  again(nvim, {})
  T.eq(#files(nvim), 2)
  local all = ""
  for _, path in ipairs(files(nvim)) do
    all = all .. assert(io.open(path, "rb")):read("*a")
  end
  T.contains(all, "in the first")
  T.contains(all, "in the second")
  nvim:lua("require('cursor_agent.chat.past').list({ agent_list = false }, function(found) _G.found = found end)")
  nvim:wait("_G.found ~= nil", "the list")
  T.eq(nvim:lua("return #_G.found"), 1)
end)
