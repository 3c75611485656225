-- Answers permissions by the user's rules: a decision and rules in, what to do and which rule says so out.
--
-- The first rule that matches decides; without one the user is asked. A rule that allows has to match everything the
-- call touches, one that asks or rejects anything of it.

local M = {}

---@alias cursor_agent.policy.Action "allow"|"ask"|"reject"

---@class (exact) cursor_agent.policy.Rule
---@field action cursor_agent.policy.Action
---@field name? string for the line in the transcript
---@field agent? string|string[] names in `agents`
---@field kind? string|string[] kinds of tool call: execute, edit, delete, move, read, search, fetch …
---@field command? string|string[] of an execute call; `*` stands for any text
---@field path? string|string[] globs, from the workspace unless they begin with / or ~

---@class (exact) cursor_agent.policy.Where
---@field directories string[] the workspace
---@field home string
---@field link? fun(path: string): string? what a link holds; nil for what is no link

local FIELDS = { action = true, name = true, agent = true, kind = true, command = true, path = true }
local ACTIONS = { allow = true, ask = true, reject = true }

---Kinds of tool call that change nothing, so that it does not matter where. Unknown kinds may write.
local HARMLESS = { read = true, search = true, think = true, fetch = true, switch_mode = true }

---What lets a shell do more than the one command: a `*` of a rule that allows does not stand for these.
local SHELL = ";&|<>$`()\r\n"

