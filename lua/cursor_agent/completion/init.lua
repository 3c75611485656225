-- Completion in the prompt: 'completefunc', and our own menu while typing if no plugin provides one.

local chats = require("cursor_agent.chat.registry")
local companions = require("cursor_agent.completion.companions")
local config = require("cursor_agent.config")
local listing = require("cursor_agent.prompt.listing")
local offered = require("cursor_agent.completion.items")

local M = {}

local LETTERS = { command = "c", file = "f", buffer = "b", symbol = "s", context = "@" }

local FUNCTION = "v:lua.require'cursor_agent.completion'.completefunc"

---Sets 'completefunc' to ours. mini.completion sets its own in each buffer that is entered, even if it is disabled
---there.
---@param buf integer
function M.claim(buf)
  if vim.bo[buf].completefunc ~= FUNCTION then
    vim.bo[buf].completefunc = FUNCTION
  end
end

---'completefunc' of the prompt.
---@param findstart integer
---@param base string
---@return integer|table
function M.completefunc(findstart, base)
  local chat = chats.current()
  local row, col = unpack(vim.api.nvim_win_get_cursor(0))
  local before = vim.api.nvim_get_current_line():sub(1, col)
  if findstart == 1 then
    local kind, start = offered.word(before, row == 1)
    return kind and start or -3
  end
  if not chat then
    return {}
  end
  local words = {}
  for _, item in ipairs((offered.items(chat, before .. base, row == 1))) do
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

---Files are searched in the background; retry this often for results that come too late for a key.
local RETRY_MS, RETRIES = 25, 20

---Buffers whose menu was dismissed: nothing is offered until the next `/` or `@`.
---@type table<integer, boolean>
local dismissed = {}

---The user's 'shortmess' and our value while the menu is open; nil if it is unchanged.
local shortmess ---@type { [1]: string, [2]: string }?

---Keeps Neovim from writing "-- User defined completion" below the menu.
local function hush()
  local own = vim.o.shortmess
  if not shortmess and not own:find("c", 1, true) then
    shortmess = { own, own .. "c" }
    vim.o.shortmess = shortmess[2]
  end
end

local function unhush()
  if shortmess and vim.o.shortmess == shortmess[2] then
    vim.o.shortmess = shortmess[1]
  end
  shortmess = nil
end

local TAB = vim.keycode("<Tab>")

---Restores `<Tab>`.
---@param buf integer
local function unmap_tab(buf)
  pcall(vim.keymap.del, "i", "<Tab>", { buffer = buf })
end

---Makes `<Tab>` accept the selected item while the menu is open. Otherwise, or with nothing selected, it is the user's.
---@param buf integer
local function map_tab(buf)
  vim.keymap.set("i", "<Tab>", function()
    if M.is_selected() then
      vim.api.nvim_feedkeys(vim.keycode("<C-y>"), "n", false)
      return
    end
    unmap_tab(buf)
    vim.api.nvim_feedkeys(TAB, "mi", false)
    vim.schedule(function()
      if vim.fn.pumvisible() == 1 and vim.api.nvim_get_current_buf() == buf then
        map_tab(buf)
      end
    end)
  end, { buffer = buf, nowait = true, desc = "cursor-agent: accept the selected item" })
end

---Whether our own menu is used in the current prompt.
---@return boolean
local function offers()
  return config.get().prompt.autocomplete and not companions.serve()
end

---Closes the menu, because the prompt was sent or is being left.
function M.close()
  if vim.fn.pumvisible() == 1 then
    -- The only call that ends completion without a key.
    pcall(vim.fn.complete, vim.fn.col("."), {})
  end
  unhush()
end

---Whether the menu is open with an item selected: `<CR>` and `<Tab>` accept it.
---@return boolean
function M.is_selected()
  return vim.fn.pumvisible() == 1 and vim.fn.complete_info({ "selected" }).selected >= 0
end

local CTRL_E = vim.keycode("<C-e>")
local DISMISS = vim.api.nvim_create_namespace("cursor_agent_completion")

