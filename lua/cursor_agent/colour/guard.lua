-- Decides which text may be given to a tree-sitter parser. A parser keeps its open nodes in 1024 bytes; markdown's
-- aborts Neovim when that overflows, and others may too. Text nested that deeply is not written by people: it is left
-- plain and not parsed.

local M = {}

---Most open blocks of markdown. Its parser has room for 254.
local MOST_BLOCKS = 100

---Most levels of indentation: parsers that track them use up to 8 bytes for each.
local MOST_LEVELS = 80

---Most open brackets, including interpolations.
local MOST_BRACKETS = 120

---Most open tags, without void ones.
local MOST_TAGS = 400

---Longest word that ends a heredoc, and total of those on one line.
local LONGEST_WORD = 120
local LONGEST_WORDS = 240

---Longest run of one mark in code: strings and comments of some languages count them in a byte.
local LONGEST_RUN = 200

---Tags without content.
local VOID = {}
for _, name in ipairs({
  "area",
  "base",
  "br",
  "col",
  "embed",
  "hr",
  "img",
  "input",
  "link",
  "meta",
  "param",
  "source",
  "track",
  "wbr",
}) do
  VOID[name] = true
end

---What can precede the text of a markdown line: quotations, list items, indentation.
local OPENING = "[%s>*+%-%d.)]+"

---Upper bound of the markdown blocks that a run of such characters can open or continue. Each takes one `>`, a list
---marker, or two columns. Lines without them open none, so this line alone is enough.
---@param run string
---@return number
local function blocks_in(run)
  local _, quotes = run:gsub(">", "")
  local _, tabs = run:gsub("\t", "")
  local _, spaces = run:gsub("[^%S\t]", "")
  local _, marks = (run .. " "):gsub("[*+%-.)]%f[%s]", "")
  return quotes + marks + 2 * tabs + spaces / 2
end

---Whether no run of marks in a line opens too many markdown blocks. It counts wherever it is: markdown is injected into
---comments.
---@param line string
---@return boolean
local function has_no_deep_run(line)
  if #line <= MOST_BLOCKS / 2 then
    return true
  end
  -- Most long lines are long because of their words.
  local at, last = line:find(OPENING)
  while at and last do
    if last - at >= MOST_BLOCKS / 2 and blocks_in(line:sub(at, last)) > MOST_BLOCKS then
      return false
    end
    at, last = line:find(OPENING, last + 1)
  end
  return true
end

---Whether a markdown parser may see a line.
---@param line string
---@return boolean
function M.safe_line(line)
  if #line <= MOST_BLOCKS / 2 then
    return true
  end
  local _, quotes = line:gsub(">", "")
  return quotes <= 2 * MOST_BLOCKS and has_no_deep_run(line)
end

---Whether a parser may see the lines of a file that may contain some markdown. Code on one line has many `>`.
---@param lines string[]
---@return boolean
function M.safe_code(lines)
  for _, line in ipairs(lines) do
    if not has_no_deep_run(line) then
      return false
    end
  end
  return true
end

---Whether a markdown parser may see lines.
---@param lines string[]
---@return boolean
function M.safe_lines(lines)
  for _, line in ipairs(lines) do
    if #line > MOST_BLOCKS / 2 and not M.safe_line(line) then
      return false
    end
  end
  return true
end

---A text for a plugin that renders messages as markdown: cuts lines no parser may see.
---@param text string
---@return string
function M.harmless(text)
  local lines = vim.split(text, "\n", { plain = true })
  if M.safe("markdown", lines) then
    return text
  end
  for i, line in ipairs(lines) do
    lines[i] = #line > 80 and vim.fn.strcharpart(line, 0, 40) .. "…" or line
  end
  -- Nesting line by line uses up the same space.
  return table.concat(vim.list_slice(lines, 1, MOST_LEVELS), "\n")
end

---@param lines string[]
---@return boolean
local function indented_too_deeply(lines)
  local levels = {} ---@type integer[]
  for _, line in ipairs(lines) do
    local column = (line:find("%S") or 0) - 1
    if column >= 0 then
      while #levels > 0 and levels[#levels] > column do
        levels[#levels] = nil
      end
      if column > (levels[#levels] or 0) then
        levels[#levels + 1] = column
        if #levels > MOST_LEVELS then
          return true
        end
      end
    end
  end
  return false
end

---@param lines string[]
---@return boolean
local function bracketed_too_deeply(lines)
  local depth = 0
  for _, line in ipairs(lines) do
    for char in line:gmatch("[%(%[{%)%]}]") do
      if char == "(" or char == "[" or char == "{" then
        depth = depth + 1
        if depth > MOST_BRACKETS then
          return true
        end
      elseif depth > 0 then
        depth = depth - 1
      end
    end
  end
  return false
end

---@param lines string[]
---@return boolean
local function tagged_too_deeply(lines)
  local depth = 0
  for _, line in ipairs(lines) do
    -- What follows a word is not a tag: `Vec<T>`.
    for slash, name in line:gmatch("%f[<%w]<(/?)([%a_][%w_.:-]*)") do
      if #name > LONGEST_WORD then
        return true
      elseif slash == "/" then
        depth = math.max(depth - 1, 0)
      elseif not VOID[name:lower()] then
        depth = depth + 1
      end
    end
    local _, closed = line:gsub("/>", "")
    depth = math.max(depth - closed, 0)
    if depth > MOST_TAGS then
      return true
    end
  end
  return false
end

---@param lines string[]
---@return boolean
local function words_too_long(lines)
  for _, line in ipairs(lines) do
    if line:find("<<", 1, true) then
      local all = 0
      for position in line:gmatch("<<+[-~=]?%s*()") do
        local from = position --[[@as integer]]
        local rest = line:sub(from, from + LONGEST_WORD + 2)
        local quote = rest:match("^[\"'`]")
        local word = quote and (rest:match("^.([^" .. quote .. "]*)") or "") or rest:match("^[^%s;|&<>()]*")
        all = all + #word
        if #word > LONGEST_WORD or all > LONGEST_WORDS then
          return true
        end
      end
    end
  end
  return false
end

---@param lines string[]
---@param is_markdown boolean
---@return boolean
local function runs_too_long(lines, is_markdown)
  for _, line in ipairs(lines) do
    if #line > LONGEST_RUN then
      local char, from = "", 0
      for at, mark in line:gmatch("()(%p)") do
        local here = at --[[@as integer]]
        if mark ~= char or line:byte(here - 1) ~= mark:byte() then
          char, from = mark, here
        elseif here - from >= LONGEST_RUN and not (is_markdown and mark:find("^[-=_*~#.]")) then
          return true
        end
      end
    end
  end
  return false
end

---The fenced lines of markdown, which other parsers see.
---@param lines string[]
---@return string[]
local function fenced(lines)
  local code = {} ---@type string[]
  local within = false
  for _, line in ipairs(lines) do
    if line:find("^[%s>*+%d.)-]*```") or line:find("^[%s>*+%d.)-]*~~~") then
      within = true
    end
    if within then
      code[#code + 1] = line
    end
  end
  return code
end

---Whether a parser may see a text and what it injects.
---@param lang string
---@param lines string[]
---@return boolean
function M.safe(lang, lines)
  local is_markdown = lang == "markdown"
  -- Brackets in prose open nothing. Where a fence ends is not checked: everything after the first one counts.
  local code = is_markdown and fenced(lines) or lines
  return M.safe_lines(lines)
    and not indented_too_deeply(lines)
    and not bracketed_too_deeply(code)
    and not tagged_too_deeply(lines)
    and not words_too_long(lines)
    and not runs_too_long(lines, is_markdown)
end

return M
