-- Files between agent and editor: unsaved text is what an agent reads, and nothing it writes destroys any.

local chats = require("cursor_agent.chat.registry")
local conflicts = require("cursor_agent.files.conflicts")
local events = require("cursor_agent.bridge.events")
local format = require("cursor_agent.render.format")
local loaded = require("cursor_agent.files.loaded")
local merge = require("cursor_agent.files.merge")
local bridge = require("cursor_agent.bridge")
local notify = require("cursor_agent.notify")
local reviewed = require("cursor_agent.review.buffers")
local watch = require("cursor_agent.files.watch")

local M = {}

---A file that changes while it is looked at is looked at again so often, and then so much later.
local TRIES, LATER_MS = 3, 200

---@type table<cursor_agent.Key, table<integer, string>> by session and buffer: the text the agent takes the file to have
local served = {}

---@type table<integer, boolean> buffers whose file an agent deleted, which was said
local missing = {}

---@type table<integer, string> buffers whose file cannot be shown, and the state in which that was said
local odd = {}

---@type table<integer, string> buffers whose text was kept, and the state of the disk the user wants to hear nothing of
local dismissed = {}

---@type table<integer, boolean> buffers with unsaved text that has what an agent wrote in it, which was said
local merged = {}

---The loaded buffer of a file, however its path is spelled.
---@param path string
---@return integer?
local function buffer_of(path)
  local real = watch.real_path(path)
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buf) and vim.bo[buf].buftype == "" then
      local name = vim.api.nvim_buf_get_name(buf)
      if name == path or name == real or (name ~= "" and watch.real_path(name) == real) then
        return buf
      end
    end
  end
end

---@param request integer
---@param reply cursor_agent.EditorReply
local function answer(request, reply)
  local ready = bridge.is_loaded()
  if ready then
    bridge.reply(request, reply)
  end
end

---Whether a path leads elsewhere than it did when the rules and the user were asked about it: a link may have been put in
---its way since then.
---@param path string
---@param real string? where it led
---@return boolean
local function leads_elsewhere(path, real)
  return real ~= nil and bridge.is_loaded() and bridge.resolve(path) ~= real
end

---@param path string
---@return cursor_agent.EditorReply
local function elsewhere(path)
  return { ok = false, error = path .. ": it leads elsewhere by now; nothing was done" }
end

---What the library needs to know to read or write a file as Neovim would.
---@param request integer
local function leave_to_disk(request)
  answer(request, { ok = true, disk = true, encodings = vim.split(vim.o.fileencodings, ",", { plain = true }) })
end

---Notes what an agent takes a file to have. A part of it, or what another one read, is no ground to replace all of it.
---@param key cursor_agent.Key?
---@param buf integer
---@param text string each line with its end
local function note_served(key, buf, text)
  if key then
    served[key] = served[key] or {}
    served[key][buf] = text
  end
end

---@param request integer
---@param what cursor_agent.EditorRequest
---@param key cursor_agent.Key?
local function read(request, what, key)
  if leads_elsewhere(what.path, what.real) then
    return answer(request, elsewhere(what.path))
  end
  local buf = buffer_of(what.path)
  if not buf then
    return leave_to_disk(request)
  end
  local path = vim.api.nvim_buf_get_name(buf)
  local stat = vim.uv.fs_stat(path)
  if stat and stat.type ~= "file" then
    return answer(request, { ok = false, error = what.path .. ": not a regular file" })
  end
  if stat and not loaded.is_current(buf, path) then
    M.changed(buf)
  end
  if stat and not vim.bo[buf].modified and (stat.size > loaded.MAX_BYTES or not loaded.is_current(buf, path)) then
    return leave_to_disk(request)
  end
  local count = vim.api.nvim_buf_line_count(buf)
  local first = math.max(what.line or 1, 1)
  local last = what.limit and math.min(first + what.limit - 1, count) or count
  if first > last then
    return answer(request, { ok = true, content = "" })
  end
  local bytes = vim.api.nvim_buf_get_offset(buf, last) - vim.api.nvim_buf_get_offset(buf, first - 1)
  if bytes > loaded.MAX_BYTES then
    local text =
      "%s: these lines have %d MB, more than the %d MB that can be read at once; ask for fewer with line and limit"
    local mb = 1024 * 1024
    local error = text:format(what.path, math.ceil(bytes / mb), loaded.MAX_BYTES / mb)
    return answer(request, { ok = false, error = error })
  end
  local lines = vim.api.nvim_buf_get_lines(buf, first - 1, last, false)
  if first == 1 and last == count then
    note_served(key, buf, loaded.text(buf))
  end
  local text = table.concat(lines, "\n")
  -- A buffer without text has one line, and no byte of it.
  local nothing = count == 1 and lines[1] == "" and vim.api.nvim_buf_call(buf, vim.fn.wordcount).bytes == 0
  if not nothing and (last < count or vim.bo[buf].endofline) then
    text = text .. "\n"
  end
  answer(request, { ok = true, content = text })
