-- `nvim -l tests/bench/run.lua [PATTERN]`: plays each scenario by the plugin and by a plain client, and prints figures.

local root = vim.fs.dirname(vim.fs.dirname(vim.fs.dirname(vim.fn.fnamemodify(arg[0], ":p"))))
package.path = ("%s/tests/?.lua;%s/tests/?/init.lua;%s"):format(root, root, package.path)

local Terminal = require("bench.terminal")
local parts = require("bench.parts")
local pipe = require("bench.pipe")
local scenarios = require("bench.scenarios")

---The most time for one run; the plain client needs it.
local RUN_MS = 300000

---Each scenario is played so often, by each client.
local RUNS = tonumber(vim.env.BENCH_RUNS) or 3

---Keys typed for each of the two figures.
local KEYS = 150

local dir = assert(vim.uv.fs_mkdtemp(assert(vim.uv.os_tmpdir()) .. "/cursor-agent-bench-XXXXXX"))
local work = dir .. "/work"
vim.fn.mkdir(work, "p")

---@param path string
---@param text string
local function write(path, text)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
end

---@param path string
---@return table?
local function read(path)
  local file = io.open(path, "rb")
  if not file then
    return nil
  end
  local text = file:read("*a")
  file:close()
  local ok, figures = pcall(vim.json.decode, text)
  return ok and figures --[[@as table?]] or nil
end

---@param one { scenario: table }
---@return string[]
local function command_of(one)
  local path = dir .. "/scenario.json"
  write(path, vim.json.encode(one.scenario))
  return { root .. "/lib/cursor-agent-demo", "play", path }
end

---@param job table
---@return bench.Terminal
local function start(job)
  os.remove(job.out)
  return Terminal.start({ vim.v.progpath, "--clean", "-u", root .. "/tests/bench/measure.lua" }, {
    env = {
      HOME = dir,
      PATH = vim.env.PATH,
      LANG = "C.UTF-8",
      TERM = "xterm-256color",
      TMPDIR = vim.env.TMPDIR or "/tmp",
      XDG_RUNTIME_DIR = dir,
      BENCH_JOB = vim.json.encode(job),
    },
    cwd = work,
  })
end

---@param job table
---@return table figures
local function run_job(job)
  job.cwd, job.out, job.root = work, dir .. "/figures.json", root
  local terminal = start(job)
  local code = terminal:wait_exit(RUN_MS)
  terminal:stop()
  return read(job.out) or { error = code and "no figures: it ended with " .. code or "no figures: it took too long" }
end

---What the plugin has stored under the bench's home.
local DATA = dir .. "/.local"

---@param one bench.Scenario
---@param client "plugin"|"baseline"
---@return table figures
local function run(one, client)
  if one.file then
    write(("%s/%s"):format(work, one.file.name), one.file.text)
  end
  -- A stored conversation is loaded another way than one that only the agent has.
  vim.fn.delete(DATA, "rf")
  return run_job({
    client = client,
    command = command_of(one),
    load = one.load,
    lines = one.lines,
    file = one.file and one.file.name,
    hunks = one.hunks,
    typed = one.typed,
    chats = one.chats,
  })
end

---The run in which the machine did least beside it. What the client itself causes is in every one.
---@param once fun(): table figures
---@return table figures
local function quietest(once)
  local best ---@type table?
  for _ = 1, RUNS do
    local figures = once()
    if figures.error or figures.complete == false then
      return figures
    end
    if not best or figures.longest_ms < best.longest_ms then
      best =
        vim.tbl_extend("force", figures, { total_ms = math.min(figures.total_ms, best and best.total_ms or math.huge) })
    else
      best.total_ms = math.min(figures.total_ms, best.total_ms)
    end
  end
  return assert(best)
end

---The shortest time in which the agent itself can say all of it.
---@param one bench.Scenario
---@return number ms
local function pipe_ms(one)
  local best = math.huge
  for _ = 1, RUNS do
    best = math.min(best, pipe.run(command_of(one), work, one.load) or math.huge)
  end
  return best
end

