-- A scripted agent for one case: writes the scenario it plays, and reads back what it received.

---A line of the record: `in` what it received, `out` what it sent, `note` what happened to it.
---@class harness.Record
---@field t number ms
---@field in table?
---@field out table?
---@field note string?
---@field env table<string, string>? of a start: the variables that were to be recorded

---@class harness.AgentOptions
---@field command string[]
---@field env table<string, string>?
---@field mcp_servers table[]?
---@field status_command string[]?
---@field login_command string[]?
---@field version_command string[]?

---@class harness.Agent
---@field options harness.AgentOptions an entry of the plugin's `agents`
---@field private record string path
local Agent = {}
Agent.__index = Agent

local count = 0

---@param scenario table as `cursor-agent-demo play` reads it: profile, initialize, session, start, on, turns
---@param dir string where its files go
---@param program string path of cursor-agent-demo
---@return harness.Agent
function Agent.new(scenario, dir, program)
  count = count + 1
  local base = ("%s/agent-%d"):format(dir, count)
  local file = assert(io.open(base .. ".json", "wb"))
  -- An empty table of Lua is a list to JSON, and a scenario is none.
  file:write(next(scenario) and vim.json.encode(scenario) or "{}")
  file:close()
  return setmetatable({
    options = { command = { program, "play", base .. ".json", "--record", base .. ".jsonl" } },
    record = base .. ".jsonl",
  }, Agent)
end

---Everything recorded so far, in order. A last line that is not whole yet is left for the next look.
---@return harness.Record[]
function Agent:log()
  local file = io.open(self.record, "rb")
  if not file then
    return {}
  end
  local text = file:read("*a")
  file:close()
  local log = {}
  for line in text:gmatch("([^\n]*)\n") do
    log[#log + 1] = vim.json.decode(line, { luanil = { object = true } })
  end
  return log
end

---The messages received of one method, oldest first.
---@param method string
---@return table[]
function Agent:received(method)
  local found = {}
  for _, entry in ipairs(self:log()) do
    if entry["in"] and entry["in"].method == method then
      found[#found + 1] = entry["in"]
    end
  end
  return found
end

---The answers to what the agent asked by this method, oldest first.
---@param method string
---@return table[]
function Agent:answers(method)
  local asked, found = {}, {}
  for _, entry in ipairs(self:log()) do
    local out, answer = entry.out, entry["in"]
    if out and out.method == method and out.id ~= nil then
      asked[tostring(out.id)] = true
    elseif answer and not answer.method and answer.id ~= nil and asked[tostring(answer.id)] then
      found[#found + 1] = answer
    end
  end
  return found
end

---What its permissions came to, oldest first: option ids, `cancelled`, or `error`.
---@return string[]
function Agent:outcomes()
  return vim.tbl_map(function(answer)
    local outcome = answer.result and answer.result.outcome or { outcome = "error" }
    return outcome.optionId or outcome.outcome
  end, self:answers("session/request_permission"))
end

---The notes of one kind: eof, sigterm, exit, spawned.
---@param note string
---@return harness.Record[]
function Agent:notes(note)
  return vim.tbl_filter(function(entry)
    return entry.note == note
  end, self:log())
end

return Agent
