-- Markdown as it is drawn: headings, lists, quotes, rules and tables, also while they stream in.

local T = require("harness")

vim.opt.runtimepath:prepend(T.root)

local icons = require("cursor_agent.render.icons").pick("unicode")
local markdown = require("cursor_agent.render.markdown")

---The lines as they look with what is drawn over them; what is drawn past the text is left out.
---@param lines string[]
---@param opts? { room?: integer, open?: boolean }
---@return string[]
local function look(lines, opts)
  opts = opts or {}
  local marks = markdown.marks(lines, { room = opts.room or 60, icons = icons, open = opts.open or false })
  local shown = {} ---@type string[]
  for row, line in ipairs(lines) do
    local inserted, hidden, over, fixed = {}, {}, {}, {}
    for _, mark in ipairs(marks) do
      local o = mark.opts
      if mark.row == row - 1 and o.virt_text_pos == "inline" then
        inserted[mark.col] = (inserted[mark.col] or "") .. assert(o.virt_text)[1][1]
      elseif mark.row == row - 1 and o.virt_text_win_col then
        fixed[o.virt_text_win_col] = assert(o.virt_text)[1][1]
      elseif mark.row == row - 1 and o.virt_text_pos == "overlay" then
        over[mark.col] = assert(o.virt_text)[1][1]
      elseif mark.row == row - 1 and o.conceal then
        hidden[mark.col] = { to = o.end_col, char = o.conceal }
      end
    end
    local out, at = "", 0
    while at <= #line do
      out = out .. (inserted[at] or "")
      if over[at] then
        local width = vim.fn.strchars(over[at])
        out = out .. over[at]
        at = at + width
      elseif hidden[at] then
        out = out .. hidden[at].char
        at = hidden[at].to
      else
        out = out .. line:sub(at + 1, at + 1)
        at = at + 1
      end
    end
    out = out:gsub("%s+$", "")
    for col, text in pairs(fixed) do
      out = out .. (" "):rep(math.floor(col - vim.api.nvim_strwidth(out))) .. text
    end
    shown[row] = out
  end
  return shown
end

T.case("the columns of a table are aligned, marks that are hidden not counted", function()
  T.eq(
    look({
      "| Option | Default | n |",
      "|---|:---:|---:|",
      "| `width` | 0.4 | 1 |",
      "|position|**right**|200|",
      "| ö日 | \\| |",
      "after",
    }),
    {
      "│ Option   │ Default │   n │",
      "├──────────┼─────────┼─────┤",
      "│ width    │   0.4   │   1 │",
      "│ position │  right  │ 200 │",
      "│ ö日      │   \\|    │     │",
      "after",
    }
  )
  T.eq(
    look({ "a | b", "--|--", "long cell | c" }),
    { "a         │ b", "├───────────┼───┤", "long cell │ c" }
  )
end)

T.case("a table that fits without its hidden marks is aligned, and no line of it wraps", function()
  local lines = {
    "| rule | line | what it eats |",
    "|---|---:|:---:|",
    "| list | 41 | `[` … `]` |",
    "| expression, the **long** one | 7 | anything |",
  }
  local expected = {
    "│ rule                     │ line │ what it eats │",
    "├──────────────────────────┼──────┼──────────────┤",
    "│ list                     │   41 │    [ … ]     │",
    "│ expression, the long one │    7 │   anything   │",
  }
  for room = 51, 56 do
    T.eq(look(lines, { room = room }), expected, room .. " cells")
  end
  -- Where Neovim would break a row, its columns are not pretended.
  T.ok(look(lines, { room = 49 })[4] ~= expected[4])
end)

T.case("a table that is too wide keeps its columns but the last, which wraps", function()
  T.eq(
    look({ "| key | what |", "|---|---|", "| a long key | a text that has no room in a line of this window |" }, {
      room = 40,
    }),
    {
      "│ key        │ what",
      "├────────────┼" .. ("─"):rep(26),
      "│ a long key │ a text that has no room in a line of this window",
    }
  )
end)