end

---@param buf integer
---@param hunks cursor_agent.merge.Hunk[]
local function set_hunks(buf, hunks)
  local modifiable = vim.bo[buf].modifiable
  vim.bo[buf].modifiable = true
  reviewed.quietly(buf, function()
    merge.apply(buf, hunks)
  end)
  vim.bo[buf].modifiable = modifiable
end

---@param buf integer
---@param lines string[]
local function set_lines(buf, lines)
  set_hunks(buf, merge.diff(vim.api.nvim_buf_get_lines(buf, 0, -1, false), lines))
end

-- The modes 0222.
local WRITABLE = 146

---Writes a buffer to its file without the user's formatters and the like, which would change what the agent wrote, and
---with all the care Neovim can take: a file that cannot be written whole stays as it was.
---@param buf integer
---@param eol boolean
---@param real string? where the path has to lead
---@return boolean?, string?
local function write_buffer(buf, eol, real)
  local bo = vim.bo[buf]
  local path = vim.api.nvim_buf_get_name(buf)
  local stat = vim.uv.fs_stat(path)
  if stat and stat.type ~= "file" then
    return nil, path .. ": not a regular file"
  elseif not stat and vim.uv.fs_lstat(path) then
    return nil, path .. ": a link that leads nowhere"
  elseif bo.readonly or (stat and (bit.band(stat.mode, WRITABLE) == 0 or not vim.uv.fs_access(path, "W"))) then
    return nil, path .. ": read-only; nothing was written"
  end
  if not loaded.sync(buf, true) and not loaded.is_current(buf, path) then
    return nil, path .. ": the editor is busy; nothing was written, try again"
  end
  local made, problem = pcall(vim.fn.mkdir, vim.fs.dirname(path), "p")
  if not made then
    return nil, (tostring(problem):gsub("^.-(E%d+:)", "%1"))
  end
  if leads_elsewhere(path, real) then
    return nil, elsewhere(path).error
  end
  local fix, end_of_line = bo.fixendofline, bo.endofline
  local backup, skip = vim.o.writebackup, vim.o.backupskip
  bo.fixendofline = false
  bo.endofline = eol
  vim.o.writebackup = true
  vim.o.backupskip = ""
  local ok, why = pcall(vim.api.nvim_buf_call, buf, function()
    vim.cmd("silent noautocmd keepalt lockmarks write")
  end)
  vim.o.writebackup = backup
  vim.o.backupskip = skip
  bo.fixendofline = fix
  if not ok then
    bo.endofline = end_of_line
    local said = tostring(why):match("(E%d+:[^\n]*)") or tostring(why)
    return nil, ("%s: %s"):format(path, said)
  end
  loaded.note(buf)
  reviewed.quietly(buf, function()
    vim.api.nvim_exec_autocmds("BufWritePost", { buffer = buf, modeline = false })
  end)
  return true
end

