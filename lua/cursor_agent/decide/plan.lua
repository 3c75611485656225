-- Shows a plan as markdown to read and edit, saves it when accepted, and shows the progress of its todos on it.

local frame = require("cursor_agent.decide.frame")
local bridge = require("cursor_agent.bridge")
local config = require("cursor_agent.config")
local events = require("cursor_agent.bridge.events")
local format = require("cursor_agent.render.format")
local buffer_names = require("cursor_agent.bridge.buffer_names")
local notify = require("cursor_agent.notify")
local private = require("cursor_agent.files.private")
local regular = require("cursor_agent.files.regular")
local blocks = require("cursor_agent.render.block")
local window = require("cursor_agent.window.quiet")

local M = {}

---Share of the screen taken by a plan in a floating window.
local FLOAT_SHARE = 0.8

---Columns needed by the keys in the bar above a plan.
local MIN_FLOAT_WIDTH = 60
---Of the plan's name in the file name.
local MAX_SLUG_BYTES = 60

local NS = vim.api.nvim_create_namespace("cursor_agent_plan")
local GROUP = vim.api.nvim_create_augroup("cursor_agent_plan", {})

local BOXES = { completed = "x", in_progress = "~", cancelled = "-" }

---@type table<integer, integer> buffers of the plans that wait, by decision
local buffers = {}

---@type table<integer, integer> windows the plans were opened from, by decision
local opened_from = {}

---@type table<integer, string> where plans were saved before they were decided on, by decision
local written = {}

---@type table<string, cursor_agent.Key> sessions of the plans that were accepted, by path
local accepted = {}

---@type table<cursor_agent.Key, string> the plan accepted last, by session
local last = {}

---Called when a plan's window was closed while the plan is still open.
---@param _id integer
M.on_closed = function(_id) end

---@param todo cursor_agent.Todo
---@return string
local function todo_line(todo)
  return ("- [%s] %s"):format(BOXES[todo.status] or " ", (todo.content:gsub("%s*\n%s*", " ")))
end

