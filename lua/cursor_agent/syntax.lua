-- Finds the colours of a piece of text by tree-sitter, in steps short enough to stop between.
--
-- A highlighter on the whole chat would take an unclosed fence of one message for the beginning of everything after
-- it, would read tool output as markdown, and on Neovim 0.10 looks through the whole buffer on each redraw.

local M = {}

---Text beyond this is left plain: parsing it cannot be stopped half-way.
M.MAX_BYTES = 24 * 1024

---@alias cursor_agent.syntax.Pause fun(long?: boolean) called between steps, with `long` before one that takes longer than a frame; may take a while to return

---@class (exact) cursor_agent.syntax.Span
---@field from_row integer
---@field from_col integer
---@field to_row integer
---@field to_col integer
---@field hl string?
---@field priority integer
---@field conceal string?

---@class (exact) cursor_agent.syntax.Language
---@field query vim.treesitter.Query
---@field groups table<integer, string|false> by capture: the highlight group, false for none

---@type table<string, cursor_agent.syntax.Language|false>
local languages = {}

---@type table<string, string|false> by file extension or fence
local names = {}

---@type table<string, string> what people write on a fence
local ALIASES =
  { sh = "bash", shell = "bash", js = "javascript", ts = "typescript", py = "python", rs = "rust", yml = "yaml" }

local kept = {} ---@type any[]

---Compiles a query, for good. Neovim 0.10 forgets the result at the next garbage collection, unless somebody holds what
---its cache holds; compiling it again for each new prompt or block would be felt.
---@param lang string
---@param name string
---@return vim.treesitter.Query?
local function compile(lang, name)
  local get = vim.treesitter.query.get
  local ok, query = pcall(get, lang, name)
  if vim.fn.has("nvim-0.11") == 0 and type(get) == "function" then
    local at, upvalue, cache = 0, nil, nil ---@type integer, string?, any
    repeat
      at = at + 1
      upvalue, cache = debug.getupvalue(get, at)
    until not upvalue or upvalue == "cache"
    kept[#kept + 1] = type(cache) == "table" and cache[lang .. "%%" .. name] or nil
  end
  return ok and query or nil
end

---Loads a language, its queries one by one: compiling one takes milliseconds.
---@param lang string
---@param pause cursor_agent.syntax.Pause
---@return cursor_agent.syntax.Language?
function M.load(lang, pause)
  if languages[lang] ~= nil then
    return languages[lang] or nil
  end
  local ok, added = pcall(vim.treesitter.language.add, lang)
  if not ok or added == false then
    languages[lang] = false
    return nil
  end
  pause(true)
  local query = compile(lang, "highlights")
  pause(true)
  compile(lang, "injections")
  pause()
  local groups = {} ---@type table<integer, string|false>
  for id, name in ipairs(query and query.captures or {}) do
    local skip = name:sub(1, 1) == "_" or name == "spell" or name == "nospell"
    groups[id] = not skip and (name == "conceal" or name == "none") and "" or not skip and ("@%s.%s"):format(name, lang)
  end
  languages[lang] = query and { query = query, groups = groups } or false
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

---The colours of a text.
---@param lang string
---@param lines string[]
---@param conceal boolean
---@param pause cursor_agent.syntax.Pause
---@return cursor_agent.syntax.Span[]
function M.spans(lang, lines, conceal, pause)
  local text = table.concat(lines, "\n")
  if #text > M.MAX_BYTES or not M.load(lang, pause) then
    return {}
  end
  if lang == "markdown" and not M.load("markdown_inline", pause) then
    return {}
  end
  local ok, parser = pcall(vim.treesitter.get_string_parser, text, lang)
  if not ok then
    return {}
  end
  pause()
  parser:parse(true)
  pause()

  local spans = {} ---@type cursor_agent.syntax.Span[]
  local seen = {} ---@type table<string, cursor_agent.syntax.Span>

  ---@param ltree vim.treesitter.LanguageTree
  ---@param depth integer
  local function visit(ltree, depth)
    local language = M.load(ltree:lang(), pause)
    local inline = conceal and ltree:lang() == "markdown_inline"
    if not language then
      return
    end
    for _, tree in pairs(ltree:trees()) do
      for id, node, metadata in language.query:iter_captures(tree:root(), text, 0, -1) do
        local hl = language.groups[id]
        local own = metadata[id]
        local hide = inline and (metadata.conceal or (type(own) == "table" and own.conceal)) or nil
        if hl then
          local from_row, from_col, to_row, to_col = node:range()
          if type(own) == "table" and own.range then
            local range = own.range --[[@as integer[] ]]
            from_row, from_col = range[1], range[2]
            to_row, to_col = range[#range == 6 and 4 or 3], range[#range == 6 and 5 or 4]
          end
          -- Of several captures of one node the last one counts.
          local key = ("%d:%d:%d:%d:%d"):format(depth, from_row, from_col, to_row, to_col)
          local span = seen[key]
          if not span then
            span = {
              from_row = from_row,
              from_col = from_col,
              to_row = to_row,
              to_col = to_col,
              priority = math.floor(tonumber(metadata.priority) or 100) + depth,
            }
            seen[key] = span
            spans[#spans + 1] = span
          end
          span.hl = hl ~= "" and hl or span.hl
          span.conceal = hide or span.conceal
        end
        pause()
      end
    end
    for _, child in pairs(ltree:children()) do
      visit(child, depth + 1)
    end
  end
  visit(parser, 0)
  return spans
end

---@class (exact) cursor_agent.syntax.Place where a line of the text stands in the buffer
---@field row integer
---@field col integer
---@field apply boolean

---Marks spans in a buffer.
---@param buf integer
---@param ns integer
---@param spans cursor_agent.syntax.Span[]
---@param lines string[] the text
---@param place fun(row: integer): cursor_agent.syntax.Place?
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

---Colours a short text at once.
---@param buf integer
---@param ns integer
---@param lang string
---@param lines string[]
---@param place fun(row: integer): cursor_agent.syntax.Place?
---@param conceal boolean
function M.paint(buf, ns, lang, lines, place, conceal)
  M.mark(buf, ns, M.spans(lang, lines, conceal, function() end), lines, place)
end

return M
