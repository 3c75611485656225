-- Look-ups among the system's processes, for the cases that say nothing may be left behind.

local files = require("harness.file")

local read = files.peek

local M = {}

---The variable that marks every process of a case: the child Neovim gets it and all it starts inherit it.
M.MARKER = "CURSOR_AGENT_TEST_CASE"

---@class harness.Process
---@field pid integer
---@field group integer
---@field command string

---The state letter and the group of a process; nil when there is none.
---@param pid integer
---@return string? state
---@return integer? group
local function stat(pid)
  local text = read(("/proc/%d/stat"):format(pid))
  if not text then
    return nil
  end
  -- The name, in parentheses, may hold anything: read after its end.
  local state, _, group = text:match("^.*%) (%S+) (%S+) (%S+)")
  return state, tonumber(group) --[[@as integer?]]
end

local has_proc = vim.uv.fs_stat("/proc/self/stat") ~= nil

---Whether a process runs. One that ended and was not reaped does not.
---@param pid integer
---@return boolean
function M.alive(pid)
  if has_proc then
    local state = stat(pid)
    return state ~= nil and state ~= "Z" and state ~= "X"
  end
  local out = vim.system({ "ps", "-o", "stat=", "-p", tostring(pid) }):wait()
  local state = vim.trim(out.stdout or "")
  return state ~= "" and state:sub(1, 1) ~= "Z"
end

---Running processes that a test of their environment and their group says yes to.
---@param wanted fun(process: harness.Process, environment: string): boolean
---@return harness.Process[]
local function scan(wanted)
  local found = {}
  if has_proc then
    for name in vim.fs.dir("/proc") do
      local pid = tonumber(name)
      if pid and M.alive(pid) then
        local _, group = stat(pid)
        local environment = "\0" .. (read(("/proc/%d/environ"):format(pid)) or "")
        local command = (read(("/proc/%d/cmdline"):format(pid)) or ""):gsub("%z", " ")
        local process = { pid = pid, group = group or 0, command = vim.trim(command) }
        if wanted(process, environment) then
          found[#found + 1] = process
        end
      end
    end
    return found
  end
  local out = vim.system({ "ps", "-axwwE", "-o", "pid=,pgid=,stat=,command=" }):wait()
  for line in vim.gsplit(out.stdout or "", "\n", { trimempty = true }) do
    local pid, group, state, command = line:match("^%s*(%d+)%s+(%d+)%s+(%S+)%s+(.*)$")
    if pid and group and state and command and state:sub(1, 1) ~= "Z" then
      ---@type harness.Process
      local process = {
        pid = tonumber(pid) --[[@as integer]],
        group = tonumber(group) --[[@as integer]],
        command = command,
      }
      if wanted(process, "\0" .. command:gsub(" ", "\0") .. "\0") then
        found[#found + 1] = process
      end
    end
  end
  return found
end

---Running processes that carry the mark.
---@param mark string
---@return harness.Process[]
function M.marked(mark)
  local entry = ("\0%s=%s\0"):format(M.MARKER, mark)
  return scan(function(_, environment)
    return (environment .. "\0"):find(entry, 1, true) ~= nil
  end)
end

---Running processes of a group.
---@param group integer
---@return harness.Process[]
function M.of_group(group)
  return scan(function(process)
    return process.group == group
  end)
end

return M
