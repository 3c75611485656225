-- Files between agent and editor: unsaved text is what an agent reads, and nothing it writes destroys any.

local format = require("cursor_agent.render.format")
local merge = require("cursor_agent.merge")
local native = require("cursor_agent.native")
local notify = require("cursor_agent.notify")

local M = {}

---A larger file is reloaded by Neovim's own means: reading and comparing it would be felt while typing.
local MAX_BYTES = 10 * 1024 * 1024

---@type table<integer, string[]> by buffer: its lines as an agent last read them
local served = {}

---@type table<integer, boolean> buffers whose file an agent deleted, which was said
local missing = {}

---@class (exact) cursor_agent.files.Conflict a file whose buffer has unsaved text an agent's text does not know of
---@field path string
---@field buf integer
---@field theirs string[]
---@field eol boolean whether the agent's text ends in a newline
---@field request integer? the agent waits for the answer

---@type cursor_agent.files.Conflict[]
M.conflicts = {}

---A path without links in it, also of a file that is not there.
---@param path string
---@return string
local function real_path(path)
  local dir = vim.fs.dirname(path)
  return vim.uv.fs_realpath(path) or vim.fs.joinpath(vim.uv.fs_realpath(dir) or dir, vim.fs.basename(path))
end

---The loaded buffer of a file, however its path is spelled.
---@param path string
---@return integer?
local function buffer_of(path)
  local real = real_path(path)
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buf) and vim.bo[buf].buftype == "" then
      local name = vim.api.nvim_buf_get_name(buf)
      if name == path or name == real or (name ~= "" and real_path(name) == real) then
        return buf
      end
    end
  end
end

---@param buf integer
---@return string[]
local function lines_of(buf)
  return vim.api.nvim_buf_get_lines(buf, 0, -1, false)
end

---Splits a text as Neovim reads a file: the newline at its end ends the last line.
---@param text string
---@param buf integer
---@return string[] lines
---@return boolean eol
local function split(text, buf)
  if vim.bo[buf].fileformat == "dos" then
    text = text:gsub("\r\n", "\n")
  end
  if text == "" then
    return {}, true
  end
  local eol = text:sub(-1) == "\n"
  local lines = vim.split(eol and text:sub(1, -2) or text, "\n", { plain = true })
  return lines, eol
end

