-- Agents elsewhere: in a directory of their own, whose paths are mapped both ways, and at an address, over WebSocket.

local T = require("harness")
local WebSocket = require("harness.websocket")
local files = require("harness.file")

local write = files.write

---An agent at an address.
---@param url string
---@param token string|string[]
---@return any
local function afar(url, token)
  return { options = { url = url, token = token } }
end

T.case("an agent in a directory of its own reads and writes by the paths it knows", { width = 120 }, function(nvim)
  -- The project is elsewhere for the agent, as in a container that has it mounted.
  local there = nvim.dir .. "/there"
  assert(vim.uv.fs_symlink(nvim.work, there))
  write(nvim.work .. "/notes.txt", "old\n")
  local agent = T.agent({
    profile = "plain",
    turns = {
      {
        {
          request = { method = "fs/read_text_file", params = { sessionId = "{session}", path = there .. "/notes.txt" } },
        },
        {
          update = {
            sessionUpdate = "tool_call",
            toolCallId = "e1",
            title = "Edit " .. there .. "/notes.txt",
            kind = "edit",
            status = "in_progress",
            locations = { { path = there .. "/notes.txt", line = 1 } },
            content = { { type = "diff", path = there .. "/notes.txt", oldText = "old\n", newText = "new\n" } },
          },
        },
        {
          request = {
            method = "fs/write_text_file",
            params = { sessionId = "{session}", path = there .. "/notes.txt", content = "new " .. there .. "\n" },
          },
        },
        { update = { sessionUpdate = "tool_call_update", toolCallId = "e1", status = "completed" } },
        { update = { sessionUpdate = "agent_message_chunk", content = { type = "text", text = "Done." } } },
      },
    },
  })
  nvim:use(agent, { agents = { test = { paths = { [nvim.work] = there } } } })
  nvim:keys(":edit notes.txt<CR>:CursorAgent<CR>")
  nvim:wait_state("idle")
  nvim:keys("edit @notes.txt <C-s>")
  nvim:wait_turns(1)
  T.eq(agent:received("session/new")[1].params.cwd, there)
  local links = {}
  for _, block in ipairs(agent:received("session/prompt")[1].params.prompt) do
    local uri = block.uri or (block.resource and block.resource.uri)
    links[#links + 1] = uri
  end
  T.eq(links, { "file://" .. there .. "/notes.txt" })
  T.eq(agent:answers("fs/read_text_file")[1].result.content, "old\n")
  T.eq(vim.fn.readfile(nvim.work .. "/notes.txt"), { "new " .. there })
  local tool ---@type table?
  for _, entry in ipairs(nvim:lua("return require('cursor_agent').transcript()")) do
    tool = entry.kind == "tool" and entry.tool and entry.tool.id == "e1" and entry or tool
  end
  tool = assert(tool, "no tool call")
  T.eq(tool.tool.locations[1].path, nvim.work .. "/notes.txt")
  T.eq(tool.text, "Edit " .. nvim.work .. "/notes.txt")
  T.eq(nvim:lua("return require('cursor_agent').changes()[1].path"), nvim.work .. "/notes.txt")
  -- The buffer of the file shows it.
  nvim:wait_screen("new " .. there)
end)

T.case("an agent at an address is reached with a token of a command", { width = 120 }, function(nvim)
  local agent = T.agent({
    profile = "plain",
    turns = {
      { { update = { sessionUpdate = "agent_message_chunk", content = { type = "text", text = "From afar." } } } },
    },
  })
  local server = WebSocket.serve(agent.options.command, "s3cret-of-afar")
  local ok, problem = pcall(function()
    nvim:use(afar(server.url, { "printf", "%s\\n", "s3cret-of-afar" }))
    nvim:keys(":CursorAgent<CR>")
    nvim:wait_state("idle")
    T.contains(server.requests[1], "GET /acp HTTP/1.1")
    nvim:keys("hello<C-s>")
    nvim:wait_turns(1)
    T.eq(nvim:texts("agent"), { "From afar." })
    nvim:keys("<Esc>:CursorAgent status<CR>")
    nvim:wait_screen("Address     " .. server.url)
    nvim:keys("q")
    -- The connection is lost: a message says so, and another try works.
    for _, client in ipairs(server.clients) do
      if not client:is_closing() then
        client:close()
      end
    end
    nvim:wait_state("failed")
    T.contains(nvim:status().error, "the connection was lost")
    nvim:keys(":CursorAgent restart<CR>")
    nvim:wait_state("idle")
    T.eq(#server.requests, 2)
  end)
  server:close()
  assert(ok, problem)
end)

T.case("a wrong token is named, and shown nowhere", { width = 120 }, function(nvim)
  local agent = T.agent({ profile = "plain" })
  local server = WebSocket.serve(agent.options.command, "right")
  local ok, problem = pcall(function()
    nvim:use(afar(server.url, "s3cret-and-wrong"))
    nvim:keys(":CursorAgent<CR>")
    nvim:wait_state("failed")
    T.contains(nvim:status().error, "401 Unauthorized; check the token")
    T.contains(server.requests[1], "Bearer s3cret-and-wrong")
    local log = nvim:lua("return table.concat(require('cursor_agent.bridge').log(1), '\\n')")
    T.ok(not (log .. nvim:status().error .. nvim:messages()):find("s3cret", 1, true), log)
  end)
  server:close()
  assert(ok, problem)
end)
