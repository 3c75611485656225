-- A list in fzf-lua.

local picker = require("cursor_agent.picker.shared")

local M = {}

---A preview may come from disk; give up on it after this long.
local PREVIEW_MS = 1000

---@param list cursor_agent.picker.List
function M.open(list)
  -- fzf only handles lines of text: each starts with its number, which is hidden.
  local lines = {} ---@type string[]
  for i, row in ipairs(list.rows) do
    lines[i] = ("%d\t%s"):format(i, picker.text(list, row))
  end

  ---@param selected string[]?
  ---@return any
  local function row_of(selected)
    local number = tonumber((selected and selected[1] or ""):match("^%s*(%d+)"))
    return number and list.rows[number]
  end

  ---@param run fun(row: any)
  ---@return fun(selected: string[])
  local function act(run)
    return function(selected)
      local row = row_of(selected)
      if row then
        picker.after(run, row)
      end
    end
  end

  local actions = { default = act(list.choose) }
  local header = {} ---@type string[]
  for _, action in ipairs(list.actions) do
    local key = action.key:gsub("^<M%-(.)>$", "alt-%1")
    actions[key] = act(action.run)
    header[#header + 1] = ("%s %s"):format(key, action.desc)
  end
  picker.plugin("fzf-lua").fzf_exec(lines, {
    prompt = list.title .. "> ",
    fzf_opts = {
      ["--delimiter"] = "\t",
      ["--with-nth"] = "2..",
      ["--no-multi"] = true,
      ["--header"] = table.concat(header, " · "),
    },
    preview = function(selected)
      local row, shown = row_of(selected), nil ---@type any, string[]?
      if row then
        list.preview(row, function(text)
          shown = text
        end)
        vim.wait(PREVIEW_MS, function()
          return shown ~= nil
        end, 10)
      end
      return table.concat(shown or {}, "\n")
    end,
    actions = actions,
  })
end

return M
