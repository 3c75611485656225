-- Compiles the queries of a language. That of its colours in pieces: as a whole it takes longer than a frame.

local M = {}

---Patterns compiled at once: few at first, and more as long as that is quick.
local FIRST_PATTERNS = 2
local MOST_PATTERNS = 4
---A piece that takes longer makes the next one smaller, one that takes less makes it larger. Seconds on the processor: a
---busy machine says nothing about the language.
local SLOW, QUICK = 0.006, 0.003

---Neovim's own highlighter has these compiled as a whole, for the prompt.
local WHOLE = { markdown = true, markdown_inline = true }

---@param fn function
---@param name string
---@return any
local function upvalue_of(fn, name)
  local at, upvalue, value = 0, nil, nil ---@type integer, string?, any
  repeat
    at = at + 1
    upvalue, value = debug.getupvalue(fn, at)
  until not upvalue or upvalue == name
  return value
end

local kept = {} ---@type any[]

---Compiles a query as a whole, for good. Neovim 0.10 forgets the result at the next garbage collection, unless something
---holds what its cache holds; compiling it again for each new prompt or block would be felt.
---@param lang string
---@param name string
---@return vim.treesitter.Query?
function M.whole(lang, name)
  local get = vim.treesitter.query.get
  local ok, query = pcall(get, lang, name)
  if vim.fn.has("nvim-0.11") == 0 and type(get) == "function" then
    local cache = upvalue_of(get, "cache")
    kept[#kept + 1] = type(cache) == "table" and cache[lang .. "%%" .. name] or nil
  end
  return ok and query or nil
end

---Whether a query was put in place of the files by `vim.treesitter.query.set`.
---@param lang string
---@param name string
---@return boolean
local function is_set(lang, name)
  local set = upvalue_of(vim.treesitter.query.set, "explicit_queries")
  local of_lang = type(set) == "table" and rawget(set, lang)
  return type(of_lang) == "table" and of_lang[name] ~= nil
end

---Where each pattern of a query's text begins, and the end of the text.
---@param text string
---@return integer[]
function M.patterns(text)
  local begins = {} ---@type integer[]
  local depth, at = 0, 1
  while true do
    local from = text:find('[;"()%[%]]', at)
    if not from then
      break
    end
    local char = text:sub(from, from)
    at = from + 1
    if depth == 0 and char:find('[("%[]') then
      begins[#begins + 1] = from
    end
    if char == ";" then
      at = text:find("\n", at, true) or #text + 1
    elseif char == '"' then
      repeat
        local quote = text:find('["\\]', at)
        at = quote and quote + 1 or #text + 1
        local escaped = quote and text:sub(quote, quote) == "\\"
        at = escaped and at + 1 or at
      until not escaped
    else
      depth = math.max(depth + ((char == "(" or char == "[") and 1 or -1), 0)
    end
  end
  begins[#begins + 1] = #text + 1
  return begins
end

---@param lang string
---@param name string
---@return string
local function text_of(lang, name)
  local texts = {} ---@type string[]
  for _, path in ipairs(vim.treesitter.query.get_files(lang, name)) do
    local file = io.open(path, "rb")
    if file then
      texts[#texts + 1] = file:read("*a")
      file:close()
    end
  end
  return table.concat(texts, "\n")
end

---Whether Neovim knows everything that a query asks for. Plugins bring queries along, and what they ask for only when they
---are loaded.
---@param query vim.treesitter.Query
---@return boolean
local function can_run(query)
  local known = {} ---@type table<string, boolean>
  for _, list in ipairs({ vim.treesitter.query.list_predicates(), vim.treesitter.query.list_directives() }) do
    for _, name in ipairs(list) do
      known[name] = true
    end
  end
  for _, pattern in pairs(query.info.patterns) do
    for _, predicate in ipairs(pattern) do
      local name = tostring(predicate[1])
      if not known[name] and not known[name:match("^not%-(.*)") or name] then
        return false
      end
    end
  end
  return true
end

---Compiles a query, of most languages in pieces that find together what the whole would. A pattern that does not fit the
---parser, or asks for what Neovim does not know, is left out.
---@param lang string
---@param name string
---@param pause cursor_agent.syntax.Pause
---@return vim.treesitter.Query[]
function M.pieces(lang, name, pause)
  local set = is_set(lang, name)
  if WHOLE[lang] or set then
    pause(true)
    local whole = M.whole(lang, name)
    if whole and can_run(whole) then
      return { whole }
    elseif set then
      return {}
    end
  end
  local ok, text = pcall(text_of, lang, name)
  local begins = M.patterns(ok and text or "")
  local queries = {} ---@type vim.treesitter.Query[]
  local at, count = 1, FIRST_PATTERNS
  while at < #begins do
    pause(true)
    local past = math.min(at + count, #begins)
    local began = os.clock()
    local fits, query = pcall(vim.treesitter.query.parse, lang, text:sub(begins[at], begins[past] - 1))
    local took = os.clock() - began
    if fits and not can_run(query) then
      fits = false
    end
    if not fits and past - at > 1 then
      -- Whatever is wrong with one of them, the others may do.
      count = math.floor((past - at) / 2)
    else
      queries[#queries + 1] = fits and query or nil
      at = past
      count = took > SLOW and math.max(math.floor(count / 2), 1)
        or took < QUICK and math.min(count * 2, MOST_PATTERNS)
        or count
    end
  end
  return queries
end

return M
