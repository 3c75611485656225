-- Past conversations as a person meets them: in the switcher, by commands, in the quickfix list, in an export.

local T = require("harness")

---A conversation, then Neovim again with an agent that knows nothing of it.
---@param nvim harness.Child
---@param scenario table?
---@return harness.Agent
local function earlier(nvim, scenario)
  nvim:use(T.agent({ turns = { { { text = "The lexer\nis at fault.\n" } } } }))
  nvim:prompt("fix the parser")
  nvim:wait_turns(1)
  nvim:quit("qa!")
  nvim:wait_exit()
  nvim:again()
  local agent = T.agent(scenario or {})
  nvim:use(agent)
  return agent
end

T.case("the switcher has what is stored, once, with its end beside it", { width = 120 }, function(nvim)
  earlier(nvim, {
    profile = "plain",
    sessions = {
      { sessionId = "session-1", title = "Parser", cwd = nvim.work },
      { sessionId = "other-1", title = "Another talk", cwd = nvim.work },
    },
  })
  nvim:keys(":CursorAgent sessions<CR>")
  nvim:wait_screen("Type number")
  local list = vim.tbl_filter(function(line)
    return line:match("^%d+: ") ~= nil
  end, nvim.screen_state:lines())
  T.eq(#list, 2)
  T.contains(list[1], "Parser")
  T.contains(list[2], "Another talk")
  nvim:keys("q<CR>")
  nvim:lua([[
    require("cursor_agent.picker").open = function(list)
      list.preview(list.rows[1], function(lines) _G.beside = table.concat(lines, "\n") end)
      _G.chosen = function() list.choose(list.rows[1]) end
      _G.act = function(name)
        for _, action in ipairs(list.actions) do
          if action.name == name then vim.schedule(function() action.run(list.rows[1]) end) end
        end
      end
    end
    vim.cmd("CursorAgent sessions")
  ]])
  nvim:wait("_G.beside ~= nil", "the preview")
  T.contains(nvim:lua("return _G.beside"), "> fix the parser")
  T.contains(nvim:lua("return _G.beside"), "is at fault.")
  nvim:lua("_G.act('rename')")
  nvim:wait_screen("Name of this chat: Parser")
  nvim:keys(" twice<CR>")
  nvim:wait_screen("renamed to “Parser twice”")
  nvim:lua("_G.act('delete')")
  nvim:wait_screen("Permanently delete")
  nvim:keys("n")
  nvim:wait_screen("nothing was deleted")
  nvim:lua("_G.chosen()")
  nvim:wait_screen("is at fault.")
end)

T.case("the title the agent lists is the title of the chat that is loaded", { width = 120 }, function(nvim)
  earlier(nvim, {
    profile = "plain",
    sessions = { { sessionId = "session-1", title = "The parser of lists", cwd = nvim.work, updates = {} } },
  })
  nvim:keys(":CursorAgent resume<CR>")
  nvim:wait_screen("is at fault.")
  nvim:wait_state("idle")
  T.eq(nvim:status().title, "The parser of lists")
  T.contains(
    nvim:lua("return vim.fn.bufname(require('cursor_agent.chat.registry').current().buf)"),
    "The parser of lists"
  )
end)

T.case("chats are found from another path to their directory, and by the root that is set", function(nvim)
  vim.fn.mkdir(nvim.work .. "/.git", "p")
  vim.fn.mkdir(nvim.work .. "/src", "p")
  assert(vim.uv.fs_symlink(nvim.work, nvim.dir .. "/link"))
  local options = { workspace = { root = "git" } }
  ---@param call string
  ---@return string[]
  local function titles(call)
    nvim:lua(("_G.found = nil require('cursor_agent').%s function(found) _G.found = found end)"):format(call))
    nvim:wait("_G.found ~= nil", "the answer")
    return nvim:lua("return vim.tbl_map(function(one) return one.title end, _G.found)")
  end
  for i, asked in ipairs({ "by the root", "by the link" }) do
    nvim:use(T.agent({ turns = { { { text = "One." } } } }), options)
    nvim:cmd("cd " .. nvim.work .. "/src")
    nvim:lua("require('cursor_agent').new({ cwd = ... })", i == 2 and nvim.dir .. "/link" or nil)
    nvim:prompt(asked)
    nvim:wait_turns(1)
    nvim:quit("qa!")
    nvim:wait_exit()
    nvim:again()
    nvim:use(T.agent({}), options)
    nvim:cmd("cd " .. nvim.work .. "/src")
    T.eq(titles("sessions("), { asked })
    T.eq(titles("search('by the', {},"), { asked })
    T.eq(titles("search('by the',"), { asked })
    nvim:keys(":CursorAgent resume<CR>")
    nvim:wait_screen(asked)
    nvim:quit("qa!")
    nvim:wait_exit()
    nvim:again()
  end
end)

T.case("an export says what was decided, and by what", { width = 120 }, function(nvim)
  local function permission(id, command)
    return {
      permission = {
        toolCall = {
          toolCallId = id,
          title = command,
          kind = "execute",
          status = "pending",
          rawInput = { command = command },
        },
      },
    }
  end
  local question = {
    id = "q",
    prompt = "Which store?",
    options = { { id = "a", label = "SQLite" }, { id = "b", label = "Plain files" } },
  }
  nvim:use(
    T.agent({
      turns = {
        {
          {
            update = {
              sessionUpdate = "tool_call",
              toolCallId = "t1",
              title = "`make all`",
              kind = "execute",
              status = "completed",
              rawInput = { command = "make all" },
              content = { { type = "content", content = { type = "text", text = "all: \27[32mok\27[0m\ndone\n" } } },
            },
          },
          permission("c1", "make test"),
          permission("c2", "make lint"),
          { request = { method = "cursor/ask_question", params = { toolCallId = "q1", questions = { question } } } },
          {
            request = {
              method = "cursor/create_plan",
              params = { toolCallId = "p1", name = "Store it", plan = "Write\nit down.", todos = {} },
            },
          },
          { text = "Done." },
        },
      },
    }),
    { policy = { { kind = "execute", command = "make lint", action = "allow" } } }
  )
  nvim:prompt("go")
  for _, answer in ipairs({
    "{ option = 'allow-once' }",
    "{ answers = { q = { 'b' } } }",
    "{ reject = true, reason = 'too short' }",
  }) do
    nvim:wait("(require('cursor_agent').pending()[1] or { id = _G.last }).id ~= _G.last", "a decision")
    nvim:lua(([[
      local agent = require("cursor_agent")
      _G.last = agent.pending()[1].id
      assert(agent.answer(_G.last, %s))
    ]]):format(answer))
  end
  nvim:wait_turns(1)
  nvim:cmd("CursorAgent export")
  local text = table.concat(nvim:api("nvim_buf_get_lines", 0, 0, -1, false), "\n")
  T.contains(text, "- ✓ Run    make all\n\n  ```\n  all: ok\n  done\n  ```\n")
  T.contains(text, "**permission allowed by you**")
  T.contains(text, "**permission allowed by ")
  T.contains(text, "make lint")
  T.contains(text, "- Which store? → Plain files")
  T.eq(select(2, text:gsub("it down", "")), 1, "the plan is there once")
  T.contains(text, "**plan rejected by you**: Store it (too short)\n\n> Write\n> it down.")
end)

T.case(
  "an old conversation that goes with the next prompt is above it, and is taken away",
  { width = 120 },
  function(nvim)
    local agent = earlier(nvim, { turns = { { { text = "I see." } } } })
    nvim:lua("require('cursor_agent').load('session-1', { enter = true })")
    nvim:wait_screen("the conversation so far (1 kB) ×")
    nvim:wait_state("idle")
    nvim:lua("require('cursor_agent.parts').run('detach')")
    nvim:wait(function()
      return nvim:status().carry == nil
    end, "it to be taken away")
    nvim:prompt("go on")
    nvim:wait_turns(1)
    T.eq(#agent:received("session/prompt")[1].params.prompt, 1)
  end
)

T.case("search fills the quickfix list, and <CR> there opens the chat at that place", { width = 120 }, function(nvim)
  earlier(nvim)
  nvim:keys(":CursorAgent search no such words<CR>")
  nvim:wait_screen("“no such words” was not found in any stored conversation in this directory")
  nvim:keys(":CursorAgent search THE LEXER<CR>")
  nvim:wait_screen("“THE LEXER” was not found in any stored conversation")
  nvim:keys(":CursorAgent search the lexer<CR>")
  nvim:wait_screen("fix the parser|")
  T.eq(#nvim:lua("return vim.fn.getqflist()"), 1)
  nvim:keys("<CR>")
  nvim:wait("vim.bo.filetype == 'cursoragent' and vim.api.nvim_get_current_line():find('The lexer', 1, true) ~= nil")
  nvim:keys(":CursorAgent search at fault<CR>")
  nvim:wait_screen("fix the parser|2|")
  nvim:keys("<CR>")
  nvim:wait("vim.api.nvim_get_current_line() == 'is at fault.' and vim.fn.col('.') == 4")
end)

T.case("past chats are completed, loaded, named and deleted by commands", { width = 120 }, function(nvim)
  earlier(nvim)
  T.eq(nvim:lua("return vim.fn.getcompletion('CursorAgent load ', 'cmdline')"), { "session-1", "fix the parser" })
  T.eq(nvim:lua("return vim.fn.getcompletion('CursorAgent load fix the p', 'cmdline')"), { "parser" })
  nvim:keys(":CursorAgent rename session-1 The lexer<CR>")
  nvim:wait_screen("renamed to “The lexer”")
  nvim:keys(":CursorAgent load the lexer<CR>")
  nvim:wait_screen("is at fault.")
  nvim:wait_state("idle")
  nvim:keys("<Esc>:CursorAgent close!<CR>")
  nvim:wait("#require('cursor_agent.chat.registry').all() == 0")
  nvim:keys(":CursorAgent delete session-1<CR>")
  nvim:wait_screen("Permanently delete “The lexer”?")
  nvim:keys("n")
  nvim:wait_screen("nothing was deleted")
  nvim:cmd("mode")
  nvim:wait_screen_without("for good?")
  nvim:keys(":CursorAgent delete session-1<CR>")
  nvim:wait_screen("Permanently delete “The lexer”?")
  nvim:keys("y")
  nvim:wait_screen("deleted “The lexer” here")
  nvim:wait("not vim.tbl_contains(vim.fn.getcompletion('CursorAgent load ', 'cmdline'), 'session-1')")
end)
