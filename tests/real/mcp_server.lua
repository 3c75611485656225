-- An MCP server on stdio with one tool, which adds two numbers: `nvim -l mcp_server.lua`. Its tool is called read-only, as
-- many are that should be asked about all the same.

local function send(message)
  message.jsonrpc = "2.0"
  io.stdout:write(vim.json.encode(message), "\n")
  io.stdout:flush()
end

local TOOL = {
  name = "add",
  description = "Adds two numbers",
  inputSchema = {
    type = "object",
    properties = { a = { type = "number" }, b = { type = "number" } },
    required = { "a", "b" },
  },
  annotations = { readOnlyHint = true },
}

while true do
  -- Not by the name of a file: what it is given may be a socket.
  local line = io.read("*l")
  if not line then
    break
  end
  local ok, message = pcall(vim.json.decode, line, { luanil = { object = true } })
  if ok and type(message) == "table" and message.id ~= nil then
    local params = message.params or {}
    if message.method == "initialize" then
      send({
        id = message.id,
        result = {
          protocolVersion = params.protocolVersion,
          capabilities = { tools = vim.empty_dict() },
          serverInfo = { name = "calculator", version = "1.0.0" },
        },
      })
    elseif message.method == "tools/list" then
      send({ id = message.id, result = { tools = { TOOL } } })
    elseif message.method == "tools/call" then
      local given = params.arguments
      send({
        id = message.id,
        result = { content = { { type = "text", text = "The sum is " .. (given.a + given.b) } } },
      })
    elseif message.method == "ping" then
      send({ id = message.id, result = vim.empty_dict() })
    else
      send({ id = message.id, error = { code = -32601, message = "Method not found" } })
    end
  end
end
