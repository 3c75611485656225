-- The colours of diffs: the colorscheme's own where code can be read on them, or else its ground with some red and green.

local M = {}

---@class (exact) cursor_agent.diff_colours.Rgb
---@field [1] number
---@field [2] number
---@field [3] number

---Red and green on a dark and on a light ground.
local HUES = {
  dark = { Delete = 0xf85149, Add = 0x2ea043 },
  light = { Delete = 0xcf222e, Add = 0x1a7f37 },
}

---How much of them there is in a line, and in a word that changed.
local SHARES = { dark = { line = 0.28, word = 0.6 }, light = { line = 0.2, word = 0.45 } }

---The same for a terminal of 256 colours: line and word.
local CTERM = {
  dark = { Delete = { 52, 88 }, Add = { 22, 28 } },
  light = { Delete = { 224, 217 }, Add = { 194, 157 } },
}

---What text has to stand out from its ground by, at least: of a line and of a word.
local CONTRAST = { line = 4.5, word = 3 }

---@param colour integer
---@return cursor_agent.diff_colours.Rgb
local function parts(colour)
  return { math.floor(colour / 0x10000) % 0x100, math.floor(colour / 0x100) % 0x100, colour % 0x100 }
end

---@param colour integer
---@return number
local function luminance(colour)
  local sum = 0 ---@type number
  local weights = { 0.2126, 0.7152, 0.0722 } ---@type cursor_agent.diff_colours.Rgb
  for i, part in ipairs(parts(colour)) do
    local share = part / 255
    sum = sum + (weights[i] or 0) * (share <= 0.03928 and share / 12.92 or ((share + 0.055) / 1.055) ^ 2.4)
  end
  return sum
end

---How much two colours differ to the eye: 1 to 21, as the guidelines for web pages count it.
---@param a integer
---@param b integer
---@return number
function M.contrast(a, b)
  local one, other = luminance(a), luminance(b)
  return (math.max(one, other) + 0.05) / (math.min(one, other) + 0.05)
end

---@param ground integer
---@param hue integer
---@param share number
---@return integer
function M.mix(ground, hue, share)
  local from, to = parts(ground), parts(hue)
  local out = 0 ---@type number
  for i = 1, 3 do
    out = out * 0x100 + math.floor(from[i] + (to[i] - from[i]) * share + 0.5)
  end
  return out --[[@as integer]]
end

---Whether a colour looks red or green.
---@param colour integer
---@param side "Add"|"Delete"
---@return boolean
function M.looks(colour, side)
  local red, green, blue = unpack(parts(colour))
  if side == "Delete" then
    return red - math.max(green, blue) >= 12
  end
  return green - red >= 12 and green >= blue
end

---The colour of a number in the table of 256; nil for the first 16, which are the terminal's own.
---@param number integer
---@return integer?
local function of_cterm(number)
  if number >= 232 then
    return (8 + (number - 232) * 10) * 0x10101
  elseif number >= 16 then
    local n, out = number - 16, 0 ---@type integer, number
    for _, step in ipairs({ 36, 6, 1 }) do
      local level = math.floor(n / step) % 6
      out = out * 0x100 + (level > 0 and 55 + 40 * level or 0)
    end
    return out --[[@as integer]]
  end
end

---@param name string
---@return vim.api.keyset.get_hl_info
local function group(name)
  return vim.api.nvim_get_hl(0, { name = name, link = false })
end

---@class (exact) cursor_agent.diff_colours.Ground
---@field shade "dark"|"light"
---@field terminal "dark"|"light" the same where there are 256 colours only
---@field bg integer
---@field fg integer

---A ground is dark when white stands out from it more than black does.
---@param colour integer?
---@return "dark"|"light"
local function shade_of(colour)
  if not colour then
    return vim.o.background == "light" and "light" or "dark"
  end
  return M.contrast(colour, 0xffffff) > M.contrast(colour, 0) and "dark" or "light"
end

