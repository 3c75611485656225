-- `:CursorAgent log`: the messages exchanged with an agent, one row each, to filter, open and save for a replay.

local bridge = require("cursor_agent.bridge")
local notify = require("cursor_agent.notify")

local M = {}

local NS = vim.api.nvim_create_namespace("cursor_agent_log")

local ARROWS = { ["->"] = "→", ["<-"] = "←", ["!!"] = "!" }
local GROUPS = {
  request = "CursorAgentVerb",
  notification = "CursorAgentAside",
  answer = "CursorAgentDone",
  error = "CursorAgentFailed",
  text = "CursorAgentWaiting",
}

---@param row cursor_agent.LogRow
---@return string
local function describe(row)
  local text = row.text:gsub("[%c]+", " ")
  if row.what ~= "text" then
    -- Strip what every message has.
    text = text:gsub('^{"jsonrpc":"2.0",', "{"):gsub('"method":"[^"]*",?', "", 1)
  end
  return ("%8.3f %s %-12s %-28s %s"):format(row.t, ARROWS[row.dir], row.what, row.method or "", text)
end

---@param chat cursor_agent.Chat
---@return string
local function default_path(chat)
  local name = ("%s-%s.jsonl"):format(chat.status.agent or "agent", os.date("%Y%m%d-%H%M%S"))
  return vim.fs.joinpath(vim.fn.stdpath("state") --[[@as string]], "cursor-agent", "logs", name)
end

---Saves the log, secrets removed, one message per line.
---@param chat cursor_agent.Chat
---@param path string
---@return string? path
---@return string? why not
function M.save(chat, path)
  local ready, why = bridge.load()
  if not ready then
    return nil, why
  end
  path = vim.fs.normalize(vim.fn.fnamemodify(path ~= "" and path or default_path(chat), ":p"))
  if vim.uv.fs_stat(path) then
    return nil, ("%s already exists"):format(path)
  end
  local private = require("cursor_agent.files.private")
  local ok, failed = private.make_dir(vim.fs.dirname(path))
  if ok then
    local lines = bridge.log(chat.key) or {}
    lines[#lines + 1] = ""
    ok, failed = private.create(path, table.concat(lines, "\n"))
  end
  if not ok then
    return nil, ("could not save the log: %s"):format(failed)
  end
  notify.notify(("log saved to %s (secrets removed)"):format(path))
  return path
end

---What a window of the log shows.
---@class (exact) cursor_agent.log.View
---@field chat cursor_agent.Chat
---@field method string? only messages of this method, and the answers to them

---@type table<integer, cursor_agent.log.View> by buffer
local views = {}

---Runs a key of the log on what its window shows.
---@param work fun(view: cursor_agent.log.View): any, string?
---@return fun(): any, string?
local function on_view(work)
  return function()
    local view = views[vim.api.nvim_get_current_buf()]
    if not view then
      return nil, "this only works in the log; :CursorAgent log opens it"
    end
    return work(view)
  end
end

---Shows the whole message under the cursor.
M.show_message = on_view(function(view)
  local ready, why = bridge.load()
  if not ready then
    return nil, why
  end
  local text = bridge.log_message(view.chat.key, vim.api.nvim_win_get_cursor(0)[1], view.method)
  if not text then
    return nil, "this message is no longer in the log"
  end
  local lines = vim.split(text, "\n", { plain = true })
  require("cursor_agent.window.scratch").open(lines, { name = "log/message.json", filetype = "json", float = true })
  return true
end)

---Lets the user choose a method, and shows only its messages.
M.choose_method = on_view(function(view)
  local ready = bridge.load()
  local seen, list = {}, { "all messages" }
  for _, row in ipairs(ready and bridge.log_rows(view.chat.key) or {}) do
    if row.method and not seen[row.method] then
      seen[row.method] = true
      list[#list + 1] = row.method
    end
  end
  vim.ui.select(
    list,
    { prompt = "Show messages of" .. (view.method and (" (now %s)"):format(view.method) or "") },
    function(choice)
      if choice then
        notify.report(M.open(view.chat, choice ~= list[1] and choice or nil))
      end
    end
  )
  return true
end)

---Asks where to save the log.
M.ask_and_save = on_view(function(view)
  vim.ui.input({ prompt = "Save the log to: ", default = default_path(view.chat), completion = "file" }, function(path)
    if path and path ~= "" then
      notify.report(M.save(view.chat, path))
    end
  end)
  return true
end)

---Shows new messages.
M.refresh = on_view(function(view)
  return M.open(view.chat, view.method)
end)

---Shows the log.
---@param chat cursor_agent.Chat
---@param method? string only messages of this method, and the answers to them
---@return boolean?, string?
function M.open(chat, method)
  local ready, why = bridge.load()
  if not ready then
    return nil, why
  end
  method = method ~= "" and method or nil
  local rows = bridge.log_rows(chat.key, method) or {}
  if #rows == 0 then
    return nil, method and ("no %s messages yet"):format(method) or "no messages exchanged with the agent yet"
  end
  local buf = require("cursor_agent.window.scratch").open(vim.tbl_map(describe, rows), {
    name = ("%d/log"):format(chat.key),
    filetype = "cursoragent-log",
    kind = "log",
  })
  if not views[buf] then
    vim.api.nvim_create_autocmd("BufWipeout", {
      buffer = buf,
      desc = "cursor-agent: drop the messages of a closed log window",
      callback = function()
        views[buf] = nil
      end,
    })
  end
  views[buf] = { chat = chat, method = method }
  vim.wo.wrap = false
  -- A window of one line has no room for both.
  vim.wo.winbar = vim.api.nvim_win_get_height(0) > 1
      and " protocol log  <CR> whole message · f filter · s save · r refresh · q close · g? keys%<"
    or ""
  vim.api.nvim_buf_clear_namespace(buf, NS, 0, -1)
  for i, row in ipairs(rows) do
    vim.api.nvim_buf_set_extmark(buf, NS, i - 1, 9, { end_col = 54, hl_group = GROUPS[row.what], strict = false })
  end
  vim.api.nvim_win_set_cursor(0, { #rows, 0 })
  -- Show as many rows as fit: a filter may have left few.
  vim.cmd("normal! zb")
  return true
end

return M
