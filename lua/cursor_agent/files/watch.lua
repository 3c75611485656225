-- Buffers whose files an agent has changed or may be changing: Neovim does not ask about them, and overwrites nothing.

local events = require("cursor_agent.bridge.events")
local loaded = require("cursor_agent.files.loaded")
local regular = require("cursor_agent.files.regular")

local M = {}

local group = vim.api.nvim_create_augroup("cursor_agent_watch", {})

---@type table<integer, boolean> guarded buffers; true for those that stay so when the turn is over
local guarded = {}

---@type table<string, boolean> files agents have changed, without links in their paths
local touched = {}

---@type table<integer, { local_value: boolean? }> buffers in which 'autoread' was switched off
local autoread = {}

---@type table<cursor_agent.Key, string[]> the workspaces of the sessions in which a turn runs, also without links
local running = {}

---@type table<cursor_agent.Key, integer> when their turns began, in their order
local began, turns = {}, 0

---@type table<cursor_agent.Key, boolean> the sessions whose agents run commands, which may outlast the turn
local working = {}

---A path with its links resolved, even if the file does not exist.
---@param path string
---@return string
function M.real_path(path)
  local dir = vim.fs.dirname(path)
  return vim.uv.fs_realpath(path) or vim.fs.joinpath(vim.uv.fs_realpath(dir) or dir, vim.fs.basename(path))
end

---@param buf integer
---@return boolean
local function is_file(buf)
  return vim.api.nvim_buf_is_loaded(buf) and vim.bo[buf].buftype == "" and vim.api.nvim_buf_get_name(buf) ~= ""
end

---Whether an agent may be changing files.
---@return boolean
local function is_any_at_work()
  return next(running) ~= nil or next(working) ~= nil
end

---The running session whose workspace has the buffer's file; if several, the one whose turn began last.
---@param buf integer
---@return cursor_agent.Key?
function M.running_at(buf)
  local name = vim.api.nvim_buf_get_name(buf)
  local real = next(running) and M.real_path(name) or name
  local found ---@type cursor_agent.Key?
  for key, dirs in pairs(running) do
    for _, dir in ipairs(dirs) do
      if vim.startswith(name, dir .. "/") or vim.startswith(real, dir .. "/") then
        found = (not found or began[key] > began[found]) and key or found
      end
    end
  end
  return found
end

---Whether a turn is running whose workspace has the buffer's file.
---@param buf integer
---@return boolean
function M.in_running(buf)
  return M.running_at(buf) ~= nil
end

---Whether `:w` may write a buffer to its file. Only `:w!` overwrites text on disk that is in no buffer.
---@param buf integer
---@return boolean
function M.may_write(buf)
  local path = vim.api.nvim_buf_get_name(buf)
  local target = vim.fn.expand("<afile>:p") --[[@as string]]
  if not is_file(buf) or (target ~= path and M.real_path(target) ~= M.real_path(path)) then
    return true
  elseif regular.is_odd(path) then
    -- Writing to a pipe blocks until something reads it.
    local text = "%s is no longer a regular file and was not written\n  `:w {file}` saves your text elsewhere"
    require("cursor_agent.notify").notify(text:format(vim.fs.basename(path)), "error")
    return false
  elseif vim.v.cmdbang == 1 then
    return true
  end
  return require("cursor_agent.files.write_guard").may_write(buf, path, M.in_running(buf))
end

---@param buf integer
local function on_changed(buf)
  -- Load nothing and ask nothing. The text is handled once Neovim allows changes.
  vim.v.fcs_choice = ""
  local reason = vim.v.fcs_reason
  vim.schedule(function()
    if is_file(buf) and reason ~= "" then
      M.suspect(buf)
      events.emit("file changed", buf)
    end
  end)
end

---With 'autoread' Neovim would read a file silently, even if a pipe has replaced it. We show the change ourselves.
---@param buf integer
local function read_ourselves(buf)
  local value = vim.bo[buf].autoread ---@type boolean? not set is nil
  if value ~= false then
    autoread[buf] = { local_value = value }
    vim.bo[buf].autoread = false
  end
end

---@param buf integer
local function let_neovim_read(buf)
  local before = autoread[buf]
  autoread[buf] = nil
  if not before or vim.bo[buf].autoread ~= false then
    return
  elseif before.local_value ~= nil then
    vim.bo[buf].autoread = before.local_value
  else
    vim.api.nvim_buf_call(buf, function()
      vim.cmd("noautocmd set autoread<")
    end)
  end
end

