-- Completion in the prompt: our own menu and its keys, and the plugins that complete instead of it.

local T = require("harness")

local OPTS = {
  width = 100,
  height = 24,
  files = { ["src/parser.lua"] = "return 1\n", ["src/printer.lua"] = "return 2\n", ["green.txt"] = "grass\n" },
}

local COMMANDS = {
  { name = "compact", description = "Make it shorter" },
  { name = "review", description = "Look at the changes" },
}

---Opens a chat whose agent has two slash commands; the cursor is in its prompt, in Insert mode.
---@param nvim harness.Child
---@param turns table[]?
---@return harness.Agent
local function start(nvim, turns)
  local agent = T.agent({
    turns = vim.list_extend({
      { { update = { sessionUpdate = "available_commands_update", availableCommands = COMMANDS } } },
    }, turns or { { { text = "Yes." } } }),
  })
  nvim:use(agent)
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  nvim:prompt("go")
  nvim:wait_turns(1)
  nvim:wait("#(require('cursor_agent').status().commands or {}) == 2", "the commands")
  nvim:wait("#require('cursor_agent.prompt.listing').files(vim.fn.getcwd()) == 3", "the files")
  nvim:wait("vim.api.nvim_get_mode().mode == 'i'", "Insert mode")
  return agent
end

---@param nvim harness.Child
---@return string
local function line(nvim)
  return nvim:api("nvim_get_current_line")
end

local function menu(nvim)
  nvim:wait("vim.fn.pumvisible() == 1", "the menu")
end

local function no_menu(nvim)
  T.eq(nvim:lua("return vim.fn.pumvisible()"), 0)
end

T.case("<C-e> dismisses the menu until the next @ or /", OPTS, function(nvim)
  start(nvim)
  nvim:keys("see @p")
  menu(nvim)
  nvim:keys("<C-e>")
  nvim:wait("vim.fn.pumvisible() == 0", "the menu to close")
  T.eq(line(nvim), "see @p")
  nvim:keys("arse")
  T.eq(line(nvim), "see @parse")
  no_menu(nvim)
  nvim:keys("<BS>")
  no_menu(nvim)
  nvim:keys(" and @g")
  menu(nvim)
  nvim:wait_screen("@green.txt")
  nvim:keys("<C-e><Esc>cc/")
  menu(nvim)
  nvim:wait_screen("/compact")
  -- However the key is mapped.
  nvim:keys("<Esc>cc")
  nvim:cmd("inoremap <expr> <C-g> pumvisible() ? '<C-e>' : '<C-g>'")
  nvim:keys("@p")
  menu(nvim)
  nvim:keys("<C-g>a")
  T.eq(line(nvim), "@pa")
  no_menu(nvim)
end)

T.case("<Tab> and <CR> accept what is selected, and are themselves otherwise", OPTS, function(nvim)
  start(nvim)
  nvim:keys("@pars")
  menu(nvim)
  nvim:keys("<C-n><Tab> and ")
  T.eq(line(nvim), "@src/parser.lua and ")
  nvim:keys("@prin")
  menu(nvim)
  nvim:keys("<C-n><CR>, too")
  T.eq(nvim:api("nvim_buf_get_lines", 0, 0, -1, false), { "@src/parser.lua and @src/printer.lua, too" })
  nvim:keys("<Esc>cc@gre")
  menu(nvim)
  nvim:keys("<CR>more")
  T.eq(nvim:api("nvim_buf_get_lines", 0, 0, -1, false), { "@gre", "more" })
  -- The user's own <Tab>, while nothing is selected and where there is no menu.
  nvim:cmd("inoremap <Tab> TAB")
  nvim:keys("<Tab>")
  T.eq(line(nvim), "moreTAB")
  nvim:keys(" @gr")
  menu(nvim)
  nvim:keys("<Tab>")
  nvim:wait("vim.api.nvim_get_current_line() == 'moreTAB @grTAB'", "the user's <Tab>")
end)

