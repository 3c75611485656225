-- What no client can beat: the agent's output read like `cat`, as fast as the pipe gives it, and thrown away.

local uv = vim.uv

local M = {}

---@param command string[]
---@param cwd string
---@param load string? a past session instead of a prompt
---@return number? ms from the prompt to its answer
function M.run(command, cwd, load)
  local stdin, stdout = assert(uv.new_pipe()), assert(uv.new_pipe())
  local ended = false
  local handle = assert(uv.spawn(command[1], {
    args = vim.list_slice(command, 2),
    cwd = cwd,
    stdio = { stdin, stdout, nil },
  }, function()
    ended = true
  end))
  local next_id, tail, started, took = 0, "", 0, nil ---@type integer, string, integer, number?
  local answered = -1
  stdout:read_start(function(_, data)
    if not data then
      return
    end
    -- Only the end of what came can hold the answer to the last request.
    tail = #data < 4096 and (tail .. data):sub(-4096) or data:sub(-4096)
    local id = tail:match('"id":(%d+),"result"[^\n]*\n$') or tail:match('"result":.*"id":(%d+)}\n$')
    if id then
      answered = tonumber(id) --[[@as integer]]
    end
  end)
  ---@param method string
  ---@param params table
  local function request(method, params)
    next_id = next_id + 1
    stdin:write(vim.json.encode({ jsonrpc = "2.0", id = next_id, method = method, params = params }) .. "\n")
    local wanted = next_id
    return vim.wait(60000, function()
      return answered == wanted
    end, 1)
  end
  request("initialize", { protocolVersion = 1, clientCapabilities = vim.empty_dict() })
  request("authenticate", { methodId = "cursor_login" })
  if load then
    started = uv.hrtime()
    request("session/load", { sessionId = load, cwd = cwd, mcpServers = {} })
  else
    request("session/new", { cwd = cwd, mcpServers = {} })
    started = uv.hrtime()
    request("session/prompt", { sessionId = "session-1", prompt = { { type = "text", text = "go" } } })
  end
  took = (uv.hrtime() - started) / 1e6
  uv.process_kill(handle, "sigkill")
  vim.wait(5000, function()
    return ended
  end, 5)
  handle:close()
  stdin:close()
  stdout:close()
  return took
end

return M
