-- Runs in the Neovim that is measured: plays one scenario, by the plugin or by the baseline, and writes the figures down.

local uv = vim.uv

local job = vim.json.decode(assert(vim.env.BENCH_JOB)) ---@type { client: string, command: string[], cwd: string, load: string?, lines: integer, file: string?, hunks: integer?, typed: boolean?, chats: integer?, needle: string?, cloud: string?, out: string, root: string }
vim.opt.runtimepath:prepend(job.root)
package.path = job.root .. "/tests/?.lua;" .. package.path
vim.o.swapfile = false
vim.o.termguicolors = true

local gaps_of = require("bench.gaps")

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

---@return integer
local function lines_of_largest_buffer()
  local most = 0
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    most = math.max(most, vim.api.nvim_buf_is_loaded(buf) and vim.api.nvim_buf_line_count(buf) or 0)
  end
  return most
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

---@return boolean
local function is_coloured()
  local painter = package.loaded["cursor_agent.colour.painter"]
  return not painter or painter.idle()
end

---@param begin fun(on_end: fun())
local function measure(begin)
  collectgarbage()
  local memory = uv.resident_set_memory() or 0
  local stop = gaps_of.watch()
  local started, cpu = uv.hrtime(), gaps_of.main_thread_ns()
  begin(function()
    -- What the last change drew is part of it.
    vim.schedule(function()
      vim.cmd.redraw()
      local total = (uv.hrtime() - started) / 1e6
      local used = gaps_of.main_thread_ns()
      -- Colours come after the end: they may take their time, but must not be felt.
      when(is_coloured, function()
        local gaps = stop()
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
          complete = job.client == "baseline" or lines >= job.lines,
        })
      end)
    end)
  end)
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

---@return table plugin
local function set_up()
  local agent = require("cursor_agent")
  agent.setup({
    agent = "bench",
    agents = { bench = { command = job.command } },
    cloud = job.cloud and { url = job.cloud, api_key = "key_fake" } or nil,
  })
  return agent
end

local function with_plugin()
  local agent = set_up()
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
            local left = job.chats or 1
            vim.api.nvim_create_autocmd("User", {
              pattern = "CursorAgentTurnEnd",
              callback = function()
                left = left - 1
                if left == 0 then
                  on_end()
                end
              end,
            })
            for i = 1, job.chats or 1 do
              local key = i > 1 and agent.new({ cwd = job.cwd, open = false }) or nil
              assert(agent.prompt("go", { session = key, open = false }))
            end
          end
        end)
      end)
    end,
  })
end

---Has the conversations stored that a later run loads or searches.
local function with_store()
  local agent = set_up()
  local function done()
    -- The store is written by the library on its way out.
    finish({})
  end
  if job.load then
    assert(agent.open({ cwd = job.cwd }))
    assert(agent.load(job.load, { cwd = job.cwd }))
    return when_still(done)
  end
  local left = job.chats or 1
  local function next_chat()
    local key = assert(agent.new({ cwd = job.cwd, open = false }))
    assert(agent.prompt("go", { session = key, open = false }))
  end
  vim.api.nvim_create_autocmd("User", {
    pattern = "CursorAgentTurnEnd",
    callback = vim.schedule_wrap(function()
      left = left - 1
      if left == 0 then
        done()
      else
        next_chat()
      end
    end),
  })
  next_chat()
end

---A stored conversation, shown from the store.
local function with_recall()
  local agent = set_up()
  assert(agent.open({ cwd = job.cwd }))
  vim.api.nvim_create_autocmd("User", {
    pattern = "CursorAgentReady",
    once = true,
    callback = function()
      when(is_coloured, function()
        measure(function(on_end)
          assert(agent.load(job.load, { cwd = job.cwd }))
          when_still(on_end)
        end)
      end)
    end,
  })
end

local function with_search()
  local agent = set_up()
  assert(require("cursor_agent.bridge").load())
  measure(function(on_end)
    assert(agent.search(job.needle, { all = true }, function(hits, why)
      if not hits or #hits < (job.chats or 1) then
        return finish({ error = why or ("found %d of %d"):format(#hits, job.chats or 1) })
      end
      on_end()
    end))
  end)
end

---The dashboard, to its last page by keys.
local function with_cloud()
  set_up()
  measure(function(on_end)
    vim.cmd("CursorAgent cloud")
    when(function()
      vim.api.nvim_input("G")
      return vim.api.nvim_buf_line_count(0) >= job.lines
    end, on_end)
  end)
end

---The first chat, from the command to the screen.
local function with_open()
  set_up()
  measure(function(on_end)
    vim.cmd("CursorAgent")
    on_end()
  end)
end

local function with_library()
  set_up()
  local bridge = require("cursor_agent.bridge")
  measure(function(on_end)
    assert(bridge.load())
    on_end()
  end)
end

---A chat to type in; the bench types.
local function with_keys()
  local agent = set_up()
  vim.api.nvim_create_autocmd("User", {
    pattern = "CursorAgentReady",
    once = true,
    callback = function()
      when(is_coloured, function()
        vim.cmd.startinsert()
        local file = assert(io.open(job.out, "wb"))
        file:write("{}")
        file:close()
      end)
    end,
  })
  assert(agent.open({ cwd = job.cwd }))
end

local function with_baseline()
  measure(function(on_end)
    require("bench.baseline").run(job.command, job.cwd, job.load, on_end)
  end)
end

vim.api.nvim_create_autocmd("VimEnter", {
  callback = vim.schedule_wrap(function()
    local by = {
      plugin = with_plugin,
      baseline = with_baseline,
      keys = with_keys,
      store = with_store,
      recall = with_recall,
      search = with_search,
      cloud = with_cloud,
      open = with_open,
      library = with_library,
    }
    local ok, problem = xpcall(assert(by[job.client]), debug.traceback)
    if not ok then
      finish({ error = tostring(problem) })
    end
  end),
})