T.case("sending and leaving close the menu", OPTS, function(nvim)
  local agent = start(nvim)
  nvim:keys("look at @pars")
  menu(nvim)
  nvim:keys("<C-s>")
  nvim:wait_turns(2)
  T.eq(agent:received("session/prompt")[2].params.prompt[1].text, "look at @pars")
  no_menu(nvim)
  T.eq(line(nvim), "")
  nvim:keys("next @g")
  menu(nvim)
  nvim:keys("<Cmd>wincmd p<CR>")
  nvim:wait("vim.bo.filetype ~= 'cursoragent-prompt'", "another window")
  no_menu(nvim)
  nvim:cmd("stopinsert | CursorAgent open")
  nvim:wait("vim.bo.filetype == 'cursoragent-prompt'", "the prompt")
  T.eq(line(nvim), "next @g")
  nvim:keys("<Esc>A")
  nvim:keys("r")
  menu(nvim)
  nvim:keys("<Esc>")
  nvim:wait("vim.api.nvim_get_mode().mode == 'n'", "Normal mode")
  no_menu(nvim)
  T.eq(line(nvim), "next @gr")
end)

T.case("the menu says nothing below the prompt, and 'shortmess' stays the user's", OPTS, function(nvim)
  start(nvim)
  local before = nvim:lua("return vim.o.shortmess")
  nvim:keys("@pars")
  menu(nvim)
  nvim:wait_screen("@src/parser.lua")
  T.ok(not nvim:sees("User defined completion"), "a message below the menu")
  nvim:keys("<C-n>")
  nvim:wait("vim.fn.complete_info({ 'selected' }).selected == 0", "an item selected")
  nvim:cmd("redraw")
  T.ok(not nvim:sees("match 1"), "a message below the menu")
  nvim:keys("<C-y>")
  nvim:wait(("vim.o.shortmess == %q"):format(before), "'shortmess'")
  nvim:keys(" @g")
  menu(nvim)
  nvim:keys("<Esc>")
  nvim:wait(("vim.o.shortmess == %q"):format(before), "'shortmess' again")
end)

T.case("a menu that is asked for again while it is open stays quiet, and <Tab> accepts", OPTS, function(nvim)
  start(nvim)
  local before = nvim:lua("return vim.o.shortmess")
  -- As a person types: each letter finds the menu open. At the last one it has another list.
  for letter in ("@pars"):gmatch(".") do
    nvim:keys(letter)
    menu(nvim)
  end
  nvim:wait("#vim.fn.complete_info({ 'items' }).items == 1", "the only file")
  nvim:cmd("redraw")
  T.ok(not nvim:sees("User defined completion"), "a message below the menu")
  nvim:keys("<C-n><Tab>!")
  nvim:wait("vim.api.nvim_get_current_line() == '@src/parser.lua!'", "the file")
  nvim:wait(("vim.o.shortmess == %q"):format(before), "'shortmess'")
  nvim:wait("vim.fn.maparg('<Tab>', 'i', false, true).buffer ~= 1", "<Tab> to be the user's")
end)

---blink.cmp, as far as its sources go: options, the calls that add to them, and what it would ask which source for.
local BLINK = [[
  local config = {
    enabled = function() return vim.bo.buftype ~= "prompt" and vim.b.completion ~= false end,
    sources = {
      default = { "lsp", "path", "snippets", "buffer" },
      per_filetype = {},
      providers = {
        lsp = { module = "blink.cmp.sources.lsp" },
        path = { module = "blink.cmp.sources.path", score_offset = 3 },
        buffer = { module = "blink.cmp.sources.buffer", score_offset = -3 },
      },
    },
  }
  local added = {}
  package.loaded["blink.cmp.config"] = config
  package.loaded["blink.cmp"] = {
    add_source_provider = function(id, provider)
      assert(config.sources.providers[id] == nil, "provider " .. id .. " already exists")
      config.sources.providers[id] = provider
    end,
    add_filetype_source = function(filetype, id)
      added[filetype] = added[filetype] or {}
      table.insert(added[filetype], id)
    end,
  }
  _G.blink = { config = config, added = added }
]]

---What a running blink.cmp has beside its modules.
local BLINK_RUNS = "vim.api.nvim_set_hl(0, 'BlinkCmpMenu', { link = 'Pmenu' })"

