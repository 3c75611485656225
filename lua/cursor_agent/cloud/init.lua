-- `:CursorAgent cloud …` and the keys of the dashboard: what is done with a cloud agent.

local client = require("cursor_agent.cloud.client")
local conversation = require("cursor_agent.cloud.conversation")
local dashboard = require("cursor_agent.cloud.dashboard")
local notify = require("cursor_agent.notify")
local rows = require("cursor_agent.cloud.rows")

local M = {}

---@param message string?
local function failed(message)
  notify.notify(message or "it failed without giving a reason", "error")
end

---The row of an agent: the one that is known where that is enough, or as it is now. It may have pushed a branch, or opened a pull
---request, since it was listed.
---@param id string
---@param enough fun(row: cursor_agent.cloud.Row): boolean
---@param work fun(row: cursor_agent.cloud.Row)
local function with_row(id, enough, work)
  local known = dashboard.known(id)
  if known and known.state ~= "loading" and enough(known) then
    work(known)
    return
  end
  client.request("get", { id = id }, function(row, message)
    if row then
      dashboard.on_rows({ rows = { row } })
      work(row)
    else
      failed(message)
    end
  end)
end

---@param name string
---@param lines string[]
---@param filetype? string
local function show(name, lines, filetype)
  local opts = { name = "cloud " .. name, filetype = filetype, float = filetype == nil }
  lines = vim.tbl_map(function(line)
    return (line:gsub("%s*[\r\n]+%s*", " "))
  end, lines)
  require("cursor_agent.window.scratch").open(lines, opts)
end

---What can be done with an agent, by the name of the subcommand.
---@type table<string, fun(id: string, rest: string)>
local verbs = {}

---Shows the conversation as a chat; it streams while the agent works.
function verbs.open(id)
  client.ready(function(hello, message)
    if not hello then
      failed(message)
      return
    end
    notify.report(conversation.open(id))
    require("cursor_agent.cloud.watch").seen(id)
  end)
end

---Follow-ups that were typed and refused, by agent: the next question offers them again.
---@type table<string, string>
local unsent = {}

function verbs.follow(id, text)
  local function send(words)
    unsent[id] = words
    client.request("follow", { id = id, text = words }, function(row, message)
      if not row then
        failed(message)
        return
      end
      unsent[id] = nil
      dashboard.on_rows({ rows = { row } })
      conversation.catch_up(id)
      notify.notify(("sent to “%s”"):format(row.name), "info")
    end)
  end
  if text ~= "" then
    send(text)
    return
  end
  vim.ui.input({ prompt = "Follow up: ", default = unsent[id] }, function(words)
    if words and vim.trim(words) ~= "" then
      send(words)
    end
  end)
end

function verbs.stop(id)
  client.request("stop", { id = id }, function(row, message)
    if not row then
      failed(message)
      return
    end
    dashboard.on_rows({ rows = { row } })
    notify.notify(("stopped “%s”"):format(row.name), "info")
  end)
end

---@param how "archive"|"unarchive"
---@param id string
local function put_away(how, id)
  client.request(how, { id = id }, function(done, message)
    if not done then
      failed(message)
      return
    end
    local known = dashboard.known(id)
    notify.notify(("“%s” was %sd"):format(known and known.name or id, how), "info")
    dashboard.set_archived(id, how == "archive")
  end)
end

function verbs.archive(id)
  local known = dashboard.known(id)
  put_away(known and known.archived and "unarchive" or "archive", id)
end

function verbs.unarchive(id)
  put_away("unarchive", id)
end

function verbs.delete(id)
  local function has_name()
    return true
  end
  with_row(id, has_name, function(row)
    local question = ("Permanently delete the cloud agent “%s” (%s)?"):format(row.name, row.id)
    local answer = vim.fn.confirm(question, "&Yes\n&No", 2)
    -- Else the question and the next message together ask for <CR>.
    vim.cmd.redraw()
    if answer ~= 1 then
      notify.notify("nothing was deleted", "info")
      return
    end
    client.request("delete", { id = id }, function(done, message)
      if not done then
        failed(message)
        return
      end
      dashboard.remove(id)
      notify.notify(("deleted “%s”"):format(row.name), "info")
    end)
  end)
end

---@return boolean
local function never()
  return false
end

function verbs.diff(id)
  with_row(id, never, function(row)
    require("cursor_agent.cloud.git").diff(row, function(diff, why)
      if not diff then
        failed(why)
      elseif vim.trim(diff) == "" then
        notify.notify(("%s has no changes against %s"):format(row.branch, row.ref or "its base"), "info")
      else
        show("diff " .. row.branch, vim.split(vim.trim(diff), "\n"), "diff")
      end
    end)
  end)
end

function verbs.checkout(id)
  with_row(id, never, function(row)
    require("cursor_agent.cloud.git").checkout(row, function(branch, why)
      if branch then
        local where = client.is_demo() and " in the demo's own clone" or ""
        notify.notify(("%s is checked out%s"):format(branch, where), "info")
      else
        failed(why)
      end
    end)
  end)
end

---Opens the pull request, or the agent's page.
function verbs.browse(id)
  local function has_request(row)
    return row.pr ~= nil
  end
  with_row(id, has_request, function(row)
    local address = row.pr or row.url
    -- The address is the server's word: a file or a program is not for the browser.
    if not (address or ""):find("^https?://") then
      failed(("“%s” has neither a pull request nor a page"):format(row.name))
      return
    end
    if client.is_demo() then
      notify.notify(("the demo does not open a browser; this would open %s"):format(address), "info")
      return
    end
    local _, why = vim.ui.open(address)
    if why then
      failed(("%s (%s)"):format(address, why))
    end
  end)
