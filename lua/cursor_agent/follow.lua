-- Where a line of the chat leads: a fold, a file and line, a link, a tool call's output.

local window = require("cursor_agent.window")

local M = {}

---The place a text names at a column: `path:line:col`, a markdown link, a code reference, an address.
---@param line string
---@param col integer byte, from 0
---@return cursor_agent.render.Target?
function M.place_at(line, col)
  -- Cursor's references to existing code: ```12:15:src/parser.rs
  local first, path = line:match("^%s*```+(%d+):%d+:(%S+)")
  if path then
    return {
      path = path,
      line = tonumber(first) --[[@as integer]],
    }
  end
  for from, target, past in line:gmatch("()%[[^%]]*%]%(([^)]+)%)()") do
    if col + 1 >= from and col + 1 < past then
      if target:match("^%a[%w+.-]*://") and not target:match("^file://") then
        return { url = target }
      end
      local file, number = target:gsub("^file://", ""):match("^([^#]+)#?L?(%d*)")
      return {
        path = file,
        line = tonumber(number) --[[@as integer?]],
      }
    end
  end
  for from, word, past in line:gmatch("()([^%s`'\"<>()%[%]|│,;]+)()") do
    if col + 1 >= from and col + 1 < past then
      if word:match("^https?://") then
        return { url = (word:gsub("[.,]+$", "")) }
      end
      local file, number = word:match("^@?([^:]+):(%d+)")
      file = file or word:gsub("^@", ""):gsub("[.,:]+$", "")
      if file:find("[./]") and not file:match("^[./]+$") then
        return {
          path = file,
          line = tonumber(number) --[[@as integer?]],
        }
      end
    end
  end
end

---@param chat cursor_agent.Chat
---@param target cursor_agent.render.Target
---@return boolean?, string?
function M.go(chat, target)
  if target.url then
    vim.ui.open(target.url)
    return true
  end
  local path = vim.fs.normalize(target.path or "")
  if path:sub(1, 1) ~= "/" then
    path = vim.fs.joinpath(chat.cwd, path)
  end
  return window.edit(vim.fs.normalize(path), target.line)
end

---What the line under the cursor leads to.
---@param chat cursor_agent.Chat
---@return cursor_agent.render.Target?
function M.target(chat)
  local row, col = unpack(vim.api.nvim_win_get_cursor(0))
  local place = M.place_at(vim.api.nvim_get_current_line(), col)
  local target = chat.transcript:target(row - 1)
  -- A path in the text is what the cursor is on; what the line as a whole is about comes second.
  if place and place.path and not target then
    local path = vim.fs.normalize(place.path)
    local full = path:sub(1, 1) == "/" and path or vim.fs.joinpath(chat.cwd, path)
    if not vim.uv.fs_stat(full) then
      return nil
    end
  end
  return target or place
end

---The decision that the tool call on this line waits for. The lines below its first lead where they say.
---@param chat cursor_agent.Chat
---@return integer?
local function decision_here(chat)
  local row = vim.api.nvim_win_get_cursor(0)[1] - 1
  local index, top = chat.transcript:entry_at(row)
  local library = require("cursor_agent.native").peek()
  local entry = index and row == top and library and library.entry(chat.key, index)
  return entry and entry.tool and entry.tool.decision or nil
end

---@param chat cursor_agent.Chat
---@return boolean?, string?
function M.follow(chat)
  local line = vim.api.nvim_win_get_cursor(0)[1]
  if vim.fn.foldclosed(line) ~= -1 then
    vim.cmd("normal! zo")
    return true
  end
  local decision = decision_here(chat)
  if decision then
    return require("cursor_agent.decide").open(decision)
  end
  local target = M.target(chat)
  if target and target.output then
    return require("cursor_agent.output").open(chat)
  elseif target then
    return M.go(chat, target)
  elseif vim.fn.foldlevel(line) > 0 then
    vim.cmd("normal! zc")
    return true
  end
  return nil, "nothing to open here"
end

---@param chat cursor_agent.Chat
---@return boolean?, string?
function M.file(chat)
  local target = M.target(chat)
  if not target or not target.path then
    return nil, "there is no file here"
  end
  return M.go(chat, target)
end

return M
