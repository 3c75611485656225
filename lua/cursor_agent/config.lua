-- The options: one schema that yields the defaults, the checks, the completion and the help.

local events = require("cursor_agent.bridge.events")

local M = {}

---@alias cursor_agent.config.Type "string"|"string[]"|"integer"|"number"|"boolean"|"table"|"list"|"map"|"secret"|"key"|"keys"|"prefix"|"values"|"icons"|"rules"|"servers"|"pass"|"token"|"prompts"

---@class (exact) cursor_agent.config.Field
---@field path string dotted; `*` stands for any name
---@field type cursor_agent.config.Type
---@field default any
---@field doc string
---@field choices? string[] for a string

---@param path string
---@param type cursor_agent.config.Type
---@param default any
---@param doc string
---@param choices? string[]
---@return cursor_agent.config.Field
local function field(path, type, default, doc, choices)
  return { path = path, type = type, default = default, doc = doc, choices = choices }
end

---Every option, in the order the help lists them.
---@type cursor_agent.config.Field[]
M.schema = {
  field("agent", "string", "cursor", "The agent for new chats: an entry of `agents`."),
  field("agents.*.command", "string[]", nil, "The program and its arguments; it must speak ACP on stdin and stdout."),
  field("agents.*.env", "map", nil, "Environment variables on top of Neovim's own."),
  field("agents.*.title", "string", nil, "What to call the agent in the winbar."),
  field("agents.*.auth_method", "string", nil, "The id to call `authenticate` with when the agent requires a login."),
  field("agents.*.auth_order", "string[]", nil, "Preferred login methods by id, best first."),
  field(
    "agents.*.status_command",
    "string[]",
    nil,
    "A command that shows who is logged in, for `:checkhealth` and `:CursorAgent status`."
  ),
  field("agents.*.login_command", "string[]", nil, "What `:CursorAgent login` runs in a terminal."),
  field("agents.*.version_command", "string[]", nil, "A command that prints the version, for `:checkhealth`."),
  field("agents.*.install_hint", "string", nil, "Shown when the program is not found."),
  field("agents.*.cursor", "boolean", nil, "Whether the agent is Cursor's CLI, run by another command."),
  field(
    "agents.*.backend",
    "string",
    nil,
    "Cursor: how its CLI is driven. `auto` uses `agent acp`, or headless mode if the CLI has no `acp`.",
    { "auto", "acp", "headless" }
  ),
  field("agents.*.headless_args", "string[]", nil, "Cursor: arguments for `cursor-agent-acp` in headless mode."),
  field("agents.*.endpoint", "string", nil, "Cursor: another server (`agent -e`)."),
  field("agents.*.insecure", "boolean", nil, "Cursor: do not check the server's certificate (`agent -k`)."),
  field(
    "agents.*.api_key",
    "secret",
    nil,
    "Cursor: passed to it as `CURSOR_API_KEY`; a string, or a function that returns one."
  ),
  field(
    "agents.*.auth_token",
    "secret",
    nil,
    "Cursor: passed to it as `CURSOR_AUTH_TOKEN`; a string, or a function that returns one."
  ),
  field("agents.*.mode", "string", nil, "The mode a new session starts in."),
  field("agents.*.model", "string", nil, "The model a new session starts with."),
  field("agents.*.options", "values", nil, "Values of the agent's options for new sessions, by id."),
  field(
    "agents.*.mcp_servers",
    "servers",
    nil,
    "Additional MCP servers for this agent: a list as in ACP's `session/new`, or a table by name as in `mcp.json`."
  ),
  field(
    "agents.*.mcp_pass",
    "pass",
    nil,
    "Which servers of Cursor's `mcp.json` this agent gets; defaults to `mcp.pass`."
  ),
  field(
    "agents.*.paths",
    "map",
    nil,
    "For an agent that runs in a container or over ssh: local directories and the agent's directories they map to. Paths "
      .. "are mapped both ways."
  ),
  field("agents.*.url", "string", nil, "The URL of an agent that is reached by WebSocket, instead of `command`."),
  field(
    "agents.*.token",
    "token",
    nil,
    "The bearer token for `url`: a string, a function, or a command that prints it."
  ),
  field("agents.*.additional_directories", "string[]", nil, "Additional directories the agent may work in."),

  field("mcp_servers", "servers", {}, "Additional MCP servers for all agents, as in `agents.NAME.mcp_servers`."),
  field(
    "mcp.pass",
    "pass",
    "all",
    "Which servers of the project's and the user's `.cursor/mcp.json` agents get with a session: `all`, `user` (not the "
      .. "project's), `none`, or a list of names. Cursor reads these files itself and gets none."
  ),

  field("window.position", "string", "right", "Where the chat opens.", { "right", "left", "bottom", "float", "tab" }),
  field("window.width", "number", 0.45, "Width of the chat in columns, or as a fraction of the screen if at most 1."),
  field(
    "window.height",
    "number",
    0.4,
    "Height of a chat at the bottom in lines, or as a fraction of the screen if at most 1."
  ),
  field("window.prompt_height", "integer", 4, "Height of a short prompt, in lines."),
  field("window.prompt_max_height", "integer", 12, "Maximum height of the prompt, in lines."),
  field("window.start_insert", "boolean", true, "Start Insert mode when a command goes to the prompt."),

  field("chat.icons", "icons", "unicode", "`unicode`, `ascii` or `nerd`, or a table that replaces single icons."),
  field("chat.fold_thoughts", "boolean", true, "Fold thoughts when they are finished."),
  field("chat.fold_tools", "boolean", true, "Fold the details of successful tool calls (edits stay open)."),
  field("chat.diff_lines", "integer", 24, "Lines of a diff to show in the chat; `o` shows all of it."),
  field("chat.output_lines", "integer", 12, "Lines of output to show under a tool call; `o` shows all of it."),
  field(
    "chat.conceal",
    "boolean",
    true,
    "Render markdown (headings, lists, quotes, tables) and hide its markup except on the cursor's line."
  ),

  field(
    "picker",
    "string",
    "auto",
    "What to show the list of chats with: a picker plugin, or `select` for `vim.ui.select`. `auto` uses the first plugin found.",
    { "auto", "select", "snacks", "telescope", "fzf-lua", "mini.pick" }
  ),
  field(
    "prompt.autocomplete",
    "boolean",
    true,
    "Offer completion after `/` or `@` as you type, if no completion plugin does."
  ),
  field("prompt.history_size", "integer", 200, "Prompts remembered for each directory."),
  field(
    "prompt.paste_lines",
    "integer",
    40,
    "Pasted text with at least this many lines becomes an attachment; 0 for never."
  ),
  field(
    "prompt.unsaved",
    "string",
    "ask",
    "What to do about modified buffers of the workspace when a prompt is sent: name them above the prompt, save them, "
      .. "attach their text, or ignore them.",
    { "ask", "save", "attach", "ignore" }
  ),

  field(
    "prompts",
    "prompts",
    {},
    "Reusable prompts, offered after `/`: texts by name, or tables with `text` and `description`. `$ARGUMENTS` stands for "
      .. "what you type after the name. See |cursor-agent-prompts|."
  ),
  field(
    "policy",
    "rules",
    {},
    "Rules that answer permissions; the first match decides. A list of tables with `action` (allow, ask or reject) and "
      .. "conditions: `agent`, `kind`, `tool`, `command`, `path`; `name` is shown in the transcript. Without a match you are "
      .. "asked. See |cursor-agent-policy|."
  ),
  field(
    "decisions.delay_ms",
    "integer",
    300,
    "How long a decision must be shown before a key answers it, in ms, so that a key you were typing decides nothing."
  ),
  field(
    "workspace.root",
    "string",
    "auto",
    "The directory a new chat works in: the current directory (`cwd`), the current file's git root (`git`) or language "
      .. "server root (`lsp`), or the directory Neovim was started in (`start`). `auto` is the current directory, or with "
      .. "'autochdir', the first of the others that is found.",
    { "auto", "cwd", "git", "lsp", "start" }
  ),
  field(
    "workspace.roots",
    "string[]",
    {},
    "Directories agents may read and write through the editor without asking, besides the chat's own directory and "
      .. "the agent's `additional_directories`."
  ),
  field(
    "plan.directory",
    "string",
    ".cursor/plans",
    "Where accepted plans are saved, relative to the workspace; empty to not save them. A plan you edited is then passed "
      .. "to the agent in a temporary file."
  ),
  field("plan.position", "string", "float", "Where plans open.", { "float", "split", "tab" }),
  field(
    "attention.notify",
    "boolean",
    true,
    "Notify about decisions and finished turns when Neovim or the chat is not visible."
  ),
  field(
    "attention.terminal",
    "string",
    "off",
    "Notify through the terminal too: its bell, or a desktop notification if it supports OSC 9 or OSC 777.",
    { "off", "bell", "osc9", "osc777" }
  ),

  field(
    "cloud.url",
    "string",
    nil,
    "The URL of Cursor's cloud API, instead of `CURSOR_API_URL` or the default; `demo` for an offline demo."
  ),
  field(
    "cloud.api_key",
    "key",
    nil,
    "The key for cloud agents, instead of `CURSOR_API_KEY`: a string, or a command (a list) that prints it."
  ),
  field("cloud.model", "string", nil, "The model of new cloud agents; defaults to the account's setting."),
  field("cloud.mode", "string", "agent", "The mode of new cloud agents.", { "agent", "plan" }),
  field("cloud.auto_pr", "boolean", true, "Whether new cloud agents open a pull request when they finish."),
  field(
    "cloud.mcp",
    "boolean",
    false,
    "Give new sessions the MCP server `cursor-cloud`, so that the agent can delegate work to cloud agents."
  ),
  field(
    "follow.enabled",
    "boolean",
    false,
    "Show what the agent reads and edits in a window. See `:CursorAgent follow`."
  ),
  field("review.signs", "boolean", true, "Mark undecided changes in the code."),
  field("checkpoints.enabled", "boolean", true, "Save the files each prompt changes, as they were before."),
  field(
    "checkpoints.max_mb",
    "integer",
    512,
    "Maximum size of all checkpoints on disk, in MB; the oldest are deleted first."
  ),
  field("checkpoints.max_days", "integer", 30, "How many days to keep checkpoints."),
  field("memory.enabled", "boolean", true, "Store conversations to read, search and continue them later."),
  field("memory.max_age_days", "integer", 90, "How many days to keep a conversation after its last message."),
  field(
    "memory.max_mb",
    "integer",
    500,
    "Maximum size of all stored conversations, in MB; the oldest are deleted first."
  ),

  field(
    "keymaps.global",
    "prefix",
    false,
    "A prefix for keys that work everywhere: toggle the chat, ask, allow, reject, stop, new chat, chats, review, todos. "
      .. "`g?` lists them. A table sets the `prefix` and single keys by action: "
      .. '`{ prefix = "<Leader>a", toggle = "<C-\\\\>" }`.'
  ),
  field(
    "keymaps.waiting.*",
    "keys",
    nil,
    "Keys that work in every buffer while a decision is shown, by action; false for none. Your own mappings are "
      .. "restored afterwards."
  ),
  field("keymaps.chat.*", "keys", nil, "Keys in the chat, by action; false for none. See `g?`."),
  field("keymaps.prompt.*", "keys", nil, "Keys in the prompt, by action; false for none. See `g?`."),
  field("keymaps.queue.*", "keys", nil, "Keys in the queue, by action; false for none. See `g?`."),
  field("keymaps.permission.*", "keys", nil, "Keys on a permission card, by action; false for none. See `g?`."),
  field("keymaps.question.*", "keys", nil, "Keys on a question card, by action; false for none. See `g?`."),
  field("keymaps.conflict.*", "keys", nil, "Keys on a conflict card, by action; false for none. See `g?`."),
  field("keymaps.plan-card.*", "keys", nil, "Keys on a plan's card, by action; false for none. See `g?`."),
  field("keymaps.plan.*", "keys", nil, "Keys in a plan, by action; false for none. See `g?`."),
  field("keymaps.todos.*", "keys", nil, "Keys in the todos, by action; false for none. See `g?`."),
  field("keymaps.log.*", "keys", nil, "Keys in the log, by action; false for none. See `g?`."),
  field(
    "keymaps.reader.*",
    "keys",
    nil,
    "Keys in a tool's output, an explanation or an export, by action; false for none."
  ),
  field("keymaps.subagent.*", "keys", nil, "Keys in a subagent's buffer, by action; false for none. See `g?`."),
  field("keymaps.review.*", "keys", nil, "Keys in the list of changes, by action; false for none. See `g?`."),
  field("keymaps.cloud.*", "keys", nil, "Keys in the list of cloud agents, by action; false for none. See `g?`."),
  field("keymaps.mcp.*", "keys", nil, "Keys in the list of MCP servers, by action; false for none. See `g?`."),
  field("keymaps.code.*", "keys", nil, "Keys in files with undecided changes, by action; false for none. See `g?`."),
}

