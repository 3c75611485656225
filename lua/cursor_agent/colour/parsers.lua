-- Stands before the parsers of buffers that hold what an agent wrote: a text that could abort Neovim is not parsed, whoever
-- asks for it (Neovim's own highlighter, `vim.treesitter.start`, a plugin that draws markdown).
--
-- A buffer has one parser, which `get_parser` hands to all. It is made here while the buffer is empty, since Neovim 0.10
-- parses at once, and looks at the text before each time.

local guard = require("cursor_agent.colour.guard")

local M = {}

---@alias cursor_agent.parsers.Check fun(parser: vim.treesitter.LanguageTree): boolean whether it may parse now

---@class (exact) cursor_agent.parsers.Fence
---@field parser vim.treesitter.LanguageTree kept: Neovim does not
---@field check cursor_agent.parsers.Check

---@type table<integer, cursor_agent.parsers.Fence>
local fences = {}

---@type table<integer, cursor_agent.parsers.Check> for parsers of markdown that something else made
local checks = {}

---Plugins that draw from the buffer's markdown tree.
local READERS = { "render-markdown", "markview" }

---Whether a plugin draws the markdown of chats.
---@return boolean
function M.has_reader()
  for _, name in ipairs(READERS) do
    if package.loaded[name] then
      return true
    end
  end
  return false
end

---Which check the lines of a user's file have to pass.
---@param lang string
---@return fun(lines: string[]): boolean
local function check_of(lang)
  return lang == "markdown" and guard.safe_lines or guard.safe_code
end

---Reads the text again only after lines came that a parser must not see.
---@param buf integer
---@param lang string
---@return cursor_agent.parsers.Check
local function check_text(buf, lang)
  local doubtful, safe, tick = true, true, -1
  local safe_lines = check_of(lang)
  vim.api.nvim_buf_attach(buf, false, {
    on_lines = function(_, _, _, first, _, past)
      -- What nests over many lines counts in our own buffers only. It comes many lines at a time.
      doubtful = doubtful
        or vim.bo[buf].buftype ~= "" and (past - first > 1 or lang ~= "markdown")
        or not safe_lines(vim.api.nvim_buf_get_lines(buf, first, past, false))
    end,
    on_reload = function()
      doubtful = true
    end,
    on_detach = function()
      fences[buf], checks[buf] = nil, nil
    end,
  })
  return function()
    local now = vim.api.nvim_buf_get_changedtick(buf)
    if doubtful and now ~= tick then
      tick = now
      local lines = vim.api.nvim_buf_get_lines(buf, 0, -1, false)
      safe = vim.bo[buf].buftype == "" and safe_lines(lines) or guard.safe(lang, lines)
      doubtful = not safe
    end
    return safe
  end
end

---Whether a parser of this language can be made.
---@param lang string
---@return boolean
local function available(lang)
  local ok, added = pcall(vim.treesitter.language.add, lang)
  return ok and added ~= false
end

---Lets a parser do its work only while its text may be parsed.
---@param parser vim.treesitter.LanguageTree
---@param check cursor_agent.parsers.Check
local function wrap(parser, check)
  ---@param name "parse"|"_parse"
  ---@param refuse fun(on_parse: fun(problem: string?, trees: table)?): table, boolean?
  local function stand_before(name, refuse)
    local original = parser[name] --[[@as function?]]
    if not original then
      return
    end
    rawset(parser, name, function(self, range, more)
      if check(self) then
        return original(self, range, more)
      end
      if next(self:trees()) then
        -- What they say is no longer so.
        self:invalidate(true)
      end
      return refuse(more)
    end)
  end
  stand_before("parse", function(on_parse)
    if on_parse then
      on_parse(nil, {})
    end
    return {}
  end)
  -- Where parsing goes on in steps, the text may change between them.
  stand_before("_parse", function()
    return {}, true
  end)
end

---Whether the parser that is being made gets its fence from whoever makes it.
local is_making = false

---Puts a fence before the markdown parsers that anything makes for a buffer. Neovim 0.10 parses as soon as one is made,
---which may be before an autocommand of ours: when a modeline says that a file is markdown.
local function fence_new_parsers()
  local LanguageTree = require("vim.treesitter.languagetree") --[[@as table<string, any>]]
  -- After a reload of the plugin it has been replaced before.
  local new = LanguageTree.cursor_agent_new or LanguageTree.new
  LanguageTree.cursor_agent_new = new
  LanguageTree.new = function(source, lang, ...)
    local parser = new(source, lang, ...)
    if lang == "markdown" and type(source) == "number" and not is_making then
      local buf = source == 0 and vim.api.nvim_get_current_buf() or source --[[@as integer]]
      if not fences[buf] then
        checks[buf] = checks[buf] or check_text(buf, lang)
        wrap(parser, checks[buf])
      end
    end
    return parser
  end
end

---Puts a fence before the parser of a buffer. To be called before the buffer has its text.
---@param buf integer
---@param lang string?
---@param check? cursor_agent.parsers.Check # instead of reading the whole text
---@return boolean there it has one
function M.fence(buf, lang, check)
  if fences[buf] then
    return true
  elseif not lang or not vim.api.nvim_buf_is_loaded(buf) or not available(lang) then
    return false
  end
  local lines = vim.api.nvim_buf_get_lines(buf, 0, -1, false)
  if not guard.safe_lines(lines) and not vim.treesitter.highlighter.active[buf] then
    return false
  end
  is_making = checks[buf] == nil
  local ok, parser = pcall(vim.treesitter.get_parser, buf, lang)
  is_making = false
  if not ok or not parser then
    return false
  elseif checks[buf] and lang == "markdown" and not check then
    fences[buf] = { parser = parser, check = checks[buf] }
    return true
  end
  local own = check or check_text(buf, lang)
  if check then
    vim.api.nvim_buf_attach(buf, false, {
      on_detach = function()
        fences[buf] = nil
      end,
    })
  end
  fences[buf] = { parser = parser, check = own }
  wrap(parser, own)
  -- A file that is being read comes in without a word to it.
  parser:invalidate(true)
  return true
end

---Puts a fence before the parser of an empty buffer once it was painted: making a parser is a third of the time that
---opening a chat takes. At once where something reads the buffer already.
---@param buf integer
---@param fence fun()
function M.fence_soon(buf, fence)
  local highlighter = package.loaded["vim.treesitter.highlighter"]
  if M.has_reader() or highlighter and highlighter.active[buf] then
    fence()
  else
    require("cursor_agent.colour.painter").soon(function()
      if vim.api.nvim_buf_is_loaded(buf) then
        fence()
      end
    end)
  end
end

---The language of a filetype.
---@param filetype string?
---@return string?
function M.language_of(filetype)
  return filetype and filetype ~= "" and (vim.treesitter.language.get_lang(filetype) or filetype) or nil
end

---@type table<string, boolean> whether parts of a language can be markdown
local injects = {}

---Whether parts of a text in this language can be markdown: an example in a help file, a comment.
---@param lang string
---@return boolean
local function injects_markdown(lang)
  if injects[lang] == nil then
    local ok, query = pcall(vim.treesitter.query.get, lang, "injections")
    local found = false
    if ok and query then
      found = vim.tbl_contains(query.captures, "injection.language")
        or vim.tbl_contains(query.captures, "language")
        or vim.inspect(query.info.patterns):find("markdown", 1, true) ~= nil
    end
    injects[lang] = found
  end
  return injects[lang]
end

---Puts a fence before the parser of a user's file, which an agent may write as well, where it can come to parse markdown.
---@param buf integer
function M.fence_file(buf)
  local buftype = vim.bo[buf].buftype
  if fences[buf] or (buftype ~= "" and buftype ~= "help") then
    return
  end
  local lang = M.language_of(vim.bo[buf].filetype)
  -- What nothing colours is parsed by nothing, and making a parser would be felt in a large file.
  if lang == "markdown" or (lang and vim.treesitter.highlighter.active[buf] and injects_markdown(lang)) then
    M.fence(buf, lang)
  end
end

---Puts fences before the files of the user: those that are open, and those that are opened from now on.
function M.watch_files()
  M.watch_files = function() end
  fence_new_parsers()
  -- An agent has yet to start before it can write one of them.
  require("cursor_agent.colour.painter").soon(function(pause)
    for _, buf in ipairs(vim.api.nvim_list_bufs()) do
      pause()
      if vim.api.nvim_buf_is_loaded(buf) then
        M.fence_file(buf)
      end
    end
  end)
  vim.api.nvim_create_autocmd("BufReadPre", {
    group = vim.api.nvim_create_augroup("cursor_agent_parsers", {}),
    pattern = { "*.md", "*.markdown", "*.mdown", "*.mkd", "*.mdx", "*.mdc" },
    desc = "cursor-agent: protect the markdown parser from text that crashes it",
    callback = function(args)
      M.fence(args.buf, "markdown")
    end,
  })
  vim.api.nvim_create_autocmd("FileType", {
    group = "cursor_agent_parsers",
    desc = "cursor-agent: protect the markdown parser in other files",
    callback = function(args)
      M.fence_file(args.buf)
      -- What handles its filetype later may highlight it.
      vim.schedule(function()
        if vim.api.nvim_buf_is_loaded(args.buf) then
          M.fence_file(args.buf)
        end
      end)
    end,
  })
end

return M