T.case("blink.cmp is given our source by itself, above its own, and its menu is the only one", OPTS, function(nvim)
  nvim:lua(BLINK .. BLINK_RUNS)
  start(nvim)
  nvim:keys("@pars")
  nvim:wait("_G.blink.added['cursoragent-prompt'] ~= nil", "the source")
  T.eq(nvim:lua("return _G.blink.added"), { ["cursoragent-prompt"] = { "cursor_agent" } })
  local provider = nvim:lua([[
    local provider = vim.deepcopy(_G.blink.config.sources.providers.cursor_agent)
    provider.fallbacks = provider.fallbacks({}, { "lsp", "path", "cursor_agent", "buffer" })
    return provider
  ]])
  T.eq(provider.module, "cursor_agent.completion.blink")
  T.ok(provider.score_offset > 3, "above paths and words of buffers")
  -- After `/` its list of the root directory would be below our commands.
  T.eq(provider.fallbacks, { "lsp", "path", "buffer" })
  nvim:keys("er and @prin")
  T.eq(line(nvim), "@parser and @prin")
  no_menu(nvim)
  T.eq(nvim:lua("return #_G.blink.added['cursoragent-prompt']"), 1)
  -- Where it is switched off, ours is back.
  nvim:lua("vim.b.completion = false")
  nvim:keys("<Esc>cc@pars")
  menu(nvim)
end)

T.case("blink.cmp that is loaded and not set up, or has our source in its options", OPTS, function(nvim)
  nvim:lua(BLINK)
  start(nvim)
  -- Loaded for its capabilities only: nothing of it runs.
  nvim:keys("@pars")
  menu(nvim)
  T.eq(nvim:lua("return _G.blink.added"), {})
  nvim:keys("<Esc>cc")
  nvim:lua("_G.blink.config.sources.providers.mine = { module = 'cursor_agent.completion.blink' }")
  nvim:lua(BLINK_RUNS)
  nvim:keys("@pars")
  nvim:wait("_G.blink.added['cursoragent-prompt'] ~= nil", "the source")
  T.eq(nvim:lua("return _G.blink.added"), { ["cursoragent-prompt"] = { "mine" } })
  no_menu(nvim)
end)

T.case("a blink.cmp that takes no source leaves the menu to us", OPTS, function(nvim)
  nvim:lua(BLINK .. BLINK_RUNS .. " package.loaded['blink.cmp'].add_source_provider = nil")
  start(nvim)
  nvim:keys("@pars")
  menu(nvim)
  T.eq(nvim:messages(), "")
end)

T.case(
  "blink.cmp 2 says itself whether it completes, and one without options is given the source too",
  OPTS,
  function(nvim)
    nvim:lua(BLINK .. BLINK_RUNS .. [[
    _G.blink.config.enabled = true
    package.loaded["blink.cmp"].is_enabled = function() return vim.b.completion ~= false end
  ]])
    start(nvim)
    nvim:keys("@pars")
    nvim:wait("_G.blink.added['cursoragent-prompt'] ~= nil", "the source")
    no_menu(nvim)
    nvim:lua("vim.b.completion = false")
    nvim:keys("<Esc>cc@pars")
    menu(nvim)
    nvim:keys("<Esc>cc")
    nvim:lua([[
    package.loaded["blink.cmp.config"], vim.b.completion = nil, nil
    package.loaded["cursor_agent.completion.companions"].refused["blink.cmp"] = nil
    package.loaded["blink.cmp"].is_enabled = nil
  ]])
    nvim:keys("@pars")
    nvim:wait("vim.api.nvim_get_current_line() == '@pars'", "the text")
    no_menu(nvim)
  end
)

