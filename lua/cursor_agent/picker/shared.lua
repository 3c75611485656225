-- What a list to choose from consists of, and what is common to all pickers.

local M = {}

---@class (exact) cursor_agent.picker.Chunk
---@field [1] string
---@field [2] string? highlight group

---@class (exact) cursor_agent.picker.Action
---@field name string
---@field key string
---@field desc string
---@field run fun(row: any)

---@class (exact) cursor_agent.picker.List
---@field title string
---@field rows any[]
---@field chunks fun(row: any): cursor_agent.picker.Chunk[] the text of a row
---@field preview fun(row: any, show: fun(lines: string[])) calls back with the preview of the row
---@field choose fun(row: any)
---@field actions cursor_agent.picker.Action[] keys besides the one that chooses; only plugins support them

---The text of a row, without colours.
---@param list cursor_agent.picker.List
---@param row any
---@return string
function M.text(list, row)
  local words = {} ---@type string[]
  for i, chunk in ipairs(list.chunks(row)) do
    words[i] = chunk[1]
  end
  return (table.concat(words):gsub("%s+$", ""))
end

---Loads a module of another plugin.
---@param name string
---@return any
function M.plugin(name)
  return require(name)
end

---mini.pick, once its `setup()` has set the global.
---@return table?
function M.mini()
  local mini = getfenv(0).MiniPick
  return type(mini) == "table" and mini or nil
end

---Runs something after the picker has closed.
---@param run fun(row: any)
---@param row any
function M.after(run, row)
  vim.schedule(function()
    run(row)
  end)
end

return M
