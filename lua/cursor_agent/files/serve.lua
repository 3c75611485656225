-- Serves agents' file requests: they read unsaved text, and their writes never destroy any.

local changed = require("cursor_agent.files.changed")
local conflicts = require("cursor_agent.files.conflicts")
local find = require("cursor_agent.files.find")
local loaded = require("cursor_agent.files.loaded")
local merge = require("cursor_agent.files.merge")
local put = require("cursor_agent.files.put")
local reply = require("cursor_agent.files.reply")
local served = require("cursor_agent.files.served")
local watch = require("cursor_agent.files.watch")

local M = {}

---How often to start a write over while the file or its buffer keeps changing.
local TRIES = 3

---The error for an agent that does not know the current content of the file it wants to write.
local CHANGED = ": the file has changed since you read it; read it again before writing"

---@class (exact) cursor_agent.files.Since
---@field basis string what the agent's text was based on, each line with its line ending
---@field state string the state of the file at that time

---@param request integer
---@param what cursor_agent.EditorRequest
---@param key cursor_agent.Key?
local function read(request, what, key)
  if find.leads_elsewhere(what.path, what.real) then
    return reply.refuse(request, find.elsewhere(what.path))
  end
  local buf = find.buffer(what.path)
  if not buf then
    return reply.leave_to_disk(request)
  end
  local path = vim.api.nvim_buf_get_name(buf)
  local stat = vim.uv.fs_stat(path)
  if stat and stat.type ~= "file" then
    return reply.refuse(request, what.path .. ": not a regular file")
  end
  if not stat and not vim.bo[buf].modified then
    -- Deleted, or never created: the buffer's text is in no file.
    return reply.leave_to_disk(request)
  end
  if stat and not loaded.is_current(buf, path) then
    changed.changed(buf)
  end
  if stat and not vim.bo[buf].modified and (stat.size > loaded.MAX_BYTES or not loaded.is_current(buf, path)) then
    return reply.leave_to_disk(request)
  end
  local count = vim.api.nvim_buf_line_count(buf)
  local first = math.max(what.line or 1, 1)
  local last = what.limit and math.min(first + what.limit - 1, count) or count
  if first > last then
    return reply.send(request, { ok = true, content = "" })
  end
  local bytes = vim.api.nvim_buf_get_offset(buf, last) - vim.api.nvim_buf_get_offset(buf, first - 1)
  if bytes > loaded.MAX_BYTES then
    local text =
      "%s: these lines are %d MB, more than the %d MB that can be read at once; read fewer with line and limit"
    local mb = 1024 * 1024
    local error = text:format(what.path, math.ceil(bytes / mb), loaded.MAX_BYTES / mb)
    return reply.refuse(request, error)
  end
  local lines = vim.api.nvim_buf_get_lines(buf, first - 1, last, false)
  if first == 1 and last == count then
    served.note(key, buf, loaded.text(buf))
  end
  local text = table.concat(lines, "\n")
  -- An empty buffer has one line, but no bytes.
  local nothing = count == 1 and lines[1] == "" and vim.api.nvim_buf_call(buf, vim.fn.wordcount).bytes == 0
  if not nothing and (last < count or vim.bo[buf].endofline) then
    text = text .. "\n"
  end
  reply.send(request, { ok = true, content = text })
end

---The inputs of the merge of the editor's text, the agent's, and what changed on disk since the buffer was loaded.
---@param buf integer
---@param disk cursor_agent.loaded.Disk? what is on disk, if there is a file
---@param ours string the editor's text
---@param theirs string the agent's text
---@param basis string? what it was based on
---@return cursor_agent.merge.Texts? texts nil if they cannot be merged
local function ingredients(buf, disk, ours, theirs, basis)
  local on_disk = disk and disk.text or ""
  -- An agent that has read the text builds on it.
  local texts = { ours = ours, theirs = theirs, basis = basis or on_disk } ---@type cursor_agent.merge.Texts
  if not disk and not vim.bo[buf].modified then
    -- The file was deleted and is created again: keep nothing of it.
    texts.basis = ours
  end
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
    conflicts.follow(conflict)
  end
end

---Wraps a later step: an error in it is reported to the waiting agent.
---@generic T
---@param request integer
---@param step fun(value: T)
---@return fun(value: T)
local function guarded(request, step)
  return function(value)
    local ok, why = xpcall(step, debug.traceback, value)
    if not ok then
      reply.refuse(request, tostring(why))
    end
  end
