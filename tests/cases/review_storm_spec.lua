-- Edits of the user and of two agents in any order, kept and undone, and Neovim killed at any step: the texts that come of it
-- are those that were there before, and no unsaved line is lost.

local T = require("harness")

---Lines that are often the same, so that hunks have doubles at their borders.
local function original()
  local lines = {}
  for i = 1, 30 do
    lines[i] = ({ "", "same", "end", "line " .. i })[i % 4 + 1]
  end
  return table.concat(lines, "\n") .. "\n"
end

local TEXT = original()

---How many steps a storm has, and how many turns each agent can play.
local STEPS, TURNS = 40, 400

---Turns that wait at a file until they are let on, and then say that they have edited another; or that wait to have it
---written by the editor.
---@return table[]
local function turns()
  local list = {}
  for i = 1, TURNS do
    local read = { method = "fs/read_text_file", params = { sessionId = "${session}", path = "${cwd}/gate" } }
    local write = { sessionId = "${session}", path = "${cwd}/a.txt", content = "gate" }
    list[i] = i % 3 == 0 and { { request = { method = "fs/write_text_file", params = write } } }
      or {
        { request = read },
        {
          update = {
            sessionUpdate = "tool_call",
            toolCallId = "e" .. i,
            title = "Edit",
            kind = "edit",
            status = "completed",
            locations = { { path = "${cwd}/a.txt" } },
          },
        },
      }
  end
  return list
end

