-- A child Neovim with a user interface attached, as a case drives it: real keys in, what is on the screen out.

local Rpc = require("harness.rpc")
local Screen = require("harness.screen")
local reference = require("harness.reference")

-- How long one thing may take before the case fails by name.
local WAIT_MS = 10000
-- How often a condition that must be asked for is asked.
local POLL_MS = 20
-- A screen that did not change for this long is taken for a new reference.
local SETTLED_MS = 400

---@class harness.Child
---@field dir string the case's temporary directory: home/, work/ and the files of its agents
---@field work string the directory Neovim was started in
---@field screen_state harness.Screen
---@field private root string
---@field private opts harness.ChildOptions
---@field private rpc harness.Rpc
---@field private deadline integer uv.now() after which nothing is waited for
local Child = {}
Child.__index = Child

---@class harness.CaseOptions
---@field width integer? columns of the screen
---@field height integer? rows of the screen
---@field init string? Lua run at startup, before plugins are loaded
---@field files table<string, string>? files of the workspace: path and text
---@field args string[]? more arguments of Neovim
---@field env table<string, string>? more variables of its environment
---@field deadline_ms integer? of the whole case
---@field leaves_processes boolean? the case itself looks after what its agents leave
---@field needs (fun(): string?)? sets up what is not part of the project; says what is missing when the case cannot run
---@field needs_ms integer? how long that may take

---@class harness.ChildOptions
---@field dir string
---@field root string
---@field mark table<string, string>
---@field deadline integer
---@field case harness.CaseOptions

---@param opts harness.ChildOptions
---@return harness.Child
function Child.start(opts)
  local case = opts.case
  local width, height = case.width or 80, case.height or 24
  local home, work = opts.dir .. "/home", opts.dir .. "/proj"
  for _, dir in ipairs({ home .. "/tmp", home .. "/run", work }) do
    vim.fn.mkdir(dir, "p", "0700")
  end
  for path, text in pairs(case.files or {}) do
    local full = work .. "/" .. path
    vim.fn.mkdir(vim.fs.dirname(full), "p")
    local file = assert(io.open(full, "wb"))
    file:write(text)
    file:close()
  end

  local init = assert(io.open(home .. "/init.lua", "wb"))
  init:write(([[
vim.opt.runtimepath:prepend(%q)
-- A terminal of today has all colours; without one attached Neovim does not find out.
vim.o.termguicolors = true
vim.opt.shortmess:append("I")
vim.o.swapfile = false
%s
]]):format(opts.root, case.init or ""))
  init:close()

  local env = {
    HOME = home,
    PATH = vim.env.PATH,
    LANG = "C.UTF-8",
    TERM = "xterm-256color",
    SHELL = "/bin/sh",
    TMPDIR = home .. "/tmp",
    XDG_RUNTIME_DIR = home .. "/run",
    XDG_CONFIG_HOME = home .. "/.config",
    XDG_DATA_HOME = home .. "/.local/share",
    XDG_STATE_HOME = home .. "/.local/state",
    XDG_CACHE_HOME = home .. "/.cache",
  }
  env = vim.tbl_extend("force", env, opts.mark, case.env or {})

  local screen = Screen.new(width, height)
  local command = { vim.v.progpath, "--embed", "--clean", "-u", home .. "/init.lua" }
  local self = setmetatable({
    dir = opts.dir,
    work = work,
    root = opts.root,
    deadline = opts.deadline,
    screen_state = screen,
    opts = opts,
  }, Child)
  self.rpc = Rpc.spawn(vim.list_extend(command, case.args or {}), {
    env = env,
    cwd = work,
    on_notification = function(method, args)
      if method == "redraw" then
        screen:redraw(args)
      end
    end,
  })
  -- Startup goes on once a user interface is there. Names of highlight groups travel with ext_hlstate only.
  self:api("nvim_ui_attach", width, height, { rgb = true, ext_linegrid = true, ext_hlstate = true })
  self:wait("vim.v.vim_did_enter == 1", "Neovim to start")
  return self
end

---Starts Neovim again in the same place, after it has ended.
function Child:again()
  local new = Child.start(self.opts)
  self.rpc, self.screen_state = new.rpc, new.screen_state
end

---@return integer
function Child:pid()
  return self.rpc.pid
end

---How long may still be waited, at most `ms`.
---@private
---@param ms integer?
---@return integer
function Child:budget(ms)
  return math.max(1, math.min(ms or WAIT_MS, self.deadline - vim.uv.now()))
end

---Calls an API function.
---@param method string
---@param ... any
---@return any
function Child:api(method, ...)
  return self.rpc:call(self:budget(), method, ...)
end

---Types keys, as the terminal would send them: `<CR>`, `<C-w>` and the rest of Neovim's notation.
---@param keys string
function Child:keys(keys)
  while keys ~= "" do
    -- The input buffer takes what fits and says how much that was.
    local written = self:api("nvim_input", keys)
    keys = keys:sub(written + 1)
  end
end

---Runs an Ex command.
---@param command string
---@return string output
function Child:cmd(command)
  return self:api("nvim_exec2", command, { output = true }).output
