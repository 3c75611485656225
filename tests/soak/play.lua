-- Runs in the Neovim that is soaked: rounds of ten chats that stream, ask, are cancelled and crash, and what is left after each.

local uv = vim.uv
local job = vim.json.decode(assert(vim.env.SOAK_JOB)) ---@type { root: string, agent: string[], cwd: string, minutes: number, seed: integer, out: string }
vim.opt.runtimepath:prepend(job.root)
package.path = job.root .. "/tests/?.lua;" .. package.path
vim.o.swapfile = false

local gaps = require("bench.gaps")

---How many chats a round has.
local CHATS = 10
---How long a round prompts before it waits for the end of what it began.
local ROUND_MS = 15000
---A round that has not come to rest by then never will.
local REST_MS = 30000

local agent = require("cursor_agent")
local chats = require("cursor_agent.chat.registry")
local turns, ended, answered, cancelled, crashed = 0, 0, 0, 0, 0

math.randomseed(job.seed)

---@param line table
local function write(line)
  local file = assert(io.open(job.out, "ab"))
  file:write(vim.json.encode(line) .. "\n")
  file:close()
end

---@param what string
local function fail(what)
  write({ failed = what })
  vim.cmd("qall!")
end

---@param dir string
---@return integer
local function entries(dir)
  local count = 0
  for _ in vim.fs.dir(dir) do
    count = count + 1
  end
  return count
end

---What this process holds once nothing runs.
---@return table
local function sample()
  collectgarbage()
  collectgarbage()
  return {
    memory_mb = (uv.resident_set_memory() or 0) / 1024 / 1024,
    lua_mb = collectgarbage("count") / 1024,
    fds = entries("/proc/self/fd"),
    threads = entries("/proc/self/task"),
    buffers = #vim.api.nvim_list_bufs(),
  }
end

---Answers what is asked, at some time and in some way.
local function on_decision(event)
  local id = event.data.id
  vim.defer_fn(function()
    local how = math.random(4)
    local options = event.data.options or {}
    local option = options[math.random(math.max(1, #options))]
    local answer = how == 1 and { cancel = true } or option and { option = option.id } or { skip = true }
    if agent.answer(id, answer) then
      answered = answered + 1
    end
  end, math.random(0, 300))
end

---@param key integer
local function act(key)
  local status = agent.status(key)
  if not status then
    return
  end
  if status.state == "idle" then
    turns = turns + 1
    agent.prompt("turn " .. turns, { session = key, open = false })
    if math.random(8) == 1 then
      agent.prompt("and one more", { session = key, open = false })
    end
  elseif status.state == "running" and math.random(12) == 1 then
    cancelled = cancelled + 1
    agent.cancel(key)
  elseif status.state == "failed" or status.state == "stopped" then
    require("cursor_agent.agents.control").restart(assert(chats.get(key)))
  end
end

---Opens the chats of a round, one after the other, as a person would.
---@param on_open fun(keys: integer[])
local function open_chats(on_open)
  local keys = {} ---@type integer[]
  local function open_next()
    local number = #keys + 1
    local key, why = agent.new({ agent = "soak" .. number, cwd = job.cwd, open = number == 1, enter = false })
    if not key then
      return fail("new: " .. tostring(why))
    end
    keys[number] = key
    if number == CHATS then
      return on_open(keys)
    end
    vim.defer_fn(open_next, 20)
  end
  open_next()
end

---Closes them, one after the other.
---@param keys integer[]
---@param on_closed fun()
local function close_chats(keys, on_closed)
  local key = table.remove(keys)
  if not key then
    return on_closed()
  end
  local chat = chats.get(key)
  if chat then
    require("cursor_agent.chat").close(chat)
  end
  vim.defer_fn(function()
    close_chats(keys, on_closed)
  end, 20)
end

---@param keys integer[]
---@param on_rest fun()
local function round(keys, on_rest)
  local started = uv.now()
  local timer = assert(uv.new_timer())
  timer:start(
    100,
    40,
    vim.schedule_wrap(function()
      if timer:is_closing() then
        return
      end
      if uv.now() - started < ROUND_MS then
        local key = keys[math.random(CHATS)]
        act(key)
        if math.random(40) == 1 then
          agent.load(assert(agent.status(key)).session_id or "", { enter = false })
        end
        return
      end
      timer:close()
      close_chats(keys, on_rest)
    end)
  )
end

---Whether every agent of the round is gone.
---@return boolean
local function is_at_rest()
  local agents = vim.fn.system({ "pgrep", "-c", "-P", tostring(uv.os_getpid()), "-f", "demo play" })
  return #chats.all() == 0 and vim.trim(agents) == "0"
end

local function begin()
  local agents = {}
  for i = 1, CHATS do
    agents["soak" .. i] = { command = job.agent }
  end
  agent.setup({ agent = "soak1", agents = agents })
  local count = function(pattern, callback)
    vim.api.nvim_create_autocmd("User", { pattern = pattern, callback = callback })
  end
  count("CursorAgentDecision", on_decision)
  count("CursorAgentTurnEnd", function()
    ended = ended + 1
  end)
  count("CursorAgentExit", function()
    crashed = crashed + 1
  end)
  local finish = uv.now() + job.minutes * 60000
  local function next_round()
    open_chats(function(keys)
      -- Opening the first chat loads the library: `make bench` has that.
      local stop = gaps.watch()
      round(keys, function()
        local seen = stop()
        local waited = uv.now()
        local function rest()
          if not is_at_rest() then
            if uv.now() - waited > REST_MS then
              return fail("agents or chats are left after a round")
            end
            return vim.defer_fn(rest, 200)
          end
          local found = vim.tbl_extend("error", sample(), seen, {
            turns = turns,
            ended = ended,
            answered = answered,
            cancelled = cancelled,
            crashed = crashed,
          })
          write(found)
          if uv.now() > finish then
            write({ finished = true })
            vim.cmd("qall!")
            return
          end
          next_round()
        end
        rest()
      end)
    end)
  end
  next_round()
end

vim.api.nvim_create_autocmd("VimEnter", {
  callback = vim.schedule_wrap(function()
    local ok, problem = xpcall(begin, debug.traceback)
    if not ok then
      fail(tostring(problem))
    end
  end),
})
