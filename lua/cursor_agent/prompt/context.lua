-- What can be attached to a prompt: files, selections, diagnostics and whatever else `@` can name.

local clipboard = require("cursor_agent.prompt.clipboard")
local format = require("cursor_agent.render.format")
local limit = require("cursor_agent.prompt.limit")
local loaded = require("cursor_agent.files.loaded")
local regular = require("cursor_agent.files.regular")
local sources = require("cursor_agent.prompt.sources")

local M = {}

---@class (exact) cursor_agent.context.Item something attached to a prompt
---@field label string as shown: `@src/parser.rs`
---@field text? string the content behind a label in the text
---@field comment? cursor_agent.review.Comment
---@field waits_for? string what is asked for in `prepare`
---@field prepare? fun(done: fun(why: string?)) fetches what takes time, each time it is sent; `blocks` works afterwards
---@field blocks fun(): cursor_agent.Block[]?, string? made when the prompt is sent

---@param path string
---@return integer? buf loaded
local function loaded_buffer(path)
  local buf = vim.fn.bufnr("^" .. vim.fn.fnameescape(path) .. "$")
  if buf ~= -1 and vim.api.nvim_buf_is_loaded(buf) and vim.api.nvim_buf_get_name(buf) == path then
    return buf
  end
end

---@param path string
---@param first? integer
---@param last? integer
---@return string[]?
local function lines_of(path, first, last)
  local buf = loaded_buffer(path)
  local lines ---@type string[]
  if buf then
    lines = vim.api.nvim_buf_get_lines(buf, 0, -1, false)
  else
    local text = regular.read(path, loaded.MAX_BYTES)
    if not text then
      return nil
    end
    lines = vim.split((text:gsub("\n$", "")), "\n", { plain = true })
  end
  return vim.list_slice(lines, first or 1, last or #lines)
end

local fenced = limit.fenced

M.fenced = fenced

---@param path string
---@param cwd string
---@param first? integer
---@param last? integer
---@return cursor_agent.context.Item
function M.file(path, cwd, first, last)
  local short = format.path(path, cwd)
  if not first then
    return {
      label = "@" .. short,
      blocks = function()
        local buf = loaded_buffer(path)
        local text = buf
          and vim.bo[buf].modified
          and table.concat(vim.api.nvim_buf_get_lines(buf, 0, -1, false), "\n") .. "\n"
        return { { type = "file", label = "@" .. short, path = path, text = text or nil } }
      end,
    }
  end
  last = last or first
  local span = first == last and tostring(first) or ("%d-%d"):format(first, last)
  local label = ("@%s:%s"):format(short, span)
  return {
    label = label,
    blocks = function()
      local lines = lines_of(path, first, last)
      if not lines then
        return nil, ("%s cannot be read"):format(short)
      end
      local text = ("Lines %s of %s:\n%s"):format(
        span,
        short,
        fenced(lines, vim.filetype.match({ filename = path }) or "")
      )
      return { { type = "text", label = label, path = path, line = first, text = text } }
    end,
  }
end

---Text of a buffer as it is, saved or not.
---@param buf integer
---@param cwd string
---@return cursor_agent.context.Item
function M.unsaved(buf, cwd)
  local name = vim.api.nvim_buf_get_name(buf)
  local short = name ~= "" and format.path(name, cwd) or ("buffer %d"):format(buf)
  local label = "@" .. short .. " (unsaved)"
  return {
    label = label,
    blocks = function()
      local lines = vim.api.nvim_buf_get_lines(buf, 0, -1, false)
      local text = ("%s has unsaved changes in the editor; this is its current text; the disk has an older version:\n%s"):format(
        short,
        fenced(lines, vim.bo[buf].filetype)
      )
      return { { type = "text", label = label, path = name ~= "" and name or nil, text = text } }
    end,
  }
end

local IMAGES = { png = "image/png", jpg = "image/jpeg", jpeg = "image/jpeg", gif = "image/gif", webp = "image/webp" }

---The type of an image by its file name; nil if it is not one.
---@param path string
---@return string?
function M.image_type(path)
  local extension = path:match("%.(%w+)$")
  return extension and IMAGES[extension:lower()]
end

---@param path string
---@return cursor_agent.context.Item
function M.image(path)
  local label = "img " .. vim.fs.basename(path)
  return {
    label = label,
    blocks = function()
      local data, why = regular.read(path, clipboard.MOST_BYTES)
      if not data then
        local large = (vim.uv.fs_stat(path) or { size = 0 }).size > clipboard.MOST_BYTES
        return nil, large and clipboard.too_large(path) or ("%s: %s"):format(path, why)
      end
      return {
        { type = "image", label = label, path = path, data = vim.base64.encode(data), mime = M.image_type(path) },
      }
    end,
  }
end

---@param cwd string
---@return cursor_agent.context.Item?, string?
local function selection(cwd)
  local win = require("cursor_agent.window.code").current()
  if not win then
    return nil, "no code window to take a selection from"
  end
  local buf = vim.api.nvim_win_get_buf(win)
  local first = vim.api.nvim_buf_get_mark(buf, "<")[1]
  local last = vim.api.nvim_buf_get_mark(buf, ">")[1]
  if first == 0 or last == 0 then
    return nil, "nothing selected in the code window yet"
  end
  return M.range(buf, first, last, cwd)
end

---Lines of a buffer, read now: the buffer may change before the prompt is sent.
---@param buf integer
---@param first integer
---@param last integer
---@param cwd string
---@return cursor_agent.context.Item
function M.range(buf, first, last, cwd)
  local name = vim.api.nvim_buf_get_name(buf)
  local short = name ~= "" and format.path(name, cwd) or ("buffer %d"):format(buf)
  local lines = vim.api.nvim_buf_get_lines(buf, first - 1, last, false)
  local label = ("@selection %s:%d-%d"):format(short, first, last)
  local text = ("Selected lines %d-%d of %s:\n%s"):format(first, last, short, fenced(lines, vim.bo[buf].filetype))
  return {
    label = label,
    blocks = function()
      return { { type = "text", label = label, path = name ~= "" and name or nil, line = first, text = text } }
    end,
  }
end

local SEVERITY = { "error", "warning", "info", "hint" }

---@param cwd string
---@return cursor_agent.context.Item?, string?
local function diagnostics(cwd)
  local found = vim.diagnostic.get()
  if #found == 0 then
    return nil, "no diagnostics"
  end
  table.sort(found, function(a, b)
    if a.bufnr ~= b.bufnr then
      return a.bufnr < b.bufnr
    end
    return a.lnum < b.lnum
  end)
  local lines = {} ---@type string[]
  for _, one in ipairs(found) do
    local path = format.path(vim.api.nvim_buf_get_name(one.bufnr), cwd)
    lines[#lines + 1] = ("%s:%d:%d: %s: %s"):format(path, one.lnum + 1, one.col + 1, SEVERITY[
      one.severity --[[@as integer]]
    ] or "", one.message:gsub("\n", " "))
  end
  local label = "@diagnostics"
  return {
    label = label,
    blocks = function()
      return { { type = "text", label = label, text = "Diagnostics in the editor:\n" .. table.concat(lines, "\n") } }
    end,
  }