---Whether lines of a buffer are this text. A buffer is never without a line, a text may be.
---@param lines string[]
---@param text string[]
---@return boolean
local function is_text(lines, text)
  return vim.deep_equal(lines, #text > 0 and text or { "" })
end

---@param path string
---@param buf integer
---@return string? in Neovim's own encoding
local function read_disk(path, buf)
  local stat = vim.uv.fs_stat(path)
  if not stat or stat.size > MAX_BYTES then
    return nil
  end
  local file = io.open(path, "rb")
  if not file then
    return nil
  end
  local text = file:read("*a") ---@type string?
  file:close()
  local encoding = vim.bo[buf].fileencoding
  if text and vim.bo[buf].bomb then
    text = text:gsub("^\239\187\191", "")
  end
  if text and encoding ~= "" and encoding ~= "utf-8" then
    text = vim.iconv(text, encoding, "utf-8")
  end
  return text
end

---@param request integer
---@param reply cursor_agent.EditorReply
local function answer(request, reply)
  local library = native.peek()
  if library then
    library.reply(request, reply)
  end
end

---@param request integer
---@param what cursor_agent.EditorRequest
local function read(request, what)
  local buf = buffer_of(what.path)
  if not buf then
    return answer(request, { ok = true, disk = true })
  end
  local lines = lines_of(buf)
  served[buf] = lines
  local first = math.max(what.line or 1, 1)
  local last = what.limit and math.min(first + what.limit - 1, #lines) or #lines
  local text = table.concat(lines, "\n", first, math.max(last, first - 1))
  -- A buffer without text has one line, and no byte of it.
  local nothing = #lines == 1 and lines[1] == "" and vim.api.nvim_buf_call(buf, vim.fn.wordcount).bytes == 0
  if first <= last and not nothing and (last < #lines or vim.bo[buf].endofline) then
    text = text .. "\n"
  end
  answer(request, { ok = true, content = text })
end

---Writes a buffer to its file without the user's formatters and the like, which would change what the agent wrote.
---@param buf integer
---@param eol boolean
---@return boolean?, string?
local function write_buffer(buf, eol)
  local bo = vim.bo[buf]
  local fix = bo.fixendofline
  local path = vim.api.nvim_buf_get_name(buf)
  vim.fn.mkdir(vim.fs.dirname(path), "p")
  bo.fixendofline = false
  bo.endofline = eol
  local ok, why = pcall(vim.api.nvim_buf_call, buf, function()
    vim.cmd("silent noautocmd keepalt lockmarks write!")
  end)
  bo.fixendofline = fix
  if not ok then
    return nil, (tostring(why):gsub("^.-(E%d+:)", "%1"))
  end
  vim.api.nvim_exec_autocmds("BufWritePost", { buffer = buf, modeline = false })
  return true
end

---@param buf integer
---@param lines string[]
local function set_lines(buf, lines)
  merge.apply(buf, merge.diff(lines_of(buf), lines))
end

---@param buf integer
---@return boolean
function M.in_conflict(buf)
  for _, conflict in ipairs(M.conflicts) do
    if conflict.buf == buf then
      return true
    end
  end
  return false
end

---Has the line above each prompt say which file is in conflict.
local function show_conflicts()
  for _, chat in ipairs(require("cursor_agent.chats").all()) do
    chat.prompt:refresh()
  end
end

---@param conflict cursor_agent.files.Conflict
local function settled(conflict)
  for i, other in ipairs(M.conflicts) do
    if other == conflict then
      table.remove(M.conflicts, i)
    end
  end
  show_conflicts()
end

---Ends a conflict when the user lets go of the unsaved text otherwise, by `:bdelete!` or `:edit!`.
---@param conflict cursor_agent.files.Conflict
local function follow_buffer(conflict)
  local buf, request = conflict.buf, conflict.request
  vim.api.nvim_create_autocmd("BufUnload", {
    buffer = buf,
    desc = "cursor-agent: settle a conflict whose unsaved text is gone",
    callback = vim.schedule_wrap(function()
      local loaded = vim.api.nvim_buf_is_loaded(buf)
      if not vim.tbl_contains(M.conflicts, conflict) or (loaded and vim.bo[buf].modified) then
        return
      end
      settled(conflict)
      if request and loaded then
        set_lines(buf, conflict.theirs)
        local ok, why = write_buffer(buf, conflict.eol)
        answer(request, { ok = ok == true, error = why })
      elseif request then
        answer(request, { ok = true, disk = true })
      end
    end),
  })
end

---@param conflict cursor_agent.files.Conflict
---@param cwd string
local function tell(conflict, cwd)
  show_conflicts()
  follow_buffer(conflict)
  local name = format.path(conflict.path, cwd)
  local what = conflict.request and "the agent wants to write %s, where you have unsaved changes"
    or "the agent changed %s on disk; your unsaved changes are untouched"
  notify.notify(what:format(name) .. "\n  :CursorAgent conflicts shows the difference and settles it", "warn")
end

---@param request integer
---@param what cursor_agent.EditorRequest
local function write(request, what)
  local buf = buffer_of(what.path)
  if not buf or not vim.bo[buf].modifiable then
    return answer(request, { ok = true, disk = true })
  end
  local theirs, eol = split(what.content or "", buf)
  local ours = lines_of(buf)
  if vim.bo[buf].modified and not is_text(ours, theirs) then
    local base = served[buf]
    if not base then
      local disk = read_disk(what.path, buf)
      base = disk and (split(disk, buf)) or { "" }
    end
    -- An agent that has read the unsaved text builds on it.
    local merged = is_text(ours, base) and theirs or merge.three_way(base, ours, theirs)
    if not merged then
      local conflict = { path = what.path, buf = buf, theirs = theirs, eol = eol, request = request }
      table.insert(M.conflicts, conflict)
      return tell(conflict, vim.fn.getcwd())
    end
    theirs = merged
  end
  set_lines(buf, theirs)
  served[buf] = theirs
  local ok, why = write_buffer(buf, eol)
  answer(request, { ok = ok == true, error = why })
end

---The agent does not wait for this any more: there is nothing left to settle.
---@param request integer
function M.withdrawn(request)
  for _, conflict in ipairs(M.conflicts) do
    if conflict.request == request then
      return settled(conflict)
    end
  end
end

---Answers what an agent asks of the editor.
---@param request integer
---@param what cursor_agent.EditorRequest
function M.serve(request, what)
  local ok, why = xpcall(what.op == "read" and read or write, debug.traceback, request, what)
  if not ok then
    answer(request, { ok = false, error = tostring(why) })
  end
end

---Makes Neovim believe that a buffer whose text is the file's was read from it just now. Otherwise it would ask the
---user about the change, at the next `:checktime` and again at `:w`.
---@param buf integer
local function sync_time(buf)
  local auto = vim.api.nvim_get_option_value("autoread", { buf = buf })
  -- Past so many lines, reloading would drop the undo history.
  local undoreload = vim.o.undoreload
  vim.o.undoreload = -1
  vim.bo[buf].autoread = true
  vim.bo[buf].modified = false
  vim.api.nvim_buf_call(buf, function()
    local view = vim.fn.winsaveview()
    local before = vim.fn.undotree().seq_cur
    vim.cmd("silent! noautocmd checktime " .. buf)
    -- Reloading is a step of undo that changes nothing: stepping back leaves the step before it to `u`.
    if vim.fn.undotree().seq_cur ~= before then
      vim.cmd("silent! noautocmd undo " .. before)
    end
    vim.fn.winrestview(view)
  end)
  vim.bo[buf].autoread = auto
  vim.o.undoreload = undoreload
  vim.bo[buf].modified = false
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

---A file was changed on disk by an agent: its buffer shows the new text, unless it has unsaved changes.
---@param path string
---@param chat cursor_agent.Chat?
function M.edited(path, chat)
  local buf = buffer_of(path)
  if not buf then
    return
  end
  if not vim.uv.fs_stat(path) then
    return deleted(path, buf, chat and chat.cwd or vim.fn.getcwd())
  end
  missing[buf] = nil
  local disk = read_disk(path, buf)
  if not disk then
    if vim.bo[buf].modified then
      local text = "the agent changed %s on disk; your unsaved changes are untouched\n  "
        .. "it cannot be compared here: `:w!` there writes yours, `:e!` takes the agent's"
      notify.notify(text:format(format.path(path, chat and chat.cwd or vim.fn.getcwd())), "warn")
    else
      local auto = vim.api.nvim_get_option_value("autoread", { buf = buf })
      vim.bo[buf].autoread = true
      vim.cmd("silent! checktime " .. buf)
      vim.bo[buf].autoread = auto
    end
    return
  end
  local theirs, eol = split(disk, buf)
  local same = is_text(lines_of(buf), theirs)
  if vim.bo[buf].modified and not same then
    for _, other in ipairs(M.conflicts) do
      if other.buf == buf and not other.request then
        other.theirs, other.eol = theirs, eol
        return
      end
    end
    local conflict = { path = path, buf = buf, theirs = theirs, eol = eol }
    table.insert(M.conflicts, conflict)
    tell(conflict, chat and chat.cwd or vim.fn.getcwd())
    return
  end
  if not same then
    local modifiable = vim.bo[buf].modifiable
    vim.bo[buf].modifiable = true
    set_lines(buf, theirs)
    vim.bo[buf].modifiable = modifiable
    vim.bo[buf].endofline = eol
  end
  served[buf] = nil
  sync_time(buf)
  if not same then
    vim.api.nvim_exec_autocmds("FileChangedShellPost", { buffer = buf, modeline = false })
  end
end

---Shows the user's text and the agent's side by side in a tab page of their own.
---@param conflict cursor_agent.files.Conflict
local function show_difference(conflict)
  vim.cmd("tab sbuffer " .. conflict.buf)
  vim.cmd("diffthis")
  local theirs = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_lines(theirs, 0, -1, false, conflict.theirs)
  vim.bo[theirs].bufhidden = "wipe"
  vim.bo[theirs].filetype = vim.bo[conflict.buf].filetype
  vim.bo[theirs].modifiable = false
  vim.api.nvim_buf_set_name(theirs, ("cursor-agent://theirs/%d/%s"):format(theirs, vim.fs.basename(conflict.path)))
  vim.api.nvim_open_win(theirs, false, { split = "right", win = 0 })
  vim.api.nvim_win_call(vim.fn.win_findbuf(theirs)[1], function()
    vim.cmd("diffthis")
  end)
end

---Lets the user settle the oldest conflict.
---@return boolean?, string?
function M.settle()
  local conflict = M.conflicts[1]
  while conflict and not vim.api.nvim_buf_is_loaded(conflict.buf) do
    if conflict.request then
      answer(conflict.request, { ok = true, disk = true })
    end
    table.remove(M.conflicts, 1)
    conflict = M.conflicts[1]
  end
  if not conflict then
    return nil, "no file has both unsaved changes and changes of an agent"
  end
  local choices = {
    { id = "show", name = "Show the difference in a tab" },
    { id = "mine", name = "Keep my text" },
    { id = "theirs", name = "Take the agent's text; mine stays in the undo history" },
  }
  vim.ui.select(choices, {
    prompt = vim.fs.basename(conflict.path),
    kind = "cursor_agent",
    format_item = function(choice)
      return choice.name
    end,
  }, function(choice)
    if not choice then
      return
    elseif choice.id == "show" then
      show_difference(conflict)
      return
    end
    settled(conflict)
    if choice.id == "theirs" then
      set_lines(conflict.buf, conflict.theirs)
      served[conflict.buf] = conflict.theirs
      if not conflict.request then
        sync_time(conflict.buf)
        return show_conflicts()
      end
      local ok, why = write_buffer(conflict.buf, conflict.eol)
      answer(conflict.request, { ok = ok == true, error = why })
    elseif conflict.request then
      answer(conflict.request, {
        ok = false,
        error = "the user has unsaved changes in this file and kept them; read it again before writing",
      })
    else
      -- It was asked and answered: `:w` need not ask again.
      sync_time(conflict.buf)
      vim.bo[conflict.buf].modified = true
    end
  end)
  return true
end

return M
