-- Functions, types and the like in the code window's buffer, for `@symbol:`, from a language server or tree-sitter.

local M = {}

---@class (exact) cursor_agent.Symbol
---@field name string
---@field kind string
---@field path string
---@field first integer
---@field last integer

---How long to wait for a language server's answer.
local LSP_MS = 5000

local DOCUMENT = "textDocument/documentSymbol" ---@type "textDocument/documentSymbol"
local WORKSPACE = "workspace/symbol" ---@type "workspace/symbol"

---Asks a buffer's language servers, and calls back once with what they found. Does not block.
---@param buf integer
---@param method "textDocument/documentSymbol"|"workspace/symbol"
---@param params table
---@param done fun(symbols: cursor_agent.Symbol[], late: boolean)
local function ask(buf, method, params, done)
  local answered = false
  ---@param found cursor_agent.Symbol[]
  ---@param late boolean
  local function answer(found, late)
    if not answered then
      answered = true
      done(found, late)
    end
  end
  vim.defer_fn(function()
    answer({}, true)
  end, LSP_MS)
  local path = vim.api.nvim_buf_get_name(buf)
  vim.lsp.buf_request_all(buf, method, params, function(answers)
    local found = {} ---@type cursor_agent.Symbol[]
    local function add(list, prefix)
      for _, one in ipairs(type(list) == "table" and list or {}) do
        local location = one.location or {}
        local range = one.range or location.range
        local file = location.uri and location.uri:find("^file:") and vim.uri_to_fname(location.uri) or path
        if range and type(one.name) == "string" then
          local name = prefix .. one.name:gsub("%s+", "")
          found[#found + 1] = {
            name = name,
            kind = tostring(vim.lsp.protocol.SymbolKind[one.kind] or ""),
            path = file,
            first = range.start.line + 1,
            -- A range that ends before the first column ends on the line above.
            last = range["end"].line
              + (range["end"].character == 0 and range["end"].line > range.start.line and 0 or 1),
          }
          add(one.children, name .. ".")
        end
      end
    end
    for _, one in pairs(answers or {}) do
      add(one.result, "")
    end
    answer(found, false)
  end)
end

---@param buf integer
---@param method "textDocument/documentSymbol"|"workspace/symbol"
---@return boolean
local function serves(buf, method)
  return #vim.lsp.get_clients({ bufnr = buf, method = method }) > 0
end

---@class (exact) cursor_agent.symbols.Known
---@field tick integer the buffer's `changedtick` they belong to
---@field list cursor_agent.Symbol[]
---@field asked integer? the tick they were last requested for

---@type table<integer, cursor_agent.symbols.Known> what the language servers said of each buffer
local known = {}

---A buffer's symbols from language servers, requested again if it has changed since.
---@param buf integer
---@return cursor_agent.Symbol[]
local function from_lsp(buf)
  if not serves(buf, DOCUMENT) then
    known[buf] = nil
    return {}
  end
  local tick = vim.api.nvim_buf_get_changedtick(buf)
  local one = known[buf] or { tick = -1, list = {} }
  known[buf] = one
  if one.tick ~= tick and one.asked ~= tick then
    one.asked = tick
    ask(buf, DOCUMENT, { textDocument = { uri = vim.uri_from_bufnr(buf) } }, function(list, late)
      one.asked = nil
      if not late then
        one.tick, one.list = tick, list
      end
    end)
  end
  return one.list
end

---Parts of node type names that mean a definition, across grammars.
local DEFINES = { "function", "method", "class", "struct", "enum", "interface", "trait", "impl", "module", "type" }

---@param buf integer
---@param path string
---@return cursor_agent.Symbol[]
local function from_tree(buf, path)
  local lang = vim.treesitter.language.get_lang(vim.bo[buf].filetype) or vim.bo[buf].filetype
  if not require("cursor_agent.colour.guard").safe(lang, vim.api.nvim_buf_get_lines(buf, 0, -1, false)) then
    return {}
  end
  local ok, parser = pcall(vim.treesitter.get_parser, buf)
  if not ok or not parser then
    return {}
  end
  local found = {} ---@type cursor_agent.Symbol[]
  ---@param node TSNode
  ---@param depth integer
  local function visit(node, depth)
    for child in node:iter_children() do
      local kind = child:type()
      local name = child:field("name")[1] or child:field("declarator")[1]
      if name then
        for _, word in ipairs(DEFINES) do
          if kind:find(word, 1, true) then
            local first, _, last = child:range()
            found[#found + 1] = {
              name = vim.treesitter.get_node_text(name, buf):match("^[%w_.:]+") or "?",
              kind = word,
              path = path,
              first = first + 1,
              last = last + 1,
            }
            break
          end
        end
      end
      if depth < 4 and child:named() then
        visit(child, depth + 1)
      end
    end
  end
  local tree = (parser:parse() or {})[1]
  if tree then
    visit(tree:root(), 0)
  end
  return found
end

---The code window's buffer, if it has a file.
---@return integer? buf
---@return string path
local function code_buffer()
  local win = require("cursor_agent.window.code").current()
  local buf = win and vim.api.nvim_win_get_buf(win)
  local path = buf and vim.api.nvim_buf_get_name(buf) or ""
  return path ~= "" and buf or nil, path
end

---The symbols of the code window's buffer known so far: from tree-sitter while a language server is being asked.
---@return cursor_agent.Symbol[]
function M.list()
  local buf, path = code_buffer()
  if not buf then
    return {}
  end
  local found = from_lsp(buf)
  return #found > 0 and found or from_tree(buf, path)
end

---Whether finding a symbol takes time because a language server is asked.
---@return boolean
function M.asks()
  local buf = code_buffer()
  return buf ~= nil and (serves(buf, DOCUMENT) or serves(buf, WORKSPACE))
end

---@param list cursor_agent.Symbol[]
---@param name string
---@return cursor_agent.Symbol?
local function named(list, name)
  for _, one in ipairs(list) do
    if one.name == name then
      return one
    end
  end
end

---Finds a symbol by its name: in the code window's buffer, then in the workspace of its language servers.
---@param name string
---@param done fun(symbol: cursor_agent.Symbol?, why: string?)
function M.find(name, done)
  local buf, path = code_buffer()
  if not buf then
    return done(nil, ("no file in the code window to look for %s in"):format(name))
  end
  local slow = false
  local function in_workspace()
    local one = named(from_tree(buf, path), name)
    if one then
      return done(one)
    elseif not serves(buf, WORKSPACE) then
      local late = slow and "; its language server did not answer" or ""
      return done(nil, ("no symbol %s in %s%s"):format(name, vim.fs.basename(path), late))
    end
    ask(buf, WORKSPACE, { query = name }, function(list, late)
      local found = named(list, name)
      local why = (late or slow) and "the language server did not answer" or "no language server knows it"
      done(found, not found and ("no symbol %s: %s"):format(name, why) or nil)
    end)
  end
  if not serves(buf, DOCUMENT) then
    return in_workspace()
  end
  ask(buf, DOCUMENT, { textDocument = { uri = vim.uri_from_bufnr(buf) } }, function(list, late)
    slow = late
    local found = named(list, name)
    if found or not vim.api.nvim_buf_is_loaded(buf) then
      return done(found, not found and ("no symbol %s"):format(name) or nil)
    end
    in_workspace()
  end)
end

return M
