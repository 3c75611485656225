-- The list of chats in picker plugins: each is stood in for by what its interface gives and asks of a list.

local T = require("harness")

---@type table<string, string> what stands in for each plugin; `_G.shown` is what it has of the list
local PLUGINS = {
  snacks = [[
    package.loaded["snacks"] = { config = {}, picker = { pick = function(opts)
      local picker = { closed = false, close = function(self) self.closed = true end }
      local function chunks(item)
        local words = {}
        for _, chunk in ipairs(opts.format(item, picker)) do words[#words + 1] = chunk[1] end
        return table.concat(words)
      end
      _G.shown = {
        rows = vim.tbl_map(chunks, opts.items),
        preview = function(i)
          local ctx = { item = opts.items[i], preview = {
            reset = function() _G.beside = nil end,
            set_lines = function(_, lines) _G.beside = lines end,
          } }
          opts.preview(ctx)
        end,
        choose = function(i) opts.confirm(picker, opts.items[i]) assert(picker.closed) end,
        press = function(i, key)
          local action = opts.actions[opts.win.input.keys["<a-" .. key .. ">"][1] ]
          action(picker, opts.items[i])
          assert(picker.closed)
        end,
      }
    end } }
  ]],
  telescope = [[
    local maps, selected = {}, nil
    local replaced
    package.loaded["telescope.actions"] = {
      close = function() _G.closed = true end,
      select_default = { replace = function(_, run) replaced = run end },
    }
    package.loaded["telescope.actions.state"] = { get_selected_entry = function() return selected end }
    package.loaded["telescope.finders"] = { new_table = function(opts) return opts end }
    package.loaded["telescope.config"] = { values = { generic_sorter = function() return {} end } }
    package.loaded["telescope.previewers"] = { new_buffer_previewer = function(opts) return opts end }
    package.loaded["telescope.pickers"] = { new = function(_, opts)
      return { find = function()
        local entries = vim.tbl_map(opts.finder.entry_maker, opts.finder.results)
        opts.attach_mappings(0, function(_, key, run) maps[key] = run end)
        _G.shown = {
          rows = vim.tbl_map(function(entry) return (entry.display(entry)) end, entries),
          preview = function(i)
            local buf = vim.api.nvim_create_buf(false, true)
            opts.previewer.define_preview({ state = { bufnr = buf } }, entries[i], {})
            vim.api.nvim_buf_attach(buf, false, { on_lines = vim.schedule_wrap(function()
              _G.beside = vim.api.nvim_buf_get_lines(buf, 0, -1, false)
            end) })
            _G.beside = vim.api.nvim_buf_get_lines(buf, 0, -1, false)
          end,
          choose = function(i) selected = entries[i] replaced() assert(_G.closed) end,
          press = function(i, key) selected = entries[i] maps["<M-" .. key .. ">"]() assert(_G.closed) end,
        }
      end }
    end }
  ]],
  ["fzf-lua"] = [[
    package.loaded["fzf-lua"] = { fzf_exec = function(lines, opts)
      assert(opts.fzf_opts["--with-nth"] == "2..")
      _G.shown = {
        rows = vim.tbl_map(function(line) return (line:gsub("^%d+\t", "")) end, lines),
        preview = function(i) _G.beside = vim.split(opts.preview({ lines[i] }), "\n") end,
        choose = function(i) opts.actions.default({ lines[i] }) end,
        press = function(i, key) opts.actions["alt-" .. key]({ lines[i] }) end,
      }
    end }
  ]],
  ["mini.pick"] = [[
    local current
    _G.MiniPick = {
      get_picker_matches = function() return { current = current } end,
      start = function(opts)
        local items = opts.source.items
        _G.shown = {
          rows = vim.tbl_map(function(item) return item.text end, items),
          preview = function(i)
            local buf = vim.api.nvim_create_buf(false, true)
            opts.source.preview(buf, items[i])
            vim.wait(2000, function() return vim.api.nvim_buf_line_count(buf) > 1 end, 10)
            _G.beside = vim.api.nvim_buf_get_lines(buf, 0, -1, false)
          end,
          choose = function(i) assert(not opts.source.choose(items[i])) end,
          press = function(i, key)
            current = items[i]
            for _, map in pairs(opts.mappings) do
              if map.char == "<M-" .. key .. ">" then assert(map.func()) end
            end
          end,
        }
      end,
    }
  ]],
}

for name, code in vim.spairs(PLUGINS) do
  T.case(("%s shows the chats, their last lines, and has the keys"):format(name), { width = 120 }, function(nvim)
    nvim:use(T.agent({ turns = { { { text = "One is here." } }, { { text = "Two is here." } } } }))
    nvim:prompt("do one")
    nvim:wait_turns(1)
    nvim:cmd("CursorAgent new")
    nvim:prompt("do two")
    nvim:wait_turns(2)
    nvim:quit("qa!")
    nvim:again()
    nvim:use(T.agent({ sessions = { { sessionId = "session-1" }, { sessionId = "session-2" } } }))
    nvim:lua(code)
    T.eq(nvim:lua("return require('cursor_agent.picker').which()"), name)
    nvim:lua("require('cursor_agent').load('session-2')")
    nvim:wait_state("idle")
    nvim:cmd("stopinsert | CursorAgent sessions")
    nvim:wait("_G.shown ~= nil", "the list")
    local rows = nvim:lua("return _G.shown.rows")
    T.eq(#rows, 2)
    T.contains(rows[1], "do two")
    T.contains(rows[2], "do one")
    for i, text in ipairs({ "Two is here.", "One is here." }) do
      nvim:lua("_G.beside = nil _G.shown.preview(...)", i)
      nvim:wait(function()
        return nvim:lua("return table.concat(_G.beside or {}, '\\n')"):find(text, 1, true)
      end, text)
    end
    nvim:lua("_G.shown.press(2, 'r')")
    nvim:wait_screen("Name of this chat: do one")
    nvim:keys(" more<CR>")
    nvim:wait_screen("renamed to “do one more”")
    nvim:lua("_G.shown.choose(2)")
    nvim:wait(function()
      return nvim:texts("user")[1] == "do one"
    end, "the past chat")
    nvim:wait_state("idle")
  end)
end

T.case("a picker that fails leaves the list to Neovim's own", { width = 120 }, function(nvim)
  nvim:use(T.agent({ turns = { { { text = "One is here." } } } }))
  nvim:lua([[package.loaded["fzf-lua"] = { fzf_exec = function() error("no fzf here") end }]])
  nvim:prompt("do one")
  nvim:wait_turns(1)
  nvim:cmd("CursorAgent new")
  nvim:wait_state("idle")
  nvim:keys("<Esc>:CursorAgent sessions<CR>")
  nvim:wait_screen("Type number")
  nvim:wait_screen("do one")
end)
