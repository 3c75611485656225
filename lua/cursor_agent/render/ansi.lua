-- Reads the escape sequences of terminal output: colours become highlights, the rest is taken out.

local M = {}

---@class (exact) cursor_agent.render.Style
---@field fg string? a colour number 0-255 as text, or #rrggbb
---@field bg string?
---@field bold boolean?
---@field italic boolean?
---@field underline boolean?
---@field reverse boolean?
---@field strikethrough boolean?

---@class (exact) cursor_agent.render.Span
---@field from integer first byte, from 0
---@field to integer byte after the last
---@field hl string

---The letters of a style in a group's name.
local FLAGS = { bold = "B", italic = "I", underline = "U", reverse = "R", strikethrough = "S" }

---The name of the highlight group for a style; `highlights.ensure` makes the group from the name alone.
---@param style cursor_agent.render.Style
---@return string?
function M.group(style)
  if next(style) == nil then
    return nil
  end
  local flags = ""
  for _, name in ipairs({ "bold", "italic", "underline", "reverse", "strikethrough" }) do
    if style[name] then
      flags = flags .. FLAGS[name]
    end
  end
  if not style.fg and not style.bg and flags == "" then
    return nil
  end
  local function colour(value)
    return value and value:gsub("#", "x") or "n"
  end
  return ("CursorAgentAnsi_%s_%s_%s"):format(colour(style.fg), colour(style.bg), flags)
end

---The style of a group, by its name.
---@param group string
---@return cursor_agent.render.Style?
function M.style(group)
  local fg, bg, flags = group:match("^CursorAgentAnsi_(%w+)_(%w+)_(%u*)$")
  if not fg or not bg or not flags then
    return nil
  end
  local style = {} ---@type cursor_agent.render.Style
  for name, letter in pairs(FLAGS) do
    if flags:find(letter, 1, true) then
      style[name] = true
    end
  end
  local function colour(value)
    return value ~= "n" and value:gsub("^x", "#") or nil
  end
  style.fg, style.bg = colour(fg), colour(bg)
  return style
end

---Colours 38 and 48: `5;n` or `2;r;g;b`.
---@param codes integer[]
---@param i integer where the kind stands
---@return string? colour
---@return integer next
local function extended(codes, i)
  if codes[i] == 5 then
    return codes[i + 1] and tostring(codes[i + 1] % 256), i + 2
  elseif codes[i] == 2 then
    local r, g, b = codes[i + 1], codes[i + 2], codes[i + 3]
    if r and g and b then
      return ("#%02x%02x%02x"):format(r % 256, g % 256, b % 256), i + 4
    end
  end
  return nil, #codes + 1
end

---Reads a parameter and what belongs to it, which colons join: `31`, `38:5:208`, `38:2::1:2:3`, `4:3`.
---@param codes integer[] to add to
---@param group string
local function add_codes(codes, group)
  local numbers = vim.split(group, ":", { plain = true })
  local first = tonumber(numbers[1]) or 0
  if first == 38 or first == 48 then
    if numbers[2] == "2" and #numbers > 5 then
      -- The number of a colour space, which no program uses.
      table.remove(numbers, 3)
    end
  else
    -- Kinds of underlining: none, or one we do not tell from the others.
    numbers = { first == 4 and numbers[2] == "0" and "24" or numbers[1] }
  end
  for _, number in ipairs(numbers) do
    codes[#codes + 1] = tonumber(number) or 0
  end
end

---@param style cursor_agent.render.Style
---@param parameters string
---@return cursor_agent.render.Style
local function select_rendition(style, parameters)
  local codes = {} ---@type integer[]
  for group in (parameters .. ";"):gmatch("([%d:]*);") do
    add_codes(codes, group)
  end
  local s = {
    fg = style.fg,
    bg = style.bg,
    bold = style.bold,
    italic = style.italic,
    underline = style.underline,
    reverse = style.reverse,
    strikethrough = style.strikethrough,
  } ---@type cursor_agent.render.Style
  local i = 1
  while i <= #codes do
    local c = codes[i]
    i = i + 1
    if c == 0 then
      s = {}
    elseif c == 1 then
      s.bold = true
    elseif c == 3 then
      s.italic = true
    elseif c == 4 then
      s.underline = true
    elseif c == 7 then
      s.reverse = true
    elseif c == 9 then
      s.strikethrough = true
    elseif c == 22 then
      s.bold = nil
    elseif c == 23 then
      s.italic = nil
    elseif c == 24 then
      s.underline = nil
    elseif c == 27 then
      s.reverse = nil
    elseif c == 29 then
      s.strikethrough = nil
    elseif c >= 30 and c <= 37 then
      s.fg = tostring(c - 30)
    elseif c == 38 then
      s.fg, i = extended(codes, i)
    elseif c == 39 then
      s.fg = nil
    elseif c >= 40 and c <= 47 then
      s.bg = tostring(c - 40)
    elseif c == 48 then
      s.bg, i = extended(codes, i)
    elseif c == 49 then
      s.bg = nil
    elseif c >= 90 and c <= 97 then
      s.fg = tostring(c - 90 + 8)
    elseif c >= 100 and c <= 107 then
      s.bg = tostring(c - 100 + 8)
    end
  end
  return s
end

---Reads one line. The style goes on from line to line.
---@param line string
---@param style? cursor_agent.render.Style
---@return string plain
---@return cursor_agent.render.Span[] spans
---@return cursor_agent.render.Style style
function M.line(line, style)
  style = style or {}
  -- A progress bar draws over itself: what follows the last carriage return is what stays.
  line = line:gsub("\r+$", ""):gsub("^.*\r", "")
  if not line:find("[\27\8]") then
    local hl = M.group(style)
    return line, hl and line ~= "" and { { from = 0, to = #line, hl = hl } } or {}, style
  end
  local out, width = {}, 0
  local spans = {} ---@type cursor_agent.render.Span[]
  local function put(text)
    if text == "" then
      return
    end
    local hl = M.group(style)
    if hl then
      local last = spans[#spans]
      if last and last.to == width and last.hl == hl then
        last.to = width + #text
      else
        spans[#spans + 1] = { from = width, to = width + #text, hl = hl }
      end
    end
    out[#out + 1] = text
    width = width + #text
  end
  local at = 1
  while at <= #line do
    local esc = line:find("[\27\8]", at)
    put(line:sub(at, (esc or #line + 1) - 1))
    if not esc then
      break
    end
    local rest = line:sub(esc, esc + 4096)
    local parameters, final, csi_end = rest:match("^\27%[([0-9:;<=>?]*)[ -/]*([@-~])()")
    if parameters and csi_end then
      if final == "m" and not parameters:find("[<=>?]") then
        style = select_rendition(style, parameters)
      end
      at = esc + csi_end --[[@as integer]] - 1
    else
      -- OSC (titles, hyperlinks) ends with BEL or ST; other escapes are two or three characters.
      local past = rest:match("^\27[%]PX^_].-\7()")
        or rest:match("^\27[%]PX^_].-\27\\()")
        or rest:match("^\27[ -/]+[0-~]()")
        or rest:match("^\27[0-~]()")
      at = esc
        + (
          past --[[@as integer?]]
          or 2
        )
        - 1
    end
  end
  return table.concat(out), spans, style
end

return M
