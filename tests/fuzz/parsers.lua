-- Runs in a child Neovim: gives generated documents to every parser there is, as far as the guard lets them through.
--
-- `FUZZ_SEED` and `FUZZ_FROM` lead to the same documents again; so many as `FUZZ_DOCUMENTS` says are parsed; `FUZZ_OUT` is
-- written before each, so that whoever started this knows which one Neovim did not survive.

local root = assert(vim.env.FUZZ_ROOT)
vim.opt.runtimepath:prepend(root)
local guard = require("cursor_agent.colour.guard")

local seed = assert(tonumber(vim.env.FUZZ_SEED))
local first = tonumber(vim.env.FUZZ_FROM) or 1
local documents = assert(tonumber(vim.env.FUZZ_DOCUMENTS))
local LANGUAGES = { "markdown", "c", "lua", "vim", "vimdoc", "query", "markdown_inline" }

local state = 0

---@param n integer
---@return integer from 1 to n
local function random(n)
  -- Park and Miller's, which every number fits.
  state = (state * 16807) % 2147483647
  return state % n + 1
end

---@generic T
---@param list T[]
---@return T
local function pick(list)
  return list[random(#list)]
end

local WORDS = {
  "a",
  "word",
  "\\",
  "*b*",
  "`c`",
  "[l](u)",
  "![",
  "<b>",
  "$x$",
  "é",
  "\255",
  "\0",
  "~~s~~",
  "|",
  "https://x.y",
  ":)",
  "[^1]:",
}

local MARKDOWN = {
  function()
    return pick({ ">", "> ", ">\t", " > " }):rep(random(130))
  end,
  function()
    return pick({ "- ", "* ", "+ ", "1. ", "2) ", "-\t", "  ", "\t", "> - ", "> 1. ", "- > " }):rep(
      random(pick({ 3, 60, 110 }))
    )
  end,
  function()
    local parts = {}
    for i = 1, random(pick({ 5, 90 })) do
      parts[i] = pick({ ">", "> ", "- ", "* ", "+ ", "1. ", "9) ", "   ", "\t" })
    end
    return table.concat(parts)
  end,
  function()
    return pick({ "```", "~~~", "`````", ("`"):rep(random(300)), "    ", "> ```", "- ~~~" })
      .. pick({ "", "lua", "c", "vim", "query", "vimdoc", "markdown", "{=html}", ("x"):rep(random(500)) })
  end,
  function()
    return pick({ "<div>", "<pre", "<!--", "<?php", "<![CDATA[", "</div>", "<script>", "<a href='", "-->", "<x " })
  end,
  function()
    return pick({ "| a | b |", "|---|:-:|", "|", "a | b", "-|-", ("|a"):rep(random(100)) })
  end,
  function()
    return pick({
      "# h",
      "###### ",
      "=====",
      "---",
      "***",
      "- - -",
      "+++",
      "---\n",
      "[a]: b 'c",
      ("#"):rep(random(300)),
    })
  end,
  function()
    return ""
  end,
}

---@param depth integer
---@return string
local function markdown(depth)
  local lines = {}
  local indent = 0
  for i = 1, random(pick({ 4, 12, 40 })) do
    local kind = random(12)
    if kind <= #MARKDOWN then
      lines[i] = assert(MARKDOWN[kind])() .. (random(2) == 1 and pick(WORDS) or "")
    elseif kind == 9 and depth < 3 then
      local marks = ("`"):rep(3 + random(8))
      lines[i] = marks .. pick(LANGUAGES) .. "\n" .. markdown(depth + 1) .. "\n" .. marks
    elseif kind == 10 then
      -- A list that grows line by line.
      indent = math.min(indent + random(3) - 1, 130)
      lines[i] = (" "):rep(indent) .. pick({ "- ", "1. ", "> ", "* a", "" }) .. pick(WORDS)
    else
      local words = {}
      for k = 1, random(20) do
        words[k] = pick(WORDS)
      end
      lines[i] = table.concat(words, " ")
    end
  end
  return table.concat(lines, pick({ "\n", "\n", "\n", "\r\n", "\n\n" }))
end

local TOKENS = {
  c = {
    "int",
    "x",
    "=",
    "(",
    ")",
    "{",
    "}",
    ";",
    "#if 0",
    "#define X \\",
    "#endif",
    "/*",
    "*/",
    "//",
    '"',
    "'",
    'R"(',
    "<",
    ">",
    "[",
    "]",
    "\\",
    "0x1p",
    "case",
  },
  lua = {
    "local",
    "x",
    "=",
    "(",
    ")",
    "{",
    "}",
    "[[",
    "]]",
    "[==[",
    "]==]",
    "--[[",
    "--[==[",
    "--",
    '"',
    "'",
    "function",
    "end",
    "if",
    "then",
    "goto",
    "::",
    "\\z",
  },
  vim = {
    "let",
    "x",
    "=<<",
    "trim",
    "EOF",
    "lua",
    "<<",
    "python",
    "endif",
    "if",
    "function!",
    "s:f()",
    "endfunction",
    '"',
    "'",
    "|",
    "\\",
    '"\\ ',
    "call",
    "syn",
    "autocmd",
    "normal",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    ".",
    "set",
    "s/a/b/",
  },
  vimdoc = {
    "*tag*",
    "|link|",
    ">",
    "<",
    ">lua",
    "~",
    "====",
    "----",
    "HEAD ~",
    "`c`",
    "{arg}",
    "{",
    "}",
    "'opt'",
    "CTRL-",
    "<CR>",
    "\t",
    "vim:",
  },
  query = { "(", ")", "[", "]", "@a", "#eq?", '"', ";", ";; inherits: c", "_", ":", "!", "+", "*", "?", ".", "field:" },
}
TOKENS.markdown_inline =
  vim.list_extend({ "*", "**", "_", "`", "``", "~", "[", "](", ")", "<", ">", "$", "$$", "\\" }, WORDS)

---@param lang string
---@return string
local function code(lang)
  local tokens = TOKENS[lang] --[=[@as string[] ]=]
  local parts = {}
  local shape = random(6)
  -- More marks than this are taken out before, in markdown.
  local most = lang == "markdown_inline" and 150 or pick({ 20, 200, 600 })
  if shape == 1 then
    return pick(tokens):rep(random(lang == "markdown_inline" and 150 or 400), pick({ "", " ", "\n" }))
  elseif shape == 2 then
    local open, close = pick({ "(", "{", "[", "do ", "/*", "--[[" }), pick({ ")", "}", "]", " end", "*/", "" })
    local times = random(140)
    return open:rep(times) .. close:rep(random(times))
  elseif shape == 3 then
    for i = 1, random(140) do
      parts[i] = (" "):rep(i) .. pick(tokens)
    end
    return table.concat(parts, "\n")
  elseif shape == 4 then
    return pick({
      "let x =<< ",
      "lua << ",
      "[" .. ("="):rep(random(300)),
      "--[" .. ("="):rep(random(300)) .. "[",
      "#define ",
    }) .. ("E"):rep(random(pick({ 20, 400 }))) .. "\n" .. ("x\n"):rep(random(10))
  end
  for i = 1, random(most) do
    parts[i] = pick(tokens) .. pick({ "", " ", " ", "\n", "\r", "\t" })
  end
  return table.concat(parts)
end

local given, held = 0, 0
local out = assert(io.open(assert(vim.env.FUZZ_OUT), "wb"))
local number = first - 1
while given < documents do
  number = number + 1
  state = math.floor((seed * 7919 + number * 104729) % 2147483646) + 1
  for _ = 1, 5 do
    random(10)
  end
  local lang = random(2) == 1 and "markdown" or pick(LANGUAGES)
  out:seek("set", 0)
  out:write(("%-12d%-20s"):format(number, lang))
  out:flush()
  local text = lang == "markdown" and markdown(1) or code(lang)
  local lines = vim.split(text, "\n", { plain = true })
  if guard.safe(lang, lines) then
    given = given + 1
    if lang == "markdown" then
      text = table.concat(require("cursor_agent.colour.markdown").thin_out(lines), "\n"):sub(1, 12 * 1024)
    end
    local ok, parser = pcall(vim.treesitter.get_string_parser, text, lang)
    if ok then
      parser:parse(true)
    end
  else
    held = held + 1
  end
end
out:seek("set", 0)
out:write(("done %d given, %d held back%s"):format(given, held, (" "):rep(20)))
out:close()
