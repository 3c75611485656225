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

---Reads the text again only after lines came that a parser must not see.
---@param buf integer
---@param lang string
---@return cursor_agent.parsers.Check
local function check_text(buf, lang)
  local doubtful, safe, tick = true, true, -1
  vim.api.nvim_buf_attach(buf, false, {
    on_lines = function(_, _, _, first, _, past)
      -- What nests over many lines counts in our own buffers only. It comes many lines at a time.
      doubtful = doubtful
        or vim.bo[buf].buftype ~= "" and (past - first > 1 or lang ~= "markdown")
        or not guard.safe_lines(vim.api.nvim_buf_get_lines(buf, first, past, false))
    end,
    on_reload = function()
      doubtful = true
    end,
    on_detach = function()
      fences[buf] = nil
    end,
  })
  return function()
    local now = vim.api.nvim_buf_get_changedtick(buf)
    if doubtful and now ~= tick then
      tick = now
      local lines = vim.api.nvim_buf_get_lines(buf, 0, -1, false)
      safe = vim.bo[buf].buftype == "" and guard.safe_lines(lines) or guard.safe(lang, lines)
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

---Puts a fence before the parser of a buffer. To be called before the buffer has its text.
---@param buf integer
---@param lang string?
---@param check? cursor_agent.parsers.Check # instead of reading the whole text
function M.fence(buf, lang, check)
  if not lang or fences[buf] or not vim.api.nvim_buf_is_loaded(buf) or not available(lang) then
    return
  end
  local lines = vim.api.nvim_buf_get_lines(buf, 0, -1, false)
  if not guard.safe_lines(lines) and not vim.treesitter.highlighter.active[buf] then
    return
  end
  local ok, parser = pcall(vim.treesitter.get_parser, buf, lang)
  if not ok or not parser then
    return
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
end

---The language of a filetype.
---@param filetype string?
---@return string?
function M.language_of(filetype)
  return filetype and filetype ~= "" and (vim.treesitter.language.get_lang(filetype) or filetype) or nil
end

---Puts fences before the markdown files of the user, which an agent may write as well: those that are open, and those that
---are opened from now on.
function M.watch_files()
  M.watch_files = function() end
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    if vim.bo[buf].buftype == "" and M.language_of(vim.bo[buf].filetype) == "markdown" then
      M.fence(buf, "markdown")
    end
  end
  vim.api.nvim_create_autocmd("BufReadPre", {
    group = vim.api.nvim_create_augroup("cursor_agent_parsers", {}),
    pattern = { "*.md", "*.markdown", "*.mdown", "*.mkd", "*.mdx", "*.mdc" },
    desc = "cursor-agent: see that a text an agent wrote does not abort the parser of markdown",
    callback = function(args)
      M.fence(args.buf, "markdown")
    end,
  })
  vim.api.nvim_create_autocmd("FileType", {
    group = "cursor_agent_parsers",
    desc = "cursor-agent: the same for files of other names",
    callback = function(args)
      if vim.bo[args.buf].buftype == "" and M.language_of(args.match) == "markdown" then
        M.fence(args.buf, "markdown")
      end
    end,
  })
end

return M
