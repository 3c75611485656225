-- `:CursorAgent status`: one buffer about the agent, its sign-in and what it asks, what runs and what is kept. It starts no agent.

local approval = require("cursor_agent.agents.approval")
local bridge = require("cursor_agent.bridge")
local chats = require("cursor_agent.chat.registry")
local config = require("cursor_agent.config")
local format = require("cursor_agent.render.format")
local presets = require("cursor_agent.agents.presets")
local redact = require("cursor_agent.bridge.redact")
local scratch = require("cursor_agent.window.scratch")
local sign_in = require("cursor_agent.agents.sign_in")

local M = {}

---Time limit of the agent's own status command.
local ASK_MS = 10000

local WIDTH = 12

---What the buffer shows; what has to be requested comes later.
---@class (exact) cursor_agent.status.Facts
---@field name string of the agent
---@field agent cursor_agent.Agent
---@field spec cursor_agent.OpenSpec
---@field chat cursor_agent.Chat?
---@field cwd string
---@field status cursor_agent.Status?
---@field given cursor_agent.SignIn?
---@field command string[]? the status command
---@field asking boolean
---@field said string? what it printed
---@field settings cursor_agent.CliConfig?
---@field version string? what its version command printed
---@field running cursor_agent.Running[]? agents of this Neovim
---@field sizes table<string, cursor_agent.Size> by path
---@field places { [1]: string, [2]: string }[] what is measured: label and path

