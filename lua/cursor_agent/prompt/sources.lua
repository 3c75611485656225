-- What `@` names besides files and the code window: the quickfix list, a terminal's last output, a symbol, a URL.

local format = require("cursor_agent.render.format")
local limit = require("cursor_agent.prompt.limit")

local M = {}

---Longer URLs are not attached: half a URL leads elsewhere.
local URL_BYTES = 2048

---@type table<string, string> by the letter the list has
local TYPES = { e = "error", w = "warning", i = "info", n = "note" }

---The quickfix list as it is now.
---@param cwd string
---@return cursor_agent.context.Item?, string?
function M.quickfix(cwd)
  local list = vim.fn.getqflist({ items = 0, title = 0 })
  local lines = {} ---@type string[]
  for _, one in ipairs(list.items) do
    local place = one.bufnr > 0 and format.path(vim.api.nvim_buf_get_name(one.bufnr), cwd) or one.module or ""
    local numbers = { place ~= "" and place or nil }
    if one.lnum > 0 then
      numbers[#numbers + 1] = tostring(one.lnum)
      numbers[#numbers + 1] = one.col > 0 and tostring(one.col) or nil
    end
    local parts = { #numbers > 0 and table.concat(numbers, ":") or nil }
    parts[#parts + 1] = TYPES[one.type:lower()]
    parts[#parts + 1] = vim.trim((one.text:gsub("%s*\n%s*", " ")))
    lines[#lines + 1] = table.concat(parts, ": ")
  end
  if #lines == 0 then
    return nil, "the quickfix list is empty"
  end
  local title = "Quickfix list of the editor"
  if list.title and list.title ~= "" then
    title = ("%s (%s)"):format(title, format.first_line(list.title, 80))
  end
  return limit.item("@quickfix", title, lines, "first", "entry", "entries")
end

---The terminal used last: the current one, one on the screen, or any other.
---@return integer? buf
local function last_terminal()
  local best, used ---@type integer?, number?
  for _, info in ipairs(vim.fn.getbufinfo({ bufloaded = 1 })) do
    if vim.bo[info.bufnr].buftype == "terminal" then
      local at = info.lastused + (#info.windows > 0 and 1e10 or 0)
      if not used or at >= used then
        best, used = info.bufnr, at
      end
    end
  end
  return best
end

---What a terminal shows, up to its last line with text.
---@return cursor_agent.context.Item?, string?
function M.terminal()
  local buf = last_terminal()
  if not buf then
    return nil, "no terminal in this Neovim; :terminal opens one"
  end
  -- A terminal's lines end in blanks, and those below its output are empty.
  local count = vim.api.nvim_buf_line_count(buf)
  local last = count
  while last > 0 and vim.api.nvim_buf_get_lines(buf, last - 1, last, false)[1]:match("^%s*$") do
    last = last - 1
  end
  if last == 0 then
    return nil, "the terminal shows nothing yet"
  end
  local lines = vim.tbl_map(function(line)
    return (line:gsub("%s+$", ""))
  end, vim.api.nvim_buf_get_lines(buf, 0, last, false))
  local title = vim.b[buf].term_title
  title = type(title) == "string" and title ~= "" and not title:find("^term://") and title
    or vim.api.nvim_buf_get_name(buf):gsub("^term://.-//%d*:", "")
  return limit.item(
    "@terminal",
    ("Output of the terminal %s"):format(format.first_line(title, 80)),
    lines,
    "last",
    "line",
    "lines"
  )
end

---The lines of a symbol in the code window's buffer or, if a language server finds it, in the workspace.
---@param name string
---@param cwd string
---@param lines_of fun(path: string, first: integer, last: integer): string[]?
---@return cursor_agent.context.Item?, string?
function M.symbol(name, cwd, lines_of)
  local symbols = require("cursor_agent.prompt.symbols")
  local found ---@type cursor_agent.Symbol?
  local label = "@symbol:" .. name
  local function prepare(done)
    symbols.find(name, function(one, why)
      found = one
      done(why)
    end)
  end
  local asks = symbols.asks()
  if not asks then
    local missing ---@type string?
    prepare(function(why)
      missing = why
    end)
    if missing then
      return nil, missing
    end
  end
  return {
    label = label,
    prepare = asks and prepare or nil,
    waits_for = "the language server",
    blocks = function()
      if not found then
        return nil, ("%s was not found"):format(label)
      end
      local short = format.path(found.path, cwd)
      local lines = lines_of(found.path, found.first, found.last)
      if not lines then
        return nil, ("%s cannot be read"):format(short)
      end
      local kept, cut = limit.lines(lines, "first", "line", "lines")
      local shown = cut and ("%s (%s)"):format(label, cut) or label
      local text = ("%s, lines %d-%d of %s%s:\n%s"):format(
        name,
        found.first,
        found.last,
        short,
        cut and (", %s"):format(cut) or "",
        limit.fenced(kept, vim.filetype.match({ filename = found.path }) or "")
      )
      return { { type = "text", label = shown, path = found.path, line = found.first, text = text } }
    end,
  }
end

---Whether a mention is a web address.
---@param mention string
---@return boolean
function M.is_url(mention)
  return mention:find("^https?://[^%s/]") ~= nil
end

---A URL: only passed to the agent, nothing is fetched here.
---@param url string
---@return cursor_agent.context.Item?, string?
function M.url(url)
  if #url > URL_BYTES then
    return nil, ("the URL is %s long; at most %s can be attached"):format(format.bytes(#url), format.bytes(URL_BYTES))
  end
  local label = "@" .. url
  return {
    label = label,
    blocks = function()
      return { { type = "link", label = label, uri = url } }
    end,
  }
end

return M
