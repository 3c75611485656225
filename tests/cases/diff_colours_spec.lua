-- Diffs can be read: removed and added lines have colours of their own in every colorscheme, with the words that changed.

local T = require("harness")

---Goes through every built-in colorscheme, dark and light, and says what is wrong with the colours of diffs.
local SURVEY = [[
  local colours = require("cursor_agent.colour.diff")
  require("cursor_agent.colour.highlights").setup()
  local function of_cterm(n)
    if n >= 232 then
      return (8 + (n - 232) * 10) * 0x10101
    end
    local level = { [0] = 0, 95, 135, 175, 215, 255 }
    n = n - 16
    return level[math.floor(n / 36)] * 0x10000 + level[math.floor(n / 6) % 6] * 0x100 + level[n % 6]
  end
  local wrong, seen = {}, 0
  for _, scheme in ipairs(vim.fn.getcompletion("", "color")) do
    for _, background in ipairs({ "dark", "light" }) do
      vim.cmd("set background=" .. background)
      local ok = pcall(vim.cmd, "colorscheme " .. scheme)
      vim.cmd("set background=" .. background)
      local function complain(what)
        table.insert(wrong, ("%s %s: %s"):format(scheme, background, what))
      end
      if not ok then
        complain("cannot be loaded")
      end
      seen = seen + 1
      local function get(name)
        return vim.api.nvim_get_hl(0, { name = name, link = false })
      end
      local normal = get("Normal")
      local add, delete = get("CursorAgentDiffAdd"), get("CursorAgentDiffDelete")
      local add_word, delete_word = get("CursorAgentDiffAddWord"), get("CursorAgentDiffDeleteWord")
      for side, list in pairs({ Add = { add, add_word }, Delete = { delete, delete_word } }) do
        for i, hl in ipairs(list) do
          local name = side .. (i == 2 and "Word" or "")
          if not hl.bg or not hl.ctermbg then
            complain(name .. " has no ground")
          else
            if not colours.looks(hl.bg, side) then
              complain(("%s does not look like it: #%06x"):format(name, hl.bg))
            end
            if hl.ctermbg < 16 or not colours.looks(of_cterm(hl.ctermbg), side) then
              complain(("%s does not look like it in a terminal: %d"):format(name, hl.ctermbg))
            end
            local fg = hl.fg or normal.fg
            if fg and colours.contrast(fg, hl.bg) < 2.9 then
              complain(("%s cannot be read: #%06x on #%06x"):format(name, fg, hl.bg))
            end
            if hl.bg == normal.bg then
              complain(name .. " is not seen")
            end
          end
          if hl.bold or hl.reverse or hl.underline then
            complain(name .. " is emphasised")
          end
        end
        if list[1].bg == list[2].bg or list[1].ctermbg == list[2].ctermbg then
          complain(side .. " does not tell words apart")
        end
      end
    end
  end
  return { wrong, seen }
]]

T.case("removed lines are red and added ones green in every built-in colorscheme", function(nvim)
  local found = nvim:lua(SURVEY)
  T.eq(found[1], {})
  T.ok(found[2] > 20, "all of them were tried")
end)

T.case("colours of diffs follow 'background', and leave alone what the user defined", function(nvim)
  local function bg(name)
    return nvim:lua(("return vim.api.nvim_get_hl(0, { name = %q, link = false }).bg"):format(name))
  end
  nvim:lua("require('cursor_agent.colour.highlights').setup()")
  local dark = bg("CursorAgentDiffDelete")
  nvim:cmd("set background=light")
  local light = bg("CursorAgentDiffDelete")
  T.ok(light > dark, "light on light")
  nvim:cmd("highlight CursorAgentDiffDelete guibg=#123456")
  nvim:cmd("set background=dark")
  T.eq(bg("CursorAgentDiffDelete"), 0x123456)
  T.ok(bg("CursorAgentDiffAdd") < light, "the others are dark again")
  nvim:cmd("autocmd ColorScheme * highlight CursorAgentDiffAdd guibg=#654321")
  nvim:cmd("colorscheme habamax")
  T.eq(bg("CursorAgentDiffAdd"), 0x654321)
  nvim:cmd("colorscheme default")
  T.eq(bg("CursorAgentDiffDelete"), dark)
end)

---@param nvim table
---@param groups string[]
---@return string[] what is highlighted by these, in the current buffer
local function marked(nvim, groups)
  return nvim:lua(
    [[
    local groups = ...
    local found = {}
    for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, -1, 0, -1, { details = true })) do
      local row, col, details = mark[2], mark[3], mark[4]
      if vim.tbl_contains(groups, details.hl_group) then
        local line = vim.api.nvim_buf_get_lines(0, row, row + 1, false)[1]
        table.insert(found, line:sub(col + 1, details.end_col))
      end
    end
    return found
  ]],
    groups
  )
end

local WORDS = { "CursorAgentDiffAddWord", "CursorAgentDiffDeleteWord" }

T.case("words that changed are marked in the diffs of the chat and of the card", function(nvim)
  local content = {
    {
      type = "diff",
      path = nvim.work .. "/a.lua",
      oldText = "local a = expr(1)\nreturn a\n",
      newText = "local a = term(1)\nreturn a\n",
    },
  }
  local call = { toolCallId = "e1", title = "Edit a.lua", kind = "edit", content = content }
  nvim:use(T.agent({ turns = { { { permission = { toolCall = call } } } } }))
  nvim:prompt("go")
  nvim:wait_screen("term(1)")
  nvim:cmd("CursorAgent decisions")
  nvim:wait("vim.bo.filetype == 'cursoragent-decision'", "the card")
  T.eq(marked(nvim, WORDS), { "expr", "term" })
  nvim:lua("require('cursor_agent').accept()")
  nvim:wait_turns(1)
  nvim:cmd("stopinsert")
  nvim:lua("vim.api.nvim_set_current_win(vim.fn.bufwinid(require('cursor_agent.chat.registry').current().buf))")
  T.eq(marked(nvim, WORDS), { "expr", "term" })
end)

T.case("a card counts the lines below what is in sight, as it is scrolled", function(nvim)
  local new = {} ---@type string[]
  for i = 1, 60 do
    new[i] = ("line %d"):format(i)
  end
  local content = { { type = "diff", path = nvim.work .. "/list.txt", newText = table.concat(new, "\n") .. "\n" } }
  local call = { toolCallId = "e1", title = "Edit", kind = "edit", content = content }
  nvim:use(T.agent({ turns = { { { permission = { toolCall = call } } } } }))
  nvim:prompt("go")
  nvim:wait_screen("more lines")
  nvim:cmd("CursorAgent decisions")
  nvim:wait("vim.bo.filetype == 'cursoragent-decision'", "the card")
  local function below()
    return nvim:lua("return vim.fn.line('$') - vim.fn.line('w$')")
  end
  nvim:wait_screen(("↓ %d more lines"):format(below()))
  local first = below()
  nvim:keys("<C-e><C-e><C-e>")
  nvim:wait_screen(("↓ %d more lines"):format(first - 3))
  nvim:keys("G")
  nvim:wait_screen_without("more line")
  T.ok(nvim:sees("line 60"), "the end")
  nvim:keys("<C-y>")
  nvim:wait_screen("↓ 1 more line")
  nvim:keys("gg")
  nvim:wait_screen(("↓ %d more lines"):format(first))
end)
