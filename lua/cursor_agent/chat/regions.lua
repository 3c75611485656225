-- Tells markdown plugins which lines of the chat are markdown: messages are, tool calls and their output are not.
--
-- A plugin such as render-markdown.nvim reads the buffer's own tree. Without this it would take `a == b == c` in a diff
-- for highlighted text and hide half of it, and an unclosed fence would swallow the rest of the conversation. Messages
-- that could crash a parser are in no region.

local guard = require("cursor_agent.colour.guard")
local parsers = require("cursor_agent.colour.parsers")

local M = {}

---Only this many of the last entries are listed; more would be noticeable.
local MAX_ENTRIES = 400

---@class (exact) cursor_agent.regions.Verdict
---@field size integer lines and bytes there were
---@field safe boolean

---@type table<cursor_agent.transcript.Item, cursor_agent.regions.Verdict>
local verdicts = setmetatable({}, { __mode = "k" })

---Whether a parser may see an entry.
---@param buf integer
---@param item cursor_agent.transcript.Item
---@param first integer
---@param past integer
---@return boolean
local function is_safe(buf, item, first, past)
  local size = vim.api.nvim_buf_get_offset(buf, past) - vim.api.nvim_buf_get_offset(buf, first) + past - first
  local verdict = verdicts[item]
  if not verdict or verdict.size ~= size then
    local lines = vim.api.nvim_buf_get_lines(buf, first, past, false)
    verdict = { size = size, safe = guard.safe("markdown", lines) }
    verdicts[item] = verdict
  end
  return verdict.safe
end

---Sets the regions of the parser to the messages it may see.
---@param transcript cursor_agent.Transcript
---@param parser vim.treesitter.LanguageTree
---@return boolean given false: no messages
local function set(transcript, parser)
  local regions = {} ---@type Range4[][]
  for at = math.max(#transcript.order - MAX_ENTRIES + 1, 1), #transcript.order do
    local index = transcript.order[at]
    local item = transcript.items[index]
    if item.kind == "agent" or item.kind == "user" then
      local first, past = transcript:range(index)
      if is_safe(transcript.buf, item, first + item.gap, past) then
        regions[#regions + 1] = { { first + item.gap, 0, past, 0 } }
      end
    end
  end
  if #regions > 0 then
    -- Documented in 0.10, marked private since; there is no alternative.
    ---@diagnostic disable-next-line: access-invisible
    parser:set_included_regions(regions --[[@as any]])
  end
  return #regions > 0
end

---Makes sure the chat's parser only ever gets such regions, whoever creates it. Call it while the buffer is empty.
---@param transcript cursor_agent.Transcript
function M.fence(transcript)
  local tick, given = -1, false
  parsers.fence(transcript.buf, "markdown", function(parser)
    local now = vim.api.nvim_buf_get_changedtick(transcript.buf)
    if transcript:is_open() then
      -- An entry is being written: its end is not known yet.
      return false
    elseif now ~= tick then
      tick, given = now, set(transcript, parser)
    end
    return given
  end)
end

---Updates the regions if a plugin reads them. Immediately, since plugins draw as soon as the text changes, and then not
---again until the next change.
---@param transcript cursor_agent.Transcript
function M.update(transcript)
  if not parsers.has_reader() then
    return
  end
  local ok, parser = pcall(vim.treesitter.get_parser, transcript.buf, "markdown")
  if ok and parser then
    set(transcript, parser)
  end
end

return M