end

---Give up on git after this long. The user can keep typing meanwhile.
local GIT_MS = 30000

---Runs git, and calls back with its output, or with one line saying why it failed.
---@param cwd string
---@param args string[]
---@param done fun(text: string?, why: string?)
local function git(cwd, args, done)
  local function answer(text, why)
    done(text, why and ("git %s failed: %s"):format(args[1], format.first_line(why, 200)))
  end
  local command = vim.list_extend({ "git" }, args)
  local ok, problem = pcall(
    vim.system,
    command,
    { cwd = cwd, text = true, timeout = GIT_MS },
    vim.schedule_wrap(function(result)
      if result.code == 0 then
        answer(result.stdout or "")
      else
        answer(nil, result.stderr ~= "" and result.stderr or ("exit %d"):format(result.code))
      end
    end)
  )
  if not ok then
    answer(nil, tostring(problem))
  end
end

---What git compares the files with.
---@param cwd string
---@param done fun(base: string?, why: string?)
local function diff_base(cwd, done)
  git(cwd, { "rev-parse", "--verify", "--end-of-options", "HEAD" }, function(head, problem)
    if head then
      return done(vim.trim(head))
    end
    git(cwd, { "rev-parse", "--git-dir" }, function(dir)
      if not dir then
        return done(nil, problem)
      end
      -- Before the first commit everything counts as changed: compare with an empty tree.
      git(cwd, { "hash-object", "-t", "tree", "/dev/null" }, function(tree)
        done(vim.trim(tree or "HEAD"))
      end)
    end)
  end)