---What text stands on. A colorscheme may be dark whatever 'background' says.
---@return cursor_agent.diff_colours.Ground
local function ground()
  local normal = group("Normal")
  local shade = shade_of(normal.bg)
  return {
    shade = shade,
    terminal = shade_of(normal.ctermbg and of_cterm(normal.ctermbg)),
    bg = normal.bg or (shade == "dark" and 0x14161b or 0xffffff),
    fg = normal.fg or (shade == "dark" and 0xe0e2ea or 0x14161b),
  }
end

---Whether the colour of a standard group will do: it is what one expects, and any text can be read on it.
---@param name string
---@param side "Add"|"Delete"
---@param on cursor_agent.diff_colours.Ground
---@return boolean
local function is_readable(name, side, on)
  local hl = group(name)
  local cterm = hl.cterm or {}
  if hl.reverse or cterm.reverse or hl.bold or not hl.bg or not hl.ctermbg then
    return false
  end
  local terminal = of_cterm(hl.ctermbg)
  -- Code keeps its own colours: these are made for the ground, not for a bright one.
  return M.looks(hl.bg, side)
    and M.contrast(hl.bg, on.fg) >= CONTRAST.line
    and M.contrast(hl.bg, on.bg) >= 1.05
    and terminal ~= nil
    and M.looks(terminal, side)
    and M.contrast(terminal, on.fg) >= CONTRAST.word
end

---As much of a hue on a ground as its text allows.
---@param from integer
---@param side "Add"|"Delete"
---@param kind "line"|"word"
---@param on cursor_agent.diff_colours.Ground
---@return integer
local function tint(from, side, kind, on)
  local hue = HUES[on.shade][side]
  local share = SHARES[on.shade][kind]
  local colour = M.mix(from, hue, share)
  if not M.looks(colour, side) then
    -- The ground has a colour of its own: of that only how light it is can be kept.
    local sum = 0 ---@type number
    for _, part in ipairs(parts(from)) do
      sum = sum + part
    end
    from = math.floor(sum / 3) * 0x10101 --[[@as integer]]
    colour = M.mix(from, hue, share)
  end
  -- Text that hardly stands out from its own ground cannot be asked to stand out more from ours.
  local wanted = math.min(CONTRAST[kind], M.contrast(on.fg, on.bg) * 0.7)
  while share > 0.12 and M.contrast(colour, on.fg) < wanted do
    share = share - 0.04
    colour = M.mix(from, hue, share)
  end
  return colour
end

---The groups of diffs and what they are now. None is a link: with `default`, a link can never become colours again.
---@return table<string, vim.api.keyset.highlight>
function M.groups()
  local on = ground()
  local own = is_readable("DiffAdd", "Add", on) and is_readable("DiffDelete", "Delete", on)
  local out = {} ---@type table<string, vim.api.keyset.highlight>
  for _, side in ipairs({ "Add", "Delete" }) do
    local theirs = own and group("Diff" .. side) or {}
    local cterm = CTERM[on.terminal][side]
    local line = theirs.bg or tint(on.bg, side, "line", on)
    local line_cterm = theirs.ctermbg or cterm[1]
    out["CursorAgentDiff" .. side] = { bg = line, ctermbg = line_cterm }
    out["CursorAgentDiff" .. side .. "Word"] = {
      bg = tint(line, side, "word", on),
      ctermbg = line_cterm == cterm[2] and cterm[1] or cterm[2],
    }
  end
  return out
end

---@type table<string, vim.api.keyset.highlight> as we set them
local left = {}

---Whether a group is nothing but a ground.
---@param now vim.api.keyset.get_hl_info
---@param ours vim.api.keyset.highlight?
---@return boolean
local function is_ours(now, ours)
  return ours ~= nil
    and vim.deep_equal(
      { bg = ours.bg, ctermbg = ours.ctermbg, default = now.default },
      vim.tbl_extend("force", {}, now)
    )
end

---Defines the groups for the colours of now. What the user or the colorscheme defined stays.
function M.define()
  for name, hl in pairs(M.groups()) do
    if is_ours(vim.api.nvim_get_hl(0, { name = name }), left[name]) then
      -- Made for other colours: with `default` it would stay.
      vim.api.nvim_set_hl(0, name, {})
    end
    left[name] = hl
    vim.api.nvim_set_hl(0, name, { bg = hl.bg, ctermbg = hl.ctermbg, default = true })
  end
end

return M
