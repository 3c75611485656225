-- A list in mini.pick.

local picker = require("cursor_agent.picker.shared")

local M = {}

---@param list cursor_agent.picker.List
function M.open(list)
  local mini = assert(picker.mini())
  local items = {} ---@type { text: string, row: any }[]
  for i, row in ipairs(list.rows) do
    items[i] = { text = picker.text(list, row), row = row }
  end
  local mappings = {} ---@type table<string, { char: string, func: fun(): boolean }>
  for _, action in ipairs(list.actions) do
    mappings[action.name] = {
      char = action.key,
      func = function()
        local current = (mini.get_picker_matches() or {}).current
        if current then
          picker.after(action.run, current.row)
        end
        -- Stops the picker.
        return true
      end,
    }
  end
  mini.start({
    source = {
      name = list.title,
      items = items,
      preview = function(buf, item)
        list.preview(item.row, function(lines)
          if vim.api.nvim_buf_is_valid(buf) then
            vim.api.nvim_buf_set_lines(buf, 0, -1, false, lines)
          end
        end)
      end,
      choose = function(item)
        if item then
          picker.after(list.choose, item.row)
        end
      end,
    },
    mappings = mappings,
  })
end

return M
