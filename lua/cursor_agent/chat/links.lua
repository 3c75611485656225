-- What a line of the chat links to: a fold, a subagent's buffer, a file and line, a link, a tool call's output.

local places = require("cursor_agent.chat.places")
local layout = require("cursor_agent.chat.layout")

local M = {}

---@param chat cursor_agent.Chat
---@param path string
---@return string
local function full_path(chat, path)
  path = vim.fs.normalize(path)
  return vim.fs.normalize(path:sub(1, 1) == "/" and path or vim.fs.joinpath(chat.cwd, path))
end

---@param chat cursor_agent.Chat
---@param target cursor_agent.render.Target
---@return boolean?, string?
function M.go(chat, target)
  if target.url then
    return require("cursor_agent.chat.outside").open_url(target.url)
  end
  return layout.edit(full_path(chat, target.path or ""), target.line)
end

---Whether a possible path exists on disk. A bare word must be a file, since `src` may be just a word.
---@param chat cursor_agent.Chat
---@param path string
---@return boolean
local function names_file(chat, path)
  local stat = vim.uv.fs_stat(full_path(chat, path))
  return stat ~= nil and (stat.type == "file" or path:find("[./]") ~= nil)
end

---What the line under the cursor links to: the target of the whole line, or else what its text names at the cursor.
---@param chat cursor_agent.Chat
---@return cursor_agent.render.Target?
---@return integer? index of the entry, if the whole line is the link
function M.target(chat)
  local row, col = unpack(vim.api.nvim_win_get_cursor(0))
  local kind = vim.b.cursor_agent_kind
  if kind == "chat" or kind == "subagent" then
    local target, index = require("cursor_agent.chat.transcript").here(chat):target(row - 1)
    if target then
      return target, index
    end
  end
  for _, place in ipairs(places.at(vim.api.nvim_get_current_line(), col)) do
    if place.url or names_file(chat, place.path or "") then
      return place
    end
  end
end

---The tool call whose first line this is. The lines below it have their own targets.
---@param chat cursor_agent.Chat
---@return cursor_agent.ToolCall?
---@return integer? index of its entry
local function tool_here(chat)
  local row = vim.api.nvim_win_get_cursor(0)[1] - 1
  local index, top = require("cursor_agent.chat.transcript").here(chat):entry_at(row)
  local entry = index and row == top and require("cursor_agent.bridge").told(chat.key, index)
  return entry and entry.tool or nil, index
end

---@param chat cursor_agent.Chat
---@return boolean?, string?
function M.open(chat)
  local line = vim.api.nvim_win_get_cursor(0)[1]
  local tool, task = tool_here(chat)
  if tool and task and tool.task and not tool.decision then
    return require("cursor_agent.chat.subagent").open(chat, task)
  end
  if vim.fn.foldclosed(line) ~= -1 then
    vim.cmd("normal! zo")
    return true
  end
  if tool and tool.decision then
    return require("cursor_agent.decide").open(tool.decision)
  end
  local target, index = M.target(chat)
  if target and index and target.content then
    return require("cursor_agent.chat.image").open_content(chat, index, target.content)
  elseif target and target.output then
    return require("cursor_agent.chat.output").open(chat)
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
    return nil, "no file under the cursor"
  end
  return M.go(chat, target)
end

---Opens the target of the line under the cursor in the system's program for it.
---@param chat cursor_agent.Chat
---@return boolean?, string?
function M.open_outside(chat)
  local target, index = M.target(chat)
  if target and index and target.content then
    return require("cursor_agent.chat.image").open_content(chat, index, target.content)
  end
  local what = target and (target.url or target.path)
  if not what then
    return nil, "no file or URL under the cursor"
  end
  local outside = require("cursor_agent.chat.outside")
  if target and target.url then
    return outside.open_url(target.url)
  end
  return outside.open_file(full_path(chat, what))
end

return M
