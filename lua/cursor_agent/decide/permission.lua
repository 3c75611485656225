-- Shows what an agent asks permission for, and maps keys to the agent's own options: by kind, never by id or position.

local frame = require("cursor_agent.decide.frame")
local format = require("cursor_agent.render.format")
local buffer_names = require("cursor_agent.bridge.buffer_names")
local paint = require("cursor_agent.decide.paint")
local blocks = require("cursor_agent.render.block")

local M = {}

---Lines of a diff or a text in the card; `d` shows all of them.
local MAX_LINES = 400
local ALL_LINES = 1000000000

local ASKS = {
  execute = "asks to run a command",
  edit = "asks to edit",
  delete = "asks to delete",
  move = "asks to move",
  read = "asks to read",
  search = "asks to search",
  fetch = "asks to fetch",
  think = "asks to think",
  switch_mode = "asks to switch the mode",
}

---The keys for each kind of option, in display order.
local KINDS = {
  { kind = "allow_once", action = "allow-once" },
  { kind = "allow_always", action = "allow-always" },
  { kind = "reject_once", action = "reject-once" },
  { kind = "reject_always", action = "reject-always" },
}

---The first option of a kind. Ids differ from agent to agent: `allow-once`, `once`, `proceed_once`, `allow_once`.
---@param decision cursor_agent.Decision
---@param kind string
---@return { id: string, name: string, kind: string }?
function M.option(decision, kind)
  for _, option in ipairs(decision.options or {}) do
    if option.kind == kind then
      return option
    end
  end
end

