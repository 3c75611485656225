-- What a list to choose from is made of, and what every picker does with it.

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
---@field chunks fun(row: any): cursor_agent.picker.Chunk[] what a row shows
---@field preview fun(row: any, show: fun(lines: string[])) calls back with what is shown beside the row
---@field choose fun(row: any)
---@field actions cursor_agent.picker.Action[] keys beside the one that chooses; only a plugin has them

---What a row shows, without colours.
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

---A module of another plugin.
---@param name string
---@return any
function M.plugin(name)
  return require(name)
end

---mini.pick, once its `setup()` has made it a global name.
---@return table?
function M.mini()
  local mini = getfenv(0).MiniPick
  return type(mini) == "table" and mini or nil
end

---Runs something once the picker is gone.
---@param run fun(row: any)
---@param row any
function M.after(run, row)
  vim.schedule(function()
    run(row)
  end)
end

return M
