-- What Cursor will and will not ask, read from its own settings: in health, in status, once in the first chat.

local T = require("harness")

---@param nvim harness.Child
---@param text string? of cli-config.json; nil for none
---@param scenario table?
---@return string path
local function settings(nvim, text, scenario)
  local dir = nvim.dir .. "/cursor-config"
  vim.fn.mkdir(dir, "p")
  local path = dir .. "/cli-config.json"
  if text then
    local file = assert(io.open(path, "wb"))
    file:write(text)
    file:close()
  else
    os.remove(path)
  end
  local agent = T.agent(vim.tbl_extend("force", { profile = "cursor-2026-10" }, scenario or {}))
  agent.options.status_command = { T.program, "status" }
  nvim:lua("vim.env.CURSOR_CONFIG_DIR = ...", dir)
  nvim:use(agent, { agent = "cursor", agents = { cursor = agent.options } })
  return path
end

---@param nvim harness.Child
---@return string
local function buffer_text(nvim)
  return table.concat(nvim:api("nvim_buf_get_lines", 0, 0, -1, false), "\n")
end

---@param nvim harness.Child
---@return string
local function status(nvim)
  nvim:cmd("CursorAgent status")
  nvim:wait(function()
    return buffer_text(nvim):find("Settings", 1, true)
  end, "the settings")
  local text = buffer_text(nvim)
  nvim:keys("q")
  return text
end

---@param nvim harness.Child
---@return string
local function health(nvim)
  nvim:cmd("checkhealth cursor_agent")
  local text = buffer_text(nvim)
  nvim:cmd("bwipeout")
  return text
end

T.case("once in the first chat, and again only when it has changed", { width = 120 }, function(nvim)
  local path = settings(nvim, '{ "approvalMode": "allowlist" }')
  local function told()
    return vim.tbl_filter(function(text)
      return text:find("without asking", 1, true) ~= nil
    end, nvim:texts("notice"))
  end
  nvim:prompt("hello")
  nvim:wait_turns(1)
  T.eq(#told(), 1)
  T.contains(told()[1], "Cursor edits files without asking; commands")
  T.contains(told()[1], ":CursorAgent review")
  T.ok(not told()[1]:find("\n"), told()[1])
  nvim:cmd("CursorAgent new")
  nvim:wait_state("idle")
  T.eq(told(), {})
  local file = assert(io.open(path, "wb"))
  file:write('{ "approvalMode": "unrestricted" }')
  file:close()
  nvim:cmd("CursorAgent new")
  nvim:wait(function()
    return #told() == 1
  end, "the news")
  T.contains(told()[1], "edits files and runs commands without asking (`approvalMode` is unrestricted in ")
  T.contains(told()[1], '"allowlist" asks before commands')
  -- Never written.
  T.eq(assert(io.open(path)):read("*a"), '{ "approvalMode": "unrestricted" }')
end)

T.case("in status and in health", { width = 120 }, function(nvim)
  settings(nvim, '// mine\n{ "approvalMode": "unrestricted", "maxMode": true, }')
  local text = status(nvim)
  T.contains(text, "Cursor edits files and runs commands without asking")
  T.contains(text, "cursor-config/cli-config.json: approvalMode unrestricted, maxMode on")
  text = health(nvim)
  T.contains(text, "WARNING Cursor edits files and runs commands without asking")
  T.contains(text, "approvalMode unrestricted, maxMode on")
end)

T.case("a file that is missing, broken, of other types or not a file harms nothing", { width = 120 }, function(nvim)
  for _, one in ipairs({
    { nil, "not found, so Cursor's defaults apply" },
    { "{ not json", ": not JSON" },
    { "[]", ": not a JSON object" },
    { '{ "approvalMode": 7, "maxMode": "yes" }', "approvalMode not set (allowlist), maxMode off" },
    { '{ "approvalMode": "someday" }', "approvalMode someday" },
    { "", "approvalMode not set (allowlist)" },
    { (" "):rep(5 * 1024 * 1024), ": larger than 4 MiB" },
  }) do
    settings(nvim, one[1])
    T.contains(status(nvim), one[2])
    T.contains(health(nvim), one[2])
  end
  local path = settings(nvim, nil)
  vim.fn.system({ "mkfifo", path })
  T.contains(status(nvim), ": not a regular file")
  nvim:prompt("hello")
  nvim:wait_turns(1)
end)

T.case("another agent is not spoken of as Cursor", { width = 120 }, function(nvim)
  settings(nvim, '{ "approvalMode": "unrestricted" }')
  nvim:use(T.agent({ profile = "plain" }))
  nvim:prompt("hello")
  nvim:wait_turns(1)
  T.eq(
    vim.tbl_filter(function(text)
      return text:find("asking", 1, true) ~= nil
    end, nvim:texts("notice")),
    {}
  )
end)

T.case('"Allow always" on Cursor\'s card says where it is kept', { width = 140 }, function(nvim)
  local turn = { { permission = { toolCall = { toolCallId = "t", title = "`ls`", kind = "execute" } } } }
  settings(nvim, nil, { turns = { turn } })
  nvim:prompt("hello")
  nvim:wait_screen("Allow always (adds to Cursor's allowlist)")
end)

T.case("on another agent's card it does not", { width = 140 }, function(nvim)
  local turn = { { permission = { toolCall = { toolCallId = "t", title = "`ls`", kind = "execute" } } } }
  nvim:use(T.agent({ turns = { turn } }))
  nvim:prompt("hello")
  nvim:wait_screen("Allow always")
  T.ok(not nvim:sees("own allowlist"), table.concat(nvim:screen(), "\n"))
end)
