-- The options of the windows that show a chat or its prompt.

local config = require("cursor_agent.config")
local window = require("cursor_agent.window.quiet")

local M = {}

---Indent wrapped lines to the text of their list item. Neovim 0.10 counts the bytes of a list marker, not its cells.
M.LIST_INDENT = vim.fn.has("nvim-0.11") == 1 and "list:-1" or "list:2"

---@param win integer
---@param options table<string, any>
local function set_options(win, options)
  for name, value in pairs(options) do
    vim.api.nvim_set_option_value(name, value, { win = win, scope = "local" })
  end
end

---Whether a window has its own statusline.
---@param win integer
---@return boolean
local function own_statusline(win)
  return not window.is_float(win) and vim.o.laststatus ~= 3
end

---The statusline of a window: a part of the frame, or the chat's title if all windows share one statusline.
---@param win integer
---@param part "top"|"bottom"
---@return string empty: use the user's
local function statusline(win, part)
  if own_statusline(win) then
    return ("%%{%%v:lua.require'cursor_agent.prompt.bar'.%s()%%}"):format(part)
  end
  local default = vim.api.nvim_get_option_info2("statusline", {}).default
  -- In a float it would take up a row.
  return not window.is_float(win)
      and vim.go.statusline == default
      and "%{%v:lua.require'cursor_agent.prompt.bar'.shared()%}"
    or ""
end

---The prompt's frame is drawn with the winbar, the statusline and the end-of-buffer lines.
local FRAME = "WinBar:CursorAgentFrame,WinBarNC:CursorAgentFrame,EndOfBuffer:CursorAgentFrame"
local FRAME_IN_STATUSLINE = "StatusLine:CursorAgentFrame,StatusLineNC:CursorAgentFrame"

---A chat in a float has the normal background, because its text is drawn for that.
local FLOAT_GROUND = "NormalFloat:Normal,FloatBorder:WinSeparator"

---Sets the options of a window that shows one of our buffers. They are local to window and buffer: another buffer shown
---in the same window gets its own back.
---@param chat cursor_agent.Chat
---@param win integer
---@param kind "chat"|"prompt"
function M.dress(chat, win, kind)
  local icons = chat.transcript.context.icons
  local rules = own_statusline(win) and (",stl:%s,stlnc:%s"):format(icons.rule, icons.rule) or ""
  local beside = vim.tbl_contains({ "right", "left" }, config.get().window.position)
  set_options(win, {
    relativenumber = false,
    signcolumn = "no",
    foldcolumn = "0",
    -- A margin: text that touches the separator is hard to read. Until the window is drawn, Neovim assumes the column
    -- is as wide as line numbers would be; lines are measured before that, to know how many fit.
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
    breakindentopt = M.LIST_INDENT,
    winfixwidth = beside and not window.is_float(win),
  })
  if kind == "chat" then
    set_options(win, {
      cursorline = false,
      foldenable = true,
      foldmethod = "manual",
      foldtext = "",
      foldminlines = 0,
      -- A closed fold looks like the line it shows.
      winhighlight = "Folded:CursorAgentFolded"
        .. (own_statusline(win) and "," .. FRAME_IN_STATUSLINE or "")
        .. (window.is_float(win) and "," .. FLOAT_GROUND or ""),
      fillchars = "fold: ,eob: " .. rules,
      conceallevel = config.get().chat.conceal and 2 or 0,
      concealcursor = "",
      winbar = "%{%v:lua.require'cursor_agent.chat.winbar'.chat()%}",
      statusline = statusline(win, "top"),
    })
    chat.transcript:dress(win)
  else
    local framed = not window.is_float(win)
    set_options(win, {
      cursorline = false,
      foldenable = false,
      fillchars = framed and ("eob:%s"):format(icons.gutter) .. rules or "eob: ",
      statuscolumn = framed and ("%%#CursorAgentFrame#%s "):format(icons.gutter) or " ",
      numberwidth = framed and 2 or 1,
      winfixheight = framed,
      winhighlight = not framed and FLOAT_GROUND or FRAME .. (own_statusline(win) and "," .. FRAME_IN_STATUSLINE or ""),
      conceallevel = 0,
      statusline = statusline(win, "bottom"),
    })
    chat.prompt:dress(win)
    -- The placeholder of an empty prompt depends on the window's width.
    chat.prompt:refresh()
  end
end

return M
