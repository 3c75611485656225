-- The list of MCP servers as lines and marks: pure, what is known in, what is shown out.

local format = require("cursor_agent.render.format")

local M = {}

---@class (exact) cursor_agent.mcp.Problem
---@field line integer
---@field column integer
---@field end_line integer
---@field end_column integer
---@field message string
---@field server string?
---@field fatal boolean

---@class (exact) cursor_agent.mcp.Row
---@field name string
---@field state "ready"|"needs_approval"|"needs_login"|"disabled"|"loading"|"error"|"unknown"
---@field detail string?

---@class (exact) cursor_agent.mcp.Tool
---@field name string
---@field arguments string

---@class (exact) cursor_agent.mcp.Known
---@field overview cursor_agent.mcp.Overview?
---@field rows table<string, cursor_agent.mcp.Row>
---@field tools table<string, cursor_agent.mcp.Tool[]>
---@field tool_errors table<string, string>
---@field shown table<string, boolean> whose tools are listed
---@field busy table<string, string> what is being done with a server
---@field asking boolean the CLI is listing
---@field counting integer servers whose tools are being asked for
---@field problem string? why the CLI does not say

---@class (exact) cursor_agent.mcp.Line
---@field server string?
---@field path string?
---@field line integer?
---@field column integer?

---@class (exact) cursor_agent.mcp.Mark
---@field row integer from 1
---@field from integer
---@field to integer
---@field hl string

