-- Choices the user makes: modes, models, options, sessions, what to attach.

local chats = require("cursor_agent.chat.registry")
local context = require("cursor_agent.prompt.context")
local format = require("cursor_agent.render.format")
local bridge = require("cursor_agent.bridge")
local notify = require("cursor_agent.notify")
local sessions = require("cursor_agent.chat.sessions")
local welcome = require("cursor_agent.agents.welcome")

local M = {}

---@class (exact) cursor_agent.pick.Choice
---@field id string|boolean
---@field name string
---@field description? string

---Ask the library: the last status change may not have been drained yet.
---@param chat cursor_agent.Chat
---@return cursor_agent.Status
local function status_of(chat)
  local ready = bridge.is_loaded()
  return ready and bridge.status(chat.key) or chat.status
end

---@param title string
---@param choices (cursor_agent.pick.Choice|cursor_agent.Named)[]
---@param current string|boolean|nil
---@param chosen fun(choice: cursor_agent.pick.Choice)
local function choose(title, choices, current, chosen)
  vim.ui.select(choices, {
    prompt = title,
    kind = "cursor_agent",
    format_item = function(choice)
      local mark = choice.id == current and "● " or "  "
      local about = choice.description
        and choice.description ~= ""
        and "  " .. format.first_line(choice.description, 60)
      return mark .. choice.name .. (about or "")
    end,
  }, function(choice)
    if choice then
      chosen(choice --[[@as cursor_agent.pick.Choice]])
    end
  end)
end

---@param chat cursor_agent.Chat
---@param set "set_mode"|"set_model"
---@param id string
local function apply(chat, set, id)
  local ready = bridge.is_loaded()
  if ready then
    notify.report(bridge[set](chat.key, id))
  end
end

---@param chat cursor_agent.Chat
---@return boolean?, string?
function M.mode(chat)
  local status = status_of(chat)
  if #(status.modes or {}) == 0 then
    return nil, ("%s has no modes to choose from"):format(chat.agent)
  end
  choose("Mode", status.modes, status.mode, function(choice)
    apply(chat, "set_mode", choice.id --[[@as string]])
  end)
  return true
end

---@param chat cursor_agent.Chat
---@return boolean?, string?
function M.model(chat)
  local status = status_of(chat)
  if #(status.models or {}) == 0 then
    return nil, ("%s has no models to choose from"):format(chat.agent)
  end
  choose("Model", status.models, status.model, function(choice)
    apply(chat, "set_model", choice.id --[[@as string]])
  end)
  return true
end

---Lists what an agent offers before it has a session, and calls back. For Cursor this only runs its CLI, which lists
---its models; other agents list theirs only in a session.
---@param what "mode"|"model"
---@param name string of the agent
---@param callback fun(choices: cursor_agent.pick.Choice[])
---@return boolean?, string?
local function list_ahead(what, name, callback)
  local agent = require("cursor_agent.config").agent(name)
  local chosen = require("cursor_agent.chat.next")
  if not agent or not agent.cursor then
    return nil
  elseif what == "mode" then
    callback(chosen.CURSOR_MODES)
    return true
  elseif chosen.models(name) then
    callback(assert(chosen.models(name)))
    return true
  end
  local presets = require("cursor_agent.agents.presets")
  local spec = presets.spec(name, agent)
  local command = vim.list_extend(presets.cli_command(agent), { "models" })
  if vim.fn.executable(command[1]) == 0 then
    return nil, ("`%s` is not on your PATH"):format(command[1])
  end
  local request, why = bridge.run({
    command = command,
    env = next(spec.env or {}) and spec.env or vim.empty_dict(),
    cwd = vim.fn.getcwd(),
    timeout_ms = 15000,
  })
  if not request then
    return nil, why
  end
  bridge.await(request, function(ok, value)
    local outcome = ok and value --[[@as cursor_agent.Outcome]] or nil
    local models = outcome and outcome.code == 0 and chosen.read_models(name, outcome.stdout) or {}
    if #models > 0 then
      callback(models)
      return
    end
    local said = outcome and vim.trim(outcome.stderr ~= "" and outcome.stderr or outcome.stdout) or tostring(value)
    local shown = ("`%s models`"):format(vim.fs.basename(command[1]))
    local late = outcome and outcome.timed_out and shown .. " took more than 15 s"
    notify.notify(
      late or ("%s listed no models: %s"):format(shown, said ~= "" and said or "it printed nothing"),
      "error"
    )
  end)
  return true
