-- Secrets of every kind, planted everywhere an agent or a user can put them: none of them leaves the chat.

local T = require("harness")

local HEX = "0123456789abcdef0123456789abcdef"

---What must not be found, by what it is. In parts, so that no scanner takes them for real ones.
local TOKENS = {
  jwt = "eyJ" .. "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
  aws = "AKIA" .. "IOSFODNN7EXAMPLE",
  gitlab = "glpat" .. "-aBcDeFgHiJkLmNoPqRsT",
  github = "ghp_" .. "16C7e42F292c6912E7710c838347Ae178B4a",
  github_fine = "github_pat_" .. "11ABCDEFG0aBcDeFgHiJkL_mNoPqRsTuVwXyZ0123456789",
  slack = "xoxb" .. "-123456789012-1234567890123-AbCdEfGhIjKl",
  stripe = "sk_live_" .. "4eC39HqLyjWDarjtT1zdp7dc",
  hugging_face = "hf_" .. "abcdefghijklmnopqrstuvwxyzABCDEFGH",
  npm = "npm_" .. "abcdefghijklmnopqrstuvwxyz0123456789",
  openai = "sk-" .. "abcdefghijklmnopqrstuvwxyz0123456789",
  google = "AIza" .. "SyA1234567890abcdefghijklmnopqrstuv",
  cursor = "key_" .. HEX,
}

local KEY_BODY = { "MIIEpAIBAAKCAQEA0Z3VS5JJcds3xfnygWyF0sGQ", "dZk1J5hoaLcsLSQkVZ3Ag1zVqnyyrS9ub0HbXkZ8" }
local KEY = ("-----BEGIN %s KEY-----\n%s\n-----END %s KEY-----"):format(
  "RSA PRIVATE",
  table.concat(KEY_BODY, "\n"),
  "RSA PRIVATE"
)

local LONG_KEY = KEY:gsub("\n%-+END", ("\nAAAA" .. KEY_BODY[1]):rep(8) .. "%0")

---Known by what stands before them.
local CONTEXTS = {
  "postgres://me:url-hunter-1@host/db",
  "agent --api-key option-hunter-2 acp",
  "agent --token=option-hunter-3 acp",
  "curl -H 'Authorization: Bearer header-hunter-4' https://host",
  "MY_TOKEN=env-hunter-5 run",
  '{"password": "field-hunter-6"}',
  "https://hooks.slack.com/services/T0/B0/hook-hunter-7",
  "echo 'agent --password '\\''quoted-hunter-13'\\'' run'",
  "/proj/https:/me:tidied-hunter-14@host/x: no such file",
}

---Known because the agent was given them.
local GIVEN = { "given-hunter-8", "given-hunter-9", "given-hunter-10", "given-hunter-11", "given-hunter-12" }

