-- A released agent at an address: `qwen serve` as npm has it, reached over WebSocket. Only its model is ours, on loopback.

local T = require("harness")
local uv = vim.uv

-- As much as tests/real/install may take.
local INSTALL_MS = 620000
local START_MS = 60000
local TOKEN = "s3cret-of-the-server"

local command ---@type string[]?

---@return string? why it cannot be installed
local function install()
  local result = vim.system({ T.root .. "/tests/real/install", "qwen" }, { text = true }):wait()
  if result.code == 0 then
    command = vim.split(vim.trim(result.stdout or ""), "\n")
    return nil
  end
  local lines = vim.split(vim.trim(result.stderr or ""), "\n")
  return (lines[#lines] or "it cannot be installed"):gsub("^install: ", "") .. ""
end

---A model of the chat completions API that always says the same.
---@return string url, fun() close
local function serve_model()
  local server = assert(uv.new_tcp())
  assert(server:bind("127.0.0.1", 0))
  local function event(delta, reason)
    local choice = { index = 0, delta = delta, finish_reason = reason or vim.NIL }
    local chunk = { id = "x", object = "chat.completion.chunk", created = 1, model = "m", choices = { choice } }
    return ("data: %s\n\n"):format(vim.json.encode(chunk))
  end
  local body = event({ role = "assistant", content = "Hello from " })
    .. event({ content = "qwen." })
    .. event(vim.empty_dict(), "stop")
    .. "data: [DONE]\n\n"
  server:listen(16, function()
    local client = assert(uv.new_tcp())
    server:accept(client)
    local request = ""
    client:read_start(function(_, data)
      request = request .. (data or "")
      local head, rest = request:match("^(.-\r\n\r\n)(.*)$")
      local length = head and tonumber(head:lower():match("content%-length: (%d+)")) or 0
      if head and #(rest or "") >= length then
        client:read_stop()
        client:write(
          "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n" .. body,
          function()
            client:close()
          end
        )
      end
    end)
  end)
  return "http://127.0.0.1:" .. assert(server:getsockname()).port, function()
    server:close()
  end
end

local opts = { needs = install, needs_ms = INSTALL_MS, deadline_ms = 300000, width = 120 }

T.case("qwen serve answers over WebSocket, with its token", opts, function(nvim)
  local model, close = serve_model()
  local said = ""
  local server = vim.system(
    vim.list_extend(
      vim.deepcopy(assert(command)),
      { "--port", "0", "--require-auth", "--no-web", "--workspace", nvim.work }
    ),
    {
      cwd = nvim.work,
      env = {
        HOME = nvim.dir .. "/home",
        OPENAI_API_KEY = "not-a-key",
        OPENAI_BASE_URL = model .. "/v1",
        OPENAI_MODEL = "m",
        QWEN_SERVER_TOKEN = TOKEN,
      },
      stdout = function(_, data)
        said = said .. (data or "")
      end,
      stderr = function(_, data)
        said = said .. (data or "")
      end,
    }
  )
  local ok, problem = pcall(function()
    local url ---@type string?
    vim.wait(START_MS, function()
      url = said:find("WebSocket transport enabled", 1, true) and said:match("http://127%.0%.0%.1:%d+")
      return url ~= nil
    end, 50)
    T.ok(url, said)
    local options = { url = url, token = { "printf", TOKEN } } ---@type any
    nvim:use({ options = options }, { agent = "qwen", agents = { qwen = options } })
    nvim:keys(":CursorAgent<CR>")
    nvim:wait_state("idle", START_MS)
    nvim:keys("hi<C-s>")
    nvim:wait_turns(1, START_MS)
    T.eq(nvim:texts("agent"), { "Hello from qwen." })
  end)
  server:kill("sigterm")
  server:wait(5000)
  close()
  assert(ok, problem)
end)
