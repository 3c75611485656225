-- The layout: where the chat and its prompt are in a tab page; opens, closes and resizes their windows.

local chats = require("cursor_agent.chat.registry")
local code = require("cursor_agent.window.code")
local config = require("cursor_agent.config")
local dress = require("cursor_agent.chat.dress")
local regular = require("cursor_agent.files.regular")
local window = require("cursor_agent.window.quiet")

local M = {}

---@type table<string, integer> sizes the user gave the chat, by position: reopening keeps them
local remembered = {}

local closing = false
local GROUP = vim.api.nvim_create_augroup("cursor_agent_window", {})

---Lines the chat keeps above its prompt.
local MIN_CHAT_LINES = 3
local MIN_WIDTH = 40

---The window in a tab page (by default the current one) that shows a chat's transcript.
---@param chat cursor_agent.Chat
---@param tab? integer
---@return integer?
function M.chat_window(chat, tab)
  return window.showing(chat.buf, tab)[1]
end

---@param chat cursor_agent.Chat
---@param tab? integer
---@return integer?
function M.prompt_window(chat, tab)
  return window.showing(chat.prompt.buf, tab)[1]
end

---@param chat cursor_agent.Chat
---@return boolean
function M.is_open(chat)
  return M.chat_window(chat) ~= nil
end

---@param option number
---@param whole integer
---@return integer
local function size(option, whole)
  return math.floor(option <= 1 and option * whole or option)
end

---@param buf integer
---@param win_config vim.api.keyset.win_config
---@return integer
local function open_win(buf, win_config)
  local before = window.showing(buf)
  local ok, result = window.despite_autocommands(vim.api.nvim_open_win, buf, false, win_config)
  if ok then
    return result
  end
  for _, win in ipairs(window.showing(buf)) do
    if not vim.list_contains(before, win) then
      -- The window exists anyway, but whatever follows the failing autocommand was skipped.
      vim.api.nvim_exec_autocmds("BufWinEnter", { group = GROUP, buffer = buf, modeline = false })
      return win
    end
  end
  error(result, 0)
end

---@param prompt_height integer
---@return vim.api.keyset.win_config chat
---@return vim.api.keyset.win_config prompt
local function float_configs(prompt_height)
  local options = config.get().window
  local width = math.min(math.max(size(options.width, vim.o.columns), MIN_WIDTH), vim.o.columns - 4)
  local height = vim.o.lines - vim.o.cmdheight - 4
  local chat_height = math.max(height - prompt_height - 2, MIN_CHAT_LINES)
  local col = math.floor((vim.o.columns - width) / 2)
  local chat = {
    relative = "editor",
    row = 0,
    col = col,
    width = width,
    height = chat_height,
    border = window.border(),
    -- Below the todos and the card of a decision.
    zindex = 35,
  } ---@type vim.api.keyset.win_config
  local prompt = vim.tbl_extend("force", chat, { row = chat_height + 2, height = prompt_height })
  return chat, prompt
end

---@param chat cursor_agent.Chat
---@param position "right"|"left"|"bottom"|"float"|"tab"
---@return integer win
local function open_chat_window(chat, position)
  local prompt_win = M.prompt_window(chat)
  local options = config.get().window
  if position == "float" then
    return open_win(chat.buf, (float_configs(options.prompt_height)))
  end
  if prompt_win then
    local height = vim.api.nvim_win_get_height(prompt_win) - options.prompt_height - 1
    return open_win(chat.buf, { split = "above", win = prompt_win, height = math.max(height, MIN_CHAT_LINES) })
  end
  if position == "tab" then
    vim.cmd("tab sbuffer " .. chat.buf)
    return vim.api.nvim_get_current_win()
  end
  if position == "bottom" then
    local height = remembered.bottom or size(options.height, vim.o.lines)
    return open_win(chat.buf, { split = "below", win = -1, height = math.max(height, MIN_CHAT_LINES + 2) })
  end
  local width = remembered[position] or size(options.width, vim.o.columns)
  -- Leave half the screen to the user.
  width = math.min(math.max(width, MIN_WIDTH), math.max(math.floor(vim.o.columns / 2), 20))
  return open_win(chat.buf, { split = position, win = -1, width = width })