---How long `diff` takes for the file of a scenario and what becomes of it.
---@param one bench.Scenario
---@return number ms
local function diff_ms(one)
  local old, new = dir .. "/old.txt", dir .. "/new.txt"
  write(old, assert(one.file).text)
  write(new, one.scenario.turns[1][1].write_file.text)
  local best = math.huge
  for _ = 1, RUNS do
    local started = vim.uv.hrtime()
    vim.system({ "diff", old, new }, { text = true }):wait()
    best = math.min(best, (vim.uv.hrtime() - started) / 1e6)
  end
  return best
end

---How long `cat` takes for the output of a command.
---@param shell string
---@return number ms
local function cat_ms(shell)
  local best = math.huge
  for _ = 1, RUNS do
    local started = vim.uv.hrtime()
    vim.system({ "sh", "-c", shell .. " | cat >/dev/null" }):wait()
    best = math.min(best, (vim.uv.hrtime() - started) / 1e6)
  end
  return best
end

---@param ms number?
---@return string
local function milliseconds(ms)
  return ms and ("%.1f ms"):format(ms) or "?"
end

---@param ms number?
---@param other number?
---@return string
local function ratio(ms, other)
  return ms and other and ("%.2f"):format(ms / other) or ""
end

---The columns: heading, width, and what of the figures stands there.
---@type { [1]: string, [2]: integer, [3]: fun(figures: table): string }[]
local COLUMNS = {
  {
    "total",
    11,
    function(f)
      return milliseconds(f.total_ms)
    end,
  },
  {
    "/ cat",
    6,
    function(f)
      return ratio(f.total_ms, f.limit_ms)
    end,
  },
  {
    "/ plain",
    7,
    function(f)
      return ratio(f.total_ms, f.plain and f.plain.total_ms)
    end,
  },
  {
    "a chunk",
    7,
    function(f)
      return f.chunks and ("%.1f µs"):format(f.total_ms * 1000 / f.chunks) or ""
    end,
  },
  {
    "main thread",
    11,
    function(f)
      return milliseconds(f.cpu_ms)
    end,
  },
  {
    "/ plain",
    7,
    function(f)
      return ratio(f.cpu_ms, f.plain and f.plain.cpu_ms)
    end,
  },
  {
    "longest gap",
    11,
    function(f)
      return milliseconds(f.longest_ms)
    end,
  },
  {
    "on CPU",
    9,
    function(f)
      return milliseconds(f.longest_cpu_ms)
    end,
  },
  {
    "gaps >16",
    10,
    function(f)
      return milliseconds(f.over_ms)
    end,
  },
  {
    "on CPU",
    9,
    function(f)
      return milliseconds(f.over_cpu_ms)
    end,
  },
  {
    "memory",
    9,
    function(f)
      return ("%.1f MB"):format(f.memory_mb)
    end,
  },
}

---@param text fun(column: { [1]: string, [2]: integer, [3]: fun(figures: table): string }): string
---@return string
local function row(text)
  local cells = {}
  for i, column in ipairs(COLUMNS) do
    local cell = text(column)
    cells[i] = (" "):rep(column[2] - vim.fn.strdisplaywidth(cell)) .. cell
  end
  return table.concat(cells, " ")
end

---@param one bench.Scenario
---@return table<string, table> figures by client
local function play(one)
  local found = {}
  if not (one.hunks or one.alone) and arg[2] ~= "plugin" then
    found.baseline = quietest(function()
      return run(one, "baseline")
    end)
  end
  found.plugin = quietest(function()
    return run(one, "plugin")
  end)
  found.plugin.plain = found.baseline
  for _, figures in pairs(found) do
    figures.chunks = one.chunks
  end
  if one.hunks then
    found.plugin.limit_ms, found.plugin.limit = diff_ms(one), "diff"
  elseif not one.chats then
    local cat = one.shell and cat_ms(one.shell) or pipe_ms(one)
    found.plugin.limit_ms = cat
    if found.baseline then
      found.baseline.limit_ms = cat
    end
  end
  return found
end

