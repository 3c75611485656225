-- The one way a message reaches the user: `vim.notify` with the plugin's title.

local format = require("cursor_agent.render.format")

local M = {}

local LEVELS = {
  info = vim.log.levels.INFO,
  warn = vim.log.levels.WARN,
  warning = vim.log.levels.WARN,
  error = vim.log.levels.ERROR,
}

---Longer messages are cut.
local MOST_BYTES = 8 * 1024

---At most this many lines go to `:messages`. Each costs a redraw.
local MOST_PIECES = 24

---@alias cursor_agent.Level "info"|"warn"|"warning"|"error"

---@type table<string, boolean>
local said = {}

---Whether `vim.notify` is Neovim's own, which stops the user with "Press ENTER" for a message of more than one line. A
---plugin may have replaced it before this file was loaded, so look at where the function was defined: Neovim's built-in
---Lua has no file path, or no source at all. A callable table (nvim-notify) belongs to a plugin, and so does a function
---wrapped by `vim.schedule_wrap` (mini.notify).
---@param notify function|table
---@return boolean
local function is_builtin(notify)
  if type(notify) ~= "function" then
    return false
  end
  local info = assert(debug.getinfo(notify, "S"))
  local wrapped = assert(debug.getinfo(vim.schedule_wrap(is_builtin), "S"))
  local is_wrapped = info.source == wrapped.source and info.linedefined == wrapped.linedefined
  return not is_wrapped and (info.source:match("^@vim/") ~= nil or info.source:match("^=?%?$") ~= nil)
end

---Shortens long paths in a line to their beginning and end, as far as needed to fit.
---@param line string
---@param room integer
---@return string
local function with_short_paths(line, room)
  local shorter = line
  for path in line:gmatch("~?/[^%s:;,\"'`)]+") do
    if format.width(shorter) <= room then
      break
    end
    local first, last = path:match("^(~?/[^/]+)/.+/([^/]+)/?$")
    if first then
      shorter = shorter:gsub(vim.pesc(path), (first .. "/…/" .. last):gsub("%%", "%%%%"), 1)
    end
  end
  return shorter
end

---What to show of a message that has several lines or is too long: its beginning, and the command that helps, wherever
---in the message that is. On a small screen the message text has priority.
---@param text string the whole message
---@param line string its first line
---@param room integer
---@return string
local function head_of(text, line, room)
  local more = room < 24 and "" or " (:messages)"
  line = with_short_paths(line, room - format.width(more))
  if room < 40 or format.width(line .. more) > room then
    line = line:gsub("^cursor%-agent: ", "")
  end
  if format.width(line .. more) <= room and line:find(":CursorAgent %l") then
    return line .. more
  end
  local command = room >= 40 and text:match(":CursorAgent %l+") or nil
  local function cut(remedy)
    local left = room - format.width(remedy .. more)
    return (format.width(line) <= left and line or format.first_cells(line, math.max(left - 1, 1)) .. "…")
      .. remedy
      .. more
  end
  local head = cut("")
  return command and not head:find(command, 1, true) and cut(" · " .. command) or head
end

---@param text string
---@param level integer
local function show(text, level)
  local show_it = vim["notify"] ---@type fun(message: string, level: integer, opts: table)
  if not is_builtin(show_it) then
    -- The plugin may render markdown.
    local harmless = require("cursor_agent.colour.guard").harmless(text)
    if pcall(show_it, harmless, level, { title = "cursor-agent" }) then
      return
    end
    -- If the plugin's notify fails, the user still gets the message and the caller continues.
  end
  -- Not Neovim's own `vim.notify`: since 0.11 an error message there raises in the command that caused it.
  local hl = level == LEVELS.error and "ErrorMsg" or level == LEVELS.warn and "WarningMsg" or nil
  -- A tab is wider than its one character, and a wrapped line makes Neovim wait for a key.
  local lines = vim.split(text:gsub("\t", "  "), "\n", { plain = true })
  local room = math.max(math.min(vim.o.columns - 14, vim.v.echospace), 1)
  if #lines == 1 and format.width(text) < room then
    vim.api.nvim_echo({ { text, hl } }, true, {})
    return
  end
  -- All of it goes to `:messages`, in pieces that never scroll the screen, since scrolling makes Neovim wait for a key.
  -- Then show the first line again.
  local pieces = 0
  for _, line in ipairs(lines) do
    repeat
      local piece = format.first_cells(line, room)
      line = line:sub(#piece + 1)
      pieces = pieces + 1
      vim.api.nvim_echo({ { pieces > MOST_PIECES and "…" or piece, hl } }, true, {})
      vim.cmd.redraw()
    until line == "" or pieces > MOST_PIECES
    if pieces > MOST_PIECES then
      break
    end
  end
  vim.api.nvim_echo({ { head_of(text, lines[1] or "", room), hl } }, false, {})
end

---Shows a message. Safe to call from a fast event.
---@param message string
---@param level? cursor_agent.Level
function M.notify(message, level)
  -- Redact before cutting: half a secret is not recognized as one.
  local shown = require("cursor_agent.bridge.redact").text(message):sub(1, MOST_BYTES)
  local text = "cursor-agent: " .. shown:gsub("[%z\1-\8\11-\31\127]", format.caret)
  if vim.in_fast_event() then
    vim.schedule(function()
      show(text, LEVELS[level or "info"])
    end)
  else
    show(text, LEVELS[level or "info"])
  end
end

---Shows a message the first time only.
---@param message string
---@param level? cursor_agent.Level
function M.once(message, level)
  if not said[message] then
    said[message] = true
    M.notify(message, level)
  end
end

---Warn a user who has been waiting for an answer this long.
M.SLOW_MS = 10000

---Warns when an agent does not answer something the user asked for. It may still answer later.
---@param agent string
---@param method string
---@return fun() answered call it when the answer arrives
function M.unless_answered(agent, method)
  local timer = vim.defer_fn(function()
    local seconds = math.floor(M.SLOW_MS / 1000)
    M.notify(
      ("%s has not answered %s for %d s: still waiting\n"):format(agent, method, seconds)
        .. "  :CursorAgent restart restarts it\n  :CursorAgent log shows the protocol log",
      "warn"
    )
  end, M.SLOW_MS)
  return function()
    if not timer:is_closing() then
      timer:stop()
      timer:close()
    end
  end
end

---Shows why something failed that the user asked for with a key or command.
---@generic T
---@param value T?
---@param message string?
---@return T?, string?
function M.report(value, message)
  if value == nil and message then
    M.notify(message, "error")
  end
  return value, message
end

return M
