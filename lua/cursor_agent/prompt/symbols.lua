-- Functions, types and the like in the code window's buffer, for `@symbol:`: from a language server, or tree-sitter.

local M = {}

---@class (exact) cursor_agent.Symbol
---@field name string
---@field kind string
---@field path string
---@field first integer
---@field last integer

---How long a language server may take before the answer is given without it.
local LSP_TIMEOUT_MS = 300

---@param buf integer
---@param path string
---@return cursor_agent.Symbol[]
local function from_lsp(buf, path)
  local method = "textDocument/documentSymbol"
  local clients = vim.lsp.get_clients({ bufnr = buf, method = method })
  if #clients == 0 then
    return {}
  end
  local params = { textDocument = { uri = vim.uri_from_bufnr(buf) } }
  local answers = vim.lsp.buf_request_sync(buf, method, params, LSP_TIMEOUT_MS) or {}
  local found = {} ---@type cursor_agent.Symbol[]
  local function add(list, prefix)
    for _, one in ipairs(list or {}) do
      local range = one.range or (one.location or {}).range
      if range then
        local name = prefix .. one.name:gsub("%s+", "")
        found[#found + 1] = {
          name = name,
          kind = tostring(vim.lsp.protocol.SymbolKind[one.kind] or ""),
          path = path,
          first = range.start.line + 1,
          last = range["end"].line + 1,
        }
        add(one.children, name .. ".")
      end
    end
  end
  for _, answer in pairs(answers) do
    add(answer.result, "")
  end
  return found
end

---Node types that define something, in the grammars at large.
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

---The symbols of the code window's buffer.
---@return cursor_agent.Symbol[]
function M.list()
  local win = require("cursor_agent.window.code").current()
  if not win then
    return {}
  end
  local buf = vim.api.nvim_win_get_buf(win)
  local path = vim.api.nvim_buf_get_name(buf)
  if path == "" then
    return {}
  end
  local found = from_lsp(buf, path)
  return #found > 0 and found or from_tree(buf, path)
end

return M
