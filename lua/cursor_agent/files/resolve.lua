-- Carries out the user's decision about a file with both unsaved text and a different text from an agent.

local changed = require("cursor_agent.files.changed")
local conflicts = require("cursor_agent.files.conflicts")
local loaded = require("cursor_agent.files.loaded")
local merge = require("cursor_agent.files.merge")
local notify = require("cursor_agent.notify")
local put = require("cursor_agent.files.put")
local reply = require("cursor_agent.files.reply")
local reviewed = require("cursor_agent.review.buffers")
local served = require("cursor_agent.files.served")

local M = {}

---The agent's error for a refused write.
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
    local by, real = changed.author(buf, conflict.key, true), conflict.what and conflict.what.real
    local ok, why = put.put(buf, merge.diff(now, conflict.theirs), conflict.eol, real, by)
    if ok then
      served.note(conflict.key, buf, conflict.text)
      conflicts.drop_on_disk(buf)
    else
      notify.notify(("the agent's text was not written: %s"):format(why), "error")
    end
    return reply.send(request, { ok = ok == true, error = why })
  end
  vim.bo[buf].modified = true
  local before, disk = put.short_text(buf), conflict.disk
  put.set_lines(buf, conflict.theirs)
  vim.bo[buf].endofline = conflict.eol
  vim.bo[buf].modified = false
  if disk then
    local by = changed.author(buf, conflict.key, true)
    reviewed.took(buf, { state = disk.state, bytes = disk.bytes, before = before, author = by })
    loaded.note(buf, disk)
    loaded.sync(buf, false)
  end
  -- It may have changed again.
  changed.changed(buf)
end

---Puts both texts into the buffer, unsaved, with conflicts between markers.
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
    -- The review sees this as the user's work: it is in no file.
    merge.apply(buf, hunks or {})
    vim.bo[buf].modifiable = modifiable
    if conflict.disk then
      -- The buffer now has everything that is on disk.
      local by = changed.author(buf, conflict.key, true)
      changed.have_disk(buf, conflict.disk, { state = "", same = true, author = by })
    end
    local text = "%s now has both texts, unsaved: conflicts are between <<<<<<< yours and >>>>>>> agent"
    notify.notify(text:format(vim.fs.basename(conflict.path)))
  end)
end

---@param decision { id: integer, request: integer? }
---@param choice "mine"|"theirs"|"both"|"cancel"
local function carry_out(decision, choice)
  local conflict = conflicts.of(decision)
  if not conflict then
    -- There is no trace of the write here; its agent must not wait forever.
    if decision.request then
      reply.refuse(decision.request, REFUSED.cancel)
    end
    return
  end
  conflict.decision = nil
  conflicts.drop(conflict)
  local buf, request = conflict.buf, conflict.request
  if not vim.api.nvim_buf_is_loaded(buf) then
    if request and choice == "theirs" then
      reply.leave_to_disk(request)
    elseif request then
      reply.refuse(request, REFUSED[choice])
    end
    return
  end
  if choice == "theirs" then
    take_theirs(conflict)
    -- Other pending writes to this file now face a different text.
    for _, other in ipairs(vim.list_slice(conflicts.list)) do
      if other.buf == buf and other.again then
        conflicts.drop(other)
        other.again()
      end
    end
    return
  end
  if request then
    reply.refuse(request, REFUSED[choice])
  elseif choice == "mine" then
    -- The user has already answered this: `:w` need not ask again.
    local by = changed.author(buf, conflict.key, true)
    changed.have_disk(buf, conflict.disk, { state = "", before = put.short_text(buf), same = true, author = by })
  elseif choice == "cancel" then
    changed.dismiss(buf, conflict.disk and conflict.disk.state)
  end
  if choice == "both" then
    take_both(conflict)
  end
end

---Carries out the user's decision about a conflict.
---@param decision { id: integer, request: integer? }
---@param choice "mine"|"theirs"|"both"|"cancel"
function M.decided(decision, choice)
  local ok, why = xpcall(carry_out, debug.traceback, decision, choice)
  if not ok then
    if decision.request then
      reply.refuse(decision.request, tostring(why))
    end
    notify.notify(("the conflict could not be resolved: %s"):format(why), "error")
  end
end

---The oldest open conflict.
---@return cursor_agent.Conflict?
function M.oldest()
  local conflict = conflicts.list[1]
  while conflict and not vim.api.nvim_buf_is_loaded(conflict.buf) do
    conflicts.drop(conflict)
    if conflict.again then
      conflict.again()
    end
    conflict = conflicts.list[1]
  end
  return conflict
end

return M