end

---@param chat cursor_agent.Chat
---@param chat_win integer
---@return integer win
local function open_prompt_window(chat, chat_win)
  local options = config.get().window
  if window.is_float(chat_win) then
    local _, prompt = float_configs(options.prompt_height)
    return open_win(chat.prompt.buf, prompt)
  end
  local room = vim.api.nvim_win_get_height(chat_win) - MIN_CHAT_LINES
  return open_win(chat.prompt.buf, {
    split = "below",
    win = chat_win,
    height = math.max(math.min(options.prompt_height, room), 1),
  })
end

---Shows one of our buffers in one of our windows.
---@param win integer
---@param buf integer
local function swap(win, buf)
  local before = vim.api.nvim_win_get_buf(win)
  local chat = chats.of_buffer(before)
  if chat and chat.buf == before then
    chat.transcript:leave(win)
  end
  local _, result = window.despite_autocommands(vim.api.nvim_win_set_buf, win, buf)
  if vim.api.nvim_win_get_buf(win) ~= buf then
    error(result, 0)
  end
end

---Closes windows; Neovim's last window shows another buffer instead.
---@param wins integer[]
local function close_windows(wins)
  closing = true
  window.undisturbed(function()
    for _, win in ipairs(wins) do
      if vim.api.nvim_win_is_valid(win) then
        if not window.close(win) then
          vim.w[win].cursor_agent_dressed = nil
          swap(win, vim.api.nvim_create_buf(true, false))
        end
      end
    end
  end)
  closing = false
end

---Whether chat windows are being closed: the last one then shows another buffer.
---@return boolean
function M.is_closing()
  return closing
end

---Shows a chat in the current tab page, replacing another one if there is one.
---@param chat cursor_agent.Chat
---@param opts? { enter?: boolean, position?: "right"|"left"|"bottom"|"float"|"tab" }
---@return boolean?, string?
function M.open(chat, opts)
  opts = opts or {}
  chat:revive()
  local from = vim.api.nvim_get_current_win()
  code.remember(from)
  local position = opts.position or config.get().window.position
  local opened ---@type integer?
  local ok, problem = pcall(window.undisturbed, function()
    for _, win in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
      local other = chats.of_buffer(vim.api.nvim_win_get_buf(win))
      if other and other ~= chat then
        swap(win, vim.api.nvim_win_get_buf(win) == other.buf and chat.buf or chat.prompt.buf)
      end
    end
    local chat_win = M.chat_window(chat)
    if not chat_win then
      chat_win = open_chat_window(chat, position)
      opened = chat_win
    end
    if not M.prompt_window(chat) then
      open_prompt_window(chat, chat_win)
    end
    return true
  end)
  chats.use(chat)
  if not ok then
    -- No room, or a window that must not change. One window without the other is useless.
    close_windows(opened and { opened } or {})
    local why = tostring(problem):gsub("^.-(E%d+: )", "%1")
    return nil, why:find("^E36:") and "no room for the chat here" or "the chat cannot be shown here: " .. why
  end
  if opts.enter then
    M.enter_prompt(chat)
  elseif position == "tab" and vim.api.nvim_win_is_valid(from) then
    window.despite_autocommands(vim.api.nvim_set_current_win, from)
  end
  return true
end

---Goes to the prompt, opening the chat if needed.
---@param chat cursor_agent.Chat
function M.enter_prompt(chat)
  local win = M.prompt_window(chat)
  if not win then
    M.open(chat)
    win = M.prompt_window(chat)
  end
  if win then
    window.despite_autocommands(vim.api.nvim_set_current_win, win)
    if config.get().window.start_insert then
      vim.cmd("startinsert!")
    end
  end
end

---@param win integer
local function remember_size(win)
  if window.is_float(win) then
    return
  end
  local position = config.get().window.position
  if position == "right" or position == "left" then
    local width = vim.api.nvim_win_get_width(win)
    if width < vim.o.columns then
      remembered[position] = width
    end
  end
end