---Detects `<C-e>` in the menu, whatever it is mapped from.
---@param buf integer
local function watch_dismissal(buf)
  vim.on_key(function(key)
    if key == CTRL_E and vim.fn.pumvisible() == 1 then
      dismissed[buf] = true
    end
  end, DISMISS)
end

---@param buf integer
---@param event vim.api.keyset.events|vim.api.keyset.events[]
---@param desc string
---@param callback fun()
local function on(buf, event, desc, callback)
  vim.api.nvim_create_autocmd(event, { buffer = buf, desc = "cursor-agent: " .. desc, callback = callback })
end

---Offers completion as soon as `/` or `@` is typed.
---@param buf integer
function M.attach(buf)
  if config.get().prompt.autocomplete then
    companions.keep_out(buf)
  end
  M.claim(buf)
  on(buf, "InsertEnter", "complete mentions and commands", function()
    M.claim(buf)
  end)
  local taken ---@type string? the text before the cursor when an item was taken: there is nothing more to offer
  on(buf, "CompleteDone", "remember the completed item", function()
    -- Deferred: requesting the menu again would end the current one, even while it is visible.
    vim.schedule(function()
      if vim.fn.pumvisible() == 0 then
        unhush()
        unmap_tab(buf)
      end
    end)
    local word = vim.v.completed_item.word
    local before = vim.api.nvim_get_current_line():sub(1, vim.api.nvim_win_get_cursor(0)[2])
    taken = word and word ~= "" and vim.endswith(before, word) and before or nil
  end)
  on(buf, "InsertCharPre", "allow a dismissed menu again", function()
    if vim.list_contains(offered.TRIGGERS, vim.v.char) then
      dismissed[buf] = nil
    end
  end)
  ---@param tries integer how often to retry files that are not found yet
  ---@param typed? string only while this is before the cursor
  local function offer(tries, typed)
    if dismissed[buf] or vim.fn.pumvisible() == 1 or not offers() then
      return
    end
    local row, col = unpack(vim.api.nvim_win_get_cursor(0))
    local before = vim.api.nvim_get_current_line():sub(1, col)
    local chat = chats.current()
    if not chat or before == taken or (typed and before ~= typed) then
      return
    elseif #offered.items(chat, before, row == 1) > 0 then
      -- Select nothing until the user does. 'completeopt' is buffer-local only since 0.11, so set and restore it around
      -- the keys that request the menu.
      local old = vim.o.completeopt
      vim.o.completeopt = "menuone,noselect,noinsert"
      hush()
      map_tab(buf)
      M.claim(buf)
      vim.api.nvim_feedkeys(vim.keycode("<C-x><C-u>"), "n", false)
      vim.schedule(function()
        vim.o.completeopt = old
      end)
    elseif tries > 0 and offered.word(before, row == 1) == "mention" then
      vim.defer_fn(function()
        if vim.api.nvim_get_current_buf() == buf and vim.api.nvim_get_mode().mode == "i" then
          offer(tries - 1, before)
        end
      end, RETRY_MS)
    end
  end
  on(buf, "TextChangedI", "offer completion while typing", function()
    offer(RETRIES)
  end)
  on(buf, "InsertEnter", "list files in advance", function()
    watch_dismissal(buf)
    -- A plugin that this event loads is available only a moment later.
    vim.schedule(function()
      if vim.api.nvim_get_current_buf() == buf and config.get().prompt.autocomplete then
        companions.serve()
      end
    end)
    local chat = chats.of_buffer(buf)
    if chat then
      listing.search(chat.cwd, "", 0)
    end
  end)
  on(buf, { "InsertLeave", "BufLeave" }, "close the menu", function()
    vim.on_key(nil, DISMISS)
    M.close()
    unmap_tab(buf)
  end)
  on(buf, "BufWipeout", "forget dismissed menus", function()
    dismissed[buf] = nil
  end)
end

return M
