-- Follows the agent: a window shows the file and line it reads or edits, while you stay where you are.

local chats = require("cursor_agent.chat.registry")
local config = require("cursor_agent.config")
local format = require("cursor_agent.render.format")
local code = require("cursor_agent.window.code")
local window = require("cursor_agent.window.quiet")

local M = {}

local GROUP = vim.api.nvim_create_augroup("cursor_agent_follow", {})

---Events within this time are merged: only the last place is shown.
local PAUSE_MS = 60
---Larger files are not opened automatically: that would be noticeable.
local MAX_BYTES = 4 * 1024 * 1024
---Highlight at most this many lines.
local GLOW_LINES = 400

---@class (exact) cursor_agent.follow.Place
---@field path string absolute
---@field line integer?
---@field wrote [integer, integer][] lines just written, first and last

local on ---@type boolean? nil: as the options say
local chosen ---@type integer? the window things are shown in
local wanted ---@type cursor_agent.follow.Place?
local pause ---@type uv.uv_timer_t?

---@type table<string, string> by tool call: what was shown of it
local seen = {}

---@return boolean
function M.enabled()
  if on == nil then
    return config.get().follow.enabled
  end
  return on
end

---@param win integer
---@return string
local function describe(win)
  local name = vim.api.nvim_buf_get_name(vim.api.nvim_win_get_buf(win))
  local shown = name ~= "" and format.path(name, vim.fn.getcwd()) or "[No Name]"
  return ("window %d: %s"):format(vim.api.nvim_win_get_number(win), shown)
end

---Code windows other than the current one and the one the user was in last.
---@return integer[]
local function others()
  local own = { [vim.api.nvim_get_current_win()] = true, [code.current() or 0] = true }
  return vim.tbl_filter(function(win)
    return code.is_code(win) and not own[win] and not vim.wo[win].winfixbuf and not vim.wo[win].diff
  end, vim.api.nvim_tabpage_list_wins(0))
end

local turn_off ---@type fun()

---@param win integer?
local function choose(win)
  chosen = win
  vim.api.nvim_clear_autocmds({ group = GROUP })
  if not win then
    return
  end
  vim.api.nvim_create_autocmd("WinClosed", {
    group = GROUP,
    pattern = tostring(win),
    desc = "cursor-agent: stop following when its window is closed",
    callback = function()
      turn_off()
      require("cursor_agent.notify").notify("stopped following the agent: its window was closed")
    end,
  })
end

---Opens a window below the code for what the agent does, without entering it.
---@return integer?
local function open_window()
  local at = code.current()
  if not at or vim.api.nvim_win_get_height(at) < 8 then
    return nil
  end
  local _, win = window.despite_autocommands(function()
    return vim.api.nvim_open_win(vim.api.nvim_win_get_buf(at), false, { split = "below", win = at })
  end)
  return type(win) == "number" and win --[[@as integer]] or nil
end

---The window to show things in now; never the user's current one.
---@return integer?
local function target()
  local here = vim.api.nvim_get_current_win()
  if chosen and vim.api.nvim_win_is_valid(chosen) then
    return chosen ~= here and window.shares_tab(chosen, here) and not vim.wo[chosen].winfixbuf and chosen or nil
  end
  if vim.fn.getcmdwintype() ~= "" then
    return nil
  end
  choose(others()[1] or open_window())
  return chosen
end

---The buffer of a file, loaded without messages.
---@param path string
---@return integer?
local function load(path)
  local buf = vim.fn.bufnr("^" .. vim.fn.fnameescape(path) .. "$")
  if buf ~= -1 and vim.api.nvim_buf_is_loaded(buf) then
    return buf
  end
  local stat = vim.uv.fs_stat(path)
  if not stat or stat.type ~= "file" or stat.size > MAX_BYTES then
    return nil
  end
  buf = vim.fn.bufadd(path)
  local before = vim.o.shortmess
  -- Do not stop and ask about another Neovim's swap file: nothing is edited here.
  vim.opt.shortmess:append("AF")
  local ok = pcall(vim.fn.bufload, buf)
  vim.o.shortmess = before
  vim.bo[buf].buflisted = true
  return ok and buf or nil
end

---@param place cursor_agent.follow.Place
local function show(place)
  local win = target()
  local buf = win and load(place.path)
  if not win or not buf then
    return
  end
  local here, mode = vim.api.nvim_get_current_win(), vim.api.nvim_get_mode().mode
  if vim.api.nvim_win_get_buf(win) ~= buf then
    window.despite_autocommands(vim.api.nvim_win_set_buf, win, buf)
  end
  if not vim.api.nvim_win_is_valid(win) or vim.api.nvim_win_get_buf(win) ~= buf then
    return
  end
  local line = place.line or (place.wrote[1] and place.wrote[1][1])
  if line then
    local last = vim.api.nvim_buf_line_count(buf)
    vim.api.nvim_win_set_cursor(win, { math.max(math.min(line, last), 1), 0 })
    vim.api.nvim_win_call(win, function()
      vim.cmd("normal! zvzz")
    end)
  end
  if vim.api.nvim_win_is_valid(here) and vim.api.nvim_get_current_win() ~= here then
    -- An autocommand moved to another window.
    vim.api.nvim_set_current_win(here)
    if mode:sub(1, 1) == "i" then
      vim.cmd.startinsert()
    end
  end
  if #place.wrote > 0 then
    require("cursor_agent.colour.glow").start(buf, place.wrote, GLOW_LINES)
  end