---What undoes hunks, once they are applied.
---@param buf integer
---@param hunks cursor_agent.merge.Hunk[]
---@return cursor_agent.merge.Hunk[]
local function inverse(buf, hunks)
  local back, grown = {}, 0 ---@type cursor_agent.merge.Hunk[], integer
  for i, hunk in ipairs(hunks) do
    local first = hunk.removed == 0 and hunk.from or hunk.from - 1
    local lines = vim.api.nvim_buf_get_lines(buf, first, first + hunk.removed, false)
    local from = first + grown + (#hunk.lines > 0 and 1 or 0)
    back[i] = { from = from, removed = #hunk.lines, lines = lines }
    grown = grown + #hunk.lines - hunk.removed
  end
  return back
end

---A buffer as it was, to go back to when the file cannot be written.
---@param buf integer
---@param hunks cursor_agent.merge.Hunk[] that are about to be applied
---@return fun() restore
local function remember(buf, hunks)
  local back, modified = inverse(buf, hunks), vim.bo[buf].modified
  local step = vim.api.nvim_buf_call(buf, vim.fn.undotree).seq_cur
  return function()
    vim.api.nvim_buf_call(buf, function()
      local view = vim.fn.winsaveview()
      -- In Insert mode Neovim would lose count of what is typed.
      if vim.api.nvim_get_mode().mode:sub(1, 1) == "n" and vim.fn.undotree().seq_cur ~= step then
        vim.cmd("silent! noautocmd undo " .. step)
      end
      if vim.fn.undotree().seq_cur ~= step then
        set_hunks(buf, back)
      end
      vim.fn.winrestview(view)
    end)
    vim.bo[buf].modified = modified
  end
end

---Why a text cannot be written in the encoding of a buffer's file. Neovim would write other characters instead.
---@param buf integer
---@return string?
local function not_encodable(buf)
  local encoding = vim.bo[buf].fileencoding
  if encoding == "" or encoding == "utf-8" then
    return nil
  end
  ---@param text string
  ---@return boolean
  local function fits(text)
    local there = vim.iconv(text, "utf-8", encoding)
    return there ~= nil and vim.iconv(there, encoding, "utf-8") == text
  end
  local lines = loaded.lines(buf)
  if fits(table.concat(lines, "\n")) then
    return nil
  end
  for i, line in ipairs(lines) do
    if not fits(line) then
      local text = "%s: line %d has characters that cannot be written in %s, the file's encoding; nothing was written"
      return text:format(vim.api.nvim_buf_get_name(buf), i, encoding)
    end
  end
end

---Puts a text into a buffer and its file, or leaves both as they are.
---@param buf integer
---@param hunks cursor_agent.merge.Hunk[] what makes the text of the buffer's
---@param eol boolean
---@param real string? where the path has to lead
---@return boolean?, string?
local function put(buf, hunks, eol, real)
  local restore = remember(buf, hunks)
  set_hunks(buf, hunks)
  local ok, why = nil, not_encodable(buf)
  if not why then
    ok, why = write_buffer(buf, eol, real)
  end
  if not ok then
    restore()
  end
  return ok, why
end

---@param buf integer
local function drop_disk_conflict(buf)
  local conflict = conflicts.on_disk(buf)
  if conflict then
    conflicts.drop(conflict)
  end
end

---Ends a conflict when the user lets go of the unsaved text otherwise, by `:bdelete!` or `:edit!`.
---@param conflict cursor_agent.Conflict
local function follow_buffer(conflict)
  local buf = conflict.buf
  vim.api.nvim_create_autocmd("BufUnload", {
    buffer = buf,
    desc = "cursor-agent: settle a conflict whose unsaved text is gone",
    callback = vim.schedule_wrap(function()
      local is_loaded = vim.api.nvim_buf_is_loaded(buf)
      if not vim.tbl_contains(conflicts.list, conflict) or (is_loaded and vim.bo[buf].modified) then
        return
      end
      conflicts.drop(conflict)
      if conflict.request and conflict.what then
        M.serve(conflict.request, conflict.what, conflict.key)
      end
    end),
  })
end

---What the editor's text, the agent's and what the disk has gained since the buffer was loaded are put together from.
---@param buf integer
---@param disk cursor_agent.loaded.Disk? what is on disk, if there is a file
---@param ours string the editor's
---@param theirs string the agent's text
---@param basis string? what it was made from
---@return cursor_agent.merge.Texts? texts nothing where they cannot be put together
local function ingredients(buf, disk, ours, theirs, basis)
  local on_disk = disk and disk.text or ""
  -- Whoever has read the text builds on it.
  local texts = { ours = ours, theirs = theirs, basis = basis or on_disk } ---@type cursor_agent.merge.Texts
  if vim.bo[buf].modified and disk and not loaded.equal(ours, on_disk) then
    texts.saved = basis and not loaded.equal(basis, on_disk) and on_disk or nil
    local base = loaded.base(buf, disk)
    if not base then
      return nil
    elseif not loaded.equal(base, on_disk) then
      texts.base, texts.disk = base, on_disk
    end
  end
  return texts
end

---A write that would destroy unsaved text waits for the user.
---@param conflict cursor_agent.Conflict
local function ask_about(conflict)
  if
    not conflicts.waiting(conflict.request --[[@as integer]])
  then
    conflicts.add(conflict)
    follow_buffer(conflict)
  end
end

---A step that comes later: what goes wrong in it is told to the agent that waits.
---@generic T
---@param request integer
---@param step fun(value: T)
---@return fun(value: T)
local function guarded(request, step)
  return function(value)
    local ok, why = xpcall(step, debug.traceback, value)
    if not ok then
      answer(request, { ok = false, error = tostring(why) })
    end
  end
end

---@param request integer
---@param what cursor_agent.EditorRequest
---@param key cursor_agent.Key?
---@param tries integer how often it may be begun
local function write(request, what, key, tries)
  if leads_elsewhere(what.path, what.real) then
    return answer(request, elsewhere(what.path))
  end
  local buf = buffer_of(what.path)
  watch.touch(what.path, buf)
  if not buf or not vim.bo[buf].modifiable then
    return leave_to_disk(request)
  end
  local path = vim.api.nvim_buf_get_name(buf)
  local theirs, eol = loaded.whole(what.content or "", buf)
  local stat = vim.uv.fs_stat(path)
  if stat and not vim.bo[buf].modified and not loaded.is_current(buf, path) then
    M.changed(buf)
  end
  local disk, problem ---@type cursor_agent.loaded.Disk?, string?
  if stat then
    disk, problem = loaded.disk(buf, path)
    if not disk and problem == "too large" and not vim.bo[buf].modified then
      return leave_to_disk(request)
    elseif not disk then
      return answer(request, { ok = false, error = ("%s: %s; nothing was written"):format(path, problem) })
    end
  end
  local basis = served[key] and served[key][buf]
  local state, tick = disk and disk.state or loaded.NONE, vim.api.nvim_buf_get_changedtick(buf)

  ---@param hunks cursor_agent.merge.Hunk[]?
  local function combined(hunks)
    -- What came in between is merged as well.
    local same_buffer = vim.api.nvim_buf_is_loaded(buf) and vim.api.nvim_buf_get_changedtick(buf) == tick
    if not same_buffer or loaded.state(vim.uv.fs_stat(path)) ~= state then
      if tries > 1 then
        return M.serve(request, what, key, tries - 1)
      end
      local error = path .. ": something else keeps writing this file; nothing was written"
      return answer(request, { ok = false, error = error })
    elseif hunks then
      local ok, trouble = put(buf, hunks, eol, what.real)
      if ok then
        note_served(key, buf, theirs)
        drop_disk_conflict(buf)
      end
      return answer(request, { ok = ok == true, error = trouble })
    elseif not vim.bo[buf].modified then
      local error = path .. ": the file has changed since you read it; read it again before writing"
      return answer(request, { ok = false, error = error })
    end
    ask_about({
      path = what.path,
      buf = buf,
      theirs = loaded.cut(theirs),
      text = theirs,
      eol = eol,
      basis = basis or (disk and disk.text) or "",
      request = request,
      what = what,
      key = key,
    })
  end

  ---@param ours string
  local function with_ours(ours)
    if not vim.api.nvim_buf_is_loaded(buf) then
      return combined(nil)
    elseif vim.bo[buf].modified and loaded.equal(ours, theirs) then
      return combined({})
    end
    local texts = ingredients(buf, disk, ours, theirs, basis)
    if texts then
      merge.combine("merged", texts, guarded(request, combined))
    else
      combined(nil)
    end
  end
  loaded.text_in_pieces(buf, guarded(request, with_ours))
end

---The agent does not wait for this any more: there is nothing left to settle.
---@param request integer
function M.withdrawn(request)
  local conflict = conflicts.waiting(request)
  if conflict then
    conflicts.drop(conflict)
  end
end

---Answers what an agent asks of the editor.
---@param request integer
---@param what cursor_agent.EditorRequest
---@param key cursor_agent.Key? the session that asks
---@param tries integer? how often a write may be begun
function M.serve(request, what, key, tries)
  local ok, why = xpcall(what.op == "read" and read or write, debug.traceback, request, what, key, tries or TRIES)
  if not ok then
    answer(request, { ok = false, error = tostring(why) })
  end
end

---An agent took a file away: only its buffer has the text now.
---@param path string
---@param buf integer
---@param cwd string
local function deleted(path, buf, cwd)
  if missing[buf] then
    return
  end
  missing[buf] = true
  -- Otherwise Neovim would say at some later moment that the file is no longer available.
  vim.cmd("silent! noautocmd checktime " .. buf)
  vim.api.nvim_create_autocmd({ "BufWritePost", "BufReadPost", "BufUnload" }, {
    buffer = buf,
    once = true,
    desc = "cursor-agent: a file that an agent deleted is there again, or its text is let go",
    callback = function()
      missing[buf] = nil
    end,
  })
  local text = "the agent deleted or moved %s; its text is still in the buffer, and `:w` there brings the file back"
  notify.notify(text:format(format.path(path, cwd)), "warn")
end

---Has an unmodified buffer read its file by Neovim's own means.
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

---A file that cannot be read here, or be compared.
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
        .. "it cannot be compared here: `:w!` there writes yours, `:e!` takes the agent's"
      notify.notify(text:format(format.path(path, cwd)), "warn")
    end
  end
end

---Shows in an unmodified buffer what is on disk.
---@param buf integer
---@param disk cursor_agent.loaded.Disk
---@param hunks cursor_agent.merge.Hunk[] what makes that of the buffer
local function reload(buf, disk, hunks)
  local same = #hunks == 0
  if not same then
    -- What undo brings back is not on disk any more.
    vim.bo[buf].modified = true
    set_hunks(buf, hunks)
  end
  vim.bo[buf].endofline = disk.eol
  if loaded.sync(buf, false) then
    loaded.note(buf, disk)
  else
    -- In the middle of an autocommand Neovim cannot be told.
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
    -- It may have been given this text quietly.
    events.emit("buffer in step", { path })
  end
end

---Takes note that a buffer with unsaved text has all it is to have of the disk.
---@param buf integer
---@param disk cursor_agent.loaded.Disk?
local function have_disk(buf, disk)
  loaded.sync(buf, true)
  loaded.note(buf, disk)
  local path = reviewed.path(buf)
  if path then
    events.emit("buffer in step", { path })
  end
end

---Unsaved text and what is on disk collide: the user decides.
---@param buf integer
---@param disk cursor_agent.loaded.Disk
---@param base string? what both were made from
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
  follow_buffer(conflict)
  if not asked and not opts.quietly then
    local by_agent = opts.reported or watch.in_running(buf)
    local cwd = opts.chat and opts.chat.cwd or vim.fn.getcwd()
    local text = (by_agent and "the agent changed %s on disk" or "%s was changed on disk")
      .. "; your unsaved changes are untouched\n"
      .. "  :CursorAgent conflicts shows the difference; `:w!` there writes yours, `:e!` takes the other"
    notify.notify(text:format(format.path(path, cwd)), "warn")
  end
end

---Puts what an agent wrote on disk into a buffer, between lines that are not saved and stay so.
---@param buf integer
---@param disk cursor_agent.loaded.Disk
---@param hunks cursor_agent.merge.Hunk[] what makes of the buffer all of both
---@param opts cursor_agent.files.Changed
local function take_merged(buf, disk, hunks, opts)
  drop_disk_conflict(buf)
  local before = #disk.text <= loaded.LONG_BYTES and reviewed.text(buf) or nil
  set_hunks(buf, hunks)
  if not disk.eol then
    vim.bo[buf].endofline = false
  end
  if before then
    reviewed.merged(buf, before, reviewed.text(buf))
  end
  have_disk(buf, disk)
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

---Does something with the text of a buffer, and what comes of it to the buffer, unless one of them or the disk has changed
---meanwhile; then all of it is looked at again.
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

---An agent wrote a file on disk that has unsaved text: both are put together, or the user decides where they collide.
---@param buf integer
---@param disk cursor_agent.loaded.Disk
---@param base string what both were made from
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

---Reads a long file again, a piece at a time.
---@param buf integer
---@param disk cursor_agent.loaded.Disk
---@param opts cursor_agent.files.Changed
local function reload_long(buf, disk, opts)
  compared(buf, disk, opts, function(ours, done)
    merge.combine("merged", { ours = ours, theirs = disk.text, basis = ours }, done)
  end, function(hunks)
    drop_disk_conflict(buf)
    reload(buf, disk, hunks or {})
  end)
end

---@class (exact) cursor_agent.files.Changed
---@field chat? cursor_agent.Chat
---@field reported? boolean an agent said so
---@field quietly? boolean the user knows

---Tells the review of a change that no agent has told of yet: the user may save over it before one does.
---@param buf integer
---@param disk cursor_agent.loaded.Disk
local function notice(buf, disk)
  local path = reviewed.path(buf)
  if path and bridge.is_loaded() and watch.in_running(buf) then
    bridge.review_noticed(path, disk.bytes, disk.state)
  end
end

---A buffer was read while a turn runs: what it read may be an agent's already.
---@param buf integer
function M.was_read(buf)
  local stat = vim.uv.fs_stat(vim.api.nvim_buf_get_name(buf))
  if stat and stat.size <= loaded.LONG_BYTES and watch.in_running(buf) then
    local disk = loaded.disk(buf, vim.api.nvim_buf_get_name(buf))
    if disk then
      notice(buf, disk)
    end
  end
end

---A file may have changed on disk: its buffer gets the new text, merged with what is not saved where they do not collide.
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
    -- Its times have changed at most.
    drop_disk_conflict(buf)
    if loaded.known(buf) ~= disk.state then
      if not modified then
        vim.bo[buf].endofline = disk.eol
      end
      loaded.sync(buf, modified)
      loaded.note(buf, disk)
    end
    return
  end
  notice(buf, disk)
  local long = #disk.text > loaded.LONG_BYTES
  if not modified and long then
    return reload_long(buf, disk, opts)
  elseif not long then
    local lines = loaded.lines(buf)
    local same = loaded.same(lines, disk.lines)
    if same or not modified then
      drop_disk_conflict(buf)
      local all = vim.api.nvim_buf_get_lines(buf, 0, -1, false)
      return reload(buf, disk, same and {} or merge.diff(all, disk.lines))
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

---An agent says that it has changed a file.
---@param path string
---@param key cursor_agent.Key? its session
function M.edited(path, key)
  local buf = buffer_of(path)
  watch.touch(path, buf)
  if buf then
    M.changed(buf, { chat = chats.get(key), reported = true })
  end
end

---A buffer was written: nothing on disk is in conflict with it.
---@param buf integer
function M.after_write(buf)
  local path = vim.api.nvim_buf_get_name(buf)
  if vim.fn.expand("<afile>:p") == path then
    merged[buf] = nil
    loaded.note(buf)
    drop_disk_conflict(buf)
  end
end

---What the agent hears of a write that was not done.
local REFUSED = {
  mine = "the user has unsaved changes in this file and kept them; read it again before writing",
  both = "the user is merging this file by hand; read it again before writing",
  cancel = "the user cancelled this write: nothing was written, their unsaved changes are kept",
}

---Takes the agent's text.
---@param conflict cursor_agent.Conflict
local function take_theirs(conflict)
  local buf, request = conflict.buf, conflict.request
  if request then
    local now = vim.api.nvim_buf_get_lines(buf, 0, -1, false)
    local ok, why = put(buf, merge.diff(now, conflict.theirs), conflict.eol, conflict.what and conflict.what.real)
    if ok then
      note_served(conflict.key, buf, conflict.text)
      drop_disk_conflict(buf)
    else
      notify.notify(("the agent's text was not written: %s"):format(why), "error")
    end
    return answer(request, { ok = ok == true, error = why })
  end
  vim.bo[buf].modified = true
  set_lines(buf, conflict.theirs)
  vim.bo[buf].endofline = conflict.eol
  vim.bo[buf].modified = false
  -- It may have changed once more.
  M.changed(buf)
end

---Puts both texts into the buffer, unsaved, what collides between markers.
---@param conflict cursor_agent.Conflict
local function take_both(conflict)
  local buf = conflict.buf
  local tick = vim.api.nvim_buf_get_changedtick(buf)
  local texts = { ours = loaded.text(buf), theirs = conflict.text, basis = conflict.basis }
  merge.combine("marked", texts, function(hunks)
    if not vim.api.nvim_buf_is_loaded(buf) then
      return
    elseif vim.api.nvim_buf_get_changedtick(buf) ~= tick then
      return take_both(conflict)
    end
    local modifiable = vim.bo[buf].modifiable
    vim.bo[buf].modifiable = true
    -- To the review this is the user's doing: it is in no file.
    merge.apply(buf, hunks or {})
    vim.bo[buf].modifiable = modifiable
    if conflict.disk then
      -- All that is on disk is in the buffer now.
      have_disk(buf, conflict.disk)
    end
    local text = "%s has both texts, what collides between <<<<<<< yours and >>>>>>> agent; it is not saved"
    notify.notify(text:format(vim.fs.basename(conflict.path)))
  end)
end

---@param decision { id: integer, request: integer? }
---@param choice "mine"|"theirs"|"both"|"cancel"
local function carry_out(decision, choice)
  local conflict = conflicts.of(decision)
  if not conflict then
    -- Nothing of the write is left here; its agent must not wait for that.
    if decision.request then
      answer(decision.request, { ok = false, error = REFUSED.cancel })
    end
    return
  end
  conflict.decision = nil
  conflicts.drop(conflict)
  local buf, request = conflict.buf, conflict.request
  if not vim.api.nvim_buf_is_loaded(buf) then
    if request and choice == "theirs" then
      leave_to_disk(request)
    elseif request then
      answer(request, { ok = false, error = REFUSED[choice] })
    end
    return
  end
  if choice == "theirs" then
    take_theirs(conflict)
    -- Others that wait to write it are up against another text now.
    for _, other in ipairs(vim.list_slice(conflicts.list)) do
      if other.buf == buf and other.request and other.what then
        conflicts.drop(other)
        M.serve(other.request, other.what, other.key)
      end
    end
    return
  end
  if request then
    answer(request, { ok = false, error = REFUSED[choice] })
  elseif choice == "mine" then
    -- It was asked and answered: `:w` need not ask again.
    reviewed.is_mine(buf)
    have_disk(buf, conflict.disk)
  elseif choice == "cancel" then
    dismissed[buf] = conflict.disk and conflict.disk.state
  end
  if choice == "both" then
    take_both(conflict)
  end
end

---Does what the user decided about a conflict.
---@param decision { id: integer, request: integer? }
---@param choice "mine"|"theirs"|"both"|"cancel"
function M.decided(decision, choice)
  local ok, why = xpcall(carry_out, debug.traceback, decision, choice)
  if not ok then
    if decision.request then
      answer(decision.request, { ok = false, error = tostring(why) })
    end
    notify.notify(("the conflict could not be settled: %s"):format(why), "error")
  end
end

---Shows the user's text and the agent's side by side in a tab page of their own.
---@param conflict cursor_agent.Conflict
---@return integer? buf the agent's
---@return integer? win the user's
function M.show_difference(conflict)
  if not pcall(vim.api.nvim_command, "tab sbuffer " .. conflict.buf) then
    return nil
  end
  local mine = vim.api.nvim_get_current_win()
  vim.cmd("diffthis")
  local theirs = vim.api.nvim_create_buf(false, true)
  local parsers = require("cursor_agent.colour.parsers")
  parsers.fence(theirs, parsers.language_of(vim.bo[conflict.buf].filetype))
  vim.api.nvim_buf_set_lines(theirs, 0, -1, false, conflict.theirs)
  vim.bo[theirs].bufhidden = "wipe"
  vim.bo[theirs].filetype = vim.bo[conflict.buf].filetype
  vim.bo[theirs].modifiable = false
  vim.api.nvim_buf_set_name(theirs, ("cursor-agent://theirs/%d/%s"):format(theirs, vim.fs.basename(conflict.path)))
  vim.api.nvim_open_win(theirs, true, { split = "right", win = mine })
  vim.cmd("diffthis")
  vim.api.nvim_create_autocmd("BufWipeout", {
    buffer = theirs,
    once = true,
    desc = "cursor-agent: the difference was closed",
    callback = vim.schedule_wrap(function()
      if vim.api.nvim_win_is_valid(mine) and vim.api.nvim_win_get_buf(mine) == conflict.buf then
        vim.api.nvim_win_call(mine, function()
          vim.cmd("diffoff")
        end)
        -- The text stays, in a hidden buffer where it is shown nowhere else.
        pcall(vim.api.nvim_win_close, mine, true)
      end
    end),
  })
  return theirs, mine
end

---The oldest conflict there still is.
---@return cursor_agent.Conflict?
function M.oldest_conflict()
  local conflict = conflicts.list[1]
  while conflict and not vim.api.nvim_buf_is_loaded(conflict.buf) do
    conflicts.drop(conflict)
    if conflict.request then
      leave_to_disk(conflict.request)
    end
    conflict = conflicts.list[1]
  end
  return conflict
end

return M
