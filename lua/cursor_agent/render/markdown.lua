-- Draws markdown: headings, lists, quotes, rules and tables, as marks over text that stays what it is.
--
-- It reads lines, not a tree, so that a line is drawn as it streams in: emphasis that is still open looks as it will when it ends.

local fences = require("cursor_agent.render.fence")
local format = require("cursor_agent.render.format")

local M = {}

---@class (exact) cursor_agent.markdown.Mark
---@field row integer
---@field col integer
---@field opts vim.api.keyset.set_extmark

---@class (exact) cursor_agent.markdown.Style
---@field room integer cells a line has
---@field icons cursor_agent.Icons
---@field open boolean the text is being written: what is not closed yet may be

---A line with more marks of emphasis than this is left to the parser.
local MOST_MARKS = 100

---A column next to which the last one of a wide table wraps takes at most this share of the line.
local WIDE_SHARE = 0.6

---Over the parser's colours, which come later.
local PRIORITY = 120

---Lines of a long text between two pauses.
local LINES_AT_ONCE = 20

---@class (exact) cursor_agent.markdown.Hidden a part of a line that is not shown
---@field from integer byte, from 0
---@field to integer

---@class (exact) cursor_agent.markdown.Styled
---@field from integer
---@field to integer
---@field hl string

local STYLES = {
  ["**"] = "@markup.strong.markdown_inline",
  ["__"] = "@markup.strong.markdown_inline",
  ["*"] = "@markup.italic.markdown_inline",
  ["_"] = "@markup.italic.markdown_inline",
  ["~~"] = "@markup.strikethrough.markdown_inline",
}

---Finds the end of a code span.
---@param line string
---@param from integer
---@param ticks string
---@return integer?
local function closing_ticks(line, from, ticks)
  local at = from
  while true do
    local first, last = line:find("`+", at)
    if not first or not last then
      return nil
    elseif last - first + 1 == #ticks then
      return first
    end
    at = last + 1
  end
end

