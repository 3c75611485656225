-- However Neovim ends, what an agent started in a session of its own ends too; an agent that closes a pipe is named.

local T = require("harness")

-- How processes leave the group they were started in.
local WAYS = {
  ["a session of its own"] = "setsid sleep 1000",
  ["a daemon whose parents are gone"] = "setsid sh -c '(sleep 1000 &)'",
  ["one that ignores SIGTERM"] = "setsid sh -c 'trap \"\" TERM; while :; do sleep 1; done'",
}

local ENDS = {
  [":qa!"] = function(child)
    child:keys(":qa!<CR>")
  end,
  ["SIGTERM"] = function(child)
    child:kill("sigterm")
  end,
  ["SIGHUP"] = function(child)
    child:kill("sighup")
  end,
  ["SIGKILL"] = function(child)
    child:kill("sigkill")
  end,
}

---@param child harness.Child
---@param steps table[]
local function start_turn(child, steps)
  -- The shells are children of the agent, and orphans once they have ended.
  steps = vim.list_extend(vim.deepcopy(steps), { { text = "in the middle" }, { wait_cancel = true } })
  child:use(T.agent({ turns = { steps } }))
  child:prompt("hello")
  child:wait_screen("in the middle")
end

---@param count integer
local function wait_sleepers(child, count)
  child:wait(function()
    local found = vim.tbl_filter(function(process)
      return vim.startswith(process.command, "sleep 1")
    end, T.processes())
    return #found >= count
  end, "what the agent starts")
end

for end_name, leave in vim.spairs(ENDS) do
  for way, script in vim.spairs(WAYS) do
    T.case(("%s ends %s of an agent's"):format(end_name, way), function(child)
      start_turn(child, { { spawn = { "sh", "-c", script } } })
      wait_sleepers(child, 1)
      leave(child)
      child:wait_exit()
      T.expect_no_process()
    end)
  end
  T.case(("%s ends a session of its own of a command's"):format(end_name), function(child)
    local command = { command = "sh", args = { "-c", "setsid sleep 1000 & wait" }, sessionId = "${session}" }
    start_turn(child, { { request = { method = "terminal/create", params = command } } })
    wait_sleepers(child, 1)
    leave(child)
    child:wait_exit()
    T.expect_no_process()
  end)
end

-- Neovim goes on, and nothing but the mark in its environment says whose a daemon is.
for _, command in ipairs({ "stop", "restart" }) do
  for way, script in vim.spairs(WAYS) do
    T.case((":CursorAgent %s ends %s of an agent's"):format(command, way), function(child)
      local steps = { { spawn = { "sh", "-c", script } }, { text = "in the middle" }, { wait_cancel = true } }
      child:use(T.agent({ runs = { { turns = { steps } }, vim.empty_dict() } }))
      child:prompt("hello")
      child:wait_screen("in the middle")
      wait_sleepers(child, 1)
      child:cmd("CursorAgent " .. command)
      child:wait(function()
        return #vim.tbl_filter(function(process)
          return vim.startswith(process.command, "sleep 1")
        end, T.processes()) == 0
      end, "the sleeper to end")
    end)
  end
end

---The process that runs a command. One without our mark is not among those of the case.
---@param command string
---@return integer?
local function pid_of(command)
  for pid in vim.fs.dir("/proc") do
    local file = pid:find("^%d+$") and io.open("/proc/" .. pid .. "/cmdline", "rb")
    local found = file and file:read("*a") == command:gsub(" ", "\0") .. "\0"
    if file then
      file:close()
    end
    if found then
      return tonumber(pid) --[[@as integer]]
    end
  end
end

-- Only its parents lead to it, and they end first.
for _, how in ipairs({ "qall!", "CursorAgent stop", "CursorAgent restart" }) do
  for _, whose in ipairs({ "agent", "command" }) do
    T.case((":%s ends a session without our mark, of the %s"):format(how, whose), function(child)
      local sleep = ("sleep %d.%d"):format(1000 + #how, vim.uv.hrtime() % 1000000)
      local script = "env -i setsid " .. sleep
      local create = { command = "sh", args = { "-c", script .. " & wait" }, sessionId = "${session}" }
      local step = { request = { method = "terminal/create", params = create } }
      if whose == "agent" then
        step = { spawn = { "sh", "-c", "exec " .. script } }
      end
      child:use(T.agent({ runs = { { turns = { { step, { wait_cancel = true } } } }, vim.empty_dict() } }))
      child:prompt("hello")
      local pid = child:wait(function()
        return pid_of(sleep)
      end, "what is started")
      child:keys(":" .. how .. "<CR>")
      local ended = vim.wait(10000, function()
        return pid_of(sleep) == nil
      end, 50)
      if not ended then
        vim.uv.kill(pid, "sigkill")
      end
      T.ok(ended, "it lived on")
    end)
  end
end

local AGENT = [[
id() { printf %%s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/'; }
answer() { read -r line; printf '{"jsonrpc":"2.0","id":%%s,"result":%%s}\n' "$(id)" "$1"; }
answer '{"protocolVersion":1}'
answer '{"sessionId":"s"}'
read -r line
exec %s
exec sleep 1000
]]

for pipe, closing in pairs({ stdin = "0<&-", stdout = "1>&-" }) do
  T.case(("an agent that closes its %s is named, and its prompt fails"):format(pipe), { width = 120 }, function(child)
    local command = { "sh", "-c", AGENT:format(closing) }
    child:lua([[require("cursor_agent").setup({ agent = "odd", agents = { odd = { command = ... } } })]], command)
    child:prompt("hello")
    child:wait_state("failed")
    child:wait_screen(("odd: the agent closed its %s while running"):format(pipe))
    T.contains(child:status().error, ":CursorAgent restart")
    T.eq(child:quit("qa!").code, 0)
    T.expect_no_process()
  end)
end