---Creates the autocommand again each time, because the last of several decides.
---@param buf integer
local function listen(buf)
  vim.api.nvim_clear_autocmds({ group = group, event = "FileChangedShell", buffer = buf })
  vim.api.nvim_create_autocmd("FileChangedShell", {
    group = group,
    buffer = buf,
    desc = "cursor-agent: check a file that an agent may have changed",
    callback = function()
      on_changed(buf)
    end,
  })
end

---Guards a buffer.
---@param buf integer
---@param for_good boolean
function M.arm(buf, for_good)
  if not is_file(buf) then
    return
  end
  vim.api.nvim_clear_autocmds({ group = group, buffer = buf })
  listen(buf)
  vim.api.nvim_create_autocmd("BufWritePre", {
    group = group,
    buffer = buf,
    nested = true,
    desc = "cursor-agent: keep :w from overwriting an agent's changes",
    -- An error would not stop Neovim from writing.
    command = ("if !v:lua.require'cursor_agent.files.watch'.may_write(%d) | call interrupt() | endif"):format(buf),
  })
  vim.api.nvim_create_autocmd("BufWritePost", {
    group = group,
    buffer = buf,
    desc = "cursor-agent: settle conflicts when a file is written",
    callback = function()
      events.emit("file written", buf)
    end,
  })
  guarded[buf] = guarded[buf] or for_good
  read_ourselves(buf)
  local path = vim.api.nvim_buf_get_name(buf)
  local known = loaded.known(buf)
  if known == loaded.NONE or (known == nil and not vim.uv.fs_stat(path)) then
    -- Once the file is created, Neovim would ask about it without running an autocommand. From now on `:w` is guarded
    -- above.
    if loaded.sync(buf, vim.bo[buf].modified) then
      guarded[buf] = true
      vim.b[buf].cursor_agent_loaded = loaded.NONE
    end
  end
end

---An agent changed a file, or is about to.
---@param path string
---@param buf integer?
function M.touch(path, buf)
  touched[M.real_path(path)] = true
  if buf then
    M.arm(buf, true)
  end
end

---A file changed while an agent worked, no matter who did it: treat it as changed by the agent, even afterwards.
---@param buf integer
function M.suspect(buf)
  if is_any_at_work() and guarded[buf] ~= nil then
    touched[M.real_path(vim.api.nvim_buf_get_name(buf))] = true
    guarded[buf] = true
  end
end

---Handles changes on disk in guarded buffers.
function M.sweep()
  for buf in pairs(guarded) do
    if is_file(buf) then
      local path = vim.api.nvim_buf_get_name(buf)
      if loaded.known(buf) and not loaded.is_current(buf, path) then
        M.suspect(buf)
        events.emit("file changed", buf)
      end
    end
  end
end

---Whether an agent has changed a buffer's file, or may be changing it: while it works it can write any file.
---@param buf integer
---@return boolean
local function is_concerned(buf)
  return is_any_at_work() or touched[M.real_path(vim.api.nvim_buf_get_name(buf))] == true
end

---@param buf integer
local function consider(buf)
  if not is_file(buf) then
    return
  end
  if is_concerned(buf) then
    M.arm(buf, touched[M.real_path(vim.api.nvim_buf_get_name(buf))] == true)
    loaded.keep(buf)
  end
end

---The directories a chat's agent works in.
---@param chat { agent: string, cwd: string }
---@return string[]
local function workspace(chat)
  local config = require("cursor_agent.config")
  local agent = config.agent(chat.agent)
  local dirs, all = { chat.cwd }, {} ---@type string[], string[]
  vim.list_extend(dirs, config.get().workspace.roots)
  vim.list_extend(dirs, agent and agent.additional_directories or {})
  for _, dir in ipairs(dirs) do
    dir = vim.fs.normalize(dir)
    dir = vim.startswith(dir, "/") and dir or vim.fs.joinpath(chat.cwd, dir)
    vim.list_extend(all, { dir, M.real_path(dir) })
  end
  return all
end

local function consider_all()
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    consider(buf)
  end
end

---Leaves the buffers to Neovim that no agent may be changing any more.
local function release()
  for buf, for_good in pairs(guarded) do
    if not vim.api.nvim_buf_is_valid(buf) then
      guarded[buf] = nil
    elseif not for_good and not is_any_at_work() then
      vim.api.nvim_clear_autocmds({ group = group, buffer = buf })
      guarded[buf] = nil
      let_neovim_read(buf)
    end
  end
end

---A turn begins or has ended. While it runs, the agent may change any file, and may report it late.
---@param chat { key: cursor_agent.Key, agent: string, cwd: string }
---@param runs boolean
function M.turn(chat, runs)
  local key = chat.key
  local ran = running[key] ~= nil
  if runs == ran then
    return
  end
  -- Changes up to the beginning of a turn were not made by an agent in it.
  M.sweep()
  if runs then
    turns = turns + 1
    running[key], began[key] = workspace(chat), turns
    return consider_all()
  end
  running[key] = nil
  release()
