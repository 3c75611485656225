-- The default 'tabline' with titles: "Fix the parser", where Neovim would write `c//1/prompt: Fix the parser`.
--
-- Only while a window of the plugin is in a tab page and the user has no 'tabline'.

local titles = require("cursor_agent.chat.titles")
local chats = require("cursor_agent.chat.registry")
local format = require("cursor_agent.render.format")
local words = require("cursor_agent.window.words")

local M = {}

local EXPRESSION = "%!v:lua.require'cursor_agent.chat.tabline'.draw()"
local GROUP = vim.api.nvim_create_augroup("cursor_agent_tabline", {})

---Columns that Neovim gives a label at least.
local MIN_CELLS = 6

---What a buffer of the plugin is called.
---@param buf integer
---@return string? nil: it is the user's
local function title_of(buf)
  local chat = chats.of_buffer(buf)
  return chat and titles.of(chat) or words.of(vim.api.nvim_buf_get_name(buf))
end

---What Neovim calls a buffer in its own tab line.
---@param buf integer
---@return string
local function name_of(buf)
  local title = title_of(buf)
  if title then
    return title
  end
  local name = vim.fn.bufname(buf)
  if name == "" then
    local special = { quickfix = "[Quickfix List]", prompt = "[Prompt]", nofile = "[Scratch]", acwrite = "[Scratch]" }
    return special[vim.bo[buf].buftype] or "[No Name]"
  end
  if vim.bo[buf].buftype == "help" then
    return vim.fs.basename(name)
  end
  return vim.fn.pathshorten(vim.fn.fnamemodify(name, ":~"))
end

---@param tab integer
---@return string
local function label(tab, room)
  local wins, modified = 0, false
  for _, win in ipairs(vim.api.nvim_tabpage_list_wins(tab)) do
    local config = vim.api.nvim_win_get_config(win)
    if config.relative == "" then
      wins = wins + 1
      modified = modified or vim.bo[vim.api.nvim_win_get_buf(win)].modified
    end
  end
  local lead = (wins > 1 and tostring(wins) or "") .. (modified and "+" or "")
  lead = lead ~= "" and lead .. " " or ""
  local name = name_of(vim.api.nvim_win_get_buf(vim.api.nvim_tabpage_get_win(tab)))
  -- Of a long name Neovim shows the end; of a title the beginning says more.
  local cells = math.max(room - 2 - format.width(lead), 1)
  return lead .. (format.width(name) > cells and format.first_cells(name, math.max(cells - 1, 1)) .. "…" or name)
end

---The tab line.
---@return string
function M.draw()
  local tabs, current = vim.api.nvim_list_tabpages(), vim.api.nvim_get_current_tabpage()
  local room = math.max(math.floor((vim.o.columns - 1 + math.floor(#tabs / 2)) / #tabs), MIN_CELLS)
  local parts = {} ---@type string[]
  for i, tab in ipairs(tabs) do
    local text = label(tab, room):gsub("%%", "%%%%")
    parts[i] = ("%%#%s#%%%dT %s "):format(tab == current and "TabLineSel" or "TabLine", i, text)
  end
  return table.concat(parts) .. "%T%#TabLineFill#%=" .. (#tabs > 1 and "%#TabLine#%999XX" or "")
end

---@return boolean
local function is_needed()
  local tabs = vim.api.nvim_list_tabpages()
  if vim.o.showtabline == 0 or (vim.o.showtabline == 1 and #tabs < 2) then
    return false
  end
  for _, win in ipairs(vim.api.nvim_list_wins()) do
    if title_of(vim.api.nvim_win_get_buf(win)) then
      return true
    end
  end
  return false
end

---Sets the option where it is needed, and restores it where it is not. A 'tabline' of the user's is left alone.
function M.refresh()
  if vim.go.tabline ~= "" and vim.go.tabline ~= EXPRESSION then
    return
  end
  local wanted = is_needed() and EXPRESSION or ""
  if vim.go.tabline ~= wanted then
    vim.go.tabline = wanted
  end
end

local is_set_up = false

---Starts watching which windows there are; call it when the first window of the plugin opens.
function M.setup()
  if is_set_up then
    return
  end
  is_set_up = true
  vim.api.nvim_create_autocmd({ "BufWinEnter", "TabEnter", "TabClosed", "WinClosed", "SessionLoadPost" }, {
    group = GROUP,
    desc = "cursor-agent: titles in the tab line",
    callback = vim.schedule_wrap(M.refresh),
  })
  vim.api.nvim_create_autocmd("OptionSet", {
    group = GROUP,
    pattern = { "showtabline", "tabline" },
    desc = "cursor-agent: titles in the tab line",
    callback = M.refresh,
  })
  vim.schedule(M.refresh)
end

return M
