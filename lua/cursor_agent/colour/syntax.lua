-- Finds the colours of a piece of text by tree-sitter, in steps short enough to stop between.
--
-- A highlighter on the whole chat would take an unclosed fence of one message for the beginning of everything after
-- it, would read tool output as markdown, and on Neovim 0.10 looks through the whole buffer on each redraw.

local guard = require("cursor_agent.colour.guard")
local markdown = require("cursor_agent.colour.markdown")
local queries = require("cursor_agent.colour.queries")

local M = {}

---Text beyond this is left plain: parsing it cannot be stopped half-way. Markdown takes longer than code.
M.MAX_BYTES = 24 * 1024
local MAX_MARKDOWN_BYTES = 12 * 1024

---@alias cursor_agent.syntax.Pause fun(long?: boolean) called between steps, with `long` before one that takes longer than a frame; may take a while to return

---@class (exact) cursor_agent.syntax.Span
---@field from_row integer
---@field from_col integer
---@field to_row integer
---@field to_col integer
---@field hl string?
---@field priority integer?
---@field conceal string?

---@class (exact) cursor_agent.syntax.Rules a piece of a language's query
---@field query vim.treesitter.Query
---@field groups table<integer, string|false> by capture: the highlight group, false for none

---@type table<string, cursor_agent.syntax.Rules[]|false>
local languages = {}

---@type table<string, string|false> by file extension or fence
local names = {}

---@type table<string, string> what people write on a fence
local ALIASES =
  { sh = "bash", shell = "bash", js = "javascript", ts = "typescript", py = "python", rs = "rust", yml = "yaml" }

---@param lang string
---@param query vim.treesitter.Query
---@return cursor_agent.syntax.Rules
local function rules_of(lang, query)
  local groups = {} ---@type table<integer, string|false>
  for id, name in ipairs(query.captures) do
    local skip = name:sub(1, 1) == "_" or name == "spell" or name == "nospell"
    groups[id] = not skip and (name == "conceal" or name == "none") and "" or not skip and ("@%s.%s"):format(name, lang)
  end
  return { query = query, groups = groups }
end

