-- What a file of cases uses: `T.case`, a child Neovim for each, scripted agents, look-ups of processes.

local Agent = require("harness.agent")
local Child = require("harness.child")
local process = require("harness.process")

-- How long a case may take in all.
local CASE_MS = 60000
-- How long processes of a case may take to end after its Neovim did: the grace the plugin gives, and room.
local LEFT_BEHIND_MS = 5000

---@class harness.Case
---@field name string
---@field opts harness.CaseOptions
---@field run fun(child: harness.Child)

local T = {}

---@type harness.Case[] the cases of the file that is being loaded
T.cases = {}

---The project's root.
T.root = vim.fs.dirname(vim.fs.dirname(vim.fn.fnamemodify(arg[0], ":p")))

---The companion program: the scripted agent.
T.program = T.root .. "/lib/cursor-agent-demo"

T.alive = process.alive
T.of_group = process.of_group

---@type { dir: string, mark: string }? of the case that runs
local current

---Adds a case.
---@param name string
---@param opts harness.CaseOptions|fun(child: harness.Child)
---@param run? fun(child: harness.Child)
function T.case(name, opts, run)
  if type(opts) == "function" then
    opts, run = {}, opts
  end
  T.cases[#T.cases + 1] = { name = name, opts = opts, run = assert(run, "a case needs a function") }
end

---A scripted agent; `agent.options` is its entry in the plugin's `agents`.
---@param scenario table
---@return harness.Agent
function T.agent(scenario)
  return Agent.new(scenario, assert(current, "only in a case").dir, T.program)
end

---The processes of the running case that still run: its Neovim, its agents and all they started.
---@return harness.Process[]
function T.processes()
  return process.marked(assert(current, "only in a case").mark)
end

---@param value any
---@param message string?
function T.ok(value, message)
  if not value then
    error(message or "expected something, got " .. tostring(value), 2)
  end
end

---@param actual any
---@param expected any
---@param message string?
function T.eq(actual, expected, message)
  if not vim.deep_equal(actual, expected) then
    local what = message and message .. ": " or ""
    error(("%sexpected %s, got %s"):format(what, vim.inspect(expected), vim.inspect(actual)), 2)
  end
end

---@param text any
---@param part string
---@param message string?
function T.contains(text, part, message)
  if not tostring(text):find(part, 1, true) then
    local what = message and message .. ": " or ""
    error(("%sexpected %q in:\n%s"):format(what, part, tostring(text)), 2)
  end
end

---Runs git in a directory, as somebody; it has to succeed.
---@param dir string
---@param ... string
---@return string stdout
function T.git(dir, ...)
  local identity = { "-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main" }
  local command = vim.list_extend(vim.list_extend({ "git", "-C", dir }, identity), { ... })
  local result = vim.system(command, { text = true }):wait()
  T.eq(result.code, 0, result.stderr)
  return result.stdout or ""
end

---Waits until nothing of the case runs any more.
---@param timeout_ms integer
---@return harness.Process[] left
local function wait_for_nothing(timeout_ms)
  local left = T.processes()
  vim.wait(timeout_ms, function()
    if #left > 0 then
      left = T.processes()
    end
    return #left == 0
  end, 50)
  return left
end

---Fails unless all processes of the case end in time.
---@param timeout_ms integer?
function T.expect_no_process(timeout_ms)
  local left = wait_for_nothing(timeout_ms or LEFT_BEHIND_MS)
  if #left > 0 then
    local list = vim.tbl_map(function(one)
      return ("  %d %s"):format(one.pid, one.command)
    end, left)
    error("left behind:\n" .. table.concat(list, "\n"), 0)
  end
end

---Runs one case from start to end.
---@param case harness.Case
---@return boolean passed
---@return string? report why not
function T.run(case)
  local base = assert(vim.uv.fs_realpath(assert(vim.uv.os_tmpdir())))
  local dir = assert(vim.uv.fs_mkdtemp(base .. "/cursor-agent-XXXXXX"))
  current = { dir = dir, mark = vim.fs.basename(dir) }
  local child ---@type harness.Child?
  local passed, failure = xpcall(function()
    child = Child.start({
      dir = dir,
      root = T.root,
      mark = { [process.MARKER] = current.mark },
      deadline = vim.uv.now() + (case.opts.deadline_ms or CASE_MS),
      case = case.opts,
    })
    case.run(child)
  end, function(message)
    local trace = debug.traceback("", 2):match("\n%s*([^\n]*_spec%.lua:%d+)[^\n]*")
    return trace and not tostring(message):find("_spec.lua", 1, true) and ("%s: %s"):format(trace, message) or message
  end)
  local report
  if not passed then
    report = tostring(failure) .. (child and "\n" .. child:post_mortem() or "")
  end
  if child then
    child:stop()
  end
  if not case.opts.leaves_processes then
    local tidy, left = pcall(T.expect_no_process)
    if not tidy then
      passed, report = false, (report and report .. "\n" or "") .. left
    end
  end
  for _, one in ipairs(T.processes()) do
    vim.uv.kill(one.pid, "sigkill")
  end
  vim.fn.delete(dir, "rf")
  current = nil
  return passed, report
end

return T
