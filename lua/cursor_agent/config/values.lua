-- The types an option can have: how each is called in a message, and which values it accepts.

---@param value any
---@return boolean
local function is_string(value)
  return type(value) == "string"
end

---@param value any
---@param key fun(k: any): boolean
---@param item fun(v: any): boolean
---@return boolean
local function all(value, key, item)
  if type(value) ~= "table" then
    return false
  end
  for k, v in pairs(value) do
    if not key(k) or not item(v) then
      return false
    end
  end
  return true
end

local function is_index(k)
  return type(k) == "number"
end

---@type table<cursor_agent.config.Type, { says: string, test: fun(value: any): (boolean, string[]?) }>
local M = {
  ["string"] = { says = "a string", test = is_string },
  ["boolean"] = {
    says = "true or false",
    test = function(v)
      return type(v) == "boolean"
    end,
  },
  ["number"] = {
    says = "a number",
    test = function(v)
      return type(v) == "number"
    end,
  },
  ["integer"] = {
    says = "a whole number",
    test = function(v)
      return type(v) == "number" and v == math.floor(v)
    end,
  },
  ["table"] = {
    says = "a table",
    test = function(v)
      return type(v) == "table"
    end,
  },
  ["string[]"] = {
    says = "a list of strings",
    test = function(v)
      return all(v, is_index, is_string)
    end,
  },
  ["list"] = {
    says = "a list",
    test = function(v)
      return all(v, is_index, function()
        return true
      end)
    end,
  },
  ["map"] = {
    says = "a table of strings by name",
    test = function(v)
      return all(v, is_string, is_string)
    end,
  },
  ["values"] = {
    says = "a table of strings or booleans by name",
    test = function(v)
      return all(v, is_string, function(item)
        return type(item) == "string" or type(item) == "boolean"
      end)
    end,
  },
  ["secret"] = {
    says = "a string or a function that returns one",
    test = function(v)
      return type(v) == "string" or type(v) == "function"
    end,
  },
  ["key"] = {
    says = "a string, or a list of strings",
    test = function(v)
      return type(v) == "string" or (all(v, is_index, is_string) and #v > 0)
    end,
  },
  ["keys"] = {
    says = "a key, a list of keys, or false",
    test = function(v)
      return v == false or type(v) == "string" or all(v, is_index, is_string)
    end,
  },
  ["prefix"] = {
    says = "keys, a table with a `prefix` and keys by action, or false",
    test = function(v)
      if type(v) ~= "table" then
        return v == false or (type(v) == "string" and v ~= "")
      end
      local known, problems = { prefix = true }, {} ---@type table<string, boolean>, string[]
      for _, action in ipairs(require("cursor_agent.keys.list")) do
        known[action.name] = true
      end
      for name, keys in vim.spairs(v) do
        if not known[name] then
          problems[#problems + 1] = ("unknown action `%s`"):format(name)
        elseif keys ~= false and type(keys) ~= "string" and not all(keys, is_index, is_string) then
          problems[#problems + 1] = ("`%s` must be a key, a list of keys, or false"):format(name)
        end
      end
      return #problems == 0, #problems > 0 and problems or nil
    end,
  },
  ["rules"] = {
    says = "a list of rules",
    test = function(v)
      local problems = require("cursor_agent.decide.policy").check(v)
      return #problems == 0, problems
    end,
  },
  ["token"] = {
    says = "a string, a function that returns one, or a command that prints it",
    test = function(v)
      return type(v) == "string"
        or type(v) == "function"
        or (type(v) == "table" and #v > 0 and all(v, is_index, is_string))
    end,
  },
  ["pass"] = {
    says = "`all`, `user`, `none` or a list of names",
    test = function(v)
      return v == "all" or v == "user" or v == "none" or (type(v) == "table" and all(v, is_index, is_string))
    end,
  },
  ["prompts"] = {
    says = "a table by name of texts, or of tables with `text` and `description`",
    test = function(v)
      return all(v, function(name)
        return type(name) == "string" and name:match("^[^%s/]+$") ~= nil
      end, function(prompt)
        local options = type(prompt) == "table" and prompt or { text = prompt }
        return type(options.text) == "string" and (options.description == nil or is_string(options.description))
      end)
    end,
  },
  ["servers"] = {
    says = "a list of MCP servers, or a table of them by name",
    test = function(v)
      if type(v) ~= "table" then
        return false
      end
      local problems = {} ---@type string[]
      for name, server in vim.spairs(v) do
        local what = type(server) == "table" and (server.name or name) or name
        if type(server) ~= "table" then
          problems[#problems + 1] = ("server %s must be a table, got %s"):format(name, type(server))
        elseif type(name) == "number" and type(server.name) ~= "string" then
          problems[#problems + 1] = ("server %d needs a `name`"):format(name)
        elseif type(server.command) ~= "string" and type(server.url) ~= "string" then
          problems[#problems + 1] = ("server `%s` needs a `command` or a `url`"):format(what)
        end
      end
      return #problems == 0, #problems > 0 and problems or nil
    end,
  },
  ["icons"] = {
    says = "`unicode`, `ascii`, `nerd` or a table of icons",
    test = function(v)
      if v == "unicode" or v == "ascii" or v == "nerd" then
        return true
      elseif not all(v, is_string, is_string) then
        return false
      end
      local known, problems = require("cursor_agent.render.icons").sets.unicode, {}
      for name in vim.spairs(v) do
        if known[name] == nil then
          local names = vim.tbl_keys(known)
          table.sort(names)
          problems[#problems + 1] = ("unknown icon `%s`; expected one of %s"):format(name, table.concat(names, ", "))
        end
      end
      return #problems == 0, problems
    end,
  },
}

return M