---An example value, in Lua, for each option without a default.
---@type table<string, string>
M.examples = {
  ["agents.*.command"] = '{ "agent", "acp" }',
  ["agents.*.env"] = '{ HTTPS_PROXY = "http://proxy:3128" }',
  ["agents.*.title"] = '"Cursor at work"',
  ["agents.*.auth_method"] = '"cursor_login"',
  ["agents.*.auth_order"] = '{ "gemini-api-key", "oauth-personal" }',
  ["agents.*.status_command"] = '{ "agent", "status" }',
  ["agents.*.login_command"] = '{ "agent", "login" }',
  ["agents.*.version_command"] = '{ "agent", "--version" }',
  ["agents.*.install_hint"] = '"Ask the help desk for it."',
  ["agents.*.cursor"] = "true",
  ["agents.*.backend"] = '"headless"',
  ["agents.*.headless_args"] = '{ "--force" }',
  ["agents.*.endpoint"] = '"https://api2.cursor.sh"',
  ["agents.*.insecure"] = "true",
  ["agents.*.api_key"] = "function() return vim.env.WORK_CURSOR_KEY end",
  ["agents.*.auth_token"] = "function() return vim.env.WORK_CURSOR_TOKEN end",
  ["agents.*.mode"] = '"plan"',
  ["agents.*.model"] = '"composer-2.5"',
  ["agents.*.options"] = '{ effort = "high", fast = "true" }',
  ["agents.*.mcp_servers"] = '{ { name = "git", command = "mcp-git", args = {}, env = {} } }',
  ["agents.*.mcp_pass"] = '{ "git" }',
  ["agents.*.paths"] = '{ ["/home/me/app"] = "/work" }',
  ["agents.*.url"] = '"ws://127.0.0.1:4170/acp"',
  ["agents.*.token"] = '{ "pass", "show", "qwen" }',
  ["agents.*.additional_directories"] = '{ "/home/me/notes" }',
  ["keymaps.global"] = '"<Leader>a"',
  ["keymaps.waiting.*"] = '"<F9>"',
  ["keymaps.chat.*"] = '{ "<C-c>", "<Esc><Esc>" }',
  ["keymaps.prompt.*"] = '"<C-CR>"',
  ["keymaps.queue.*"] = "false",
  ["keymaps.permission.*"] = '"y"',
  ["keymaps.question.*"] = '"x"',
  ["keymaps.conflict.*"] = '"y"',
  ["keymaps.plan-card.*"] = '"y"',
  ["keymaps.plan.*"] = '"<Leader>y"',
  ["keymaps.todos.*"] = '"<Esc>"',
  ["keymaps.log.*"] = '"<C-s>"',
  ["keymaps.reader.*"] = '{ "q", "<Esc>" }',
  ["keymaps.subagent.*"] = '"<Esc>"',
  ["keymaps.review.*"] = '"<F1>"',
  ["keymaps.mcp.*"] = '"x"',
  ["keymaps.cloud.*"] = '"<F5>"',
  ["cloud.url"] = '"https://api.cursor.com"',
  ["cloud.api_key"] = '{ "pass", "show", "cursor" }',
  ["cloud.model"] = '"composer-2.5"',
  ["keymaps.code.*"] = '"<Leader>hk"',
}

