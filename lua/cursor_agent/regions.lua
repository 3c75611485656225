-- Tells markdown plugins which lines of the chat are markdown: messages are, tool calls and their output are not.
--
-- A plugin such as render-markdown.nvim reads the buffer's own tree. Without this it would take `a == b == c` in a diff
-- for highlighted text and hide half of it, and an unclosed fence for the rest of the conversation.

local M = {}

---Plugins that draw from the buffer's markdown tree.
local READERS = { "render-markdown", "markview" }

---So many of the last entries are told about; more would be felt.
local MAX_ENTRIES = 400

---@return boolean
local function has_reader()
  for _, name in ipairs(READERS) do
    if package.loaded[name] then
      return true
    end
  end
  return false
end

---Brings the regions up to date, where somebody reads them. At once: readers draw as soon as the text has changed, and
---not again until it does.
---@param transcript cursor_agent.Transcript
function M.update(transcript)
  if not has_reader() then
    return
  end
  local ok, parser = pcall(vim.treesitter.get_parser, transcript.buf, "markdown")
  if not ok or not parser then
    return
  end
  local regions = {} ---@type Range4[][]
  for index = math.max(#transcript.items - MAX_ENTRIES + 1, 1), #transcript.items do
    local item = transcript.items[index]
    if item.kind == "agent" or item.kind == "user" then
      local first, past = transcript:range(index)
      regions[#regions + 1] = { { first + item.gap, 0, past, 0 } }
    end
  end
  if #regions > 0 then
    -- Part of the documented interface in 0.10, marked as private since, and there is no other way.
    ---@diagnostic disable-next-line: access-invisible
    parser:set_included_regions(regions --[[@as any]])
  end
end

return M
