-- Numbers, times and paths as a person reads them.

local bisect = require("cursor_agent.render.bisect")

local M = {}

---What took less is not worth a number.
M.SHOWN_MS = 1000

---@param ms number
---@return string
function M.duration(ms)
  if ms < 9950 then
    return ("%.1fs"):format(ms / 1000)
  elseif ms < 60000 then
    return ("%ds"):format(math.floor(ms / 1000 + 0.5))
  end
  return M.clock(ms)
end

---Minutes and seconds, as a running clock shows them.
---@param ms number
---@return string
function M.clock(ms)
  local s = math.floor(math.max(ms, 0) / 1000)
  if s >= 3600 then
    return ("%d:%02d:%02d"):format(math.floor(s / 3600), math.floor(s / 60) % 60, s % 60)
  end
  return ("%d:%02d"):format(math.floor(s / 60), s % 60)
end

---@param n integer
---@return string
function M.count(n)
  if n < 1000 then
    return tostring(n)
  elseif n < 1e6 then
    return (("%.1fk"):format(n / 1000):gsub("%.0k$", "k"))
  end
  return (("%.1fM"):format(n / 1e6):gsub("%.0M$", "M"))
end

---@param n integer
---@return string
function M.bytes(n)
  if n < 1024 then
    return n .. " B"
  elseif n < 1024 * 1024 then
    return ("%.0f KB"):format(n / 1024)
  end
  return ("%.1f MB"):format(n / 1024 / 1024)
end

---@param n integer
---@param one string
---@param many? string
---@return string
function M.plural(n, one, many)
  return ("%d %s"):format(n, n == 1 and one or many or one .. "s")
end

---A path seen from the working directory, or from home.
---@param path string
---@param cwd string
---@return string
function M.path(path, cwd)
  if cwd ~= "" and path:sub(1, #cwd + 1) == cwd .. "/" then
    return path:sub(#cwd + 2)
  end
  local home = vim.uv.os_homedir()
  if home and path:sub(1, #home + 1) == home .. "/" then
    return "~/" .. path:sub(#home + 2)
  end
  return path
end

---The text as Vim functions take it: a NUL byte would make it a Blob. Its replacement is as long and as wide.
---@param text string
---@return string
local function vim_text(text)
  return (text:gsub("%z", "\1"))
end

---A control character as Vim shows it.
---@param char string
---@return string
function M.caret(char)
  local byte = char:byte()
  return byte == 127 and "^?" or "^" .. string.char(byte + 64)
end

---A text as part of a winbar or a statusline: what it says, and nothing that has a meaning there.
---@param text string
---@return string
function M.bar_text(text)
  return (text:gsub("%%", "%%%%"):gsub("[\r\n]", " "):gsub("%c", M.caret))
end

---A line as Vim functions take it in lists: a line break in it means a NUL byte.
---@param line string
---@return string
function M.vim_line(line)
  return (line:gsub("%z", "\n"))
end

---Where a tab leads: to the next multiple of this.
local TAB_CELLS = 8

---How many cells of the screen a text takes, in a line that is not wrapped. `strdisplaywidth()` counts in what wrapping
---it in the current window would add.
---@param text string
---@return integer
function M.width(text)
  local cells = 0
  for part, tab in vim_text(text):gmatch("([^\t]*)(\t?)") do
    -- A control character is shown as two.
    local _, controls = part:gsub("%c", "")
    cells = cells + vim.fn.strwidth(part) + controls
    if tab ~= "" then
      cells = cells + TAB_CELLS - cells % TAB_CELLS
    end
  end
  return cells
end

---How many characters a text has.
---@param text string
---@return integer
function M.chars(text)
  return vim.fn.strchars(vim_text(text))
end

---The beginning of a text.
---@param text string
---@param chars integer
---@return string
function M.first_chars(text, chars)
  return text:sub(1, #vim.fn.strcharpart(vim_text(text), 0, chars))
end

---As much of the beginning of a text as fits in this many cells, but a character at least.
---@param text string
---@param cells integer
---@return string
function M.first_cells(text, cells)
  -- A character has at most four bytes, so this bounds the work on an endless line.
  text = text:sub(1, cells * 4)
  local chars = bisect.last(cells, function(number)
    return M.width(M.first_chars(text, number)) <= cells
  end)
  return M.first_chars(text, math.max(chars, 1))
end

---The first line of a text, cut to this many characters.
---@param text string
---@param max integer
---@return string
function M.first_line(text, max)
  local from = text:find("%S") or 1
  -- A character has at most four bytes, so this bounds the work on an endless line.
  local line = text:sub(from, from + max * 4 - 1):match("^[^\r\n]*") or ""
  local more = text:find("%S", from + #line) ~= nil
  if M.chars(line) > max then
    return M.first_chars(line, max - 1) .. "…"
  end
  return more and line .. " …" or line
end

return M