---The marks of emphasis, code and links of a line that are not shown, and what they style.
---@param line string
---@param open boolean a mark that is not closed counts
---@return cursor_agent.markdown.Hidden[] hidden in order
---@return cursor_agent.markdown.Styled[] styled
function M.inline(line, open)
  local hidden, styled = {}, {} ---@type cursor_agent.markdown.Hidden[], cursor_agent.markdown.Styled[]
  local stack = {} ---@type { mark: string, from: integer, hidden: integer }[]
  local at, count = 1, 0
  while count <= MOST_MARKS do
    local first = line:find("[%*_`~%[\\]", at)
    if not first then
      break
    end
    count = count + 1
    local char = line:sub(first, first)
    if char == "\\" then
      at = first + 2
    elseif char == "`" then
      local ticks = line:match("^`+", first) or "`"
      local from = first + #ticks
      local last = closing_ticks(line, from, ticks)
      if last or (open and #ticks < 3) then
        hidden[#hidden + 1] = { from = first - 1, to = from - 1 }
        styled[#styled + 1] = { from = from - 1, to = (last or #line + 1) - 1, hl = "@markup.raw.markdown_inline" }
        if last then
          hidden[#hidden + 1] = { from = last - 1, to = last - 1 + #ticks }
        end
      end
      at = last and last + #ticks or open and #line + 1 or from
    elseif char == "[" then
      local label, target, after = line:match("^%[([^%[%]]*)%](%b())()", first)
      local past = after --[[@as integer?]]
      if label and label ~= "" and target and past then
        hidden[#hidden + 1] = { from = first - 1, to = first }
        local close = first + #label
        hidden[#hidden + 1] = { from = close, to = past - 1 }
        styled[#styled + 1] = { from = first, to = close, hl = "@markup.link.label.markdown_inline" }
        at = past
      else
        -- The address of a link that is being written does not appear only to go again.
        local from, to = line:find("^%[[^%[%]]+%]%([^%s()]*", first)
        if open and from and to == #line then
          local close = line:find("](", first, true) --[[@as integer]]
          hidden[#hidden + 1] = { from = first - 1, to = first }
          hidden[#hidden + 1] = { from = close - 1, to = #line }
          styled[#styled + 1] = { from = first, to = close - 1, hl = "@markup.link.label.markdown_inline" }
          at = #line + 1
        else
          at = first + 1
        end
      end
    else
      local run = line:match("^" .. (char == "*" and "%*" or char) .. "+", first) or char
      local mark = run:sub(1, 2)
      local before, after = line:sub(first - 1, first - 1), line:sub(first + #run, first + #run)
      local top = stack[#stack]
      local closes = before:find("[^%s]") ~= nil and top and top.mark == mark and first - 1 > top.from
      local opens = after:find("[^%s]") ~= nil and (char == "*" or not before:find("[%w_]"))
      if #run > 2 or not STYLES[mark] then
        -- Three at once are left to the parser.
        opens, closes = false, false
      elseif char == "_" and after:find("%w") then
        closes = false
      end
      if closes and top then
        table.remove(stack)
        hidden[top.hidden] = { from = top.from - #mark, to = top.from }
        hidden[#hidden + 1] = { from = first - 1, to = first - 1 + #mark }
        styled[#styled + 1] = { from = top.from, to = first - 1, hl = assert(STYLES[mark]) }
      elseif opens or (open and after == "" and not before:find("[%w]") and #run == 2) then
        -- Its place is kept: whether it is hidden is known at its end.
        hidden[#hidden + 1] = { from = 0, to = 0 }
        stack[#stack + 1] = { mark = mark, from = first - 1 + #mark, hidden = #hidden }
      end
      at = first + #run
    end
  end
  for _, left in ipairs(open and stack or {}) do
    hidden[left.hidden] = { from = left.from - #left.mark, to = left.from }
    styled[#styled + 1] = { from = left.from, to = #line, hl = STYLES[left.mark] }
  end
  return vim.tbl_filter(function(one)
    return one.to > one.from
  end, hidden), styled
end

---@class (exact) cursor_agent.markdown.Cell
---@field from integer byte where its text begins, from 0
---@field to integer byte past its text
---@field close integer? where the bar after it is
---@field width integer cells its text takes
---@field hidden integer cells that are hidden in it

---@class (exact) cursor_agent.markdown.Row
---@field bars integer[] where its bars are
---@field cells cursor_agent.markdown.Cell[]

---@param line string
---@param open boolean
---@return cursor_agent.markdown.Row?
local function read_row(line, open)
  local bars = {} ---@type integer[]
  local at = 1
  while true do
    local first = line:find("[|\\]", at)
    if not first then
      break
    elseif line:sub(first, first) == "|" then
      bars[#bars + 1] = first - 1
      at = first + 1
    else
      at = first + 2
    end
  end
  if #bars == 0 then
    return nil
  end
  local cells = {} ---@type cursor_agent.markdown.Cell[]
  local start = 0
  local edges = vim.list_slice(bars)
  if line:find("^%s*|") then
    start = table.remove(edges, 1) + 1
  end
  if not line:find("|%s*$", start + 1) then
    edges[#edges + 1] = -1
  end
  local hidden = M.inline(line, open)
  for _, edge in ipairs(edges) do
    local past = edge >= 0 and edge or #line
    local raw = line:sub(start + 1, past)
    local from = start + #(raw:match("^%s*") or "")
    local text = vim.trim(raw)
    local to = math.min(from + #text, past)
    from = math.min(from, to)
    local gone = 0
    for _, one in ipairs(hidden) do
      if one.from >= from and one.to <= to then
        gone = gone + format.width(line:sub(one.from + 1, one.to))
      end
    end
    cells[#cells + 1] = {
      from = from,
      to = to,
      close = edge >= 0 and edge or nil,
      width = format.width(text) - gone,
      hidden = gone,
    }
    start = past + 1
  end
  return { bars = bars, cells = cells }
end

---How the columns of a table are aligned, where a line says that.
---@param line string
---@return ("left"|"right"|"center")[]?
local function read_delimiter(line)
  if not line:find("^[%s|:-]+$") or not line:find("-", 1, true) or not line:find("|", 1, true) then
    return nil
  end
  local list = {} ---@type ("left"|"right"|"center")[]
  for cell in vim.gsplit(vim.trim(line):gsub("^|", ""):gsub("|$", ""), "|", { plain = true }) do
    local left, right = cell:match("^%s*(:?)%-+(:?)%s*$")
    if not left then
      return nil
    end
    list[#list + 1] = (left ~= "" and right ~= "") and "center" or right ~= "" and "right" or "left"
  end
  return list
end

---@param marks cursor_agent.markdown.Mark[]
---@param row integer
---@param col integer
---@param opts vim.api.keyset.set_extmark
local function add(marks, row, col, opts)
  opts.priority = opts.priority or PRIORITY
  opts.strict = false
  marks[#marks + 1] = { row = row, col = col, opts = opts }
end

---@param marks cursor_agent.markdown.Mark[]
---@param row integer
---@param col integer
---@param cells integer
local function pad(marks, row, col, cells)
  if cells > 0 then
    add(marks, row, col, { virt_text = { { (" "):rep(cells) } }, virt_text_pos = "inline" })
  end
end

---@class (exact) cursor_agent.markdown.Table
---@field rows table<integer, cursor_agent.markdown.Row> by row of the text
---@field first integer
---@field last integer
---@field delimiter integer?
---@field align ("left"|"right"|"center")[]

---Cells of a row that are hidden. Neovim breaks a line where it would if nothing in it were.
---@param row cursor_agent.markdown.Row
---@return integer
local function hidden_in(row)
  local cells = 0
  for _, cell in ipairs(row.cells) do
    cells = cells + cell.hidden
  end
  return cells
end

---Widths of the columns, and of the whole; the last column has none where the table is too wide and it has to wrap.
---@param found cursor_agent.markdown.Table
---@param room integer
---@return integer[]?
---@return integer
local function columns_of(found, room)
  local widths, tightest = {}, 0 ---@type integer[], integer
  for _, row in pairs(found.rows) do
    for i, cell in ipairs(row.cells) do
      widths[i] = math.max(widths[i] or 1, cell.width)
    end
  end
  local all = 1
  for _, width in ipairs(widths) do
    all = all + width + 3
  end
  for _, row in pairs(found.rows) do
    local last = row.cells[#widths]
    tightest = math.max(tightest, all + hidden_in(row) - (last and widths[#widths] - last.width or 0))
  end
  if all <= room and tightest <= room then
    return widths, all
  end
  local last = table.remove(widths) or 0
  return #widths > 0 and all - last - 3 <= room * WIDE_SHARE and widths or nil, all
end

---@param marks cursor_agent.markdown.Mark[]
---@param lines string[]
---@param found cursor_agent.markdown.Table
---@param style cursor_agent.markdown.Style
---@param pause fun()
local function draw_table(marks, lines, found, style, pause)
  local widths, all = columns_of(found, style.room)
  local icons = style.icons
  local columns = 0
  for _, row in pairs(found.rows) do
    columns = math.max(columns, #row.cells)
  end
  for number, row in pairs(found.rows) do
    if number % LINES_AT_ONCE == 0 then
      pause()
    end
    local final = row.cells[#row.cells].close
    -- Without the space after its last text, a row with hidden marks fits; its end is drawn over what is behind it.
    local tight = widths and #widths == columns and #row.cells == columns and all + hidden_in(row) > style.room
    for _, col in ipairs(row.bars) do
      -- Behind a column that wraps it would stand anywhere.
      local shown = widths and (#widths == columns or col ~= final) and not (tight and col == final)
      add(marks, number, col, {
        end_col = col + 1,
        conceal = (shown or not widths) and icons.gutter or " ",
        hl_group = "CursorAgentRule",
      })
    end
    for i, cell in ipairs(widths and row.cells or {}) do
      local width = widths and widths[i]
      local line = lines[number + 1] or ""
      -- A space at each side, whatever was written.
      local lead = line:sub(1, cell.from):match("|(%s*)$")
      pad(marks, number, cell.from, lead and 1 - #lead or 0)
      if width then
        local free = width - cell.width
        local align = found.align[i] or "left"
        local before = align == "right" and free or align == "center" and math.floor(free / 2) or 0
        pad(marks, number, cell.from, before --[[@as integer]])
        local close = cell.close
        if close and tight and i == columns then
          add(marks, number, close, {
            virt_text = { { icons.gutter, "CursorAgentRule" } },
            virt_text_win_col = all - 1,
          })
        elseif close then
          local after = free - before + 1 - (close - cell.to)
          pad(marks, number, close, after --[[@as integer]])
        end
      end
    end
    if widths and #row.cells < columns and #widths == columns and (number ~= found.last or not style.open) then
      local rest = ""
      for i = #row.cells + 1, columns do
        rest = rest .. (" "):rep(widths[i] + 2) .. icons.gutter
      end
      add(marks, number, #(lines[number + 1] or ""), {
        virt_text = { { rest, "CursorAgentRule" } },
        virt_text_pos = "inline",
      })
    end
  end
  if found.delimiter then
    local line = lines[found.delimiter + 1] or ""
    local parts = {} ---@type string[]
    for i, width in ipairs(widths or {}) do
      parts[i] = icons.rule:rep(math.floor(width) + 2)
    end
    local text = ""
    if #parts > 0 then
      text = icons.tee .. table.concat(parts, icons.cross)
      text = #parts < columns and text .. icons.cross .. icons.rule:rep(style.room) or text .. icons.tee_end
    else
      text = icons.rule:rep(style.room)
    end
    text = format.first_cells(text, style.room)
    local lead = #(line:match("^%s*") or "")
    local cover = format.width(line) - lead - format.width(text)
    add(marks, found.delimiter, lead, {
      virt_text = { { text .. (" "):rep(math.max(cover, 0)), "CursorAgentRule" } },
      virt_text_pos = "overlay",
    })
  end
end

---@param marks cursor_agent.markdown.Mark[]
---@param row integer
---@param line string
---@param open boolean
local function draw_inline(marks, row, line, open)
  local hidden, styled = M.inline(line, open)
  for _, one in ipairs(hidden) do
    add(marks, row, one.from, { end_col = one.to, conceal = "" })
  end
  for _, one in ipairs(styled) do
    add(marks, row, one.from, { end_col = one.to, hl_group = one.hl })
  end
end

---A rule across the window.
---@param line string
---@return boolean
local function is_rule(line)
  local char = line:match("^%s?%s?%s?([-*_])%s*%1%s*%1[-*_%s]*$")
  return char ~= nil and not line:find(("[^%%%s%%s]"):format(char))
end

---@param marks cursor_agent.markdown.Mark[]
---@param row integer
---@param line string
---@param style cursor_agent.markdown.Style
local function draw_line(marks, row, line, style)
  local icons = style.icons
  local at = #(line:match("^%s*") or "")
  -- Quotes may hold everything else.
  while line:find("^>", at + 1) do
    add(marks, row, at, {
      virt_text = { { icons.quote, "CursorAgentQuote" } },
      virt_text_pos = "overlay",
      virt_text_repeat_linebreak = true,
    })
    at = at + 1 + #(line:match("^%s*", at + 2) or "")
  end
  if is_rule(line:sub(at + 1)) then
    add(marks, row, at, {
      virt_text = { { icons.rule:rep(style.room), "CursorAgentRule" } },
      virt_text_pos = "overlay",
    })
    return
  end
  local hashes, space = line:match("^(#+)(%s+)%S", at + 1)
  if not hashes and style.open then
    hashes, space = line:match("^(#+)(%s*)$", at + 1)
  end
  if hashes and space and #hashes <= 6 then
    local level = math.min(#hashes, 3)
    add(marks, row, at, { end_col = at + #hashes + #space, conceal = "" })
    add(marks, row, at, { end_col = #line, hl_group = "CursorAgentHeading" .. level, priority = PRIORITY - 1 })
    if level == 1 then
      add(marks, row, #line, {
        virt_text = { { icons.rule:rep(style.room), "CursorAgentRule" } },
        virt_text_pos = "eol",
      })
    end
    return
  end
  local bullet = line:match("^([-*+])%s", at + 1) or (style.open and line:match("^([-*+])$", at + 1))
  local number = line:match("^%d+[.)]%s", at + 1)
  if bullet or number then
    local past = at + #(number or bullet .. " ")
    local box = line:match("^%[([ xX])%]%s", past + 1)
    if box and bullet then
      local done = box ~= " "
      add(marks, row, at, {
        end_col = past + 3,
        conceal = done and icons.done or icons.box,
        hl_group = done and "CursorAgentDone" or "CursorAgentPending",
      })
    elseif bullet then
      add(marks, row, at, {
        virt_text = { { at > 1 and icons.bullet_below or icons.bullet, "CursorAgentBullet" } },
        virt_text_pos = "overlay",
      })
    else
      add(marks, row, at, { end_col = past - 1, hl_group = "CursorAgentBullet" })
    end
  end
end

---What to draw over lines of markdown, which are none of a code block.
---@param lines string[]
---@param style cursor_agent.markdown.Style
---@param pause? fun() called now and then
---@return cursor_agent.markdown.Mark[]
function M.marks(lines, style, pause)
  pause = pause or function() end
  local marks = {} ---@type cursor_agent.markdown.Mark[]
  local fence ---@type cursor_agent.render.Fence?
  local drawing ---@type cursor_agent.markdown.Table?
  local function end_table()
    if drawing and (drawing.delimiter or style.open) then
      draw_table(marks, lines, drawing, style, pause)
    end
    drawing = nil
  end
  for i, line in ipairs(lines) do
    if i % LINES_AT_ONCE == 0 then
      pause()
    end
    local mark = fences.read(line)
    local last = i == #lines
    if fence or mark then
      end_table()
      if mark and not fence then
        fence = mark
      elseif mark and fence and fences.ends(mark, fence.marks) then
        fence = nil
      end
    else
      local ahead = lines[i + 1]
      local row = line:find("|", 1, true) and read_row(line, style.open and last) or nil
      local begins = row
        and not drawing
        and ((ahead and read_delimiter(ahead)) or (last and style.open and line:find("^%s*|")))
      if begins then
        drawing = { rows = {}, first = i - 1, last = i - 1, align = {} }
      elseif not row then
        end_table()
      end
      local align = drawing and drawing.first == i - 2 and read_delimiter(line)
      if drawing and align then
        drawing.delimiter, drawing.align = i - 1, align
      elseif drawing and row then
        drawing.rows[i - 1], drawing.last = row, i - 1
      else
        draw_line(marks, i - 1, line, style)
      end
      if not (drawing and drawing.delimiter == i - 1) then
        draw_inline(marks, i - 1, line, style.open and last)
      end
    end
  end
  end_table()
  return marks
end

return M