---@param known cursor_agent.mcp.Known
---@param server cursor_agent.mcp.Server
---@return string icon, string hl, string enabled, string approval, string state
local function describe(known, server)
  local icons = require("cursor_agent.render.icons").pick(require("cursor_agent.config").get().chat.icons)
  local row, busy = known.rows[server.name], known.busy[server.name]
  local disabled = row and row.state == "disabled" or (not row and server.disabled)
  local enabled = disabled and "disabled" or "enabled"
  local needs = row and row.state == "needs_approval" or ((not row or row.state == "disabled") and not server.approved)
  local approval = needs and "needs approval" or "approved"
  if busy then
    return icons.running, "CursorAgentRunning", enabled, approval, busy
  elseif not server.usable then
    return icons.error, "CursorAgentFailed", enabled, approval, "has a mistake, see below"
  elseif row and row.state == "error" then
    local why = row.detail and ": " .. format.first_line(row.detail, 120) or ""
    return icons.failed, "CursorAgentFailed", enabled, approval, "error" .. why
  elseif disabled then
    return icons.cancelled, "CursorAgentCancelled", enabled, approval, ""
  elseif needs then
    return icons.waiting, "CursorAgentWaiting", enabled, approval, ""
  elseif not row then
    return icons.pending, "CursorAgentPending", enabled, approval, known.asking and "…" or "state unknown"
  elseif row.state == "needs_login" then
    return icons.waiting, "CursorAgentWaiting", enabled, approval, "needs login"
  elseif row.state == "loading" then
    return icons.running, "CursorAgentRunning", enabled, approval, "loading"
  elseif row.state == "unknown" then
    return icons.info, "CursorAgentInfo", enabled, approval, row.detail or "state unknown"
  end
  local tools, failed = known.tools[server.name], known.tool_errors[server.name]
  if failed then
    return icons.failed, "CursorAgentFailed", enabled, approval, "no tools: " .. format.first_line(failed, 120)
  end
  local count = tools and " · " .. format.plural(#tools, "tool") or ""
  return icons.done, "CursorAgentDone", enabled, approval, "ready" .. count
end

---What all servers have together, of what Cursor takes.
---@param known cursor_agent.mcp.Known
---@return string text, boolean too_many
local function tools_of_all(known)
  local count, most = 0, known.overview and known.overview.max_tools or 40
  for _, tools in pairs(known.tools) do
    count = count + #tools
  end
  local more = known.counting > 0 and "…" or ""
  local too_many = count > most
  local text = ("%d%s of %d tools"):format(count, more, most)
  return too_many and text .. (": Cursor ignores %d"):format(count - most) or text, too_many
end

---@param path string
---@return string
local function short(path)
  return vim.fn.fnamemodify(path, ":~:.")
end

---@param known cursor_agent.mcp.Known
---@param keys string the line of keys
---@return string[] lines
---@return table<integer, cursor_agent.mcp.Line> about by line, from 1
---@return cursor_agent.mcp.Mark[] marks
function M.compose(known, keys)
  local lines, about, marks = {}, {}, {} ---@type string[], table<integer, cursor_agent.mcp.Line>, cursor_agent.mcp.Mark[]
  local overview = known.overview
  local servers = overview and overview.servers or {}

  ---@param parts { [1]: string, [2]: string? }[]
  ---@param what cursor_agent.mcp.Line?
  local function add(parts, what)
    local text = ""
    for _, part in ipairs(parts) do
      if part[2] then
        marks[#marks + 1] = { row = #lines + 1, from = #text, to = #text + #part[1], hl = part[2] }
      end
      text = text .. part[1]
    end
    lines[#lines + 1] = text:gsub("%s+$", "")
    about[#lines] = what
  end

  local total, too_many = tools_of_all(known)
  add({
    { " MCP servers", "CursorAgentHelpTitle" },
    { ("  %s"):format(format.plural(#servers, "server")), "CursorAgentDetail" },
    { "  " .. total, too_many and "CursorAgentWarning" or "CursorAgentDetail" },
  })
  if known.problem then
    add({ { " " .. format.first_line(known.problem, 200), "CursorAgentWarning" } })
  end
  add({ { "" } })

  local width = { name = 4, transport = 5, enabled = 8, approval = 14 }
  for _, server in ipairs(servers) do
    width.name = math.max(width.name, format.width(format.first_line(server.name, 40)))
  end
  ---@param text string
  ---@param cells integer
  ---@return string
  local function pad(text, cells)
    return text .. (" "):rep(cells - format.width(text) + 2)
  end
  for _, server in ipairs(servers) do
    local icon, hl, enabled, approval, state = describe(known, server)
    local here = { server = server.name, path = server.path, line = server.line, column = server.column }
    local scope = server.scope .. (server.hides and "*" or "")
    add({
      { " " .. icon .. " ", hl },
      { pad(format.first_line(server.name, 40), width.name), "CursorAgentPath" },
      { pad(server.transport or "?", width.transport), "CursorAgentDetail" },
      { pad(scope, 8), "CursorAgentDetail" },
      { pad(enabled, width.enabled), enabled == "disabled" and "CursorAgentCancelled" or nil },
      { pad(approval, width.approval), approval == "needs approval" and "CursorAgentWaiting" or nil },
      { state, hl },
      { "  " .. format.first_line(server.target, 80), "CursorAgentDetail" },
    }, here)
    if known.shown[server.name] then
      for _, tool in ipairs(known.tools[server.name] or {}) do
        add({
          { "     " .. tool.name, "CursorAgentVerb" },
          { tool.arguments ~= "" and ("  %s"):format(tool.arguments) or "", "CursorAgentDetail" },
        }, here)
      end
    end
  end
  if #servers == 0 then
    add({ { overview and " No server is configured." or " …", "CursorAgentDetail" } })
    for _, file in ipairs(overview and overview.files or {}) do
      if not file.found then
        local text = ("   %s does not exist yet"):format(short(file.path))
        add({ { text, "CursorAgentDetail" } }, { path = file.path })
      end
    end
  end
  for _, server in ipairs(servers) do
    if server.hides then
      add({ { " * overrides the user's server of the same name", "CursorAgentDetail" } })
      break
    end
  end

  local titled = false
  for _, file in ipairs(overview and overview.files or {}) do
    for _, problem in ipairs(file.problems) do
      if not titled then
        add({ { "" } })
        add({ { " Problems", "CursorAgentHelpTitle" } })
        titled = true
      end
      add({
        { (" %s:%d: "):format(short(file.path), problem.line), "CursorAgentPath" },
        { problem.message, problem.fatal and "CursorAgentFailed" or "CursorAgentWarning" },
        { problem.server and ("  (%s)"):format(format.first_line(problem.server, 40)) or "", "CursorAgentDetail" },
      }, { path = file.path, line = problem.line, column = problem.column, server = problem.server })
    end
  end
  add({ { "" } })
  add({ { " " .. keys, "CursorAgentDetail" } })
  return lines, about, marks
end

return M
