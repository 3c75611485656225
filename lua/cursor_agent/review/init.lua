-- What agents changed and you have not decided on: shown in the code, kept or undone by hunk, file or all.

local buffers = require("cursor_agent.review.buffers")
local chats = require("cursor_agent.chat.registry")
local config = require("cursor_agent.config")
local events = require("cursor_agent.bridge.events")
local format = require("cursor_agent.render.format")
local loaded = require("cursor_agent.files.loaded")
local marks = require("cursor_agent.review.marks")
local bridge = require("cursor_agent.bridge")
local watch = require("cursor_agent.files.watch")

local M = {}

local group = vim.api.nvim_create_augroup("cursor_agent_review", {})

---@type table<integer, cursor_agent.ReviewHunk[]> what is drawn in a buffer
local drawn = {}

---@type table<string, uv.uv_timer_t> redraws under way, by path
local timers = {}

---How long after typing the hunks are redrawn.
local TYPED_MS = 60

---The hunks at a line of a buffer, and their number among all.
---@param buf integer
---@param line integer
---@return cursor_agent.ReviewHunk?
---@return integer number
local function at_line(buf, line)
  for i, hunk in ipairs(drawn[buf] or {}) do
    local first = hunk.new.line
    local last = hunk.new.count > 0 and first + hunk.new.count - 1 or first + 1
    if line >= first and line <= last then
      return hunk, i
    end
  end
  return nil, 0
end

