-- A model that says what a case wrote down, behind an endpoint that speaks the Anthropic Messages API.
--
-- Which answer comes next is read off the conversation the agent sends: the last prompt that has a script, and how
-- often the model has spoken since. So an agent may repeat a request, or ask for titles and summaries in between.

local Server = require("real.http")

-- Between two pieces of a stream that is not said to be slow: they arrive one by one, as from a real model.
local PIECE_MS = 2

---A part of an answer: a text, a thought, or the use of a tool. `slow_ms`: that long between its pieces.
---@class real.Part
---@field text string?
---@field thought string?
---@field tool string?
---@field input table? of the tool
---@field slow_ms integer?

---@class real.Model
---@field url string for ANTHROPIC_BASE_URL
---@field requests table[] the bodies of what was asked for the conversations that have a script, oldest first
---@field others string[] what else was asked
---@field hung_up integer streams the agent ended before they were whole
---@field private scripts table<string, real.Part[][]>
---@field private server real.Server
local Model = {}
Model.__index = Model

---@return real.Model
function Model.start()
  local self = setmetatable({ requests = {}, others = {}, hung_up = 0, scripts = {} }, Model)
  self.server = Server.start(function(request, response)
    self:answer(request, response)
  end)
  self.url = "http://127.0.0.1:" .. self.server.port
  return self
end

---Writes down what the model answers to a prompt that holds this text: first to it, then to what each tool gave back.
---@param prompt string
---@param answers real.Part[][]
function Model:script(prompt, answers)
  self.scripts[prompt] = answers
end

---What went wrong in the server.
---@return string?
function Model:problem()
  return self.server.problem
end

function Model:stop()
  self.server:stop()
end

---The text a message holds, tool results left out.
---@param message { content: any } a text, or a list of blocks
---@return string
local function text_of(message)
  if type(message.content) == "string" then
    return message.content
  end
  local texts = {}
  for _, block in ipairs(message.content) do
    if block.type == "text" then
      texts[#texts + 1] = block.text
    end
  end
  return table.concat(texts, "\n")
end

---@private
---@param body table
---@return real.Part[]?
function Model:next_answer(body)
  local spoken = 0
  for index = #body.messages, 1, -1 do
    local message = body.messages[index]
    if message.role == "assistant" then
      spoken = spoken + 1
    else
      local text = text_of(message)
      for prompt, answers in pairs(self.scripts) do
        if text:find(prompt, 1, true) then
          return answers[spoken + 1]
            or { { text = ("(the script of %q has no answer %d)"):format(prompt, spoken + 1) } }
        end
      end
    end
  end
end

---@private
---@param request real.Request
---@param response real.Response
function Model:answer(request, response)
  local path = request.path:gsub("%?.*", "")
  if request.method ~= "POST" or path ~= "/v1/messages" then
    self.others[#self.others + 1] = request.method .. " " .. request.path
    return response:send(404, "application/json", '{"type":"error","error":{"type":"not_found_error","message":"no"}}')
  end
  local body = vim.json.decode(request.body, { luanil = { object = true, array = true } })
  -- Requests without tools are the agent's own: a title for the session, a check of the key.
  local parts = body.tools and #body.tools > 0 and self:next_answer(body) or nil
  if parts then
    self.requests[#self.requests + 1] = body
  else
    self.others[#self.others + 1] = request.method .. " " .. request.path
    parts = { { text = '{"title": "A scripted session"}' } }
  end
  if body.stream then
    self:stream(response, body.model, parts)
  else
    local content = {}
    for _, part in ipairs(parts) do
      content[#content + 1] = part.text and { type = "text", text = part.text } or nil
    end
    local message = self:message(body.model)
    message.content, message.stop_reason = content, "end_turn"
    response:send(200, "application/json", vim.json.encode(message))
  end
end

---@private
---@param model string
---@return table
function Model:message(model)
  return {
    id = ("msg_%d_%d"):format(#self.requests, #self.others),
    type = "message",
    role = "assistant",
    model = model,
    content = vim.empty_dict(),
    usage = { input_tokens = 100, output_tokens = 1 },
  }
end

---Cuts a text after its spaces: a word a piece.
---@param text string
---@return string[]
local function words(text)
  local pieces = {}
  for piece in text:gmatch("%s*%S+%s*") do
    pieces[#pieces + 1] = piece
  end
  return pieces
end

---The events of an answer, in order, each with the time to wait before it.
---@private
---@param model string
---@param parts real.Part[]
---@return { type: string, wait_ms: integer, data: table }[]
function Model:events(model, parts)
  local events = {}
  local function add(type, data, wait_ms)
    data.type = type
    events[#events + 1] = { type = type, data = data, wait_ms = wait_ms or 0 }
  end
  add("message_start", { message = self:message(model) })
  local used_tool = false
  for index, part in ipairs(parts) do
    local block, deltas
    if part.tool then
      used_tool = true
      block = {
        type = "tool_use",
        id = ("toolu_%d_%d"):format(#self.requests, index),
        name = part.tool,
        input = vim.empty_dict(),
      }
      deltas = vim.tbl_map(function(piece)
        return { type = "input_json_delta", partial_json = piece }
      end, words(vim.json.encode(part.input)))
    elseif part.thought then
      block = { type = "thinking", thinking = "", signature = "" }
      deltas = vim.tbl_map(function(piece)
        return { type = "thinking_delta", thinking = piece }
      end, words(part.thought))
      deltas[#deltas + 1] = { type = "signature_delta", signature = "c2lnbmVk" }
    else
      block = { type = "text", text = "" }
      deltas = vim.tbl_map(function(piece)
        return { type = "text_delta", text = piece }
      end, words(part.text or ""))
    end
    add("content_block_start", { index = index - 1, content_block = block })
    for _, delta in ipairs(deltas) do
      add("content_block_delta", { index = index - 1, delta = delta }, part.slow_ms or PIECE_MS)
    end
    add("content_block_stop", { index = index - 1 })
  end
  add("message_delta", {
    delta = { stop_reason = used_tool and "tool_use" or "end_turn" },
    usage = { output_tokens = 20 },
  })
  add("message_stop", {})
  return events
end

---@private
---@param response real.Response
---@param model string
---@param parts real.Part[]
function Model:stream(response, model, parts)
  local events = self:events(model, parts)
  local timer = assert(vim.uv.new_timer())
  local function send(index)
    local event = events[index]
    if not event or response.gone then
      timer:close()
      if response.gone then
        self.hung_up = self.hung_up + 1
      else
        response:finish()
      end
      return
    end
    response:write(("event: %s\ndata: %s\n\n"):format(event.type, vim.json.encode(event.data)))
    local following = events[index + 1]
    timer:start(following and following.wait_ms or 0, 0, function()
      send(index + 1)
    end)
  end
  response:start("text/event-stream")
  send(1)
end

return Model
