-- What can be completed in the prompt: `/` for the agent's commands, `@` for what can be attached.

local chats = require("cursor_agent.chat.registry")
local context = require("cursor_agent.prompt.context")
local format = require("cursor_agent.render.format")
local listing = require("cursor_agent.prompt.listing")
local reusable = require("cursor_agent.prompt.reusable")

local M = {}

---@class (exact) cursor_agent.complete.Item
---@field word string what is inserted
---@field label string what is listed
---@field kind "command"|"file"|"buffer"|"symbol"|"context"
---@field detail string
---@field doc? string

---Most items to offer.
local MAX_ITEMS = 200

---What is being completed left of the cursor.
---@param before string the line up to the cursor
---@param first_line boolean it is the first line of the prompt
---@return "command"|"mention"|nil kind
---@return integer start byte where the word begins, from 0
---@return string word without its `/` or `@`
function M.word(before, first_line)
  local command = first_line and before:match("^/([^%s]*)$")
  if command then
    return "command", 0, command
  end
  -- A path may have spaces within braces, and an `@` anywhere: `@src/@types`.
  local word = before:match("@{[^}]*$") or before:match("%S*$") or ""
  local start = #before - #word
  if word:sub(1, 1) == "@" and (start == 0 or before:sub(start, start):match("%s")) then
    return "mention", start, (word:gsub("^@{?", ""))
  end
  return nil, -1, ""
end

---@param chat cursor_agent.Chat
---@return cursor_agent.complete.Item[]
local function commands(chat)
  local items = {} ---@type cursor_agent.complete.Item[]
  for _, command in ipairs(chat.status.commands or {}) do
    items[#items + 1] = {
      word = "/" .. command.name,
      label = "/" .. command.name .. (command.hint and " " .. command.hint or ""),
      kind = "command",
      detail = format.first_line(command.description or "", 80),
      doc = command.description and require("cursor_agent.colour.guard").harmless(command.description),
    }
  end
  local own = {} ---@type table<string, cursor_agent.complete.Item>
  for _, item in ipairs(items) do
    own[item.word] = item
  end
  for _, one in ipairs(reusable.list(chat.cwd, chat.status.commands)) do
    local mark = reusable.MARKS[one.from]
    local same = own["/" .. one.bare]
    if same then
      -- Two commands of the same name: show where each comes from.
      same.detail = ("%s · %s"):format(chat.agent, same.detail)
      own["/" .. one.bare] = nil
    end
    items[#items + 1] = {
      word = "/" .. one.name,
      label = "/" .. one.name,
      kind = "command",
      detail = one.about ~= "" and ("%s · %s"):format(mark, one.about) or mark,
    }
  end
  return items
end

---@param chat cursor_agent.Chat
---@param word string
---@return cursor_agent.complete.Item[]
local function mentions(chat, word)
  local items, seen = {}, {} ---@type cursor_agent.complete.Item[], table<string, boolean>
  local function add(item)
    if not seen[item.word] then
      seen[item.word] = true
      items[#items + 1] = item
    end
  end
  local docs = {
    selection = "the last selection in the code window",
    diagnostics = "errors and warnings in the editor",
    diff = "uncommitted changes (git diff)",
    buffer = "the file in the code window",
    quickfix = "the quickfix list",
    terminal = "the last output of a terminal",
    clipboard = "the image on the clipboard",
  }
  for _, name in ipairs(context.names) do
    add({ word = "@" .. name, label = "@" .. name, kind = "context", detail = docs[name] or "" })
  end
  local root = chat.cwd .. "/"
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    local path = vim.api.nvim_buf_get_name(buf)
    if vim.bo[buf].buflisted and vim.bo[buf].buftype == "" and path ~= "" then
      local short = path:sub(1, #root) == root and path:sub(#root + 1) or path
      add({
        word = context.mention(short),
        label = "@" .. short,
        kind = "buffer",
        detail = vim.bo[buf].modified and "buffer, unsaved" or "buffer",
      })
    end
  end
  for _, path in ipairs(listing.search(chat.cwd, word, MAX_ITEMS)) do
    add({ word = context.mention(path), label = "@" .. path, kind = "file", detail = "" })
  end
  if word == "" or ("symbol:"):sub(1, #word) == word or word:find("^symbol:") then
    for _, symbol in ipairs(require("cursor_agent.prompt.symbols").list()) do
      add({
        word = "@symbol:" .. symbol.name,
        label = "@symbol:" .. symbol.name,
        kind = "symbol",
        detail = ("%s, line %d"):format(symbol.kind:lower(), symbol.first),
      })
    end
  end
  return items
end

---What matches left of the cursor, best first.
---@param chat cursor_agent.Chat
---@param before string
---@param first_line boolean
---@return cursor_agent.complete.Item[] items
---@return integer start
function M.items(chat, before, first_line)
  local kind, start, word = M.word(before, first_line)
  if not kind then
    return {}, -1
  end
  local items = kind == "command" and commands(chat) or mentions(chat, word)
  if word ~= "" then
    items = listing.beginnings_first(vim.fn.matchfuzzy(items, word, { key = "label" }), word, function(item)
      return (item.label:gsub("^[@/]", ""))
    end)
  end
  return vim.list_slice(items, 1, MAX_ITEMS), start
end

---The LSP CompletionItemKinds of our items: none that make completion plugins add brackets or expand snippets.
local LSP_KINDS = { command = 14, file = 17, buffer = 17, symbol = 18, context = 18 }

---Characters that trigger completion.
M.TRIGGERS = { "/", "@" }

---The same as LSP completion items, for completion plugins.
---@param before string the line up to the cursor
---@param line integer the cursor's, from 1
---@param encoding "utf-8"|"utf-16" the plugin's unit for character offsets
---@return lsp.CompletionItem[]
function M.lsp_items(before, line, encoding)
  local chat = chats.current()
  if not chat then
    return {}
  end
  local found, start = M.items(chat, before, line == 1)
  local function position(text)
    return { line = line - 1, character = encoding == "utf-8" and #text or vim.fn.strutf16len(text) }
  end
  local items = {} ---@type lsp.CompletionItem[]
  for i, item in ipairs(found) do
    items[i] = {
      label = item.label,
      filterText = item.word,
      kind = LSP_KINDS[item.kind],
      detail = item.detail,
      documentation = item.doc,
      -- Keeps our order, best first.
      sortText = ("%04d"):format(i),
      textEdit = {
        newText = item.word,
        range = { start = position(before:sub(1, start)), ["end"] = position(before) },
      },
    }
  end
  return items
end

return M
