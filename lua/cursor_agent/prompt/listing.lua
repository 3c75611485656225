-- The files of a workspace, listed and matched by the library off the main thread; prefix matches come first.

local bridge = require("cursor_agent.bridge")

local M = {}

---The files of a directory known so far; listing continues in the background.
---@param cwd string
---@return string[]
function M.files(cwd)
  return bridge.files(cwd) or {}
end

---Sorts prefix matches first, ignoring case; otherwise keeps the order. Neovim's own order prefers the typed case, so
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

---The files that match a word, best first.
---@param cwd string
---@param word string
---@param max integer
---@return string[]
function M.search(cwd, word, max)
  return bridge.find_files(cwd, word, max) or {}
end

return M
