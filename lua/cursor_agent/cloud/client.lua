-- The companion program that talks to Cursor's cloud: started at the first question, gone with Neovim.

local config = require("cursor_agent.config")
local events = require("cursor_agent.bridge.events")
local paths = require("cursor_agent.bridge.paths")
local variables = require("cursor_agent.cloud.env")

local M = {}

---@class (exact) cursor_agent.cloud.Row an agent as the dashboard shows it
---@field id string
---@field name string
---@field state "creating"|"running"|"asks"|"finished"|"error"|"stopped"|"expired"|"loading"|"active"|"idle"
---@field archived boolean
---@field url string
---@field repo string? owner/name
---@field repo_url string?
---@field ref string?
---@field branch string?
---@field pr string?
---@field run string?
---@field created_ms integer?
---@field updated_ms integer?
---@field elapsed_ms number? of the newest run
---@field started_ms integer? of the newest run
---@field why string?
---@field result string?

---@class (exact) cursor_agent.cloud.Process
---@field system vim.SystemObj
---@field waiting table<integer, fun(result: any, message: string?, data: table?)>
---@field next_id integer
---@field rest string the beginning of a line
---@field stderr string
---@field signature string what it was started with

local process ---@type cursor_agent.cloud.Process?

---How often the program was started: another one may have another key.
M.starts = 0

---@return string
local function program()
  return paths.root() .. "/lib/cursor-agent-cloud"
end

---Whether an embedded fake replaces Cursor.
---@return boolean
function M.is_demo()
  return config.get().cloud.url == "demo"
end

---@param of cursor_agent.cloud.Process
---@param message string
local function fail_all(of, message)
  local waiting = of.waiting
  of.waiting = {}
  for _, callback in pairs(waiting) do
    callback(nil, message)
  end
end

---@param of cursor_agent.cloud.Process
---@param line string
local function take(of, line)
  local ok, message = pcall(vim.json.decode, line, { luanil = { object = true, array = true } })
  if not ok or type(message) ~= "table" then
    return
  end
  if message.method then
    events.emit("cloud " .. message.method, message.params or {})
    return
  end
  local callback = message.id and of.waiting[message.id]
  if not callback then
    return
  end
  of.waiting[message.id] = nil
  if message.error then
    callback(nil, message.error.message, message.error.data)
  else
    callback(message.result)
  end
end

---@return cursor_agent.cloud.Process?, string?
local function start()
  local env = variables.of(config.get().cloud)
  local demo = M.is_demo()
  -- A key that was set since, say with `:let $CURSOR_API_KEY`, takes effect at the next question.
  local signature = demo and "demo" or vim.inspect(variables.all(config.get().cloud))
  if process and process.signature == signature then
    return process
  end
  M.stop()
  if vim.fn.executable(program()) == 0 then
    return nil, "cursor-agent-cloud is missing: :CursorAgent build installs it"
  end
  local this = { waiting = {}, next_id = 1, rest = "", stderr = "", signature = signature }
  local command = demo and { program(), "rpc", "--demo" } or { program(), "rpc" }
  local ok, system = pcall(vim.system, command, {
    stdin = true,
    env = env,
    stdout = function(_, data)
      if not data then
        return
      end
      vim.schedule(function()
        local text = this.rest .. data
        local at = 1
        while true do
          local stop = text:find("\n", at, true)
          if not stop then
            break
          end
          take(this --[[@as cursor_agent.cloud.Process]], text:sub(at, stop - 1))
          at = stop + 1
        end
        this.rest = text:sub(at)
      end)
    end,
    stderr = function(_, data)
      this.stderr = (this.stderr .. (data or "")):sub(-2000)
    end,
  }, function(result)
    vim.schedule(function()
      local unasked = process == this
      if unasked then
        process, variables.demo_url = nil, nil
      end
      local why = vim.trim(this.stderr):gsub("^cursor%-agent%-cloud: ", "")
      local said = why ~= "" and why or ("cursor-agent-cloud exited (code %d)"):format(result.code)
      fail_all(this --[[@as cursor_agent.cloud.Process]], said)
      if unasked then
        events.emit("cloud gone", said)
      end
    end)
  end)
  if not ok then
    return nil, ("could not start cursor-agent-cloud: %s"):format(tostring(system))
  end
  this.system = system
  process = this --[[@as cursor_agent.cloud.Process]]
  M.starts = M.starts + 1
  vim.api.nvim_create_autocmd("VimLeavePre", {
    group = vim.api.nvim_create_augroup("cursor_agent_cloud", {}),
    desc = "cursor-agent: stop cursor-agent-cloud",
    callback = M.stop,
  })
  return process
end

---Asks the program. The callback gets the result, or nil and a sentence.
---@param method string
---@param params table
---@param callback fun(result: any, message: string?, data: { kind: string?, status: integer? }?)
function M.request(method, params, callback)
  local to, why = start()
  if not to then
    callback(nil, why)
    return
  end
  local id = to.next_id
  to.next_id = id + 1
  to.waiting[id] = callback
  params = next(params) and params or vim.empty_dict()
  local line = vim.json.encode({ jsonrpc = "2.0", id = id, method = method, params = params }) .. "\n"
  -- One that has just ended takes nothing any more; its end answers everything that waits.
  pcall(to.system.write, to.system, line)
end

---Runs something once it is known where the API is.
---@param callback fun(hello: { url: string, demo: boolean }?, message: string?)
function M.ready(callback)
  M.request("hello", {}, function(result, message)
    variables.demo_url = result and result.demo and result.url or nil
    callback(result, message)
  end)
end

---Whether the program runs.
---@return boolean
function M.is_running()
  return process ~= nil
end

---Ends the program.
function M.stop()
  local old = process
  process, variables.demo_url = nil, nil
  if old then
    pcall(function()
      old.system:write(nil)
      old.system:kill("sigterm")
    end)
    fail_all(old, "cursor-agent-cloud was stopped")
  end
end

return M
