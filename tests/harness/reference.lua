-- Reference screenshots: text files in tests/screenshots, compared after what differs from run to run is made equal.
--
-- NAME.txt serves every Neovim; where a version really draws something else, NAME.nvim-0.10.txt serves that one.
-- UPDATE_SCREENSHOTS=1 writes NAME.txt; UPDATE_SCREENSHOTS=version writes the version's own file where it differs from
-- NAME.txt and removes it where it does not (`make screenshots` does both in the right order).

local files = require("harness.file")

local read, write = files.peek, files.write

local M = {}

---The running Neovim's, as in the names of files.
M.version = assert(vim.fn.execute("version"):match("NVIM v(%d+%.%d+)"))

---Keeps the width: what stands right of it must stay where it is.
---@param digits string
local function zeros(digits)
  return (digits:gsub("%d", "0"))
end

---Makes equal what differs from run to run: temporary paths, clock times, durations, the spinner's frame.
---@param line string
---@param dir string the case's temporary directory
---@return string
function M.normalise(line, dir)
  local mask = "TMP" .. ("~"):rep(math.max(0, #dir - 3))
  line = line:gsub(vim.pesc(dir), mask)
  line = line:gsub("%d+:%d%d:?%d*", zeros)
  line = line:gsub("%d+%.?%d*m?s%f[^%w]", zeros)
  -- Braille patterns, U+2800 to U+28FF, are used for nothing but spinners.
  line = line:gsub("\226[\160-\163][\128-\191]", "⠿")
  return line
end

---@param root string the project's
---@param name string
---@return { base: string, override: string }
local function paths(root, name)
  local base = ("%s/tests/screenshots/%s"):format(root, name)
  return { base = base .. ".txt", override = ("%s.nvim-%s.txt"):format(base, M.version) }
end

---The text to compare with and where it lies.
---@param root string
---@param name string
---@return string? text
---@return string path
function M.expected(root, name)
  local file = paths(root, name)
  local own = read(file.override)
  if own then
    return own, file.override
  end
  return read(file.base), file.base
end

---Whether references are to be written instead of compared with.
---@return boolean
function M.updating()
  return not vim.tbl_contains({ "", "0" }, vim.env.UPDATE_SCREENSHOTS or "")
end

---Writes the reference as UPDATE_SCREENSHOTS asks for.
---@param root string
---@param name string
---@param text string
function M.update(root, name, text)
  local how = vim.env.UPDATE_SCREENSHOTS
  local file = paths(root, name)
  if how == "version" and read(file.base) ~= text then
    write(file.override, text)
  else
    write(file.base, how == "version" and read(file.base) or text)
    os.remove(file.override)
  end
end

---What differs, row by row, each with what was expected above what is there.
---@param expected string
---@param actual string
---@return string
function M.difference(expected, actual)
  local want, have = vim.split(expected, "\n"), vim.split(actual, "\n")
  local out = {}
  for i = 1, math.max(#want, #have) do
    if want[i] ~= have[i] then
      out[#out + 1] = "  expected " .. (want[i] or "(nothing)")
      out[#out + 1] = "  actual   " .. (have[i] or "(nothing)")
    end
  end
  return table.concat(out, "\n")
end

return M
