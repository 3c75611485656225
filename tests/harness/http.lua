-- A small HTTP server on loopback, in the harness itself: what it answers is the case's to say.

local uv = vim.uv

---@class harness.Answer
---@field status integer? 200 unless said
---@field body string?
---@field length integer? what Content-Length claims; the body's length unless said
---@field location string? of a redirect

---@class harness.Http
---@field url string without a slash at its end
---@field asked string[] the paths that were asked for
---@field private server uv.uv_tcp_t
local Http = {}
Http.__index = Http

local REASONS = { [200] = "OK", [302] = "Found", [404] = "Not Found", [500] = "Internal Server Error" }

---Serves until `close`.
---@param answer fun(path: string): harness.Answer
---@return harness.Http
function Http.serve(answer)
  local server = assert(uv.new_tcp())
  assert(server:bind("127.0.0.1", 0))
  local self = setmetatable({ server = server, asked = {} }, Http)
  server:listen(16, function()
    local client = assert(uv.new_tcp())
    server:accept(client)
    local request = ""
    client:read_start(function(_, data)
      request = request .. (data or "")
      local path = request:match("^GET (%S+) HTTP/1%.%d\r\n.*\r\n\r\n$")
      if not path then
        if data == nil and not client:is_closing() then
          client:close()
        end
        return
      end
      client:read_stop()
      table.insert(self.asked, path)
      local given = answer(path)
      local status, body = given.status or 200, given.body or ""
      client:write({
        ("HTTP/1.1 %d %s\r\n"):format(status, REASONS[status]),
        ("Content-Length: %d\r\nConnection: close\r\n"):format(given.length or #body),
        given.location and ("Location: %s\r\n"):format(given.location) or "",
        "\r\n",
        body,
      }, function()
        client:shutdown(function()
          client:close()
        end)
      end)
    end)
  end)
  self.url = "http://127.0.0.1:" .. assert(server:getsockname()).port
  return self
end

function Http:close()
  if not self.server:is_closing() then
    self.server:close()
  end
end

return Http
