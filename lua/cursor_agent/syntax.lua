-- Colours pieces of text in a buffer by tree-sitter, each piece parsed by itself.
--
-- A highlighter on the whole chat would take an unclosed fence of one message for the beginning of everything after
-- it, would read tool output as markdown, and on Neovim 0.10 looks through the whole buffer on each redraw.

local M = {}

---Text beyond this is left plain: parsing it would be felt.
M.MAX_BYTES = 200 * 1024

---@type table<string, string|false>
local languages = {}

---The tree-sitter language of a file, if its parser and its highlights are there.
---@param path string
---@return string?
function M.language_of(path)
  local key = vim.fs.basename(path):match("%.[^.]*$") or vim.fs.basename(path)
  if languages[key] == nil then
    languages[key] = false
    local filetype = vim.filetype.match({ filename = path })
    local lang = filetype and vim.treesitter.language.get_lang(filetype)
    if lang and M.available(lang) then
      languages[key] = lang
    end
  end
  return languages[key] or nil
end

---@param lang string
---@return boolean
function M.available(lang)
  local added = pcall(vim.treesitter.language.add, lang)
  -- 0.10 raises for a parser that is missing when it is added, 0.12 when its query is asked for.
  local found, query = pcall(vim.treesitter.query.get, lang, "highlights")
  return added and found and query ~= nil
end

---@class (exact) cursor_agent.syntax.Place where a line of the text stands in the buffer
---@field row integer
---@field col integer
---@field apply boolean

---Parses a text and marks its highlights in a buffer.
---@param buf integer
---@param ns integer
---@param lang string
---@param lines string[]
---@param place fun(row: integer): cursor_agent.syntax.Place?
---@param conceal boolean
function M.paint(buf, ns, lang, lines, place, conceal)
  local text = table.concat(lines, "\n")
  if #text > M.MAX_BYTES then
    return
  end
  local ok, parser = pcall(vim.treesitter.get_string_parser, text, lang)
  if not ok then
    return
  end
  parser:parse(true)

  ---@param from_row integer
  ---@param from_col integer
  ---@param to_row integer
  ---@param to_col integer
  ---@param opts vim.api.keyset.set_extmark
  local function mark(from_row, from_col, to_row, to_col, opts)
    for row = from_row, to_row do
      local at = place(row)
      local first = row == from_row and from_col or 0
      local last = row == to_row and to_col or #(lines[row + 1] or "")
      if at and at.apply and last > first then
        opts.end_row, opts.end_col, opts.strict = at.row, at.col + last, false
        pcall(vim.api.nvim_buf_set_extmark, buf, ns, at.row, at.col + first, opts)
      end
    end
  end

  ---@param ltree vim.treesitter.LanguageTree
  ---@param depth integer
  local function visit(ltree, depth)
    local language = ltree:lang()
    local query = vim.treesitter.query.get(language, "highlights")
    if query then
      for _, tree in pairs(ltree:trees()) do
        for id, node, metadata in query:iter_captures(tree:root(), text, 0, -1) do
          local name = query.captures[id]
          local own = metadata[id]
          local hide = conceal
              and language == "markdown_inline"
              and (metadata.conceal or (type(own) == "table" and own.conceal))
            or nil
          if name:sub(1, 1) ~= "_" and name ~= "spell" and name ~= "nospell" then
            local range = vim.treesitter.get_range(node, text, type(own) == "table" and own or nil)
            local opts = {
              priority = math.floor(tonumber(metadata.priority) or 100) + depth,
              conceal = hide,
            } ---@type vim.api.keyset.set_extmark
            if name ~= "conceal" and name ~= "none" then
              opts.hl_group = ("@%s.%s"):format(name, language)
            end
            mark(range[1], range[2], range[4], range[5], opts)
          end
        end
      end
    end
    for _, child in pairs(ltree:children()) do
      visit(child, depth + 1)
    end
  end
  visit(parser, 0)
end

return M