---Loads a language.
---@param lang string
---@param pause cursor_agent.syntax.Pause
---@return cursor_agent.syntax.Rules[]?
function M.load(lang, pause)
  if languages[lang] ~= nil then
    return languages[lang] or nil
  end
  local ok, added = pcall(vim.treesitter.language.add, lang)
  if not ok or added == false then
    languages[lang] = false
    return nil
  end
  local list = {} ---@type cursor_agent.syntax.Rules[]
  for _, query in ipairs(queries.pieces(lang, "highlights", pause)) do
    list[#list + 1] = rules_of(lang, query)
  end
  -- The parser asks for it.
  pause(true)
  queries.whole(lang, "injections")
  pause()
  languages[lang] = #list > 0 and list or false
  return languages[lang] or nil
end

---@param lang string
---@return boolean
function M.available(lang)
  return M.load(lang, function() end) ~= nil
end

---The language of a file, by its name.
---@param path string
---@return string?
function M.language_of(path)
  local key = vim.fs.basename(path):match("%.[^.]*$") or vim.fs.basename(path)
  if names[key] == nil then
    local filetype = vim.filetype.match({ filename = path })
    names[key] = filetype and vim.treesitter.language.get_lang(filetype) or filetype or false
  end
  return names[key] or nil
end

---The language a fence names.
---@param info string
---@return string?
function M.language_of_fence(info)
  if info == "" then
    return nil
  end
  info = info:lower()
  return ALIASES[info] or vim.treesitter.language.get_lang(info) or info
end

---Spans by where they begin, the longer ones first: so Neovim draws the shorter ones over them.
---@class (exact) cursor_agent.syntax.Found
---@field starts integer[]
---@field lists table<integer, cursor_agent.syntax.Span[]>

---The span of a range, which may have been found before.
---@param found cursor_agent.syntax.Found
---@param depth integer
---@param from_row integer
---@param from_col integer
---@param to_row integer
---@param to_col integer
---@return cursor_agent.syntax.Span
local function span_of(found, depth, from_row, from_col, to_row, to_col)
  -- No text is so large that they would not fit into one number.
  local start = (depth * M.MAX_BYTES + from_row) * M.MAX_BYTES + from_col
  local list = found.lists[start]
  if not list then
    list = {}
    found.lists[start] = list
    found.starts[#found.starts + 1] = start
  end
  local at = 1
  while list[at] and (list[at].to_row > to_row or (list[at].to_row == to_row and list[at].to_col >= to_col)) do
    if list[at].to_row == to_row and list[at].to_col == to_col then
      return list[at]
    end
    at = at + 1
  end
  local span = { from_row = from_row, from_col = from_col, to_row = to_row, to_col = to_col }
  table.insert(list, at, span)
  return span
end

---@param node TSNode
---@param metadata table? of the capture
---@return integer from_row
---@return integer from_col
---@return integer to_row
---@return integer to_col
local function range_of(node, metadata)
  local range = metadata and metadata.range --[=[@as integer[]?]=]
  if not range then
    return node:range()
  elseif #range == 6 then
    return range[1], range[2], range[4], range[5]
  end
  return range[1], range[2], range[3], range[4]
end

---Whether a text is short enough to be parsed.
---@param lang string
---@param lines string[]
---@return boolean
function M.fits(lang, lines)
  local left = lang == "markdown" and MAX_MARKDOWN_BYTES or M.MAX_BYTES
  for _, line in ipairs(lines) do
    left = left - #line - 1
    if left < 0 then
      return false
    end
  end
  return true
end

---The colours of a text; none for one that is too long or that no parser may see.
---@param lang string
---@param lines string[]
---@param conceal boolean
---@param pause cursor_agent.syntax.Pause
---@return cursor_agent.syntax.Span[]
function M.spans(lang, lines, conceal, pause)
  if not M.fits(lang, lines) or not guard.safe(lang, lines) or not M.load(lang, pause) then
    return {}
  end
  local is_markdown = lang == "markdown"
  local text = table.concat(is_markdown and markdown.thin_out(lines) or lines, "\n")
  if is_markdown and not M.load("markdown_inline", pause) then
    return {}
  end
  local ok, parser = pcall(vim.treesitter.get_string_parser, text, lang)
  if not ok then
    return {}
  end
  pause()
  if is_markdown then
    markdown.parse(parser, lines, pause)
  else
    parser:parse(true)
  end
  pause()

  local found = { starts = {}, lists = {} } ---@type cursor_agent.syntax.Found

  ---@param ltree vim.treesitter.LanguageTree
  ---@param depth integer
  local function visit(ltree, depth)
    local hides = conceal and ltree:lang() == "markdown_inline"
    for _, tree in pairs(ltree:trees()) do
      for _, rules in ipairs(M.load(ltree:lang(), pause) or {}) do
        for id, node, metadata in rules.query:iter_captures(tree:root(), text, 0, -1) do
          local hl = rules.groups[id]
          local own = metadata[id] --[[@as table?]]
          if hl then
            local span = span_of(found, depth, range_of(node, own))
            local priority = math.floor(tonumber(metadata.priority or (own and own.priority)) or 100) + depth
            -- Of several captures of one node the last one counts, among those that matter most.
            if not span.priority or priority >= span.priority then
              span.priority = priority
              span.hl = hl ~= "" and hl or span.hl
            end
            span.conceal = hides and (metadata.conceal or (own and own.conceal)) or span.conceal
          end
          pause()
        end
      end
    end
    for _, child in pairs(ltree:children()) do
      visit(child, depth + 1)
    end
  end
  visit(parser, 0)

  local spans = {} ---@type cursor_agent.syntax.Span[]
  for _, start in ipairs(found.starts) do
    vim.list_extend(spans, found.lists[start])
  end
  return spans
end

---This many marks are made at once.
local MARKS = 300

---@class (exact) cursor_agent.syntax.Place where a line of the text stands in the buffer
---@field row integer
---@field col integer
---@field apply boolean

---@alias cursor_agent.syntax.Rows fun(row: integer): cursor_agent.syntax.Place? where each line of the text stands

---Marks spans in a buffer.
---@param buf integer
---@param ns integer
---@param spans cursor_agent.syntax.Span[]
---@param lines string[] the text
---@param place cursor_agent.syntax.Rows
function M.mark(buf, ns, spans, lines, place)
  for _, span in ipairs(spans) do
    for row = span.from_row, span.to_row do
      local at = place(row)
      local first = row == span.from_row and span.from_col or 0
      local last = row == span.to_row and span.to_col or #(lines[row + 1] or "")
      if at and at.apply and last > first then
        vim.api.nvim_buf_set_extmark(buf, ns, at.row, at.col + first, {
          end_row = at.row,
          end_col = at.col + last,
          hl_group = span.hl,
          priority = span.priority,
          conceal = span.conceal,
          strict = false,
        })
      end
    end
  end
end

---Marks spans with a pause now and then.
---@param buf integer
---@param ns integer
---@param spans cursor_agent.syntax.Span[]
---@param lines string[] the text
---@param pause cursor_agent.syntax.Pause
---@param places fun(): cursor_agent.syntax.Rows? where the lines are now; nil when they are gone
function M.mark_in_steps(buf, ns, spans, lines, pause, places)
  for first = 1, math.max(#spans, 1), MARKS do
    if first > 1 then
      pause()
    end
    local place = places()
    if not place then
      return
    end
    M.mark(buf, ns, vim.list_slice(spans, first, first + MARKS - 1), lines, place)
  end
end

return M
