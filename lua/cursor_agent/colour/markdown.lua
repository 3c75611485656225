-- Parses markdown in steps: a paragraph full of marks that are never closed would take seconds at once.

local M = {}

---What is within the lines of markdown is parsed so much at a time.
local SLICE_BYTES = 2 * 1024

---This many marks of one paragraph count. With each one that is not closed the parser has more ways to read the rest.
local MOST_MARKS = 200

---How lines begin with which a paragraph ends: empty ones, headings, items of a list, and rows of a table, whose cells are
---read one by one.
local APART = { "^[%s>]*$", "^[%s>]*[|#]", "^[%s>]*[*+-]%s", "^[%s>]*%d+[.)]%s" }

---@param line string
---@return boolean
local function stands_apart(line)
  for _, pattern in ipairs(APART) do
    if line:find(pattern) then
      return true
    end
  end
  return false
end

---Markdown without the marks that are too many in their paragraph; spaces stand there instead.
---@param lines string[]
---@return string[]
function M.thin_out(lines)
  local thinned = nil ---@type string[]?
  local count, fenced = 0, false
  for i, line in ipairs(lines) do
    local is_fence = line:find("^[%s>*+-]*```") or line:find("^[%s>*+-]*~~~")
    fenced = fenced ~= (is_fence ~= nil)
    if is_fence or stands_apart(line) then
      count = 0
    end
    if not is_fence and not fenced then
      local _, here = line:gsub("[*_`~$!<%[]", "")
      if count + here > MOST_MARKS then
        local left = MOST_MARKS - count
        thinned = thinned or vim.list_slice(lines)
        thinned[i] = line:gsub("[*_`~$!<%[]", function()
          left = left - 1
          return left < 0 and " " or nil
        end)
      end
      count = count + here
    end
  end
  return thinned or lines
end

---Parses markdown and then what is within its lines, some lines at a time.
---@param parser vim.treesitter.LanguageTree
---@param lines string[]
---@param pause cursor_agent.syntax.Pause
function M.parse(parser, lines, pause)
  parser:parse()
  pause()
  local first, bytes = 0, 0
  for row, line in ipairs(lines) do
    bytes = bytes + #line + 1
    if bytes > SLICE_BYTES then
      parser:parse({ first, 0, row, 0 })
      pause()
      first, bytes = row, 0
    end
  end
  parser:parse(true)
end

return M
