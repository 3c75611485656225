-- Runs the end-to-end cases: `nvim -l tests/run.lua [--tally FILE] [PATTERN]`, on the Neovim that runs it.
--
-- Each file of tests/cases is run by a worker of its own, a few at a time. A worker says on stdout, one JSON object a
-- line, when it starts a case and how it ended; this process prints that, and ends a worker that says nothing for too long.

local root = vim.fs.dirname(vim.fs.dirname(vim.fn.fnamemodify(arg[0], ":p")))
package.path = ("%s/tests/?.lua;%s/tests/?/init.lua;%s"):format(root, root, package.path)

-- Beyond the deadline of any case: reached only by a case that never comes back.
local SILENCE_MS = 150000

---@param message table
local function tell(message)
  io.stdout:write(vim.json.encode(message) .. "\n")
  io.stdout:flush()
end

---@param file string
---@param from integer number of the first case to run
---@param pattern string
local function work(file, from, pattern)
  local T = require("harness")
  local name = vim.fs.basename(file):gsub("_spec%.lua$", "")
  local chunk, problem = loadfile(file)
  local ok = chunk ~= nil
  if chunk then
    ok, problem = xpcall(chunk, debug.traceback)
  end
  if not ok then
    return tell({ case = name, passed = false, ms = 0, report = tostring(problem) })
  end
  for index, case in ipairs(T.cases) do
    local title = ("%s: %s"):format(name, case.name)
    if index >= from and title:lower():find(pattern:lower(), 1, true) then
      tell({ case = title, index = index, needs_ms = case.opts.needs_ms })
      local missing = case.opts.needs and case.opts.needs()
      if missing then
        tell({ case = title, skipped = missing })
      else
        local started = vim.uv.hrtime()
        local passed, report = T.run(case)
        local ms = math.floor((vim.uv.hrtime() - started) / 1e6)
        tell({ case = title, passed = passed, ms = ms, report = report })
      end
    end
  end
end

local passed, failed, skipped = 0, 0, 0

---@param result { case: string, passed: boolean?, ms: integer?, report: string?, skipped: string? }
local function print_result(result)
  if result.skipped then
    skipped = skipped + 1
    io.stdout:write(("skip %s: %s\n"):format(result.case, result.skipped))
    io.stdout:flush()
    return
  end
  if result.passed then
    passed = passed + 1
  else
    failed = failed + 1
  end
  local out = { ("%s %s (%d ms)"):format(result.passed and "ok  " or "FAIL", result.case, result.ms) }
  if result.report then
    out[#out + 1] = (result.report:gsub("[^\n]+", "     %0"))
  end
  io.stdout:write(table.concat(out, "\n") .. "\n")
  io.stdout:flush()
end

---Runs the cases of one file in a worker, from a case on; goes on after a case that took the worker down.
---@param file string
---@param from integer
---@param pattern string
---@param on_done fun()
local function run_file(file, from, pattern, on_done)
  local running ---@type { case: string, index: integer, needs_ms: integer? }?
  local rest, errors = "", ""
  local watch = assert(vim.uv.new_timer())
  local job ---@type vim.SystemObj
  local function rearm()
    watch:start(SILENCE_MS + (running and running.needs_ms or 0), 0, function()
      job:kill("sigkill")
    end)
  end
  local function line(text)
    local ok, message = pcall(vim.json.decode, text)
    if not ok or type(message) ~= "table" then
      errors = errors .. text .. "\n"
    elseif message.passed == nil and not message.skipped then
      running = message
    else
      running = nil
      print_result(message)
    end
  end
  local command =
    { vim.v.progpath, "--clean", "-l", root .. "/tests/run.lua", "--worker", file, tostring(from), pattern }
  job = vim.system(command, {
    stdout = function(_, data)
      rest = rest .. (data or "")
      for text in rest:gmatch("([^\n]*)\n") do
        line(text)
      end
      rearm()
      rest = rest:match("[^\n]*$") or ""
    end,
    stderr = function(_, data)
      errors = errors .. (data or "")
    end,
  }, function(result)
    watch:close()
    if running or result.code ~= 0 then
      local how = result.signal ~= 0 and "signal " .. result.signal or "exit code " .. result.code
      local name = running and running.case or vim.fs.basename(file)
      print_result({ case = name, passed = false, ms = 0, report = ("the worker ended: %s\n%s"):format(how, errors) })
      if running then
        return run_file(file, running.index + 1, pattern, on_done)
      end
    end
    on_done()
  end)
  rearm()
end

---@param pattern string
---@param tally string?
local function run(pattern, tally)
  local files = vim.fn.glob(root .. "/tests/cases/*_spec.lua", true, true)
  local parallel = math.max(1, math.min(tonumber(vim.env.JOBS) or 2, #files))
  local left = #files
  local started = vim.uv.hrtime()
  local function next_file()
    local file = table.remove(files, 1)
    if file then
      run_file(file, 1, pattern, function()
        left = left - 1
        next_file()
      end)
    end
  end
  for _ = 1, parallel do
    next_file()
  end
  while left > 0 do
    vim.wait(1000, function()
      return left == 0
    end, 20)
  end
  if passed + failed + skipped == 0 then
    print_result({ case = ("no case is called %q"):format(pattern), passed = false, ms = 0 })
  end
  if tally then
    local file = assert(io.open(tally, "ab"))
    file:write(("%d %d %d\n"):format(passed, failed, skipped))
    file:close()
    local seconds = (vim.uv.hrtime() - started) / 1e9
    io.stdout:write(("%d of %d cases in %.1f s\n"):format(passed, passed + failed + skipped, seconds))
  else
    local more = skipped > 0 and (", %d skipped"):format(skipped) or ""
    io.stdout:write(("%d passed, %d failed%s\n"):format(passed, failed, more))
  end
  io.stdout:flush()
  os.exit(failed == 0 and 0 or 1)
end

if arg[1] == "--worker" then
  work(arg[2], tonumber(arg[3]) --[[@as integer]], arg[4] or "")
elseif arg[1] == "--tally" then
  run(arg[3] or "", arg[2])
else
  run(arg[1] or "")
end
