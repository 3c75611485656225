-- Reusable prompts: the `prompts` option and the files in `.cursor/commands`, offered after `/` and sent as their text.

local config = require("cursor_agent.config")
local format = require("cursor_agent.render.format")
local regular = require("cursor_agent.files.regular")

local M = {}

---A larger file is not a prompt, and is not sent.
local MOST_BYTES = 256 * 1024

---@alias cursor_agent.reusable.From "project"|"user"|"prompts"

---@class (exact) cursor_agent.Reusable
---@field name string what follows the slash; `project:name` if another one has that name
---@field bare string the name alone
---@field from cursor_agent.reusable.From
---@field about string
---@field path string? the file
---@field text (fun(): string?, string?) its text, or why there is none

---@type table<cursor_agent.reusable.From, string> how they are marked where they are offered
M.MARKS = { project = "project prompt", user = "your prompt", prompts = "prompt option" }

---@type table<string, { stamp: string, text: string? }> what files hold, by path
local known = {}

---@param path string
---@return string?, string?
local function read(path)
  local stat = vim.uv.fs_stat(path)
  if not stat then
    return nil, ("%s no longer exists"):format(path)
  elseif stat.size > MOST_BYTES then
    return nil, ("%s is larger than %s and was not sent"):format(vim.fs.basename(path), format.bytes(MOST_BYTES))
  end
  local stamp = ("%d.%d %d"):format(stat.mtime.sec, stat.mtime.nsec, stat.size)
  if not known[path] or known[path].stamp ~= stamp then
    local text, why = regular.read(path, MOST_BYTES)
    if not text then
      return nil, ("%s: %s"):format(path, why)
    end
    known[path] = { stamp = stamp, text = (text:gsub("\r\n", "\n")) }
  end
  return known[path].text
end

---The text of a file without its front matter, and the description from that.
---@param text string
---@return string text
---@return string? description
local function body_of(text)
  local head, rest = text:match("^%-%-%-\n(.-)\n%-%-%-\n(.*)$")
  if not head then
    return text, nil
  end
  local said = ("\n" .. head):match("\ndescription:%s*([^\n]+)")
  return rest or "", said and (said:gsub("^[\"'](.*)[\"']$", "%1"))
end

---@param dir string
---@param from cursor_agent.reusable.From
---@param list cursor_agent.Reusable[]
local function add_files(dir, from, list)
  local names = {} ---@type string[]
  for name, kind in vim.fs.dir(dir) do
    if name:sub(-3) == ".md" and (kind == "file" or kind == "link") then
      names[#names + 1] = name
    end
  end
  table.sort(names)
  for _, name in ipairs(names) do
    local path = vim.fs.joinpath(dir, name)
    local bare = name:sub(1, -4):gsub("[%s/]+", "-")
    local text = read(path)
    local body, said = body_of(text or "")
    list[#list + 1] = {
      name = bare,
      bare = bare,
      from = from,
      about = said or format.first_line(body:gsub("^%s*#+%s*", ""), 80),
      path = path,
      text = function()
        local now, why = read(path)
        return now and vim.trim((body_of(now))), why
      end,
    }
  end
end

---All reusable prompts for a directory: the project's, the user's, and those of the options.
---@param cwd string
---@param commands cursor_agent.SlashCommand[]? those of the agent, which keep their names
---@return cursor_agent.Reusable[]
function M.list(cwd, commands)
  local list = {} ---@type cursor_agent.Reusable[]
  add_files(vim.fs.joinpath(cwd, ".cursor", "commands"), "project", list)
  local home = vim.uv.os_homedir()
  if home and vim.fs.normalize(home) ~= vim.fs.normalize(cwd) then
    add_files(vim.fs.joinpath(home, ".cursor", "commands"), "user", list)
  end
  for name, prompt in vim.spairs(config.get().prompts or {}) do
    local text = type(prompt) == "table" and prompt.text or prompt --[[@as string]]
    list[#list + 1] = {
      name = name,
      bare = name,
      from = "prompts",
      about = type(prompt) == "table" and prompt.description or format.first_line(text, 80),
      text = function()
        return text
      end,
    }
  end
  local taken = {} ---@type table<string, boolean>
  for _, command in ipairs(commands or {}) do
    taken[(command.name:gsub("^/", ""))] = true
  end
  for _, one in ipairs(list) do
    if taken[one.bare] then
      one.name = ("%s:%s"):format(one.from, one.bare)
    end
    taken[one.bare] = true
  end
  return list
end

---What is sent for a text that begins with the name of such a prompt: its text, with the rest of the line and of the
---prompt in place of `$ARGUMENTS`, or at its end. Nil if there is no such prompt.
---@param text string
---@param cwd string
---@param commands cursor_agent.SlashCommand[]?
---@return string? expanded
---@return string? why it has no text
function M.expand(text, cwd, commands)
  local name, rest = text:match("^%s*/(%S+)(.*)$")
  if not name then
    return nil
  end
  local found ---@type cursor_agent.Reusable?
  for _, one in ipairs(M.list(cwd, commands)) do
    if one.name == name then
      found = one
      break
    elseif ("%s:%s"):format(one.from, one.bare) == name then
      found = found or one
    end
  end
  if not found then
    return nil
  end
  local body, why = found.text()
  if not body then
    return nil, why
  end
  local arguments = vim.trim(rest or "")
  local expanded, count = body:gsub("%$ARGUMENTS", function()
    return arguments
  end)
  if count == 0 and arguments ~= "" then
    expanded = expanded .. "\n\n" .. arguments
  end
  return expanded
end

return M
