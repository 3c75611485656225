-- Finds what a line of text refers to at a column: a file and line, in any common notation, or an address.

local M = {}

---Characters that wrap a path in running text without being part of it.
local BEFORE, AFTER = "^[%(%[{<\"'`*@]+", "[%)%]}>\"'`*.,:;!?]+$"

---A word that may be part of a longer one, as in `(src/a.rs)`; excludes the gutter.
local NARROW = "()([^%s`'\"<>()%[%]|,;]+)()"

---The notations for a line number after a path.
local NUMBERED = {
  "^(.-)#L(%d+)",
  "^(.-):(%d+)[:%-]%d+$",
  "^(.-):(%d+)$",
  "^(.-)%((%d+)[,:]?%d*%)",
  "^(.-):(%d+):",
}

---@param text string
---@return cursor_agent.render.Target?
local function read(text)
  local path, line = text, nil ---@type string?, string?
  for _, pattern in ipairs(NUMBERED) do
    local before, number = text:match(pattern)
    if before then
      path, line = before, number
      break
    end
  end
  path = path and path:gsub("#.*$", line and "%0" or "")
  if path and path:match("^file://") then
    path = vim.uri_to_fname(path)
  end
  if not path or path == "" then
    return nil
  end
  return {
    path = path,
    line = tonumber(line) --[[@as integer?]],
  }
end

---Schemes without slashes that are not paths.
local NOT_PATHS = { ["javascript:"] = true, ["vbscript:"] = true, ["data:"] = true, ["mailto:"] = true }

---@param target string of a markdown link
---@return cursor_agent.render.Target[]
local function of_link(target)
  target = target:match("^%s*<(.*)>") or target:match('^%s*(.-)%s+".*"%s*$') or target
  local scheme = target:match("^%a[%w+.-]*:")
  if scheme and (target:match("^%a[%w+.-]*://") and scheme ~= "file:" or NOT_PATHS[scheme:lower()]) then
    return { { url = target } }
  end
  local found = {} ---@type cursor_agent.render.Target[]
  for _, text in ipairs({ target, vim.uri_decode(target) }) do
    found[#found + 1] = read(text)
  end
  return found
end

---The part between two marks that contains a column.
---@param line string
---@param at integer byte, from 1
---@param mark string
---@return string?
local function between(line, at, mark)
  for from, text, past in line:gmatch(("()%s([^%s]+)%s()"):format(mark, mark, mark)) do
    if at >= from and at < past then
      return text
    end
  end
end

---What the text at a column may refer to, likeliest first: only the disk can tell which of the files exists.
---@param line string
---@param col integer byte, from 0
---@return cursor_agent.render.Target[]
function M.at(line, col)
  local at = col + 1
  -- Cursor's references to existing code: ```12:15:src/parser.rs
  local first, path = line:match("^%s*```+(%d+):%d+:(%S+)")
  if path then
    return {
      {
        path = path,
        line = tonumber(first) --[[@as integer]],
      },
    }
  end
  for from, target, past in line:gmatch("()%[[^%]]*%]%((%b<>[^)]*)%)()") do
    if at >= from and at < past then
      return of_link(target)
    end
  end
  for from, target, past in line:gmatch("()%[[^%]]*%]%(([^)]+)%)()") do
    if at >= from and at < past then
      return of_link(target)
    end
  end
  -- Lua patterns match bytes, and the gutter's bytes also occur in letters.
  line = line:gsub("│", "   ")
  local found = {} ---@type cursor_agent.render.Target[]
  local function add(text)
    local place = text and read(text)
    if place and not (place.path or ""):match("^[./]+$") then
      found[#found + 1] = place
    end
  end
  for _, mark in ipairs({ "`", '"', "'" }) do
    add(between(line, at, mark))
  end
  for from, word, past in line:gmatch(NARROW) do
    if at >= from and at < past and word:match("^https?://") then
      return { { url = (word:gsub("[.,:!?*]+$", "")) } }
    end
  end
  for from, word, past in line:gmatch("()(%S+)()") do
    if at >= from and at < past then
      local bare = word:gsub(BEFORE, "")
      for _, text in ipairs({ word, bare, (bare:gsub(AFTER, "")) }) do
        add(text)
      end
    end
  end
  for from, word, past in line:gmatch(NARROW) do
    if at >= from and at < past then
      add((word:gsub(BEFORE, ""):gsub(AFTER, "")))
    end
  end
  return found
end

return M
