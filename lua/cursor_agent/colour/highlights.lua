-- The highlight groups: links to standard ones that a colorscheme or the user may replace.

local ansi = require("cursor_agent.render.ansi")

local M = {}

---Group → the standard group it links to.
---@type table<string, string>
M.groups = {
  CursorAgentUserBar = "Special",
  CursorAgentUser = "Normal",
  CursorAgentContext = "Directory",
  CursorAgentThought = "Comment",
  CursorAgentThoughtTitle = "Comment",
  CursorAgentVerb = "Function",
  CursorAgentToolTitle = "Normal",
  CursorAgentCommand = "String",
  CursorAgentPath = "Directory",
  CursorAgentDetail = "Comment",
  CursorAgentMore = "Comment",
  -- Not NonText: that has a ground of its own in some colorschemes.
  CursorAgentGutter = "LineNr",
  CursorAgentLineNr = "LineNr",
  CursorAgentAside = "Comment",
  CursorAgentPending = "Comment",
  CursorAgentRunning = "DiagnosticInfo",
  CursorAgentWaiting = "DiagnosticWarn",
  CursorAgentDone = "DiagnosticOk",
  CursorAgentFailed = "DiagnosticError",
  CursorAgentCancelled = "Comment",
  CursorAgentAdded = "Added",
  CursorAgentRemoved = "Removed",
  CursorAgentDiffAddSign = "Added",
  CursorAgentDiffDeleteSign = "Removed",
  CursorAgentHunkAdd = "CursorAgentDiffAdd",
  CursorAgentHunkAddWord = "CursorAgentDiffAddWord",
  CursorAgentHunkDelete = "CursorAgentDiffDelete",
  CursorAgentHunkDeleteWord = "CursorAgentDiffDeleteWord",
  CursorAgentHunkAddSign = "Added",
  CursorAgentHunkChangeSign = "Changed",
  CursorAgentHunkDeleteSign = "Removed",
  CursorAgentHunkHint = "Comment",
  CursorAgentComment = "DiagnosticInfo",
  CursorAgentFollow = "Visual",
  CursorAgentTodoDone = "Comment",
  CursorAgentTodoActive = "Title",
  CursorAgentRule = "LineNr",
  CursorAgentHeading1 = "Title",
  CursorAgentHeading2 = "Title",
  CursorAgentHeading3 = "Function",
  CursorAgentBullet = "Special",
  CursorAgentQuote = "LineNr",
  CursorAgentFrame = "WinSeparator",
  CursorAgentFrameTitle = "Title",
  CursorAgentFrameKeys = "Comment",
  CursorAgentStopped = "DiagnosticWarn",
  CursorAgentInfo = "Comment",
  CursorAgentWarning = "DiagnosticWarn",
  CursorAgentError = "DiagnosticError",
  CursorAgentWrapped = "LineNr",
  CursorAgentFence = "Comment",
  CursorAgentFolded = "Normal",
  CursorAgentHelpTitle = "Title",
  CursorAgentHelpKey = "Function",
  CursorAgentPlaceholder = "Comment",
  CursorAgentQueued = "Comment",
  CursorAgentBarAgent = "Title",
  CursorAgentBarMode = "Function",
  CursorAgentBarModel = "Comment",
  CursorAgentBarState = "Comment",
  CursorAgentBarError = "DiagnosticError",
  CursorAgentBarWaiting = "DiagnosticWarn",
  CursorAgentBarNew = "DiagnosticInfo",
  CursorAgentSpinner = "DiagnosticInfo",
  CursorAgentDecision = "Normal",
  CursorAgentDecisionBorder = "DiagnosticWarn",
  CursorAgentDecisionTitle = "Title",
  CursorAgentDecisionCount = "Comment",
  CursorAgentDecisionFooter = "Comment",
  CursorAgentKey = "Special",
  CursorAgentKeyText = "Comment",
  CursorAgentQuestion = "Title",
  CursorAgentChosen = "DiagnosticOk",
}

---xterm's first 16 colours, for a colorscheme that sets no `g:terminal_color_…`.
local PALETTE = {
  [0] = "#000000",
  "#cd0000",
  "#00cd00",
  "#cdcd00",
  "#0000ee",
  "#cd00cd",
  "#00cdcd",
  "#e5e5e5",
  "#7f7f7f",
  "#ff0000",
  "#00ff00",
  "#ffff00",
  "#5c5cff",
  "#ff00ff",
  "#00ffff",
  "#ffffff",
}

