-- Runs in the Neovim that is measured: plays one scenario, by the plugin or by the baseline, and writes the figures down.

local uv = vim.uv

---A frame of 60 Hz. A longer gap is a stutter.
local FRAME_MS = 16

local job = vim.json.decode(assert(vim.env.BENCH_JOB)) ---@type { client: string, command: string[], cwd: string, load: string?, lines: integer, file: string?, hunks: integer?, typed: boolean?, out: string, root: string }
vim.opt.runtimepath:prepend(job.root)
vim.o.swapfile = false
vim.o.termguicolors = true

local finished = false

---@param figures table
local function finish(figures)
  if finished then
    return
  end
  finished = true
  local file = assert(io.open(job.out, "wb"))
  file:write(vim.json.encode(figures))
  file:close()
  vim.cmd("qall!")
end

---Time the main thread has had a processor, where the system tells. On a busy machine gaps grow by waiting for one.
---@return number?
local function main_thread_ns()
  local file = io.open("/proc/thread-self/schedstat", "rb")
  if not file then
    return nil
  end
  local ns = tonumber(file:read("*a"):match("^%d+"))
  file:close()
  return ns
end

---Watches the main loop: a timer of one millisecond cannot fire while something else runs.
---@return fun(): { longest_ms: number, longest_cpu_ms: number?, over_ms: number, over_cpu_ms: number?, over: integer }
local function watch_gaps()
  local timer = assert(uv.new_timer())
  local last, last_cpu = uv.hrtime(), main_thread_ns()
  local longest, longest_cpu, over_ms, over_cpu_ms, over = 0.0, 0.0, 0.0, 0.0, 0 ---@type number, number, number, number, integer
  timer:start(1, 1, function()
    local now, cpu = uv.hrtime(), main_thread_ns()
    local gap = (now - last) / 1e6
    longest = math.max(longest, gap)
    local on_cpu = cpu and last_cpu and (cpu - last_cpu) / 1e6
    if gap > FRAME_MS then
      over_ms, over = over_ms + gap, over + 1
    end
    longest_cpu = math.max(longest_cpu, on_cpu or 0)
    if (on_cpu or gap) > FRAME_MS then
      over_cpu_ms = over_cpu_ms + (on_cpu or gap)
    end
    last, last_cpu = uv.hrtime(), main_thread_ns()
  end)
  return function()
    timer:stop()
    return {
      longest_ms = longest,
      longest_cpu_ms = last_cpu and longest_cpu,
      over_ms = over_ms,
      over_cpu_ms = last_cpu and over_cpu_ms,
      over = over,
    }
  end
end

---@return integer
local function lines_of_largest_buffer()
  local most = 0
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    most = math.max(most, vim.api.nvim_buf_is_loaded(buf) and vim.api.nvim_buf_line_count(buf) or 0)
  end
  return most
end

---@param begin fun(on_end: fun())
local function measure(begin)
  collectgarbage()
  local memory = uv.resident_set_memory() or 0
  local stop = watch_gaps()
  local started, cpu = uv.hrtime(), main_thread_ns()
  begin(function()
    -- What the last change drew is part of it.
    vim.schedule(function()
      vim.cmd.redraw()
      local total = (uv.hrtime() - started) / 1e6
      local gaps = stop()
      local used = main_thread_ns()
      local lines = lines_of_largest_buffer()
      finish({
        total_ms = total,
        cpu_ms = used and cpu and (used - cpu) / 1e6,
        longest_ms = gaps.longest_ms,
        longest_cpu_ms = gaps.longest_cpu_ms,
        over_ms = gaps.over_ms,
        over_cpu_ms = gaps.over_cpu_ms,
        over = gaps.over,
        memory_mb = ((uv.resident_set_memory() or 0) - memory) / 1024 / 1024,
        lines = lines,
        complete = job.client ~= "plugin" or lines >= job.lines,
      })
    end)
  end)
end

---@param condition fun(): boolean
---@param callback fun()
local function when(condition, callback)
  local timer = assert(uv.new_timer())
  timer:start(
    20,
    20,
    vim.schedule_wrap(function()
      if not timer:is_closing() and condition() then
        timer:close()
        callback()
      end
    end)
  )
end

---@param on_end fun()
local function when_still(on_end)
  -- A replay has no end of its own: it is over when nothing has come for a while. That while is not counted.
  local seen, since = -1, uv.now()
  when(function()
    local lines = lines_of_largest_buffer()
    if lines ~= seen then
      seen, since = lines, uv.now()
    end
    return lines >= job.lines and uv.now() - since > 500
  end, on_end)
end

---Whether every hunk is known and drawn.
---@return boolean
local function is_reviewed()
  local buf, signs = vim.fn.bufnr(job.file), vim.api.nvim_get_namespaces().cursor_agent_hunks
  local last = 100 * (job.hunks or 0) - 51
  return signs ~= nil
    and #vim.api.nvim_buf_get_extmarks(buf, signs, { last, 0 }, { last, -1 }, {}) > 0
    and #require("cursor_agent").hunks() == job.hunks
end

---@return boolean
local function is_coloured()
  return require("cursor_agent.colour.painter").idle()
end

local function with_plugin()
  local agent = require("cursor_agent")
  agent.setup({ agent = "bench", agents = { bench = { command = job.command } } })
  vim.api.nvim_create_autocmd("User", {
    pattern = "CursorAgentExit",
    callback = function(event)
      finish({ error = "the agent stopped: " .. (event.data.stderr or "") })
    end,
  })
  vim.api.nvim_create_autocmd("User", {
    pattern = "CursorAgentDecision",
    callback = function()
      -- Once the card is there, with its colours.
      vim.schedule(function()
        when(is_coloured, agent.accept)
      end)
    end,
  })
  if job.file then
    vim.cmd.edit(job.file)
    if job.typed then
      vim.api.nvim_buf_set_lines(0, 20, 21, false, { "typed" })
    end
  end
  -- The first chat loads the library and markdown's parsers, and starts the agent: that is not what is measured.
  assert(agent.open({ cwd = job.cwd }))
  vim.api.nvim_create_autocmd("User", {
    pattern = "CursorAgentReady",
    once = true,
    callback = function()
      when(is_coloured, function()
        measure(function(on_end)
          if job.hunks then
            when(is_reviewed, on_end)
            assert(agent.prompt("go"))
          elseif job.load then
            assert(agent.load(job.load, { cwd = job.cwd }))
            when_still(on_end)
          else
            vim.api.nvim_create_autocmd("User", { pattern = "CursorAgentTurnEnd", once = true, callback = on_end })
            assert(agent.prompt("go"))
          end
        end)
      end)
    end,
  })
end

local function with_baseline()
  package.path = job.root .. "/tests/?.lua;" .. package.path
  measure(function(on_end)
    require("bench.baseline").run(job.command, job.cwd, job.load, on_end)
  end)
end

vim.api.nvim_create_autocmd("VimEnter", {
  callback = vim.schedule_wrap(function()
    local ok, problem = xpcall(job.client == "plugin" and with_plugin or with_baseline, debug.traceback)
    if not ok then
      finish({ error = tostring(problem) })
    end
  end),
})