end

---Shows a place shortly, unless another one comes first. What was written in the meantime stays highlighted.
---@param place cursor_agent.follow.Place
local function show_soon(place)
  wanted = place
  pause = pause or assert(vim.uv.new_timer())
  pause:start(
    PAUSE_MS,
    0,
    vim.schedule_wrap(function()
      local now = wanted
      wanted = nil
      if now and M.enabled() and vim.v.exiting == vim.NIL then
        show(now)
      end
    end)
  )
end

---The lines a diff added, as first and last; for pure removals, the lines around them.
---@param content cursor_agent.ToolContent
---@return [integer, integer][]
local function written(content)
  local ranges = {} ---@type [integer, integer][]
  for _, hunk in ipairs(content.hunks or {}) do
    local line, removed = hunk.new, false
    for _, item in ipairs(hunk.lines) do
      if item[1] == "+" then
        local last = ranges[#ranges]
        if last and last[2] == line - 1 then
          last[2] = line
        else
          ranges[#ranges + 1] = { line, line }
        end
      end
      removed = removed or item[1] == "-"
      line = line + (item[1] ~= "-" and 1 or 0)
    end
    if #ranges == 0 and removed then
      ranges[1] = { math.max(hunk.new, 1), math.max(hunk.new, 1) }
    end
  end
  return ranges
end

---Whether to follow this chat's agent: it must be the chat of this tab, and working. A conversation that is being
---loaded reports what was read and edited long ago.
---@param chat cursor_agent.Chat?
---@return boolean
local function is_followed(chat)
  if not chat or not M.enabled() or chat ~= chats.current() then
    return false
  end
  return chat.status.state ~= "starting" and (chat.status.turns or 0) > 0
end

---@param chat cursor_agent.Chat
---@param path string
---@return string
local function absolute(chat, path)
  return vim.fs.normalize(path:sub(1, 1) == "/" and path or vim.fs.joinpath(chat.cwd, path))
end

---A tool call was added or changed.
---@param chat cursor_agent.Chat
---@param _ integer
---@param entry cursor_agent.Entry
function M.on_entry(chat, _, entry)
  local tool = entry.tool
  if not tool or not is_followed(chat) then
    return
  end
  local place ---@type cursor_agent.follow.Place?
  for _, location in ipairs(tool.locations or {}) do
    -- The last location is the most recent.
    if location.path ~= "" then
      place = { path = absolute(chat, location.path), line = location.line, wrote = {} }
    end
  end
  local done = tool.status == "completed"
  for _, content in ipairs(tool.content or {}) do
    if content.type == "diff" and content.path then
      local wrote = written(content)
      local path = absolute(chat, content.path)
      local line = place and place.path == path and place.line or (wrote[1] and wrote[1][1])
      place = { path = path, line = line, wrote = done and wrote or {} }
    end
  end
  if not place then
    return
  end
  local mark = ("%s:%s:%d"):format(place.path, tostring(place.line), #place.wrote)
  if seen[tool.id] ~= mark then
    seen[tool.id] = mark
    show_soon(place)
  end
end

---The agent reads or writes a file through the editor.
---@param _ integer
---@param request cursor_agent.EditorRequest
---@param key cursor_agent.Key?
function M.on_request(_, request, key)
  local chat = chats.get(key)
  if chat and is_followed(chat) then
    show_soon({ path = vim.fs.normalize(request.path), line = request.line, wrote = {} })
  end
end

turn_off = function()
  on = false
  choose(nil)
  wanted, seen = nil, {}
  if pause and not pause:is_closing() then
    pause:stop()
  end
  require("cursor_agent.colour.glow").stop()
end

---@param win integer? where to show things; nil: a window that is not the user's
local function turn_on(win)
  on, seen = true, {}
  choose(win)
end

---Follows the agent, or stops following it.
---@param how string? `here`: in this window, once you have left it; `off`
---@return boolean?, string?
function M.toggle(how)
  local notify = require("cursor_agent.notify")
  if how == "off" or (not how and M.enabled()) then
    turn_off()
    notify.notify("stopped following the agent")
    return true
  elseif how == "here" then
    local win = vim.api.nvim_get_current_win()
    if not code.is_code(win) then
      return nil, "go to a window with code first"
    end
    turn_on(win)
    notify.notify("following the agent in this window as soon as you leave it")
    return true
  elseif how and how ~= "on" then
    return nil, ("`follow` takes `here`, `on` or `off`, not `%s`"):format(how)
  end
  local windows = others()
  if #windows <= 1 then
    turn_on(windows[1])
    notify.notify(
      windows[1] and "following the agent in " .. describe(windows[1])
        or "following the agent in a window below the code"
    )
    return true
  end
  vim.ui.select(windows, {
    prompt = "Follow the agent in",
    kind = "cursor_agent",
    format_item = describe,
  }, function(win)
    if win then
      turn_on(win)
    end
  end)
  return true
end

return M
