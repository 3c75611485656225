-- Tells markdown plugins which lines of the chat are markdown: messages are, tool calls and their output are not.
--
-- A plugin such as render-markdown.nvim reads the buffer's own tree. Without this it would take `a == b == c` in a diff
-- for highlighted text and hide half of it, and an unclosed fence for the rest of the conversation. Messages that could
-- abort a parser are in no region.

local guard = require("cursor_agent.colour.guard")
local parsers = require("cursor_agent.colour.parsers")

local M = {}

---This many of the last entries are listed; more would be felt.
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

---Gives the parser the messages it may see.
---@param transcript cursor_agent.Transcript
---@param parser vim.treesitter.LanguageTree
---@return boolean given false: there is none
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
    -- Part of the documented interface in 0.10, marked as private since, and there is no other way.
    ---@diagnostic disable-next-line: access-invisible
    parser:set_included_regions(regions --[[@as any]])
  end
  return #regions > 0
end

---Sees to it that the chat's parser is given such regions only, whoever asks for it. The buffer is still empty.
---@param transcript cursor_agent.Transcript
function M.fence(transcript)
  local tick, given = -1, false
  parsers.fence(transcript.buf, "markdown", function(parser)
    local now = vim.api.nvim_buf_get_changedtick(transcript.buf)
    if transcript:is_open() then
      -- An entry is being written: where it ends is not known yet.
      return false
    elseif now ~= tick then
      tick, given = now, set(transcript, parser)
    end
    return given
  end)
end

---Brings the regions up to date, where a plugin reads them. At once: readers draw as soon as the text has changed, and
---not again until it does.
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
