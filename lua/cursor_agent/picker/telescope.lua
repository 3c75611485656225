-- A list in telescope.nvim.

local picker = require("cursor_agent.picker.shared")

local M = {}

---@param list cursor_agent.picker.List
function M.open(list)
  local actions = picker.plugin("telescope.actions")
  local state = picker.plugin("telescope.actions.state")
  local opts = {}

  ---@param row any
  ---@return string text
  ---@return table highlights
  local function display(row)
    local marks, at = {}, 0
    for _, chunk in ipairs(list.chunks(row)) do
      if chunk[2] then
        marks[#marks + 1] = { { at, at + #chunk[1] }, chunk[2] }
      end
      at = at + #chunk[1]
    end
    return picker.text(list, row), marks
  end

  picker
    .plugin("telescope.pickers")
    .new(opts, {
      prompt_title = list.title,
      finder = picker.plugin("telescope.finders").new_table({
        results = list.rows,
        entry_maker = function(row)
          return {
            value = row,
            ordinal = picker.text(list, row),
            display = function(entry)
              return display(entry.value)
            end,
          }
        end,
      }),
      sorter = picker.plugin("telescope.config").values.generic_sorter(opts),
      previewer = picker.plugin("telescope.previewers").new_buffer_previewer({
        title = "Last lines",
        define_preview = function(self, entry)
          local buf = self.state.bufnr
          list.preview(entry.value, function(lines)
            if vim.api.nvim_buf_is_valid(buf) then
              -- As plain text: an agent's text may crash a parser.
              vim.api.nvim_buf_set_lines(buf, 0, -1, false, lines)
            end
          end)
        end,
      }),
      attach_mappings = function(prompt_buf, map)
        ---@param run fun(row: any)
        local function act(run)
          local entry = state.get_selected_entry()
          actions.close(prompt_buf)
          if entry then
            picker.after(run, entry.value)
          end
        end
        actions.select_default:replace(function()
          act(list.choose)
        end)
        for _, action in ipairs(list.actions) do
          map({ "i", "n" }, action.key, function()
            act(action.run)
          end, { desc = action.desc })
        end
        return true
      end,
    })
    :find()
end

return M
