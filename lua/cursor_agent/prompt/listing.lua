-- The files of a workspace: listed in the background, and searched fast enough for every key.

local M = {}

---Files listed at most.
local MAX_FILES = 100000

---A listing is used again for this long; then a new one is made while the old one serves.
local FRESH_MS = 10000

---Looking through directories goes on for this long at once.
local BUDGET_NS = 2e6

---This many are ranked.
local MAX_RANKED = 1000

local SKIPPED = { ".git", "node_modules", "target", ".venv" }

---@class (exact) cursor_agent.listing.Found what the last word found: one that goes on from it finds no others
---@field word string
---@field files integer[]

---@class (exact) cursor_agent.Listing
---@field files string[]
---@field lower string[]
---@field names integer[] where in each the name begins
---@field at integer
---@field running boolean
---@field found cursor_agent.listing.Found?

---@type table<string, cursor_agent.Listing>
local listings = {}

---Takes file after file into a listing, some at a time.
---@param listing cursor_agent.Listing
---@param next_file fun(): string?, boolean? the next one, and whether it is to be left out
local function fill(listing, next_file)
  local files, lower, names = {}, {}, {} ---@type string[], string[], integer[]
  local function step()
    local deadline = vim.uv.hrtime() + BUDGET_NS
    local file, leave_out ---@type string?, boolean?
    repeat
      file, leave_out = next_file()
      if file and not leave_out then
        local i = #files + 1
        files[i], lower[i] = file, file:lower()
        names[i] = (file:match("^.*()/") or 0) --[[@as integer]] + 1
      end
    until not file or #files >= MAX_FILES or vim.uv.hrtime() > deadline
    if file and #files < MAX_FILES then
      vim.defer_fn(step, 1)
      return
    end
    listing.files, listing.lower, listing.names, listing.found = files, lower, names, nil
    listing.at, listing.running = vim.uv.now(), false
  end
  step()
end

---Looks through a directory, where no program lists its files.
---@param cwd string
---@return fun(): string?, boolean?
local function walk(cwd)
  local entries = vim.fs.dir(cwd, {
    depth = 6,
    skip = function(dir)
      return not vim.list_contains(SKIPPED, vim.fs.basename(dir))
    end,
  })
  return function()
    local name, kind = entries()
    return name, kind ~= "file"
  end
end

---@param listing cursor_agent.Listing
---@param cwd string
---@param commands string[][] that list files, separated by NUL bytes; the first that succeeds counts
local function list_with(listing, cwd, commands)
  local command = table.remove(commands, 1)
  if not command then
    return fill(listing, walk(cwd))
  end
  local ok = pcall(
    vim.system,
    command,
    { cwd = cwd },
    vim.schedule_wrap(function(result)
      if result.code ~= 0 then
        return list_with(listing, cwd, commands)
      end
      fill(listing, result.stdout:gmatch("[^%z]+"))
    end)
  )
  if not ok then
    list_with(listing, cwd, commands)
  end
end

---@param cwd string
---@return cursor_agent.Listing
local function listing_of(cwd)
  local listing = listings[cwd]
  if not listing then
    listing = { files = {}, lower = {}, names = {}, at = -FRESH_MS, running = false }
    listings[cwd] = listing
  end
  if not listing.running and vim.uv.now() - listing.at >= FRESH_MS then
    listing.running = true
    list_with(listing, cwd, {
      { "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard" },
      { "rg", "--files", "--null" },
    })
  end
  return listing
end

---The files of a directory, from memory; a stale listing is made again in the background.
---@param cwd string
---@return string[]
function M.files(cwd)
  return listing_of(cwd).files
end

---Whether all characters of a word stand in a text, in their order.
---@param text string
---@param chars string[]
---@return boolean
local function has_all(text, chars)
  local from = 1
  for i = 1, #chars do
    local at = text:find(chars[i] --[[@as string]], from, true)
    if not at then
      return false
    end
    from = at + 1
  end
  return true
end

---The files a word may mean, as numbers, in classes: the name begins with it, has it, the path has it, or its letters.
---@param listing cursor_agent.Listing
---@param word string lower-case
---@return integer[][]
local function classify(listing, word)
  local chars = vim.split(word, "")
  local found = {} ---@type integer[]
  local classes = { {}, {}, {}, {} } ---@type integer[][]
  ---@param i integer
  local function look(i)
    local text, name =
      listing.lower[i], --[[@as string]]
      listing.names[i] --[[@as integer]]
    local at = text:find(word, 1, true)
    if at and at < name then
      at = text:find(word, name, true) or 0
    end
    if at or has_all(text, chars) then
      local class = classes[not at and 4 or at == 0 and 3 or at > name and 2 or 1]
      class[#class + 1] = i
      found[#found + 1] = i
    end
  end
  local before = listing.found
  if before and vim.startswith(word, before.word) then
    for _, i in ipairs(before.files) do
      look(i)
    end
  else
    for i = 1, #listing.lower do
      look(i)
    end
  end
  listing.found = { word = word, files = found }
  return classes
end

---What begins with a word first, in either case; else in the order it has. Neovim's own order prefers the case as typed, so
---that `re` would find greet.sh before README.md.
---@generic T
---@param list T[]
---@param word string
---@param text_of fun(item: T): string a path or a name
---@return T[]
function M.beginnings_first(list, word, text_of)
  local first, rest = {}, {}
  word = word:lower()
  for _, item in ipairs(list) do
    local text = text_of(item):lower()
    local begins = vim.startswith(text, word) or vim.startswith(text:match("[^/]*$") or "", word)
    table.insert(begins and first or rest, item)
  end
  return vim.list_extend(first, rest)
end

---The files that fit a word, best first.
---@param cwd string
---@param word string
---@param max integer
---@return string[]
function M.search(cwd, word, max)
  local listing = listing_of(cwd)
  if word == "" then
    return vim.list_slice(listing.files, 1, max)
  end
  local files = {} ---@type string[]
  for _, class in ipairs(classify(listing, word:lower())) do
    for i = 1, math.min(#class, MAX_RANKED - #files) do
      files[#files + 1] = listing.files[class[i]]
    end
  end
  -- Without its `limit`: it would stop at the first ones that match, not at the best.
  local best = M.beginnings_first(vim.fn.matchfuzzy(files, word), word, tostring)
  return vim.list_slice(best, 1, max)
end

return M