T.case(
  "both sources count as their plugin does, and serve the chat after the plugin is loaded again",
  OPTS,
  function(nvim)
    start(nvim)
    local function ranges()
      return nvim:lua([[
      _G.sources = _G.sources or {
        blink = require("cursor_agent.completion.blink").new(),
        cmp = require("cursor_agent.completion.cmp").new(),
      }
      local line, found = "ä😀 @gre", {}
      _G.sources.blink:get_completions({ line = line, cursor = { 1, #line } }, function(answer)
        found.blink = answer.items[1] and answer.items[1].textEdit
      end)
      _G.sources.cmp:complete({ context = { cursor_before_line = line, cursor = { row = 1 } } }, function(answer)
        found.cmp = answer.items[1] and answer.items[1].textEdit
      end)
      return found
    ]])
    end
    local function expect()
      local found = ranges()
      for plugin, columns in pairs({ blink = { 7, 11 }, cmp = { 4, 8 } }) do
        local edit = found[plugin]
        T.ok(edit, "nothing for " .. plugin)
        T.eq(edit.newText, "@green.txt")
        T.eq({ edit.range.start.character, edit.range["end"].character }, columns, plugin)
      end
    end
    expect()
    nvim:keys("<Esc>")
    nvim:lua(
      [[
      require("cursor_agent").deactivate()
      for name in pairs(package.loaded) do
        if vim.startswith(name, "cursor_agent.") or name == "cursor_agent" then
          package.loaded[name] = nil
        end
      end
      vim.g.loaded_cursor_agent = nil
      vim.cmd.source(... .. "/plugin/cursor_agent.lua")
    ]],
      T.root
    )
    nvim:wait("vim.bo.filetype == 'cursoragent-prompt'", "the chat back")
    nvim:wait("#require('cursor_agent.prompt.listing').files(vim.fn.getcwd()) == 3", "the files")
    expect()
  end
)

---nvim-cmp: registered sources, and options by buffer over the global ones.
local CMP = [[
  local registered, buffers = {}, {}
  local global = { enabled = function() return vim.b.no_cmp == nil end, sources = { { name = "buffer", group_index = 1 } } }
  local cmp = { setup = {} }
  function cmp.register_source(name, source)
    table.insert(registered, { name = name, source = source })
  end
  function cmp.get_registered_sources() return registered end
  function cmp.get_config()
    return vim.tbl_extend("force", global, buffers[vim.api.nvim_get_current_buf()] or {})
  end
  function cmp.setup.buffer(options) buffers[vim.api.nvim_get_current_buf()] = options end
  package.loaded["cmp"] = cmp
  _G.cmp = { registered = registered, buffers = buffers }
]]

T.case("nvim-cmp is given our source by itself, before its own, and its menu is the only one", OPTS, function(nvim)
  nvim:lua(CMP)
  start(nvim)
  nvim:keys("@pars")
  nvim:wait("#_G.cmp.registered == 1", "the source")
  T.eq(nvim:lua("return _G.cmp.registered[1].name"), "cursor_agent")
  T.eq(nvim:lua("return _G.cmp.buffers[vim.api.nvim_get_current_buf()].sources"), {
    { name = "cursor_agent", group_index = 1 },
    { name = "buffer", group_index = 2 },
  })
  nvim:keys("er @prin")
  T.eq(line(nvim), "@parser @prin")
  no_menu(nvim)
  T.eq(nvim:lua("return #_G.cmp.registered"), 1)
  nvim:lua("vim.b.no_cmp = true")
  nvim:keys("<Esc>cc@pars")
  menu(nvim)
end)

T.case("a plugin that is loaded by InsertEnter is found", OPTS, function(nvim)
  nvim:lua("_G.CMP = ...", CMP)
  nvim:lua(
    [[vim.api.nvim_create_autocmd("InsertEnter", { once = true, callback = function() loadstring(_G.CMP)() end })]]
  )
  start(nvim)
  nvim:wait("_G.cmp and #_G.cmp.registered == 1", "the source")
  nvim:keys("@pars")
  T.eq(line(nvim), "@pars")
  no_menu(nvim)
end)

---mini.completion: words of buffers as soon as something is typed, unless it is switched off in the buffer; its own
---'completefunc' in every buffer that is entered, even then.
local MINI = [[
  vim.api.nvim_create_autocmd("BufEnter", {
    callback = function() vim.bo.completefunc = "v:lua.mini_completefunc" end,
  })
  _G.mini_completefunc = function(findstart) return findstart == 1 and -3 or {} end
  package.loaded["mini.completion"] = {}
  vim.api.nvim_create_autocmd("InsertCharPre", {
    callback = function()
      if vim.b.minicompletion_disable ~= true then
        vim.schedule(function() vim.api.nvim_feedkeys(vim.keycode("<C-g><C-g><C-n>"), "n", false) end)
      end
    end,
  })
]]

T.case("mini.completion takes no source: it is kept out of the prompt and our menu is used", OPTS, function(nvim)
  nvim:lua(MINI)
  start(nvim)
  nvim:keys("@pars")
  nvim:wait_screen("@src/parser.lua")
  nvim:keys("<C-n><C-y> ")
  T.eq(line(nvim), "@src/parser.lua ")
  nvim:keys("/x")
  T.eq(line(nvim), "@src/parser.lua /x")
  no_menu(nvim)
end)

T.case("Neovim's own 'autocomplete' is kept out of the prompt", OPTS, function(nvim)
  nvim:lua("if vim.fn.exists('+autocomplete') == 1 then vim.o.autocomplete = true end")
  start(nvim)
  nvim:keys("parser pars")
  T.eq(line(nvim), "parser pars")
  no_menu(nvim)
  nvim:keys(" @pars")
  nvim:wait_screen("@src/parser.lua")
end)
