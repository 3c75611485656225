-- The conversation as a markdown document.

local ansi = require("cursor_agent.render.ansi")
local fences = require("cursor_agent.render.fence")
local format = require("cursor_agent.render.format")
local bridge = require("cursor_agent.bridge")

local M = {}

---@param entry cursor_agent.Entry
---@param cwd string
---@return string[]
local function tool_lines(entry, cwd)
  local tool = entry.tool --[[@as cursor_agent.ToolCall]]
  local block = require("cursor_agent.render.tool").render(entry, {
    cwd = cwd,
    icons = require("cursor_agent.render.icons").sets.unicode,
    diff_lines = 0,
    output_lines = 40,
    fold_tools = false,
  })
  local ended = tool.rejected and " (rejected)" or tool.status == "cancelled" and " (cancelled)" or ""
  local lines = { ("- %s%s"):format(vim.trim(block.lines[1]), ended), "" }
  ---@param inside string[]
  ---@param language string
  local function fenced(inside, language)
    local marks = fences.around(inside)
    lines[#lines + 1] = ("  %s%s"):format(marks, language)
    vim.list_extend(lines, inside)
    vim.list_extend(lines, { "  " .. marks, "" })
  end
  -- Quote a plan as it was decided.
  local planned = false
  for _, one in ipairs(entry.decided or {}) do
    planned = planned or one.plan ~= nil
  end
  for _, content in ipairs(tool.content or {}) do
    if content.type == "diff" then
      local changed = {} ---@type string[]
      for _, hunk in ipairs(content.hunks or {}) do
        for _, item in ipairs(hunk.lines) do
          changed[#changed + 1] = "  " .. item[1] .. item[2]
        end
      end
      fenced(changed, "diff")
    elseif content.text and vim.trim(content.text) ~= "" and not planned then
      local printed = vim.split((content.text:gsub("%s+$", "")), "\r?\n")
      fenced(
        vim.tbl_map(function(line)
          return "  " .. ansi.line(line)
        end, printed),
        ""
      )
    elseif content.uri then
      vim.list_extend(lines, { ("  <%s>"):format(content.uri), "" })
    end
  end
  return lines
end

---What was asked and decided about an entry.
---@param entry cursor_agent.Entry
---@return string[] paragraphs of markdown
local function decisions(entry)
  local said = {} ---@type string[]
  for _, one in ipairs(entry.decided or {}) do
    local by = one.by == "rule" and " by " .. (one.rule or "a rule") or one.by == "user" and " by you" or ""
    local line = ("**%s %s%s%s**"):format(one.kind, one.outcome, one.always and " always" or "", by)
    local title = format.first_line(one.title or "", 400)
    if one.kind ~= "permission" and title ~= "" then
      line = ("%s: %s"):format(line, title)
    end
    if one.reason then
      line = ("%s (%s)"):format(line, vim.trim(one.reason):gsub("%s+", " "))
    end
    for _, answered in ipairs(one.answers or {}) do
      local question = format.first_line(answered.question, 400)
      line = ("%s\n- %s → %s"):format(line, question, table.concat(answered.answers, ", "):gsub("%s+", " "))
    end
    if one.plan and vim.trim(one.plan) ~= "" then
      line = ("%s\n\n> %s"):format(line, vim.trim(one.plan):gsub("\n", "\n> "))
    end
    said[#said + 1] = line
  end
  return said
end

---The entries, with what each subagent said and did below its task.
---@param entries cursor_agent.Entry[]
---@return cursor_agent.Entry[]
local function by_block(entries)
  local below = {} ---@type table<integer, integer[]> by task, 0 for the agent
  for index, entry in ipairs(entries) do
    local task = entry.parent or 0
    below[task] = below[task] or {}
    table.insert(below[task], index)
  end
  local list = {} ---@type cursor_agent.Entry[]
  local function add(task)
    for _, index in ipairs(below[task] or {}) do
      list[#list + 1] = entries[index]
      add(index)
    end
  end
  add(0)
  return list
end

---@param entries cursor_agent.Entry[]
---@param title string
---@param cwd string
---@return string[]
function M.markdown(entries, title, cwd)
  local lines = { "# " .. title, "" }
  local function add(text)
    vim.list_extend(lines, vim.split(vim.trim(text), "\r?\n"))
    lines[#lines + 1] = ""
  end
  ---An agent's text, with a code block it left open closed: otherwise that would swallow everything after it.
  ---@param text string
  ---@return string
  ---@return cursor_agent.render.Fence? open the block left open
  local function whole(text)
    text = vim.trim(text)
    local open = fences.unclosed(vim.split(text, "\r?\n"))
    return open and ("%s\n%s%s"):format(text, open.prefix, open.marks) or text, open
  end
  local unclosed = {} ---@type table<integer, cursor_agent.render.Fence> by subagent, 0 for the agent: blocks to go on with
  for _, entry in ipairs(by_block(entries)) do
    if entry.kind == "user" and entry.parent then
      add("> " .. entry.text:gsub("\n", "\n> "))
    elseif entry.kind == "user" then
      unclosed = {}
      add("## " .. os.date("%Y-%m-%d %H:%M", math.floor(entry.started_ms / 1000)))
      add("> " .. entry.text:gsub("\n", "\n> "))
      if entry.context and #entry.context > 0 then
        add("> " .. table.concat(entry.context, " · "))
      end
    elseif entry.kind == "agent" then
      local by = entry.parent or 0
      local above = unclosed[by]
      local begun = above and fences.is_plain(above) and above.marks .. above.info .. "\n" or ""
      local text, open = whole(begun .. entry.text:gsub("^\r?\n", begun ~= "" and "" or "%0"))
      unclosed[by] = open
      add(text)
    elseif entry.kind == "thought" then
      add("<details><summary>Thought</summary>\n\n" .. whole(entry.text) .. "\n\n</details>")
    elseif entry.kind == "tool" then
      vim.list_extend(lines, tool_lines(entry, cwd))
    elseif entry.kind == "plan" then
      for _, todo in ipairs(entry.todos or {}) do
        lines[#lines + 1] = ("- [%s] %s"):format(todo.status == "completed" and "x" or " ", todo.content)
      end
      lines[#lines + 1] = ""
    elseif entry.text ~= "" and entry.notice ~= "decision" then
      add("*" .. format.first_line(entry.text, 400) .. "*")
    end
    for _, said in ipairs(decisions(entry)) do
      add(said)
    end
  end
  return lines
end

---Shows the conversation as markdown, or writes it to a file.
---@param chat cursor_agent.Chat
---@param path? string
---@return boolean?, string?
function M.open(chat, path)
  local ready, why = bridge.load()
  if not ready then
    return nil, why
  end
  local name = ("%d/export"):format(chat.key)
  if (path or "") == "" and require("cursor_agent.window.scratch").enter_changed(name) then
    return nil, "this export has changes: :w {file} saves them, :q! discards them"
  end
  local title = chat.status.title or ("Conversation with %s"):format(chat.agent)
  -- Redacted before anything is cut, and again as a whole: a private key in a diff spans many lines.
  local whole = table.concat(M.markdown(bridge.masked_transcript(chat.key) or {}, title, chat.cwd), "\n")
  local lines = vim.split(bridge.redact(whole), "\n", { plain = true })
  if path and path ~= "" then
    path = vim.fs.normalize(vim.fn.fnamemodify(path, ":p"))
    if vim.uv.fs_stat(path) then
      return nil, ("%s already exists"):format(path)
    end
    local ok, problem = require("cursor_agent.files.private").create(path, table.concat(lines, "\n") .. "\n")
    if not ok then
      return nil, ("could not save the export: %s"):format(problem)
    end
    require("cursor_agent.notify").notify("written to " .. path)
    return true
  end
  require("cursor_agent.window.scratch").open(lines, {
    name = name,
    filetype = "markdown",
    modifiable = true,
  })
  return true
end

return M
