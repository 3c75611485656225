-- The frame around a decision: its border with the title, and the keys at the bottom.

local format = require("cursor_agent.render.format")
local blocks = require("cursor_agent.render.block")

local M = {}

local NS = vim.api.nvim_create_namespace("cursor_agent_card")

---@class (exact) cursor_agent.decide.Hint
---@field key string
---@field text string
---@field action string

---The keys of actions, in readable form. Actions without a key are left out.
---@param kind cursor_agent.BufferKind
---@param list { [1]: string, [2]: string }[] actions and what they do here
---@return cursor_agent.decide.Hint[]
function M.hints(kind, list)
  local keymaps = require("cursor_agent.keys")
  local hints = {} ---@type cursor_agent.decide.Hint[]
  for _, one in ipairs(list) do
    local key = keymaps.key(one[1], kind)
    if key then
      hints[#hints + 1] = { key = key, text = one[2], action = one[1] }
    end
  end
  return hints
end

---Modes as mappings name them, by their first character. The others, such as a pending operator, lead back to Normal mode.
local MODES = { i = "i", R = "i", v = "x", V = "x", ["\22"] = "x", s = "s", S = "s", ["\19"] = "s", t = "t" }

---The current mode, as mappings name it.
---@return "n"|"i"|"x"|"s"|"t"
function M.mode()
  return MODES[vim.api.nvim_get_mode().mode:sub(1, 1)] or "n"
end

---The key of an action in a kind of buffer, if it works in the current mode.
---@param name string
---@param kind cursor_agent.BufferKind
---@return string?
local function working_key(name, kind)
  local keymaps = require("cursor_agent.keys")
  local modes = keymaps.modes(keymaps.action(name), kind)
  return vim.list_contains(modes, M.mode()) and keymaps.key(name, kind) or nil
end

---The key the user has bound to something, in the current mode.
---@param plug string
---@return string?
local function bound_key(plug)
  for _, map in ipairs(vim.api.nvim_get_keymap(M.mode())) do
    if map.rhs == plug then
      local raw = map.lhsraw or map.lhs --[[@as string]]
      local leader = vim.g.mapleader or "\\"
      if leader ~= "" and raw:sub(1, #leader) == leader then
        return "<leader>" .. vim.fn.keytrans(raw:sub(#leader + 1))
      end
      return vim.fn.keytrans(raw)
    end
  end
end

---What the keys that answer from anywhere do, by kind of decision.
---@type table<string, { accept: string, reject: string }>
local VERDICTS = {
  permission = { accept = "allow", reject = "reject" },
  plan = { accept = "accept", reject = "reject" },
  conflict = { accept = "take the agent's", reject = "keep yours" },
  question = { accept = "answer", reject = "skip" },
}

---How to enter the card from the current window: a key or a command.
---@return string
local function way_in()
  local kind = vim.b.cursor_agent_kind ---@type cursor_agent.BufferKind?
  local key = kind and working_key("decisions", kind)
    or bound_key("<Plug>(cursor-agent-decisions)")
    or working_key("decisions", "global")
  return key and key .. " more" or ":CursorAgent decisions"
end

---How to answer a decision or enter its card from elsewhere: the keys that work in the current window.
---@param decision cursor_agent.Decision
---@return string[] most important first
function M.reminder(decision)
  local words = {} ---@type string[]
  local does = VERDICTS[decision.kind] or VERDICTS.question
  for _, verdict in ipairs({ "accept", "reject" }) do
    local key = bound_key(("<Plug>(cursor-agent-%s)"):format(verdict)) or working_key(verdict, "waiting")
    if key then
      words[#words + 1] = ("%s %s"):format(key, does[verdict])
    end
  end
  words[#words + 1] = way_in()
  return words
end

---@param border any
---@return string
local function line_of(border)
  if type(border) == "table" then
    return type(border[2]) == "string" and border[2] or "─"
  end
  return ({ double = "═", solid = " ", shadow = " ", bold = "━" })[border] or "─"
end

---@return any a name, or its characters
function M.border()
  if require("cursor_agent.config").get().chat.icons == "ascii" then
    return { "+", "-", "+", "|", "+", "-", "+", "|" }
  end
  local own = require("cursor_agent.window.quiet").border()
  -- Without a border there is no room for the title.
  return own == "none" and "solid" or own
end

---@param text string
---@param width integer
---@return string
local function cut(text, width)
  if format.width(text) <= width then
    return text
  end
  return format.first_cells(text, math.max(width - 1, 1)) .. "…"
end

---The title; it spans the whole border if there is a count at its end.
---@param words string
---@param counted string?
---@param width integer
---@param border any
---@return { [1]: string, [2]: string }[]
function M.title(words, counted, width, border)
  local line = line_of(border)
  local count = counted and (" %s "):format(counted) or ""
  local room = width - format.width(count) - 4
  if format.width(words) > room then
    -- The window shows who asks, but not what is asked.
    words = words:gsub("^.* asks to (%l)(.*)$", function(first, rest)
      return first:upper() .. rest .. "?"
    end)
  end
  local title = (" %s "):format(cut(words, room))
  local fill = width - format.width(title) - format.width(count) - (count ~= "" and 1 or 0)
  local chunks = { { title, "CursorAgentDecisionTitle" } } ---@type { [1]: string, [2]: string }[]
  if count ~= "" then
    chunks[2] = { line:rep(math.max(fill, 0)), "CursorAgentDecisionBorder" }
    chunks[3] = { count, "CursorAgentDecisionCount" }
  end
  return chunks
end

---Wraps a text between words; a word wider than a row is cut.
---@param text string
---@param width integer
---@return string[]
local function wrap(text, width)
  local rows, row = {}, "" ---@type string[], string
  for word in text:gmatch("%S+") do
    word = cut(word, width)
    if row ~= "" and format.width(row .. " " .. word) > width then
      rows[#rows + 1] = row
      row = word
    else
      row = row == "" and word or row .. " " .. word
    end
  end
  rows[#rows + 1] = row
  return rows
end

---The keys, as many per line as fit.
---@param hints cursor_agent.decide.Hint[]
---@param width integer
---@return cursor_agent.render.Block
function M.keys(hints, width)
  local block = blocks.builder()
  local line, used = {}, 0 ---@type cursor_agent.render.Chunk[], integer
  for _, hint in ipairs(hints) do
    local texts = wrap(hint.text, width - format.width(hint.key) - 2)
    local text = texts[1] or ""
    local wide = format.width(hint.key .. " " .. text)
    if used > 0 and used + 3 + wide > width then
      block:line(line)
      line, used = {}, 0
    end
    if used > 0 then
      line[#line + 1] = { "   " }
      used = used + 3
    else
      line[#line + 1] = { " " }
    end
    line[#line + 1] = { hint.key, "CursorAgentKey" }
    line[#line + 1] = { " " .. text, "CursorAgentKeyText" }
    used = used + wide
    for i = 2, #texts do
      block:line(line)
      local indent = (" "):rep(format.width(hint.key) + 2)
      -- Nothing else goes into its last row.
      line, used = { { indent .. texts[i], "CursorAgentKeyText" } }, width
    end
  end
  if #line > 0 then
    block:line(line)
  end
  return block
end

---The keys as a bar above a window, without those that make no sense there.
---@param hints cursor_agent.decide.Hint[]
---@return string
function M.bar(hints)
  local bar = {} ---@type string[]
  for _, hint in ipairs(hints) do
    if hint.action ~= "decision-details" and hint.action ~= "next-decision" then
      local text = format.first_line(hint.text, 24):gsub("%%", "%%%%")
      bar[#bar + 1] = ("%%#CursorAgentKey# %s%%#CursorAgentKeyText# %s "):format(hint.key, text)
    end
  end
  return table.concat(bar) .. "%<"
end

---The reminder for the border: as many of its words as fit.
---@param words string[]
---@param width integer
---@return { [1]: string, [2]: string }[]
function M.footer(words, width)
  local text = words[1] or ""
  for i = 2, #words do
    local longer = text .. " · " .. words[i]
    if format.width(longer) > width - 4 then
      break
    end
    text = longer
  end
  return { { (" %s "):format(cut(text, width - 4)), "CursorAgentDecisionFooter" } }
end

---Fills the frame's buffer: room for the body, a line for a message, the keys.
---@param buf integer
---@param place cursor_agent.decide.Layout
---@param keys cursor_agent.render.Block
---@param said string|integer a message, or else how many lines of the body are hidden
function M.fill(buf, place, keys, said)
  local note = type(said) == "string" and said or nil
  local lines = {} ---@type string[]
  for i = 1, (place.from and 1 or 0) + place.body + place.said do
    lines[i] = ""
  end
  local row = #lines
  if place.said == 0 then
    note = nil
  elseif note then
    lines[row] = " " .. cut(note, place.width - 2)
  elseif type(said) == "number" and said > 0 then
    local icons = require("cursor_agent.render.icons").pick(require("cursor_agent.config").get().chat.icons)
    lines[row] = (" %s %s"):format(icons.below, format.plural(said --[[@as integer]], "more line"))
  end
  if place.from then
    lines[1] = " " .. cut(place.from, place.width - 2)
  end
  vim.list_extend(lines, keys.lines)
  vim.bo[buf].modifiable = true
  vim.api.nvim_buf_clear_namespace(buf, NS, 0, -1)
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.bo[buf].modifiable = false
  if place.from then
    vim.api.nvim_buf_set_extmark(buf, NS, 0, 0, { end_col = #lines[1], hl_group = "CursorAgentDetail" })
  end
  if place.said > 0 and lines[row] ~= "" then
    vim.api.nvim_buf_set_extmark(buf, NS, row - 1, 0, {
      end_col = #lines[row],
      hl_group = note and "CursorAgentWarning" or "CursorAgentMore",
    })
  end
  for _, mark in ipairs(keys.marks) do
    vim.api.nvim_buf_set_extmark(buf, NS, row + mark.row, mark.col, mark.opts)
  end
end

return M
