-- The screen of a child Neovim, kept up to date from its redraw events: what a person sees, floats included.

---@class harness.Cell
---@field text string "" in the right half of a wide character
---@field hl integer

---@class harness.Screen
---@field width integer
---@field height integer
---@field cells harness.Cell[][]
---@field cursor { row: integer, col: integer } from 0
---@field mode string as in `mode_change`
---@field flushes integer how often a whole frame arrived
---@field package names table<integer, string> highlight id to what it is made of
---@field package unfinished any[][] events of a frame that is not whole yet
local Screen = {}
Screen.__index = Screen

-- Letters of the attribute map, in the order in which highlights appear on the screen.
local LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
local PLAIN = "."
-- Groups that say nothing of their own: the ground everything else is drawn on.
local GROUND = { Normal = true, MsgArea = true }

---@param width integer
---@param height integer
---@return harness.Screen
function Screen.new(width, height)
  local self = setmetatable({
    cursor = { row = 0, col = 0 },
    mode = "normal",
    flushes = 0,
    names = { [0] = "" },
    unfinished = {},
  }, Screen)
  self:resize(width, height)
  return self
end

---@package
function Screen:resize(width, height)
  self.width, self.height = width, height
  self.cells = {}
  for row = 1, height do
    self.cells[row] = {}
    for col = 1, width do
      self.cells[row][col] = { text = " ", hl = 0 }
    end
  end
end

---What a highlight is made of, by the names of the groups; by its colours where it has no name.
---@param attributes table<string, any>
---@param info { kind: string, hi_name: string?, ui_name: string? }[]
local function describe(attributes, info)
  local parts, ground, seen = {}, false, {}
  -- From the top layer down, each name once: a group laid over itself again shows nothing new, and how often Neovim lays
  -- tree-sitter's groups over each other depends on when it parsed.
  for i = #info, 1, -1 do
    local name = info[i].hi_name or info[i].ui_name or ""
    ground = ground or GROUND[name] or false
    if name ~= "" and not GROUND[name] and not seen[name] then
      seen[name] = true
      table.insert(parts, 1, name)
    end
  end
  if #parts == 0 and not ground then
    for name, value in vim.spairs(attributes) do
      if name == "foreground" or name == "background" or name == "special" then
        parts[#parts + 1] = ("%s=#%06x"):format(name, value)
      elseif value == true then
        parts[#parts + 1] = name
      end
    end
  end
  return table.concat(parts, "+")
end

-- One function for each redraw event that changes the picture; the others do not matter here.
local events = {}

---@param self harness.Screen
function events.grid_resize(self, _, width, height)
  self:resize(width, height)
end

---@param self harness.Screen
function events.grid_clear(self)
  self:resize(self.width, self.height)
end

---@param self harness.Screen
function events.grid_line(self, _, row, col_start, cells)
  local line, col, hl = self.cells[row + 1], col_start + 1, 0
  for _, cell in ipairs(cells) do
    hl = cell[2] or hl
    for _ = 1, cell[3] or 1 do
      line[col] = { text = cell[1], hl = hl }
      col = col + 1
    end
  end
end

---@param self harness.Screen
function events.grid_scroll(self, _, top, bottom, left, right, rows)
  local first, last, step = top, bottom - rows - 1, 1
  if rows < 0 then
    first, last, step = bottom - 1, top - rows, -1
  end
  for row = first, last, step do
    local to, from = self.cells[row + 1], self.cells[row + rows + 1]
    for col = left + 1, right do
      to[col] = from[col]
    end
  end
end

---@param self harness.Screen
function events.grid_cursor_goto(self, _, row, col)
  self.cursor = { row = row, col = col }
end

---@param self harness.Screen
function events.mode_change(self, mode)
  self.mode = mode
end

---@param self harness.Screen
function events.hl_attr_define(self, id, rgb, _, info)
  self.names[id] = describe(rgb, info)
end

---@param self harness.Screen
function events.flush(self)
  self.flushes = self.flushes + 1
end

---@package
---@param event any[]
function Screen:apply(event)
  local apply = events[event[1]]
  local of_grid = vim.startswith(event[1], "grid_")
  if apply then
    for i = 2, #event do
      -- Windows that are grids of their own are not put together here.
      if not of_grid or event[i][1] == 1 then
        apply(self, unpack(event[i]))
      end
    end
  end
end

---Takes in the arguments of one `redraw` notification. A large frame comes in several; until it is whole the last one is
---what a person sees.
---@param batch any[][]
function Screen:redraw(batch)
  for _, event in ipairs(batch) do
    table.insert(self.unfinished, event)
    if event[1] == "flush" then
      local frame = self.unfinished
      self.unfinished = {}
      for _, one in ipairs(frame) do
        self:apply(one)
      end
    end
  end
end

---The group that is drawn over all others in a cell.
---@param cell harness.Cell
---@return string
function Screen:group(cell)
  return (self.names[cell.hl] or ""):match("[^+]*$") or ""
end

---The rows as plain text.
---@return string[]
function Screen:lines()
  local lines = {}
  for row = 1, self.height do
    local texts = {}
    for col = 1, self.width do
      texts[col] = self.cells[row][col].text
    end
    lines[row] = table.concat(texts)
  end
  return lines
end

---The screen as the text of a reference: rows, the map of highlights, what its letters stand for, cursor.
---@param normalise fun(line: string): string
---@return string
function Screen:reference(normalise)
  local out = { ("%dx%d"):format(self.width, self.height) }
  for row, line in ipairs(self:lines()) do
    out[#out + 1] = ("%02d|%s|"):format(row, normalise(line))
  end
  out[#out + 1] = ""
  local letters, legend, used = { [""] = PLAIN }, {}, 0
  for row = 1, self.height do
    local marks = {}
    for col = 1, self.width do
      local name = self.names[self.cells[row][col].hl] or "?"
      if not letters[name] then
        used = used + 1
        letters[name] = used <= #LETTERS and LETTERS:sub(used, used) or "?"
        legend[#legend + 1] = ("%s %s"):format(letters[name], name)
      end
      marks[col] = letters[name]
    end
    out[#out + 1] = ("%02d|%s|"):format(row, table.concat(marks))
  end
  out[#out + 1] = ""
  vim.list_extend(out, legend)
  out[#out + 1] = ("cursor %d,%d %s"):format(self.cursor.row + 1, self.cursor.col + 1, self.mode)
  return table.concat(out, "\n") .. "\n"
end

return Screen
