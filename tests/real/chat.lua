-- The OpenAI Chat Completions API, which most agents can be led to: what they ask, and answers in one piece or as a stream.

local M = {}

---@param request real.Request
---@return "stream"|"whole"|nil how it wants to be answered; nil: it asks something else
function M.asks(request)
  if request.method == "POST" and request.path:match("/chat/completions%f[?%z]") then
    return request.body:find('"stream":%s*true') and "stream" or "whole"
  end
end

---@param body table
---@return boolean
function M.has_tools(body)
  return body.tools ~= nil and #body.tools > 0
end

---@param body table
---@return real.Said[]
function M.conversation(body)
  local said = {}
  for _, message in ipairs(body.messages or {}) do
    local texts = {}
    local content = message.content
    for _, part in ipairs(type(content) == "table" and content or { { text = content } }) do
      texts[#texts + 1] = part.text
    end
    local results = message.role == "tool" and { { content = table.concat(texts, "\n") } } or {}
    said[#said + 1] = { model = message.role == "assistant", text = table.concat(texts, "\n"), results = results }
  end
  return said
end

---What a tool is to be given: where it depends on what the tools before gave back, that is worked out now.
---@param part real.Part
---@param body table
---@return string
local function arguments(part, body)
  local input = part.input
  if type(input) == "function" then
    local outputs = {} ---@type string[]
    for _, message in ipairs(M.conversation(body)) do
      for _, result in ipairs(message.results) do
        outputs[#outputs + 1] = result.content
      end
    end
    input = input(outputs)
  end
  return vim.json.encode(next(input or {}) and input or vim.empty_dict())
end

---@param part real.Part
---@param id string
---@param number integer
---@param body table
---@return table
local function call_of(part, id, number, body)
  return {
    index = number - 1,
    id = ("call_%s_%d"):format(id, number),
    type = "function",
    ["function"] = { name = part.tool, arguments = arguments(part, body) },
  }
end

---@param parts real.Part[]
---@return "tool_calls"|"stop"
local function finish(parts)
  for _, part in ipairs(parts) do
    if part.tool then
      return "tool_calls"
    end
  end
  return "stop"
end

local USAGE = { prompt_tokens = 100, completion_tokens = 20, total_tokens = 120 }

---The answer in one piece.
---@param body table
---@param id string
---@param parts real.Part[]
---@return string
function M.whole(body, id, parts)
  local texts, calls = {}, {}
  for _, part in ipairs(parts) do
    if part.tool then
      table.insert(calls, call_of(part, id, #calls + 1, body))
    else
      table.insert(texts, part.text)
    end
  end
  local message = { role = "assistant", content = table.concat(texts, "\n"), tool_calls = #calls > 0 and calls or nil }
  return vim.json.encode({
    id = "chat_" .. id,
    object = "chat.completion",
    created = 1,
    model = body.model,
    choices = { { index = 0, message = message, finish_reason = finish(parts) } },
    usage = USAGE,
  })
end

---The answer as it is streamed.
---@param body table
---@param id string of the answer, new each time
---@param parts real.Part[]
---@param cut fun(text: string): string[]
---@return real.Piece[]
function M.stream(body, id, parts, cut)
  local pieces = {}
  local function add(delta, part, reason)
    local chunk = {
      id = "chat_" .. id,
      object = "chat.completion.chunk",
      created = 1,
      model = body.model,
      choices = { { index = 0, delta = delta, finish_reason = reason or vim.NIL } },
      usage = reason and USAGE or nil,
    }
    pieces[#pieces + 1] = { part = part, text = ("data: %s\n\n"):format(vim.json.encode(chunk)) }
  end
  add({ role = "assistant", content = "" })
  local calls = 0
  for _, part in ipairs(parts) do
    if part.tool then
      calls = calls + 1
      add({ tool_calls = { call_of(part, id, calls, body) } }, part)
    else
      for _, piece in ipairs(cut(part.text or part.thought or "")) do
        add({ [part.thought and "reasoning_content" or "content"] = piece }, part)
      end
    end
  end
  add(vim.empty_dict(), nil, finish(parts))
  pieces[#pieces + 1] = { text = "data: [DONE]\n\n" }
  return pieces
end

return M
