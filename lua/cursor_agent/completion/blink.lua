-- A source for blink.cmp: `providers = { cursor_agent = { name = "agent", module = "cursor_agent.completion.blink" } }`.

---Required on each call: blink.cmp keeps this source when the plugin is reloaded.
local function complete()
  return require("cursor_agent.completion.items")
end

---@class cursor_agent.completion.Blink
local Source = {}
Source.__index = Source

---@return cursor_agent.completion.Blink
function Source.new()
  return setmetatable({}, Source)
end

---@return boolean
function Source:enabled()
  return vim.bo.filetype == "cursoragent-prompt"
end

---@return string[]
function Source:get_trigger_characters()
  return complete().TRIGGERS
end

---@param context { line: string, cursor: integer[] }
---@param callback fun(response: table)
function Source:get_completions(context, callback)
  local before = context.line:sub(1, context.cursor[2])
  callback({
    -- In bytes: blink.cmp assumes that for anything that is not from a language server.
    items = complete().lsp_items(before, context.cursor[1], "utf-8"),
    is_incomplete_forward = true,
    is_incomplete_backward = true,
  })
end

return Source