end

---@param cwd string
---@return cursor_agent.context.Item
local function git_diff(cwd)
  local text ---@type string?
  return {
    label = "@diff",
    waits_for = "git",
    prepare = function(done)
      diff_base(cwd, function(base, problem)
        if not base then
          done(problem)
          return
        end
        git(cwd, { "diff", "--no-color", "--no-ext-diff", base }, function(diff, why)
          diff = diff and vim.trim(diff)
          if not diff or diff == "" then
            done(why or "git diff: nothing has changed since the last commit")
            return
          end
          text = "Uncommitted changes:\n" .. fenced(vim.split(diff, "\n"), "diff")
          done()
        end)
      end)
    end,
    blocks = function()
      return { { type = "text", label = "@diff", text = text or "" } }
    end,
  }
end

---Mentions that are words instead of paths.
M.names = { "selection", "diagnostics", "diff", "buffer", "quickfix", "terminal", "clipboard" }

---Whether a mention cannot be a path, so that one that names nothing is a mistake.
---@param mention string
---@return boolean
local function is_named(mention)
  return vim.list_contains(M.names, mention) or mention:find("^symbol:.") ~= nil or sources.is_url(mention)
end

---A path as a mention. Braces protect characters that would end it.
---@param path string
---@return string
function M.mention(path)
  local loose = path:find("[%s@{]") or path:find("[.,;:!?)%]'\"]$")
  return loose and ("@{%s}"):format(path) or "@" .. path
end

---What a mention refers to: `src/parser.rs`, `src/parser.rs:12-40`, `selection`, `symbol:parse`, an address …
---@param mention string without the `@`
---@param cwd string
---@return cursor_agent.context.Item?, string?
function M.resolve(mention, cwd)
  if mention == "selection" then
    return selection(cwd)
  elseif mention == "diagnostics" then
    return diagnostics(cwd)
  elseif mention == "diff" then
    return git_diff(cwd)
  elseif mention == "buffer" then
    local win = require("cursor_agent.window.code").current()
    local path = win and vim.api.nvim_buf_get_name(vim.api.nvim_win_get_buf(win)) or ""
    if path == "" then
      return nil, "no file in the code window"
    end
    return M.file(path, cwd)
  elseif mention == "quickfix" then
    return sources.quickfix(cwd)
  elseif mention == "terminal" then
    return sources.terminal()
  elseif mention == "clipboard" then
    return clipboard.mention()
  elseif mention:find("^symbol:.") then
    return sources.symbol(mention:sub(8), cwd, lines_of)
  elseif sources.is_url(mention) then
    return sources.url(mention)
  end
  local path, first, last = mention:match("^(.-):(%d+)%-(%d+)$")
  if not path then
    path, first = mention:match("^(.-):(%d+)$")
  end
  path = vim.fs.normalize(path or mention)
  local full = path:sub(1, 1) == "/" and path or vim.fs.joinpath(cwd, path)
  full = vim.fs.normalize(full)
  if not vim.uv.fs_stat(full) and not loaded_buffer(full) then
    return nil, ("no such file: %s"):format(path)
  end
  if not first and M.image_type(full) then
    return M.image(full)
  end
  local first_line = tonumber(first) --[[@as integer?]]
  local last_line = tonumber(last) --[[@as integer?]]
  return M.file(full, cwd, first_line, last_line)
