-- What a window on a buffer of the plugin is called where Neovim would show the buffer's name.

local names = require("cursor_agent.bridge.buffer_names")

local M = {}

---What the rest of the name after a chat's number begins with, and what it is.
---@type { [1]: string, [2]: string }[]
local WORDS = {
  { "cloud", "Cloud agents" },
  { "mcp-tools", "MCP tools" },
  { "mcp", "MCP servers" },
  { "review", "Changes" },
  { "checkpoint", "Checkpoint" },
  { "plan", "Plan" },
  { "decision", "Decision" },
  { "theirs", "The agent's text" },
  { "subagent", "Subagent" },
  { "log", "Protocol log" },
  { "export", "Export" },
  { "output", "Output" },
  { "entry", "Details" },
  { "queue", "Queued prompts" },
  { "todos", "Todos" },
  { "status", "Status" },
  { "keys", "Keys" },
}

---@param name string of a buffer
---@return string? nil: it is not one of the plugin's
function M.of(name)
  local rest = names.rest(name)
  if not rest then
    return nil
  end
  rest = rest:gsub("^%d+/", "")
  for _, one in ipairs(WORDS) do
    if vim.startswith(rest, one[1]) then
      return one[2]
    end
  end
  return rest:match("[^/]+$") or rest
end

---The statusline of a window on a buffer for reading, instead of the default one, which shows the buffer's name.
---@return string
function M.statusline()
  local words = M.of(vim.api.nvim_buf_get_name(0)) or "%f"
  return (" %s%s%%=%%-14.(%%l,%%c%%V%%) %%P "):format(words:gsub("%%", "%%%%"), vim.bo.modified and " [+]" or "")
end

---Replaces the default statusline in a window.
---@param win integer
function M.label(win)
  local default = vim.api.nvim_get_option_info2("statusline", {}).default
  if vim.go.statusline == default and vim.api.nvim_win_get_config(win).relative == "" then
    local line = "%{%v:lua.require'cursor_agent.window.words'.statusline()%}"
    vim.api.nvim_set_option_value("statusline", line, { win = win, scope = "local" })
  end
end

return M
