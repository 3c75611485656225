-- The help is complete, up to date with the code, and answers what a new user would ask.

local T = require("harness")

---@param name string of a file of the project
---@return string
local function read(name)
  local file = assert(io.open(T.root .. "/" .. name, "rb"))
  local text = file:read("*a")
  file:close()
  return text
end

---@param child harness.Child
---@return table<string, boolean>
local function tags(child)
  local list = child:lua(
    [[
      local dir = vim.fn.tempname()
      vim.fn.mkdir(dir, "p")
      vim.uv.fs_copyfile(... .. "/doc/cursor-agent.txt", dir .. "/cursor-agent.txt")
      vim.cmd.helptags(dir)
      return vim.tbl_map(function(line)
        return (line:match("^[^\t]+"))
      end, vim.fn.readfile(dir .. "/tags"))
    ]],
    T.root
  )
  local set = {}
  for _, tag in ipairs(list) do
    set[tag] = true
  end
  return set
end

T.case("the file is what the generator writes", function()
  local made = vim.system({ vim.v.progpath, "--clean", "-l", T.root .. "/scripts/help.lua", "--print" }):wait()
  T.eq(made.code, 0, made.stderr)
  local file = assert(io.open(T.root .. "/doc/cursor-agent.txt", "rb"))
  local text = file:read("*a")
  file:close()
  T.ok(text == made.stdout, "doc/cursor-agent.txt is out of date: `make doc` writes it again")
end)

