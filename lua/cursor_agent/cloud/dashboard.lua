-- `:CursorAgent cloud`: the cloud agents as a buffer, a line for each, more of them as the cursor reaches the end.
--
-- A thousand lines are drawn in slices; colours are put on the lines that are on the screen only.

local client = require("cursor_agent.cloud.client")
local clock = require("cursor_agent.bridge.clock")
local config = require("cursor_agent.config")
local format = require("cursor_agent.render.format")
local buffer_names = require("cursor_agent.bridge.buffer_names")
local rows = require("cursor_agent.cloud.rows")
local watch = require("cursor_agent.cloud.watch")

local M = {}

local NAME = "cloud"
local NS = vim.api.nvim_create_namespace("cursor_agent_cloud")
local TITLES = vim.api.nvim_create_namespace("cursor_agent_cloud_titles")

---Agents of a page, and lines drawn before the editor has its turn.
local PAGE = 50
local SLICE = 60

---The title, and the totals.
local HEAD = 2

---More is fetched when the cursor or the end of the window is this near to the end.
local NEAR = 12

---The times on the screen are drawn again after this time.
local TICK_MS = 1000

---@class (exact) cursor_agent.cloud.View
---@field list cursor_agent.cloud.Row[] all that are known, newest first
---@field by_id table<string, cursor_agent.cloud.Row>
---@field shown string[] ids, by line
---@field filter cursor_agent.cloud.Filter
---@field archived boolean those put away too
---@field next string? where the next page begins
---@field loading boolean
---@field problem string?
---@field me string?
---@field me_of integer? which start of the program said so
---@field skew_ms number the server's clock less ours
---@field widest integer the longest name of a repository, in cells
---@field drawing integer a number for each drawing: an old one stops
---@field asked integer a number for each refresh: an old answer is dropped
---@field kept string? the agent the cursor was on when a drawing began

---@type cursor_agent.cloud.View
local view = {
  list = {},
  by_id = {},
  shown = {},
  filter = {},
  archived = false,
  loading = false,
  skew_ms = 0,
  widest = 0,
  drawing = 0,
  asked = 0,
}

local timer ---@type uv.uv_timer_t?

---@return integer?
local function buffer()
  local buf = vim.fn.bufnr(buffer_names.exactly(NAME))
  return buf > 0 and vim.api.nvim_buf_is_loaded(buf) and buf or nil
end

---The window that shows it: the current one, one of this tab, or one of another.
---@return integer?
local function window()
  local buf = buffer()
  if not buf then
    return nil
  elseif vim.api.nvim_get_current_buf() == buf then
    return vim.api.nvim_get_current_win()
  end
  local here = vim.fn.bufwinid(buf)
  return here ~= -1 and here or vim.fn.win_findbuf(buf)[1]
end

---@return integer of the window
local function width()
  local win = window()
  return win and vim.api.nvim_win_get_width(win) or 100
end

---@return number ms by the server's clock
local function now_ms()
  return clock.now_ms() + view.skew_ms
end

---@param server_ms number?
local function set_clock(server_ms)
  if server_ms then
    view.skew_ms = server_ms - clock.now_ms()
  end
end

---@return cursor_agent.Icons
local function icons()
  return require("cursor_agent.render.icons").pick(config.get().chat.icons)
end

---@param row cursor_agent.cloud.Row
---@return string line
---@return cursor_agent.cloud.Spot[] spots
local function line_of(row)
  return rows.line(row, width(), now_ms(), icons(), view.widest)
end

---The lines above the agents.
---@return string[]
local function head()
  local demo = client.is_demo() and " (demo: nothing leaves this machine)" or ""
  local me = view.me and " · " .. view.me or ""
  local more = view.next and " and more" or ""
  local archived = view.archived and " · with archived" or ""
  local filter = rows.filter_words(view.filter)
  return {
    (" Cloud agents%s%s"):format(demo, me),
    (" %s%s   filter: %s%s"):format(rows.totals(view.list), more, filter, archived),
  }
end

