-- A list in the picker of snacks.nvim.

local picker = require("cursor_agent.picker.shared")

local M = {}

---@param list cursor_agent.picker.List
function M.open(list)
  local items = {} ---@type table[]
  for i, row in ipairs(list.rows) do
    items[i] = { idx = i, text = picker.text(list, row), row = row }
  end
  local actions, keys = {}, {} ---@type table<string, function>, table<string, table>
  for _, action in ipairs(list.actions) do
    local name = "cursor_agent_" .. action.name
    actions[name] = function(self, item)
      self:close()
      if item then
        picker.after(action.run, item.row)
      end
    end
    -- snacks spells the Alt key this way, and treats two spellings as two keys.
    keys[(action.key:gsub("^<M%-", "<a-"))] = { name, mode = { "n", "i" }, desc = action.desc }
  end
  picker.plugin("snacks").picker.pick({
    title = list.title,
    items = items,
    format = function(item)
      return list.chunks(item.row)
    end,
    preview = function(ctx)
      local item = ctx.item
      ctx.preview:reset()
      list.preview(item.row, function(lines)
        if ctx.item == item then
          -- As plain text: an agent's text may crash a parser.
          ctx.preview:set_lines(lines)
        end
      end)
    end,
    confirm = function(self, item)
      self:close()
      if item then
        picker.after(list.choose, item.row)
      end
    end,
    actions = actions,
    win = { input = { keys = keys }, list = { keys = keys } },
  })
end

return M