end

---Runs Lua in the child: `...` are its arguments, what it returns comes back.
---@param code string
---@param ... any
---@return any
function Child:lua(code, ...)
  local result = self:api("nvim_exec_lua", code, { ... })
  if result == vim.NIL then
    return nil
  end
  return result
end

---Runs Lua in the child without waiting for it: for what ends the child, blocks it, or prompts.
---@param code string
---@param ... any
function Child:lua_later(code, ...)
  self.rpc:notify("nvim_exec_lua", code, { ... })
end

---Configures the plugin to use an agent, and keeps the plugin's events from now on.
---@param agent harness.Agent|{ options: { command: string[], env: table<string, string>? } }
---@param options table? more of the plugin's options
function Child:use(agent, options)
  self:lua(
    [[
      local options = ...
      _G.cursor_agent_events = {}
      vim.api.nvim_create_autocmd("User", {
        pattern = "CursorAgent*",
        callback = function(event)
          table.insert(_G.cursor_agent_events, { name = event.match, data = event.data })
        end,
      })
      require("cursor_agent").setup(options)
    ]],
    vim.tbl_deep_extend("force", { agent = "test", agents = { test = agent.options } }, options or {})
  )
end

---The data of the plugin's events of one name since `use`, oldest first.
---@param name string
---@return table[]
function Child:events(name)
  return self:lua(
    [[
      local found = {}
      for _, event in ipairs(_G.cursor_agent_events) do
        if event.name == ... then
          table.insert(found, event.data or vim.empty_dict())
        end
      end
      return found
    ]],
    name
  )
end

---Sends a prompt through the plugin's Lua interface.
---@param text string
---@param options table?
function Child:prompt(text, options)
  local problem = self:lua(
    [[
      local text, options = ...
      local done, problem = require("cursor_agent").prompt(text, options)
      return not done and (problem or "it did not say why") or nil
    ]],
    text,
    options
  )
  if problem then
    error("the prompt was not taken: " .. problem, 2)
  end
end

---@return table
function Child:status()
  return self:lua("return require('cursor_agent').status()")
end

---Waits until the current chat is in a state, and shows it: stopped, starting, idle, running, waiting, failed.
---@param state string
---@param timeout_ms integer?
function Child:wait_state(state, timeout_ms)
  self:wait(function()
    -- The library knows first, the editor a moment later.
    return self:lua(
      [[
        local chat = require("cursor_agent.chat.registry").current()
        return require("cursor_agent").status().state == ... and (not chat or chat.status.state == ...)
      ]],
      state
    )
  end, "the state " .. state, timeout_ms)
end

---Waits until this many turns have ended since `use`; returns the data of the last one's event.
---@param count integer
---@param timeout_ms integer?
---@return { stop_reason: string?, error: string? }
function Child:wait_turns(count, timeout_ms)
  return self:wait(function()
    return self:events("CursorAgentTurnEnd")[count]
  end, ("the end of turn %d"):format(count), timeout_ms)
end

---Waits until a decision is on the screen and keys are taken for answers to it.
---@param timeout_ms integer?
function Child:wait_card(timeout_ms)
  self:wait("require('cursor_agent.decide').takes_keys()", "a decision that takes keys", timeout_ms)
end

