-- Checks options against the schema, and says what an unknown name probably meant.

local schema = require("cursor_agent.config.schema")
local values = require("cursor_agent.config.values")

local M = {}

---A node of the schema tree: either a field, or names that lead further down.
---@class cursor_agent.config.Node
---@field field? cursor_agent.config.Field
---@field names? table<string, cursor_agent.config.Node>

---@type cursor_agent.config.Node?
local tree

---@return cursor_agent.config.Node
local function schema_tree()
  if tree then
    return tree
  end
  tree = { names = {} }
  for _, f in ipairs(schema.fields) do
    local node = tree
    for name in vim.gsplit(f.path, ".", { plain = true }) do
      node.names = node.names or {}
      node.names[name] = node.names[name] or {}
      node = node.names[name]
    end
    node.field = f
  end
  return tree
end

---The known name most similar to a wrong one, if any is close enough to be a typo.
---@param wrong string
---@param names string[]
---@return string?
local function nearest(wrong, names)
  local best, least = nil, 3
  for _, name in ipairs(names) do
    -- Edit distance, row by row.
    local row = {} ---@type integer[]
    for j = 0, #name do
      row[j] = j
    end
    for i = 1, #wrong do
      local diagonal = row[0]
      row[0] = i
      for j = 1, #name do
        local other = wrong:byte(i) == name:byte(j) and 0 or 1
        diagonal, row[j] = row[j], math.min(row[j] + 1, row[j - 1] + 1, diagonal + other)
      end
    end
    if row[#name] < least then
      best, least = name, row[#name]
    end
  end
  return best
end

---The names allowed where the schema takes any key; nil where every name is fine. Loaded only when such a key is set.
---@param path string
---@return table<string, any>?
local function known_names(path)
  if not path:find("^keymaps%.") then
    return nil
  end
  local names = {}
  for _, action in ipairs(require("cursor_agent.keys.list")) do
    names[action.name] = true
  end
  return names
end

---What other ACP clients call their options, by the table they are in, with what to write here instead.
---@type table<string, table<string, string>>
local FOREIGN = {
  [""] = {
    acp_providers = "`agents`, with program and arguments in one `command`",
    adapters = "`agents`, with program and arguments in one `command`",
    behaviour = "single options of `chat` and `prompt`",
    interactions = "`agent` and `agents`",
    mappings = "`keymaps`",
    mode = "`agents.NAME.mode`",
    model = "`agents.NAME.model`",
    provider = "`agent`",
    providers = "`agents`",
    strategies = "`agent` and `agents`",
    windows = "`window`",
  },
  ["agents.*"] = {
    args = "`command`, after the program",
    auth = "`auth_method`",
    default_mode = "`mode`",
    initial_model = "`model`",
    model_id = "`model`",
    name = "`title`",
  },
}

---What an unknown name probably meant.
---@param name any
---@param path string path of the table it is in
---@param names table<string, any> names known there
---@return string
local function meant_instead(name, path, names)
  if type(name) ~= "string" then
    return ""
  end
  local place = path:find("^agents%.[^.]+$") and "agents.*" or path
  local here = FOREIGN[place] and FOREIGN[place][name]
  if here then
    return (": that is another plugin's name; here it is %s (:help cursor-agent-migrate)"):format(here)
  end
  local known = vim.tbl_keys(names)
  table.sort(known)
  local meant = nearest(name, known)
  return meant and (", did you mean `%s`?"):format(meant) or ""
end

---Describes a wrong value in a message. A value that may be a secret is described by its type only.
---@param value any
---@param kind? cursor_agent.config.Type
---@return string
local function describe(value, kind)
  if kind ~= "secret" and (type(value) == "number" or type(value) == "boolean") then
    return ("%s (%s)"):format(type(value), tostring(value))
  end
  return type(value)
end

---Checks options against the schema.
---@param opts any
---@return table clean the valid options
---@return string[] problems one line each, with the key path
---@return table<string, true> wrong the options at the top that have a problem
function M.check(opts)
  local problems, wrong = {}, {} ---@type string[], table<string, true>

  ---@param path string
  ---@param text string
  ---@param ... any
  local function complain(path, text, ...)
    table.insert(problems, text:format(...))
    wrong[path:match("^[^.]*")] = true
  end

  ---@param value any
  ---@param node cursor_agent.config.Node
  ---@param path string
  local function walk(value, node, path)
    local f = node.field
    if f then
      local kind = values[f.type]
      local fits, details = kind.test(value)
      if not fits and details then
        for _, detail in ipairs(details) do
          complain(path, "option `%s`: %s", path, detail)
        end
        return nil
      elseif not fits then
        local example = schema.examples[f.path] and ", such as " .. schema.examples[f.path] or ""
        local got = describe(value, f.type)
        complain(path, "option `%s`: expected %s%s, got %s", path, kind.says, example, got)
        return nil
      end
      if f.choices and not vim.list_contains(f.choices, value) then
        complain(path, "option `%s`: expected one of %s, got %q", path, table.concat(f.choices, ", "), value)
        return nil
      end
      return vim.deepcopy(value)
    end
    if type(value) ~= "table" then
      complain(path, "option `%s`: expected a table, got %s", path, describe(value))
      return nil
    end
    local clean = {}
    local names = node.names or {}
    local known = names["*"] and known_names(path)
    for name, item in pairs(value) do
      local child = names[name] or names["*"]
      if known and not known[name] then
        child = nil
      end
      local at = path == "" and tostring(name) or path .. "." .. tostring(name)
      if child then
        clean[name] = walk(item, child, at)
      else
        complain(at, "unknown option `%s`%s", at, meant_instead(name, path, known or names))
      end
    end
    return clean
  end

  local clean = opts == nil and {} or walk(opts, schema_tree(), "")
  table.sort(problems)
  return clean or {}, problems, wrong
end

return M