---@param lines string[]
---@param label string
---@param text string
local function add(lines, label, text)
  local first = true
  for line in vim.gsplit(text, "\n", { plain = true, trimempty = true }) do
    local lead = first and label or ""
    lines[#lines + 1] = lead .. (" "):rep(WIDTH - #lead) .. vim.trim(line)
    first = false
  end
end

---@param lines string[]
---@param facts cursor_agent.status.Facts
local function add_sign_in(lines, facts)
  local given, command = facts.given, facts.command
  if given then
    add(lines, "Sign-in", sign_in.describe(given, facts.name, facts.agent))
    if command then
      add(lines, "", facts.asking and "…" or sign_in.beside(command, facts.said, given))
    end
  elseif not command then
    add(lines, "Sign-in", facts.status and facts.status.needs_login and "needed: :CursorAgent login" or "unknown")
  elseif facts.asking then
    add(lines, "Sign-in", "…")
  elseif not facts.said then
    add(lines, "Sign-in", ("`%s` did not answer"):format(redact.command(command)))
  elseif sign_in.is_signed_out(facts.said) then
    local key = facts.agent.cursor and ", or set CURSOR_API_KEY" or ""
    add(lines, "Sign-in", ("none: run :CursorAgent login%s"):format(key))
    add(lines, "", ("`%s` says: %s"):format(redact.command(command), facts.said:match("%S[^\n]*")))
  else
    add(lines, "Sign-in", "signed in with a login")
    add(lines, "", ("`%s` says: %s"):format(redact.command(command), facts.said:match("%S[^\n]*") or ""))
  end
end

---How Cursor's CLI is driven; nil if there is no choice.
---@param facts cursor_agent.status.Facts
---@return string?
local function backend_of(facts)
  local status, backend = facts.status, facts.agent.backend
  if backend == "auto" and status and status.backend == "headless" then
    return "headless, since this CLI has no `acp`"
  elseif backend == "auto" then
    local started = status and status.state ~= "stopped" and status.state ~= "starting" and status.state ~= "failed"
    return started and "acp" or "auto: acp, or headless where the CLI has no `acp`"
  end
  return backend
end

---The server Cursor's CLI talks to.
---@param facts cursor_agent.status.Facts
---@return string
local function endpoint_of(facts)
  local command = facts.spec.command
  for i, word in ipairs(command) do
    if (word == "-e" or word == "--endpoint") and command[i + 1] then
      return command[i + 1] .. (facts.agent.insecure and " (certificate not checked)" or "")
    end
  end
  local set = (facts.spec.env or {}).CURSOR_API_ENDPOINT or vim.env.CURSOR_API_ENDPOINT
  return set and set ~= "" and set .. " (CURSOR_API_ENDPOINT)" or "Cursor's default"
end

---@param lines string[]
---@param facts cursor_agent.status.Facts
local function add_running(lines, facts)
  if not facts.running then
    return
  end
  local label = "Running"
  for _, one in ipairs(facts.running) do
    local memory = one.memory_bytes and format.bytes(one.memory_bytes) or "memory unknown"
    local where = vim.fn.fnamemodify(one.cwd, ":~")
    local sessions = format.plural(one.sessions, "session")
    local age = format.duration(one.age_ms)
    add(lines, label, ("%s, pid %d, %s, for %s, %s, in %s"):format(one.agent, one.pid, memory, age, sessions, where))
    label = ""
  end
  if #facts.running == 0 then
    add(lines, label, "no agent")
  end
end

---@param lines string[]
local function add_sessions(lines)
  local label = "Sessions"
  for _, chat in ipairs(chats.all()) do
    local status = chat.status
    local title = status.title and (" “%s”"):format(format.first_line(status.title, 60)) or ""
    add(lines, label, ("%d: %s, %s%s"):format(chat.key, chat.agent, status.state, title))
    label = ""
  end
  if label ~= "" then
    add(lines, label, "none in this Neovim")
  end
end

---@param lines string[]
---@param facts cursor_agent.status.Facts
local function add_sizes(lines, facts)
  for _, place in ipairs(facts.places) do
    local label, path = place[1], place[2]
    local size = facts.sizes[path]
    local short = vim.fn.fnamemodify(path, ":~")
    if size and not size.found then
      add(lines, label, short .. ", nothing yet")
    elseif size then
      local files = size.files > 1 and ", " .. format.plural(size.files, "file") or ""
      add(lines, label, ("%s, %s%s%s"):format(short, size.more and "over " or "", format.bytes(size.bytes), files))
    end
  end
end

---@param facts cursor_agent.status.Facts
---@return string[]
local function compose(facts)
  local lines = {} ---@type string[]
  local status = facts.status
  add(lines, "Agent", ("%s, %s"):format(facts.name, status and status.state or "no chat in this tab"))
  local ready = bridge.is_loaded()
  -- The library knows what is secret; without a chat show only the program.
  if facts.agent.url then
    add(lines, "Address", facts.agent.url)
  else
    local program, why = presets.found(facts.agent)
    add(lines, "Command", program and ("%s\n%s"):format(program, why) or why)
  end
  if facts.version then
    add(lines, "Version", facts.version)
  end
  local backend = backend_of(facts)
  if backend then
    add(lines, "Backend", backend)
  end
  add(lines, "Directory", vim.fn.fnamemodify(facts.cwd, ":~"))
  add_sign_in(lines, facts)
  if facts.agent.cursor then
    add(lines, "Endpoint", endpoint_of(facts))
  end
  if not status then
    local chosen = require("cursor_agent.chat.next").get(facts.name)
    add(lines, "Mode", chosen.mode or facts.spec.mode or "the agent's default")
    add(lines, "Model", chosen.model or facts.spec.model or "the agent's default")
  elseif ready then
    add(lines, "Session", status.session_id or "none yet")
    add(lines, "Mode", status.mode or "not known yet")
    add(lines, "Model", status.model or "not known yet")
    if status.queued > 0 then
      add(lines, "Queued", tostring(status.queued))
    end
    if status.error then
      add(lines, "Problem", status.error)
    end
  end
  if facts.settings then
    add(lines, "Asks", approval.sentence(facts.settings, presets.is_headless(facts.agent, status)))
    add(lines, "Settings", approval.settings(facts.settings))
  end
  add_running(lines, facts)
  add_sessions(lines)
  add_sizes(lines, facts)
  -- People share this report.
  return vim.tbl_map(redact.text, lines)
end

---@param facts cursor_agent.status.Facts
---@param buf integer
local function refresh(facts, buf)
  if vim.api.nvim_buf_is_valid(buf) then
    vim.bo[buf].modifiable = true
    vim.api.nvim_buf_set_lines(buf, 0, -1, false, compose(facts))
    vim.bo[buf].modifiable = false
    vim.bo[buf].modified = false
  end
end

---What is measured.
---@param spec cursor_agent.OpenSpec
---@return { [1]: string, [2]: string }[]
local function places_of(spec)
  local own = require("cursor_agent.files.store").dir()
  local places = {
    { "Store", own },
    { "Checkpoints", vim.fs.joinpath(own, "checkpoints") },
    { "Log", require("cursor_agent.bridge.paths").log() },
  }
  if spec.cursor then
    local env = spec.env or {}
    local home = env.HOME or vim.env.HOME or "~"
    local xdg = env.XDG_CONFIG_HOME or vim.env.XDG_CONFIG_HOME
    local root = env.CURSOR_CONFIG_DIR or vim.env.CURSOR_CONFIG_DIR or (xdg and xdg .. "/cursor") or home .. "/.cursor"
    places[#places + 1] = { "Chats", vim.fs.normalize(root) .. "/chats" }
    places[#places + 1] = { "ACP", vim.fs.normalize(root) .. "/acp-sessions" }
  end
  return places
end

---Runs a command and calls back with its output; nil if there is none.
---@param command string[]
---@param facts cursor_agent.status.Facts
---@param callback fun(said: string?)
---@return boolean
local function ask(command, facts, callback)
  local request = bridge.run({
    command = command,
    env = next(facts.spec.env or {}) and facts.spec.env or vim.empty_dict(),
    cwd = facts.cwd,
    timeout_ms = ASK_MS,
  })
  if not request then
    return false
  end
  bridge.await(request, function(ok, value)
    local outcome = ok and value --[[@as cursor_agent.Outcome]] or nil
    local ended = outcome and not outcome.timed_out and not outcome.signal
    callback(outcome and ended and vim.trim(outcome.stdout .. outcome.stderr) or nil)
  end)
  return true
end

---@param chat cursor_agent.Chat?
---@return boolean?, string?
function M.open(chat)
  local agent, name = config.agent(chat and chat.agent)
  if not agent then
    return nil, ("unknown agent `%s`; expected one of %s"):format(name, table.concat(config.agent_names(), ", "))
  end
  local spec, problem = presets.spec(name, agent)
  local ready = bridge.load()
  if ready then
    bridge.learn(spec)
  end
  local facts = {
    name = name,
    agent = agent,
    spec = spec,
    chat = chat,
    cwd = chat and chat.cwd or vim.fn.getcwd(),
    status = chat and ready and bridge.status(chat.key) or nil,
    given = sign_in.given(name, agent, spec),
    command = presets.status_command(name, agent),
    asking = false,
    sizes = {},
    places = places_of(spec),
  } ---@type cursor_agent.status.Facts
  local command = facts.command
  facts.asking = ready == true and command ~= nil and vim.fn.executable(command[1]) == 1
  local buf = scratch.open(compose(facts), { name = "status" })
  if problem then
    require("cursor_agent.notify").notify(problem, "error")
  end
  if facts.asking and command then
    facts.asking = ask(command, facts, function(said)
      facts.asking, facts.said = false, said
      refresh(facts, buf)
    end)
  end
  local version = ready and presets.version_command(name, agent) or nil
  if version and vim.fn.executable(version[1]) == 1 then
    ask(version, facts, function(said)
      facts.version = said and said:match("[^\n]*%d[^\n]*")
      refresh(facts, buf)
    end)
  end
  local running = ready and bridge.running()
  if running then
    bridge.await(running, function(ok, value)
      facts.running = ok and value or nil
      refresh(facts, buf)
    end)
  end
  local paths = vim.tbl_map(function(place)
    return place[2]
  end, facts.places)
  local sizes = ready and bridge.measure(paths)
  if sizes then
    bridge.await(sizes, function(ok, value)
      for _, size in ipairs(ok and value or {}) do
        facts.sizes[size.path] = size
      end
      refresh(facts, buf)
    end)
  end
  if config.is_cursor(name) then
    approval.read(spec.env, function(settings)
      facts.settings = settings
      refresh(facts, buf)
    end)
  end
  return true
end

return M