---@param buf integer
local function show_hint(buf)
  local hunk, number = at_line(buf, vim.api.nvim_win_get_cursor(0)[1])
  if not hunk then
    return marks.hint(buf)
  end
  local keymaps = require("cursor_agent.keys")
  local parts = { { ("hunk %d/%d"):format(number, #drawn[buf]), ("%d/%d"):format(number, #drawn[buf]) } }
  for _, part in ipairs({ { "hunk-keep", "keep" }, { "hunk-undo", "undo" }, { "hunk-next", "next" } }) do
    local key = keymaps.key(part[1], "code")
    if key then
      parts[#parts + 1] = { key .. " " .. part[2], key }
    end
  end
  local line = hunk.new.count > 0 and hunk.new.line + hunk.new.count - 1 or math.max(hunk.new.line, 1)
  marks.hint(buf, line, parts)
end

---@param buf integer
local function arm(buf)
  vim.api.nvim_create_autocmd({ "CursorMoved", "BufEnter" }, {
    group = group,
    buffer = buf,
    desc = "cursor-agent: show the keys for the change under the cursor",
    callback = function()
      show_hint(buf)
    end,
  })
  require("cursor_agent.review.keys").map(buf)
end

---Shows at the cursor where the next hunk is, once, after the last one of this file was decided.
---@param buf integer
---@param hunks cursor_agent.ReviewHunk[] of other files
local function show_way(buf, hunks)
  local key, path = require("cursor_agent.keys").key("hunk-next", "code"), buffers.path(buf) or ""
  if not key or vim.api.nvim_get_current_buf() ~= buf then
    return
  end
  local next_one = hunks[1] --[[@as cursor_agent.ReviewHunk]]
  for _, hunk in ipairs(hunks) do
    if hunk.path > path then
      next_one = hunk
      break
    end
  end
  local name = format.path(next_one.path, vim.fn.getcwd())
  local line = vim.api.nvim_win_get_cursor(0)[1]
  marks.hint(buf, line, { { ("%s %s"):format(key, name) }, { ("%d left"):format(#hunks) } })
  vim.api.nvim_create_autocmd({ "CursorMoved", "InsertEnter", "BufLeave" }, {
    group = group,
    buffer = buf,
    once = true,
    desc = "cursor-agent: stop hinting at the next change",
    callback = function()
      marks.hint(buf)
    end,
  })
end

---@param buf integer
local function disarm(buf)
  drawn[buf] = nil
  marks.clear(buf)
  if vim.api.nvim_buf_is_valid(buf) then
    vim.api.nvim_clear_autocmds({ group = group, buffer = buf })
    local others = bridge.is_loaded() and bridge.review_hunks({ all = true }) or {}
    require("cursor_agent.review.keys").unmap(buf, #others > 0)
    if #others > 0 then
      show_way(buf, others)
    end
  end
end

---Draws a file's undecided hunks in its buffer.
---@param path string
local function redraw(path)
  local ready, buf = bridge.is_loaded(), buffers.find(path)
  if not ready or not buf then
    return
  elseif not buffers.in_step(buf, path) and not (loaded.is_empty(buf) and not vim.uv.fs_stat(path)) then
    -- The buffer has not taken in the disk's content yet, or the file is gone and only the buffer has the text. An
    -- emptied file shows the old lines.
    if drawn[buf] and (not vim.uv.fs_stat(path) or #bridge.review_hunks({ path = path }) == 0) then
      disarm(buf)
    end
    return
  end
  local hunks = config.get().review.signs and bridge.review_hunks({ path = path }, true) or {}
  -- A change without lines has nothing to show here.
  hunks = vim.tbl_filter(function(hunk)
    return hunk.old.count + hunk.new.count > 0
  end, hunks)
  if #hunks == 0 then
    if drawn[buf] then
      disarm(buf)
    end
    return
  end
  local known = drawn[buf] ~= nil
  drawn[buf] = hunks
  marks.draw(buf, hunks)
  if not known then
    arm(buf)
  end
  if vim.api.nvim_get_current_buf() == buf then
    show_hint(buf)
  end
end

---Redraws a file shortly.
---@param path string
local function redraw_soon(path)
  local timer = timers[path] or assert(vim.uv.new_timer())
  timers[path] = timer
  timer:start(
    TYPED_MS,
    0,
    vim.schedule_wrap(function()
      timers[path] = nil
      if not timer:is_closing() then
        timer:close()
      end
      redraw(path)
    end)
  )
end

buffers.on_typed = redraw_soon

---The undecided hunks of files changed: updates their buffers.
---@param paths string[]
function M.changed(paths)
  for _, path in ipairs(paths) do
    buffers.sync(path)
    redraw(path)
  end
  local keys = require("cursor_agent.review.keys")
  -- The list of files may be long, and this is called for each that changed.
  if keys.are_mapped() and bridge.is_loaded() and #bridge.review_files() == 0 then
    keys.unmap_all()
  end
  events.emit("hunks changed")
end

---A buffer has its file's content: it was read or reloaded.
---@param buf integer
local function on_read(buf)
  local path = buffers.path(buf)
  if path and bridge.is_loaded() then
    buffers.sync(path)
    redraw(path)
  end
end

local listens = false

---Watches buffers from the first use on: what the user saves before an agent changes anything is the user's too.
local function listen()
  if listens then
    return
  end
  listens = true
  vim.api.nvim_create_autocmd({ "BufReadPost", "BufNewFile", "FileChangedShellPost" }, {
    group = group,
    desc = "cursor-agent: show changes in a buffer that was just read",
    callback = vim.schedule_wrap(function(args)
      if vim.api.nvim_buf_is_loaded(args.buf) then
        on_read(args.buf)
      end
    end),
  })
  vim.api.nvim_create_autocmd("BufWritePost", {
    group = group,
    desc = "cursor-agent: tell the user's changes from the agent's",
    callback = function(args)
      buffers.written(args.buf)
    end,
  })
  vim.api.nvim_create_autocmd({ "FocusGained", "ShellCmdPost", "TermClose" }, {
    group = group,
    desc = "cursor-agent: settle changes that were committed",
    callback = function()
      if bridge.is_loaded() then
        bridge.review_commits()
      end
    end,
  })
end

---Tells the library where to store checkpoints, once it is loaded.
function M.on_loaded()
  listen()
  local options = config.get().checkpoints
  local dir = options.enabled and vim.fs.joinpath(require("cursor_agent.files.store").dir(), "checkpoints") or nil
  local ok, why = bridge.review_setup({
    dir = dir,
    max_bytes = options.max_mb * 1024 * 1024,
    max_days = options.max_days,
  })
  if not ok then
    require("cursor_agent.notify").once("could not store checkpoints: " .. tostring(why), "warn")
  end
end

---Agents changed files, or hunks were decided.
---@param paths string[]?
function M.on_reviewed(paths)
  for _, path in ipairs(paths or {}) do
    local buf = buffers.find(path)
    local stat = buf and not loaded.is_current(buf, path) and vim.uv.fs_stat(path) or nil
    if buf and stat and bridge.review_seen(path, loaded.state(stat)) then
      -- A change to the file counts once its buffer has taken it in.
      events.emit("file changed", buf, { reported = true })
    end
  end
  M.changed(paths or {})
end

---@class (exact) cursor_agent.review.Opts
---@field session? cursor_agent.Session
---@field path? string
---@field hunk? integer
---@field all? boolean
---@field lines? [integer, integer]
---@field turn? integer|"last" of the session, or of the current chat

---A path as the library knows it. A link that was itself changed is not resolved.
---@param path string
---@return string
local function under_review(path)
  path = vim.fn.fnamemodify(path, ":p")
  local dir = vim.fs.dirname(path)
  local itself = vim.fs.joinpath(vim.uv.fs_realpath(dir) or dir, vim.fs.basename(path))
  local known = bridge.is_loaded() and bridge.review_has_buffer(itself) ~= nil
  return known and itself or watch.real_path(path)
end

---@param value any
---@return boolean
local function is_count(value)
  return type(value) == "number" and value >= 0 and value % 1 == 0
end

---The expected types of options.
---@type table<string, { [1]: string, [2]: fun(value: any): boolean }>
local OPTIONS = {
  hunk = { "a hunk's id, as hunks() lists it", is_count },
  path = {
    "a path",
    function(value)
      return type(value) == "string" and value ~= ""
    end,
  },
  all = {
    "true or false",
    function(value)
      return type(value) == "boolean"
    end,
  },
  turn = {
    'the number of a turn, or "last"',
    function(value)
      return value == "last" or is_count(value)
    end,
  },
  lines = {
    "the first and the last line",
    function(value)
      return type(value) == "table" and is_count(value[1]) and is_count(value[2])
    end,
  },
}

---What is wrong with options, if anything.
---@param opts any
---@return string?
local function mistake(opts)
  if type(opts) ~= "table" then
    return ("expected a table of options, got %s"):format(vim.inspect(opts))
  end
  for name, option in vim.spairs(OPTIONS) do
    if opts[name] ~= nil and not option[2](opts[name]) then
      return ("%s: expected %s, got %s"):format(name, option[1], vim.inspect(opts[name]))
    end
  end
end

---@param opts? cursor_agent.review.Opts
---@return cursor_agent.ReviewSelect?, string?
local function select(opts)
  opts = opts or {}
  local wrong = mistake(opts)
  if wrong then
    return nil, wrong
  end
  local key ---@type cursor_agent.Key?
  local turn = opts.turn
  if opts.session ~= nil or turn ~= nil then
    local chat, why = chats.find(opts.session)
    if not chat then
      return nil, why
    end
    key = chat.key
    turn = turn == "last" and chat.status.turns or turn
  end
  return {
    hunk = opts.hunk,
    path = opts.path and under_review(opts.path) or nil,
    lines = opts.lines,
    key = key,
    turn = turn --[[@as integer?]],
    all = opts.all == true or nil,
  }
end

---What is undecided, by path and line.
---@param opts? { session: cursor_agent.Session?, path: string? }
---@return { id: integer, path: string, old: cursor_agent.ReviewLines, new: cursor_agent.ReviewLines, turn: integer, session_id: string? }[]?
---@return string?
function M.hunks(opts)
  local what, why = select(opts)
  if not what then
    return nil, why
  elseif not bridge.is_loaded() then
    return {}
  end
  what.all = true
  return vim.tbl_map(function(hunk)
    local chat = chats.get(hunk.key)
    return {
      id = hunk.id,
      path = hunk.path,
      old = hunk.old,
      new = hunk.new,
      turn = hunk.turn,
      session_id = chat and chat.status.session_id,
    }
  end, bridge.review_hunks(what))
end

---@param opts cursor_agent.review.Opts?
---@return cursor_agent.ReviewSelect?, string?
local function chosen(opts)
  if type(opts) ~= "table" or not (opts.hunk or opts.path or opts.turn or opts.all) then
    return nil, 'expected { hunk = id }, { path = … }, { turn = "last" } or { all = true }'
  end
  return select(opts)
end

---Keeps hunks.
---@param opts cursor_agent.review.Opts
---@return integer? count
---@return string?
function M.keep(opts)
  local ready = bridge.is_loaded()
  local what, why = chosen(opts)
  if not what then
    return nil, why
  elseif not ready then
    return 0
  end
  local kept = bridge.review_keep(what)
  M.changed(kept[2])
  return kept[1]
end

---Applies what undoing did to a file to its buffer.
---@param file { path: string, edits: { first: integer, last: integer, lines: string[] }[], deleted: boolean }
---@param step boolean? whether the buffer had what was on disk
local function into_buffer(file, step)
  local buf = buffers.find(file.path)
  if not buf then
    return
  elseif not step then
    return events.emit("file changed", buf, { reported = true, quietly = true })
  end
  local modified, modifiable = vim.bo[buf].modified, vim.bo[buf].modifiable
  buffers.quietly(buf, function()
    vim.bo[buf].modifiable = true
    for _, edit in ipairs(file.edits) do
      local last = math.min(edit.last, vim.api.nvim_buf_line_count(buf))
      vim.api.nvim_buf_set_lines(buf, math.min(edit.first, last), last, false, edit.lines)
    end
    vim.bo[buf].modifiable = modifiable
    if file.deleted and not modified then
      vim.bo[buf].modified = false
      loaded.note(buf)
      return
    end
    if loaded.sync(buf, modified) then
      loaded.note(buf)
    end
  end)
  -- Effects of undoing that no edit describes: a binary file, line endings, another encoding.
  if not modified and not file.deleted then
    events.emit("file changed", buf, { quietly = true })
  end
end

---The selected hunks, without files whose buffers differ from the disk: their line numbers do not match.
---@param what cursor_agent.ReviewSelect
---@param failed string[] gets why some are left out
---@param steps table<string, boolean?> gets which of them have buffers with what is on disk
---@return cursor_agent.ReviewSelect[]
local function in_step(what, failed, steps)
  local paths, left_out, last = {}, false, nil ---@type string[], boolean, string?
  for _, hunk in ipairs(bridge.is_loaded() and bridge.review_hunks(what) or {}) do
    if hunk.path ~= last then
      last = hunk.path
      -- The target of a link has no line numbers.
      local is_link = (vim.uv.fs_lstat(hunk.path) or {}).type == "link"
      local buf = not is_link and buffers.find(hunk.path) or nil
      if buf and not (loaded.is_current(buf, hunk.path) and buffers.in_step(buf, hunk.path)) then
        events.emit("file changed", buf, { reported = true })
        buffers.sync(hunk.path)
      end
      local step = buf and loaded.is_current(buf, hunk.path) and buffers.in_step(buf, hunk.path)
      steps[hunk.path] = step
      -- A deleted file has no line numbers that could differ.
      if not buf or step or not vim.uv.fs_stat(hunk.path) then
        paths[#paths + 1] = hunk.path
      else
        left_out = true
        local name = format.path(hunk.path, vim.fn.getcwd())
        failed[#failed + 1] = require("cursor_agent.files.conflicts").has(buf)
            and name .. ": resolve the conflict with your unsaved text first (:CursorAgent conflicts)"
          or name .. ": its buffer is still being reloaded; try again in a moment"
      end
    end
  end
  if not left_out then
    return { what }
  end
  return vim.tbl_map(function(path)
    return vim.tbl_extend("force", what, { path = path })
  end, paths)
end

---Undoes hunks: restores the old lines on disk and in the buffer.
---@param opts cursor_agent.review.Opts
---@return integer? count
---@return string?
function M.undo(opts)
  local ready = bridge.is_loaded()
  local what, why = chosen(opts)
  if not what then
    return nil, why
  elseif not ready then
    return 0
  end
  local stuck = M.stuck(what)
  local count, failed, paths = 0, {}, {} ---@type integer, string[], string[]
  local steps = {} ---@type table<string, boolean?>
  for _, one in ipairs(in_step(what, failed, steps)) do
    local undone = bridge.review_undo(one)
    for _, file in ipairs(undone.files) do
      into_buffer(file, steps[file.path])
      paths[#paths + 1] = file.path
    end
    vim.list_extend(failed, undone.failed)
    count = count + undone.count
  end
  M.changed(paths)
  if #failed > 0 then
    return nil, "some changes could not be undone\n  " .. table.concat(failed, "\n  ")
  elseif count == 0 and stuck then
    return nil, stuck
  end
  return count
end

---Why none of the selected hunks can be undone, if so.
---@param what cursor_agent.ReviewSelect
---@return string?
function M.stuck(what)
  local ready = bridge.is_loaded()
  for _, file in ipairs(ready and bridge.review_files() or {}) do
    if file.stuck and (what.all or what.path == file.path) then
      return ("%s cannot be undone: %s"):format(format.path(file.path, vim.fn.getcwd()), file.stuck)
    end
  end
end

---The hunks of a buffer that touch lines of it.
---@param first integer
---@param last integer
---@return cursor_agent.review.Opts?, string?
local function here(first, last)
  local path = buffers.path(0)
  if not path or not drawn[vim.api.nvim_get_current_buf()] then
    return nil, "no undecided change here; `]h` goes to the next one, :CursorAgent review lists them"
  end
  return { path = path, lines = { first, last } }
end

---@param work fun(opts: cursor_agent.review.Opts): integer?, string?
---@param what "hunk"|"file"|"turn"|"all"
---@param first integer?
---@param last integer?
---@return integer?, string?
local function decide(work, what, first, last)
  local line = vim.api.nvim_win_get_cursor(0)[1]
  local opts, why ---@type cursor_agent.review.Opts?, string?
  if what == "all" then
    opts = { all = true }
  elseif what == "turn" then
    opts = { turn = "last" }
  elseif what == "file" then
    opts, why = here(1, 1)
    opts = opts and { path = opts.path }
  else
    opts, why = here(first or line, last or line)
  end
  if not opts then
    return nil, why
  end
  local count, problem = work(opts)
  if count == 0 and what == "turn" then
    return nil, "the last turn has no undecided changes; :CursorAgent review lists the others"
  elseif count == 0 then
    return nil, "no undecided change here; `]h` goes to the next one, :CursorAgent review lists them"
  end
  return count, problem
end

---Keeps the hunk under the cursor, those in a range, of the file, or all.
---@param what "hunk"|"file"|"turn"|"all"
---@param first integer?
---@param last integer?
---@return integer?, string?
function M.keep_here(what, first, last)
  return decide(M.keep, what, first, last)
end

---Undoes the hunk under the cursor, those in a range, of the file, or all.
---@param what "hunk"|"file"|"turn"|"all"
---@param first integer?
---@param last integer?
---@return integer?, string?
function M.undo_here(what, first, last)
  return decide(M.undo, what, first, last)
end

---Goes to a hunk, in the current window or the code window.
---@param hunk cursor_agent.ReviewHunk
---@return boolean?, string?
function M.go_to(hunk)
  if vim.b.cursor_agent_kind then
    local code = require("cursor_agent.window.code").current()
    if code then
      vim.api.nvim_set_current_win(code)
    end
  end
  if buffers.path(0) ~= hunk.path then
    if require("cursor_agent.files.regular").is_odd(hunk.path) then
      return nil, ("%s is not a regular file"):format(hunk.path)
    end
    -- With 'nohidden', unsaved text keeps its window.
    local name = vim.fn.fnameescape(vim.fn.fnamemodify(hunk.path, ":."))
    local ok, why = pcall(vim.cmd, "edit " .. name) ---@diagnostic disable-line: param-type-mismatch
    if not ok then
      return nil, tostring(why):match("E%d+:.*") or tostring(why)
    end
    -- The next key may already have been typed.
    on_read(vim.api.nvim_get_current_buf())
  end
  local line = math.max(hunk.new.line, 1)
  vim.cmd("normal! m'")
  vim.api.nvim_win_set_cursor(0, { math.min(line, vim.api.nvim_buf_line_count(0)), 0 })
  vim.cmd("normal! zvzz")
  return true
end

---Goes to the next or previous undecided change, in this file or another.
---@param step 1|-1
---@return boolean?, string?
function M.jump(step)
  local ready = bridge.is_loaded()
  local hunks = ready and bridge.review_hunks({ all = true }) or {}
  if #hunks == 0 then
    return nil, "no undecided changes"
  end
  local path, line = buffers.path(0) or "", vim.api.nvim_win_get_cursor(0)[1]
  local found ---@type cursor_agent.ReviewHunk?
  for i = step > 0 and 1 or #hunks, step > 0 and #hunks or 1, step do
    local hunk = hunks[i] --[[@as cursor_agent.ReviewHunk]]
    local at = math.max(hunk.new.line, 1)
    local beyond
    if hunk.path == path then
      beyond = step > 0 and at > line or step < 0 and at < line
    else
      beyond = step > 0 and hunk.path > path or step < 0 and hunk.path < path
    end
    if beyond then
      found = hunk
      break
    end
  end
  -- Wrap around the end, like a search.
  return M.go_to(found or hunks[step > 0 and 1 or #hunks] --[[@as cursor_agent.ReviewHunk]])
end

return M
