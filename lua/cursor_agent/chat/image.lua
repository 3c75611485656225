-- Images made by an agent: drawn in the chat if a plugin can, opened outside Neovim with a key.

local M = {}

---Most lines an image takes in the chat.
local MAX_LINES = 20
local MAX_COLUMNS = 60

---@type table<string, boolean> what is drawn, by buffer, entry and file
local drawn = {}

---@param buf integer
---@param row integer from 0
---@param path string
---@return boolean
local function by_snacks(buf, row, path)
  local snacks = package.loaded["snacks"]
  if not snacks or not snacks.image or not snacks.image.supports_terminal() then
    return false
  end
  -- `inline`: otherwise snacks writes its messages into the buffer.
  snacks.image.placement.new(buf, path, {
    pos = { row + 1, 0 },
    inline = true,
    max_width = MAX_COLUMNS,
    max_height = MAX_LINES,
  })
  return true
end

---@param buf integer
---@param row integer
---@param path string
---@return boolean
local function by_image(buf, row, path)
  -- Only if the user has set it up: loading it is not enough.
  local image = package.loaded["image"]
  local win = vim.fn.win_findbuf(buf)[1]
  if type(image) ~= "table" or not image.from_file or not win then
    return false
  end
  local made = image.from_file(path, {
    window = win,
    buffer = buf,
    inline = true,
    with_virtual_padding = true,
    x = 0,
    y = row,
    height = MAX_LINES,
  })
  if made then
    made:render()
  end
  return made ~= nil
end

---Draws an image below its line in the chat, if a plugin for that is installed. Its failures must not break the chat.
---@param chat cursor_agent.Chat
---@param index integer
---@param entry cursor_agent.Entry
function M.on_entry(chat, index, entry)
  local path = entry.tool and entry.tool.image and entry.tool.image.path
  if not path then
    return
  end
  local id = ("%d/%d/%s"):format(chat.buf, index, path)
  if drawn[id] or not vim.uv.fs_stat(path) then
    return
  end
  local first, past = chat.transcript:range(index)
  local row = past - 1
  for _, draw in ipairs({ by_snacks, by_image }) do
    local ok, done = pcall(draw, chat.buf, math.max(row, first), path)
    if ok and done then
      drawn[id] = true
      return
    end
  end
end

---Opens an image or sound from a tool call, via a temporary file that is deleted when Neovim exits.
---@param chat cursor_agent.Chat
---@param index integer the entry
---@param number integer which of its contents
---@return boolean?, string?
function M.open_content(chat, index, number)
  local entry = require("cursor_agent.bridge").entry(chat.key, index)
  local content = entry and entry.tool and (entry.tool.content or {})[number]
  local ok, data = pcall(vim.base64.decode, content and content.data or "")
  if not ok or data == "" then
    return nil, "the agent sent nothing to open"
  end
  local outside = require("cursor_agent.chat.outside")
  local ending = outside.ending_of(content and content.mime)
  if not ending then
    local mime = require("cursor_agent.render.format").first_line(content and content.mime or "", 80)
    return nil, ("only images, audio, video and PDFs are opened; this is %s"):format(mime)
  end
  local path = ("%s.%s"):format(vim.fn.tempname(), ending)
  local written, why = require("cursor_agent.files.private").create(path, data)
  if not written then
    return nil, why
  end
  return outside.open_file(path)
end

return M
