-- Starting a cloud agent: from a prompt and what git knows, or from a buffer that shows all that will be sent.

local client = require("cursor_agent.cloud.client")
local config = require("cursor_agent.config")
local git = require("cursor_agent.cloud.git")
local notify = require("cursor_agent.notify")

local M = {}

---@class (exact) cursor_agent.cloud.New
---@field text string
---@field repo string?
---@field ref string?
---@field model string? nil: the account's default
---@field mode string
---@field auto_pr boolean
---@field branch string?
---@field name string? Cursor's own choice otherwise
---@field images string[] paths
---@field note string? what git says of the branch

---More of a conversation or of a diff is not sent.
local MOST_TALK = 20000
local MOST_DIFF = 60000

---Images that a prompt mentions: `@shots/login.png`.
---@param text string
---@return string[] paths
local function mentioned(text)
  local images = {} ---@type string[]
  for path in (" " .. text):gmatch("%s@(%S+)") do
    local full = vim.fn.fnamemodify(vim.fs.normalize(path), ":p")
    local kind = vim.fn.fnamemodify(path, ":e"):lower()
    if vim.list_contains({ "png", "jpg", "jpeg", "gif", "webp" }, kind) and vim.fn.filereadable(full) == 1 then
      images[#images + 1] = full
    end
  end
  return images
end

---@param place cursor_agent.cloud.Place?
---@param text string
---@return cursor_agent.cloud.New
local function with(place, text)
  local cloud = config.get().cloud
  ---@type cursor_agent.cloud.New
  local new = {
    text = text,
    repo = place and place.url,
    ref = place and place.branch,
    model = cloud.model,
    mode = cloud.mode,
    auto_pr = cloud.auto_pr,
    images = mentioned(text),
  }
  if place and place.branch and not place.pushed then
    new.note = ("the branch %s has not been pushed, so Cursor cannot see it"):format(place.branch)
    new.ref = nil
  elseif place and not place.branch then
    new.note = "no branch is checked out here"
  elseif place and place.ahead > 0 then
    new.note = ("%d commits on %s have not been pushed"):format(place.ahead, place.branch or "HEAD")
  elseif place and place.dirty then
    new.note = "uncommitted changes are not sent"
  end
  return new
end

---One line that says exactly what will be created.
---@param new cursor_agent.cloud.New
---@return string
function M.summary(new)
  local format = require("cursor_agent.render.format")
  local parts = {
    new.repo and (new.repo:gsub("^https://", "")) or "no repository",
    new.ref and "at " .. new.ref or "on its default branch",
    "model " .. (new.model or "default"),
    "mode " .. new.mode,
    new.auto_pr and "opens a pull request" or "no pull request",
  }
  if new.branch then
    parts[#parts + 1] = "branch " .. new.branch
  end
  if new.name then
    parts[#parts + 1] = "name " .. new.name
  end
  if #new.images > 0 then
    parts[#parts + 1] = format.plural(#new.images, "image")
  end
  local note = new.note and (" (%s)"):format(new.note) or ""
  return ("Cloud agent: %s%s: “%s”"):format(table.concat(parts, " · "), note, format.first_line(new.text, 60))
end

---Asks once, then creates.
---@param new cursor_agent.cloud.New
---@param done? fun(row: cursor_agent.cloud.Row?) once it is known what came of it
---@return boolean? sent
local function confirm(new, done)
  if vim.trim(new.text) == "" then
    notify.notify("the prompt is empty: nothing was sent", "warn")
    return
  end
  local answer = vim.fn.confirm(M.summary(new), "&Yes\n&No", 1)
  -- Else the question and the next message together ask for <CR>.
  vim.cmd.redraw()
  if answer ~= 1 then
    notify.notify("nothing was sent", "info")
    return
  end
  local params = {
    text = new.text,
    repo = new.repo,
    ref = new.ref,
    model = new.model,
    mode = new.mode,
    auto_pr = new.auto_pr,
    branch = new.branch,
    name = new.name,
    image_paths = #new.images > 0 and new.images or nil,
  }
  client.request("create", params, function(row, message)
    if not row then
      notify.notify(message or "the agent was not created", "error")
      if done then
        done()
      end
      return
    end
    require("cursor_agent.cloud.dashboard").add(row)
    notify.notify(
      ("cloud agent “%s” started on %s (%s)"):format(row.name, row.repo or "no repository", row.id),
      "info"
    )
    if done then
      done(row)
    end
  end)
  return true
end

---The settings as lines of the buffer, and the text below them.
---@param new cursor_agent.cloud.New
---@return string[]
local function as_lines(new)
  local lines = {
    "repository: " .. (new.repo or ""),
    "ref: " .. (new.ref or ""),
    "model: " .. (new.model or "default"),
    "mode: " .. new.mode,
    "pull request: " .. (new.auto_pr and "yes" or "no"),
    "branch: " .. (new.branch or ""),
    "name: " .. (new.name or ""),
    "images: " .. table.concat(new.images, ", "),
    "---",
  }
  if new.note then
    table.insert(lines, 1, "# note: " .. new.note)
  end
  return vim.list_extend(lines, vim.split(new.text, "\n"))
end

---@param lines string[]
---@return cursor_agent.cloud.New?, string?
function M.read(lines)
  local fields, at = {}, nil ---@type table<string, string>, integer?
  for i, line in ipairs(lines) do
    if line == "---" then
      at = i
      break
    end
    local name, value = line:match("^([%a ]+):%s*(.-)%s*$")
    if name and not line:find("^#") then
      fields[name] = value
    elseif vim.trim(line) ~= "" and not line:find("^#") then
      return nil, ("`%s` is not a setting; the prompt goes below the `---` line"):format(line)
    end
  end
  if not at then
    return nil, "the `---` line between the settings and the prompt is missing"
  end
  local function given(name)
    local value = fields[name]
    return value and value ~= "" and value ~= "default" and value or nil
  end
  local mode = given("mode") or "agent"
  if mode ~= "agent" and mode ~= "plan" then
    return nil, ("mode is `agent` or `plan`, not `%s`"):format(mode)
  end
  local pr = (fields["pull request"] or "no"):lower()
  if pr ~= "yes" and pr ~= "no" then
    return nil, ("pull request is `yes` or `no`, not `%s`"):format(pr)
  end
  if given("branch") and (mode == "plan" or given("name")) then
    return nil, "a branch name cannot be combined with mode `plan` or a name: Cursor's API takes one or the other"
  end
  local images = {} ---@type string[]
  for path in vim.gsplit(fields.images or "", ",", { trimempty = true }) do
    local full = vim.fn.fnamemodify(vim.fs.normalize(vim.trim(path)), ":p")
    if vim.fn.filereadable(full) == 0 then
      return nil, ("no such image: %s"):format(vim.trim(path))
    end
    images[#images + 1] = full
  end
  return {
    text = vim.trim(table.concat(lines, "\n", at + 1)),
    repo = given("repository"),
    ref = given("ref"),
    model = given("model"),
    mode = mode,
    auto_pr = pr == "yes",
    branch = given("branch"),
    name = given("name"),
    images = images,
  }
end

---Shows all that will be sent, to be changed; nothing leaves before `:w` or the key for sending, and a yes.
---@param new cursor_agent.cloud.New
---@param name string of the buffer
local function edit(new, name)
  local scratch = require("cursor_agent.window.scratch")
  -- What was typed there, or is being sent, is not replaced.
  if scratch.enter_changed(name) then
    notify.notify("this was not sent yet: <C-s> or :w sends it, :q! drops it", "info")
    return
  end
  local lines = as_lines(new)
  local buf = scratch.open(lines, { name = name, filetype = "markdown", modifiable = true })
  local sending = false
  local function send()
    -- The answer can take a while, and a second press would start a second agent.
    if sending then
      notify.notify("already sending; waiting for the answer", "info")
      return
    end
    local read, why = M.read(vim.api.nvim_buf_get_lines(buf, 0, -1, false))
    if not read then
      notify.notify(why or "", "error")
      return
    end
    sending = true
    local sent = confirm(read, function(row)
      sending = false
      if row and vim.api.nvim_buf_is_valid(buf) then
        vim.bo[buf].modified = false
        for _, win in ipairs(vim.fn.win_findbuf(buf)) do
          pcall(vim.api.nvim_win_close, win, false)
        end
      end
    end)
    sending = sending and sent or false
    if sending then
      vim.bo[buf].modified = true
    end
  end
  scratch.on_write(buf, "cursor-agent: start the cloud agent", send)
  for _, mode in ipairs({ "n", "i" }) do
    vim.keymap.set(mode, "<C-s>", function()
      vim.cmd.stopinsert()
      vim.schedule(send)
    end, { buffer = buf, desc = "cursor-agent: start the cloud agent" })
  end
  -- What will be sent is read from its beginning, a prompt is typed at the end.
  vim.cmd.stopinsert()
  vim.api.nvim_win_set_cursor(0, { new.text == "" and vim.api.nvim_buf_line_count(buf) or 1, 0 })
  notify.notify("nothing is sent until <C-s> or :w; :q! discards it", "info")
end

---Starts an agent on the repository Neovim is in.
---@param prompt string
---@return boolean
function M.open(prompt)
  git.place(require("cursor_agent.chat.workspace").root(), function(place, why)
    local new = with(place, prompt)
    if not place and not client.is_demo() then
      notify.notify(("a cloud agent needs a repository: %s"):format(why or ""), "error")
      return
    elseif not place then
      new.repo, new.ref, new.note = "https://github.com/acme/app", "main", nil
    end
    if prompt == "" then
      edit(new, "cloud new")
    else
      confirm(new)
    end
  end)
  return true
end

---@param chat cursor_agent.Chat
---@return string last prompt
---@return string talk
local function conversation(chat)
  local prompt, lines = "", {} ---@type string, string[]
  for _, entry in ipairs(require("cursor_agent.bridge").transcript(chat.key) or {}) do
    local text = vim.trim(entry.text or "")
    if entry.kind == "user" then
      prompt = text
      lines[#lines + 1] = "User: " .. text
    elseif entry.kind == "agent" and text ~= "" then
      lines[#lines + 1] = "Agent: " .. text
    elseif entry.kind == "tool" and text ~= "" then
      lines[#lines + 1] = "- " .. vim.split(text, "\n")[1]
    elseif entry.kind == "plan" and text ~= "" then
      lines[#lines + 1] = "Plan:\n" .. text
    end
  end
  local talk = table.concat(lines, "\n\n")
  if #talk > MOST_TALK then
    -- The end of a conversation says where it stands.
    talk = "(the beginning was cut)\n\n…" .. vim.fn.strcharpart(talk, vim.fn.strchars(talk) - MOST_TALK)
  end
  return prompt, talk
end

---Hands the current chat over: its prompt, what was said, and what is not committed.
---@param chat cursor_agent.Chat
---@return boolean?, string?
function M.send(chat)
  local prompt, talk = conversation(chat)
  if prompt == "" then
    return nil, "this chat has no prompt to hand over yet: `:CursorAgent cloud new` starts an agent"
  end
  git.place(chat.cwd, function(place, why)
    if not place and not client.is_demo() then
      notify.notify(("a cloud agent needs a repository: %s"):format(why or ""), "error")
      return
    end
    local function show(diff)
      local text = { "Continue this task:", "", prompt, "", "## The conversation so far", "", talk }
      if vim.trim(diff) ~= "" then
        local shown = diff:gsub("\n+$", "") ---@type string
        if #shown > MOST_DIFF then
          -- Whole lines.
          shown = shown:sub(1, MOST_DIFF):gsub("[^\n]*$", "") .. "(the rest was cut)"
        end
        -- As many backticks as nothing in it has.
        local fence = "```"
        while shown:find(fence, 1, true) do
          fence = fence .. "`"
        end
        vim.list_extend(text, { "", "## Uncommitted changes: apply them first", "", fence .. "diff", shown, fence })
      end
      local redacted = require("cursor_agent.bridge.redact").text(table.concat(text, "\n"))
      local new = with(place, redacted)
      if new.note == "uncommitted changes are not sent" then
        new.note = nil
      end
      local open = place and git.unsaved(place.root)
      if open then
        new.note = (new.note and new.note .. "; " or "")
          .. ("%s has unsaved changes; the diff is of what is on disk"):format(open)
      end
      if not place then
        new.repo, new.ref = "https://github.com/acme/app", "main"
      end
      new.name = require("cursor_agent.render.format").first_line(prompt, 60)
      edit(new, "cloud send")
    end
    if place then
      git.uncommitted(place.root, show)
    else
      show("")
    end
  end)
  return true
end

return M