---@type table<string, boolean>
local made = {}
local ready = false

---The colour of a number in the 256-colour table.
---@param n integer
---@return string
local function rgb(n)
  if n < 16 then
    local own = vim.g["terminal_color_" .. n]
    return type(own) == "string" and own --[[@as string]] or PALETTE[n] --[[@as string]]
  elseif n < 232 then
    local level = { [0] = 0, 95, 135, 175, 215, 255 }
    n = n - 16
    return ("#%02x%02x%02x"):format(level[math.floor(n / 36)], level[math.floor(n / 6) % 6], level[n % 6])
  end
  local grey = 8 + (n - 232) * 10
  return ("#%02x%02x%02x"):format(grey, grey, grey)
end

---A number of the 256-colour table near to a colour, for a terminal without true colours.
---@param colour string #rrggbb
---@return integer
local function nearest(colour)
  local value = tonumber(colour:sub(2), 16) or 0
  local parts = { math.floor(value / 65536), math.floor(value / 256) % 256, value % 256 }
  local low, high = math.min(unpack(parts)), math.max(unpack(parts))
  if high - low < 16 and low > 3 and high < 247 then
    return 232 + math.floor(math.max(math.min((low + high) / 2 - 8, 230), 0) / 10 + 0.5)
  end
  local number = 16
  for i, weight in ipairs({ 36, 6, 1 }) do
    -- The six levels are 0, 95, 135, 175, 215 and 255.
    local part = parts[i] or 0
    local level = part < 48 and 0 or part < 115 and 1 or math.floor((part - 35) / 40)
    number = math.floor(number + weight * level)
  end
  return number
end

---@param group string
local function make_ansi(group)
  local style = ansi.style(group)
  if not style then
    return
  end
  local cterm = {} ---@type vim.api.keyset.highlight_cterm
  local hl = { default = true, cterm = cterm } ---@type vim.api.keyset.highlight
  for _, name in ipairs({ "bold", "italic", "underline", "reverse", "strikethrough" }) do
    if style[name] then
      hl[name] = true
      cterm[name] = true
    end
  end
  for key, value in pairs({ fg = style.fg or false, bg = style.bg or false }) do
    local number = value and tonumber(value) --[[@as integer?]]
    if number then
      hl[key] = rgb(number)
      hl["cterm" .. key] = number
    elseif value then
      hl[key] = value
      hl["cterm" .. key] = nearest(value)
    end
  end
  vim.api.nvim_set_hl(0, group, hl)
end

---Groups whose colours are chosen to suit the colorscheme (`diff.lua`), and what they are.
---@type table<string, string>
M.computed = {
  CursorAgentDiffAdd = "DiffAdd's background, or a green one",
  CursorAgentDiffAddWord = "a stronger green",
  CursorAgentDiffDelete = "DiffDelete's background, or a red one",
  CursorAgentDiffDeleteWord = "a stronger red",
}

local function set_all()
  require("cursor_agent.colour.diff").define()
  for group, target in pairs(M.groups) do
    vim.api.nvim_set_hl(0, group, { link = target, default = true })
  end
  for group in pairs(made) do
    make_ansi(group) -- of those that are no terminal colour nothing is made
  end
end

---Defines the groups; again after each change of colorscheme.
function M.setup()
  if ready then
    return
  end
  ready = true
  set_all()
  local group = vim.api.nvim_create_augroup("cursor_agent_highlights", {})
  vim.api.nvim_create_autocmd("ColorScheme", {
    group = group,
    desc = "cursor-agent: define the highlight groups",
    callback = set_all,
  })
  -- Without a colorscheme, this is the only event when 'background' changes.
  vim.api.nvim_create_autocmd("OptionSet", {
    group = group,
    pattern = "background",
    desc = "cursor-agent: adapt diff colours to 'background'",
    callback = require("cursor_agent.colour.diff").define,
  })
end

---Makes the group of a terminal colour the first time it is used.
---@param group string
function M.ensure(group)
  if made[group] == nil then
    made[group] = group:sub(1, 16) == "CursorAgentAnsi_"
    make_ansi(group)
  end
end

return M
