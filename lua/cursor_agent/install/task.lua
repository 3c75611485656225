-- Work that waits, as a coroutine: lazy.nvim resumes `build.lua` itself; elsewhere `blocking` and `background` do.
--
-- A yield with a text is progress to show, one without is a wait. "abort" as the answer means to give up.

local M = {}

-- Between two looks at what is waited for. A scheduler that resumes at once would otherwise keep a core busy.
local LOOK_MS = 5
-- Between two steps of a task that this module drives.
local STEP_MS = 20

---Whether the running function is inside a coroutine. The main thread may be nil or named as such, by LuaJIT's version.
---@return boolean
function M.inside()
  local thread, main = coroutine.running()
  return thread ~= nil and not main
end

-- Given another name for the type checker, which would otherwise want every function up to `build.lua` marked as asynchronous.
local pause = coroutine.yield --[[@as fun(message: string?): any]]

---@param message string?
local function yield(message)
  if pause(message) == "abort" then
    error("aborted", 0)
  end
end

---Shows progress.
---@param message string
function M.say(message)
  yield(message)
end

---Lets others work.
function M.breathe()
  yield()
end

---@class (exact) cursor_agent.install.Output
---@field code integer
---@field stdout string
---@field stderr string

---Runs a program to its end.
---@param command string[]
---@param opts? { cwd: string?, env: table<string, string>?, timeout_ms: integer?, on_wait: fun(line: string)? } `on_wait` is called all
---  the time, with the last line of stderr
---@return cursor_agent.install.Output?, string? problem when it could not be started or did not end by itself
function M.run(command, opts)
  opts = opts or {}
  local result ---@type vim.SystemCompleted?
  local errors = {} ---@type string[]
  local started, job = pcall(vim.system, command, {
    cwd = opts.cwd,
    env = opts.env,
    timeout = opts.timeout_ms,
    stderr = function(_, data)
      errors[#errors + 1] = data
    end,
  }, function(completed)
    result = completed
  end)
  if not started then
    return nil, ("%s could not be run: %s"):format(command[1], (tostring(job):gsub("^.-:%d+: ", "")))
  end
  local heard, line = 0, ""
  local watched, problem = pcall(function()
    while not result do
      vim.uv.sleep(LOOK_MS)
      if opts.on_wait then
        if #errors > heard then
          heard = #errors
          line = vim.trim(table.concat(errors)):match("[^\r\n]*$") or line
        end
        opts.on_wait(line)
      end
      yield()
    end
  end)
  if not watched or not result then
    job:kill("sigterm")
    error(problem, 0)
  end
  local output = { code = result.code, stdout = result.stdout or "", stderr = table.concat(errors) }
  if result.code == 124 and opts.timeout_ms then
    return nil, ("%s did not finish within %d s"):format(command[1], opts.timeout_ms / 1000)
  elseif result.signal ~= 0 then
    return nil, ("%s was killed by signal %d"):format(command[1], result.signal)
  end
  return output
end

---Runs a task and waits for it; Neovim goes on drawing.
---@generic T
---@param work fun(): T
---@param say fun(message: string)
---@return T
function M.blocking(work, say)
  local thread = coroutine.create(work)
  while true do
    local ok, value = coroutine.resume(thread)
    if not ok then
      error(value, 0)
    elseif coroutine.status(thread) == "dead" then
      return value
    elseif value then
      say(value)
    end
    vim.wait(STEP_MS)
  end
end

---Runs a task beside everything else.
---@param work fun(): any
---@param say fun(message: string)
---@param done fun(ok: boolean, value: any) the task's value, or why it failed
function M.background(work, say, done)
  local thread = coroutine.create(work)
  local timer = assert(vim.uv.new_timer())
  timer:start(
    0,
    STEP_MS,
    vim.schedule_wrap(function()
      -- Steps that were scheduled before the timer was closed may still come.
      if coroutine.status(thread) ~= "suspended" then
        return
      end
      local ok, value = coroutine.resume(thread)
      if not ok or coroutine.status(thread) == "dead" then
        timer:close()
        done(ok, value)
      elseif value then
        say(value)
      end
    end)
  )
end

return M