---Runs in the child: what the storm is made of, in `_G.storm`.
local WORLD = [[
  local seed, original = ...
  math.randomseed(seed)
  local agent = require("cursor_agent")
  local files = require("cursor_agent.files")
  local library = require("cursor_agent.bridge")
  local path = vim.fn.fnamemodify("a.txt", ":p")
  local buf = vim.fn.bufnr("a.txt")
  local storm = { mine = {}, trace = {}, kept = false, gates = {}, number = 0 }
  _G.storm = storm

  local serve = storm.serve or files.serve
  storm.serve = serve
  files.serve = function(request, what, key, tries)
    if what.op == "read" and what.path:find("/gate$") then
      storm.gates[key] = { request = request }
    elseif what.op == "write" and what.content == "gate" then
      storm.gates[key] = { request = request, what = what }
    else
      serve(request, what, key, tries)
    end
  end

  function storm.get()
    local file = assert(io.open(path, "rb"))
    local text = file:read("*a")
    file:close()
    return text
  end
  local function put(text)
    local file = assert(io.open(path, "wb"))
    file:write(text)
    file:close()
  end
  local function cut(text)
    return vim.split((text:gsub("\n$", "")), "\n", { plain = true })
  end
  local function lines()
    return vim.api.nvim_buf_get_lines(buf, 0, -1, false)
  end
  local function name(who)
    storm.number = storm.number + 1
    return ("<%s %d>"):format(who, storm.number)
  end
  local function wait(what, condition)
    assert(vim.wait(8000, condition, 5), ("waited for %s after %s"):format(what, table.concat(storm.trace, " ")))
  end
  local function hunks()
    return library.review_hunks({ all = true }, true)
  end
  -- Lines of the user's that lie within a hunk go when it is undone.
  local function forget_inside(hunk)
    for i = hunk.new.line, hunk.new.line + hunk.new.count - 1 do
      storm.mine[lines()[i] or ""] = nil
    end
  end
  local function pending()
    local all = {}
    for _, key in ipairs(storm.sessions) do
      vim.list_extend(all, agent.pending(key) or {})
    end
    return all
  end
  local function decide_conflicts()
    for _ = 1, 10 do
      local decision = pending()[1]
      if not decision then
        return
      end
      local theirs = math.random() < 0.3
      agent.answer(decision.id, { option = theirs and "theirs" or "mine" })
      wait("the decision", function()
        return not vim.iter(pending()):any(function(one)
          return one.id == decision.id
        end)
      end)
      if theirs then
        -- The user chose to let go of them.
        local all = {}
        for _, line in ipairs(lines()) do
          all[line] = true
        end
        for line in pairs(storm.mine) do
          storm.mine[line] = all[line]
        end
      end
    end
  end

  ---What an agent makes of the file.
  local function changed()
    local all = cut(storm.get())
    for _ = 1, math.random(1, 3) do
      local at = math.random(1, #all)
      local how = math.random(1, 3)
      -- Lines of the user's that were saved are the agent's to leave alone.
      if how == 1 then
        table.insert(all, at, ({ "same", "", name("agent") })[math.random(3)])
      elseif not (all[at] or ""):find("<user", 1, true) and #all > 3 then
        if how == 2 then
          all[at] = name("agent")
        else
          table.remove(all, at)
        end
      end
    end
    return table.concat(all, "\n") .. "\n"
  end

  storm.sessions = storm.sessions or {}
  local states = {}
  local steps = {
    type = function()
      local line = name("user")
      storm.mine[line] = true
      local at = math.random(0, #lines())
      vim.api.nvim_buf_set_lines(buf, at, at, false, { line })
    end,
    begin = function(key)
      -- One that waits for an answer is still at work.
      if not states[key] and agent.status(key).state == "idle" then
        states[key] = "begun"
        assert(agent.prompt("edit", { session = key, open = false }))
        wait("the turn", function() return storm.gates[key] ~= nil end)
      end
    end,
    change = function(key)
      if states[key] and not storm.gates[key].what then
        put(changed())
      end
    end,
    report = function(key)
      local gate = storm.gates[key]
      if gate then
        storm.gates[key], states[key] = nil, nil
        if gate.what then
          -- It has read the file, not the buffer.
          serve(gate.request, vim.tbl_extend("force", gate.what, { content = changed() }), key)
        else
          library.reply(gate.request, { ok = true, content = "" })
        end
        wait("the end of the turn", function()
          return agent.status(key).state == "idle" or agent.status(key).pending > 0
        end)
      end
    end,
    checktime = function() vim.cmd("checktime " .. buf) end,
    focus = function()
      vim.api.nvim_exec_autocmds("FocusGained", {})
      vim.cmd("checktime")
    end,
    edit = function() pcall(vim.cmd, "silent edit") end,
    write_all = function() pcall(vim.cmd, "silent wall") end,
    settle = decide_conflicts,
    undo_one = function()
      local all = hunks()
      local hunk = all[math.random(math.max(#all, 1))]
      local inside = {}
      if hunk then
        for i = hunk.new.line, hunk.new.line + hunk.new.count - 1 do
          inside[lines()[i] or ""] = true
        end
        if (agent.undo({ hunk = hunk.id }) or 0) > 0 then
          for line in pairs(inside) do
            storm.mine[line] = nil
          end
        end
      end
    end,
  }
  local names = vim.tbl_keys(steps)
  table.sort(names)
  -- Agents are at work most of the time.
  for _ = 1, 3 do
    vim.list_extend(names, { "begin", "change", "report" })
  end

  function storm.check()
    local here, there = lines(), storm.get()
    local all = {}
    for _, line in ipairs(here) do
      all[line] = true
    end
    for line in pairs(storm.mine) do
      if not all[line] then
        return line .. " is not in the buffer"
      elseif not vim.bo[buf].modified and not there:find(line, 1, true) then
        return line .. " is taken for saved"
      end
    end
  end

  function storm.play(step, key)
    storm.trace[#storm.trace + 1] = step
    steps[step](key)
  end

  ---What is on disk when all hunks are undone, from the library's own pen.
  function storm.without_hunks()
    local text = cut(storm.get())
    local all = hunks()
    for i = #all, 1, -1 do
      local hunk = all[i]
      local first = hunk.new.count > 0 and hunk.new.line or hunk.new.line + 1
      for _ = 1, hunk.new.count do
        table.remove(text, first)
      end
      for k, line in ipairs(hunk.removed or {}) do
        table.insert(text, first + k - 1, line)
      end
    end
    return table.concat(text, "\n") .. "\n"
  end

  function storm.step(round)
    local step = names[math.random(#names)]
    local key = storm.sessions[math.random(#storm.sessions)]
    storm.trace[#storm.trace + 1] = step
    steps[step](key)
    if math.random() < 0.5 then
      vim.wait(3)
    end
    local wrong = storm.check()
    return wrong and ("seed %d, round %d: %s after %s"):format(seed, round, wrong, table.concat(storm.trace, " ")) or ""
  end

  ---Lets everything come to rest, all of it saved.
  function storm.rest()
    local function rests(key)
      return agent.status(key).state == "idle"
    end
    for _ = 1, 400 do
      for _, key in ipairs(storm.sessions) do
        steps.report(key)
      end
      decide_conflicts()
      pcall(vim.cmd, "silent wall")
      if not vim.bo[buf].modified and vim.iter(storm.sessions):all(rests) then
        break
      end
      -- A conflict is asked about once it is found.
      vim.wait(20)
    end
    -- The library has heard all there is to hear when nothing changes any more.
    local seen, since = "", vim.uv.now()
    wait("hunks that stay", function()
      local now = vim.inspect({ hunks(), vim.bo[buf].modified, storm.get() })
      if now ~= seen then
        seen, since = now, vim.uv.now()
      end
      return vim.uv.now() - since > 150
    end)
    local wrong = storm.check() or (vim.bo[buf].modified and "it is not saved") or ""
    return wrong ~= "" and ("seed %d: %s after %s"):format(seed, wrong, table.concat(storm.trace, " ")) or ""
  end

  local function without_mine(list)
    return table.concat(vim.tbl_filter(function(line) return not line:find("^<user") end, list), "\n") .. "\n"
  end

  ---Ends it: keeps all, undoes all, or some of both, and compares.
  function storm.finish(how)
    local before, expected = lines(), lines()
    local all = hunks()
    local wrong
    local function say(what, got, wanted)
      return got ~= wanted and ("seed %d: %s after %s\n%s\n---\n%s"):format(seed, what, table.concat(storm.trace, " "), got, wanted)
    end
    if how == "keep" then
      agent.keep({ all = true })
    elseif how == "undo" then
      for _, hunk in ipairs(all) do
        forget_inside(hunk)
      end
      assert(agent.undo({ all = true }))
      wrong = say("it is not what it was", without_mine(cut(storm.get())), original)
    else
      local undone = {}
      for i = #all, 1, -1 do
        local hunk = all[i]
        if math.random() < 0.5 then
          undone[#undone + 1] = hunk.id
          local first = hunk.new.count > 0 and hunk.new.line or hunk.new.line + 1
          for _ = 1, hunk.new.count do
            table.remove(expected, first)
          end
          for k, line in ipairs(hunk.removed or {}) do
            table.insert(expected, first + k - 1, line)
          end
          forget_inside(hunk)
        end
      end
      for _, id in ipairs(undone) do
        assert(agent.undo({ hunk = id }))
      end
      agent.keep({ all = true })
    end
    local text = table.concat(expected, "\n") .. "\n"
    if how ~= "undo" then
      wrong = say("not what was chosen is on disk", storm.get(), text) or say("nor here", table.concat(lines(), "\n") .. "\n", text)
    end
    wrong = wrong or storm.check()
    return wrong or #hunks() > 0 and "something is undecided" or ""
  end
]]

---Two sessions of one agent, each a process of its own with the same script.
---@param nvim harness.Child
---@param autoread string
local function start(nvim, autoread)
  nvim:use(T.agent({ profile = "plain", turns = turns() }))
  nvim:cmd("set " .. autoread)
  nvim:cmd("edit a.txt")
  nvim:lua([[
    local agent = require("cursor_agent")
    _G.sessions = { assert(agent.new({ open = false })), assert(agent.new({ open = false })) }
  ]])
  nvim:wait(
    "vim.iter(_G.sessions):all(function(key) return require('cursor_agent').status(key).state == 'idle' end)",
    "both"
  )
end

---@param nvim harness.Child
---@param seed integer
local function begin(nvim, seed)
  nvim:lua(WORLD, seed, TEXT)
  nvim:lua("_G.storm.sessions = _G.sessions")
end

---Seeds of the storms, several in one Neovim. `STORM_FROM=100 STORM_COUNT=50` plays fifty others, five in each Neovim, or
---as many as `STORM_EACH` says.
local SEEDS = { { autoread = "autoread", 1, 2, 3 }, { autoread = "noautoread", 4, 5, 6 } }
local FROM = tonumber(vim.env.STORM_FROM) --[[@as integer?]]
if FROM then
  local count, each = tonumber(vim.env.STORM_COUNT) or 20, tonumber(vim.env.STORM_EACH) or 5
  SEEDS = {}
  for first = FROM, FROM + count - 1, each do
    local last = math.min(first + each, FROM + count) - 1
    local seeds = vim.fn.range(first, last --[[@as integer]])
    seeds.autoread = math.floor(first / each) % 2 == 0 and "autoread" or "noautoread"
    SEEDS[#SEEDS + 1] = seeds
  end
end

for _, seeds in ipairs(SEEDS) do
  T.case(
    ("whatever the order, undo gives back what was and keep what is: %s, %s"):format(
      seeds.autoread,
      table.concat(seeds, " ")
    ),
    { files = { ["a.txt"] = TEXT, gate = "" }, deadline_ms = 60000 },
    function(nvim)
      start(nvim, seeds.autoread)
      for i, seed in ipairs(seeds) do
        begin(nvim, seed)
        for round = 1, STEPS do
          T.eq(nvim:lua("return _G.storm.step(...)", round), "")
        end
        T.eq(nvim:lua("return _G.storm.rest()"), "")
        local way = FROM and math.floor(seed / 2) or i - 1
        T.eq(nvim:lua("return _G.storm.finish(...)", ({ "undo", "keep", "mix" })[way % 3 + 1]), "")
        nvim:lua("local file = io.open('a.txt', 'wb') file:write(...) file:close() vim.cmd('edit!')", TEXT)
      end
      T.eq(nvim:messages():match("W1%d:[^\n]*"), nil)
    end
  )
end

---Goes back to the oldest checkpoint in another Neovim, and says what came of it.
---@param nvim harness.Child one that is gone
---@return { points: integer, restored: string[], kept: string[] }
local function restore_elsewhere(nvim)
  local home = nvim.dir .. "/home"
  local env = { HOME = home, XDG_RUNTIME_DIR = home .. "/run", TMPDIR = home .. "/tmp", LANG = "C.UTF-8" }
  for name, dir in pairs({ CONFIG = ".config", DATA = ".local/share", STATE = ".local/state", CACHE = ".cache" }) do
    env[("XDG_%s_HOME"):format(name)] = ("%s/%s"):format(home, dir)
  end
  local script = nvim.dir .. "/restore.lua"
  vim.fn.writefile(
    vim.split(
      [[
        local agent = require("cursor_agent")
        local bridge = require("cursor_agent.bridge")
        assert(bridge.load())
        local points = assert(bridge.checkpoints())
        local done = assert(agent.restore(points[#points].id, { force = true }))
        io.stdout:write(vim.json.encode({ points = #points, restored = done.restored, kept = done.kept }))
      ]],
      "\n"
    ),
    script
  )
  local command = { vim.v.progpath, "--headless", "--clean", "-u", home .. "/init.lua", "-l", script }
  local run = vim.system(command, { env = env, cwd = nvim.work, text = true }):wait(20000)
  T.eq(run.code, 0, run.stderr)
  return vim.json.decode(run.stdout or "")
end

for _, steps in ipairs({ 8, 20, 35 }) do
  T.case(
    ("killed after %d steps, what is on disk is whole and the checkpoints bring the rest back"):format(steps),
    { files = { ["a.txt"] = TEXT, gate = "" }, deadline_ms = 60000, leaves_processes = true },
    function(nvim)
      start(nvim, "autoread")
      begin(nvim, steps)
      -- At least one change is known.
      nvim:lua(
        "local key = _G.sessions[1] _G.storm.play('begin', key) _G.storm.play('change', key) _G.storm.play('report', key)"
      )
      nvim:wait("#require('cursor_agent.bridge').checkpoints() > 0", "a checkpoint")
      for round = 1, steps do
        T.eq(nvim:lua("return _G.storm.step(...)", round), "")
      end
      -- Where nothing is unsaved, lines of the buffer are lines of the file.
      nvim:lua("pcall(vim.cmd, 'silent wall!') vim.wait(100)")
      local before = nvim:lua("return _G.storm.get()")
      local undone = nvim:lua("return _G.storm.without_hunks()")
      -- In the middle of undoing all of it.
      nvim:lua_later("vim.schedule(function() require('cursor_agent').undo({ all = true }) end)")
      vim.wait(steps % 4)
      nvim:kill("sigkill")
      local file = assert(io.open(nvim.work .. "/a.txt", "rb"))
      local text = file:read("*a")
      file:close()
      T.ok(text == before or text == undone, "the file is neither what it was nor what it was to be:\n" .. text)
      local done = restore_elsewhere(nvim)
      T.ok(done.points > 0, "there are checkpoints")
      T.eq(#done.kept, 0)
      file = assert(io.open(nvim.work .. "/a.txt", "rb"))
      T.eq(file:read("*a"), TEXT)
      file:close()
      T.eq(#vim.fn.glob(nvim.work .. "/.*.restore", true, true), 0, "nothing is left beside it")
    end
  )
end
