-- Every option: its path, type, default and help, in the order the help lists them.

local M = {}

---@alias cursor_agent.config.Type "string"|"string[]"|"integer"|"number"|"boolean"|"table"|"list"|"map"|"secret"|"key"|"keys"|"prefix"|"values"|"icons"|"rules"|"servers"|"pass"|"token"|"prompts"

---@class (exact) cursor_agent.config.Field
---@field path string dotted; `*` matches any name
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
M.fields = {
  field("agent", "string", "cursor", "The agent for new chats: an entry of `agents`."),
  field("agents.*.command", "string[]", nil, "The program and its arguments; it must speak ACP on stdin and stdout."),
  field("agents.*.env", "map", nil, "Environment variables on top of Neovim's own."),
  field("agents.*.title", "string", nil, "What to call the agent in the winbar."),
  field("agents.*.auth_method", "string", nil, "The login method to use when the agent requires a login, by id."),
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
  field("agents.*.cursor", "boolean", nil, "Whether `command` runs Cursor's CLI in some other way, such as over ssh."),
  field(
    "agents.*.backend",
    "string",
    nil,
    "Cursor: how its CLI is driven. `auto` uses `agent acp`, or headless mode if the CLI has no `acp`.",
    { "auto", "acp", "headless" }
  ),
  field("agents.*.headless_args", "string[]", nil, "Cursor: arguments for `cursor-agent-acp` in headless mode."),
  field("agents.*.endpoint", "string", nil, "Cursor: the server to use (`agent -e`)."),
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
  field("agents.*.additional_directories", "string[]", nil, "More directories the agent may work in."),

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
  field("window.prompt_height", "integer", 4, "Minimum height of the prompt, in lines."),
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
    "What shows the list of chats: a picker plugin, or `select` for `vim.ui.select`. `auto` uses the first plugin found.",
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
    "How long a decision must be shown before a key can answer it, in ms, so that typing never answers one by accident."
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

return M
