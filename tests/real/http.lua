-- A small HTTP/1.1 server on loopback, inside this process: as much of it as an agent asks of a model's endpoint.

local uv = vim.uv

---@class real.Request
---@field method string
---@field path string with the query
---@field headers table<string, string> names in lower case
---@field body string

---@class real.Response
---@field gone boolean the other side hung up before the end
---@field private tcp uv.uv_tcp_t
---@field private on_done fun()
local Response = {}
Response.__index = Response

---Answers at once.
---@param status integer
---@param type string
---@param body string
function Response:send(status, type, body)
  self:write_raw(
    ("HTTP/1.1 %d Status\r\ncontent-type: %s\r\ncontent-length: %d\r\n\r\n%s"):format(status, type, #body, body)
  )
  self.on_done()
end

---Begins an answer that comes in pieces.
---@param type string
function Response:start(type)
  self:write_raw(
    ("HTTP/1.1 200 Status\r\ncontent-type: %s\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n"):format(
      type
    )
  )
end

---@param data string
function Response:write(data)
  self:write_raw(("%x\r\n%s\r\n"):format(#data, data))
end

function Response:finish()
  self:write_raw("0\r\n\r\n")
  self.on_done()
end

---@private
---@param data string
function Response:write_raw(data)
  if not self.gone then
    self.tcp:write(data)
  end
end

---Takes one whole request off the front of what was received; nil while there is none.
---@param data string
---@return real.Request? request
---@return string rest
local function parse(data)
  local _, head_end = data:find("\r\n\r\n", 1, true)
  if not head_end then
    return nil, data
  end
  local head = data:sub(1, head_end - 2)
  local method, path = head:match("^(%S+) (%S+)")
  assert(method and path, "a request without a first line")
  local headers = {}
  for name, value in head:gmatch("\r\n([^:\r\n]+):[ \t]*([^\r\n]*)") do
    headers[name:lower()] = value
  end
  assert(not headers["transfer-encoding"], "a request in chunks")
  local body_end = head_end + (tonumber(headers["content-length"]) or 0) --[[@as integer]]
  if #data < body_end then
    return nil, data
  end
  local body = data:sub(head_end + 1, body_end)
  return { method = method, path = path, headers = headers, body = body }, data:sub(body_end + 1)
end

---@class real.Server
---@field port integer
---@field problem string? the first thing that went wrong in here
---@field private tcp uv.uv_tcp_t
---@field private connections table<uv.uv_tcp_t, boolean>
local Server = {}
Server.__index = Server

---Listens on a free port. The handler runs as a callback of the loop: it may use `vim.uv` and `vim.json`, not the API.
---@param handler fun(request: real.Request, response: real.Response)
---@return real.Server
function Server.start(handler)
  local tcp = assert(uv.new_tcp())
  assert(tcp:bind("127.0.0.1", 0))
  local self = setmetatable({ tcp = tcp, port = assert(tcp:getsockname()).port, connections = {} }, Server)
  assert(tcp:listen(64, function()
    local client = assert(uv.new_tcp())
    tcp:accept(client)
    self:serve(client, handler)
  end))
  return self
end

---@private
---@param client uv.uv_tcp_t
---@param handler fun(request: real.Request, response: real.Response)
function Server:serve(client, handler)
  self.connections[client] = true
  local received, current = "", nil ---@type string, real.Response?

  -- One at a time: what comes while a request is being answered waits.
  local function step()
    local request
    while not current and not client:is_closing() do
      request, received = parse(received)
      if not request then
        return
      end
      current = setmetatable({
        gone = false,
        tcp = client,
        on_done = function()
          current = nil
        end,
      }, Response)
      handler(request, current)
    end
  end

  client:read_start(function(_, data)
    if data then
      received = received .. data
      local ok, message = pcall(step)
      if not ok then
        self.problem = self.problem or tostring(message)
        data = nil
      end
    end
    if not data then
      if current then
        current.gone = true
      end
      self:drop(client)
    end
  end)
end

---@private
---@param client uv.uv_tcp_t
function Server:drop(client)
  self.connections[client] = nil
  if not client:is_closing() then
    client:close()
  end
end

function Server:stop()
  for client in pairs(self.connections) do
    self:drop(client)
  end
  self.tcp:close()
end

return Server