---The action whose keys such an example sets.
---@type table<string, string>
M.example_actions = {
  ["keymaps.waiting.*"] = "accept",
  ["keymaps.chat.*"] = "cancel",
  ["keymaps.prompt.*"] = "send",
  ["keymaps.queue.*"] = "queue-send-now",
  ["keymaps.permission.*"] = "allow-once",
  ["keymaps.question.*"] = "question-choose",
  ["keymaps.conflict.*"] = "conflict-mine",
  ["keymaps.plan-card.*"] = "plan-accept",
  ["keymaps.plan.*"] = "plan-accept",
  ["keymaps.todos.*"] = "todos-close",
  ["keymaps.log.*"] = "log-save",
  ["keymaps.reader.*"] = "reader-close",
  ["keymaps.subagent.*"] = "reader-close",
  ["keymaps.review.*"] = "help",
  ["keymaps.mcp.*"] = "mcp-disable",
  ["keymaps.cloud.*"] = "cloud-refresh",
  ["keymaps.code.*"] = "hunk-keep",
}

---@param value any
---@return boolean
local function is_string(value)
  return type(value) == "string"
end

---@param value any
---@param key fun(k: any): boolean
---@param item fun(v: any): boolean
---@return boolean
local function all(value, key, item)
  if type(value) ~= "table" then
    return false
  end
  for k, v in pairs(value) do
    if not key(k) or not item(v) then
      return false
    end
  end
  return true
