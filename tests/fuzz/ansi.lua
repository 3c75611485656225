-- Runs in a child Neovim: gives generated terminal output to the reader of escape sequences, for `FUZZ_SECONDS`.
--
-- `FUZZ_SEED` leads to the same lines again. Prints how many there were; a line that breaks a rule ends it with the line.

local root = assert(vim.env.FUZZ_ROOT)
vim.opt.runtimepath:prepend(root)
local ansi = require("cursor_agent.render.ansi")

local seed = tonumber(vim.env.FUZZ_SEED) or vim.uv.hrtime() % 2147483646 + 1
local seconds = tonumber(vim.env.FUZZ_SECONDS) or 0.5
local state = seed

---@param n integer
---@return integer from 1 to n
local function random(n)
  state = (state * 16807) % 2147483647
  return math.floor(state % n) + 1
end

---@generic T
---@param list T[]
---@return T
local function pick(list)
  return list[random(#list)]
end

local ESC = "\27"

---What terminal output is made of, whole and broken.
local PIECES = {
  function()
    return pick({ "text", "é", "日本", "\t", " ", "\255\254", "\0", "[", "]", "m", ";", "\r", "\8", "\7" }):rep(
      random(4)
    )
  end,
  function()
    local codes = {} ---@type string[]
    for i = 1, random(6) do
      codes[i] = tostring(pick({ 0, 1, 4, 7, 31, 38, 48, 5, 2, 97, 107, 255, 256, 99999999999, "", "38:5:1", "4:3" }))
    end
    return ESC .. "[" .. table.concat(codes, pick({ ";", ":" })) .. pick({ "m", "m", "m", "K", "H", "", "J" })
  end,
  function()
    return ESC .. pick({ "[?25l", "[>c", "[ q", "(B", "7", "=", "P", "X", "^", "_", "", "[", "[12", "c" })
  end,
  function()
    local link = ESC .. "]8;;" .. pick({ "https://x.y", "", ("a"):rep(5000) })
    return link .. pick({ "\7", ESC .. "\\", "", ESC }) .. "text"
  end,
}

---@return string
local function generate()
  local out = {}
  for i = 1, random(12) do
    out[i] = pick(PIECES)()
  end
  return (table.concat(out):gsub("\n", ""))
end

---@param line string
---@param style cursor_agent.render.Style
---@return cursor_agent.render.Style
local function check(line, style)
  local plain, spans, after = ansi.line(line, style)
  assert(not plain:find(ESC, 1, true), "an escape is left")
  local last = 0
  for _, span in ipairs(spans) do
    assert(span.from >= last and span.to > span.from and span.to <= #plain, "a span outside of its line")
    assert(vim.deep_equal(ansi.group(assert(ansi.style(span.hl))), span.hl), "a group that is not its style")
    last = span.to
  end
  -- What is plain stays as it is.
  local again = ansi.line(plain, {})
  assert(again == plain, "plain text that changes")
  return after
end

local count, style = 0, {}
local started = vim.uv.hrtime()
while count == 0 or (vim.uv.hrtime() - started) / 1e9 < seconds do
  local line = generate()
  count = count + 1
  local ok, after = pcall(check, line, style)
  if not ok then
    io.stderr:write(("FUZZ_SEED=%d, line %d: %s\n%s\n"):format(seed, count, after, vim.inspect(line)))
    os.exit(1)
  end
  style = count % 50 == 0 and {} or after --[[@as cursor_agent.render.Style]]
end
print(("ansi: %d cases in %s s"):format(count, seconds))
