-- The Anthropic Messages API, as much of it as agents use: what they ask, and answers as a stream of events.

local M = {}

---@param request real.Request
---@return "stream"|"whole"|nil how it wants to be answered; nil: it asks something else
function M.asks(request)
  if request.method == "POST" and request.path:match("^/v1/messages%f[?%z]") then
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
  for _, message in ipairs(body.messages) do
    local texts, results = {}, {}
    local content = message.content
    if type(content) == "string" then
      content = { { type = "text", text = content } }
    end
    for _, block in ipairs(content) do
      if block.type == "text" then
        texts[#texts + 1] = block.text
      elseif block.type == "tool_result" then
        results[#results + 1] = block
      end
    end
    said[#said + 1] = { model = message.role == "assistant", text = table.concat(texts, "\n"), results = results }
  end
  return said
end

---@param body table
---@param id string
---@return table
local function message(body, id)
  return {
    id = "msg_" .. id,
    type = "message",
    role = "assistant",
    model = body.model,
    content = {},
    usage = { input_tokens = 100, output_tokens = 1 },
  }
end

---The answer in one piece; only texts.
---@param body table
---@param id string
---@param parts real.Part[]
---@return string
function M.whole(body, id, parts)
  local answer = message(body, id)
  answer.content, answer.stop_reason = {}, "end_turn"
  for _, part in ipairs(parts) do
    table.insert(answer.content, { type = "text", text = part.text })
  end
  return vim.json.encode(answer)
end

---@param part real.Part
---@param id string
---@return table block what it begins with
---@return fun(piece: string): table delta what a piece of it is sent as
---@return string text what is sent in pieces
local function block_of(part, id)
  if part.tool then
    local block = { type = "tool_use", id = "toolu_" .. id, name = part.tool, input = vim.empty_dict() }
    return block,
      function(piece)
        return { type = "input_json_delta", partial_json = piece }
      end,
      vim.json.encode(part.input)
  elseif part.thought then
    return { type = "thinking", thinking = "", signature = "" },
      function(piece)
        return { type = "thinking_delta", thinking = piece }
      end,
      part.thought
  end
  return { type = "text", text = "" },
    function(piece)
      return { type = "text_delta", text = piece }
    end,
    part.text or ""
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
  add("message_start", { message = message(body, id) })
  local stop_reason = "end_turn"
  for number, part in ipairs(parts) do
    local index = number - 1
    local block, delta, text = block_of(part, ("%s_%d"):format(id, number))
    add("content_block_start", { index = index, content_block = block })
    for _, piece in ipairs(cut(text)) do
      add("content_block_delta", { index = index, delta = delta(piece) }, part)
    end
    if part.thought then
      add("content_block_delta", { index = index, delta = { type = "signature_delta", signature = "c2lnbmVk" } })
    end
    add("content_block_stop", { index = index })
    stop_reason = part.tool and "tool_use" or stop_reason
  end
  add("message_delta", { delta = { stop_reason = stop_reason }, usage = { output_tokens = 20 } })
  add("message_stop", {})
  return pieces
end

return M
