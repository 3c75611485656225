-- Edits an `mcp.json`: opens it at the right place, checks it when it is read and saved, and marks each mistake.

local bridge = require("cursor_agent.bridge")
local cli = require("cursor_agent.mcp.cli")
local events = require("cursor_agent.bridge.events")
local notify = require("cursor_agent.notify")

local M = {}

local NS = vim.api.nvim_create_namespace("cursor_agent_mcp")
local GROUP = vim.api.nvim_create_augroup("cursor_agent_mcp", {})

---What a file begins with that is not there yet.
local TEMPLATE = { "{", '  "mcpServers": {', "  }", "}" }

---Marks what is wrong with a buffer.
---@param buf integer
---@param place cursor_agent.mcp.Place
---@return cursor_agent.mcp.Problem[]
function M.check(buf, place)
  if not bridge.load() then
    return {}
  end
  local text = table.concat(vim.api.nvim_buf_get_lines(buf, 0, -1, false), "\n")
  local problems = bridge.mcp_check(cli.where(place), text)
  local diagnostics = {} ---@type vim.Diagnostic.Set[]
  local last = vim.api.nvim_buf_line_count(buf)
  for _, problem in ipairs(problems) do
    local line = math.min(problem.line, last)
    diagnostics[#diagnostics + 1] = {
      lnum = line - 1,
      col = problem.column - 1,
      end_lnum = math.min(problem.end_line, last) - 1,
      end_col = problem.end_column - 1,
      severity = problem.fatal and vim.diagnostic.severity.ERROR or vim.diagnostic.severity.WARN,
      source = "cursor-agent",
      message = problem.message,
    }
  end
  vim.diagnostic.set(NS, buf, diagnostics)
  return problems
end

---@param buf integer
---@param place cursor_agent.mcp.Place
local function watch(buf, place)
  vim.api.nvim_clear_autocmds({ group = GROUP, buffer = buf })
  vim.api.nvim_create_autocmd("BufReadPost", {
    group = GROUP,
    buffer = buf,
    desc = "cursor-agent: check the MCP servers",
    callback = function()
      M.check(buf, place)
    end,
  })
  vim.api.nvim_create_autocmd("BufWritePost", {
    group = GROUP,
    buffer = buf,
    desc = "cursor-agent: check the MCP servers",
    callback = function()
      local problems = M.check(buf, place)
      local first = problems[1]
      if first then
        local path = vim.fn.fnamemodify(vim.api.nvim_buf_get_name(buf), ":~:.")
        local more = #problems > 1 and (" (and %d more)"):format(#problems - 1) or ""
        -- Later: beside what Neovim says of the write it would stop the user with "Press ENTER".
        vim.schedule(function()
          notify.notify(
            ("%s:%d: %s%s"):format(path, first.line, first.message, more),
            first.fatal and "error" or "warn"
          )
        end)
      end
      events.emit("mcp saved")
    end,
  })
end

---Opens a file at a place of it, checked from then on.
---@param path string
---@param place cursor_agent.mcp.Place
---@param line integer?
---@param column integer?
---@return boolean?, string?
function M.open(path, place, line, column)
  local code = require("cursor_agent.window.code").current()
  if code then
    vim.api.nvim_set_current_win(code)
  end
  local here = vim.api.nvim_get_current_buf()
  local shown = vim.fs.normalize(vim.api.nvim_buf_get_name(here)) == vim.fs.normalize(path)
  if not shown then
    -- Unsaved text of the user stays where it is.
    local open = vim.bo[here].modified and not vim.o.hidden and "split" or "edit"
    local ok, problem = pcall(
      vim.api.nvim_cmd,
      { cmd = code and open or "split", args = { path }, magic = { file = false, bar = false } },
      {}
    )
    if not ok then
      return nil, (tostring(problem):gsub("^.-(E%d+: )", "%1"))
    end
  end
  local buf = vim.api.nvim_get_current_buf()
  local empty = vim.api.nvim_buf_line_count(buf) == 1 and vim.api.nvim_buf_get_lines(buf, 0, 1, false)[1] == ""
  if empty and not vim.uv.fs_stat(path) then
    -- What is written there may hold keys.
    require("cursor_agent.files.private").make_dir(vim.fs.dirname(path))
    vim.api.nvim_buf_set_lines(buf, 0, -1, false, TEMPLATE)
    line, column = 2, 1
  end
  if vim.bo[buf].filetype == "" then
    vim.bo[buf].filetype = "json"
  end
  watch(buf, place)
  M.check(buf, place)
  if line then
    local row = math.min(math.max(line, 1), vim.api.nvim_buf_line_count(buf))
    pcall(vim.api.nvim_win_set_cursor, 0, { row, math.max((column or 1) - 1, 0) })
  end
  return true
end

return M
