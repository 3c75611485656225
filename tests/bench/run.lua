-- `nvim -l tests/bench/run.lua [PATTERN]`: plays each scenario by the plugin and by a plain client, and prints figures.

local root = vim.fs.dirname(vim.fs.dirname(vim.fs.dirname(vim.fn.fnamemodify(arg[0], ":p"))))
package.path = ("%s/tests/?.lua;%s/tests/?/init.lua;%s"):format(root, root, package.path)

local Rpc = require("harness.rpc")
local scenarios = require("bench.scenarios")

---One run may take so long; the baseline needs it.
local RUN_MS = 300000

---Each scenario is played so often, by each client.
local RUNS = 3

---@param one bench.Scenario
---@param client "plugin"|"baseline"
---@param dir string
---@return table figures
local function run(one, client, dir)
  local work = dir .. "/work"
  vim.fn.mkdir(work, "p")
  if one.file then
    local file = assert(io.open(("%s/%s"):format(work, one.file.name), "wb"))
    file:write(one.file.text)
    file:close()
  end
  local scenario, out = dir .. "/scenario.json", dir .. "/figures.json"
  os.remove(out)
  local file = assert(io.open(scenario, "wb"))
  file:write(vim.json.encode(one.scenario))
  file:close()
  local job = {
    client = client,
    command = { root .. "/lib/cursor-agent-demo", "play", scenario },
    cwd = work,
    load = one.load,
    lines = one.lines,
    file = one.file and one.file.name,
    hunks = one.hunks,
    typed = one.typed,
    out = out,
    root = root,
  }
  local env = {
    HOME = dir,
    PATH = vim.env.PATH,
    LANG = "C.UTF-8",
    TERM = "xterm-256color",
    TMPDIR = vim.env.TMPDIR or "/tmp",
    XDG_RUNTIME_DIR = dir,
    BENCH_JOB = vim.json.encode(job),
  }
  local rpc = Rpc.spawn({ vim.v.progpath, "--embed", "--clean", "-u", root .. "/tests/bench/measure.lua" }, {
    env = env,
    cwd = work,
    on_notification = function() end,
  })
  rpc:call(5000, "nvim_ui_attach", 160, 48, { rgb = true, ext_linegrid = true })
  rpc:wait_exit(RUN_MS)
  rpc:close()
  local result = io.open(out, "rb")
  if not result then
    return { error = "no figures: " .. (rpc:gone() or "it took too long") .. " " .. rpc.stderr }
  end
  local text = result:read("*a")
  result:close()
  local figures = vim.json.decode(text)
  return figures
end

---The run in which the machine did least beside it. What the client itself causes is in every one.
---@param one bench.Scenario
---@param client "plugin"|"baseline"
---@param dir string
---@return table figures
local function quietest(one, client, dir)
  local best ---@type table?
  for _ = 1, RUNS do
    local figures = run(one, client, dir)
    if figures.error or figures.complete == false then
      return figures
    end
    if not best or figures.longest_ms < best.longest_ms then
      best = figures
    end
  end
  return assert(best)
end

---@param ms number?
---@return string
local function milliseconds(ms)
  return ms and ("%.1f ms"):format(ms) or "?"
end

---The columns: heading, and what of the figures stands there.
---@type { [1]: string, [2]: fun(figures: table): string }[]
local COLUMNS = {
  {
    "total",
    function(f)
      return milliseconds(f.total_ms)
    end,
  },
  {
    "main thread",
    function(f)
      return milliseconds(f.cpu_ms)
    end,
  },
  {
    "longest gap",
    function(f)
      return milliseconds(f.longest_ms)
    end,
  },
  {
    "on CPU",
    function(f)
      return milliseconds(f.longest_cpu_ms)
    end,
  },
  {
    "in gaps >16",
    function(f)
      return milliseconds(f.over_ms)
    end,
  },
  {
    "on CPU",
    function(f)
      return milliseconds(f.over_cpu_ms)
    end,
  },
  {
    "memory",
    function(f)
      return ("%.1f MB"):format(f.memory_mb)
    end,
  },
}

---@param text fun(column: { [1]: string, [2]: fun(figures: table): string }): string
---@return string
local function row(text)
  return table.concat(
    vim.tbl_map(function(column)
      return ("%12s"):format(text(column))
    end, COLUMNS),
    " "
  )
end

local dir = assert(vim.uv.fs_mkdtemp(assert(vim.uv.os_tmpdir()) .. "/cursor-agent-bench-XXXXXX"))
print(vim.split(vim.fn.execute("version"), "\n", { trimempty = true })[1])
print(("%-38s %-9s %s"):format(
  "",
  "",
  row(function(column)
    return column[1]
  end)
))
local blocked = {} ---@type table<string, { all: number, on_cpu: number }>
for _, one in ipairs(scenarios.all()) do
  if one.name:find(arg[1] or "", 1, true) then
    local clients = one.hunks and { "plugin" } or { "plugin", "baseline" } ---@type ("plugin"|"baseline")[]
    for _, client in ipairs(clients) do
      if not arg[2] or arg[2] == client then
        local figures = quietest(one, client, dir)
        local so_far = blocked[client] or { all = 0, on_cpu = 0 }
        blocked[client] = {
          all = so_far.all + (figures.over_ms or 0),
          on_cpu = so_far.on_cpu + (figures.over_cpu_ms or 0),
        }
        local text = figures.error or row(function(column)
          return column[2](figures)
        end)
        local note = figures.complete == false and "  incomplete" or ""
        print(("%-38s %-9s %s%s"):format(client == "plugin" and one.name or "", client, text, note))
      end
    end
  end
end
for client, time in vim.spairs(blocked) do
  local text = "in gaps above 16 ms, all scenarios, %-9s %12s, on CPU %s"
  print(text:format(client .. ":", milliseconds(time.all), milliseconds(time.on_cpu)))
end
vim.fn.delete(dir, "rf")