---The answer that chooses an option by its number.
---@param decision cursor_agent.Decision
---@param number integer?
---@return table?, string?
function M.choose_number(decision, number)
  local option = (decision.options or {})[number or 0]
  if not option then
    return nil, ("%s has %s here"):format(decision.agent, format.plural(#(decision.options or {}), "option"))
  end
  return { option = option.id }
end

---@param tool cursor_agent.ToolCall
---@return cursor_agent.ToolContent[]
local function diffs(tool)
  return vim.tbl_filter(function(content)
    return content.type == "diff"
  end, tool.content or {})
end

---Who asks: the agent, or one of its subagents by name.
---@param decision cursor_agent.Decision
---@return string
function M.asker(decision)
  local agent = require("cursor_agent.config").agent(decision.agent)
  local name = agent and agent.title or decision.agent
  if decision.subagent then
    return ('%s subagent "%s"'):format(name, format.first_line(decision.subagent, 60))
  end
  return name
end

---Every file a call names, as the agent wrote it.
---@param tool cursor_agent.ToolCall
---@return string[]
local function paths_of(tool)
  local list, seen = {}, {} ---@type string[], table<string, boolean>
  local function add(path)
    if path and path ~= "" and not seen[path] then
      seen[path] = true
      list[#list + 1] = path
    end
  end
  for _, content in ipairs(tool.content or {}) do
    if content.type == "diff" then
      add(content.path)
    end
  end
  for _, location in ipairs(tool.locations or {}) do
    add(location.path)
  end
  return list
end

---@param decision cursor_agent.Decision
---@param in_card? boolean the card names a subagent elsewhere
---@return string
function M.title(decision, in_card)
  local tool, facts = decision.tool, decision.facts
  local name = in_card and require("cursor_agent.config").agent_title(decision.agent) or M.asker(decision)
  if facts and facts.mcp then
    return ("%s asks to use %s of %s"):format(
      name,
      format.first_line(facts.mcp.tool, 60),
      format.first_line(facts.mcp.server, 40)
    )
  end
  -- What the call really does, whatever the agent calls it.
  local kind = facts and facts.kind or tool and tool.kind or ""
  local asks = ASKS[kind] or "asks to use a tool"
  local paths = tool and paths_of(tool) or {}
  if #paths > 0 and kind ~= "execute" and kind ~= "search" and kind ~= "fetch" then
    asks = ASKS[kind] and asks .. " " .. (#paths == 1 and "a file" or format.plural(#paths, "file")) or asks
  elseif kind == "edit" or kind == "read" or kind == "delete" or kind == "move" then
    asks = asks .. " a file"
  end
  return ("%s %s"):format(name, asks)
end

---Only this many lines of a command are coloured. The card shows no more of it; the details do.
local COMMAND_LINES = 400

---@param b cursor_agent.render.Builder
---@param command string
---@param all boolean
local function add_command(b, command, all)
  local code = { path = "command.bash", text = {}, rows = {} } ---@type cursor_agent.render.Code
  local lines = vim.split(vim.trim(command), "\n", { plain = true })
  for i, line in ipairs(vim.list_slice(lines, 1, COMMAND_LINES)) do
    local lead = i == 1 and "$ " or "  "
    local row = b:line({ { lead, "CursorAgentDetail" }, { line } })
    table.insert(code.text, b.lines[row + 1]:sub(#lead + 1))
    table.insert(code.rows, { row = row, col = #lead, apply = true })
  end
  table.insert(b.code, code)
  for i = COMMAND_LINES + 1, all and #lines or 0 do
    b.lines[#b.lines + 1] = "  " .. format.vim_line(lines[i] --[[@as string]])
  end
  if #lines > COMMAND_LINES and not all then
    local left = #lines - COMMAND_LINES
    b:line({ { ("  %s more"):format(format.plural(left, "line")), "CursorAgentMore" } })
    -- The "more" line itself takes the place of one of them.
    b.left = (b.left or 0) + left - 1
  end
end

---Adds a text under what is asked, at most this many lines.
---@param b cursor_agent.render.Builder
---@param text string
---@param max integer
local function add_text(b, text, max)
  local ansi = require("cursor_agent.render.ansi")
  text = vim.trim(text)
  local at, shown = 1, 0 ---@type integer?, integer
  while at and shown < max do
    local line_end = text:find("\n", at, true)
    b:line({ { "  " }, { (ansi.line(text:sub(at, (line_end or 0) - 1))) } })
    shown = shown + 1
    at = line_end and line_end + 1
  end
  if at then
    local _, breaks = text:sub(at):gsub("\n", "")
    b:line({ { ("  %s more"):format(format.plural(breaks + 1, "line")), "CursorAgentMore" } })
    b.left = (b.left or 0) + breaks
  end
end

---The text an agent attached to its request.
---@param tool cursor_agent.ToolCall
---@return string
local function words(tool)
  local texts = {} ---@type string[]
  for _, content in ipairs(tool.content or {}) do
    if content.type == "text" and content.text and vim.trim(content.text) ~= "" then
      texts[#texts + 1] = vim.trim(content.text)
    end
  end
  return table.concat(texts, "\n")
end

---@param b cursor_agent.render.Builder
---@param decision cursor_agent.Decision
---@param tool cursor_agent.ToolCall
---@param budget integer most lines
local function add_diffs(b, decision, tool, budget)
  local list = diffs(tool)
  local seen = {} ---@type table<string, boolean>
  for _, content in ipairs(list) do
    local path = content.path or ""
    seen[path] = true
    local row = b:line({
      { format.path(path, decision.cwd), "CursorAgentPath" },
      { ("  +%d"):format(content.added or 0), "CursorAgentAdded" },
      { (" -%d"):format(content.removed or 0), "CursorAgentRemoved" },
    })
    b.targets[row] = { path = path }
  end
  for _, path in ipairs(paths_of(tool)) do
    if not seen[path] then
      b.targets[b:line({ { format.path(path, decision.cwd), "CursorAgentPath" } })] = { path = path }
    end
  end
  local context = {
    cwd = decision.cwd,
    icons = require("cursor_agent.render.icons").pick(require("cursor_agent.config").get().chat.icons),
    diff_lines = budget,
    output_lines = 0,
    fold_tools = false,
  } ---@type cursor_agent.render.Context
  for _, content in ipairs(list) do
    b:line({})
    if #list > 1 then
      b:line({ { format.path(content.path or "", decision.cwd), "CursorAgentPath" } })
    end
    local before = #b.lines
    require("cursor_agent.render.diff").add(b, content, context, "")
    context.diff_lines = math.max(context.diff_lines - (#b.lines - before), 0)
  end
end

---Lines that warn about paths outside the workspace and about where links lead.
---@param decision cursor_agent.Decision
---@return string[]
local function warnings(decision)
  local lines, outside = {}, {} ---@type string[], string[]
  for _, place in ipairs(decision.places or {}) do
    if not place.inside then
      outside[#outside + 1] = format.path(place.path, "")
    elseif place.path ~= place.written and not vim.endswith(place.path, vim.fs.basename(place.written)) then
      lines[#lines + 1] = ("%s is a link to %s"):format(
        format.path(place.written, decision.cwd),
        format.path(place.path, decision.cwd)
      )
    end
  end
  if #outside > 0 then
    table.insert(lines, 1, "outside the workspace: " .. table.concat(outside, ", "))
  end
  return lines
end

---The arguments of a tool, if it has any.
---@param tool cursor_agent.ToolCall
---@return string?
local function arguments(tool)
  local input = tool.raw_input
  return input and not input:find("^%s*[%[{]%s*[%]}]%s*$") and input or nil
end

---Adds what the call contains besides its command and files, so that nothing runs unseen.
---@param b cursor_agent.render.Builder
---@param facts cursor_agent.Facts
---@param max integer
local function add_facts(b, facts, max)
  if facts.title then
    add_text(b, "the agent calls it: " .. facts.title, max)
  end
  for _, pair in ipairs(facts.env) do
    add_text(b, "env " .. pair, max)
  end
  for _, pair in ipairs(facts.input) do
    add_text(b, ("%s: %s"):format(pair[1], pair[2]), max)
  end
end

---What is asked, as lines.
---@param decision cursor_agent.Decision
---@param max integer lines of a diff or a text
---@return cursor_agent.render.Builder
function M.body(decision, max)
  local b = blocks.builder()
  local tool = decision.tool
  if not tool then
    b:line({ { decision.title ~= "" and decision.title or "(the agent did not say what for)" } })
    return b
  end
  for _, line in ipairs(warnings(decision)) do
    b:line({ { line, "CursorAgentWarning" } })
  end
  local said = words(tool)
  local facts = decision.facts or { kind = tool.kind, env = {}, input = {} } ---@type cursor_agent.Facts
  local cwd = facts.cwd or decision.cwd
  local place = { "in " .. format.path(cwd, "") } ---@type string[]
  if max == ALL_LINES and #require("cursor_agent.chat.registry").all() > 1 then
    local chat = require("cursor_agent.chat.registry").get(decision.key)
    place[#place + 1] = chat and require("cursor_agent.chat.titles").of(chat) or nil
  end
  if tool.command then
    add_command(b, tool.command, max == ALL_LINES)
    if said ~= "" and not said:find("\n") then
      place[#place + 1] = said
      said = ""
    end
    b:line({
      { "  " .. table.concat(place, " · "), cwd ~= decision.cwd and "CursorAgentWarning" or "CursorAgentDetail" },
    })
    if facts.mcp then
      b:line({ { ("  tool %s of %s"):format(facts.mcp.tool, facts.mcp.server) } })
    end
    add_facts(b, facts, max)
    if said ~= "" then
      add_text(b, said, max)
    end
    if #diffs(tool) > 0 then
      add_diffs(b, decision, tool, max)
    end
    return b
  end

  local title = vim.trim(decision.title)
  local paths = paths_of(tool)
  local first = paths[1] and vim.fs.basename(paths[1]) or nil
  if title ~= "" and not (first and title:find(first, 1, true)) then
    b:line({ { format.first_line(title, 400) } })
  end
  if #diffs(tool) > 0 then
    -- Above the diff, what it does not show of the call: below, a long diff would hide it.
    add_facts(b, facts, max)
  end
  if #paths > 0 then
    add_diffs(b, decision, tool, max)
  end
  if #diffs(tool) == 0 then
    if said ~= "" then
      add_text(b, said, max)
    end
    if arguments(tool) and #paths == 0 then
      -- A tool of an MCP server, or an unknown one: its arguments are all there is to decide by.
      add_text(b, arguments(tool) --[[@as string]], max)
    elseif #paths > 0 then
      add_facts(b, facts, max)
    end
    b:line({ { "  " .. table.concat(place, " · "), "CursorAgentDetail" } })
  end
  return b
end

---@param decision cursor_agent.Decision
---@return cursor_agent.decide.Hint[]
local function hints(decision)
  local options = decision.options or {}
  local list, named = {}, {} ---@type cursor_agent.decide.Hint[], table<table, boolean>
  for _, one in ipairs(KINDS) do
    local option = M.option(decision, one.kind)
    if option then
      named[option] = true
      local text = option.name ~= "" and option.name or one.kind:gsub("_", " ")
      if
        one.kind == "allow_always"
        and require("cursor_agent.config").is_cursor(decision.agent)
        and not decision.by_editor
      then
        text = text .. " (adds to Cursor's allowlist)"
      end
      vim.list_extend(list, frame.hints("permission", { { one.action, text } }))
    elseif one.kind == "reject_once" then
      vim.list_extend(list, frame.hints("permission", { { one.action, "answer as cancelled" } }))
    end
  end
  for i, option in ipairs(options) do
    if not named[option] and i <= 9 then
      list[#list + 1] = { key = tostring(i), text = option.name, action = "choose-number" }
    end
  end
  return vim.list_extend(
    list,
    frame.hints("permission", {
      { "reject-with-message", "reject with a reason" },
      { "decision-details", "details" },
      { "next-decision", "next" },
      { "decision-later", "later" },
    })
  )
end

---The card of a permission.
---@param decision cursor_agent.Decision
---@return cursor_agent.decide.Card
function M.card(decision)
  return {
    kind = "permission",
    title = M.title(decision),
    short_title = M.title(decision, true),
    hints = hints(decision),
    body = function(_, most)
      return M.body(decision, math.min(most or MAX_LINES, MAX_LINES))
    end,
  }
end

---Fills a buffer with everything known about the request.
---@param buf integer
---@param decision cursor_agent.Decision
function M.fill_details(buf, decision)
  local b = M.body(decision, ALL_LINES)
  local tool = decision.tool
  local input = tool and arguments(tool)
  if tool and input then
    b:line({})
    local code = { path = "input.json", text = {}, rows = {} } ---@type cursor_agent.render.Code
    for _, line in ipairs(vim.split(input, "\n", { plain = true })) do
      local row = b:line({ { line } })
      table.insert(code.text, b.lines[row + 1])
      table.insert(code.rows, { row = row, col = 0, apply = true })
    end
    table.insert(b.code, code)
  end
  paint.fill(buf, b)
end

---Shows everything known about the request in a new tab page. The card's keys work there too.
---@param decision cursor_agent.Decision
---@return integer? buf nil if there is no room
function M.details(decision)
  local buf = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_name(buf, buffer_names.of(("decision/%d"):format(decision.id)))
  vim.b[buf].cursor_agent_decision = decision.id
  vim.bo[buf].bufhidden = "wipe"
  vim.bo[buf].filetype = "cursoragent-decision"
  M.fill_details(buf, decision)
  if not pcall(vim.api.nvim_command, "tab sbuffer " .. buf) then
    vim.api.nvim_buf_delete(buf, { force = true })
    return nil
  end
  local win = vim.api.nvim_get_current_win()
  for name, value in pairs({
    number = false,
    relativenumber = false,
    signcolumn = "no",
    foldenable = false,
    list = false,
    spell = false,
    winbar = frame.bar(hints(decision)),
  }) do
    vim.api.nvim_set_option_value(name, value, { win = win, scope = "local" })
  end
  require("cursor_agent.window.words").label(win)
  require("cursor_agent.keys").map(buf, "permission")
  return buf
end

return M
