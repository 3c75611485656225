-- The OpenAI Responses API, as much of it as Codex uses: what it asks, and answers as a stream of events.

local M = {}

---@param request real.Request
---@return "stream"|"whole"|nil how it wants to be answered; nil: it asks something else
function M.asks(request)
  if request.method == "POST" and request.path:match("/responses%f[?%z]") then
    return "stream"
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
  for _, item in ipairs(body.input or {}) do
    if item.type == "message" then
      local texts = {}
      for _, part in ipairs(type(item.content) == "table" and item.content or { { text = item.content } }) do
        texts[#texts + 1] = part.text
      end
      said[#said + 1] = { model = item.role == "assistant", text = table.concat(texts, "\n"), results = {} }
    elseif item.type == "function_call" and not (said[#said] and said[#said].model) then
      said[#said + 1] = { model = true, text = "", results = {} }
    elseif item.type == "function_call_output" then
      said[#said + 1] = { model = false, text = "", results = { item } }
    end
  end
  return said
end

---@param body table
---@param id string
---@param parts real.Part[]
---@return string
function M.whole(body, id, parts)
  local texts = {}
  for _, part in ipairs(parts) do
    texts[#texts + 1] = { type = "output_text", text = part.text }
  end
  local message = { type = "message", role = "assistant", id = "msg_" .. id, content = texts }
  return vim.json.encode({ id = "resp_" .. id, model = body.model, output = { message } })
end

---What a tool is to be given: where it depends on what the tools before gave back, that is worked out now.
---@param part real.Part
---@param body table
---@return table
local function input_of(part, body)
  if type(part.input) ~= "function" then
    return part.input --[[@as table]]
  end
  local outputs = {} ---@type string[]
  for _, item in ipairs(body.input or {}) do
    if item.type == "function_call_output" then
      outputs[#outputs + 1] = item.output
    end
  end
  return part.input(outputs)
end

---The answer as it is streamed.
---@param body table
---@param id string of the answer, new each time
---@param parts real.Part[]
---@param cut fun(text: string): string[]
---@return real.Piece[]
function M.stream(body, id, parts, cut)
  local pieces = {}
  local function add(type, data, part)
    data.type = type
    pieces[#pieces + 1] = { part = part, text = ("event: %s\ndata: %s\n\n"):format(type, vim.json.encode(data)) }
  end
  add("response.created", { response = { id = "resp_" .. id } })
  for number, part in ipairs(parts) do
    local index = number - 1
    local name = ("%s_%d"):format(id, number)
    if part.tool then
      local namespace, tool = part.tool:match("^(.-)%.(.*)$")
      local item = {
        type = "function_call",
        id = "fc_" .. name,
        call_id = "call_" .. name,
        namespace = namespace,
        name = tool or part.tool,
        arguments = vim.json.encode(input_of(part, body)),
      }
      add("response.output_item.done", { output_index = index, item = item })
    else
      local item = { type = "message", id = "msg_" .. name, role = "assistant", content = {} }
      add("response.output_item.added", { output_index = index, item = item })
      for _, piece in ipairs(cut(part.text or "")) do
        local delta = { item_id = item.id, output_index = index, content_index = 0, delta = piece }
        add("response.output_text.delta", delta, part)
      end
      item.content = { { type = "output_text", text = part.text } }
      add("response.output_item.done", { output_index = index, item = item })
    end
  end
  local usage = { input_tokens = 100, output_tokens = 20, total_tokens = 120 }
  add("response.completed", { response = { id = "resp_" .. id, usage = usage } })
  return pieces
end

return M
