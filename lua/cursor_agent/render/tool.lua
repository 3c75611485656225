-- Draws a tool call: one line that says what and where, its details under it.

local ansi = require("cursor_agent.render.ansi")
local diff = require("cursor_agent.render.diff")
local format = require("cursor_agent.render.format")
local blocks = require("cursor_agent.render.block")

local M = {}

---Of a call that changes many files this many long diffs are shown, and the rest is counted.
local WHOLE_DIFFS = 5

local VERBS = {
  read = "Read",
  edit = "Edit",
  delete = "Delete",
  move = "Move",
  search = "Search",
  execute = "Run",
  think = "Think",
  fetch = "Fetch",
  switch_mode = "Mode",
  plan = "Plan",
}

---The longest verb and a space.
local VERB_WIDTH = 7

---What a title says when the agent does not know yet what it will do. Nothing is lost by leaving these out.
local PLACEHOLDERS = {
  ["read file"] = true,
  ["edit file"] = true,
  ["edit"] = true,
  ["read"] = true,
  ["terminal"] = true,
  ["write"] = true,
  ["delete"] = true,
  ["search"] = true,
  ["grep"] = true,
  ["find"] = true,
  ["glob"] = true,
}

---A call that ended without success, in whichever way the agent says so: Cursor reports `completed` with exit 1.
---@param tool cursor_agent.ToolCall
---@return boolean
function M.failed(tool)
  return tool.status == "failed"
    or (tool.status == "completed" and (tool.exit_code or 0) ~= 0)
    or (tool.status == "completed" and tool.signal ~= nil)
end

---@param tool cursor_agent.ToolCall
---@param icons cursor_agent.Icons
---@return string icon
---@return string hl
local function state(tool, icons)
  if tool.decision or (tool.task and (tool.task.waiting or tool.task.state == "requires_action")) then
    return icons.waiting, "CursorAgentWaiting"
  elseif tool.rejected or tool.status == "rejected" then
    -- Whatever the agent calls it: Cursor says `completed`, Claude `failed`, Gemini nothing.
    return icons.cancelled, "CursorAgentCancelled"
  elseif M.failed(tool) then
    return icons.failed, "CursorAgentFailed"
  elseif tool.status == "completed" then
    return icons.done, "CursorAgentDone"
  elseif tool.status == "cancelled" then
    return icons.cancelled, "CursorAgentCancelled"
  elseif tool.status == "in_progress" then
    return icons.running, "CursorAgentRunning"
  end
  return icons.pending, "CursorAgentPending"
end

