-- Numbers, times and paths as a person reads them.

local M = {}

---@param ms number
---@return string
function M.duration(ms)
  if ms < 9950 then
    return ("%.1fs"):format(ms / 1000)
  elseif ms < 60000 then
    return ("%ds"):format(math.floor(ms / 1000 + 0.5))
  end
  return M.clock(ms)
end

---Minutes and seconds, as a running clock shows them.
---@param ms number
---@return string
function M.clock(ms)
  local s = math.floor(math.max(ms, 0) / 1000)
  if s >= 3600 then
    return ("%d:%02d:%02d"):format(math.floor(s / 3600), math.floor(s / 60) % 60, s % 60)
  end
  return ("%d:%02d"):format(math.floor(s / 60), s % 60)
end

---@param n integer
---@return string
function M.count(n)
  if n < 1000 then
    return tostring(n)
  elseif n < 1e6 then
    return (("%.1fk"):format(n / 1000):gsub("%.0k$", "k"))
  end
  return (("%.1fM"):format(n / 1e6):gsub("%.0M$", "M"))
end

---@param n integer
---@return string
function M.bytes(n)
  if n < 1024 then
    return n .. " B"
  elseif n < 1024 * 1024 then
    return ("%.0f KB"):format(n / 1024)
  end
  return ("%.1f MB"):format(n / 1024 / 1024)
end

---@param n integer
---@param one string
---@param many? string
---@return string
function M.plural(n, one, many)
  return ("%d %s"):format(n, n == 1 and one or many or one .. "s")
end

---A path seen from the working directory, or from home.
---@param path string
---@param cwd string
---@return string
function M.path(path, cwd)
  if cwd ~= "" and path:sub(1, #cwd + 1) == cwd .. "/" then
    return path:sub(#cwd + 2)
  end
  local home = vim.uv.os_homedir()
  if home and path:sub(1, #home + 1) == home .. "/" then
    return "~/" .. path:sub(#home + 2)
  end
  return path
end

---The first line of a text, cut to so many characters.
---@param text string
---@param max integer
---@return string
function M.first_line(text, max)
  local line = text:match("^%s*([^\r\n]*)") or ""
  local more = #vim.trim(text) > #vim.trim(line)
  -- A character has at most four bytes, so this bounds the work on an endless line.
  line = line:sub(1, max * 4)
  if vim.fn.strchars(line) > max then
    return vim.fn.strcharpart(line, 0, max - 1) .. "…"
  end
  return more and line .. " …" or line
end

return M