local function all()
  local list = vim.list_extend(vim.tbl_values(TOKENS), CONTEXTS)
  list[#list + 1] = KEY
  return vim.list_extend(list, GIVEN)
end

---The first secret, or half of one, that a text has.
---@param text string
---@return string?
local function leak(text)
  for name, token in pairs(TOKENS) do
    -- Its first half, too: what a cut would leave.
    if text:find(token:sub(1, math.floor(#token / 2) + 3), 1, true) then
      return name
    end
  end
  return text:match("[%w-]*hunter%-%d+") or text:match("MIIEpAIBAAKC") or text:match("dZk1J5hoaLcs")
end

---@param text string
---@param where string
local function expect_clean(text, where)
  T.ok(#text > 0, where .. " is empty")
  T.eq(leak(text), nil, where .. " has a secret:\n" .. text)
end

local PLANTED = table.concat(all(), "\n")

---@return table[]
local function turn()
  return {
    { stderr = PLANTED .. "\n" },
    -- The cut of a long line falls into a token.
    { stderr = ("x"):rep(1984) .. " " .. TOKENS.github .. "\n" },
    { raw = ("y"):rep(184) .. " " .. TOKENS.openai .. "\n" },
    -- What is no message comes line by line.
    { raw = KEY .. "\n" },
    { text = PLANTED .. "\n" },
    { thought = PLANTED },
    {
      update = {
        sessionUpdate = "tool_call",
        toolCallId = "t",
        title = ("`curl -H 'Authorization: Bearer %s' %s`"):format(TOKENS.jwt, PLANTED:gsub("\n", " ")),
        kind = "execute",
        status = "completed",
        rawInput = { command = { "x", "--api-key", "option-hunter-20" }, env = { MY_SECRET = "env-hunter-21" } },
        rawOutput = { exitCode = 1, stdout = PLANTED, stderr = PLANTED },
        content = {
          { type = "content", content = { type = "text", text = PLANTED } },
          { type = "diff", path = "${cwd}/a.pem", oldText = "", newText = PLANTED },
          -- The lines around a change, without what tells that they are of a key.
          { type = "diff", path = "${cwd}/b.pem", oldText = LONG_KEY .. "\na", newText = LONG_KEY .. "\nb" },
        },
      },
    },
    {
      request = {
        method = "terminal/create",
        params = {
          sessionId = "${session}",
          command = "true",
          args = { "--token", "option-hunter-22" },
          env = { { name = "SOME_KEY", value = "env-hunter-23" } },
        },
      },
    },
    { update = { sessionUpdate = "notice", severity = "warning", title = "Odd", description = PLANTED } },
    {
      error = {
        code = -32603,
        message = "refused: " .. PLANTED,
        data = { details = PLANTED, token = "data-hunter-24" },
      },
    },
  }
end

---@param nvim harness.Child
---@return string
local function shown(nvim)
  return table.concat(nvim:api("nvim_buf_get_lines", 0, 0, -1, false), "\n")
end

T.case(
  "are in no log, export, report or message",
  { width = 120, height = 40, env = { OUTER_TOKEN = GIVEN[1] } },
  function(nvim)
    local agent = T.agent({
      turns = { turn(), { { stderr = PLANTED .. "\n" }, { exit = 1 } } },
    })
    agent.options.env = { CURSOR_API_KEY = GIVEN[2] }
    vim.list_extend(agent.options.command, { "--api-key", GIVEN[3] })
    agent.options.mcp_servers = {
      {
        name = "db",
        command = "db",
        args = { "--token", GIVEN[4] },
        env = { DB_PASS = GIVEN[5], OTHER = "mcp-hunter-30" },
      },
      {
        type = "http",
        name = "web",
        url = "https://h/?k=mcp-hunter-31",
        headers = { ["X-Api-Key"] = "mcp-hunter-32" },
      },
    }
    nvim:use(agent)
    nvim:prompt("use " .. PLANTED)
    nvim:wait_turns(1)
    nvim:keys("<Esc>")
    local log = "table.concat(require('cursor_agent.bridge.native').get().log(1)):find('%s', 1, true)"
    nvim:wait(log:format("xxxx"), "the long line on stderr")

    nvim:cmd("CursorAgent log")
    expect_clean(shown(nvim), "the log's window")
    for row = 1, nvim:api("nvim_buf_line_count", 0) do
      nvim:api("nvim_win_set_cursor", 0, { row, 0 })
      nvim:lua("require('cursor_agent.agents.protocol_log').show_message()")
      expect_clean(shown(nvim), "message " .. row)
      nvim:cmd("close")
    end
    nvim:cmd("close")
    nvim:cmd("CursorAgent log save saved.jsonl")
    expect_clean(table.concat(vim.fn.readfile(nvim.work .. "/saved.jsonl"), "\n"), "the saved log")
    nvim:cmd("CursorAgent export")
    expect_clean(shown(nvim), "the export's window")
    nvim:cmd("bwipeout!")
    nvim:cmd("CursorAgent export talk.md")
    expect_clean(table.concat(vim.fn.readfile(nvim.work .. "/talk.md"), "\n"), "the export")

    nvim:prompt("and fail")
    nvim:wait_state("failed")
    expect_clean(nvim:lua("return require('cursor_agent').status().error"), "the error")
    nvim:cmd("checkhealth cursor_agent")
    expect_clean(shown(nvim), "the report")
    expect_clean(nvim:cmd("messages"), "the messages")
    local state = nvim.dir .. "/home/.local/state/nvim/"
    expect_clean(table.concat(vim.fn.readfile(state .. "cursor-agent/last-failure.json"), "\n"), "the last failure")

    -- What a panic says is in the log file.
    nvim:lua("pcall(require('cursor_agent.bridge.native').get().test_error, 'panic', ...)", PLANTED)
    expect_clean(table.concat(vim.fn.readfile(state .. "cursor-agent.log"), "\n"), "the log file")
    T.contains(table.concat(vim.fn.readfile(state .. "cursor-agent.log"), "\n"), "a panic on purpose")
  end
)

T.case("are in no notification of a permission", { width = 120 }, function(nvim)
  local call = { toolCallId = "t", title = ("`%s`"):format(("z"):rep(50) .. " " .. TOKENS.github), kind = "execute" }
  nvim:use(T.agent({ turns = { { { permission = { toolCall = call } } } } }))
  nvim:prompt("hello")
  nvim:wait("#require('cursor_agent').pending() == 1", "the permission")
  nvim:cmd("CursorAgent close")
  local messages = nvim:cmd("messages")
  T.eq(leak(messages), nil, messages)
end)

T.case("on the screen the conversation is as it was", { width = 120 }, function(nvim)
  nvim:use(T.agent({ turns = { { { text = "It is " .. TOKENS.github .. " indeed." } } } }))
  nvim:prompt("hello")
  nvim:wait_turns(1)
  nvim:wait_screen(TOKENS.github)
end)