---Waits until as many permissions are answered, and compares what they came to.
---@param agent harness.Agent
---@param expected string[] as `agent:outcomes()` has them
function Child:wait_outcomes(agent, expected)
  self:wait(function()
    return #agent:outcomes() >= #expected
  end, ("%d answers"):format(#expected))
  if not vim.deep_equal(agent:outcomes(), expected) then
    error(("expected %s, got %s"):format(vim.inspect(expected), vim.inspect(agent:outcomes())), 2)
  end
end

---Whether the cursor is in a decision's floating window.
---@return boolean
function Child:in_card()
  return self:lua("return vim.bo.filetype == 'cursoragent-decision' and vim.api.nvim_win_get_config(0).relative ~= ''")
end

---The texts of the conversation's entries of one kind, oldest first.
---@param kind "user"|"agent"|"thought"|"tool"|"plan"|"notice"
---@return string[]
function Child:texts(kind)
  return self:lua(
    [[
      local texts = {}
      for _, entry in ipairs(require("cursor_agent").transcript()) do
        if entry.kind == ... then
          table.insert(texts, entry.text)
        end
      end
      return texts
    ]],
    kind
  )
end

---@return string
function Child:messages()
  return self:cmd("messages")
end

---Waits for a message with this text.
---@param text string
function Child:wait_message(text)
  self:wait(function()
    -- A message is broken where the screen ends.
    return self:messages():gsub("\n", ""):find(text, 1, true)
  end, ("the message %q"):format(text))
end

---Waits for a condition: a function here, or a Lua expression in the child. Returns what it gave.
---@param condition (fun(): any)|string
---@param what string? what is waited for, for the failure
---@param timeout_ms integer?
---@return any
function Child:wait(condition, what, timeout_ms)
  local ask = type(condition) == "function" and condition
    or function()
      return self:lua("return " .. condition)
    end
  local budget = self:budget(timeout_ms)
  local until_ms = vim.uv.now() + budget
  local value
  while true do
    value = ask()
    if value then
      return value
    end
    if vim.uv.now() >= until_ms then
      local last = type(condition) == "string" and (" (%s gave %s)"):format(condition, vim.inspect(value)) or ""
      error(("waited %d ms for %s%s"):format(budget, what or "the condition", last), 0)
    end
    vim.wait(POLL_MS)
  end
end

---The rows of the screen as they are now.
---@return string[]
function Child:screen()
  self:cmd("redraw")
  return self.screen_state:lines()
end

---Whether a text is on the screen as last drawn, in one row.
---@param text string
---@return boolean
function Child:sees(text)
  for _, line in ipairs(self.screen_state:lines()) do
    if line:find(text, 1, true) then
      return true
    end
  end
  return false
end

---Waits until a text stands in a row of the screen. Nothing is asked of the child: this works while it prompts.
---@param text string
---@param timeout_ms integer?
function Child:wait_screen(text, timeout_ms)
  self:wait(function()
    return self:sees(text)
  end, ("%q on the screen"):format(text), timeout_ms)
end

---Waits until a text is nowhere on the screen.
---@param text string
---@param timeout_ms integer?
function Child:wait_screen_without(text, timeout_ms)
  self:wait(function()
    return not self:sees(text)
  end, ("%q to leave the screen"):format(text), timeout_ms)
end

---@private
---@return string
function Child:picture()
  return self.screen_state:reference(function(line)
    return reference.normalise(line, self.dir)
  end)
end

---The picture once nothing was drawn for a while: a new reference has nothing to wait for.
---@private
---@return string
function Child:settled_picture()
  local frames, since = self.screen_state.flushes, vim.uv.now()
  vim.wait(self:budget(), function()
    if self.screen_state.flushes ~= frames then
      frames, since = self.screen_state.flushes, vim.uv.now()
    end
    return vim.uv.now() - since > SETTLED_MS
  end, POLL_MS)
  return self:picture()
end

---Compares the screen with tests/screenshots/NAME.txt, waiting for it to become so.
---@param name string
---@param timeout_ms integer?
---@param prompting boolean? Neovim prompts, and answers nothing else
function Child:expect_screen(name, timeout_ms, prompting)
  if not prompting then
    self:cmd("redraw")
  end
  if reference.updating() then
    reference.update(self.root, name, self:settled_picture())
    return
  end
  local expected, path = reference.expected(self.root, name)
  if not expected then
    error(("no reference %s (UPDATE_SCREENSHOTS=1 writes it)"):format(vim.fs.basename(path)), 0)
  end
  local actual = ""
  local same = vim.wait(self:budget(timeout_ms), function()
    actual = self:picture()
    return actual == expected or self.rpc:gone() ~= nil
  end, POLL_MS)
  if not same or actual ~= expected then
    local difference = reference.difference(expected, actual)
    error(("the screen is not as in %s\n%s"):format(vim.fs.basename(path), difference), 0)
  end
end

---@param signal string|integer
function Child:kill(signal)
  self.rpc:kill(signal)
end

---Runs a command that ends Neovim, and waits until it did.
---@param command string?
---@return { code: integer, signal: integer }
function Child:quit(command)
  self.rpc:notify("nvim_command", command or "qall!")
  return self:wait_exit()
end

---@param timeout_ms integer?
---@return { code: integer, signal: integer }
function Child:wait_exit(timeout_ms)
  local budget = self:budget(timeout_ms)
  if not self.rpc:wait_exit(budget) then
    error(("Neovim still ran after %d ms"):format(budget), 0)
  end
  return assert(self.rpc.exit)
end

---What stands in the way of talking to Neovim; nil while it runs.
---@return string?
function Child:gone()
  return self.rpc:gone()
end

---Ends the child whatever it does.
function Child:stop()
  if not self.rpc.exit then
    self.rpc:notify("nvim_command", "silent! qall!")
    if self.rpc.stuck or not self.rpc:wait_exit(2000) then
      self.rpc:kill("sigkill")
      self.rpc:wait_exit(2000)
    end
  end
  self.rpc:close()
end

---What a person needs to see when a case failed.
---@return string
function Child:post_mortem()
  local out = {}
  local function section(title, text)
    text = vim.trim(text or "")
    if text ~= "" then
      out[#out + 1] = title .. "\n" .. text:gsub("[^\n]+", "  %0")
    end
  end
  section(
    "screen:",
    table.concat(
      vim.tbl_map(function(line)
        return "|" .. line
      end, self.screen_state:lines()),
      "\n"
    )
  )
  if self.rpc:gone() then
    section("state:", self.rpc:gone())
  else
    local ok, text = pcall(
      self.rpc.call,
      self.rpc,
      500,
      "nvim_exec_lua",
      [[
      return ("%s\n%s"):format(vim.v.errmsg, vim.api.nvim_exec2("messages", { output = true }).output)
    ]],
      {}
    )
    section(ok and "messages:" or "Neovim does not answer:", text)
  end
  section("stderr:", self.rpc.stderr)
  return table.concat(out, "\n")
end

return Child
