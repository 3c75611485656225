-- A small WebSocket server on loopback: behind it, for each connection, a process that speaks in lines on stdin and stdout.

local uv = vim.uv
local bit = require("bit")

---@class harness.WebSocket
---@field url string
---@field requests string[] the heads of the requests that came
---@field private server uv.uv_tcp_t
---@field clients uv.uv_tcp_t[]
---@field processes uv.uv_process_t[]
local WebSocket = {}
WebSocket.__index = WebSocket

---@param text string
---@return string bytes
local function sha1(text)
  local rol, band, bor, bxor, bnot = bit.rol, bit.band, bit.bor, bit.bxor, bit.bnot
  local h = { 0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0 }
  local padded = text .. "\128" .. ("\0"):rep((55 - #text) % 64) .. "\0\0\0\0"
  for shift = 24, 0, -8 do
    padded = padded .. string.char(band(bit.rshift(#text * 8, shift), 255))
  end
  for at = 1, #padded, 64 do
    local w = {} ---@type integer[]
    for i = 0, 15 do
      local a, b, c, d = padded:byte(at + i * 4, at + i * 4 + 3)
      w[i] = bor(bit.lshift(a, 24), bit.lshift(b, 16), bit.lshift(c, 8), d)
    end
    for i = 16, 79 do
      w[i] = rol(bxor(w[i - 3], w[i - 8], w[i - 14], w[i - 16]), 1)
    end
    local a, b, c, d, e = h[1], h[2], h[3], h[4], h[5]
    for i = 0, 79 do
      local f, k ---@type integer, integer
      if i < 20 then
        f, k = bor(band(b, c), band(bnot(b), d)), 0x5A827999
      elseif i < 40 then
        f, k = bxor(b, c, d), 0x6ED9EBA1
      elseif i < 60 then
        f, k = bor(band(b, c), band(b, d), band(c, d)), 0x8F1BBCDC
      else
        f, k = bxor(b, c, d), 0xCA62C1D6
      end
      a, b, c, d, e = bit.tobit(rol(a, 5) + f + e + k + w[i]), a, rol(b, 30), c, d
    end
    for i, v in ipairs({ a, b, c, d, e }) do
      h[i] = bit.tobit(assert(h[i]) + v)
    end
  end
  local bytes = {} ---@type string[]
  for _, v in ipairs(h) do
    for shift = 24, 0, -8 do
      bytes[#bytes + 1] = string.char(band(bit.rshift(v, shift), 255))
    end
  end
  return table.concat(bytes)
end

---A text frame.
---@param text string
---@return string
local function frame(text)
  local head = "\129"
  if #text < 126 then
    return head .. string.char(#text) .. text
  end
  local count = #text < 65536 and 2 or 8
  head = head .. string.char(count == 2 and 126 or 127)
  for i = count - 1, 0, -1 do
    head = head .. string.char(math.floor(#text / 256 ^ i) % 256)
  end
  return head .. text
end

---Takes the first frame off the bytes of a client.
---@param bytes string
---@return integer? kind, string? text, string? rest
local function unframe(bytes)
  if #bytes < 2 then
    return
  end
  local kind, length, at = bit.band(bytes:byte(1), 15), bit.band(bytes:byte(2), 127), 3
  local more = length == 126 and 2 or length == 127 and 8 or 0
  if #bytes < 1 + more + 4 then
    return
  end
  if more > 0 then
    length = 0
    for i = at, at + more - 1 do
      length = length * 256 + bytes:byte(i)
    end
  end
  at = at + more
  if #bytes < at + 3 + length then
    return
  end
  local mask = { bytes:byte(at, at + 3) } ---@type integer[]
  local out = {} ---@type string[]
  for i = 0, length - 1 do
    out[i + 1] = string.char(bit.bxor(bytes:byte(at + 4 + i), mask[i % 4 + 1]))
  end
  return kind, table.concat(out), bytes:sub(at + 4 + length)
end

---Joins a client with a new process.
---@param self harness.WebSocket
---@param client uv.uv_tcp_t
---@param command string[]
---@param rest string what came after the request
local function join(self, client, command, rest)
  local stdin, stdout = assert(uv.new_pipe()), assert(uv.new_pipe())
  local process = uv.spawn(command[1], { args = vim.list_slice(command, 2), stdio = { stdin, stdout, 2 } }, function()
    if not client:is_closing() then
      client:close()
    end
  end)
  self.processes[#self.processes + 1] = assert(process)
  local line = ""
  stdout:read_start(function(_, data)
    line = line .. (data or "")
    for whole in line:gmatch("([^\n]*)\n") do
      if not client:is_closing() then
        client:write(frame(whole))
      end
    end
    line = line:match("[^\n]*$") or ""
  end)
  local function take(data)
    rest = rest .. data
    local kind, text, left = unframe(rest)
    while kind do
      rest = left or ""
      if kind == 1 then
        stdin:write(text .. "\n")
      elseif kind == 8 and not stdin:is_closing() then
        stdin:close()
      end
      kind, text, left = unframe(rest)
    end
  end
  take("")
  client:read_start(function(_, data)
    if data then
      take(data)
    elseif not stdin:is_closing() then
      stdin:close()
    end
  end)
end

---Serves until `close`. Whoever has not this bearer is refused.
---@param command string[]
---@param bearer string?
---@return harness.WebSocket
function WebSocket.serve(command, bearer)
  local server = assert(uv.new_tcp())
  assert(server:bind("127.0.0.1", 0))
  local self = setmetatable({ server = server, requests = {}, clients = {}, processes = {} }, WebSocket)
  server:listen(16, function()
    local client = assert(uv.new_tcp())
    server:accept(client)
    self.clients[#self.clients + 1] = client
    local bytes = ""
    client:read_start(function(_, data)
      bytes = bytes .. (data or "")
      local head, rest = bytes:match("^(.-\r\n\r\n)(.*)$")
      if not head then
        return
      end
      client:read_stop()
      self.requests[#self.requests + 1] = head
      local key = head:match("[Ss]ec%-[Ww]eb[Ss]ocket%-[Kk]ey: ([^\r]+)")
      local given = head:match("[Aa]uthorization: Bearer ([^\r]+)")
      if not key or given ~= bearer then
        client:write("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
        return
      end
      local accept = vim.base64.encode(sha1(key .. "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
      client:write(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nAcp-Connection-Id: one\r\n"
          .. ("Sec-WebSocket-Accept: %s\r\n\r\n"):format(accept)
      )
      join(self, client, command, rest or "")
    end)
  end)
  self.url = "ws://127.0.0.1:" .. assert(server:getsockname()).port
  return self
end

---Ends the server and its connections.
function WebSocket:close()
  for _, handle in ipairs(vim.list_extend({ self.server }, self.clients)) do
    if not handle:is_closing() then
      handle:close()
    end
  end
  for _, process in ipairs(self.processes) do
    process:kill("sigkill")
  end
end

return WebSocket