---Closes a chat's windows in the current tab page. The session keeps running.
---@param chat cursor_agent.Chat
function M.close(chat)
  local wins = vim.list_extend(window.showing(chat.prompt.buf), window.showing(chat.buf))
  local back = code.current()
  local inside = vim.tbl_contains(wins, vim.api.nvim_get_current_win())
  local chat_win = M.chat_window(chat)
  if chat_win then
    remember_size(chat_win)
  end
  if inside and vim.api.nvim_get_mode().mode:sub(1, 1) == "i" then
    vim.cmd.stopinsert()
  end
  close_windows(wins)
  if inside and back and vim.api.nvim_win_is_valid(back) then
    window.despite_autocommands(vim.api.nvim_set_current_win, back)
  end
end

---Closes every window of a chat, in all tab pages.
---@param chat cursor_agent.Chat
function M.close_all(chat)
  close_windows(vim.list_extend(vim.fn.win_findbuf(chat.prompt.buf), vim.fn.win_findbuf(chat.buf)))
end

---Closes windows on a stale buffer, and deletes it.
---@param buf integer
function M.forget(buf)
  if chats.of_buffer(buf) then
    return
  end
  close_windows(vim.fn.win_findbuf(buf))
  pcall(vim.api.nvim_buf_delete, buf, { force = true })
end

---When the user closes one of the two windows the other closes too, unless it is the last one.
---@param chat cursor_agent.Chat
---@param tab integer
local function partner_closed(chat, tab)
  if closing or not vim.api.nvim_tabpage_is_valid(tab) then
    return
  end
  local chat_wins, prompt_wins = window.showing(chat.buf, tab), window.showing(chat.prompt.buf, tab)
  if #chat_wins > 0 and #prompt_wins > 0 then
    return
  end
  local left = vim.list_extend(chat_wins, prompt_wins)
  local others = vim.tbl_filter(function(win)
    return not window.is_float(win) and not vim.tbl_contains(left, win)
  end, vim.api.nvim_tabpage_list_wins(tab))
  if #left > 0 and #others > 0 then
    close_windows(left)
  end
end

---@param chat cursor_agent.Chat
---@param buf integer
---@param kind "chat"|"prompt"
function M.attach(chat, buf, kind)
  vim.api.nvim_create_autocmd("BufWinEnter", {
    buffer = buf,
    group = GROUP,
    desc = "cursor-agent: set the options of the chat's windows",
    callback = function()
      for _, win in ipairs(vim.fn.win_findbuf(buf)) do
        if not vim.w[win].cursor_agent_dressed or vim.w[win].cursor_agent_dressed ~= buf then
          vim.w[win].cursor_agent_dressed = buf
          dress.dress(chat, win, kind)
        end
      end
    end,
  })
  vim.api.nvim_create_autocmd("WinClosed", {
    buffer = buf,
    group = GROUP,
    desc = "cursor-agent: close the chat and its prompt together",
    callback = function(event)
      local win = tonumber(event.match) --[[@as integer]]
      if not vim.api.nvim_win_is_valid(win) then
        return
      end
      if kind == "chat" then
        chat.transcript:leave(win)
      end
      if closing then
        return
      end
      if kind == "chat" then
        remember_size(win)
      end
      local tab = vim.api.nvim_win_get_tabpage(win)
      vim.schedule(function()
        partner_closed(chat, tab)
      end)
    end,
  })
end

