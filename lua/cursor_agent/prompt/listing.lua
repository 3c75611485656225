-- The files of a workspace, which the library lists and matches off the main thread; what begins with a word comes first.

local bridge = require("cursor_agent.bridge")

local M = {}

---The files of a directory, as far as they are known; they are listed in the background.
---@param cwd string
---@return string[]
function M.files(cwd)
  return bridge.files(cwd) or {}
end

---What begins with a word first, in either case; else in the order it has. Neovim's own order prefers the case as typed, so
---that `re` would find greet.sh before README.md.
---@generic T
---@param list T[]
---@param word string
---@param text_of fun(item: T): string a path or a name
---@return T[]
function M.beginnings_first(list, word, text_of)
  local first, rest = {}, {}
  word = word:lower()
  for _, item in ipairs(list) do
    local text = text_of(item):lower()
    local begins = vim.startswith(text, word) or vim.startswith(text:match("[^/]*$") or "", word)
    table.insert(begins and first or rest, item)
  end
  return vim.list_extend(first, rest)
end

---The files that fit a word, best first.
---@param cwd string
---@param word string
---@param max integer
---@return string[]
function M.search(cwd, word, max)
  return bridge.find_files(cwd, word, max) or {}
end

return M