---A plan as markdown: name, overview, text, and the todos by phase.
---@param plan { name: string?, overview: string?, text: string, todos: cursor_agent.Todo[], phases: { name: string, todos: cursor_agent.Todo[] }[] }
---@return string[]
function M.lines(plan)
  local lines = {} ---@type string[]
  local function add(text)
    text = vim.trim(text)
    if text ~= "" then
      if #lines > 0 then
        lines[#lines + 1] = ""
      end
      vim.list_extend(lines, vim.split(text:gsub("\r", ""), "\n", { plain = true }))
    end
  end
  local text = vim.trim(plan.text or "")
  local name = vim.trim(plan.name or "")
  -- Some plans start with their name as a heading.
  local heading = text:match("^#%s+([^\n]*)")
  if name ~= "" and (not heading or vim.trim(heading):lower() ~= name:lower()) then
    add("# " .. name)
  end
  add(plan.overview or "")
  add(text)
  local listed = {} ---@type table<string, boolean>
  local phases = plan.phases or {}
  local rest = 0
  for _, phase in ipairs(phases) do
    for _, todo in ipairs(phase.todos or {}) do
      listed[todo.content] = true
    end
  end
  for _, todo in ipairs(plan.todos or {}) do
    rest = rest + (listed[todo.content] and 0 or 1)
  end
  if rest > 0 or next(listed) then
    add("## Todos")
  end
  for _, phase in ipairs(phases) do
    add("### " .. (phase.name ~= "" and phase.name or "Phase"))
    add(table.concat(vim.tbl_map(todo_line, phase.todos or {}), "\n"))
  end
  if rest > 0 then
    local others = vim.tbl_filter(function(todo)
      return not listed[todo.content]
    end, plan.todos)
    add(table.concat(vim.tbl_map(todo_line, others), "\n"))
  end
  return #lines > 0 and lines or { "" }
end

---@param decision cursor_agent.Decision
---@return string
local function agent_title(decision)
  return require("cursor_agent.decide.permission").asker(decision)
end

---The card that announces a plan.
---@param decision cursor_agent.Decision
---@return cursor_agent.decide.Card
function M.card(decision)
  local plan = assert(decision.plan)
  return {
    kind = "plan-card",
    title = agent_title(decision) .. " proposes a plan",
    hints = frame.hints("plan-card", {
      { "plan-open", "read and edit" },
      { "plan-accept", "accept" },
      { "plan-reject", "reject with a reason" },
      { "next-decision", "next" },
      { "decision-later", "later" },
    }),
    body = function()
      local b = blocks.builder()
      b:line({ { vim.trim(plan.name or "Plan"), "CursorAgentQuestion" } })
      for _, line in ipairs(vim.split(vim.trim(plan.overview or ""), "\n", { plain = true })) do
        if line ~= "" then
          b:line({ { line } })
        end
      end
      local todos = #(plan.todos or {})
      for _, phase in ipairs(todos == 0 and plan.phases or {}) do
        todos = todos + #(phase.todos or {})
      end
      local words = {} ---@type string[]
      if todos > 0 then
        words[#words + 1] = format.plural(todos, "todo")
      end
      if #(plan.phases or {}) > 0 then
        words[#words + 1] = format.plural(#plan.phases, "phase")
      end
      local lines = select(2, vim.trim(plan.text or ""):gsub("\n", "\n")) + 1
      words[#words + 1] = format.plural(lines, "line")
      b:line({ { table.concat(words, " · "), "CursorAgentDetail" } })
      return b
    end,
  }
end

---@param name string
---@return string
local function slug(name)
  local text = name:lower():gsub("[^%w\128-\255]+", "-"):gsub("^%-+", "")
  text = vim.fn.strcharpart(text, 0, MAX_SLUG_BYTES):gsub("%-+$", "")
  return text ~= "" and text or "plan"
end

---A plan as it is in its buffer, or as it was received.
---@param decision cursor_agent.Decision
---@param buf integer?
---@return string text
---@return boolean changed the user has changed it
local function text_of(decision, buf)
  local came = table.concat(M.lines(assert(decision.plan)), "\n") .. "\n"
  if not buf or not vim.api.nvim_buf_is_loaded(buf) then
    return came, false
  end
  local text = table.concat(vim.api.nvim_buf_get_lines(buf, 0, -1, false), "\n") .. "\n"
  return text, text ~= came
end

---Where to save a plan. The agent takes a changed plan only from a file: if plans are not saved, from one that is
---deleted when Neovim exits.
---@param decision cursor_agent.Decision
---@param changed boolean
---@return string?
local function directory_for(decision, changed)
  local directory = vim.fs.normalize(config.get().plan.directory)
  if directory == "" then
    return changed and vim.fs.joinpath(vim.fs.dirname(vim.fn.tempname()), "cursor-agent-plans") or nil
  end
  return directory:sub(1, 1) == "/" and directory or vim.fs.joinpath(decision.cwd, directory)
end

---Saves a plan as it is in its buffer, or as it was received.
---@param decision cursor_agent.Decision
---@param buf? integer
---@return string? path nil if plans are not saved
---@return string? problem
local function save(decision, buf)
  local plan = assert(decision.plan)
  local text, changed = text_of(decision, buf)
  local directory = directory_for(decision, changed)
  if not directory then
    return nil, nil
  end
  local made, problem = private.make_dir(directory)
  local base = vim.fs.joinpath(directory, slug(plan.name or "plan"))
  local path, number = base .. ".md", 1
  while made and path ~= written[decision.id] and vim.uv.fs_stat(path) and regular.read(path, #text) ~= text do
    number = number + 1
    path = ("%s-%d.md"):format(base, number)
  end
  if made then
    made, problem = private.replace(path, text)
  end
  if not made then
    local hint = 'set `plan.directory` to another one, or to "" to accept plans without saving them'
    return nil, ("the plan could not be saved: %s\n  %s"):format(tostring(problem), hint)
  end
  -- Written on behalf of the user, so it is not an agent's change to review.
  bridge.review_wrote(path)
  written[decision.id] = path
  return path, nil
end

---What `:w` does in a plan: it does not decide anything.
---@param decision cursor_agent.Decision
---@param buf integer
local function write(decision, buf)
  local path, problem
  if config.get().plan.directory ~= "" then
    path, problem = save(decision, buf)
  end
  if problem then
    return notify.notify(problem, "error")
  end
  vim.bo[buf].modified = false
  local accept = buffers[decision.id] == buf and frame.hints("plan", { { "plan-accept", "accepts it" } })[1]
  local waits = accept and (", not accepted (%s %s)"):format(accept.key, accept.text) or ""
  local where = path and format.path(path, decision.cwd) or "your changes stay in this buffer"
  notify.notify(("the plan is %s%s: %s"):format(path and "saved" or "kept", waits, where))
end

---The buffer of an open plan, created on first use.
---@param decision cursor_agent.Decision
---@return integer
local function buffer(decision)
  local buf = buffers[decision.id]
  if buf and vim.api.nvim_buf_is_loaded(buf) then
    return buf
  elseif buf and vim.api.nvim_buf_is_valid(buf) then
    -- `:bdelete` removed its text and keys.
    vim.api.nvim_buf_delete(buf, { force = true })
  end
  buf = vim.api.nvim_create_buf(false, true)
  buffers[decision.id] = buf
  vim.api.nvim_buf_set_name(buf, buffer_names.of(("plan/%d.md"):format(decision.id)))
  vim.b[buf].cursor_agent_decision = decision.id
  require("cursor_agent.colour.parsers").fence(buf, "markdown")
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, M.lines(assert(decision.plan)))
  vim.bo[buf].bufhidden = "hide"
  require("cursor_agent.window.scratch").on_write(buf, "cursor-agent: save the plan without deciding", function()
    write(decision, buf)
  end)
  vim.bo[buf].modified = false
  vim.bo[buf].filetype = "markdown"
  vim.b[buf].cursor_agent_tick = vim.b[buf].changedtick
  require("cursor_agent.keys").map(buf, "plan")
  vim.api.nvim_create_autocmd("BufWinLeave", {
    group = GROUP,
    buffer = buf,
    desc = "cursor-agent: keep a closed plan undecided",
    callback = function()
      vim.schedule(function()
        if buffers[decision.id] == buf and not M.window(decision.id) then
          M.on_closed(decision.id)
        end
      end)
    end,
  })
  return buf
end

---The window that shows a plan in the current tab page.
---@param id integer
---@return integer?
function M.window(id)
  local buf = buffers[id]
  for _, win in ipairs(buf and vim.fn.win_findbuf(buf) or {}) do
    if vim.api.nvim_win_get_tabpage(win) == vim.api.nvim_get_current_tabpage() then
      return win
    end
  end
end

---@param buf integer
---@param title string
---@param hints cursor_agent.decide.Hint[]
---@return integer win
---@return boolean keyed its border shows the keys
local function open_window(buf, title, hints)
  local position = config.get().plan.position
  if position == "tab" then
    vim.cmd("tab sbuffer " .. buf)
    return vim.api.nvim_get_current_win(), false
  elseif position == "split" then
    local code = require("cursor_agent.window.code").current()
    return vim.api.nvim_open_win(buf, true, { split = code and "above" or "left", win = code or -1 }), false
  end
  -- As large as its text, with a margin.
  local widest = math.min(math.floor(vim.o.columns * FLOAT_SHARE), 110)
  local tallest = math.floor((vim.o.lines - vim.o.cmdheight) * FLOAT_SHARE)
  local lines = vim.api.nvim_buf_get_lines(buf, 0, -1, false)
  local width, height = 0, 0
  for _, line in ipairs(lines) do
    width = math.max(width, format.width(line) + 4)
  end
  width = math.min(math.max(width, MIN_FLOAT_WIDTH), widest)
  for _, line in ipairs(lines) do
    height = height + math.max(math.ceil(format.width(line) / math.max(width - 4, 1)), 1)
  end
  local border = window.border()
  width = math.max(width, 20)
  local words = vim.tbl_map(function(hint)
    return ("%s %s"):format(hint.key, hint.text)
  end, hints)
  local foot = (" %s "):format(table.concat(words, " · "))
  local keyed = border ~= "none" and format.width(foot) <= width
  height = math.min(height + (keyed and 1 or 2), tallest)
  return vim.api.nvim_open_win(buf, true, {
    relative = "editor",
    width = width,
    height = math.max(height, 5),
    row = math.max(math.floor((vim.o.lines - height) / 2) - 1, 0),
    col = math.max(math.floor((vim.o.columns - width) / 2) - 1, 0),
    border = border,
    title = border ~= "none" and (" %s "):format(format.first_cells(title, width - 2)) or nil,
    footer = keyed and { { foot, "CursorAgentDecisionFooter" } } or nil,
    footer_pos = keyed and "right" or nil,
  }),
    keyed
end

---@param text string
---@return string
local function escape(text)
  return (text:gsub("%%", "%%%%"))
end

---Shows a plan and goes there.
---@param decision cursor_agent.Decision
---@return boolean
function M.open(decision)
  local buf = buffer(decision)
  local win = M.window(decision.id)
  if vim.api.nvim_get_mode().mode:sub(1, 1) == "i" then
    vim.cmd.stopinsert()
  end
  if win then
    vim.api.nvim_set_current_win(win)
    return true
  end
  opened_from[decision.id] = vim.api.nvim_get_current_win()
  local hints = frame.hints("plan", {
    { "plan-accept", "accept" },
    { "plan-reject", "reject with a reason" },
    { "plan-cancel", "cancel" },
    { "decision-later", "later" },
  })
  local about = decision.plan and decision.plan.name or ""
  local title = agent_title(decision) .. " proposes a plan"
  if about ~= "" then
    title = ("%s: %s"):format(title, format.first_line(about, 80))
  end
  local keyed ---@type boolean
  win, keyed = open_window(buf, title, hints)
  require("cursor_agent.window.words").label(win)
  local bar = {} ---@type string[]
  for _, hint in ipairs(hints) do
    bar[#bar + 1] = ("%%#CursorAgentKey# %s%%#CursorAgentKeyText# %s"):format(escape(hint.key), escape(hint.text))
  end
  for name, value in pairs({
    winbar = not keyed and table.concat(bar, " ·") or "",
    -- A margin.
    statuscolumn = " ",
    number = false,
    relativenumber = false,
    signcolumn = "no",
    wrap = true,
    linebreak = true,
    foldenable = false,
    winfixbuf = true,
    fillchars = "eob: ",
    winhighlight = "NormalFloat:CursorAgentDecision,FloatBorder:CursorAgentDecisionBorder,FloatTitle:CursorAgentDecisionTitle",
  }) do
    vim.api.nvim_set_option_value(name, value, { win = win, scope = "local" })
  end
  return true
end

---Closes the windows of a plan. If the user is in one, returns to where it was opened from.
---@param id integer
local function close_windows(id)
  local from = opened_from[id]
  opened_from[id] = nil
  for _, win in ipairs(buffers[id] and vim.fn.win_findbuf(buffers[id]) or {}) do
    if win == vim.api.nvim_get_current_win() and window.shares_tab(from, win) then
      vim.api.nvim_set_current_win(from)
    end
    pcall(vim.api.nvim_win_close, win, true)
  end
end

---Hides a plan; it stays open.
---@param id integer
function M.close(id)
  close_windows(id)
end

---Saves a plan for the agent whose plan was accepted.
---@param decision cursor_agent.Decision
---@return string? path nil if plans are not saved
---@return string? problem
function M.save(decision)
  return save(decision, buffers[decision.id])
end

---The text of a plan as shown, edits included; nil if it was never shown.
---@param id integer
---@return string?
function M.text(id)
  local buf = buffers[id]
  if buf and vim.api.nvim_buf_is_loaded(buf) then
    return table.concat(vim.api.nvim_buf_get_lines(buf, 0, -1, false), "\n")
  end
end

---A plan was decided. If the user edited it but did not decide, its buffer stays: the text is theirs.
---@param id integer
---@param how string
function M.forget(id, how)
  local buf = buffers[id]
  if not buf or not vim.api.nvim_buf_is_valid(buf) then
    buffers[id] = nil
    return
  end
  if how ~= "user" and vim.b[buf].changedtick ~= vim.b[buf].cursor_agent_tick then
    buffers[id] = nil
    for _, win in ipairs(vim.fn.win_findbuf(buf)) do
      vim.api.nvim_set_option_value(
        "winbar",
        ("%%#CursorAgentWarning# This plan was %s; your text stays in this buffer"):format(how),
        {
          win = win,
          scope = "local",
        }
      )
    end
    if #vim.fn.win_findbuf(buf) == 0 then
      notify.notify(("a plan was %s; your changes to it are in buffer %d"):format(how, buf), "warn")
    end
    return
  end
  close_windows(id)
  buffers[id] = nil
  pcall(vim.api.nvim_buf_delete, buf, { force = true })
end

---@param buf integer
---@param todos cursor_agent.Todo[]
local function mark_buffer(buf, todos)
  vim.api.nvim_buf_clear_namespace(buf, NS, 0, -1)
  local by_content = {} ---@type table<string, cursor_agent.Todo>
  for _, todo in ipairs(todos) do
    by_content[vim.trim((todo.content:gsub("%s*\n%s*", " ")))] = todo
  end
  local icons = require("cursor_agent.render.icons").pick(config.get().chat.icons)
  for row, line in ipairs(vim.api.nvim_buf_get_lines(buf, 0, -1, false)) do
    local lead, content = line:match("^(%s*[-*+] %[).%] (.*)$")
    local todo = content and by_content[vim.trim(content)]
    if lead and todo then
      local icon, hl = require("cursor_agent.render.todos").state(todo.status, icons)
      vim.api.nvim_buf_set_extmark(buf, NS, row - 1, #lead, {
        virt_text = { { icon, hl } },
        virt_text_pos = "overlay",
        hl_mode = "combine",
      })
      if todo.status == "completed" or todo.status == "cancelled" then
        vim.api.nvim_buf_set_extmark(buf, NS, row - 1, #lead + 3, { end_col = #line, hl_group = "CursorAgentTodoDone" })
      end
    end
  end
end

---Shows the progress of the todos on a session's open plans. The text itself is not changed.
---@param key cursor_agent.Key
---@param todos cursor_agent.Todo[]
function M.update(key, todos)
  for path, owner in pairs(accepted) do
    local buf = owner == key and vim.fn.bufnr("^" .. vim.fn.escape(path, "[]*?{}\\") .. "$") or -1
    if buf ~= -1 and vim.api.nvim_buf_is_loaded(buf) then
      mark_buffer(buf, todos)
    end
  end
end

---@param chat cursor_agent.Chat
function M.on_status(chat)
  M.update(chat.key, chat.status.todos or {})
end

local listens = false

---Records an accepted plan: from now on todo updates show on it.
---@param path string
---@param key cursor_agent.Key
function M.accepted(path, key)
  if not listens then
    listens = true
    events.on("chat status", "cursor_agent.decide.plan", "on_status")
  end
  accepted[path] = key
  last[key] = path
  vim.api.nvim_create_autocmd({ "BufWinEnter", "TextChanged", "InsertLeave" }, {
    group = GROUP,
    pattern = vim.fn.escape(path, "[]*?{}\\, "),
    desc = "cursor-agent: show the todos of an accepted plan",
    callback = function()
      local chat = require("cursor_agent.chat.registry").get(key)
      M.update(key, chat and chat.status.todos or {})
    end,
  })
end

---The plan accepted last in a session.
---@param key cursor_agent.Key
---@return string?
function M.path_of(key)
  return last[key]
end

return M
