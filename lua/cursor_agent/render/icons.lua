-- The signs the chat draws with, in three alphabets.

local M = {}

---@class (exact) cursor_agent.Icons
---@field user string bar beside what the user said
---@field pending string
---@field running string
---@field waiting string a tool call that waits for the user
---@field done string
---@field failed string
---@field cancelled string
---@field active string the todo in progress, a thought
---@field opened string a thought whose fold is open
---@field gutter string left of a tool call's details
---@field more string before what is left out
---@field rule string a turn's end, and rules in a message
---@field tee string where a rule of a table begins
---@field cross string where it crosses a column
---@field tee_end string where it ends
---@field corner_top string of the prompt's frame
---@field corner_top_end string
---@field corner_bottom string
---@field corner_bottom_end string
---@field bullet string of a list
---@field bullet_below string of a list in another one
---@field box string a task of a list that is not done
---@field quote string bar beside a quotation
---@field below string what is new further down
---@field wrapped string a line too long for one line of the buffer goes on
---@field attention string a chat that needs the user
---@field comment string a comment for the agent
---@field remove string takes an attachment away
---@field info string
---@field warning string
---@field error string
---@field spinner string its frames, one character each

---@type table<string, cursor_agent.Icons>
M.sets = {
  unicode = {
    user = "▎",
    pending = "·",
    running = "…",
    waiting = "●",
    done = "✓",
    failed = "✗",
    cancelled = "–",
    active = "▸",
    opened = "▾",
    gutter = "│",
    more = "▸",
    rule = "─",
    tee = "├",
    cross = "┼",
    tee_end = "┤",
    corner_top = "╭",
    corner_top_end = "╮",
    corner_bottom = "╰",
    corner_bottom_end = "╯",
    bullet = "•",
    bullet_below = "◦",
    box = "○",
    quote = "│",
    below = "↓",
    wrapped = "↪",
    attention = "●",
    comment = "✎",
    remove = "×",
    info = "·",
    warning = "!",
    error = "✗",
    spinner = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏",
  },
  ascii = {
    user = "|",
    pending = ".",
    running = "~",
    waiting = "?",
    done = "+",
    failed = "x",
    cancelled = "-",
    active = ">",
    opened = "v",
    gutter = "|",
    more = ">",
    rule = "-",
    tee = "|",
    cross = "+",
    tee_end = "|",
    corner_top = "+",
    corner_top_end = "+",
    corner_bottom = "+",
    corner_bottom_end = "+",
    bullet = "*",
    bullet_below = "-",
    box = "o",
    quote = "|",
    below = "v",
    wrapped = "\\",
    attention = "*",
    comment = "#",
    remove = "x",
    info = "i",
    warning = "!",
    error = "x",
    spinner = "|/-\\",
  },
  nerd = {
    user = "▎",
    pending = "󰔟",
    running = "󰑮",
    waiting = "󰋗",
    done = "󰄬",
    failed = "󰅖",
    cancelled = "󰜺",
    active = "󰐊",
    opened = "▾",
    gutter = "│",
    more = "󰅂",
    rule = "─",
    tee = "├",
    cross = "┼",
    tee_end = "┤",
    corner_top = "╭",
    corner_top_end = "╮",
    corner_bottom = "╰",
    corner_bottom_end = "╯",
    bullet = "•",
    bullet_below = "◦",
    box = "○",
    quote = "│",
    below = "󰁅",
    wrapped = "󰘍",
    attention = "●",
    comment = "✎",
    remove = "󰅖",
    info = "󰋽",
    warning = "󰀦",
    error = "󰅙",
    spinner = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏",
  },
}

---The signs an option asks for: a set by name, or single ones on top of `unicode`.
---@param option string|table<string, string>
---@return cursor_agent.Icons
function M.pick(option)
  if type(option) == "table" then
    return vim.tbl_extend("force", M.sets.unicode, option) --[[@as cursor_agent.Icons]]
  end
  return M.sets[option] or M.sets.unicode
end

return M
