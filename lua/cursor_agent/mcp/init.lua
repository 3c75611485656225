-- `:CursorAgent mcp`: Cursor's MCP servers, their state and their tools, and what can be done with them.

local key_of = require("cursor_agent.keys").key
local bridge = require("cursor_agent.bridge")
local cli = require("cursor_agent.mcp.cli")
local buffer_names = require("cursor_agent.bridge.buffer_names")
local notify = require("cursor_agent.notify")
local redact = require("cursor_agent.bridge.redact")
local scratch = require("cursor_agent.window.scratch")
local view = require("cursor_agent.mcp.view")

local M = {}

local NS = vim.api.nvim_create_namespace("cursor_agent_mcp_list")

---How many servers are asked for their tools at once: each question starts a server.
local AT_ONCE = 2

---What completion waits for.
local NAMES_MS = 300

---@type cursor_agent.mcp.Place
local place

---@return cursor_agent.mcp.Known
local function nothing()
  return {
    rows = {},
    tools = {},
    tool_errors = {},
    shown = {},
    busy = {},
    asking = false,
    counting = 0,
  }
end

local known = nothing()

---@type table<integer, cursor_agent.mcp.Line>
local about = {}

---Answers to an earlier question do not count.
local round = 0

---@return integer?
local function buffer()
  local buf = vim.fn.bufnr(buffer_names.exactly("mcp"))
  return buf ~= -1 and vim.api.nvim_buf_is_loaded(buf) and buf or nil
end