end

local function is_index(k)
  return type(k) == "number"
end

---@type table<cursor_agent.config.Type, { says: string, test: fun(value: any): (boolean, string[]?) }>
local TYPES = {
  ["string"] = { says = "a string", test = is_string },
  ["boolean"] = {
    says = "true or false",
    test = function(v)
      return type(v) == "boolean"
    end,
  },
  ["number"] = {
    says = "a number",
    test = function(v)
      return type(v) == "number"
    end,
  },
  ["integer"] = {
    says = "a whole number",
    test = function(v)
      return type(v) == "number" and v == math.floor(v)
    end,
  },
  ["table"] = {
    says = "a table",
    test = function(v)
      return type(v) == "table"
    end,
  },
  ["string[]"] = {
    says = "a list of strings",
    test = function(v)
      return all(v, is_index, is_string)
    end,
  },
  ["list"] = {
    says = "a list",
    test = function(v)
      return all(v, is_index, function()
        return true
      end)
    end,
  },
  ["map"] = {
    says = "a table of strings by name",
    test = function(v)
      return all(v, is_string, is_string)
    end,
  },
  ["values"] = {
    says = "a table of strings or booleans by name",
    test = function(v)
      return all(v, is_string, function(item)
        return type(item) == "string" or type(item) == "boolean"
      end)
    end,
  },
  ["secret"] = {
    says = "a string or a function that returns one",
    test = function(v)
      return type(v) == "string" or type(v) == "function"
    end,
  },
  ["key"] = {
    says = "a string, or a list of strings",
    test = function(v)
      return type(v) == "string" or (all(v, is_index, is_string) and #v > 0)
    end,
  },
  ["keys"] = {
    says = "a key, a list of keys, or false",
    test = function(v)
      return v == false or type(v) == "string" or all(v, is_index, is_string)
    end,
  },
  ["prefix"] = {
    says = "keys, a table with a `prefix` and keys by action, or false",
    test = function(v)
      if type(v) ~= "table" then
        return v == false or (type(v) == "string" and v ~= "")
      end
      local known, problems = { prefix = true }, {} ---@type table<string, boolean>, string[]
      for _, action in ipairs(require("cursor_agent.keys.list")) do
        known[action.name] = true
      end
      for name, keys in vim.spairs(v) do
        if not known[name] then
          problems[#problems + 1] = ("unknown action `%s`"):format(name)
        elseif keys ~= false and type(keys) ~= "string" and not all(keys, is_index, is_string) then
          problems[#problems + 1] = ("`%s` must be a key, a list of keys, or false"):format(name)
        end
      end
      return #problems == 0, #problems > 0 and problems or nil
    end,
  },
  ["rules"] = {
    says = "a list of rules",
    test = function(v)
      local problems = require("cursor_agent.decide.policy").check(v)
      return #problems == 0, problems
    end,
  },
  ["token"] = {
    says = "a string, a function that returns one, or a command that prints it",
    test = function(v)
      return type(v) == "string"
        or type(v) == "function"
        or (type(v) == "table" and #v > 0 and all(v, is_index, is_string))
    end,
  },
  ["pass"] = {
    says = "`all`, `user`, `none` or a list of names",
    test = function(v)
      return v == "all" or v == "user" or v == "none" or (type(v) == "table" and all(v, is_index, is_string))
    end,
  },
  ["prompts"] = {
    says = "a table by name of texts, or of tables with `text` and `description`",
    test = function(v)
      return all(v, function(name)
        return type(name) == "string" and name:match("^[^%s/]+$") ~= nil
      end, function(prompt)
        local options = type(prompt) == "table" and prompt or { text = prompt }
        return type(options.text) == "string" and (options.description == nil or is_string(options.description))
      end)
    end,
  },
  ["servers"] = {
    says = "a list of MCP servers, or a table of them by name",
    test = function(v)
      if type(v) ~= "table" then
        return false
      end
      local problems = {} ---@type string[]
      for name, server in vim.spairs(v) do
        local what = type(server) == "table" and (server.name or name) or name
        if type(server) ~= "table" then
          problems[#problems + 1] = ("server %s must be a table, got %s"):format(name, type(server))
        elseif type(name) == "number" and type(server.name) ~= "string" then
          problems[#problems + 1] = ("server %d needs a `name`"):format(name)
        elseif type(server.command) ~= "string" and type(server.url) ~= "string" then
          problems[#problems + 1] = ("server `%s` needs a `command` or a `url`"):format(what)
        end
      end
      return #problems == 0, #problems > 0 and problems or nil
    end,
  },
  ["icons"] = {
    says = "`unicode`, `ascii`, `nerd` or a table of icons",
    test = function(v)
      if v == "unicode" or v == "ascii" or v == "nerd" then
        return true
      elseif not all(v, is_string, is_string) then
        return false
      end
      local known, problems = require("cursor_agent.render.icons").sets.unicode, {}
      for name in vim.spairs(v) do
        if known[name] == nil then
          local names = vim.tbl_keys(known)
          table.sort(names)
          problems[#problems + 1] = ("unknown icon `%s`; expected one of %s"):format(name, table.concat(names, ", "))
        end
      end
      return #problems == 0, problems
    end,
  },
}

---A node of the schema tree: either a field, or names that lead further down.
---@class cursor_agent.config.Node
---@field field? cursor_agent.config.Field
---@field names? table<string, cursor_agent.config.Node>

---@type cursor_agent.config.Node?
local tree

---@return cursor_agent.config.Node
local function schema_tree()
  if tree then
    return tree
  end
  tree = { names = {} }
  for _, f in ipairs(M.schema) do
    local node = tree
    for name in vim.gsplit(f.path, ".", { plain = true }) do
      node.names = node.names or {}
      node.names[name] = node.names[name] or {}
      node = node.names[name]
    end
    node.field = f
  end
  return tree
end

---The known name most similar to a wrong one, if any is close enough to be a typo.
---@param wrong string
---@param names string[]
---@return string?
local function nearest(wrong, names)
  local best, least = nil, 3
  for _, name in ipairs(names) do
    -- Edit distance, row by row.
    local row = {} ---@type integer[]
    for j = 0, #name do
      row[j] = j
    end
    for i = 1, #wrong do
      local diagonal = row[0]
      row[0] = i
      for j = 1, #name do
        local other = wrong:byte(i) == name:byte(j) and 0 or 1
        diagonal, row[j] = row[j], math.min(row[j] + 1, row[j - 1] + 1, diagonal + other)
      end
    end
    if row[#name] < least then
      best, least = name, row[#name]
    end
  end
  return best
end

---The names allowed where the schema takes any key; nil where every name is fine. Loaded only when such a key is set.
---@param path string
---@return table<string, any>?
local function known_names(path)
  if not path:find("^keymaps%.") then
    return nil
  end
  local names = {}
  for _, action in ipairs(require("cursor_agent.keys.list")) do
    names[action.name] = true
  end
  return names
end

---What other ACP clients call their options, by the table they are in, with what to write here instead.
---@type table<string, table<string, string>>
local FOREIGN = {
  [""] = {
    acp_providers = "`agents`, with program and arguments in one `command`",
    adapters = "`agents`, with program and arguments in one `command`",
    behaviour = "single options of `chat` and `prompt`",
    interactions = "`agent` and `agents`",
    mappings = "`keymaps`",
    mode = "`agents.NAME.mode`",
    model = "`agents.NAME.model`",
    provider = "`agent`",
    providers = "`agents`",
    strategies = "`agent` and `agents`",
    windows = "`window`",
  },
  ["agents.*"] = {
    args = "`command`, after the program",
    auth = "`auth_method`",
    default_mode = "`mode`",
    initial_model = "`model`",
    model_id = "`model`",
    name = "`title`",
  },
}

---What an unknown name probably meant.
---@param name any
---@param path string path of the table it is in
---@param names table<string, any> names known there
---@return string
local function meant_instead(name, path, names)
  if type(name) ~= "string" then
    return ""
  end
  local place = path:find("^agents%.[^.]+$") and "agents.*" or path
  local here = FOREIGN[place] and FOREIGN[place][name]
  if here then
    return (": that is another plugin's name; here it is %s (:help cursor-agent-migrate)"):format(here)
  end
  local known = vim.tbl_keys(names)
  table.sort(known)
  local meant = nearest(name, known)
  return meant and (", did you mean `%s`?"):format(meant) or ""
end

---Checks options against the schema.
---@param opts any
---@return table clean the valid options
---@return string[] problems one line each, with the key path
function M.check(opts)
  local problems = {} ---@type string[]

  ---@param value any
  ---@param node cursor_agent.config.Node
  ---@param path string
  local function walk(value, node, path)
    local f = node.field
    if f then
      local kind = TYPES[f.type]
      local fits, details = kind.test(value)
      if not fits and details then
        for _, detail in ipairs(details) do
          table.insert(problems, ("option `%s`: %s"):format(path, detail))
        end
        return nil
      elseif not fits then
        local example = M.examples[f.path] and ", such as " .. M.examples[f.path] or ""
        local got = M.describe(value, f.type)
        table.insert(problems, ("option `%s`: expected %s%s, got %s"):format(path, kind.says, example, got))
        return nil
      end
      if f.choices and not vim.list_contains(f.choices, value) then
        table.insert(
          problems,
          ("option `%s`: expected one of %s, got %q"):format(path, table.concat(f.choices, ", "), value)
        )
        return nil
      end
      return vim.deepcopy(value)
    end
    if type(value) ~= "table" then
      table.insert(problems, ("option `%s`: expected a table, got %s"):format(path, M.describe(value)))
      return nil
    end
    local clean = {}
    local names = node.names or {}
    local known = names["*"] and known_names(path)
    for name, item in pairs(value) do
      local child = names[name] or names["*"]
      if known and not known[name] then
        child = nil
      end
      local at = path == "" and tostring(name) or path .. "." .. tostring(name)
      if child then
        clean[name] = walk(item, child, at)
      else
        table.insert(problems, ("unknown option `%s`%s"):format(at, meant_instead(name, path, known or names)))
      end
    end
    return clean
  end

  local clean = opts == nil and {} or walk(opts, schema_tree(), "")
  table.sort(problems)
  return clean or {}, problems
end

---Describes a wrong value in a message. A value that may be a secret is described by its type only.
---@param value any
---@param kind? cursor_agent.config.Type
---@return string
function M.describe(value, kind)
  if kind ~= "secret" and (type(value) == "number" or type(value) == "boolean") then
    return ("%s (%s)"):format(type(value), tostring(value))
  end
  return type(value)
end

---@return table
local function defaults()
  local result = { agents = vim.deepcopy(require("cursor_agent.agents.presets").agents) }
  for _, f in ipairs(M.schema) do
    if f.default ~= nil then
      local node, names = result, vim.split(f.path, ".", { plain = true })
      for i = 1, #names - 1 do
        node[names[i]] = node[names[i]] or {}
        node = node[names[i]]
      end
      node[names[#names]] = vim.deepcopy(f.default)
    end
  end
  return result
end

local given ---@type table? what `setup` was called with
local merged ---@type cursor_agent.Config?
M.problems = {} ---@type string[] what is wrong with the options, for `:checkhealth`

---@class (exact) cursor_agent.Config
---@field agent string
---@field agents table<string, cursor_agent.Agent>
---@field mcp_servers table[]|table<string, table>
---@field mcp { pass: "all"|"user"|"none"|string[] }
---@field window { position: "right"|"left"|"bottom"|"float"|"tab", width: number, height: number, prompt_height: integer, prompt_max_height: integer, start_insert: boolean }
---@field chat { icons: string|table<string, string>, fold_thoughts: boolean, fold_tools: boolean, diff_lines: integer, output_lines: integer, conceal: boolean }
---@field picker "auto"|"select"|"snacks"|"telescope"|"fzf-lua"|"mini.pick"
---@field prompt { autocomplete: boolean, history_size: integer, paste_lines: integer, unsaved: "ask"|"save"|"attach"|"ignore" }
---@field prompts table<string, string|{ text: string, description: string? }>
---@field policy cursor_agent.policy.Rule[]
---@field decisions { delay_ms: integer }
---@field workspace { root: "auto"|"cwd"|"git"|"lsp"|"start", roots: string[] }
---@field plan { directory: string, position: "float"|"split"|"tab" }
---@field cloud { url: string?, api_key: (string|string[])?, model: string?, mode: "agent"|"plan", auto_pr: boolean, mcp: boolean }
---@field follow { enabled: boolean }
---@field review { signs: boolean }
---@field memory { enabled: boolean, max_age_days: integer, max_mb: integer }
---@field checkpoints { enabled: boolean, max_mb: integer, max_days: integer }
---@field attention { notify: boolean, terminal: "off"|"bell"|"osc9"|"osc777" }
---@field keymaps { global: string|false|table<string, string|string[]|false> } | table<string, table<string, string|string[]|false>>

---Stores options; validates them but does not apply anything.
---@param opts? table
function M.setup(opts)
  given = opts
  merged = nil
  M.get()
  events.emit("configured")
end

local wrong_rules = false

---Whether a rule has a mistake: then no rule applies and everything asks.
---@return boolean
function M.has_wrong_rules()
  return wrong_rules
end

---The effective options: defaults, then `vim.g.cursor_agent`, then what was passed to `setup`.
---@return cursor_agent.Config
function M.get()
  if merged then
    return merged
  end
  local global, global_problems = M.check(vim.g.cursor_agent)
  local own, own_problems = M.check(given)
  local config = vim.tbl_deep_extend("force", defaults(), global, own) --[[@as cursor_agent.Config]]
  -- Lists are replaced, not merged by position.
  for _, opts in ipairs({ global, own }) do
    for name, agent in pairs(opts.agents or {}) do
      for key, value in pairs(agent) do
        if vim.islist(value) then
          config.agents[name][key] = value
        end
      end
    end
  end
  config.keymaps = config.keymaps or {}

  local problems = vim.list_extend(global_problems, own_problems)
  for name, agent in pairs(config.agents) do
    if agent.url then
      agent.command = require("cursor_agent.agents.presets").connect_command(agent)
    end
    if not agent.command or #agent.command == 0 then
      table.insert(problems, ("option `agents.%s.command` is missing"):format(name))
      config.agents[name] = nil
    end
  end
  if not config.agents[config.agent] then
    table.insert(problems, ("option `agent`: `agents.%s` does not exist"):format(config.agent))
    config.agent = "cursor"
  end
  wrong_rules = false
  for _, problem in ipairs(problems) do
    if problem:find("^option `policy`") then
      wrong_rules = true
      -- Without the broken rule the others may allow more than the user meant, so drop all of them and ask about
      -- everything.
      config.policy = {}
    end
  end
  local presets = require("cursor_agent.agents.presets")
  for _, agent in pairs(config.agents) do
    agent.mcp_servers = vim.list_extend(presets.servers(agent.mcp_servers), presets.servers(config.mcp_servers))
    agent.mcp_pass = agent.mcp_pass or config.mcp.pass
  end
  M.problems = problems
  merged = config
  if #problems > 0 then
    -- Scheduled so that `setup` does not interrupt start-up with a message to confirm.
    vim.schedule(function()
      require("cursor_agent.notify").once(table.concat(problems, "\n  "), "warn")
    end)
  end
  return config
end

---The options of one agent.
---@param name? string
---@return cursor_agent.Agent?, string
function M.agent(name)
  local config = M.get()
  name = name or config.agent
  local agent = config.agents[name]
  if agent and name == "cloud" then
    local env = vim.tbl_extend("force", require("cursor_agent.cloud.env").all(config.cloud), agent.env or {})
    agent = vim.tbl_extend("force", agent, { env = env })
  elseif agent and config.cloud.mcp then
    agent = vim.tbl_extend("force", agent, {
      mcp_servers = require("cursor_agent.cloud.server").added(agent.mcp_servers --[[@as table[] ]], config.cloud),
    })
  end
  return agent, name
end

---The display name of an agent.
---@param name string
---@return string
function M.agent_title(name)
  local agent = M.get().agents[name]
  return agent and agent.title or name
end

---Whether an agent is Cursor's CLI itself, not the demo that imitates it.
---@param name string
---@return boolean
function M.is_cursor(name)
  local agent = M.agent(name)
  return agent ~= nil and agent.cursor == true and name ~= "demo"
end

---The names of all agents, sorted.
---@return string[]
function M.agent_names()
  local names = vim.tbl_keys(M.get().agents)
  table.sort(names)
  return names
end

return M