end

---Chooses a mode or a model, or sets the given one: in the chat's session if it has started, or for the next chat.
---@param what "mode"|"model"
---@param id string? without one the user is asked
---@return boolean?, string?
function M.switch(what, id)
  local chat = chats.current()
  local set = what == "mode" and "set_mode" or "set_model" ---@type "set_mode"|"set_model"
  if chat and id then
    local run = bridge[set] ---@type fun(key: cursor_agent.Key, id: string): boolean?, string?
    return run(chat.key, id)
  elseif chat and #(status_of(chat)[what .. "s"] or {}) > 0 then
    return M[what](chat)
  end
  local name = chat and chat.agent or require("cursor_agent.config").get().agent
  local chosen = require("cursor_agent.chat.next")

  ---@param choice string
  local function take(choice)
    if chat then
      apply(chat, set, choice)
    else
      chosen.set(name, what, choice)
      -- Scheduled: below a list the message would make Neovim wait for a key.
      vim.schedule(function()
        vim.cmd.redraw()
        notify.notify(("new chats with %s will use the %s %s"):format(name, what, choice))
      end)
    end
  end
  if id then
    take(id)
    return true
  elseif chat and status_of(chat).state ~= "starting" then
    return M[what](chat)
  end
  local title = what == "mode" and "Mode" or "Model"
  local asked, why = list_ahead(what, name, function(choices)
    local current = chat and status_of(chat)[what] or chosen.get(name)[what]
    choose(title, choices, current, function(choice)
      take(choice.id --[[@as string]])
    end)
  end)
  if asked or why then
    return asked, why
  end
  -- Only a session lists the choices, so start one.
  local started, problem = chat, nil ---@type cursor_agent.Chat?, string?
  if not started then
    started, problem = require("cursor_agent.chat").ensure({ agent = name })
  end
  if not started then
    return nil, problem
  end
  notify.notify(("%s lists its %ss once its session has started"):format(name, what))
  vim.api.nvim_create_autocmd("User", {
    pattern = "CursorAgentReady",
    desc = "cursor-agent: choose once the session has started",
    callback = function()
      if #(status_of(started)[what .. "s"] or {}) == 0 and status_of(started).state ~= "idle" then
        return
      end
      notify.report(M[what](started))
      return true
    end,
  })
  return true
end

