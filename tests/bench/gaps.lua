-- Watches the main loop: how long it was busy at a time, by the clock and on a processor.

local uv = vim.uv

local M = {}

---A frame of 60 Hz. A longer gap is a stutter.
local FRAME_MS = 16

---Time the main thread has had a processor, where the system tells. On a busy machine gaps grow by waiting for one.
---@return number?
function M.main_thread_ns()
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
function M.watch()
  local timer = assert(uv.new_timer())
  local last, last_cpu = uv.hrtime(), M.main_thread_ns()
  local longest, longest_cpu, over_ms, over_cpu_ms, over = 0.0, 0.0, 0.0, 0.0, 0 ---@type number, number, number, number, integer
  timer:start(1, 1, function()
    local now, cpu = uv.hrtime(), M.main_thread_ns()
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
    last, last_cpu = uv.hrtime(), M.main_thread_ns()
  end)
  return function()
    timer:close()
    return {
      longest_ms = longest,
      longest_cpu_ms = last_cpu and longest_cpu,
      over_ms = over_ms,
      over_cpu_ms = last_cpu and over_cpu_ms,
      over = over,
    }
  end
end

return M
