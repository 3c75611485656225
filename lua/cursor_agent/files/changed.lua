-- Syncs buffers with their files on disk: unsaved text is kept, or the user decides.

local chats = require("cursor_agent.chat.registry")
local conflicts = require("cursor_agent.files.conflicts")
local events = require("cursor_agent.bridge.events")
local find = require("cursor_agent.files.find")
local format = require("cursor_agent.render.format")
local loaded = require("cursor_agent.files.loaded")
local merge = require("cursor_agent.files.merge")
local bridge = require("cursor_agent.bridge")
local notify = require("cursor_agent.notify")
local put = require("cursor_agent.files.put")
local reviewed = require("cursor_agent.review.buffers")
local watch = require("cursor_agent.files.watch")

local M = {}

---Retry a file that is being written after this time.
local LATER_MS = 200

---@class (exact) cursor_agent.files.Changed
---@field chat? cursor_agent.Chat
---@field reported? boolean an agent reported the change
---@field quietly? boolean do not tell the user, who knows already
---@field by? { key: cursor_agent.Key, turn: integer } the agent and turn that made the change, if known

---@type table<integer, boolean> buffers whose file an agent deleted, which was said
local missing = {}

---@type table<integer, string> buffers whose file cannot be shown, and the state in which that was said
local odd = {}

---@type table<integer, string> buffers whose text was kept, and the state of the disk the user wants to hear nothing of
local dismissed = {}

---@type table<integer, boolean> buffers with unsaved text that has what an agent wrote in it, which was said
local merged = {}

---An agent deleted a file: only its buffer has the text now.
---@param path string
---@param buf integer
---@param cwd string
local function deleted(path, buf, cwd)
  if missing[buf] then
    return
  end
  missing[buf] = true
  -- Otherwise Neovim would report at some later moment that the file is no longer available.
  vim.cmd("silent! noautocmd checktime " .. buf)
  vim.api.nvim_create_autocmd({ "BufWritePost", "BufReadPost", "BufUnload" }, {
    buffer = buf,
    once = true,
    desc = "cursor-agent: forget that the file was deleted",
    callback = function()
      missing[buf] = nil
    end,
  })
  local text = "the agent deleted or moved %s; its text is still in the buffer, and `:w` restores the file"
  notify.notify(text:format(format.path(path, cwd)), "warn")
end

---Lets Neovim itself reload an unmodified buffer.
---@param buf integer
---@param path string
local function reload_natively(buf, path)
  local auto = vim.api.nvim_get_option_value("autoread", { buf = buf })
  vim.bo[buf].autoread = true
  vim.cmd("silent! checktime " .. buf)
  vim.bo[buf].autoread = auto
  if not loaded.is_current(buf, path) then
    vim.api.nvim_buf_call(buf, function()
      vim.cmd("silent! keepalt edit")
    end)
  end
end

---A file that cannot be read here, or cannot be compared.
---@param buf integer
---@param path string
---@param cwd string
---@param problem string
local function unreadable(buf, path, cwd, problem)
  if problem == "not a regular file" then
    loaded.never_look(buf)
    if odd[buf] ~= problem then
      odd[buf] = problem
      local text = "%s is no longer a regular file; its text is still in the buffer"
      notify.notify(text:format(format.path(path, cwd)), "warn")
    end
  elseif problem == "it is being written" then
    vim.defer_fn(function()
      if vim.api.nvim_buf_is_loaded(buf) then
        M.changed(buf)
      end
    end, LATER_MS)
  elseif not vim.bo[buf].modified then
    reload_natively(buf, path)
  else
    local state = loaded.state(vim.uv.fs_stat(path))
    if odd[buf] ~= state and loaded.known(buf) ~= state then
      odd[buf] = state
      local text = "the agent changed %s on disk; your unsaved changes are untouched\n  "
        .. "it cannot be compared here: in its buffer, `:w!` writes yours, `:e!` takes the agent's"
      notify.notify(text:format(format.path(path, cwd)), "warn")
    end
  end
end

---The turn that changed a file: of the chat that reported it, or of one that is working where the file is.
---@param buf integer
---@param key cursor_agent.Key?
---@param reported boolean? an agent reported it, no matter which
---@return { key: cursor_agent.Key, turn: integer }?
function M.author(buf, key, reported)
  local chat = chats.get(key or watch.running_at(buf)) or (reported and (chats.current() or chats.all()[1])) or nil
  return chat and { key = chat.key, turn = chat.status.turns or 0 }
end

