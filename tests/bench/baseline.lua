-- The plain client the bench compares with: `vim.system`, `vim.json`, one buffer write for each message.

local M = {}

---@class bench.Baseline
---@field on_end fun()

---@param command string[]
---@param cwd string
---@param load string?
---@param on_end fun() after the last write
function M.run(command, cwd, load, on_end)
  local buf = vim.api.nvim_create_buf(false, true)
  vim.bo[buf].filetype = "markdown"
  local win = vim.api.nvim_open_win(buf, false, { split = "right", win = -1, width = 72 })
  vim.wo[win].wrap = true
  local tools = {} ---@type table<string, { mark: integer, lines: integer }>
  local ns = vim.api.nvim_create_namespace("bench_baseline")
  local next_id, waiting = 0, {} ---@type integer, table<integer, fun(result: any)>
  local job ---@type vim.SystemObj

  local function to_tail()
    vim.api.nvim_win_set_cursor(win, { vim.api.nvim_buf_line_count(buf), 0 })
  end

  ---@param text string
  local function append(text)
    local row = vim.api.nvim_buf_line_count(buf) - 1
    local col = #vim.api.nvim_buf_get_lines(buf, row, row + 1, false)[1]
    vim.api.nvim_buf_set_text(buf, row, col, row, col, vim.split(text, "\n", { plain = true }))
    to_tail()
  end

  ---@param update table
  local function draw_tool(update)
    local lines = { ("* %s (%s)"):format(update.title or update.toolCallId, update.status or "") }
    for _, content in ipairs(update.content or {}) do
      local text = content.type == "diff" and content.newText or (content.content or {}).text or ""
      for _, line in ipairs(vim.split(text, "\n", { plain = true })) do
        lines[#lines + 1] = "  " .. line
      end
    end
    local tool = tools[update.toolCallId]
    if not tool then
      local row = vim.api.nvim_buf_line_count(buf)
      vim.api.nvim_buf_set_lines(buf, row, row, false, lines)
      tools[update.toolCallId] =
        { mark = vim.api.nvim_buf_set_extmark(buf, ns, row, 0, { right_gravity = false }), lines = #lines }
    else
      local row = vim.api.nvim_buf_get_extmark_by_id(buf, ns, tool.mark, {})[1]
      vim.api.nvim_buf_set_lines(buf, row, row + tool.lines, false, lines)
      tool.lines = #lines
    end
    to_tail()
  end

  ---@param message table
  local function receive(message)
    if message.method == "session/update" then
      local update = message.params.update
      local kind = update.sessionUpdate
      if kind == "tool_call" or kind == "tool_call_update" then
        draw_tool(update)
      elseif update.content then
        append((kind == "user_message_chunk" and "\n\n> " or "") .. (update.content.text or ""))
      end
    elseif message.method == "session/request_permission" then
      draw_tool(message.params.toolCall)
      local option = message.params.options[1].optionId
      local result = { outcome = { outcome = "selected", optionId = option } }
      job:write(vim.json.encode({ jsonrpc = "2.0", id = message.id, result = result }) .. "\n")
    elseif message.id and waiting[message.id] then
      local callback = waiting[message.id]
      waiting[message.id] = nil
      callback(message.result)
    end
  end

  ---@param method string
  ---@param params table
  ---@param callback fun(result: any)
  local function request(method, params, callback)
    next_id = next_id + 1
    waiting[next_id] = callback
    job:write(vim.json.encode({ jsonrpc = "2.0", id = next_id, method = method, params = params }) .. "\n")
  end

  local rest = ""
  job = vim.system(command, {
    stdin = true,
    stdout = vim.schedule_wrap(function(_, data)
      local lines = vim.split(rest .. (data or ""), "\n", { plain = true })
      rest = table.remove(lines)
      for _, line in ipairs(lines) do
        receive(vim.json.decode(line))
      end
    end),
  })
  local capabilities = { fs = { readTextFile = false, writeTextFile = false } }
  request("initialize", { protocolVersion = 1, clientCapabilities = capabilities }, function()
    request("authenticate", { methodId = "cursor_login" }, function()
      if load then
        request("session/load", { sessionId = load, cwd = cwd, mcpServers = {} }, on_end)
        return
      end
      request("session/new", { cwd = cwd, mcpServers = {} }, function(result)
        local prompt = { { type = "text", text = "go" } }
        request("session/prompt", { sessionId = result.sessionId, prompt = prompt }, on_end)
      end)
    end)
  end)
end

return M
