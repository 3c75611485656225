-- Google's generateContent API, as much of it as agents use: what they ask, and answers as a stream of events.

local M = {}

---@param request real.Request
---@return "stream"|"whole"|nil how it wants to be answered; nil: it asks something else
function M.asks(request)
  local method = request.path:match("^/v1beta/models/[^:]+:(%a+)")
  return method == "streamGenerateContent" and "stream" or method == "generateContent" and "whole" or nil
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
  for _, content in ipairs(body.contents) do
    local texts, results = {}, {}
    for _, part in ipairs(content.parts) do
      texts[#texts + 1] = part.text
      results[#results + 1] = part.functionResponse
    end
    said[#said + 1] = { model = content.role == "model", text = table.concat(texts, "\n"), results = results }
  end
  return said
end

---@param parts table[]
---@param last boolean
---@return string
local function response(parts, last)
  return vim.json.encode({
    candidates = { { index = 0, content = { role = "model", parts = parts }, finishReason = last and "STOP" or nil } },
    usageMetadata = { promptTokenCount = 100, candidatesTokenCount = 20, totalTokenCount = 120 },
    modelVersion = "scripted",
  })
end

---The answer in one piece; only texts.
---@param _body table
---@param _id string
---@param parts real.Part[]
---@return string
function M.whole(_body, _id, parts)
  return response(
    vim.tbl_map(function(part)
      return { text = part.text }
    end, parts),
    true
  )
end

---The answer as it is streamed.
---@param _body table
---@param id string of the answer, new each time
---@param parts real.Part[]
---@param cut fun(text: string): string[]
---@return real.Piece[]
function M.stream(_body, id, parts, cut)
  local pieces = {}
  local function add(part, content, last)
    pieces[#pieces + 1] = { part = part, text = ("data: %s\r\n\r\n"):format(response({ content }, last)) }
  end
  for number, part in ipairs(parts) do
    if part.tool then
      add(part, { functionCall = { id = ("call_%s_%d"):format(id, number), name = part.tool, args = part.input } })
    else
      for _, piece in ipairs(cut(part.thought or part.text or "")) do
        add(part, { text = piece, thought = part.thought and true or nil })
      end
    end
  end
  add(nil, { text = "" }, true)
  return pieces
end

return M
