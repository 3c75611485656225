-- SHA-256 of bytes, in Lua: `vim.fn.sha256` fails on binary data in Neovim 0.10, and no program needs to be there.

local bit = require("bit")
local band, bnot, bor, bxor = bit.band, bit.bnot, bit.bor, bit.bxor
local ror, rshift, tobit, tohex = bit.ror, bit.rshift, bit.tobit, bit.tohex

local BLOCK_BYTES = 64
-- How much is hashed before the caller may do something else: about 5 ms of work.
local SLICE_BYTES = 256 * 1024

---The first 32 bits of the fractional part of a number.
---@param x number
---@return integer
local function fraction(x)
  return tobit(math.floor((x - math.floor(x)) * 2 ^ 32))
end

-- The constants of FIPS 180-4: from the square roots of the first 8 primes, and the cube roots of the first 64.
local START, ROUND = {}, {}
do
  local n, found = 2, 0
  while found < 64 do
    local prime = true
    for d = 2, math.floor(math.sqrt(n)) do
      prime = prime and n % d ~= 0
    end
    if prime then
      found = found + 1
      ROUND[found] = fraction(n ^ (1 / 3))
      if found <= 8 then
        START[found] = fraction(math.sqrt(n))
      end
    end
    n = n + 1
  end
end

---@param state integer[] changed in place
---@param text string
---@param first integer index of the block's first byte
---@param w integer[] room for the message schedule
local function block(state, text, first, w)
  for i = 1, 16 do
    local a, b, c, d = text:byte(first + (i - 1) * 4, first + i * 4 - 1)
    w[i] = bor(a * 2 ^ 24, b * 2 ^ 16, c * 2 ^ 8, d)
  end
  for i = 17, 64 do
    local x, y = w[i - 15], w[i - 2]
    local s0 = bxor(ror(x, 7), ror(x, 18), rshift(x, 3))
    local s1 = bxor(ror(y, 17), ror(y, 19), rshift(y, 10))
    w[i] = tobit(w[i - 16] + s0 + w[i - 7] + s1)
  end
  local a, b, c, d = state[1], state[2], state[3], state[4]
  local e, f, g, h = state[5], state[6], state[7], state[8]
  for i = 1, 64 do
    local s1 = bxor(ror(e, 6), ror(e, 11), ror(e, 25))
    local t1 = tobit(h + s1 + bxor(band(e, f), band(bnot(e), g)) + ROUND[i] + w[i])
    local s0 = bxor(ror(a, 2), ror(a, 13), ror(a, 22))
    local t2 = tobit(s0 + bxor(band(a, b), band(a, c), band(b, c)))
    h, g, f, e, d, c, b, a = g, f, e, tobit(d + t1), c, b, a, tobit(t1 + t2)
  end
  for i, value in ipairs({ a, b, c, d, e, f, g, h }) do
    state[i] = tobit(state[i] + value)
  end
end

local M = {}

---The SHA-256 of a text, as lower-case hexadecimal digits.
---@param text string any bytes
---@param breathe? fun() called now and then in a long text
---@return string
function M.hex(text, breathe)
  local state, w = { unpack(START) }, {}
  local whole = #text - #text % BLOCK_BYTES
  for first = 1, whole, BLOCK_BYTES do
    block(state, text, first, w)
    if breathe and (first - 1) % SLICE_BYTES == 0 and first > 1 then
      breathe()
    end
  end
  local rest = text:sub(whole + 1) .. "\128"
  rest = rest .. ("\0"):rep((56 - #rest) % BLOCK_BYTES)
  local bits, length = #text * 8, {}
  for i = 8, 1, -1 do
    length[i] = string.char(bits % 256)
    bits = math.floor(bits / 256)
  end
  rest = rest .. table.concat(length)
  for first = 1, #rest, BLOCK_BYTES do
    block(state, rest, first, w)
  end
  return table.concat(vim.tbl_map(tohex, state))
end

return M
