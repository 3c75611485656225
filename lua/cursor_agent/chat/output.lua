-- A tool call in full, in its own buffer.

local ansi = require("cursor_agent.render.ansi")
local format = require("cursor_agent.render.format")
local highlights = require("cursor_agent.colour.highlights")
local bridge = require("cursor_agent.bridge")
local scratch = require("cursor_agent.window.scratch")

local M = {}

local NS = vim.api.nvim_create_namespace("cursor_agent_output")

---@param chat cursor_agent.Chat
---@return cursor_agent.Entry?, integer|string
local function entry_here(chat)
  local row = vim.api.nvim_win_get_cursor(0)[1] - 1
  local transcript = require("cursor_agent.chat.transcript").here(chat)
  local index = vim.api.nvim_get_current_buf() == transcript.buf and transcript:entry_at(row)
  local ready = bridge.is_loaded()
  local entry = index and ready and bridge.entry(chat.key, index)
  if not entry or not index then
    return nil, "nothing under the cursor"
  end
  return entry, index
end

---@param content cursor_agent.ToolContent
---@param cwd string
---@return string[]
local function unified(content, cwd)
  local path = format.path(content.path or "", cwd)
  local lines = { "--- a/" .. path, "+++ b/" .. path }
  for _, hunk in ipairs(content.hunks or {}) do
    local old, new = 0, 0
    for _, item in ipairs(hunk.lines) do
      old = old + (item[1] ~= "+" and 1 or 0)
      new = new + (item[1] ~= "-" and 1 or 0)
    end
    lines[#lines + 1] = ("@@ -%d,%d +%d,%d @@"):format(hunk.old, old, hunk.new, new)
    for _, item in ipairs(hunk.lines) do
      lines[#lines + 1] = item[1] .. item[2]
    end
  end
  return lines
end

---Prepends lines and a blank one to others.
---@param lines string[]
---@param spans { [1]: integer, [2]: cursor_agent.render.Span }[] of the lines, which move down
---@param above string[]
local function prepend(lines, spans, above)
  if #lines > 0 then
    above[#above + 1] = ""
  end
  for _, span in ipairs(spans) do
    span[1] = span[1] + #above
  end
  for i, line in ipairs(vim.list_extend(above, lines)) do
    lines[i] = line
  end
end

---Shows the whole output of the tool call under the cursor, or the whole text of any other entry.
---@param chat cursor_agent.Chat
---@return boolean?, string?
function M.open(chat)
  local entry, index = entry_here(chat)
  if not entry then
    return nil, index --[[@as string]]
  end
  local lines, spans = {}, {} ---@type string[], { [1]: integer, [2]: cursor_agent.render.Span }[]
  local filetype = "text"
  local tool = entry.tool
  if not tool then
    lines = vim.split(entry.text, "\r?\n")
    filetype = "markdown"
  else
    for _, content in ipairs(tool.content or {}) do
      if content.type == "diff" then
        filetype = "diff"
        vim.list_extend(lines, unified(content, chat.cwd))
      elseif content.text then
        local style ---@type cursor_agent.render.Style?
        for _, line in ipairs(vim.split((content.text:gsub("\r?\n$", "")), "\n", { plain = true })) do
          local plain, found
          plain, found, style = ansi.line(line, style)
          lines[#lines + 1] = plain
          for _, span in ipairs(found) do
            spans[#spans + 1] = { #lines - 1, span }
          end
        end
      elseif content.uri then
        lines[#lines + 1] = content.uri
      end
    end
    local places = require("cursor_agent.render.tool").places(tool)
    if #places > 1 and filetype ~= "diff" then
      -- A call may involve more places than its block shows.
      local list = {} ---@type string[]
      for _, place in ipairs(places) do
        list[#list + 1] = format.path(place.path, chat.cwd) .. (place.line and ":" .. place.line or "")
      end
      prepend(lines, spans, list)
    end
    if #lines == 0 and tool.raw_output then
      lines = vim.split(tool.raw_output, "\n", { plain = true })
      filetype = "json"
    end
    for number, content in ipairs(#lines == 0 and tool.content or {}) do
      if content.data then
        return require("cursor_agent.chat.image").open_content(chat, index --[[@as integer]], number)
      end
    end
    if #lines == 0 then
      return nil, "the tool call has no output"
    end
  end
  local buf = scratch.open(lines, { name = ("%d/output/%d"):format(chat.key, index), filetype = filetype })
  for _, one in ipairs(spans) do
    local row, span = one[1], one[2]
    highlights.ensure(span.hl)
    vim.api.nvim_buf_set_extmark(buf, NS, row, span.from, { end_col = span.to, hl_group = span.hl })
  end
  return true
end

---@param ms integer
---@return string
local function time(ms)
  return os.date("%H:%M:%S", math.floor(ms / 1000)) --[[@as string]]
end

---Shows everything known about the entry under the cursor.
---@param chat cursor_agent.Chat
---@return boolean?, string?
function M.explain(chat)
  local entry, index = entry_here(chat)
  if not entry then
    return nil, index --[[@as string]]
  end
  local lines = { ("# %s"):format(entry.kind), "", "- began: " .. time(entry.started_ms) }
  local function add(name, value)
    if value ~= nil and value ~= "" then
      lines[#lines + 1] = ("- %s: %s"):format(name, (tostring(value):gsub("\n", " ")))
    end
  end
  add("took", entry.duration_ms and format.duration(entry.duration_ms))
  add("waited for an answer", entry.waited_ms and format.duration(entry.waited_ms))
  local tool = entry.tool
  if tool then
    add("tool", tool.name)
    add("title", tool.title)
    add("kind", tool.kind)
    add("status", tool.status)
    add("command", tool.command)
    add("exit code", tool.exit_code)
    add("signal", tool.signal)
    add("id", tool.id)
    for _, location in ipairs(tool.locations or {}) do
      add("place", format.path(location.path, chat.cwd) .. (location.line and ":" .. location.line or ""))
    end
    for name, raw in vim.spairs({ input = tool.raw_input, output = tool.raw_output }) do
      vim.list_extend(lines, { "", ("## %s"):format(name), "", "```json" })
      vim.list_extend(lines, vim.split(raw, "\n", { plain = true }))
      lines[#lines + 1] = "```"
    end
  end
  add("stop reason", entry.stop_reason)
  add("tokens", entry.tokens)
  scratch.open(lines, { name = ("%d/entry/%d"):format(chat.key, index), filetype = "markdown", float = true })
  return true
end

return M