---@param text string
---@param cells integer
---@return string[]
local function wrap(text, cells)
  local lines, line = {}, "" ---@type string[], string
  for word in text:gmatch("%S+") do
    if line ~= "" and format.width(line .. " " .. word) > cells then
      lines[#lines + 1] = " " .. line
      line = word
    else
      line = line == "" and word or line .. " " .. word
    end
  end
  lines[#lines + 1] = " " .. line
  return lines
end

---The lines after the agents.
---@return string[]
local function foot()
  if view.problem then
    return wrap(view.problem, width() - 2)
  elseif view.loading then
    return { " Loading…" }
  elseif #view.list == 0 then
    return { " No cloud agents yet: n starts one." }
  elseif #view.shown == 0 then
    return { " No agent matches the filter; <BS> clears it." }
  end
  return {}
end

---@param buf integer
---@param first integer 0-based
---@param last integer
---@param lines string[]
local function put(buf, first, last, lines)
  vim.bo[buf].modifiable = true
  vim.api.nvim_buf_set_lines(buf, first, last, false, lines)
  vim.bo[buf].modifiable = false
  vim.bo[buf].modified = false
end

---What the columns are, between the totals and the agents.
---@param buf integer
local function draw_titles(buf)
  vim.api.nvim_buf_clear_namespace(buf, TITLES, 0, -1)
  if #view.shown > 0 then
    local titles = { { rows.titles(width(), view.widest), "CursorAgentPlaceholder" } }
    vim.api.nvim_buf_set_extmark(buf, TITLES, HEAD - 1, 0, { virt_lines = { titles } })
  end
end

local function draw_edges()
  local buf = buffer()
  if buf then
    put(buf, 0, HEAD, head())
    put(buf, HEAD + #view.shown, -1, foot())
    draw_titles(buf)
  end
end

---Puts the cursor on a line, where it is in none of the agents'.
local function place_cursor()
  local win = window()
  if win and #view.shown > 0 then
    local line = vim.api.nvim_win_get_cursor(win)[1]
    local wanted = math.min(math.max(line, HEAD + 1), HEAD + #view.shown)
    if wanted ~= line then
      vim.api.nvim_win_set_cursor(win, { wanted, 0 })
    end
  end
end

---Adds lines of these agents, a slice at a time.
---@param list cursor_agent.cloud.Row[]
---@param done fun()
---@param over? integer the number of lines to draw over instead of pushing down
local function append(list, done, over)
  local number = view.drawing
  local at = 1
  over = over or 0
  local function step()
    local buf = buffer()
    if not buf or number ~= view.drawing then
      return
    end
    local lines = {} ---@type string[]
    local last = HEAD + #view.shown
    local stop = math.min(at + SLICE - 1, #list)
    for i = at, stop do
      if rows.matches(list[i], view.filter) then
        lines[#lines + 1] = (line_of(list[i]))
        view.shown[#view.shown + 1] = list[i].id
      end
    end
    at = stop + 1
    local replaced = math.min(#lines, over)
    over = over - replaced
    put(buf, last, last + replaced, lines)
    if at <= #list then
      vim.defer_fn(step, 1)
    else
      draw_edges()
      place_cursor()
      done()
    end
  end
  step()
end

---The agent the cursor is on.
---@return string?
local function id_at_cursor()
  local win = window()
  return win and view.shown[vim.api.nvim_win_get_cursor(win)[1] - HEAD]
end

---Draws everything again; the cursor stays on its agent.
---@param done? fun()
function M.draw(done)
  local buf = buffer()
  if not buf then
    return
  end
  local id = id_at_cursor() or view.kept
  view.kept = id
  view.drawing = view.drawing + 1
  view.shown = {}
  local win = window()
  local cursor = win and vim.api.nvim_win_get_cursor(win)
  put(buf, 0, HEAD, head())
  append(view.list, function()
    view.kept = nil
    if win and cursor and vim.api.nvim_win_is_valid(win) and vim.api.nvim_win_get_buf(win) == buf then
      local line = math.min(cursor[1], HEAD + math.max(#view.shown, 1))
      for i, shown in ipairs(view.shown) do
        line = shown == id and HEAD + i or line
      end
      pcall(vim.api.nvim_win_set_cursor, win, { line, cursor[2] })
    end
    place_cursor()
    if done then
      done()
    end
    M.want_more()
  end, math.max(vim.api.nvim_buf_line_count(buf) - HEAD, 0))
end

---@param list cursor_agent.cloud.Row[]
local function redraw_rows(list)
  local buf = buffer()
  if not buf then
    return
  end
  local wanted = {} ---@type table<string, boolean>
  for _, row in ipairs(list) do
    wanted[row.id] = true
  end
  for i, id in ipairs(view.shown) do
    if wanted[id] then
      put(buf, HEAD + i - 1, HEAD + i, { (line_of(view.by_id[id])) })
    end
  end
  draw_edges()
end

---What the newest run of an agent says, and the list does not.
local OF_RUN = { "state", "branch", "pr", "run", "elapsed_ms", "started_ms", "why", "result" }

---Takes rows that are new or have changed. A state that is not known yet does not replace one that is.
---@param list cursor_agent.cloud.Row[]
---@param by_id table<string, cursor_agent.cloud.Row>
---@return cursor_agent.cloud.Row[] new
local function merge(list, by_id)
  local new = {} ---@type cursor_agent.cloud.Row[]
  for _, row in ipairs(list) do
    local before = view.by_id[row.id]
    if before and row.state == "loading" then
      for _, name in ipairs(OF_RUN) do
        row[name] = before[name]
      end
    end
    view.widest = math.max(view.widest, format.width(row.repo or ""))
    local known = by_id[row.id]
    if known then
      for name in pairs(known) do
        known[name] = nil
      end
      for name, value in pairs(row) do
        known[name] = value
      end
    else
      by_id[row.id] = row
      new[#new + 1] = row
    end
  end
  return new
end

---States of agents, told by the program.
---@param params { rows: cursor_agent.cloud.Row[], now: number? }
function M.on_rows(params)
  set_clock(params.now)
  watch.see(params.rows)
  local known = vim.tbl_filter(function(row)
    return view.by_id[row.id] ~= nil
  end, params.rows)
  local before = {} ---@type table<string, boolean>
  for _, row in ipairs(known) do
    before[row.id] = rows.matches(view.by_id[row.id], view.filter)
  end
  merge(known, view.by_id)
  for _, row in ipairs(known) do
    if rows.matches(row, view.filter) ~= before[row.id] then
      M.draw()
      return
    end
  end
  redraw_rows(known)
end

---An agent asks, and waits for the answer.
---@param params { row: cursor_agent.cloud.Row, now: number? }
function M.on_asked(params)
  M.on_rows({ rows = { params.row }, now = params.now })
  watch.asked(params.row)
end

---@param params { row: cursor_agent.cloud.Row, now: number? }
function M.on_ended(params)
  watch.ended(params)
  M.on_rows({ rows = { params.row }, now = params.now })
end

---Puts a new agent on top.
---@param row cursor_agent.cloud.Row
function M.add(row)
  watch.see({ row })
  if view.by_id[row.id] then
    M.on_rows({ rows = { row } })
    return
  end
  view.by_id[row.id] = row
  view.widest = math.max(view.widest, format.width(row.repo or ""))
  table.insert(view.list, 1, row)
  M.draw()
end

---Takes an agent away.
---@param id string
function M.remove(id)
  watch.forget(id)
  view.by_id[id] = nil
  view.list = vim.tbl_filter(function(row)
    return row.id ~= id
  end, view.list)
  M.draw()
end

---@class (exact) cursor_agent.cloud.Fresh a list that is to replace the one on the screen
---@field list cursor_agent.cloud.Row[]
---@field by_id table<string, cursor_agent.cloud.Row>
---@field wanted integer the least number of agents

---Fetches a page: to add to what is there, or to a list that is to replace it.
---@param cursor string?
---@param fresh cursor_agent.cloud.Fresh?
local function load(cursor, fresh)
  local asked = view.asked
  view.loading, view.problem = true, nil
  draw_edges()
  client.request("list", { limit = PAGE, cursor = cursor, archived = view.archived }, function(result, message)
    if asked ~= view.asked then
      return
    end
    view.loading = false
    if not result then
      view.problem = message
      draw_edges()
      return
    end
    set_clock(result.now)
    watch.see(result.rows)
    local to = fresh or view
    local widest = view.widest
    local new = merge(result.rows, to.by_id)
    vim.list_extend(to.list, new)
    -- A page that leads nowhere is the last one.
    local next_page = result.next ~= cursor and (#new > 0 or result.rows[1] == nil) and result.next or nil
    if fresh and #fresh.list < fresh.wanted and next_page then
      load(next_page, fresh)
      return
    end
    view.next = next_page
    if fresh then
      view.list, view.by_id = fresh.list, fresh.by_id
      M.draw()
    elseif view.widest > widest then
      M.draw()
    else
      append(new, M.want_more)
    end
  end)
end

---Fetches the next page where the end is near.
function M.want_more()
  local win = window()
  if not win or view.loading or not view.next or view.problem then
    return
  end
  local last = HEAD + #view.shown
  local seen = math.max(vim.api.nvim_win_get_cursor(win)[1], vim.fn.line("w$", win))
  if seen >= last - NEAR then
    load(view.next)
  end
end

---Asks for everything again, as far as the cursor is; a page that failed is asked for again.
function M.refresh()
  view.asked = view.asked + 1
  view.next, view.loading = nil, false
  local id, wanted = id_at_cursor(), 1
  for i, row in ipairs(view.list) do
    wanted = row.id == id and i or wanted
  end
  load(nil, { list = {}, by_id = {}, wanted = wanted })
  if not view.me or view.me_of ~= client.starts then
    view.me_of = client.starts
    client.request("me", {}, function(me)
      view.me = me and (me.userEmail or me.apiKeyName):gsub("%c", " ")
      draw_edges()
    end)
  end
end

---An agent was put away, or brought back.
---@param id string
---@param archived boolean
function M.set_archived(id, archived)
  local row = view.by_id[id]
  if not row then
    return
  elseif archived and not view.archived then
    M.remove(id)
    return
  end
  row.archived = archived
  redraw_rows({ row })
end

---The agent under the cursor.
---@return cursor_agent.cloud.Row?, string?
function M.current()
  local win = window()
  local id = win and view.shown[vim.api.nvim_win_get_cursor(win)[1] - HEAD]
  if not id then
    return nil, "no agent on this line"
  end
  return view.by_id[id]
end

---An agent by its id, when it is known.
---@param id string
---@return cursor_agent.cloud.Row?
function M.known(id)
  return view.by_id[id]
end

---@return cursor_agent.cloud.Row[]
function M.list()
  return view.list
end

---Changes the filter: `name` is `state`, `repo` or `text`; nil clears it.
---@param name? "state"|"repo"|"text"
---@param value? string
function M.set_filter(name, value)
  if name then
    view.filter[name] = value ~= "" and value or nil
  else
    view.filter = {}
  end
  M.draw()
end

---Shows those that were put away, or hides them.
function M.toggle_archived()
  view.archived = not view.archived
  M.refresh()
end

---The repositories of the agents that are known.
---@return string[]
function M.repos()
  local seen = {} ---@type table<string, boolean>
  for _, row in ipairs(view.list) do
    if row.repo then
      seen[row.repo] = true
    end
  end
  local list = vim.tbl_keys(seen)
  table.sort(list)
  return list
end

---The line below the dashboard: its keys.
---@return string
function M.statusline()
  local keymaps = require("cursor_agent.keys")
  local keys = {} ---@type string[]
  for _, one in ipairs({
    { "cloud-open", "open" },
    { "cloud-follow-up", "follow up" },
    { "cloud-stop", "stop" },
    { "cloud-browse", "pull request" },
    { "cloud-diff", "diff" },
    { "cloud-new", "new" },
    { "help", "keys" },
  }) do
    local key = keymaps.key(one[1], "cloud")
    keys[#keys + 1] = key and ("%s %s"):format(key:gsub("%%", "%%%%"), one[2]) or nil
  end
  return " " .. table.concat(keys, "  ") .. " %<"
end

local function watch_screen(buf)
  local group = vim.api.nvim_create_augroup("cursor_agent_cloud_dashboard", {})
  vim.api.nvim_create_autocmd({ "CursorMoved", "WinScrolled" }, {
    group = group,
    buffer = buf,
    desc = "cursor-agent: fetch more cloud agents",
    callback = M.want_more,
  })
  vim.api.nvim_create_autocmd("WinResized", {
    group = group,
    desc = "cursor-agent: fit the list to the window",
    callback = function()
      local win = window()
      if win and vim.list_contains(vim.v.event.windows or {}, win) then
        M.draw()
      end
    end,
  })
  timer = timer or assert(vim.uv.new_timer())
  timer:start(
    TICK_MS,
    TICK_MS,
    vim.schedule_wrap(function()
      local win = window()
      if not win then
        timer:stop()
        return
      elseif vim.api.nvim_win_get_tabpage(win) ~= vim.api.nvim_get_current_tabpage() then
        return
      end
      for line = vim.fn.line("w0", win), vim.fn.line("w$", win) do
        local row = view.by_id[view.shown[line - HEAD]]
        local text = row and line_of(row)
        if text and text ~= vim.api.nvim_buf_get_lines(buf, line - 1, line, false)[1] then
          put(buf, line - 1, line, { text })
        end
      end
    end)
  )
end

vim.api.nvim_set_decoration_provider(NS, {
  on_win = function(_, _, buf)
    return buf == buffer()
  end,
  on_line = function(_, _, buf, line)
    local function mark(from, to, group)
      vim.api.nvim_buf_set_extmark(buf, NS, line, from, { end_col = to, hl_group = group, ephemeral = true })
    end
    local text = vim.api.nvim_buf_get_lines(buf, line, line + 1, false)[1] or ""
    local id = view.shown[line + 1 - HEAD]
    if line == 0 then
      mark(0, math.min(#" Cloud agents", #text), "CursorAgentHelpTitle")
    elseif line == 1 then
      mark(0, #text, "CursorAgentDetail")
    elseif id and view.by_id[id] then
      local drawn, spots = line_of(view.by_id[id])
      -- A line that is about to be drawn again has other columns.
      if #drawn == #text then
        for _, spot in ipairs(spots) do
          mark(spot.from, spot.to, spot.group)
        end
      end
    elseif line >= HEAD then
      mark(0, #text, view.problem and "CursorAgentError" or "CursorAgentPlaceholder")
    end
  end,
})

---Opens the dashboard and asks for the agents.
---@return boolean?, string?
function M.open()
  require("cursor_agent.colour.highlights").setup()
  local buf = buffer()
  if not buf then
    buf = vim.api.nvim_create_buf(false, true)
    vim.api.nvim_buf_set_name(buf, buffer_names.of(NAME))
    vim.bo[buf].bufhidden = "hide"
    put(buf, 0, -1, vim.list_extend(head(), foot()))
    vim.bo[buf].filetype = "cursoragent-cloud"
    require("cursor_agent.keys").map(buf, "cloud")
  end
  local win = window()
  if win then
    vim.api.nvim_set_current_win(win)
  else
    vim.cmd("tab sbuffer " .. buf)
    win = vim.api.nvim_get_current_win()
    require("cursor_agent.chat.tabline").setup()
    local options = {
      number = false,
      relativenumber = false,
      signcolumn = "no",
      wrap = false,
      cursorline = true,
      list = false,
      spell = false,
      fillchars = (vim.o.fillchars ~= "" and vim.o.fillchars .. "," or "") .. "eob: ",
      statusline = "%!v:lua.require'cursor_agent.cloud.dashboard'.statusline()",
    }
    for name, value in pairs(options) do
      vim.api.nvim_set_option_value(name, value, { win = win, scope = "local" })
    end
  end
  watch_screen(buf)
  if config.get().cloud.url ~= nil and view.problem then
    view.problem = nil
  end
  M.refresh()
  return true
end

---Closes the dashboard. What it watches goes on being watched.
function M.close()
  local win = window()
  if win and not pcall(vim.api.nvim_win_close, win, false) then
    vim.cmd.enew()
  end
end

return M