end

---An agent runs commands, or no longer does. They change files as a turn does, but after it the user may have changed
---them as well: nothing is merged without asking.
---@param key cursor_agent.Key
---@param works boolean
local function work(key, works)
  if works == (working[key] ~= nil) then
    return
  end
  if works then
    working[key] = true
    return consider_all()
  end
  M.sweep()
  working[key] = nil
  release()
end

---@param chat cursor_agent.Chat
function M.on_status(chat)
  local state = chat.status.state
  -- A prompt queued while its agent starts is sent before we are told about it.
  local soon = state == "starting" and chat.status.queued > 0
  work(chat.key, chat.status.commands_running > 0)
  M.turn(chat, state == "running" or state == "waiting" or soon)
end

---@param chat cursor_agent.Chat
function M.on_closed(chat)
  work(chat.key, false)
  M.turn(chat, false)
end

---Hands over what is known when the plugin is reloaded: the files agents have changed.
---@return string[]
function M.give()
  running, working = {}, {}
  for buf in pairs(guarded) do
    guarded[buf] = false
  end
  release()
  return vim.tbl_keys(touched)
end

---@param paths string[]
function M.take(paths)
  for _, path in ipairs(paths) do
    touched[path] = true
  end
  consider_all()
end

---Keeps Neovim from opening what has replaced a file, where agents are working.
---@param buf integer
---@param kept { lines: string[], modified: boolean }? the text about to be unloaded
local function fence(buf, kept)
  local path = vim.api.nvim_buf_get_name(buf)
  if path ~= "" and vim.bo[buf].buftype == "" and regular.is_odd(path) and is_concerned(buf) then
    regular.fence(buf, kept, function(fenced)
      loaded.never_look(fenced)
      local text = kept and "%s is no longer a regular file; its text is still in the buffer"
        or "%s is not a regular file; it was not opened"
      require("cursor_agent.notify").notify(text:format(vim.fs.basename(path)), "warn")
    end)
  end
end

vim.api.nvim_create_autocmd({ "BufNew", "BufLeave" }, {
  group = group,
  desc = "cursor-agent: keep Neovim from opening a pipe",
  callback = function()
    if next(touched) or is_any_at_work() then
      -- Any of them may be entered next, and would be read then.
      for _, buf in ipairs(vim.api.nvim_list_bufs()) do
        if not vim.api.nvim_buf_is_loaded(buf) then
          fence(buf)
        end
      end
    end
  end,
})

vim.api.nvim_create_autocmd({ "BufReadPost", "BufNewFile", "BufWritePost", "BufFilePost" }, {
  group = group,
  desc = "cursor-agent: watch a file that an agent may change",
  callback = function(args)
    if args.event == "BufReadPost" and is_file(args.buf) then
      events.emit("file read", args.buf)
    end
    if next(touched) or is_any_at_work() then
      -- After all other handlers of this event, and when buffers may be changed.
      vim.schedule(function()
        consider(args.buf)
      end)
    end
  end,
})

vim.api.nvim_create_autocmd("FocusGained", {
  group = group,
  nested = true,
  desc = "cursor-agent: check changed files before Neovim does",
  callback = M.sweep,
})

---Has the last word about guarded buffers although another autocommand was created after ours, and guards a buffer that
---was loaded without autocommands.
local function stay_last()
  if not (next(guarded) or is_any_at_work()) then
    return
  end
  local buf = vim.api.nvim_get_current_buf()
  if guarded[buf] == nil and is_any_at_work() then
    consider(buf)
  end
  local ours = false
  for _, autocmd in ipairs(vim.api.nvim_get_autocmds({ event = "FileChangedShell" })) do
    if autocmd.group == group then
      ours = true
    elseif ours then
      for other in pairs(guarded) do
        if is_file(other) then
          listen(other)
        end
      end
      break
    end
  end
end

vim.api.nvim_create_autocmd({ "SafeState", "CmdlineLeave", "BufLeave" }, {
  group = group,
  desc = "cursor-agent: have the last word about files agents change",
  callback = stay_last,
})

vim.api.nvim_create_autocmd("BufUnload", {
  group = group,
  desc = "cursor-agent: forget a wiped buffer",
  callback = function(args)
    loaded.forget(args.buf)
    if next(touched) or is_any_at_work() then
      -- `:edit` reads it again.
      local lines = vim.api.nvim_buf_get_lines(args.buf, 0, -1, false)
      fence(args.buf, { lines = lines, modified = vim.bo[args.buf].modified })
    end
  end,
})

return M
