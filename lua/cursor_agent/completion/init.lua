-- Completion in the prompt: `/` for the agent's commands, `@` for what can be attached.

local chats = require("cursor_agent.chat.registry")
local config = require("cursor_agent.config")
local context = require("cursor_agent.prompt.context")
local format = require("cursor_agent.render.format")
local listing = require("cursor_agent.prompt.listing")

local M = {}

---@class (exact) cursor_agent.complete.Item
---@field word string what is inserted
---@field label string what is listed
---@field kind "command"|"file"|"buffer"|"symbol"|"context"
---@field detail string
---@field doc? string

---Offered at most: more is not looked through by eye.
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
  -- Within braces a path may have spaces, and everywhere an `@` of its own: `@src/@types`.
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
  return items
end

---A path as a mention. Braces hold together what would be taken for the end of it.
---@param path string
---@return string
local function mention(path)
  local loose = path:find("[%s@{]") or path:find("[.,;:!?)%]'\"]$")
  return loose and ("@{%s}"):format(path) or "@" .. path
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
    selection = "what was last selected in the code window",
    diagnostics = "errors and warnings in the editor",
    diff = "git diff of what is not committed",
    buffer = "the file in the code window",
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
        word = mention(short),
        label = "@" .. short,
        kind = "buffer",
        detail = vim.bo[buf].modified and "buffer, unsaved" or "buffer",
      })
    end
  end
  for _, path in ipairs(listing.search(chat.cwd, word, MAX_ITEMS)) do
    add({ word = mention(path), label = "@" .. path, kind = "file", detail = "" })
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

---What fits left of the cursor, best first.
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

---LSP's CompletionItemKind of what is offered: none that completion plugins add brackets to or expand.
local LSP_KINDS = { command = 14, file = 17, buffer = 17, symbol = 18, context = 18 }

---What begins something to complete.
M.TRIGGERS = { "/", "@" }

---The same as items of the language server protocol, as completion plugins take them.
---@param before string the line up to the cursor
---@param line integer the cursor's, from 1
---@return lsp.CompletionItem[]
function M.lsp_items(before, line)
  local chat = chats.current()
  if not chat then
    return {}
  end
  local found, start = M.items(chat, before, line == 1)
  local items = {} ---@type lsp.CompletionItem[]
  for i, item in ipairs(found) do
    items[i] = {
      label = item.label,
      filterText = item.word,
      kind = LSP_KINDS[item.kind],
      detail = item.detail,
      documentation = item.doc,
      -- Best first, as they came.
      sortText = ("%04d"):format(i),
      textEdit = {
        newText = item.word,
        range = {
          start = { line = line - 1, character = vim.fn.strutf16len(before:sub(1, start)) },
          ["end"] = { line = line - 1, character = vim.fn.strutf16len(before) },
        },
      },
    }
  end
  return items
end

local LETTERS = { command = "c", file = "f", buffer = "b", symbol = "s", context = "@" }

---'completefunc' of the prompt.
---@param findstart integer
---@param base string
---@return integer|table
function M.completefunc(findstart, base)
  local chat = chats.current()
  local row, col = unpack(vim.api.nvim_win_get_cursor(0))
  local before = vim.api.nvim_get_current_line():sub(1, col)
  if findstart == 1 then
    local kind, start = M.word(before, row == 1)
    return kind and start or -3
  end
  if not chat then
    return {}
  end
  local words = {}
  for _, item in ipairs((M.items(chat, before .. base, row == 1))) do
    words[#words + 1] = {
      word = item.word,
      abbr = item.label,
      menu = item.detail,
      kind = LETTERS[item.kind],
      info = item.doc,
      icase = 1,
      dup = 0,
    }
  end
  return { words = words, refresh = "always" }
end

---Whether a completion plugin looks after the buffer: then nothing is offered unasked.
---@return boolean
local function has_plugin()
  return package.loaded["blink.cmp"] ~= nil or package.loaded["cmp"] ~= nil or package.loaded["mini.completion"] ~= nil
end

---Offers completion as soon as `/` or `@` is typed.
---@param buf integer
function M.attach(buf)
  local taken ---@type string? the text before the cursor when an item was taken: there is nothing more to offer
  vim.api.nvim_create_autocmd("CompleteDone", {
    buffer = buf,
    desc = "cursor-agent: note what was completed",
    callback = function()
      local word = vim.v.completed_item.word
      local before = vim.api.nvim_get_current_line():sub(1, vim.api.nvim_win_get_cursor(0)[2])
      taken = word and word ~= "" and vim.endswith(before, word) and before or nil
    end,
  })
  vim.api.nvim_create_autocmd("TextChangedI", {
    buffer = buf,
    desc = "cursor-agent: offer completion while typing",
    callback = function()
      if not config.get().prompt.autocomplete or has_plugin() or vim.fn.pumvisible() == 1 then
        return
      end
      local row, col = unpack(vim.api.nvim_win_get_cursor(0))
      local before = vim.api.nvim_get_current_line():sub(1, col)
      local chat = chats.current()
      if before ~= taken and chat and #M.items(chat, before, row == 1) > 0 then
        -- Nothing is chosen until the user does; 'completeopt' is local to the buffer from 0.11 on, so it is set and
        -- put back around the keys that ask for the menu.
        local old = vim.o.completeopt
        vim.o.completeopt = "menuone,noselect,noinsert"
        vim.api.nvim_feedkeys(vim.keycode("<C-x><C-u>"), "n", false)
        vim.schedule(function()
          vim.o.completeopt = old
        end)
      end
    end,
  })
  vim.api.nvim_create_autocmd("InsertEnter", {
    buffer = buf,
    desc = "cursor-agent: list the files before they are asked for",
    callback = function()
      local chat = chats.of_buffer(buf)
      if chat then
        listing.search(chat.cwd, "", 0)
      end
    end,
  })
end

return M
