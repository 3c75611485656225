-- `:CursorAgent checkpoint`: files as they were before a prompt, listed, compared and restored.

local chats = require("cursor_agent.chat.registry")
local events = require("cursor_agent.bridge.events")
local format = require("cursor_agent.render.format")
local bridge = require("cursor_agent.bridge")
local notify = require("cursor_agent.notify")

local M = {}

---The checkpoints of a session, newest first.
---@param session? cursor_agent.Session
---@return cursor_agent.Checkpoint[]?, string?
function M.list(session)
  local chat, why = chats.find(session)
  if not chat then
    return nil, why
  end
  local ready, problem = bridge.load()
  if not ready then
    return nil, problem
  end
  return bridge.checkpoints(chat.status.session_id or "")
end

---Files whose buffers have unsaved text.
---@return string[]
local function unsaved()
  local paths = {} ---@type string[]
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buf) and vim.bo[buf].modified and vim.bo[buf].buftype == "" then
      paths[#paths + 1] = vim.api.nvim_buf_get_name(buf)
    end
  end
  return paths
end

---Restores files to a checkpoint.
---@param id string
---@param opts? { files: string[]?, force: boolean? }
---@return { restored: string[], kept: string[] }?
---@return string? problem
---@return string[]? failed why some of those that are kept could not be restored
function M.restore(id, opts)
  opts = opts or {}
  if type(id) ~= "string" and type(id) ~= "number" then
    return nil, "expected a checkpoint's id, as checkpoints() lists it, got " .. vim.inspect(id)
  elseif type(opts) ~= "table" then
    return nil, "expected a table of options, got " .. vim.inspect(opts)
  end
  local chosen = opts.files
  local is_list = chosen == nil or (type(chosen) == "table" and vim.islist(chosen))
  for _, path in ipairs(is_list and chosen or {}) do
    is_list = is_list and type(path) == "string"
  end
  if not is_list then
    return nil, "files: expected a list of paths, got " .. vim.inspect(chosen)
  elseif opts.force ~= nil and type(opts.force) ~= "boolean" then
    return nil, "force: expected true or false, got " .. vim.inspect(opts.force)
  end
  local ready, why = bridge.load()
  if not ready then
    return nil, why
  end
  local files = opts.files and vim.tbl_map(function(path)
    return vim.fn.fnamemodify(path, ":p")
  end, opts.files)
  local done, problem = bridge.restore(tostring(id), {
    files = files,
    force = opts.force == true,
    unsaved = unsaved(),
  })
  if not done then
    return nil, problem
  end
  local buffers = require("cursor_agent.review.buffers")
  local paths = vim.list_extend({}, done.restored)
  for _, path in ipairs(done.restored) do
    local buf = buffers.find(path)
    if buf then
      if opts.force and vim.bo[buf].modified then
        -- The user chose the old file; the current text stays in the undo history.
        vim.bo[buf].modified = false
      end
      events.emit("file changed", buf, { quietly = true })
    end
  end
  require("cursor_agent.review").changed(paths)
  return { restored = done.restored, kept = done.kept }, nil, done.failed
end

---@param id string
---@param done { restored: string[], kept: string[] }
---@param failed string[] a line for some of those that are kept, which begins with the path
local function tell(id, done, failed)
  local cwd = vim.fn.getcwd()
  local function names(paths)
    return table.concat(
      vim.tbl_map(function(path)
        return format.path(path, cwd)
      end, paths),
      ", "
    )
  end
  local text = #done.restored > 0 and "restored " .. names(done.restored) or "nothing had to be restored"
  local yours = vim.tbl_filter(function(path)
    for _, why in ipairs(failed) do
      if vim.startswith(why, path .. ":") then
        return false
      end
    end
    return true
  end, done.kept)
  if #yours > 0 then
    text = text
      .. ("\n  kept, because you changed them since: %s\n  :CursorAgent! checkpoint %s restores them too"):format(
        names(yours),
        id
      )
  end
  for _, why in ipairs(failed) do
    text = text .. "\n  not restored: " .. why
  end
  notify.notify(text, #failed > 0 and "warn" or "info")
end

---How much of a checkpoint's prompt, and how many of its files, the list shows.
local PROMPT_CHARS, NAMED_FILES = 60, 3

---@param point cursor_agent.Checkpoint
---@return string
local function label(point)
  local names = {} ---@type string[]
  for i = 1, math.min(#point.files, NAMED_FILES) do
    names[i] = vim.fs.basename(point.files[i].path)
  end
  if #point.files > NAMED_FILES then
    names[#names + 1] = "…"
  end
  return ("%s  %s  (%s: %s)"):format(
    os.date("%H:%M", math.floor(point.at / 1000)),
    format.first_line(point.prompt:gsub("%s+", " "), PROMPT_CHARS),
    format.plural(#point.files, "file"),
    table.concat(names, ", ")
  )
end

---Shows in a tab page what restoring would change.
---@param id string
---@return boolean?, string?
function M.preview(id)
  local ready, why = bridge.load()
  local files, problem = nil, why ---@type cursor_agent.CheckpointFile[]?, string?
  if ready then
    files, problem = bridge.checkpoint_preview(id)
  end
  if not files then
    return nil, problem
  end
  ---@diagnostic disable-next-line: deprecated renamed in 0.12
  local compare = vim.text and vim.text.diff or vim.diff
  local lines, cwd = {}, vim.fn.getcwd() ---@type string[], string
  for _, file in ipairs(files) do
    local note = not file.known and "its earlier text is unknown, so it stays as it is"
      or file.touched and "you changed it since; it stays unless you force it"
      or nil
    local diff = file.known and compare(file.now or "", file["then"] or "", { result_type = "unified" }) or ""
    if diff == "" and not note then
      note = file.same and "as it was then"
        or "its lines are the same; it is a binary file, a link, or has another mode"
    end
    lines[#lines + 1] = "--- " .. format.path(file.path, cwd) .. (note and "  (" .. note .. ")" or "")
    if diff ~= "" then
      vim.list_extend(lines, vim.split(vim.trim(diff --[[@as string]]), "\n", { plain = true }))
    end
  end
  require("cursor_agent.window.scratch").open(lines, { name = "checkpoint", filetype = "diff" })
  return true
end

---Lets the user choose files of a checkpoint one by one, and restores them, including those changed since.
---@param point cursor_agent.Checkpoint
---@return boolean?, string?
local function choose_files(point)
  local files, why = bridge.checkpoint_preview(point.id)
  if not files then
    return nil, why
  end
  local chosen, cwd = {}, vim.fn.getcwd() ---@type table<string, boolean>, string
  local unsaved_now = {} ---@type table<string, boolean>
  for _, path in ipairs(unsaved()) do
    unsaved_now[vim.uv.fs_realpath(path) or path] = true
  end
  ---@param file cursor_agent.CheckpointFile
  ---@return string
  local function row(file)
    local note = not file.known and "  earlier text unknown"
      or unsaved_now[file.path] and "  you have unsaved changes"
      or file.touched and "  you changed it since"
      or ""
    return ("[%s] %s%s"):format(chosen[file.path] and "x" or " ", format.path(file.path, cwd), note)
  end
  local function ask()
    local paths = vim.tbl_keys(chosen) ---@type string[]
    local items = {} ---@type (cursor_agent.CheckpointFile|string)[]
    if #paths > 0 then
      items[1] = "Restore " .. format.plural(#paths, "file")
    end
    vim.list_extend(items, files)
    vim.ui.select(items, {
      prompt = label(point),
      kind = "cursor_agent",
      format_item = function(item)
        return type(item) == "string" and item or row(item)
      end,
    }, function(item)
      if type(item) == "string" then
        M.run(point.id, true, paths)
      elseif item then
        if item.known then
          chosen[item.path] = not chosen[item.path] or nil
        end
        ask()
      end
    end)
  end
  ask()
  return true
end

---Asks whether to restore a checkpoint, in all or some of its files, or to preview it first.
---@param point cursor_agent.Checkpoint
local function offer(point)
  vim.ui.select({ "Restore the files", "Show the difference", "Restore some of the files…" }, {
    prompt = label(point),
    kind = "cursor_agent",
  }, function(_, choice)
    if choice == 1 then
      M.run(point.id, false)
    elseif choice == 2 then
      notify.report(M.preview(point.id))
    elseif choice == 3 then
      notify.report(choose_files(point))
    end
  end)
end

---The state of the files before a prompt: its own checkpoint, or the next one whose turn changed something.
---@param points cursor_agent.Checkpoint[] newest first
---@param entry cursor_agent.Entry
---@return cursor_agent.Checkpoint?
local function before(points, entry)
  local found ---@type cursor_agent.Checkpoint?
  for _, point in ipairs(points) do
    if point.at >= entry.started_ms and not point.id:find("-restore", 1, true) then
      found = point
    end
  end
  if found and found.at == entry.started_ms then
    return found
  end
  -- A loaded conversation has different times, so match prompts by their text.
  local same = vim.tbl_filter(function(point)
    return point.prompt ~= "" and vim.startswith(entry.text, point.prompt)
  end, points)
  return #same == 1 and same[1] or found
end

---Offers to restore the files from before the prompt under the chat's cursor.
---@param chat cursor_agent.Chat
---@return boolean?, string?
function M.before_prompt(chat)
  local ready, problem = bridge.load()
  if not ready then
    return nil, problem
  end
  local transcript = require("cursor_agent.chat.transcript").here(chat)
  local row = vim.api.nvim_win_get_cursor(0)[1] - 1
  local index = vim.api.nvim_get_current_buf() == transcript.buf and transcript:entry_at(row) or nil
  local entry = index and bridge.told(chat.key, index)
  if not entry or entry.kind ~= "user" or entry.parent then
    return nil, "put the cursor on one of your prompts; `[[` goes to the one above"
  end
  local points, why = M.list(chat.key)
  if not points then
    return nil, why
  end
  local point = before(points, entry)
  if not point then
    return nil, "no file has changed since this prompt"
  end
  offer(point)
  return true
end

---Lets the user choose a checkpoint, preview it, and restore it.
---@param chat cursor_agent.Chat
---@return boolean?, string?
function M.choose(chat)
  local points, why = M.list(chat.key)
  if not points then
    return nil, why
  elseif #points == 0 then
    return nil, "no prompt of this chat has changed a file yet"
  end
  vim.ui.select(points, {
    prompt = "Files as they were before",
    kind = "cursor_agent",
    format_item = label,
  }, function(point)
    if point then
      offer(point)
    end
  end)
  return true
end

---Restores a checkpoint and reports the result.
---@param id string
---@param force boolean
---@param files string[]? only these
---@return boolean?, string?
function M.run(id, force, files)
  local done, why, failed = M.restore(id, { force = force, files = files })
  if not done then
    notify.report(nil, why)
    return nil
  end
  tell(id, done, failed or {})
  return true
end

return M
