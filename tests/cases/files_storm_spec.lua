-- Edits of the user, of an agent through the editor and of an agent on disk, in any order: no line of anybody's is lost.

local T = require("harness")

local TEXT = table.concat(vim.fn.map(vim.fn.range(1, 40), "'line ' . v:val"), "\n") .. "\n"
local ROUNDS = 150

---Runs in the child: all steps of one storm. Returns what went wrong first.
local STORM = [[
  local seed, rounds = ...
  math.randomseed(seed)
  local files = require("cursor_agent.files")
  local watch = require("cursor_agent.files.watch")
  local library = require("cursor_agent.bridge.native").peek()
  local path = vim.fn.fnamemodify("a.txt", ":p")
  local buf = vim.fn.bufnr("a.txt")
  local answers, request = {}, 1e6
  library.reply = function(id, reply)
    answers[id] = reply
  end
  local mine, theirs, number, trace = {}, {}, 0, {}

  local function get()
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
  local function lines()
    return vim.api.nvim_buf_get_lines(buf, 0, -1, false)
  end
  local function name(who)
    number = number + 1
    return ("<%s %d>"):format(who, number)
  end
  local function with(text, line)
    local all = vim.split(text, "\n", { plain = true })
    table.insert(all, math.random(1, math.max(#all - 1, 1)), line)
    return table.concat(all, "\n")
  end
  local function serve(what, key)
    request = request + 1
    files.serve(request, what, key)
    return answers[request], request
  end

  local read = {}
  local steps = {
    type = function()
      local line = name("user")
      mine[line] = true
      local at = math.random(1, #lines())
      vim.api.nvim_buf_set_lines(buf, at, at, false, { line })
    end,
    change = function()
      local at = math.random(1, #lines())
      local before = lines()[at]
      if not before:find("<", 1, true) then
        local line = before .. name("user")
        mine[line:match("<.*>")] = true
        vim.api.nvim_buf_set_lines(buf, at - 1, at, false, { line })
      end
    end,
    on_disk = function()
      local line = name("disk")
      put(with(get(), line))
      theirs[line] = true
    end,
    report = function()
      files.edited(path)
    end,
    read = function()
      local key = math.random(1, 2)
      read[key] = serve({ op = "read", path = path }, key).content
    end,
    read_a_line = function()
      serve({ op = "read", path = path, line = 2, limit = 1 }, math.random(1, 2))
    end,
    write = function()
      local key = math.random(1, 2)
      local line = name("agent")
      local text = with(math.random() < 0.5 and read[key] or get(), line)
      local answer, id = serve({ op = "write", path = path, content = text }, key)
      if not answer or answer.ask then
        -- The user is asked. The turn ends before there is an answer.
        files.withdrawn(id)
      elseif answer.ok then
        theirs[line] = true
        read[key] = text
      end
    end,
    checktime = function()
      vim.cmd("checktime " .. buf)
    end,
    focus = function()
      vim.api.nvim_exec_autocmds("FocusGained", {})
      vim.cmd("checktime")
    end,
    edit = function()
      pcall(vim.cmd, "silent edit")
    end,
    write_buffer = function()
      pcall(vim.cmd, "silent write")
    end,
    update = function()
      pcall(vim.cmd, "silent update")
    end,
    turn = function()
      watch.turn({ key = 7, agent = "test", cwd = vim.fn.getcwd() }, math.random() < 0.5)
    end,
    merge_by_hand = function()
      if require("cursor_agent.files.conflicts").has(buf) then
        local all = vim.split(get():gsub("\n$", ""), "\n", { plain = true })
        local there = table.concat(all, "\n")
        for line in pairs(mine) do
          if not there:find(line, 1, true) then
            all[#all + 1] = line
          end
        end
        vim.api.nvim_buf_set_lines(buf, 0, -1, false, all)
        vim.cmd("silent write!")
      end
    end,
  }
  local names = vim.tbl_keys(steps)
  table.sort(names)
  for round = 1, rounds do
    local step = names[math.random(#names)]
    trace[#trace + 1] = step
    steps[step]()
    if math.random() < 0.5 then
      vim.wait(3)
    end
    local here, there = table.concat(lines(), "\n"), get()
    for line in pairs(mine) do
      if not here:find(line, 1, true) then
        return ("seed %d, round %d: %s is not in the buffer after %s"):format(seed, round, line, table.concat(trace, " "))
      end
    end
    for line in pairs(theirs) do
      if not there:find(line, 1, true) and not here:find(line, 1, true) then
        return ("seed %d, round %d: %s is lost after %s"):format(seed, round, line, table.concat(trace, " "))
      end
    end
    if not vim.bo[buf].modified and not there:find("^%s*$") then
      for line in pairs(mine) do
        if not there:find(line, 1, true) then
          return ("seed %d, round %d: %s is taken for saved after %s"):format(seed, round, line, table.concat(trace, " "))
        end
      end
    end
  end
  return ""
]]

for _, autoread in ipairs({ "autoread", "noautoread" }) do
  T.case("in a storm of edits no line is lost: " .. autoread, { files = { ["a.txt"] = TEXT } }, function(nvim)
    nvim:use(T.agent({ profile = "plain", turns = { {} } }))
    nvim:cmd("set " .. autoread)
    nvim:cmd("edit a.txt")
    nvim:prompt("go", { open = false })
    nvim:wait_turns(1)
    for seed = 1, 4 do
      nvim:cmd("edit!")
      T.eq(nvim:lua(STORM, seed, ROUNDS), "")
      nvim:lua("require('cursor_agent.files.conflicts').list = {}")
    end
    T.eq(nvim:lua("return vim.api.nvim_get_mode().blocking"), false)
    T.eq(nvim:messages():match("W1%d:[^\n]*"), nil)
  end)
end