end

---@param request integer
---@param what cursor_agent.EditorRequest
---@param key cursor_agent.Key?
---@param tries integer how often it may start over
---@param since cursor_agent.files.Since? the file when it was requested, if that was a while ago
local function write(request, what, key, tries, since)
  if find.leads_elsewhere(what.path, what.real) then
    return reply.refuse(request, find.elsewhere(what.path))
  end
  local buf = find.buffer(what.path)
  watch.touch(what.path, buf)
  if not buf or not vim.bo[buf].modifiable then
    if since and loaded.state(vim.uv.fs_stat(what.path)) ~= since.state then
      return reply.refuse(request, what.path .. CHANGED)
    end
    return reply.leave_to_disk(request)
  end
  local path = vim.api.nvim_buf_get_name(buf)
  local theirs, eol = loaded.whole(what.content or "", buf)
  local stat = vim.uv.fs_stat(path)
  if stat and not vim.bo[buf].modified and not loaded.is_current(buf, path) then
    changed.changed(buf)
  end
  local disk, problem ---@type cursor_agent.loaded.Disk?, string?
  if stat then
    disk, problem = loaded.disk(buf, path)
    if not disk and problem == "too large" and not vim.bo[buf].modified then
      return reply.leave_to_disk(request)
    elseif not disk then
      return reply.refuse(request, ("%s: %s; nothing was written"):format(path, problem))
    end
  end
  -- The agent has not read what the user saved while it waited.
  local basis = since and since.basis or served.text(key, buf)
  local state, tick = disk and disk.state or loaded.NONE, vim.api.nvim_buf_get_changedtick(buf)

  ---@param hunks cursor_agent.merge.Hunk[]?
  ---@param ours string? what they were made from
  local function combined(hunks, ours)
    -- What changed in between is merged as well.
    local same_buffer = vim.api.nvim_buf_is_loaded(buf) and vim.api.nvim_buf_get_changedtick(buf) == tick
    if not same_buffer or loaded.state(vim.uv.fs_stat(path)) ~= state then
      if tries > 1 then
        return M.serve(request, what, key, tries - 1, since)
      end
      local error = path .. ": something else keeps writing this file; nothing was written"
      return reply.refuse(request, error)
    elseif hunks then
      local ok, trouble = put.put(buf, hunks, eol, what.real, changed.author(buf, key, true), ours)
      if ok then
        served.note(key, buf, theirs)
        conflicts.drop_on_disk(buf)
      end
      return reply.send(request, { ok = ok == true, error = trouble })
    elseif not vim.bo[buf].modified then
      return reply.refuse(request, path .. CHANGED)
    end
    local ground = since or { basis = basis or (disk and disk.text) or "", state = state }
    ask_about({
      path = what.path,
      buf = buf,
      theirs = loaded.cut(theirs),
      text = theirs,
      eol = eol,
      basis = ground.basis,
      request = request,
      what = what,
      key = key,
      again = function()
        M.serve(request, what, key, nil, ground)
      end,
    })
  end

  ---@param ours string
  local function with_ours(ours)
    if not vim.api.nvim_buf_is_loaded(buf) then
      return combined(nil)
    elseif vim.bo[buf].modified and loaded.equal(ours, theirs) then
      return combined({}, ours)
    end
    local texts = ingredients(buf, disk, ours, theirs, basis)
    if texts then
      merge.combine(
        "merged",
        texts,
        guarded(request, function(hunks)
          combined(hunks, ours)
        end)
      )
    else
      combined(nil)
    end
  end
  loaded.text_in_pieces(buf, guarded(request, with_ours))
end

---The agent no longer waits for this: there is nothing left to decide.
---@param request integer
function M.withdrawn(request)
  local conflict = conflicts.waiting(request)
  if conflict then
    conflicts.drop(conflict)
  end
end

---Answers an agent's request to the editor.
---@param request integer
---@param what cursor_agent.EditorRequest
---@param key cursor_agent.Key? the session that asks
---@param tries integer? how often a write may start over
---@param since cursor_agent.files.Since?
function M.serve(request, what, key, tries, since)
  local serve = what.op == "read" and read or write
  local ok, why = xpcall(serve, debug.traceback, request, what, key, tries or TRIES, since)
  if not ok then
    reply.refuse(request, tostring(why))
  end
end

return M
