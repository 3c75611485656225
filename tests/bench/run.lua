-- `nvim -l tests/bench/run.lua [PATTERN]`: plays each scenario by the plugin and by a plain client, and prints figures.

local root = vim.fs.dirname(vim.fs.dirname(vim.fs.dirname(vim.fn.fnamemodify(arg[0], ":p"))))
package.path = ("%s/tests/?.lua;%s/tests/?/init.lua;%s"):format(root, root, package.path)

local Rpc = require("harness.rpc")
local scenarios = require("bench.scenarios")

---One run may take so long; the baseline needs it.
local RUN_MS = 300000

---@param one bench.Scenario
---@param client "plugin"|"baseline"
---@param dir string
---@return table figures
local function run(one, client, dir)
  local work = dir .. "/work"
  vim.fn.mkdir(work, "p")
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

---@param figures table
---@return string
local function row(figures)
  if figures.error then
    return figures.error
  end
  return ("%9.0f ms %9.0f ms %9.1f ms %9.1f ms %9.0f ms %6d %8.1f MB%s"):format(
    figures.total_ms,
    figures.cpu_ms or 0,
    figures.longest_ms,
    figures.longest_cpu_ms or 0,
    figures.over_ms,
    figures.over,
    figures.memory_mb,
    figures.complete and "" or "  incomplete"
  )
end

local dir = assert(vim.uv.fs_mkdtemp(assert(vim.uv.os_tmpdir()) .. "/cursor-agent-bench-XXXXXX"))
print(vim.split(vim.fn.execute("version"), "\n", { trimempty = true })[1])
print(
  ("%-38s %-9s %12s %12s %12s %12s %12s %6s %11s"):format(
    "",
    "",
    "total",
    "main thread",
    "longest gap",
    "of it on CPU",
    "in gaps >16",
    "gaps",
    "memory"
  )
)
for _, one in ipairs(scenarios.all()) do
  if one.name:find(arg[1] or "", 1, true) then
    for _, client in ipairs({ "plugin", "baseline" }) do
      if not arg[2] or arg[2] == client then
        print(("%-38s %-9s %s"):format(client == "plugin" and one.name or "", client, row(run(one, client, dir))))
      end
    end
  end
end
vim.fn.delete(dir, "rf")