---@return string
local function keys()
  local parts = {} ---@type string[]
  for _, one in ipairs({
    { "mcp-open", "open" },
    { "mcp-enable", "enable" },
    { "mcp-disable", "disable" },
    { "mcp-login", "log in" },
    { "mcp-tools", "tools" },
    { "mcp-edit", "edit" },
    { "mcp-edit-user", "edit the user's" },
    { "mcp-refresh", "refresh" },
    { "help", "keys" },
  }) do
    local key = key_of(one[1], "mcp")
    parts[#parts + 1] = key and ("%s %s"):format(key, one[2]) or nil
  end
  return table.concat(parts, "  ")
end

local function draw()
  local buf = buffer()
  if not buf then
    return
  end
  local lines, what, marks = view.compose(known, keys())
  about = what
  -- Names, commands and errors come from files and programs.
  lines = vim.tbl_map(function(line)
    return (redact.text(line):gsub("[\n%z]", " "))
  end, lines)
  vim.bo[buf].modifiable = true
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.bo[buf].modifiable = false
  vim.bo[buf].modified = false
  vim.api.nvim_buf_clear_namespace(buf, NS, 0, -1)
  for _, mark in ipairs(marks) do
    local length = #lines[mark.row]
    if mark.from < length then
      local last = mark.to < length and mark.to or length
      vim.api.nvim_buf_set_extmark(buf, NS, mark.row - 1, mark.from, { end_col = last, hl_group = mark.hl })
    end
  end
end

---@param name string
---@return cursor_agent.mcp.Server?
local function find(name)
  for _, server in ipairs(known.overview and known.overview.servers or {}) do
    if server.name == name then
      return server
    end
  end
end

---@param name string
---@param callback fun()
local function ask_tools(name, callback)
  local mine = round
  known.counting = known.counting + 1
  local asked, problem = cli.run(place, { "list-tools", name }, function(output, failed)
    if mine ~= round then
      return
    end
    known.counting = known.counting - 1
    known.tools[name] = output and bridge.mcp_tools(output) or nil
    known.tool_errors[name] = failed
    callback()
  end)
  if not asked then
    known.counting = known.counting - 1
    known.tool_errors[name] = problem
    callback()
  end
end

---Asks every server that is ready for its tools.
---@param names string[]
local function count_tools(names)
  local at = 0
  local function next_one()
    at = at + 1
    if names[at] then
      ask_tools(names[at], function()
        draw()
        next_one()
      end)
    end
  end
  for _ = 1, math.min(AT_ONCE, #names) do
    next_one()
  end
end

---Asks the CLI how the servers are.
local function ask_states()
  local mine = round
  local names = vim.tbl_map(function(server)
    return server.name
  end, known.overview and known.overview.servers or {})
  if #names == 0 then
    return
  end
  known.asking = true
  local asked, problem = cli.run(place, { "list" }, function(output, failed)
    if mine ~= round then
      return
    end
    known.asking = false
    known.problem = failed
    known.rows, known.busy = {}, {}
    local ready = {} ---@type string[]
    for _, row in ipairs(output and bridge.mcp_list(output, names) or {}) do
      known.rows[row.name] = row
      if row.state == "ready" and vim.list_contains(names, row.name) then
        ready[#ready + 1] = row.name
      end
    end
    draw()
    count_tools(ready)
  end)
  if not asked then
    known.asking = false
    known.problem = problem
  end
end

---Reads the files, then asks the CLI.
---@param done? fun()
---@return boolean?, string?
function M.refresh(done)
  local loaded, why = bridge.load()
  if not loaded then
    return nil, why
  end
  place = cli.place()
  round = round + 1
  local mine = round
  known.counting, known.problem = 0, nil
  local request, refused = bridge.mcp_servers(cli.where(place))
  if not request then
    return nil, refused
  end
  bridge.await(request, function(ok, value)
    if mine ~= round then
      return
    end
    if ok then
      local shown = known.shown
      known = nothing()
      known.shown = shown
      known.overview = value
    else
      known.problem = tostring(value)
    end
    if not done then
      ask_states()
    end
    draw()
    if done then
      done()
    end
  end)
  draw()
  return true
end

---A file was saved.
function M.changed()
  if buffer() then
    M.refresh()
  end
end

---Opens the list.
---@return boolean?, string?
function M.open()
  local loaded, why = bridge.load()
  if not loaded then
    return nil, why
  end
  require("cursor_agent.colour.highlights").setup()
  known = nothing()
  local buf = scratch.open({ " MCP servers", "", " …" }, { name = "mcp", filetype = "cursoragent-mcp", kind = "mcp" })
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    vim.wo[win].wrap = false
    vim.wo[win].cursorline = true
  end
  return M.refresh()
end

---Does something once the servers are known.
---@param work fun(): any, string?
---@return boolean?, string?
local function when_known(work)
  if buffer() and known.overview then
    return work()
  end
  return M.refresh(function()
    notify.report(work())
  end)
end

---@param name string?
---@return string?, string?
local function need(name)
  if not name then
    return nil, "no server on this line"
  elseif not find(name) then
    local names = vim.tbl_map(function(server)
      return server.name
    end, known.overview and known.overview.servers or {})
    local have = #names > 0 and "expected one of " .. table.concat(names, ", ") or "no server is configured"
    return nil, ("unknown MCP server `%s`; %s"):format(name, have)
  end
  return name
end

---@param command "enable"|"disable"
---@param name string
---@return boolean?, string?
local function switch(command, name)
  known.busy[name] = command == "enable" and "enabling…" or "disabling…"
  draw()
  local asked, problem = cli.run(place, { command, name }, function(output, failed)
    known.busy[name] = nil
    if failed then
      draw()
      notify.notify(failed, "error")
      return
    end
    local said = vim.trim(output or ""):match("[^\n]+")
    notify.notify(said and redact.text(said) or ("%sd %s"):format(command, name))
    M.changed()
  end)
  if not asked then
    known.busy[name] = nil
    draw()
  end
  return asked, problem
end

---Switches a server on, which also approves it, or off.
---@param command "enable"|"disable"
---@param name string
---@return boolean?, string?
function M.switch(command, name)
  return when_known(function()
    local found, why = need(name)
    if not found then
      return nil, why
    end
    return switch(command, found)
  end)
end

---Logs in to a server, in a terminal: the CLI opens a browser and waits.
---@param name string
---@return boolean?, string?
function M.login(name)
  return when_known(function()
    local found, why = need(name)
    if not found then
      return nil, why
    end
    local missing = cli.missing(place)
    if missing then
      return nil, missing
    end
    local command = vim.list_extend(vim.deepcopy(place.command), { "mcp", "login", found })
    require("cursor_agent.window.terminal").open(command, {
      cwd = place.cwd,
      env = place.env,
      on_exit = function(status, close)
        if status == 0 then
          close()
          M.changed()
          notify.notify(("logged in to %s"):format(found))
        else
          notify.notify(("`%s` ended with exit code %d"):format(cli.shown(place, { "login", found }), status), "error")
        end
      end,
    })
    return true
  end)
end

---Shows the tools of a server in a buffer of their own.
---@param name string
---@return boolean?, string?
function M.tools(name)
  return when_known(function()
    local found, why = need(name)
    if not found then
      return nil, why
    end
    return cli.run(place, { "list-tools", found }, function(output, failed)
      if failed then
        notify.notify(failed, "error")
        return
      end
      local lines = { ("Tools of %s"):format(found), "" }
      for _, tool in ipairs(bridge.mcp_tools(output or "")) do
        lines[#lines + 1] = ("%s(%s)"):format(tool.name, tool.arguments)
      end
      if #lines == 2 then
        lines[#lines + 1] = "none"
      end
      scratch.open(lines, { name = "mcp-tools" })
    end)
  end)
end

---Opens one of the files.
---@param which "project"|"user"
---@return boolean?, string?
function M.edit(which)
  local loaded, why = bridge.load()
  if not loaded then
    return nil, why
  end
  local here = cli.place()
  local paths = bridge.mcp_paths(cli.where(here))
  local path = which == "user" and paths[2] or paths[1]
  if not path then
    return nil, "HOME is not set, so the user's mcp.json cannot be found"
  end
  return require("cursor_agent.mcp.edit").open(path, here)
end

---The server, file or problem under the cursor.
---@return cursor_agent.mcp.Line?
local function under_cursor()
  return about[vim.api.nvim_win_get_cursor(0)[1]]
end

---A key of the list.
---@param name "open"|"enable"|"disable"|"login"|"tools"|"refresh"
---@return any, string?
function M.key(name)
  if name == "refresh" then
    return M.refresh()
  end
  local here = under_cursor()
  if name == "open" then
    if not here or not here.path then
      return nil, "no server on this line"
    end
    return require("cursor_agent.mcp.edit").open(here.path, place, here.line, here.column)
  end
  local server, why = need(here and here.server)
  if not server then
    return nil, why
  elseif name == "login" then
    return M.login(server)
  elseif name ~= "tools" then
    return switch(name, server)
  end
  known.shown[server] = not known.shown[server] or nil
  if known.shown[server] and not known.tools[server] then
    ask_tools(server, function()
      local failed = known.tool_errors[server]
      if failed then
        known.shown[server] = nil
        notify.notify(failed, "error")
      end
      draw()
    end)
  end
  draw()
  return true
end

---The names of all servers, for completion; the disk is not waited for long.
---@return string[]
function M.names()
  if not known.overview then
    local done = false
    M.refresh(function()
      done = true
    end)
    vim.wait(NAMES_MS, function()
      return done
    end, 5)
  end
  return vim.tbl_map(function(server)
    return server.name
  end, known.overview and known.overview.servers or {})
end

---Runs `:CursorAgent mcp {words}`.
---@param words string[]
---@return any, string?
function M.run(words)
  local command, name = words[1], words[2]
  if not command then
    return M.open()
  elseif command == "edit" then
    if name and name ~= "user" and name ~= "project" then
      return nil, ("`mcp edit` takes `user` or no argument, not `%s`"):format(name)
    end
    return M.edit(name == "user" and "user" or "project")
  elseif command == "enable" or command == "disable" or command == "login" or command == "tools" then
    if not name then
      return nil, ("`mcp %s` needs a server: :CursorAgent mcp %s {name}"):format(command, command)
    elseif command == "login" then
      return M.login(name)
    elseif command == "tools" then
      return M.tools(name)
    end
    return M.switch(command, name)
  end
  return nil, ("unknown `mcp %s`; expected one of enable, disable, login, tools, edit"):format(command)
end

---@param words string[]
---@return string[]
function M.complete(words)
  if #words <= 1 then
    return { "disable", "edit", "enable", "login", "tools" }
  elseif words[1] == "edit" then
    return { "user" }
  end
  return M.names()
end

return M