---@param part bench.Part
---@return table figures
local function play_part(part)
  vim.fn.delete(DATA, "rf")
  local cloud = parts.cloud(root, part)
  local command = command_of({ scenario = part.fill and part.fill.scenario or { turns = {} } })
  local common = {
    command = command,
    load = part.load,
    lines = part.lines,
    chats = part.fill and part.fill.chats,
    needle = parts.NEEDLE,
    cloud = cloud and cloud.url,
  }
  local filled = part.fill and run_job(vim.tbl_extend("error", { client = "store" }, common)) or {}
  local figures = filled.error and filled
    or quietest(function()
      return run_job(vim.tbl_extend("error", { client = part.client }, common))
    end)
  if part.limit and not figures.error then
    figures.limit, figures.limit_ms = part.limit.name, math.huge
    for _ = 1, RUNS do
      local ms = part.limit.ms({ data = DATA, root = root, url = cloud and cloud.url })
      figures.limit_ms = math.min(figures.limit_ms, ms)
    end
  end
  if cloud then
    cloud:stop()
  end
  return figures
end

---How long a typed character takes to the screen: with nothing to do, and while text streams in.
local function keys()
  local one =
    { scenario = { turns = { { { chunks = { count = 12000, text = "word **${n}** and `code`, ", every_ms = 1 } } } } } }
  local out = dir .. "/figures.json"
  local terminal = start({ client = "keys", command = command_of(one), cwd = work, lines = 0, out = out, root = root })
  vim.wait(20000, function()
    return read(out) ~= nil
  end, 20)
  local function measure()
    local all, lost = {}, 0
    for _ = 1, KEYS do
      local ms = terminal:echo("ǂ")
      if ms then
        all[#all + 1] = ms
      else
        lost = lost + 1
      end
      vim.wait(15)
    end
    table.sort(all)
    return { p50 = all[math.ceil(#all * 0.5)], p99 = all[math.ceil(#all * 0.99)], lost = lost }
  end
  local idle = measure()
  terminal:type("\19")
  vim.wait(300)
  local streaming = measure()
  terminal:stop()
  for name, figures in vim.spairs({ ["idle"] = idle, ["while text streams in"] = streaming }) do
    local text = "a typed character, %-22s p50 %s, p99 %s%s"
    local lost = figures.lost > 0 and (", %d not seen"):format(figures.lost) or ""
    print(text:format(name .. ":", milliseconds(figures.p50), milliseconds(figures.p99), lost))
  end
end

print(vim.split(vim.fn.execute("version"), "\n", { trimempty = true })[1])
print(("%-38s %-9s %s"):format(
  "",
  "",
  row(function(column)
    return column[1]
  end)
))
local blocked = {} ---@type table<string, { all: number, on_cpu: number }>

---@param name string
---@param client string
---@param figures table
local function print_row(name, client, figures)
  local so_far = blocked[client] or { all = 0, on_cpu = 0 }
  blocked[client] = {
    all = so_far.all + (figures.over_ms or 0),
    on_cpu = so_far.on_cpu + (figures.over_cpu_ms or 0),
  }
  local text = figures.error or row(function(column)
    return column[3](figures)
  end)
  local note = figures.complete == false and "  incomplete" or figures.limit and "  / " .. figures.limit or ""
  print(("%-38s %-9s %s%s"):format(client == "plugin" and name or "", client, text, note))
  io.stdout:flush()
end

---@param name string
---@return boolean
local function is_wanted(name)
  return name:find(arg[1] or "", 1, true) ~= nil
end

for _, one in ipairs(scenarios.all()) do
  if is_wanted(one.name) then
    for client, figures in vim.spairs(play(one)) do
      print_row(one.name, client, figures)
    end
  end
end
for _, part in ipairs(parts.all(scenarios.reload())) do
  if is_wanted(part.name) then
    print_row(part.name, "plugin", play_part(part))
  end
end
for client, time in vim.spairs(blocked) do
  local text = "in gaps above 16 ms, all scenarios, %-9s %12s, on CPU %s"
  print(text:format(client .. ":", milliseconds(time.all), milliseconds(time.on_cpu)))
end
if is_wanted("keys") then
  keys()
end
local library = assert(vim.uv.fs_stat(root .. "/lib/cursor_agent.so"))
print(("the library: %.1f MB"):format(library.size / 1e6))
vim.fn.delete(dir, "rf")