---The next mode in the agent's own order.
---@param chat cursor_agent.Chat
---@return boolean?, string?
function M.cycle_mode(chat)
  local status = status_of(chat)
  local modes = status.modes or {}
  if #modes < 2 then
    return nil, ("%s has no other mode"):format(chat.agent)
  end
  local at = 0
  for i, mode in ipairs(modes) do
    if mode.id == status.mode then
      at = i
    end
  end
  apply(chat, "set_mode", modes[at % #modes + 1].id)
  return true
end

---@param chat cursor_agent.Chat
---@param option cursor_agent.ConfigOption
local function choose_value(chat, option)
  local choices = {} ---@type cursor_agent.pick.Choice[]
  if option.type == "boolean" then
    choices = { { id = true, name = "on" }, { id = false, name = "off" } }
  else
    for _, value in ipairs(option.values or {}) do
      choices[#choices + 1] = {
        id = value.id,
        name = value.group and ("%s: %s"):format(value.group, value.name) or value.name,
        description = value.description,
      }
    end
  end
  choose(option.name, choices, option.value, function(choice)
    local ready = bridge.is_loaded()
    if ready then
      notify.report(bridge.set_option(chat.key, option.id, choice.id))
    end
  end)
end

---@param chat cursor_agent.Chat
---@param id? string
---@return boolean?, string?
function M.option(chat, id)
  local options = status_of(chat).options or {}
  if #options == 0 then
    return nil, ("%s has no options to choose from"):format(chat.agent)
  end
  for _, option in ipairs(options) do
    if option.id == id then
      choose_value(chat, option)
      return true
    end
  end
  if id then
    local known = vim.tbl_map(function(option)
      return option.id
    end, options)
    return nil, ("%s has no option `%s`; it has %s"):format(chat.agent, id, table.concat(known, ", "))
  end
  vim.ui.select(options, {
    prompt = "Option",
    kind = "cursor_agent",
    format_item = function(option)
      return ("%s: %s"):format(option.name, tostring(option.value))
    end,
  }, function(option)
    if option then
      choose_value(chat, option)
    end
  end)
  return true
end

---@param chat cursor_agent.Chat
---@return boolean?, string?
function M.detach(chat)
  local labels = vim.tbl_map(function(item)
    return item.label
  end, chat.prompt.attached) ---@type string[]
  -- An old conversation attached to the next prompt comes last.
  labels[#labels + 1] = chat.status.carry
  ---@param index integer
  ---@return boolean?, string?
  local function take(index)
    if chat.prompt.attached[index] then
      chat.prompt:detach(index)
      return true
    end
    return require("cursor_agent.bridge").drop_carry(chat.key)
  end
  if #labels == 0 then
    return nil, "nothing is attached"
  elseif #labels == 1 then
    return take(1)
  end
  vim.ui.select(labels, { prompt = "Remove" }, function(_, index)
    if index then
      require("cursor_agent.notify").report(take(index))
    end
  end)
  return true
end

---The selection, if Visual mode is on; ends Visual mode.
---@param cwd string
---@return cursor_agent.context.Item?
local function visual_selection(cwd)
  if not vim.fn.mode():match("^[vV\22]") then
    return nil
  end
  local first, last = vim.fn.line("v"), vim.fn.line(".")
  if first > last then
    first, last = last, first
  end
  vim.cmd("normal! " .. vim.keycode("<Esc>"))
  return context.range(vim.api.nvim_get_current_buf(), first, last, cwd)
end

---Opens the prompt, with the selection attached if there is one.
function M.prompt_with_selection()
  local item = visual_selection(vim.fn.getcwd())
  notify.report(welcome.enter(nil, function(agent)
    local key, why = sessions.open({ agent = agent })
    local chat = key and chats.current()
    if chat and item then
      chat.prompt:attach(item)
    end
    return key, why
  end))
end

---Opens the chat and goes to its prompt.
---@param agent? string
---@return any, string?
function M.open(agent)
  return welcome.enter(agent, function(chosen)
    return sessions.open({ agent = chosen })
  end)
end

---Opens the chat, or closes its windows in this tab.
---@return any, string?
function M.toggle()
  return welcome.enter(nil, function(agent)
    if agent then
      return sessions.open({ agent = agent })
    end
    return sessions.toggle()
  end)
end

---Starts a new session.
---@param agent? string
---@return any, string?
function M.new(agent)
  return welcome.enter(agent, function(chosen)
    return sessions.new({ agent = chosen, enter = true })
  end, true)
end

---Attaches the selection, or the current file, to the next prompt.
function M.add_context()
  local item = visual_selection(vim.fn.getcwd())
  local path = vim.api.nvim_buf_get_name(0)
  local chat, why = require("cursor_agent.chat").ensure()
  if not chat then
    notify.report(nil, why)
    return
  end
  if not item and vim.bo.buftype ~= "" then
    -- From the chat, say: the file beside it.
    item = context.resolve("buffer", chat.cwd)
  elseif not item and path ~= "" then
    item = context.file(path, chat.cwd)
  end
  if not item then
    notify.notify("this buffer has no file to attach", "warn")
    return
  end
  chat.prompt:attach(item)
  notify.notify(item.label .. " is attached to the next prompt")
end

return M
