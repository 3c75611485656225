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
local builtin = vim.notify

---@param text string
---@param level integer
local function show(text, level)
  local lines = vim.split(text, "\n", { plain = true })
  local room = vim.o.columns - 14
  local show_it = vim["notify"] ---@type fun(message: string, level: integer, opts: table)
  if show_it ~= builtin or (#lines == 1 and vim.fn.strdisplaywidth(text) < room) then
    show_it(text, level, { title = "cursor-agent" })
    return
  end
  -- The whole goes to `:messages`, in pieces that never scroll the screen: that is when Neovim waits for a key. Then its
  -- first line comes back.
  for _, line in ipairs(lines) do
    repeat
      local piece = vim.fn.strcharpart(line, 0, room)
      line = line:sub(#piece + 1)
      vim.api.nvim_echo({ { piece } }, true, {})
      vim.cmd.redraw()
    until line == ""
  end
  local head = lines[1] or ""
  if vim.fn.strdisplaywidth(head) > room - 12 then
    head = vim.fn.strcharpart(head, 0, math.max(room - 13, 1)) .. "…"
  end
  local hl = level == LEVELS.error and "ErrorMsg" or level == LEVELS.warn and "WarningMsg" or nil
  vim.api.nvim_echo({ { head .. " (:messages)", hl } }, false, {})
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
