-- Writes doc/cursor-agent.txt from scripts/help.txt and what the code says of itself: `nvim -l scripts/help.lua`.

local root = vim.fs.dirname(vim.fs.dirname(vim.fn.fnamemodify(arg[0], ":p")))
vim.opt.runtimepath:prepend(root)

local actions = require("cursor_agent.actions")
local command = require("cursor_agent.command")
local schema = require("cursor_agent.config.schema")
local highlights = require("cursor_agent.colour.highlights")
local presets = require("cursor_agent.agents.presets")

local WIDTH = 78
local BUFFERS = vim.list_extend({ "waiting", "global" }, require("cursor_agent.keys.kinds"))
BUFFERS[#BUFFERS + 1] = "code"

---A line with a tag at its right end; on two lines where one has no room.
---@param left string
---@param tag string
---@return string
local function tagged(left, tag)
  tag = "*" .. tag .. "*"
  local room = WIDTH - vim.fn.strdisplaywidth(left) - #tag
  if room < 1 then
    return (" "):rep(WIDTH - #tag) .. tag .. "\n" .. left
  end
  return left .. (" "):rep(room) .. tag
end

---@param text string
---@param indent string
---@return string
local function wrap(text, indent)
  local lines, line = {}, indent
  for word in text:gmatch("%S+") do
    if line ~= indent and vim.fn.strdisplaywidth(line .. " " .. word) > WIDTH then
      lines[#lines + 1] = line
      line = indent
    end
    line = line == indent and indent .. word or line .. " " .. word
  end
  lines[#lines + 1] = line
  return table.concat(lines, "\n")
end

---@param path string
---@return string
local function readable(path)
  return (path:gsub("^agents%.%*", "agents.NAME"):gsub("%.%*$", ".ACTION"))
end

---The nested table that sets one option.
---@param path string
---@param value string
---@return string
local function nested(path, value)
  local action = schema.example_actions[path]
  local real = path:gsub("^agents%.%*", "agents.cursor"):gsub("%*$", action or "")
  local names = vim.split(real, ".", { plain = true })
  local open, close = "", ""
  for i, name in ipairs(names) do
    local key = name:find("[^%w_]") and ('["%s"]'):format(name) or name
    open = open .. key .. " = " .. (i < #names and "{ " or value)
    close = i < #names and close .. " }" or close
  end
  return open .. close
end

---Arguments to show for subcommands that take some.
local EXAMPLES = {
  build = "cargo",
  cloud = "new Fix the flaky tests",
  comment = "Use the cached value",
  context = "@diff src/parser.rs",
  delete = "0f3c-old",
  export = "chat.md",
  follow = "here",
  keep = "file",
  load = "0c1f9a6e",
  log = "save protocol.jsonl",
  mcp = "tools git",
  mode = "plan",
  model = "composer-2.5",
  new = "claude",
  open = "gemini",
  option = "effort high",
  prompt = "Explain this file",
  rename = "Trailing commas",
  review = "turn",
  search = "trailing comma",
  undo = "turn",
}

local make = {}

function make.commands()
  local out = {}
  for _, name in ipairs(command.names()) do
    out[#out + 1] = tagged(":CursorAgent " .. name, ":CursorAgent-" .. name)
    out[#out + 1] = wrap(command.subcommands[name].desc .. ".", "        ")
    local example = EXAMPLES[name] and " " .. EXAMPLES[name] or ""
    out[#out + 1] = ("        Example: `:CursorAgent %s%s`\n"):format(name, example)
  end
  return table.concat(out, "\n")
end

---What people do all day, by where the key works.
local FIRST_KEYS = {
  { "prompt", "In the prompt ~", { "send", "send-now", "cancel", "cycle-mode" } },
  { "waiting", "Anywhere while a card is shown, Insert mode included ~", { "accept", "reject" } },
  {
    "chat",
    "In the chat, and in the prompt in Normal mode ~",
    { "decisions", "new", "sessions", "resume", "review", "todos", "model", "help" },
  },
  { "code", "In a file with changes to review ~", { "hunk-next", "hunk-prev", "hunk-keep", "hunk-undo", "comment" } },
}

function make.keys()
  local out = {}
  for _, group in ipairs(FIRST_KEYS) do
    out[#out + 1] = group[2]
    for _, action in ipairs(actions.list) do
      if vim.list_contains(group[3], action.name) then
        out[#out + 1] = ("    %-12s %s"):format(table.concat(action.keys[group[1]], " "), action.desc)
      end
    end
  end
  return table.concat(out, "\n") .. "\n"
end

function make.mappings()
  local out = {}
  for _, action in ipairs(actions.list) do
    out[#out + 1] = tagged("", ("<Plug>(cursor-agent-%s)"):format(action.name))
    out[#out + 1] = wrap(action.desc .. ".", "        ")
    local keys = {}
    if action.shared then
      keys[1] = table.concat(action.keys.chat, " ") .. " in every window of the plugin"
    end
    for _, kind in ipairs(BUFFERS) do
      local own = action.keys and (not action.shared or kind == "global") and action.keys[kind]
      if own and #own > 0 then
        keys[#keys + 1] = ("%s %s"):format(kind, table.concat(own, " "))
      end
    end
    out[#out + 1] = wrap("Default: " .. (#keys > 0 and table.concat(keys, ", ") or "no key") .. ".", "        ") .. "\n"
  end
  return table.concat(out, "\n")
end

function make.options()
  local out = {}
  for _, field in ipairs(schema.fields) do
    local name = readable(field.path)
    out[#out + 1] = tagged(name, "cursor-agent-option-" .. name)
    out[#out + 1] = wrap(field.doc, "        ")
    if field.choices then
      out[#out + 1] = wrap("One of " .. table.concat(field.choices, ", ") .. ".", "        ")
    end
    local default = field.default == nil and "none" or vim.inspect(field.default):gsub("%s+", " ")
    out[#out + 1] = wrap(("Type: %s. Default: %s."):format(field.type, default), "        ")
    local example = schema.examples[field.path]
    if not example then
      assert(field.default ~= nil, field.path .. " has no example")
      example = vim.inspect(field.default):gsub("%s+", " ")
    end
    out[#out + 1] = "        Example: >lua\n            " .. nested(field.path, example) .. "\n<"
  end
  return table.concat(out, "\n")
end

function make.highlights()
  local out = {}
  local names = vim.list_extend(vim.tbl_keys(highlights.groups), vim.tbl_keys(highlights.computed))
  table.sort(names)
  for _, name in ipairs(names) do
    local says = highlights.groups[name] and "links to " .. highlights.groups[name] or highlights.computed[name]
    out[#out + 1] = tagged(("%-30s %s"):format(name, says), "hl-" .. name)
  end
  return table.concat(out, "\n")
end

---Rows as a table, each column as wide as its widest cell.
---@param rows string[][]
---@return string
local function columns(rows)
  local width = {} ---@type integer[]
  for _, row in ipairs(rows) do
    for i, cell in ipairs(row) do
      width[i] = math.max(width[i] or 0, #cell)
    end
  end
  return table.concat(
    vim.tbl_map(function(row)
      local cells = {} ---@type string[]
      for i, cell in ipairs(row) do
        cells[i] = i < #row and cell .. (" "):rep(width[i] - #cell) or cell
      end
      return "    " .. table.concat(cells, "  ")
    end, rows),
    "\n"
  )
end

function make.table()
  local rows = { { "NAME", "COMMAND", "LOGIN" } }
  for _, row in ipairs(presets.rows()) do
    rows[#rows + 1] = { row.name, row.command, row.login }
  end
  return columns(rows)
end

function make.abilities()
  local rows = { { "NAME", "CAN" } }
  for _, row in ipairs(presets.rows()) do
    rows[#rows + 1] = { row.name, row.can }
  end
  return columns(rows)
end

function make.companions()
  return columns(vim.tbl_map(function(one)
    return { one.name, one.how }
  end, presets.companions))
end

function make.agents()
  local out = {}
  local names = vim.tbl_keys(presets.agents)
  table.sort(names)
  for _, name in ipairs(names) do
    local agent = presets.agents[name]
    -- The programs of the plugin's own are shown without the directory it happens to be in.
    local shown = table.concat(agent.command, " "):gsub("^.*/lib/cursor%-agent%-", "lib/cursor-agent-")
    out[#out + 1] = tagged(name .. ": `" .. shown .. "`", "cursor-agent-agent-" .. name)
    if presets.install_commands[name] then
      out[#out + 1] = "        Install: `" .. presets.install_commands[name] .. "`"
    end
    out[#out + 1] = wrap(presets.notes[name] or "Works without further setup.", "        ") .. "\n"
  end
  return table.concat(out, "\n")
end

local file = assert(io.open(root .. "/scripts/help.txt", "rb"))
local text = file:read("*a"):gsub("{{(%w+)}}", function(name)
  return make[name]()
end)
file:close()
local out = arg[1] == "--print" and io.stdout or assert(io.open(root .. "/doc/cursor-agent.txt", "wb"))
out:write(text)
out:close()
