-- A model that says what a case wrote down, behind an endpoint on loopback that speaks like a vendor's.
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
---@field input table|(fun(outputs: string[]): table)|nil of the tool; worked out from what the tools before gave back
---@field slow_ms integer?

---One message of a conversation: by the model or not, its text, and what tools gave back in it.
---@class real.Said
---@field model boolean
---@field text string
---@field results table[]

---What is written at once; of which part of the answer it is a piece.
---@class real.Piece
---@field text string
---@field part real.Part?

---@class real.Model
---@field url string the endpoint
---@field requests table[] the bodies of what was asked for the conversations that have a script, oldest first
---@field others string[] what else was asked
---@field hung_up integer streams the agent ended before they were whole
---@field private api table
---@field private scripts table<string, real.Part[][]>
---@field private server real.Server
local Model = {}
Model.__index = Model

---@param api "anthropic"|"gemini"|"openai"|"chat" whose interface
---@return real.Model
function Model.start(api)
  local self = setmetatable({
    api = require("real." .. api),
    requests = {},
    others = {},
    hung_up = 0,
    scripts = {},
  }, Model)
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

---What the last tool the model used gave back, as the agent sent it.
---@return table
function Model:tool_result()
  local said = self.api.conversation(self.requests[#self.requests])
  for index = #said, 1, -1 do
    if #said[index].results > 0 then
      return said[index].results[#said[index].results]
    end
  end
  error("no tool gave anything back")
end

---What went wrong in the server.
---@return string?
function Model:problem()
  return self.server.problem
end

function Model:stop()
  self.server:stop()
end

---@private
---@param said real.Said[]
---@return real.Part[]?
function Model:next_answer(said)
  local spoken = 0
  for index = #said, 1, -1 do
    if said[index].model then
      spoken = spoken + 1
    else
      for prompt, answers in pairs(self.scripts) do
        if said[index].text:find(prompt, 1, true) then
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
  local how = self.api.asks(request)
  if not how then
    self.others[#self.others + 1] = request.method .. " " .. request.path
    return response:send(404, "application/json", '{"error":{"type":"not_found_error","message":"not in the script"}}')
  end
  local body = vim.json.decode(request.body, { luanil = { object = true, array = true } })
  -- Requests without tools are the agent's own: a title for the session, a check of the key.
  local parts = self.api.has_tools(body) and self:next_answer(self.api.conversation(body)) or nil
  if parts then
    self.requests[#self.requests + 1] = body
  else
    self.others[#self.others + 1] = request.method .. " " .. request.path
    parts = { { text = '{"title": "A scripted session"}' } }
  end
  local id = ("%d_%d"):format(#self.requests, #self.others)
  if how == "stream" then
    self:stream(response, self.api.stream(body, id, parts, self.words))
  else
    response:send(200, "application/json", self.api.whole(body, id, parts))
  end
end

---Cuts a text after its spaces: a word a piece.
---@private
---@param text string
---@return string[]
function Model.words(text)
  local pieces = {}
  for piece in text:gmatch("%s*%S+%s*") do
    pieces[#pieces + 1] = piece
  end
  return pieces
end

---@private
---@param response real.Response
---@param pieces real.Piece[]
function Model:stream(response, pieces)
  local timer = assert(vim.uv.new_timer())
  local function send(index)
    if not pieces[index] or response.gone then
      timer:close()
      if response.gone then
        self.hung_up = self.hung_up + 1
      else
        response:finish()
      end
      return
    end
    response:write(pieces[index].text)
    local part = pieces[index].part ---@type real.Part?
    timer:start(part and part.slow_ms or PIECE_MS, 0, function()
      send(index + 1)
    end)
  end
  response:start("text/event-stream")
  send(1)
end

return Model