---The places a call is about, without repetition: its locations, then the files of its diffs.
---@param tool cursor_agent.ToolCall
---@return { path: string, line: integer? }[]
function M.places(tool)
  local list, seen = {}, {}
  local function add(path, line)
    if path and path ~= "" and not seen[path] then
      seen[path] = true
      list[#list + 1] = { path = path, line = line }
    end
  end
  for _, location in ipairs(tool.locations or {}) do
    add(location.path, location.line)
  end
  for _, content in ipairs(tool.content or {}) do
    if content.type == "diff" then
      local hunk = (content.hunks or {})[1]
      add(content.path, hunk and math.max(hunk.new, 1))
    end
  end
  add(tool.image and tool.image.path)
  return list
end

---What the call is about, in the agent's words unless they say less than the place does.
---@param tool cursor_agent.ToolCall
---@param where { path: string, line: integer? }[]
---@param context cursor_agent.render.Context
---@return cursor_agent.render.Chunk[]
local function subject(tool, where, context)
  local title = vim.trim((tool.title or ""):gsub("[\r\n]+", " "))
  if tool.task then
    local about = {}
    for _, word in ipairs({ tool.task.subagent, tool.task.model or "" }) do
      if word ~= "" and word ~= "unspecified" then
        about[#about + 1] = word
      end
    end
    local chunks = {
      { format.first_line(tool.task.description or title, 200), "CursorAgentToolTitle" },
    } ---@type cursor_agent.render.Chunk[]
    if #about > 0 then
      chunks[#chunks + 1] = { "  " .. table.concat(about, " · "), "CursorAgentDetail" }
    end
    if tool.task.about then
      chunks[#chunks + 1] = { "  " .. format.first_line(tool.task.about, 200), "CursorAgentDetail" }
    end
    return chunks
  end
  if tool.kind == "execute" then
    local command = tool.command or title:match("^`(.*)`$") or title
    return { { format.first_line(command, 400), "CursorAgentCommand" } }
  end
  local first = where[1]
  if not first or tool.kind == "search" or tool.kind == "fetch" then
    local verb = VERBS[tool.kind]
    if verb and title:lower():find(verb:lower() .. " ", 1, true) == 1 then
      -- It stands before it already.
      title = vim.trim(title:sub(#verb + 1))
    end
    if tool.query and PLACEHOLDERS[title:lower()] then
      return { { format.first_line(tool.query, 400), "CursorAgentToolTitle" } }
    elseif tool.query and not title:find(tool.query, 1, true) then
      return {
        { format.first_line(title, 200), "CursorAgentToolTitle" },
        { "  " .. format.first_line(tool.query, 200), "CursorAgentDetail" },
      }
    end
    return { { format.first_line(title:match("^`([^`]*)`$") or title, 400), "CursorAgentToolTitle" } }
  end
  local chunks = {
    { format.path(first.path, context.cwd), "CursorAgentPath" },
  } ---@type cursor_agent.render.Chunk[]
  if first.line and tool.kind ~= "edit" then
    chunks[2] = { ":" .. first.line, "CursorAgentLineNr" }
  end
  if #where > 1 then
    chunks[#chunks + 1] = { (" and %d more"):format(#where - 1), "CursorAgentDetail" }
  end
  local plain = title:lower():gsub("`", "")
  if plain ~= "" and not PLACEHOLDERS[plain] and not plain:find(vim.fs.basename(first.path):lower(), 1, true) then
    chunks[#chunks + 1] = { "  " .. format.first_line(title, 120), "CursorAgentDetail" }
  end
  return chunks
end

---The lines of a text to show: its first ones and its last ones, and how many lie between.
---@param content cursor_agent.ToolContent
---@param first integer
---@param last integer
---@return string[] head
---@return integer between
---@return string[] tail
local function preview(content, first, last)
  local head, tail, count = content.head or {}, content.tail or {}, content.lines
  if content.text and not content.head then
    head, tail = vim.split((content.text:gsub("\r?\n$", "")), "\n", { plain = true }), {}
    count = #head
  end
  count = count or (#head + #tail)
  if count <= first + last and count == #head + #tail then
    return vim.list_extend(vim.list_slice(head), tail), 0, {}
  end
  local ends = {} ---@type string[]
  local all = vim.list_extend(vim.list_slice(head), tail)
  local known_tail = #tail > 0 or count == #head
  if known_tail and last > 0 then
    ends = vim.list_slice(all, math.max(first + 1, #all - last + 1))
  end
  local begins = vim.list_slice(all, 1, math.min(first, #head))
  return begins, count - #begins - #ends, ends
end

---@param b cursor_agent.render.Builder
---@param content cursor_agent.ToolContent
---@param context cursor_agent.render.Context
---@param indent string
---@param from_end boolean the last lines matter most, as in a command's output
local function add_text(b, content, context, indent, from_end)
  local max = context.output_lines
  local first, last = max, 0
  if from_end then
    first = math.min(3, max)
    last = max - first
  end
  local head, between, tail = preview(content, first, last)
  local gutter = { indent .. context.icons.gutter .. " ", "CursorAgentGutter" }
  local style ---@type cursor_agent.render.Style?
  local function put(line)
    local plain, spans, after = ansi.line(line, style)
    style = after
    local row = b:line({ gutter, { plain } })
    for _, span in ipairs(spans) do
      b:mark(row, #gutter[1] + span.from, { end_col = #gutter[1] + span.to, hl_group = span.hl })
    end
  end
  for _, line in ipairs(head) do
    put(line)
  end
  if between > 0 then
    local more = ("%s %s"):format(context.icons.more, format.plural(between, "more line"))
    b.targets[b:line({ gutter, { more, "CursorAgentMore" } })] = { output = true }
  end
  style = nil
  for _, line in ipairs(tail) do
    put(line)
  end
end

---@param b cursor_agent.render.Builder
---@param tool cursor_agent.ToolCall
---@param where { path: string, line: integer? }[]
---@param diffs table<string, boolean> files that are shown by what changed in them
---@param context cursor_agent.render.Context
---@param indent string
local function add_places(b, tool, where, diffs, context, indent)
  local gutter = { indent .. context.icons.gutter .. " ", "CursorAgentGutter" }
  local shown, left = 0, tool.more_locations or 0
  for _, place in ipairs(where) do
    if not diffs[place.path] and shown < context.output_lines then
      shown = shown + 1
      local row = b:line({
        gutter,
        { format.path(place.path, context.cwd), "CursorAgentPath" },
        { place.line and tool.kind ~= "edit" and ":" .. place.line or "", "CursorAgentLineNr" },
      })
      b.targets[row] = { path = place.path, line = place.line }
    elseif not diffs[place.path] then
      left = left + 1
    end
  end
  if left > 0 then
    local more = ("%s %s"):format(context.icons.more, format.plural(left, "more place"))
    b.targets[b:line({ gutter, { more, "CursorAgentMore" } })] = { output = true }
  end
end

---Adds the files there was no room for the diffs of: how much each has changed.
---@param b cursor_agent.render.Builder
---@param list cursor_agent.ToolContent[]
---@param context cursor_agent.render.Context
---@param indent string
local function add_counts(b, list, context, indent)
  local gutter = { indent .. context.icons.gutter .. " ", "CursorAgentGutter" }
  for i, content in ipairs(list) do
    if i > context.output_lines then
      local more = ("%s %s"):format(context.icons.more, format.plural(#list - i + 1, "more file"))
      b.targets[b:line({ gutter, { more, "CursorAgentMore" } })] = { output = true }
      break
    end
    local row = b:line({
      gutter,
      { format.path(content.path or "", context.cwd), "CursorAgentPath" },
      { ("  +%d"):format(content.added or 0), "CursorAgentAdded" },
      { (" -%d"):format(content.removed or 0), "CursorAgentRemoved" },
    })
    b.targets[row] = { path = content.path }
  end
end

---@param b cursor_agent.render.Builder
---@param content cursor_agent.ToolContent
---@param number integer which content it is
---@param context cursor_agent.render.Context
---@param indent string
local function add_attachment(b, content, number, context, indent)
  local what = {} ---@type string[]
  if content.name then
    what[#what + 1] = content.name
  end
  if content.mime then
    what[#what + 1] = content.mime
  end
  if content.bytes then
    what[#what + 1] = format.bytes(content.bytes)
  end
  local row = b:line({
    { indent .. context.icons.gutter .. " ", "CursorAgentGutter" },
    { content.type .. "  ", "CursorAgentDetail" },
    { table.concat(what, " · "), "CursorAgentPath" },
    { content.uri and "  " .. content.uri or "", "CursorAgentDetail" },
  })
  if content.uri then
    b.targets[row] = content.uri:find("^file://") and { path = vim.uri_to_fname(content.uri) } or { url = content.uri }
  elseif content.bytes then
    b.targets[row] = { content = number }
  end
end

---How a subagent stands, right of its task.
---@param entry cursor_agent.Entry
---@param task cursor_agent.Task
---@return cursor_agent.render.Aside[]
local function task_asides(entry, task)
  local list = {} ---@type cursor_agent.render.Aside[]
  local tool = entry.tool --[[@as cursor_agent.ToolCall]]
  if task.waiting or task.state == "requires_action" then
    return { { text = "needs approval", hl = "CursorAgentWaiting" } }
  elseif task.state == "unknown" or task.state == "ended" then
    list[1] = { text = task.state, hl = "CursorAgentAside" }
  elseif tool.status == "cancelled" then
    list[1] = { text = "cancelled", hl = "CursorAgentAside" }
  elseif task.stop_reason and task.stop_reason ~= "end_turn" and task.stop_reason ~= "error" then
    list[1] = { text = (task.stop_reason:gsub("_", " ")), hl = "CursorAgentAside" }
  end
  local duration = task.duration_ms or tool.duration_ms or entry.duration_ms
  if tool.status == "in_progress" and task.state ~= "unknown" then
    list[#list + 1] = { since = entry.started_ms + (entry.waited_ms or 0), hl = "CursorAgentAside" }
  elseif duration and duration >= format.SHOWN_MS and tool.status ~= "in_progress" then
    list[#list + 1] = { text = format.duration(duration), hl = "CursorAgentAside" }
  end
  return list
end

---@param entry cursor_agent.Entry
---@param context cursor_agent.render.Context
---@return cursor_agent.render.Block
function M.render(entry, context)
  local tool = entry.tool --[[@as cursor_agent.ToolCall]]
  local b = blocks.builder()
  local where = M.places(tool)
  local icon, icon_hl = state(tool, context.icons)
  local nested = blocks.indent(entry)
  local verb = tool.task and "Task" or tool.image and "Image" or VERBS[tool.kind] or "Tool"

  local chunks = {
    { nested .. icon .. " ", icon_hl },
    { verb .. (" "):rep(VERB_WIDTH - #verb), "CursorAgentVerb" },
  } ---@type cursor_agent.render.Chunk[]
  vim.list_extend(chunks, subject(tool, where, context))
  local added, removed = 0, 0
  for _, content in ipairs(tool.content or {}) do
    added, removed = added + (content.added or 0), removed + (content.removed or 0)
  end
  if added > 0 then
    table.insert(chunks, { "  +" .. added, "CursorAgentAdded" })
  end
  if removed > 0 then
    table.insert(chunks, { (added > 0 and " -" or "  -") .. removed, "CursorAgentRemoved" })
  end
  local how = tool.exit_code and tool.exit_code ~= 0 and "exit " .. tool.exit_code or tool.signal
  if how then
    table.insert(chunks, { "  " .. how, "CursorAgentFailed" })
  end

  local asides = {} ---@type cursor_agent.render.Aside[]
  if tool.decision then
    table.insert(asides, { text = "needs approval", hl = "CursorAgentWaiting" })
  elseif tool.task and not tool.rejected then
    asides = task_asides(entry, tool.task)
  elseif tool.rejected or tool.status == "cancelled" then
    table.insert(asides, { text = tool.rejected and "rejected" or "cancelled", hl = "CursorAgentAside" })
  elseif tool.status == "in_progress" then
    table.insert(asides, { since = entry.started_ms + (entry.waited_ms or 0), hl = "CursorAgentAside" })
  else
    local duration = tool.task and tool.task.duration_ms or tool.duration_ms or entry.duration_ms
    if duration and duration >= format.SHOWN_MS then
      table.insert(asides, { text = format.duration(duration), hl = "CursorAgentAside" })
    end
  end
  if how then
    table.insert(asides, 1, { text = how, hl = "CursorAgentFailed", when_cut = true })
  end
  b:line(chunks, asides)
  if where[1] then
    b.targets[0] = { path = where[1].path, line = where[1].line }
  end

  local indent = nested .. "  "
  local diffs = {} ---@type table<string, boolean>
  for _, content in ipairs(tool.content or {}) do
    if content.type == "diff" then
      diffs[content.path or ""] = true
    end
  end
  if tool.task and tool.task.error then
    local gutter = { indent .. context.icons.gutter .. " ", "CursorAgentGutter" }
    for _, line in ipairs(vim.split(vim.trim(tool.task.error), "\r?\n")) do
      b:line({ gutter, { line, "CursorAgentFailed" } })
    end
  end
  add_places(b, tool, vim.list_slice(where, 2), diffs, context, indent)
  local room = context.diff_lines * WHOLE_DIFFS
  local rest = {} ---@type cursor_agent.ToolContent[]
  for number, content in ipairs(tool.content or {}) do
    if content.type == "diff" and room <= 0 then
      rest[#rest + 1] = content
    elseif content.type == "diff" then
      local before = #b.lines
      if #where > 1 then
        local row = b:line({
          { indent .. context.icons.gutter .. " ", "CursorAgentGutter" },
          { format.path(content.path or "", context.cwd), "CursorAgentPath" },
        })
        b.targets[row] = { path = content.path }
      end
      diff.add(b, content, context, indent)
      room = room - (#b.lines - before)
    elseif content.type == "text" or content.type == "terminal" then
      add_text(b, content, context, indent, tool.kind == "execute" or content.type == "terminal")
    else
      add_attachment(b, content, number, context, indent)
    end
  end
  add_counts(b, rest, context, indent)

  if tool.task then
    -- What the subagent says and does follows; together it is one block.
    local ends = { completed = true, failed = true, cancelled = true, rejected = true }
    if ends[tool.status] and not tool.decision and not tool.task.waiting then
      b.block = context.fold_tools
    end
  elseif #b.lines > 1 then
    local ended = tool.status == "completed" or tool.status == "cancelled" or tool.status == "rejected"
    b.closed = context.fold_tools and ended and not M.failed(tool) and not next(diffs) and not tool.decision
  end
  return b
end

return M
