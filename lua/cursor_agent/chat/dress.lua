-- The options of the windows that show a chat or its prompt.

local config = require("cursor_agent.config")
local window = require("cursor_agent.window.quiet")

local M = {}

---@param win integer
---@param options table<string, any>
local function set_options(win, options)
  for name, value in pairs(options) do
    vim.api.nvim_set_option_value(name, value, { win = win, scope = "local" })
  end
end

---Whether a window has a statusline of its own. One for all windows is the user's.
---@param win integer
---@return boolean
local function own_statusline(win)
  return not window.is_float(win) and vim.o.laststatus ~= 3
end

---A chat in a float has the ground of other windows: that is what its text is drawn on.
local FLOAT_GROUND = "NormalFloat:Normal,FloatBorder:WinSeparator"

---Gives a window that shows one of our buffers its options. They are local to window and buffer: another buffer in the
---same window has its own again.
---@param chat cursor_agent.Chat
---@param win integer
---@param kind "chat"|"prompt"
function M.dress(chat, win, kind)
  local beside = vim.tbl_contains({ "right", "left" }, config.get().window.position)
  set_options(win, {
    relativenumber = false,
    signcolumn = "no",
    foldcolumn = "0",
    -- A margin: text that touches the separator is hard to read. Until the window is drawn, Neovim takes the column
    -- to be as wide as its numbers would be; lines are measured before that, to know how many fit.
    statuscolumn = " ",
    number = true,
    numberwidth = 1,
    colorcolumn = "",
    cursorcolumn = false,
    list = false,
    spell = false,
    wrap = true,
    linebreak = true,
    breakindent = true,
    breakindentopt = "list:-1",
    winfixwidth = beside and not window.is_float(win),
    winfixbuf = true,
  })
  if kind == "chat" then
    set_options(win, {
      cursorline = false,
      foldenable = true,
      foldmethod = "manual",
      foldtext = "",
      foldminlines = 0,
      -- A closed fold looks like the line it shows.
      winhighlight = "Folded:CursorAgentFolded" .. (window.is_float(win) and "," .. FLOAT_GROUND or ""),
      fillchars = "fold: ,eob: ",
      conceallevel = config.get().chat.conceal and 2 or 0,
      concealcursor = "",
      winbar = "%{%v:lua.require'cursor_agent.chat.winbar'.chat()%}",
      statusline = own_statusline(win) and "%{%v:lua.require'cursor_agent.chat.winbar'.title()%}" or "",
    })
    chat.transcript:dress(win)
  else
    set_options(win, {
      cursorline = false,
      foldenable = false,
      fillchars = "eob: ",
      winfixheight = not window.is_float(win),
      winhighlight = window.is_float(win) and FLOAT_GROUND or "",
      conceallevel = 0,
      statusline = own_statusline(win) and "%=<C-s> send · g? keys " or "",
    })
    chat.prompt:dress(win)
    -- What an empty prompt says depends on the window's width.
    chat.prompt:refresh()
  end
end

return M
