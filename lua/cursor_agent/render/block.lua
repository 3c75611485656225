-- A block of lines and marks, as entries and decisions are drawn in, and how it is put together line by line.

local M = {}

---@class (exact) cursor_agent.render.Context
---@field cwd string
---@field icons cursor_agent.Icons
---@field diff_lines integer
---@field output_lines integer
---@field fold_tools boolean

---Something drawn right of a line where there is room: text, or the time since a moment (wall clock).
---@class (exact) cursor_agent.render.Aside
---@field text? string
---@field since? integer
---@field hl string
---@field gives_way? boolean left out where it would hide some of the line
---@field opened? { icon: string, col: integer } instead of text: drawn over the line while its fold is open
---@field when_cut? boolean the line ends with it: shown where that end is out of sight, in a closed fold

---Lines of source code among the lines of a block. `rows[i]` says where `text[i]` stands.
---@class (exact) cursor_agent.render.Code
---@field path string decides the language
---@field text string[]
---@field rows { row: integer, col: integer, apply: boolean }[]

---What `<CR>` on a line leads to.
---@class (exact) cursor_agent.render.Target
---@field path? string
---@field line? integer
---@field url? string
---@field output? boolean the whole output of the tool call
---@field content? integer which content of the tool call: an image or a sound, opened outside of Neovim

---@class (exact) cursor_agent.render.Mark
---@field row integer
---@field col integer
---@field opts vim.api.keyset.set_extmark

---Rows count from 0 within the block.
---@class (exact) cursor_agent.render.Block
---@field lines string[]
---@field marks cursor_agent.render.Mark[]
---@field asides table<integer, cursor_agent.render.Aside[]>
---@field targets table<integer, cursor_agent.render.Target>
---@field code cursor_agent.render.Code[]
---@field closed? boolean the lines after the first are details: fold them, closed or open
---@field block? boolean all that stands below the task is one block: fold it, closed or open
---@field left? integer lines more that there would be without a limit

---@alias cursor_agent.render.Chunk { [1]: string, [2]: string? } text and highlight group

---@class cursor_agent.render.Builder : cursor_agent.render.Block
local Builder = {}
Builder.__index = Builder

---@return cursor_agent.render.Builder
function M.builder()
  return setmetatable({ lines = {}, marks = {}, asides = {}, targets = {}, code = {} }, Builder)
end

---Adds a line made of pieces. A newline inside one would be an error in the buffer, so it becomes a space.
---@param chunks cursor_agent.render.Chunk[]
---@param asides? cursor_agent.render.Aside[]
---@return integer row
function Builder:line(chunks, asides)
  local row = #self.lines
  local line = ""
  for i = 1, #chunks do
    local text, hl = chunks[i][1], chunks[i][2]
    if text ~= "" then
      if text:find("[\r\n]") then
        text = text:gsub("[\r\n]+", " ")
      end
      if hl then
        self:mark(row, #line, { end_col = #line + #text, hl_group = hl })
      end
      line = line .. text
    end
  end
  self.lines[row + 1] = line
  if asides and #asides > 0 then
    self.asides[row] = asides
  end
  return row
end

---@param row integer
---@param col integer
---@param opts vim.api.keyset.set_extmark
function Builder:mark(row, col, opts)
  self.marks[#self.marks + 1] = { row = row, col = col, opts = opts }
end

---What an entry that stands below a task begins its lines with.
---@param entry cursor_agent.Entry
---@return string
function M.indent(entry)
  return ("  "):rep(entry.depth or (entry.parent and 1 or 0))
end

return M