---What is wrong with a list of rules, one line each.
---@param rules any
---@return string[]
function M.check(rules)
  if type(rules) ~= "table" or not vim.islist(rules) then
    return { "expected a list of rules" }
  end
  local problems = {} ---@type string[]
  for i, rule in ipairs(rules) do
    local function complain(text, ...)
      problems[#problems + 1] = ("rule %d: "):format(i) .. text:format(...)
    end
    if type(rule) ~= "table" then
      complain("expected a table, got %s", type(rule))
    else
      if not ACTIONS[rule.action] then
        complain("`action` must be allow, ask or reject")
      end
      for key, value in vim.spairs(rule) do
        local words = type(value) == "table" and vim.islist(value) and #value > 0 and value or { value }
        if not FIELDS[key] then
          complain("unknown key `%s`", tostring(key))
        elseif (key == "action" or key == "name") and type(value) ~= "string" then
          complain("`%s` must be a string", key)
        end
        for _, word in ipairs(words) do
          if FIELDS[key] and type(word) ~= "string" then
            complain("`%s` must be a string or a list of strings", key)
          end
        end
      end
    end
  end
  return problems
end

---So many links are followed; then they lead in a circle.
local MAX_LINKS = 40

---A path with its links followed as the system would: `..` of a link's target, not of the link, and a link to what does
---not exist leads there all the same, because writing through it creates that file.
---@param path string absolute
---@param link fun(path: string): string?
---@return string
local function resolve(path, link)
  local at, links = "", 0
  local todo = vim.split(path, "/", { plain = true, trimempty = true })
  while #todo > 0 do
    local part = table.remove(todo, 1)
    if part == ".." then
      at = at:match("^(.*)/[^/]*$") or ""
    elseif part ~= "." and part ~= "" then
      local target = link(at .. "/" .. part)
      if not target then
        at = at .. "/" .. part
      elseif links == MAX_LINKS then
        return "/"
      else
        links = links + 1
        at = target:sub(1, 1) == "/" and "" or at
        todo = vim.list_extend(vim.split(target, "/", { plain = true, trimempty = true }), todo)
      end
    end
  end
  return at == "" and "/" or at
end

---@param path string
---@param dir string
---@return string? the rest of the path below the directory; empty for the directory itself
local function below(path, dir)
  dir = dir == "/" and "" or dir
  if path == dir then
    return ""
  end
  return path:sub(1, #dir + 1) == dir .. "/" and path:sub(#dir + 2) or nil
end

---`{a,b}` in a glob as globs without it.
---@param glob string
---@return string[]
local function expand(glob)
  local before, inside, after = glob:match("^(.-)(%b{})(.*)$")
  if not before or not inside or not after then
    return { glob }
  end
  local list = {} ---@type string[]
  for choice in (inside:sub(2, -2) .. ","):gmatch("([^,]*),") do
    vim.list_extend(list, expand(before .. choice .. after))
  end
  return list
end

---@param glob string
---@param any string the set of characters `*` and `?` stand for
---@return string pattern without anchors
local function to_pattern(glob, any)
  return (
    glob:gsub("[%^%$%(%)%%%.%[%]%*%+%-%?]", function(char)
      return char == "*" and any .. "*" or char == "?" and any or "%" .. char
    end)
  )
end

---@param globs string[] one for each directory of the path
---@param parts string[]
---@param g integer
---@param p integer
---@return boolean
local function match_parts(globs, parts, g, p)
  local glob = globs[g]
  if not glob then
    return p > #parts
  elseif glob == "**" then
    for rest = p, #parts + 1 do
      if match_parts(globs, parts, g + 1, rest) then
        return true
      end
    end
    return false
  end
  return parts[p] ~= nil
    and parts[p]:find("^" .. to_pattern(glob, "[^/]") .. "$") ~= nil
    and match_parts(globs, parts, g + 1, p + 1)
end

---@class (exact) cursor_agent.policy.Place
---@field path string absolute, links followed
---@field written string absolute, as the agent wrote it
---@field inside boolean it lies within the workspace

---@return nil
local function no_link() end

---Whether a glob matches a path. A glob without wildcards is a file, or a directory with all below it.
---@param glob string
---@param path string absolute
---@param where cursor_agent.policy.Where
---@param link fun(path: string): string?
---@return boolean matches
---@return boolean names it says which directory, from the root on
local function match_path(glob, path, where, link)
  local full = glob:gsub("^~", where.home, 1)
  local absolute = full:sub(1, 1) == "/"
  for _, one in ipairs(expand(full)) do
    local fixed, wild = one:match("^(.-)([^/]*[%*%?].*)$")
    if not fixed then
      fixed, wild = one, nil
    end
    for _, root in ipairs(absolute and { "" } or where.directories) do
      local base = resolve(root .. "/" .. fixed, link)
      local rest = below(path, base)
      if rest and (not wild or match_parts(vim.split(wild, "/"), vim.split(rest, "/"), 1, 1)) then
        return true, absolute and base ~= "/"
      end
    end
  end
  return false, false
end

---@param command string
---@return string[] the commands of a line, as far as operators tell
local function simple_commands(command)
  local list = { vim.trim(command) }
  for part in command:gmatch("[^;&|()`\r\n]+") do
    list[#list + 1] = vim.trim((part:gsub("^[%s{$]+", "")))
  end
  return list
end

---@param glob string
---@param command string
---@param careful boolean
---@return boolean
local function match_command(glob, command, careful)
  local text = careful and ("[^%s]"):format(SHELL) or "."
  local pattern = "^" .. to_pattern(glob, text) .. "$"
  -- `cargo test *` means the command without arguments too.
  local bare = glob:match("^(.*%S)%s+%*$")
  local candidates = careful and { vim.trim(command) } or simple_commands(command)
  for _, candidate in ipairs(candidates) do
    if candidate:find(pattern) or (bare and candidate:find("^" .. to_pattern(bare, text) .. "$")) then
      return true
    end
  end
  return false
end

---@generic T
---@param list T[]
---@param test fun(item: T): boolean
---@return boolean
local function any(list, test)
  for _, item in ipairs(list) do
    if test(item) then
      return true
    end
  end
  return false
end

---@param wanted string|string[]?
---@param value string
---@return boolean
local function is_one_of(wanted, value)
  return wanted == nil or wanted == value or (type(wanted) == "table" and vim.list_contains(wanted, value))
end

---@param value string|string[]
---@return string[]
local function as_list(value)
  return type(value) == "table" and value or { value }
end

---Every path a tool call says it is about.
---@param tool cursor_agent.ToolCall
---@return string[]
function M.paths(tool)
  local list, seen = {}, {} ---@type string[], table<string, boolean>
  local function add(path)
    if path and path ~= "" and not seen[path] then
      seen[path] = true
      list[#list + 1] = path
    end
  end
  for _, content in ipairs(tool.content or {}) do
    if content.type == "diff" then
      add(content.path)
    end
  end
  for _, location in ipairs(tool.locations or {}) do
    add(location.path)
  end
  return list
end

---Whether a tool call may change files.
---@param tool cursor_agent.ToolCall
---@return boolean
function M.writes(tool)
  for _, content in ipairs(tool.content or {}) do
    if content.type == "diff" then
      return true
    end
  end
  return not HARMLESS[tool.kind]
end

---The places a tool call is about, as the system sees them.
---@param decision cursor_agent.Decision
---@param where cursor_agent.policy.Where
---@return cursor_agent.policy.Place[]
function M.places(decision, where)
  local link = where.link or vim.uv.fs_readlink
  local roots = vim.tbl_map(function(dir)
    return resolve(dir, link)
  end, where.directories) ---@type string[]
  return vim.tbl_map(function(path)
    local written = path:match("^~/") and where.home .. path:sub(2) or path
    written = written:sub(1, 1) == "/" and written or decision.cwd .. "/" .. written
    local full = resolve(written, link)
    local inside = any(roots, function(root)
      return below(full, root) ~= nil
    end)
    return { path = full, written = resolve(written, no_link), inside = inside }
  end, decision.tool and M.paths(decision.tool) or {})
end

---@param rule cursor_agent.policy.Rule
---@param decision cursor_agent.Decision
---@param places cursor_agent.policy.Place[]
---@param where cursor_agent.policy.Where
---@return boolean
local function matches(rule, decision, places, where)
  local tool = decision.tool --[[@as cursor_agent.ToolCall]]
  local allows = rule.action == "allow"
  if not is_one_of(rule.agent, decision.agent) or not is_one_of(rule.kind, tool.kind) then
    return false
  end
  if rule.command then
    local command = tool.command or (not allows and tool.kind == "execute" and decision.title) or nil
    local found = command
      and any(as_list(rule.command), function(glob)
        return match_command(glob, command, allows)
      end)
    if not found then
      return false
    end
  end
  local link = where.link or vim.uv.fs_readlink
  local matched, named = 0, 0
  for _, place in ipairs(places) do
    for _, glob in ipairs(rule.path and as_list(rule.path) or {}) do
      local found, by_name = match_path(glob, place.path, where, link)
      -- What is kept from the agent is kept by either name, its own and that of what it leads to.
      found = found or (not allows and match_path(glob, place.written, where, no_link))
      if found then
        matched = matched + 1
        named = named + ((by_name or place.inside) and 1 or 0)
        break
      end
    end
  end
  if not allows then
    return not rule.path or matched > 0
  end
  if rule.path and (matched < #places or matched == 0) then
    return false
  end
  if not M.writes(tool) or tool.kind == "execute" and #places == 0 then
    return true
  end
  -- Where it writes is not known, or lies outside: only a rule that names the place can allow it.
  local outside = any(places, function(place)
    return not place.inside
  end)
  return #places > 0 and (not outside or (rule.path ~= nil and named == #places))
end

---What to call a rule in the transcript.
---@param rule cursor_agent.policy.Rule
---@param index integer
---@return string
local function name_of(rule, index)
  if rule.name then
    return ("rule `%s`"):format(rule.name)
  end
  local words = {} ---@type string[]
  for _, field in ipairs({ "agent", "kind", "command", "path" }) do
    if rule[field] then
      words[#words + 1] = table.concat(as_list(rule[field]), "|")
    end
  end
  return #words > 0 and ("rule %d (%s)"):format(index, table.concat(words, " ")) or ("rule %d"):format(index)
end

---What the rules say about a permission.
---@param decision cursor_agent.Decision
---@param rules cursor_agent.policy.Rule[]
---@param where cursor_agent.policy.Where
---@return cursor_agent.policy.Action action
---@return string? rule
function M.decide(decision, rules, where)
  if decision.kind ~= "permission" or not decision.tool or #rules == 0 then
    return "ask", nil
  end
  local places = M.places(decision, where)
  for index, rule in ipairs(rules) do
    if matches(rule, decision, places, where) then
      return rule.action, name_of(rule, index)
    end
  end
  return "ask", nil
end

---What makes a permission the same as one the user has answered for good: nothing less than the whole.
---@param decision cursor_agent.Decision
---@return string
function M.signature(decision)
  local tool = decision.tool
  if not tool then
    return decision.title
  end
  local parts = { tool.kind, tool.command or "" }
  local paths = M.paths(tool)
  table.sort(paths)
  vim.list_extend(parts, paths)
  if not tool.command and #paths == 0 then
    vim.list_extend(parts, { tool.name or "", decision.title, tool.raw_input or "" })
  end
  return table.concat(parts, "\0")
end

return M