end

function verbs.artifacts(id)
  client.request("artifacts", { id = id }, function(list, message)
    if not list then
      failed(message)
      return
    elseif #list == 0 then
      notify.notify("this agent has no artifacts", "info")
      return
    end
    local format = require("cursor_agent.render.format")
    vim.ui.select(list, {
      prompt = "Download an artifact to " .. vim.fn.fnamemodify(vim.fn.getcwd(), ":~"),
      format_item = function(item)
        return ("%s (%s)"):format(item.path, format.bytes(item.sizeBytes))
      end,
    }, function(item)
      if not item then
        return
      end
      -- The list of Neovim's own `vim.ui.select` would stay on the screen, and the message would wait for a key.
      vim.cmd.redraw()
      local to = vim.fs.joinpath(vim.fn.getcwd(), vim.fs.basename(item.path))
      client.request("download", { id = id, path = item.path, to = to }, function(done, why)
        if done then
          notify.notify(("downloaded %s (%s)"):format(vim.fn.fnamemodify(to, ":~:."), format.bytes(done.bytes)), "info")
        else
          failed(why)
        end
      end)
    end)
  end)
end

function verbs.usage(id)
  client.request("usage", { id = id }, function(usage, message)
    if not usage then
      failed(message)
      return
    end
    local format = require("cursor_agent.render.format")
    local function line(name, tokens, cost)
      local money = cost and ("  $%.2f"):format(cost.chargedCents / 100) or ""
      local words = ("%-14s %8s in  %8s out  %8s cached%s"):format(
        name,
        format.count(tokens.inputTokens),
        format.count(tokens.outputTokens),
        format.count(tokens.cacheReadTokens),
        money
      )
      return words
    end
    local known = dashboard.known(id)
    local lines = { known and known.name or id, line("all", usage.totalUsage, usage.cost) }
    for _, run in ipairs(usage.runs or {}) do
      lines[#lines + 1] = line(run.id:sub(1, 12), run.usage, run.cost)
    end
    show("usage", lines)
  end)
end

---Subcommands without an agent.
---@type table<string, fun(rest: string): any, string?>
local plain = {
  new = function(rest)
    return require("cursor_agent.cloud.new").open(rest)
  end,
  send = function()
    local chat, why = require("cursor_agent.chat.registry").find()
    if not chat then
      return nil, why
    end
    return require("cursor_agent.cloud.new").send(chat)
  end,
  me = function()
    client.request("me", {}, function(me, message)
      if me then
        notify.notify(("%s, key “%s”"):format(me.userEmail or "a team", me.apiKeyName), "info")
      else
        failed(message)
      end
    end)
    return true
  end,
  models = function()
    client.request("models", {}, function(models, message)
      if not models then
        failed(message)
        return
      end
      show(
        "models",
        vim.tbl_map(function(model)
          return ("%-24s %s  %s"):format(model.id, model.displayName or "", model.description or "")
        end, models)
      )
    end)
    return true
  end,
  repos = function()
    client.request("repos", {}, function(repos, message)
      if not repos then
        failed(message)
        return
      end
      show(
        "repos",
        vim.tbl_map(function(repo)
          return repo.url
        end, repos)
      )
    end)
    return true
  end,
}

---@param text string
---@return boolean?, string?
function M.run(text)
  local verb, rest = text:match("^(%S*)%s*(.*)$") --[[@as string, string]]
  rest = rest or ""
  if verb == "" then
    return dashboard.open()
  elseif plain[verb] then
    return plain[verb](rest)
  elseif not verbs[verb] then
    local names = vim.list_extend(vim.tbl_keys(verbs), vim.tbl_keys(plain))
    table.sort(names)
    return nil, ("unknown argument `%s` of `cloud`; expected one of %s"):format(verb, table.concat(names, ", "))
  end
  local id, words = rest:match("^(%S*)%s*(.*)$")
  if id == "" then
    local row = vim.bo.filetype == "cursoragent-cloud" and dashboard.current()
    if not row then
      return nil,
        ("`cloud %s` needs an agent: :CursorAgent cloud %s {id}; :CursorAgent cloud lists them"):format(verb, verb)
    end
    id = row.id
  end
  verbs[verb](id, words)
  return true
end

---@param words string[] typed so far, the last one unfinished
---@return string[]
function M.complete(words)
  if #words <= 1 then
    local names = vim.list_extend(vim.tbl_keys(verbs), vim.tbl_keys(plain))
    table.sort(names)
    return names
  elseif #words == 2 and verbs[words[1]] then
    return vim.tbl_map(function(row)
      return row.id
    end, dashboard.list())
  end
  return {}
end

---Does something with the agent under the cursor.
---@param verb string
---@return boolean?, string?
function M.key(verb)
  local row, why = dashboard.current()
  if not row then
    return nil, why
  end
  verbs[verb](row.id, "")
  return true
end

---Chooses a filter.
---@param name "state"|"repo"|"text"
---@return boolean?, string?
function M.filter(name)
  if name == "text" then
    vim.ui.input({ prompt = "Filter by text: " }, function(text)
      if text then
        dashboard.set_filter("text", text)
      end
    end)
    return true
  end
  local all = name == "state" and "any state" or "any repository"
  local choices = { all }
  vim.list_extend(choices, name == "state" and rows.order or dashboard.repos())
  vim.ui.select(choices, { prompt = name == "state" and "State" or "Repository" }, function(choice)
    if choice then
      dashboard.set_filter(name, choice ~= all and choice or nil)
    end
  end)
  return true
end

return M