---Shows the text on disk in an unmodified buffer.
---@param buf integer
---@param disk cursor_agent.loaded.Disk
---@param hunks cursor_agent.merge.Hunk[] what turns the buffer's text into that
---@param by { key: cursor_agent.Key, turn: integer }? the agent that made the change
local function reload(buf, disk, hunks, by)
  local same, before = #hunks == 0, put.short_text(buf)
  if not same then
    -- What undo brings back is no longer on disk.
    vim.bo[buf].modified = true
    put.set_hunks(buf, hunks)
  end
  vim.bo[buf].endofline = disk.eol
  reviewed.took(buf, { state = disk.state, bytes = disk.bytes, before = before, author = by })
  if loaded.sync(buf, false) then
    loaded.note(buf, disk)
  else
    -- Neovim's state cannot be synced inside an autocommand.
    vim.schedule(function()
      if vim.api.nvim_buf_is_loaded(buf) then
        M.changed(buf)
      end
    end)
  end
  if not same then
    vim.api.nvim_exec_autocmds("FileChangedShellPost", { buffer = buf, modeline = false })
    return
  end
  local path = reviewed.path(buf)
  if path then
    -- It may have got this text silently.
    events.emit("buffer in step", { path })
  end
end

---Records that a buffer with unsaved text has everything it should have from the disk.
---@param buf integer
---@param disk cursor_agent.loaded.Disk?
---@param took cursor_agent.review.Took? what to report to the review
function M.have_disk(buf, disk, took)
  if took and disk then
    took.state, took.bytes = disk.state, disk.bytes
    reviewed.took(buf, took)
  end
  loaded.sync(buf, true)
  loaded.note(buf, disk)
  local path = reviewed.path(buf)
  if path then
    events.emit("buffer in step", { path })
  end
end

---Unsaved text conflicts with the text on disk: the user decides.
---@param buf integer
---@param disk cursor_agent.loaded.Disk
---@param base string? their common ancestor
---@param opts cursor_agent.files.Changed
local function collide(buf, disk, base, opts)
  local path = vim.api.nvim_buf_get_name(buf)
  local conflict = conflicts.on_disk(buf)
  if conflict then
    conflict.theirs, conflict.text, conflict.eol, conflict.disk = disk.lines, disk.text, disk.eol, disk
    events.emit("conflict changed")
    return
  end
  dismissed[buf] = nil
  conflict = {
    path = path,
    buf = buf,
    theirs = disk.lines,
    text = disk.text,
    eol = disk.eol,
    basis = base,
    disk = disk,
    quiet = opts.quietly,
  }
  local asked = conflicts.add(conflict, opts.chat)
  conflicts.follow(conflict)
  if not asked and not opts.quietly then
    local by_agent = opts.reported or watch.in_running(buf)
    local cwd = opts.chat and opts.chat.cwd or vim.fn.getcwd()
    local text = (by_agent and "the agent changed %s on disk" or "%s was changed on disk")
      .. "; your unsaved changes are untouched\n"
      .. "  :CursorAgent conflicts shows the difference; in its buffer, `:w!` writes yours, `:e!` takes the other"
    notify.notify(text:format(format.path(path, cwd)), "warn")
  end
end

---Merges what an agent wrote on disk into a buffer with unsaved lines, which stay unsaved.
---@param buf integer
---@param disk cursor_agent.loaded.Disk
---@param hunks cursor_agent.merge.Hunk[] what turns the buffer into the merged text
---@param opts cursor_agent.files.Changed
local function take_merged(buf, disk, hunks, opts)
  conflicts.drop_on_disk(buf)
  local before = put.short_text(buf)
  put.set_hunks(buf, hunks)
  if not disk.eol then
    vim.bo[buf].endofline = false
  end
  local by = M.author(buf, opts.chat and opts.chat.key, opts.reported)
  M.have_disk(buf, disk, { state = disk.state, before = before, hunks = hunks, author = by })
  vim.api.nvim_exec_autocmds("FileChangedShellPost", { buffer = buf, modeline = false })
  if not merged[buf] and not opts.quietly then
    merged[buf] = true
    local cwd = opts.chat and opts.chat.cwd or vim.fn.getcwd()
    local name = format.path(vim.api.nvim_buf_get_name(buf), cwd)
    notify.notify(("the agent changed %s; its changes were merged with yours, which are still unsaved"):format(name))
  end
end

---@type table<integer, string> buffers that are being compared with what is on disk, and its state
local comparing = {}

---Runs `work` on the buffer's text and applies the result with `done`, unless the buffer or the file has changed
---meanwhile; then starts over.
---@param buf integer
---@param disk cursor_agent.loaded.Disk
---@param opts cursor_agent.files.Changed
---@param work fun(ours: string, done: fun(found: any))
---@param done fun(found: any)
local function compared(buf, disk, opts, work, done)
  if comparing[buf] == disk.state then
    return
  end
  comparing[buf] = disk.state
  local tick = vim.api.nvim_buf_get_changedtick(buf)
  loaded.text_in_pieces(buf, function(ours)
    work(ours, function(found)
      comparing[buf] = nil
      if not vim.api.nvim_buf_is_loaded(buf) then
        return
      end
      local path = vim.api.nvim_buf_get_name(buf)
      if vim.api.nvim_buf_get_changedtick(buf) == tick and loaded.state(vim.uv.fs_stat(path)) == disk.state then
        done(found)
      else
        M.changed(buf, opts)
      end
    end)
  end)
end

