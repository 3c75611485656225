-- A msgpack-RPC client for one child process: Neovim's API over its stdin and stdout, with a deadline on every call.
--
-- Not `jobstart({ rpc = true })`: there a call to a child that hangs blocks for ever, and the redraw events that say
-- what a person sees are thrown away.

local uv = vim.uv

---@class harness.Rpc
---@field pid integer
---@field stderr string all the process wrote there
---@field exit { code: integer, signal: integer }? once the process ended
---@field broken string? why nothing more can be read
---@field stuck boolean? it ran and did not answer a call in time
---@field private session any
---@field private handle uv.uv_process_t
---@field private stdin uv.uv_pipe_t
---@field private on_notification fun(method: string, args: any[])
local Rpc = {}
Rpc.__index = Rpc

---@param command string[]
---@param opts { env: table<string, string>, cwd: string, on_notification: fun(method: string, args: any[]) }
---@return harness.Rpc
function Rpc.spawn(command, opts)
  local self = setmetatable({ stderr = "", on_notification = opts.on_notification }, Rpc)
  -- Handles of buffers, windows and tabs travel as extension types whose payload is their number.
  local function handle(_, payload)
    return vim.mpack.decode(payload)
  end
  self.session = vim.mpack.Session({
    unpack = vim.mpack.Unpacker({ ext = { [0] = handle, [1] = handle, [2] = handle } }),
  })

  local stdin, stdout, stderr = uv.new_pipe(), uv.new_pipe(), uv.new_pipe()
  self.stdin = assert(stdin)
  local env = {}
  for name, value in pairs(opts.env) do
    env[#env + 1] = name .. "=" .. value
  end
  local process, pid = uv.spawn(command[1], {
    args = vim.list_slice(command, 2),
    env = env,
    cwd = opts.cwd,
    stdio = { stdin, stdout, stderr },
    hide = true,
  }, function(code, signal)
    self.exit = { code = code, signal = signal }
    self.handle:close()
  end)
  assert(process, pid)
  self.handle, self.pid = process, pid --[[@as integer]]

  assert(stdout):read_start(function(err, data)
    if data then
      local ok, message = pcall(self.receive, self, data)
      if not ok then
        self.broken = tostring(message)
      end
    else
      self.broken = self.broken or err or "it closed its end"
      assert(stdout):close()
    end
  end)
  assert(stderr):read_start(function(_, data)
    if data then
      self.stderr = self.stderr .. data
    else
      assert(stderr):close()
    end
  end)
  return self
end

---@private
---@param data string
function Rpc:receive(data)
  local position = 1
  while position <= #data do
    -- Of a response: its callback in place of an id, then the error, then the result.
    local kind, id, method, args, after = self.session:receive(data, position)
    position = after
    if kind == "notification" then
      self.on_notification(method, args)
    elseif kind == "response" then
      id(method, args)
    elseif kind == "request" then
      self.stdin:write(
        self.session:reply(id) .. vim.mpack.encode("the test has no methods") .. vim.mpack.encode(vim.NIL)
      )
    end
  end
end

---What stands in the way of talking to the process, or nil.
---@return string?
function Rpc:gone()
  if self.exit then
    local how = self.exit.signal ~= 0 and "signal " .. self.exit.signal or "exit code " .. self.exit.code
    return "Neovim is gone (" .. how .. ")"
  end
  return self.broken and "Neovim cannot be heard (" .. self.broken .. ")" or nil
end

---Calls an API function and waits for its answer.
---@param timeout_ms integer
---@param method string
---@param ... any
---@return any
function Rpc:call(timeout_ms, method, ...)
  local gone = self:gone()
  if gone then
    error(("%s: %s"):format(method, gone), 0)
  end
  local done, failure, result = false, nil, nil
  local header = self.session:request(function(err, value)
    done, failure, result = true, err, value
  end)
  self.stdin:write(header .. vim.mpack.encode(method) .. vim.mpack.encode({ ... }))
  vim.wait(timeout_ms, function()
    return done or self:gone() ~= nil
  end, 10)
  if not done then
    self.stuck = not self:gone()
    error(("%s: %s"):format(method, self:gone() or ("no answer within %d ms"):format(timeout_ms)), 0)
  end
  if failure ~= nil and failure ~= vim.NIL then
    error(type(failure) == "table" and failure[2] or tostring(failure), 0)
  end
  return result
end

---Calls an API function without waiting: its effect and its failure are for the test to see.
---@param method string
---@param ... any
function Rpc:notify(method, ...)
  if not self:gone() then
    self.stdin:write(self.session:notify() .. vim.mpack.encode(method) .. vim.mpack.encode({ ... }))
  end
end

---@param timeout_ms integer
---@return boolean ended
function Rpc:wait_exit(timeout_ms)
  return (vim.wait(timeout_ms, function()
    return self.exit ~= nil
  end, 10))
end

---@param signal string|integer
function Rpc:kill(signal)
  if not self.exit then
    uv.kill(self.pid, signal)
  end
end

---Closes our end: Neovim takes it as its user interface going away.
function Rpc:close()
  if not self.stdin:is_closing() then
    self.stdin:close()
  end
end

return Rpc
