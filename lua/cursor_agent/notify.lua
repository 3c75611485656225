-- The one way a message reaches the user: `vim.notify` with the plugin's title.

local M = {}

local LEVELS = {
  info = vim.log.levels.INFO,
  warn = vim.log.levels.WARN,
  warning = vim.log.levels.WARN,
  error = vim.log.levels.ERROR,
}

---@alias cursor_agent.Level "info"|"warn"|"warning"|"error"

---@type table<string, boolean>
local said = {}

---Neovim's own `vim.notify`, which stops the user with "Press ENTER" when a message has more than one line.
local plain_notify = vim.notify

---@param text string
---@param level integer
local function show(text, level)
  local lines = vim.split(text, "\n", { plain = true })
  local room = vim.o.columns - 14
  if vim.notify ~= plain_notify or (#lines == 1 and vim.fn.strdisplaywidth(text) < room) then
    vim.notify(text, level, { title = "cursor-agent" })
    return
  end
  -- The whole goes to `:messages`, its first line to the screen: nothing to confirm, no key swallowed.
  for _, line in ipairs(lines) do
    vim.cmd({ cmd = "echomsg", args = { vim.fn.string(line) }, mods = { silent = true } })
  end
  local head = lines[1]
  if vim.fn.strdisplaywidth(head) > room - 12 then
    head = vim.fn.strcharpart(head, 0, math.max(room - 13, 1)) .. "…"
  end
  vim.notify(head .. " (:messages)", level, { title = "cursor-agent" })
end

---Shows a message. Safe to call from a fast event.
---@param message string
---@param level? cursor_agent.Level
function M.notify(message, level)
  local text = "cursor-agent: " .. message
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

---Shows why something could not be done, when a person asked for it by key or command.
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
