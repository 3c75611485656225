-- `:CursorAgent status`: one buffer about the agent, how it is signed in and what it asks. Nothing is started for it.

local approval = require("cursor_agent.agents.approval")
local config = require("cursor_agent.config")
local bridge = require("cursor_agent.bridge")
local presets = require("cursor_agent.agents.presets")
local redact = require("cursor_agent.bridge.redact")
local scratch = require("cursor_agent.window.scratch")
local sign_in = require("cursor_agent.agents.sign_in")

local M = {}

---The agent's own status command has this long.
local ASK_MS = 10000

local WIDTH = 12

---What the buffer shows; what has to be asked for comes later.
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
    add(lines, "Sign-in", facts.status and facts.status.needs_login and "needed: :CursorAgent login" or "not known")
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

---How Cursor's CLI is driven; nil where there is no choice.
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

---@param facts cursor_agent.status.Facts
---@return string[]
local function compose(facts)
  local lines = {} ---@type string[]
  local status = facts.status
  add(lines, "Agent", ("%s, %s"):format(facts.name, status and status.state or "no chat in this tab"))
  local ready = bridge.is_loaded()
  -- The library knows what is a secret; without a chat only the program is shown.
  add(
    lines,
    "Command",
    vim.fn.exepath(facts.spec.command[1] or "") ~= "" and vim.fn.exepath(facts.spec.command[1])
      or ("%s is not on your PATH"):format(facts.spec.command[1] or "?")
  )
  local backend = backend_of(facts)
  if backend then
    add(lines, "Backend", backend)
  end
  add(lines, "Directory", vim.fn.fnamemodify(facts.cwd, ":~"))
  add_sign_in(lines, facts)
  if status and ready then
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
  -- It is made to be shown to others.
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
  } ---@type cursor_agent.status.Facts
  local command = facts.command
  facts.asking = command ~= nil and vim.fn.executable(command[1]) == 1
  local buf = scratch.open(compose(facts), { name = "status" })
  if problem then
    require("cursor_agent.notify").notify(problem, "error")
  end
  if facts.asking and command then
    local options = { text = true, timeout = ASK_MS, env = spec.env, cwd = facts.cwd }
    local started = pcall(
      vim.system,
      command,
      options,
      vim.schedule_wrap(function(result)
        facts.asking = false
        if result.code ~= 124 and result.signal == 0 then
          facts.said = vim.trim((result.stdout or "") .. (result.stderr or ""))
        end
        refresh(facts, buf)
      end)
    )
    facts.asking = started
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
