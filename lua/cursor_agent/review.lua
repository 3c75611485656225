-- Walks through what the agent changed: a quickfix list with an item for each place.

local native = require("cursor_agent.native")

local M = {}

---The first line a hunk touches in the new text, and what it does in a few words.
---@param hunk cursor_agent.Hunk
---@return integer line
---@return string text
local function describe(hunk)
  local line, first, added, removed, shown = hunk.new, nil, 0, 0, nil
  for _, item in ipairs(hunk.lines) do
    local sign, text = item[1], item[2]
    if sign ~= " " then
      first = first or line
      shown = shown or (sign == "+" and vim.trim(text) ~= "" and vim.trim(text) or nil)
    end
    if sign == "+" then
      added = added + 1
    elseif sign == "-" then
      removed = removed + 1
    end
    if sign ~= "-" then
      line = line + 1
    end
  end
  return math.max(first or hunk.new, 1), ("+%d −%d  %s"):format(added, removed, shown or "")
end

---Every changed place as a quickfix item.
---@param changes cursor_agent.FileChange[]
---@return vim.quickfix.entry[]
function M.items(changes)
  local items = {} ---@type vim.quickfix.entry[]
  for _, change in ipairs(changes) do
    for _, hunk in ipairs(change.hunks) do
      local line, text = describe(hunk)
      items[#items + 1] = { filename = change.path, lnum = line, text = text }
    end
    if #change.hunks == 0 then
      items[#items + 1] = { filename = change.path, lnum = 1, text = change.state }
    end
  end
  return items
end

---Lets the key that lists the keys do so in the list. Its buffer shows other lists as well, which are not ours.
---@param buf integer
---@param list integer
local function map_help(buf, list)
  local key = require("cursor_agent.actions").key("help", "review")
  if not key then
    return
  end
  vim.keymap.set("n", key, function()
    if vim.fn.getqflist({ id = 0 }).id ~= list then
      return key
    end
    return "<Cmd>lua require('cursor_agent.help').open('review')<CR>"
  end, { buffer = buf, expr = true, desc = "cursor-agent: List the keys" })
end

---Shows the list and goes to the first place, in the code window.
---@param chat cursor_agent.Chat
---@return boolean?, string?
function M.open(chat)
  local library, why = native.get()
  if not library then
    return nil, why
  end
  local items = M.items(library.changes(chat.key) or {})
  if #items == 0 then
    return nil, ("%s has changed no file in this chat"):format(chat.agent)
  end
  vim.fn.setqflist({}, " ", { title = ("Changed by %s"):format(chat.agent), items = items })
  local list = vim.fn.getqflist({ id = 0 }).id
  local code = require("cursor_agent.window").code_window()
  if code then
    vim.api.nvim_set_current_win(code)
  end
  vim.cmd("botright copen " .. math.min(#items, 10))
  map_help(vim.api.nvim_get_current_buf(), list)
  vim.cmd("wincmd p")
  vim.cmd("cfirst")
  return true
end

return M
