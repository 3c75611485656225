-- `nvim -l tests/soak/run.lua [MINUTES]`: soaks one Neovim, prints a line for each round, and fails when something grows.

local root = vim.fs.dirname(vim.fs.dirname(vim.fs.dirname(vim.fn.fnamemodify(arg[0], ":p"))))
package.path = ("%s/tests/?.lua;%s/tests/?/init.lua;%s"):format(root, root, package.path)

local Rpc = require("harness.rpc")

---A frame of 60 Hz, in time of the main thread on a processor.
local FRAME_MS = 16
---What memory may grow by between the second quarter of the rounds and the last: caches fill, fragments stay.
local GROWTH = 1.1
local GROWTH_MB = 16
---What may be more in the last quarter of the rounds: the runtime's pool of threads for the disk comes and goes.
local SLACK = { fds = 4, buffers = 2, threads = 12 }

local minutes = tonumber(arg[1]) or 30
local seed = tonumber(vim.env.SOAK_SEED) or os.time() % 100000

local long = { { chunks = { count = 400, text = "word **${n}** and `code`, ", every_ms = 1 } } }
local stream = {
  { thought = "First a thought.\n" },
  {
    ["repeat"] = {
      times = 5,
      steps = {
        { text = "## Part\n\n" },
        { chunks = { count = 300, text = "word ${n} " } },
        { text = "\n\n```lua\nlocal x = ${n}\n```\n\n" },
      },
    },
  },
}
local tools = {
  {
    ["repeat"] = {
      times = 30,
      steps = {
        {
          update = {
            sessionUpdate = "tool_call",
            toolCallId = "t${n}",
            title = "Call ${n}",
            kind = "execute",
            status = "in_progress",
          },
        },
        {
          update = {
            sessionUpdate = "tool_call_update",
            toolCallId = "t${n}",
            status = "completed",
            content = { { type = "content", content = { type = "text", text = ("line of output\n"):rep(30) } } },
          },
        },
      },
    },
  },
}
local edit = {
  { write_file = { path = "soak.txt", text = "one\n${prompt}\nthree\n" } },
  {
    update = {
      sessionUpdate = "tool_call",
      toolCallId = "e",
      title = "Edit",
      kind = "edit",
      status = "completed",
      content = { { type = "diff", path = "${cwd}/soak.txt", oldText = "one\n", newText = "one\n${prompt}\nthree\n" } },
    },
  },
}
local ask = {
  { permission = { toolCall = { toolCallId = "p", title = "`make test`", kind = "execute" } } },
  { text = "Done.\n" },
}
local wait = { { text = "Waiting.\n" }, { wait_cancel = true } }
local question = {
  {
    request = {
      method = "cursor/ask_question",
      params = {
        toolCallId = "q",
        title = "Which?",
        questions = {
          { id = "a", prompt = "One?", options = { { id = "y", label = "Yes" }, { id = "n", label = "No" } } },
        },
      },
    },
  },
  { text = "Thanks.\n" },
}
local crash = { { text = "About to go." }, { exit = 3 } }
local scenario = { turns = {} }
for _ = 1, 20 do
  vim.list_extend(scenario.turns, { stream, ask, tools, long, edit, question, wait, stream, crash })
end

local dir = assert(vim.uv.fs_mkdtemp(assert(vim.uv.os_tmpdir()) .. "/cursor-agent-soak-XXXXXX"))
local work, out = dir .. "/work", dir .. "/figures"
vim.fn.mkdir(work, "p")
vim.fn.writefile({ vim.json.encode(scenario) }, dir .. "/scenario.json")
vim.fn.writefile({}, out)

local job = {
  root = root,
  agent = { root .. "/lib/cursor-agent-demo", "play", dir .. "/scenario.json" },
  cwd = work,
  minutes = minutes,
  seed = seed,
  out = out,
}
local rpc = Rpc.spawn({ vim.v.progpath, "--embed", "--clean", "-u", root .. "/tests/soak/play.lua" }, {
  env = {
    HOME = dir,
    PATH = vim.env.PATH,
    LANG = "C.UTF-8",
    TERM = "xterm-256color",
    TMPDIR = vim.env.TMPDIR or "/tmp",
    XDG_RUNTIME_DIR = dir,
    SOAK_JOB = vim.json.encode(job),
  },
  cwd = work,
  on_notification = function() end,
})
rpc:call(5000, "nvim_ui_attach", 160, 48, { rgb = true, ext_linegrid = true })

local version = vim.split(vim.fn.execute("version"), "\n", { trimempty = true })[1]
print(("%s, %s minutes, SOAK_SEED=%d"):format(version, minutes, seed))
print("  turns  ended asked cancelled crashed   memory      Lua  fds threads  longest gap   on CPU")

local rounds, problems = {}, {}
local over, seen = false, 0
while not over and not rpc:gone() do
  vim.wait(1000, function()
    return rpc:gone() ~= nil
  end, 100)
  local lines = vim.fn.readfile(out)
  for i = seen + 1, #lines do
    local found = vim.json.decode(lines[i])
    if found.failed then
      problems[#problems + 1] = found.failed
      over = true
    elseif found.finished then
      over = true
    else
      rounds[#rounds + 1] = found
      print(
        ("%7d %6d %5d %9d %7d %5.1f MB %5.1f MB %4d %7d %9.1f ms %5.1f ms"):format(
          found.turns,
          found.ended,
          found.answered,
          found.cancelled,
          found.crashed,
          found.memory_mb,
          found.lua_mb,
          found.fds,
          found.threads,
          found.longest_ms,
          found.longest_cpu_ms or found.longest_ms
        )
      )
      io.stdout:flush()
    end
  end
  seen = #lines
end
if not over then
  problems[#problems + 1] = "Neovim ended: " .. tostring(rpc:gone()) .. " " .. rpc.stderr
end
rpc:wait_exit(10000)
rpc:close()

---The smallest of a figure in the rounds from one part of the run to another.
---@param name string
---@param from number
---@param to number
---@return number
local function least(name, from, to)
  local found = math.huge
  for i = math.max(1, math.ceil(#rounds * from)), math.max(1, math.floor(#rounds * to)) do
    found = math.min(found, rounds[i] and rounds[i][name] or math.huge)
  end
  return found
end

for _, name in ipairs({ "memory_mb", "lua_mb" }) do
  local early, late = least(name, 0.25, 0.5), least(name, 0.75, 1)
  if late > early * GROWTH + GROWTH_MB then
    problems[#problems + 1] = ("%s grew from %.1f to %.1f"):format(name, early, late)
  end
end
for name, slack in pairs(SLACK) do
  local early, late = least(name, 0.25, 0.5), least(name, 0.75, 1)
  if late > early + slack then
    problems[#problems + 1] = ("%s grew from %d to %d"):format(name, early, late)
  end
end
for i, found in ipairs(rounds) do
  local longest = found.longest_cpu_ms or found.longest_ms
  if longest > FRAME_MS then
    problems[#problems + 1] = ("round %d: a gap of %.1f ms on the CPU"):format(i, longest)
  end
end
for _, problem in ipairs(problems) do
  print("FAIL " .. problem)
end
print(("%d rounds, %d problems"):format(#rounds, #problems))
vim.fn.delete(dir, "rf")
os.exit(#problems == 0 and 0 or 1)
