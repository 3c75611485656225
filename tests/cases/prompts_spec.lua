-- Prompts people use again: offered after `/` beside the agent's own, sent as the text the chat shows.

local T = require("harness")

local FILES = {
  [".cursor/commands/fix.md"] = "# Fix it\n\nFix $ARGUMENTS, 100% of it.\n",
  [".cursor/commands/tidy.md"] = "---\ndescription: Tidy the code\n---\nTidy up.\n",
}

local function start(nvim, commands, options)
  local agent = T.agent({
    turns = {
      {
        commands and { update = { sessionUpdate = "available_commands_update", availableCommands = commands } }
          or { text = "Hello." },
      },
      { { text = "Done." } },
      { { text = "Again." } },
    },
  })
  nvim:use(agent, options)
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  return agent
end

---What the agent was sent, as text.
local function sent(agent, number)
  return agent:received("session/prompt")[number].params.prompt
end

T.case(
  "a file of .cursor/commands is offered, and its text is sent and shown",
  { width = 120, files = FILES },
  function(nvim)
    vim.fn.mkdir(nvim.dir .. "/home/.cursor/commands", "p")
    vim.fn.writefile({ "Be brief." }, nvim.dir .. "/home/.cursor/commands/brief.md")
    local agent = start(nvim, nil, { prompts = { why = { text = "Why is $ARGUMENTS so?", description = "Ask why" } } })
    nvim:keys("<Esc>i/")
    nvim:wait_screen("project prompt · Fix it")
    nvim:wait_screen("project prompt · Tidy the code")
    nvim:wait_screen("your prompt · Be brief.")
    nvim:wait_screen("prompt option · Ask why")
    nvim:keys("fix the parser<C-s>")
    nvim:wait_turns(1)
    T.eq(sent(agent, 1), { { type = "text", text = "# Fix it\n\nFix the parser, 100% of it." } })
    T.eq(nvim:texts("user"), { "# Fix it\n\nFix the parser, 100% of it." })
    nvim:wait_screen("Fix the parser, 100% of it.")
    nvim:keys("<Esc>i/why this<C-s>")
    nvim:wait_turns(2)
    T.eq(sent(agent, 2), { { type = "text", text = "Why is this so?" } })
  end
)

T.case("without $ARGUMENTS what follows comes after, and attachments go with it", {
  width = 120,
  files = vim.tbl_extend("error", FILES, { ["a.txt"] = "a\n" }),
}, function(nvim)
  local agent = start(nvim)
  nvim:prompt("/tidy @a.txt first")
  nvim:wait_turns(1)
  T.eq(sent(agent, 1)[1].text, "Tidy up.\n\n@a.txt first")
  T.eq(#sent(agent, 1), 2)
end)

T.case(
  "the agent's command of the same name keeps it, both are offered and marked",
  { width = 120, files = FILES },
  function(nvim)
    local agent = start(nvim, { { name = "fix", description = "The agent's own" } })
    nvim:prompt("hello")
    nvim:wait_turns(1)
    nvim:keys("<Esc>i/fi")
    nvim:wait_screen("test · The agent's own")
    nvim:wait_screen("/project:fix")
    nvim:keys("x it<C-s>")
    nvim:wait_turns(2)
    T.eq(sent(agent, 2), { { type = "text", text = "/fix it" } })
    nvim:keys("<Esc>i/project:fix it<C-s>")
    nvim:wait_turns(3)
    T.eq(sent(agent, 3)[1].text, "# Fix it\n\nFix it, 100% of it.")
  end
)