---An agent wrote a file on disk that has unsaved text: merges both, or lets the user decide where they conflict.
---@param buf integer
---@param disk cursor_agent.loaded.Disk
---@param base string their common ancestor
---@param opts cursor_agent.files.Changed
local function merge_disk(buf, disk, base, opts)
  compared(buf, disk, opts, function(ours, done)
    merge.combine("merged", { ours = ours, theirs = disk.text, basis = base }, done)
  end, function(hunks)
    if hunks then
      take_merged(buf, disk, hunks, opts)
    else
      collide(buf, disk, base, opts)
    end
  end)
end

---Reloads a long file, piece by piece.
---@param buf integer
---@param disk cursor_agent.loaded.Disk
---@param opts cursor_agent.files.Changed
local function reload_long(buf, disk, opts)
  compared(buf, disk, opts, function(ours, done)
    merge.combine("merged", { ours = ours, theirs = disk.text, basis = ours }, done)
  end, function(hunks)
    conflicts.drop_on_disk(buf)
    reload(buf, disk, hunks or {}, opts.by)
  end)
end

---Tells the review about a change that no agent has reported yet: the user may save over it before one does.
---@param buf integer
---@param disk cursor_agent.loaded.Disk
local function notice(buf, disk)
  local path = reviewed.path(buf)
  if path and bridge.is_loaded() and watch.in_running(buf) then
    bridge.review_noticed(path, disk.bytes, disk.state)
  end
end

---A buffer was read: while a turn runs, what it read may already be an agent's work.
---@param buf integer
function M.was_read(buf)
  local path, state = vim.api.nvim_buf_get_name(buf), loaded.known(buf)
  if not state or state == loaded.NONE then
    return
  end
  reviewed.took(buf, { state = state, author = M.author(buf) })
  local stat = vim.uv.fs_stat(path)
  if stat and stat.size <= loaded.LONG_BYTES and watch.in_running(buf) then
    local disk = loaded.disk(buf, path)
    if disk then
      notice(buf, disk)
    end
  end
end

---A file may have changed on disk: updates its buffer, merging with unsaved text where they do not conflict.
---@param buf integer
---@param opts? cursor_agent.files.Changed
function M.changed(buf, opts)
  opts = opts or {}
  local path = vim.api.nvim_buf_get_name(buf)
  local cwd = opts.chat and opts.chat.cwd or vim.fn.getcwd()
  local stat = vim.uv.fs_stat(path)
  if not stat then
    if loaded.known(buf) ~= loaded.NONE then
      deleted(path, buf, cwd)
    end
    return
  end
  missing[buf] = nil
  local disk, problem = loaded.disk(buf, path)
  if not disk then
    return unreadable(buf, path, cwd, stat.type ~= "file" and "not a regular file" or problem or "")
  end
  odd[buf] = nil
  local base = loaded.base(buf, disk)
  local modified = vim.bo[buf].modified
  if base and loaded.known(buf) ~= loaded.NONE and loaded.equal(base, disk.text) then
    -- At most its timestamps have changed.
    conflicts.drop_on_disk(buf)
    if loaded.known(buf) ~= disk.state then
      if not modified then
        vim.bo[buf].endofline = disk.eol
      end
      reviewed.took(buf, {
        state = disk.state,
        bytes = disk.bytes,
        before = modified and put.short_text(buf) or nil,
        same = modified or nil,
        author = modified and M.author(buf, opts.chat and opts.chat.key, opts.reported) or nil,
      })
      loaded.sync(buf, modified)
      loaded.note(buf, disk)
    end
    return
  end
  opts.by = M.author(buf, opts.chat and opts.chat.key, opts.reported)
  notice(buf, disk)
  local long = #disk.text > loaded.LONG_BYTES
  if not modified and long then
    return reload_long(buf, disk, opts)
  elseif not long then
    local lines = loaded.lines(buf)
    local same = loaded.same(lines, disk.lines)
    if same or not modified then
      conflicts.drop_on_disk(buf)
      local all = vim.api.nvim_buf_get_lines(buf, 0, -1, false)
      return reload(buf, disk, same and {} or merge.diff(all, disk.lines), opts.by)
    end
  end
  if dismissed[buf] == disk.state and not opts.quietly then
    return
  end
  local by_agent = opts.reported or watch.in_running(buf)
  if base and by_agent then
    return merge_disk(buf, disk, base, opts)
  end
  collide(buf, disk, base, opts)
end

---An agent reports that it has changed a file.
---@param path string
---@param key cursor_agent.Key? its session
function M.edited(path, key)
  local buf = find.buffer(path)
  watch.touch(path, buf)
  if buf then
    M.changed(buf, { chat = chats.get(key), reported = true })
  end
end

---A buffer was written: nothing on disk conflicts with it any more.
---@param buf integer
function M.after_write(buf)
  local path = vim.api.nvim_buf_get_name(buf)
  if vim.fn.expand("<afile>:p") == path then
    merged[buf] = nil
    loaded.note(buf)
    loaded.keep(buf, true)
    conflicts.drop_on_disk(buf)
  end
end

---The user does not want to hear about the current state of the disk.
---@param buf integer
---@param state string?
function M.dismiss(buf, state)
  dismissed[buf] = state
end

return M
