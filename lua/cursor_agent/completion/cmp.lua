-- A source for nvim-cmp: `require("cmp").register_source("cursor_agent", require("cursor_agent.completion.cmp").new())`.

---Required on each call: nvim-cmp keeps this source when the plugin is reloaded.
local function complete()
  return require("cursor_agent.completion.items")
end

---@class cursor_agent.completion.Cmp
local Source = {}
Source.__index = Source

---@return cursor_agent.completion.Cmp
function Source.new()
  return setmetatable({}, Source)
end

---@return boolean
function Source:is_available()
  return vim.bo.filetype == "cursoragent-prompt"
end

---@return string
function Source:get_debug_name()
  return "cursor_agent"
end

---@return string[]
function Source:get_trigger_characters()
  return complete().TRIGGERS
end

---nvim-cmp filters by what this matches left of the cursor: a whole path, with its `/` or `@`.
---@return string
function Source:get_keyword_pattern()
  return [[[/@]\S*]]
end

---@param params { context: { cursor_before_line: string, cursor: { row: integer } } }
---@param callback fun(response: table)
function Source:complete(params, callback)
  local context = params.context
  local items = complete().lsp_items(context.cursor_before_line, context.cursor.row, "utf-16")
  callback({ items = items, isIncomplete = true })
end

return Source