end

---The mentions in a text: `@word`, or `@{words}` for a path with spaces. An address like a@b.c is not one.
---@param text string
---@return string[]
function M.mentions(text)
  local found, seen = {}, {}
  local function add(mention)
    if mention ~= "" and not seen[mention] then
      seen[mention] = true
      found[#found + 1] = mention
    end
  end
  local plain = (" " .. text):gsub("```.-```", " "):gsub("`[^`\n]*`", " ")
  for before, mention in plain:gmatch("(%s?)@{([^}\n]+)}") do
    if before ~= "" then
      add(mention)
    end
  end
  for mention in plain:gmatch("%s@([^%s{@]%S*)") do
    add((mention:gsub("[.,;:!?)%]'\"]+$", "")))
  end
  return found
end

---Everything attached to a prompt, without duplicates: its mentions, then the attachments. A mention that names nothing
---stays plain text.
---@param text string
---@param attached cursor_agent.context.Item[]
---@param cwd string
---@return cursor_agent.context.Item[]?, string?
function M.collect(text, attached, cwd)
  local items, seen = {}, {} ---@type cursor_agent.context.Item[], table<string, boolean>
  local function add(item)
    if not seen[item.label] then
      seen[item.label] = true
      items[#items + 1] = item
    end
  end
  for _, mention in ipairs(M.mentions(text)) do
    local named = is_named(mention)
    local item, why = M.resolve(mention, cwd)
    if not item and mention:find("@", 1, true) then
      -- Not a path with an `@` in it, but two mentions without a space between them.
      item = M.resolve((mention:gsub("@.*$", ""):gsub("[.,;:!?)%]'\"]+$", "")), cwd)
    end
    if item then
      add(item)
    elseif named then
      return nil, why
    end
  end
  for _, item in ipairs(attached) do
    add(item)
  end
  return items
end

---Whether any of these has to be fetched first.
---@param items cursor_agent.context.Item[]
---@return boolean
function M.takes_time(items)
  for _, item in ipairs(items) do
    if item.prepare then
      return true
    end
  end
  return false
end

---Fetches what is not available yet, one after the other, then calls back.
---@param items cursor_agent.context.Item[]
---@param done fun(why: string?) with what went wrong
function M.prepare(items, done)
  local function step(i)
    local item = items[i]
    if not item then
      return done()
    elseif not item.prepare then
      return step(i + 1)
    end
    item.prepare(function(why)
      if why then
        return done(why)
      end
      step(i + 1)
    end)
  end
  step(1)
end

---What the agent is sent for items that are ready.
---@param items cursor_agent.context.Item[]
---@return cursor_agent.Block[]?, string?
function M.blocks(items)
  local blocks = {} ---@type cursor_agent.Block[]
  for _, item in ipairs(items) do
    local list, why = item.blocks()
    if not list then
      return nil, why
    end
    vim.list_extend(blocks, list)
  end
  return blocks
end

---Reads the `context` argument of the Lua API: mentions, paths, or blocks.
---@param given any
---@param cwd string
---@return cursor_agent.context.Item[]?, string?
function M.read(given, cwd)
  if given == nil then
    return {}
  end
  if type(given) ~= "table" then
    return nil, ("context: expected a list, got %s"):format(type(given))
  end
  local items = {} ---@type cursor_agent.context.Item[]
  for i, one in ipairs(given) do
    if type(one) == "string" then
      local item, why = M.resolve(one:gsub("^@", ""), cwd)
      if not item then
        return nil, why
      end
      items[i] = item
    elseif type(one) == "table" and type(one.type) == "string" then
      items[i] = {
        label = one.label or one.path or one.type,
        blocks = function()
          return { one }
        end,
      }
    else
      return nil, ("context[%d]: expected a mention or a block, got %s"):format(i, type(one))
    end
  end
  return items
end

return M