vim.api.nvim_create_autocmd("QuitPre", {
  group = GROUP,
  desc = "cursor-agent: let :quit exit when only the chat is left",
  callback = function(event)
    local chat = chats.of_buffer(event.buf)
    if not chat then
      return
    end
    local here = vim.api.nvim_get_current_win()
    local ours = {} ---@type integer[]
    for _, win in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
      local buf = vim.api.nvim_win_get_buf(win)
      if not window.is_float(win) and (not chats.of_buffer(buf) or (win ~= here and buf == event.buf)) then
        -- Another window is left, or another one shows the same buffer.
        return
      elseif win ~= here then
        ours[#ours + 1] = win
      end
    end
    close_windows(ours)
  end,
})

vim.api.nvim_create_autocmd("VimResized", {
  group = GROUP,
  desc = "cursor-agent: resize the chat with the screen",
  callback = function()
    local options = config.get().window
    for _, chat in ipairs(chats.all()) do
      local win = M.chat_window(chat)
      local prompt_win = M.prompt_window(chat)
      if win and window.is_float(win) then
        local chat_config, prompt_config = float_configs(options.prompt_height)
        vim.api.nvim_win_set_config(win, chat_config)
        if prompt_win then
          vim.api.nvim_win_set_config(prompt_win, prompt_config)
        end
      elseif win and options.width <= 1 and vim.tbl_contains({ "right", "left" }, options.position) then
        remembered[options.position] = nil
        local width = math.max(size(options.width, vim.o.columns), MIN_WIDTH)
        vim.api.nvim_win_set_width(win, math.min(width, math.floor(vim.o.columns / 2)))
      end
    end
  end,
})

vim.api.nvim_create_autocmd("WinResized", {
  group = GROUP,
  desc = "cursor-agent: keep the chat at its end and fit the prompt after a resize",
  callback = function()
    if not vim.api.nvim_get_mode().mode:find("^[ni]") then
      return
    end
    for _, win in ipairs(vim.v.event.windows or {}) do
      local buf = vim.api.nvim_win_is_valid(win) and vim.api.nvim_win_get_buf(win)
      local chat = buf and chats.of_buffer(buf)
      if chat and buf == chat.prompt.buf then
        -- When a window below closes, Neovim gives its rows to the prompt, not to the chat.
        chat.prompt:fit(win)
        chat.prompt:refresh()
      elseif chat and buf == chat.buf and chat.transcript.tail:is_at(win) then
        local cursor = vim.api.nvim_win_get_cursor(win)
        chat.transcript.tail:go(win)
        vim.api.nvim_win_set_cursor(win, cursor)
      end
    end
  end,
})

vim.api.nvim_create_autocmd("OptionSet", {
  group = GROUP,
  pattern = { "laststatus", "winbar" },
  desc = "cursor-agent: draw the frame of the prompt",
  callback = function()
    if vim.v.option_type ~= "global" then
      return
    end
    for _, chat in ipairs(chats.all()) do
      for kind, buf in pairs({ chat = chat.buf, prompt = chat.prompt.buf }) do
        for _, win in ipairs(vim.fn.win_findbuf(buf)) do
          dress.dress(chat, win, kind --[[@as "chat"|"prompt"]])
        end
      end
    end
  end,
})

---The window for showing a buffer: one that already shows it, the code window if that may change, or a new one.
---@param buf integer
---@return integer
function M.window_for(buf)
  local at = code.current()
  local able = at and code.may_change(at) and at or nil
  for _, win in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
    if vim.api.nvim_win_get_buf(win) == buf and not window.is_float(win) then
      return win
    end
    able = able or (code.is_code(win) and code.may_change(win) and win or nil)
  end
  return able
    or window.undisturbed(function()
      local side = config.get().window.position == "left" and "right" or "left"
      return open_win(buf, { split = at and "above" or side, win = at or -1 })
    end)
end

---Shows a file in a code window and goes there.
---@param path string
---@param line? integer
---@return boolean?, string?
function M.edit(path, line)
  if not vim.uv.fs_stat(path) and vim.fn.bufexists(path) == 0 then
    return nil, ("%s does not exist"):format(path)
  elseif regular.is_odd(path) then
    return nil, ("%s is not a regular file"):format(path)
  end
  local buf = vim.fn.bufadd(path)
  vim.bo[buf].buflisted = true
  local win = M.window_for(buf)
  local chat = chats.current()
  local chat_win = chat and M.chat_window(chat)
  if chat and chat_win and window.is_float(chat_win) then
    -- The float covers the code.
    M.close(chat)
  end
  vim.api.nvim_set_current_win(win)
  vim.cmd("normal! m'")
  if vim.api.nvim_win_get_buf(win) ~= buf then
    local ok, problem = pcall(vim.api.nvim_win_set_buf, win, buf)
    if not ok then
      -- Another Neovim has it open, or a plugin refuses: pass on Neovim's message.
      return nil, (tostring(problem):gsub("^.-(E%d+: )", "%1"))
    end
  end
  if line then
    local last = vim.api.nvim_buf_line_count(buf)
    vim.api.nvim_win_set_cursor(win, { math.min(math.max(line, 1), last), 0 })
    vim.cmd("normal! zvzz")
  end
  return true
end

return M