T.case("every command, mapping, option, highlight, event, agent and Lua call has its tag", function(child)
  local found = tags(child)
  local wanted = child:lua([[
    local list = {}
    for _, name in ipairs(require("cursor_agent.command").names()) do
      table.insert(list, ":CursorAgent-" .. name)
    end
    for _, action in ipairs(require("cursor_agent.actions").list) do
      table.insert(list, ("<Plug>(cursor-agent-%s)"):format(action.name))
    end
    for _, field in ipairs(require("cursor_agent.config").schema) do
      local path = field.path:gsub("^agents%.%*", "agents.NAME"):gsub("%.%*$", ".ACTION")
      table.insert(list, "cursor-agent-option-" .. path)
    end
    for name in pairs(require("cursor_agent.colour.highlights").groups) do
      table.insert(list, "hl-" .. name)
    end
    for name in pairs(require("cursor_agent.agents.presets").agents) do
      table.insert(list, "cursor-agent-agent-" .. name)
    end
    for name, value in pairs(require("cursor_agent")) do
      if type(value) == "function" then
        table.insert(list, ("cursor_agent.%s()"):format(name))
      end
    end
    return list
  ]])
  -- Every event that is fired, wherever in the code that is.
  local events = {} ---@type table<string, boolean>
  for dir, pattern in pairs({ lua = 'fire%("(CursorAgent%a+)"', ["crates/engine/src"] = '"(CursorAgent%a+)"' }) do
    for name, kind in vim.fs.dir(T.root .. "/" .. dir, { depth = 10 }) do
      for event in (kind == "file" and read(dir .. "/" .. name) or ""):gmatch(pattern) do
        events[event] = true
        wanted[#wanted + 1] = event
      end
    end
  end
  for _, event in ipairs({ "Ready", "TurnStart", "TurnEnd", "Decision", "Edit", "Exit" }) do
    T.ok(events["CursorAgent" .. event], ("CursorAgent%s is fired nowhere"):format(event))
  end
  local missing = vim.tbl_filter(function(tag)
    return not found[tag]
  end, wanted)
  T.eq(missing, {})
end)

---The Lua examples of the help, without their margin.
---@return string[]
local function examples()
  local list, block = {}, nil ---@type string[], string[]?
  for line in read("doc/cursor-agent.txt"):gmatch("[^\n]*") do
    if block and line:find("^%S") then
      list[#list + 1] = table.concat(block, "\n")
      block = nil
    end
    if block then
      block[#block + 1] = line
    elseif line:find(">lua$") then
      block = {}
    end
  end
  return list
end

T.case("the examples of the help can be pasted: each is Lua, and each option in one is right", function(child)
  local list = examples()
  T.ok(#list > 60, #list .. " examples")
  for _, example in ipairs(list) do
    local problem = child:lua(
      [[
        local text = ...
        local config = require("cursor_agent.config")
        local options = loadstring("return { " .. text .. " }")
        if options and text:find("^%s*%w+ = ") then
          return table.concat(select(2, config.check(options())), "\n")
        elseif text:find('^%s*require%("cursor_agent"%)%.setup') then
          assert(loadstring(text))()
          return table.concat(config.problems, "\n")
        end
        local run, why = loadstring(text)
        return (run or options) and "" or why
      ]],
      example
    )
    T.eq(problem, "", example)
  end
end)

T.case("every Lua call has an example that is Lua and names a call that exists", function(child)
  local chapter = assert(read("doc/cursor-agent.txt"):match("%*cursor%-agent%-lua%*(.-)\n====="))
  local calls = child:lua("return vim.tbl_keys(require('cursor_agent'))")
  local count = 0
  for name, text in chapter:gmatch("%*cursor_agent%.([%w_]+)%(%)%*\n(.-)%f[%z*]") do
    local example = text:match("Example: `(.-)`")
    T.ok(example, name .. " has no example")
    T.ok(loadstring("return " .. (example or "")), example)
    T.contains(example, name .. "(")
    T.ok(vim.list_contains(calls, name), name)
    count = count + 1
  end
  T.eq(count, #calls - 1, "calls with an example; `setup` has its own chapter")
end)

T.case("every subcommand that is promised is there and has its tag", function(child)
  local found = tags(child)
  local names = child:lua("return require('cursor_agent.command').names()")
  local promised = "open close toggle new prompt cancel stop restart mode model option sessions load accept reject "
    .. "decisions context review keep undo checkpoint todos export log login status mcp cloud"
  for name in promised:gmatch("%S+") do
    T.ok(vim.list_contains(names, name), name .. " is missing")
    T.ok(found[":CursorAgent-" .. name], name .. " has no tag")
  end
end)

T.case("the links of the help lead somewhere", function(child)
  local found = tags(child)
  local file = assert(io.open(T.root .. "/doc/cursor-agent.txt", "rb"))
  local text = file:read("*a")
  file:close()
  for link in text:gmatch("|([^|%s]+)|") do
    local known = found[link] or #child:lua("return vim.fn.getcompletion(..., 'help')", link) > 0
    T.ok(known, ("|%s| leads nowhere"):format(link))
  end
end)

-- What a new user asks, and the tag that answers it with these words.
local QUESTIONS = {
  { "How do I install it?", "cursor-agent-install", "lazy.nvim" },
  { "How do I build the library again?", "cursor-agent-build", "cargo" },
  { "How do I begin?", "cursor-agent-quickstart", ":CursorAgent" },
  { "Can I try it without an account?", "cursor-agent-demo", "new demo" },
  { "How do I send a prompt?", "cursor-agent-quickstart", "<C-s>" },
  { "How do I log in?", "cursor-agent-trouble-login", ":CursorAgent login" },
  { "How do I use an API key?", "cursor-agent-sign-in", "CURSOR_API_KEY" },
  { "What does Cursor do without asking?", "cursor-agent-asks", "approvalMode" },
  { "What if my Cursor CLI has no acp?", "cursor-agent-headless", "headless mode" },
  { "How do I stop it?", ":CursorAgent-cancel", "Stop the turn" },
  { "How do I allow or reject what it asks?", "cursor-agent-permission", "allow once" },
  { "Can it stop asking for reads?", "cursor-agent-recipe-reads", "allow" },
  { "How do I send a selection along?", "cursor-agent-mentions", "'<,'>CursorAgent" },
  { "How do I mention a file?", "cursor-agent-mentions", "@" },
  { "Why does it not see my unsaved text?", "cursor-agent-unsaved", "modified" },
  { "What did it change?", "cursor-agent-files", "CursorAgent-review" },
  { "How do I use another agent?", "cursor-agent-agents", "new NAME" },
  { "How do I change the mode or the model?", "<Plug>(cursor-agent-model)", "gM" },
  { "How do I go on with an old session?", "cursor-agent-sessions", "CursorAgent-sessions" },
  { "How do I map keys?", "cursor-agent-recipe-keys", "vim.keymap.set" },
  { "How do I change a key inside the chat?", "cursor-agent-keymaps", "keymaps = {" },
  { "How do I put it into my statusline?", "cursor-agent-recipe-statusline", "statusline" },
  { "Where do I set its width or position?", "cursor-agent-option-window.width", "Default: 0.45" },
  { "Something is wrong: where do I look?", "cursor-agent-health", "checkhealth" },
  { "How do I report a bug?", "cursor-agent-log", "save" },
  { "How do I see what a plan proposes and change it?", "cursor-agent-plan", "gA" },
}

T.case("twenty questions are answered by their tags", { width = 100, height = 40 }, function(child)
  child:lua("vim.cmd.helptags(... .. '/doc')", T.root)
  T.ok(#QUESTIONS >= 20)
  for _, question in ipairs(QUESTIONS) do
    local ask, tag, words = unpack(question)
    local lines = child:lua(
      [[
        vim.cmd.help((...))
        local row = vim.fn.line(".")
        return vim.api.nvim_buf_get_lines(0, row - 1, row + 24, false)
      ]],
      tag
    )
    T.contains(table.concat(lines, "\n"), words, ask)
  end
end)

T.case("the README's pictures are there, and small; its links into the help lead somewhere", function(child)
  local file = assert(io.open(T.root .. "/README.md", "rb"))
  local text = file:read("*a")
  file:close()
  local count = 0
  for path in text:gmatch("%]%((doc/img/[^)]+)%)") do
    count = count + 1
    local stat = vim.uv.fs_stat(T.root .. "/" .. path)
    T.ok(stat, path .. " is missing")
    local most = path:find("%.gif$") and 2048 or 200
    T.ok(stat and stat.size < most * 1024, path .. " is too large")
  end
  T.eq(count, 7)
  local found = tags(child)
  for tag in text:gmatch("`:help ([^`]+)`") do
    T.ok(found[tag], tag .. " leads nowhere")
  end
end)

T.case("the table of agents is that of the presets, and every agent's install command is in the help", function(child)
  local rows = child:lua("return require('cursor_agent.agents.presets').rows()")
  local help = read("doc/cursor-agent.txt")
  local at = assert(help:find("*cursor-agent-agents-table*", 1, true))
  local listed = help:sub(at, assert(help:find("\n<", at, true)))
  T.ok(#rows > 20, "all presets")
  -- Each was started once, and said what it can do.
  local untried = child:lua([[
    local presets = require("cursor_agent.agents.presets")
    return vim.tbl_filter(function(name) return not presets.abilities[name] end, vim.tbl_keys(presets.agents))
  ]])
  T.eq(untried, {})
  local readme = read("README.md")
  local abilities = assert(help:find("*cursor-agent-agents-abilities*", 1, true))
  local can = help:sub(abilities, assert(help:find("\n<", abilities, true)) + 1)
  local companions = assert(help:find("*cursor-agent-companions*", 1, true))
  local others = help:sub(companions, assert(help:find("\n<", companions, true)) + 1)
  for _, one in ipairs(child:lua("return require('cursor_agent.agents.presets').companions")) do
    T.ok(others:match("\n    " .. vim.pesc(one.name) .. " +" .. vim.pesc(one.how) .. "\n"), one.name)
  end
  for _, row in ipairs(rows) do
    local line = listed:match("\n    (" .. vim.pesc(row.name) .. " [^\n]*)")
    T.ok(line, row.name .. " is not in the table")
    T.contains(line, row.command)
    T.contains(line, row.login)
    T.ok(#row.can > 0 and can:match("\n    " .. vim.pesc(row.name) .. " +" .. vim.pesc(row.can) .. "\n"), row.name)
    local in_readme = readme:match("\n| `" .. vim.pesc(row.name) .. "` |[^\n]*") or ""
    T.ok(in_readme ~= "", row.name .. " is not in the README")
    if row.install ~= "comes with the plugin" then
      T.contains(help, "Install: `" .. row.install .. "`")
    end
    -- The adapter comes with the plugin; what it adapts is installed as for `cursor`.
    if row.install ~= "comes with the plugin" and row.name ~= "cursor-headless" then
      T.contains((in_readme:gsub("\\|", "|")), row.install)
    end
  end
end)