T.case("headings, lists, tasks, quotes and rules are drawn", function()
  T.eq(
    look({
      "# One",
      "### Three",
      "#hashtag",
      "- item **bold**",
      "  * below",
      "1. first",
      "- [x] done",
      "- [ ] to do",
      "> said",
      ">> twice",
      "***",
      "- - -",
      "a - b * c",
    }, { room = 8 }),
    {
      "One",
      "Three",
      "#hashtag",
      "• item bold",
      "  ◦ below",
      "1. first",
      "✓ done",
      "○ to do",
      "│ said",
      "││ twice",
      "────────",
      "────────",
      "a - b * c",
    }
  )
end)

T.case("what stands in a code block of a list is code", function()
  local lines = { "- item", "  ```", "  # no heading", "  - no item", "  ```", "- more" }
  T.eq(look(lines), { "• item", "  ```", "  # no heading", "  - no item", "  ```", "• more" })
end)

T.case("emphasis, code and links look while they stream as they will at their end", function()
  for text, shown in pairs({
    ["so **bo"] = "so bo",
    ["so **bold**"] = "so bold",
    ["so **"] = "so ",
    ["a `co"] = "a co",
    ["see [the page](https://exa"] = "see the page",
    ["2 * 3 and snake_case_name"] = "2 * 3 and snake_case_name",
    ["a *b"] = "a b",
    ["\\*not\\*"] = "\\*not\\*",
  }) do
    T.eq(look({ text }, { open = true })[1], (shown:gsub("%s+$", "")), text)
  end
  T.eq(look({ "so **never closed" })[1], "so **never closed", "what was never closed is what it is")
  T.eq(look({ "# " }, { open = true })[1], "")
  T.eq(look({ "| a | b" }, { open = true })[1], "│ a │ b")
end)

T.case("a line costs what it is long, whatever it is full of", function()
  local text = ("*a **b `c [d _e "):rep(20000)
  local before = vim.uv.hrtime()
  markdown.marks({ text }, { room = 60, icons = icons, open = true })
  T.ok((vim.uv.hrtime() - before) / 1e9 < 2, "it took seconds")
end)

local STREAM = {
  "So **bo",
  "ld** it is.\n\n| Key | What it does |\n|---|---|\n| a ",
  "| allow |\n| reject | no |\n\n- one\n",
}

T.case("a message is drawn as it streams in", { width = 120, height = 24 }, function(nvim)
  local agent = T.agent({
    turns = {
      {
        { text = STREAM[1] },
        { expect = "session/set_mode" },
        { text = STREAM[2] },
        { expect = "session/set_mode" },
        { text = STREAM[3] },
      },
    },
  })
  nvim:use(agent)
  nvim:prompt("go", { open = true })
  nvim:wait_screen(" So bo")
  nvim:wait_screen_without("**")
  nvim:lua("require('cursor_agent').set_mode('plan')")
  nvim:wait_screen("│ Key │ What it does │")
  nvim:wait_screen(" So bold it is.")
  nvim:lua("require('cursor_agent').set_mode('ask')")
  nvim:wait_turns(1)
  nvim:wait_screen("│ Key    │ What it does │")
  nvim:wait_screen("├────────┼──────────────┤")
  nvim:wait_screen("│ a      │ allow        │")
  nvim:wait_screen("• one")
  -- The text itself is markdown, to be searched and yanked.
  nvim:cmd("wincmd l | wincmd k")
  T.contains(nvim:lua("return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n')"), "| reject | no |")
end)

T.case("a table is aligned again when the window becomes wider", { width = 80, height = 24 }, function(nvim)
  nvim:use(T.agent({
    turns = { { { text = "| Option | What it is for, in a word or so |\n|---|---|\n| a | the first letter |\n" } } },
  }))
  nvim:prompt("go")
  nvim:wait_turns(1)
  nvim:wait_screen("│ Option │ What it is for,")
  nvim:wait_screen_without("┤")
  nvim:api("nvim_ui_try_resize", 160, 24)
  nvim:wait_screen("│ a      │ the first letter                │")
end)
