-- Options written for another client, or not quite right, are named with what to write instead; none is ignored.

local T = require("harness")

---@param child harness.Child
---@param options string Lua
---@return string[]
local function problems(child, options)
  return child:lua(("return select(2, require('cursor_agent.config').check(%s))"):format(options))
end

-- As the documentation of each client has it.
local OTHERS = {
  ["avante.nvim"] = {
    [[{ provider = "cursor", mode = "agentic",
        acp_providers = { cursor = { command = "agent", args = { "acp" }, auth_method = "cursor_login" } } }]],
    { "`provider`", "`mode`", "`acp_providers`" },
  },
  ["agentic.nvim"] = {
    [[{ provider = "cursor-acp", acp_providers = { ["cursor-acp"] = { command = "agent", args = { "acp" } } },
        windows = { width = "40%" } }]],
    { "`provider`", "`acp_providers`", "`windows`" },
  },
  ["codecompanion.nvim"] = {
    [[{ adapters = { acp = {} }, strategies = { chat = { adapter = "cursor" } }, interactions = {} }]],
    { "`adapters`", "`strategies`", "`interactions`" },
  },
}

for client, case in pairs(OTHERS) do
  T.case("options of " .. client, function(child)
    local found = problems(child, case[1])
    T.eq(#found, #case[2], table.concat(found, "\n"))
    for _, name in ipairs(case[2]) do
      local text = table.concat(found, "\n")
      T.contains(text, ("unknown option %s: that is another plugin's name; here it is `"):format(name))
    end
  end)
end

T.case("a program and its arguments as other editors write them", function(child)
  local found = problems(child, [[{ agents = { mine = { command = "agent", args = { "acp" } } } }]])
  T.eq(found, {
    'option `agents.mine.command`: expected a list of strings, such as { "agent", "acp" }, got string',
    "unknown option `agents.mine.args`: that is another plugin's name; here it is `command`, after the program "
      .. "(:help cursor-agent-migrate)",
  })
end)

T.case("a mistake is reported to the user once, and left out", { width = 120 }, function(child)
  child:lua([[require("cursor_agent").setup({ provider = "claude", window = { width = 0.3 } })]])
  child:wait(function()
    return child:messages():find("unknown option `provider`", 1, true)
  end, "the message")
  T.eq(child:lua("return require('cursor_agent.config').get().window.width"), 0.3)
  T.eq(child:lua("return require('cursor_agent.config').get().agent"), "cursor")
end)

T.case("a key for an action that does not exist is named, also by checkhealth", function(child)
  T.eq(problems(child, [[{ keymaps = { chat = { cancle = "x" }, prompt = { send = "<C-CR>" }, chta = {} } }]]), {
    "unknown option `keymaps.chat.cancle`, did you mean `cancel`?",
    "unknown option `keymaps.chta`, did you mean `chat`?",
  })
  child:lua([[require("cursor_agent").setup({ keymaps = { chat = { cancle = "x" } } })]])
  child:cmd("checkhealth cursor_agent")
  local text = table.concat(child:api("nvim_buf_get_lines", 0, 0, -1, false), "\n")
  T.contains(text, "unknown option `keymaps.chat.cancle`")
end)

T.case("an icon that does not exist is named", function(child)
  local found = problems(child, [[{ chat = { icons = { user = ">", usr = "x" } } }]])
  T.eq(#found, 1)
  T.contains(found[1], "option `chat.icons`: unknown icon `usr`; expected one of ")
  T.eq(problems(child, [[{ chat = { icons = { user = ">" } } }]]), {})
  T.eq(#problems(child, [[{ chat = { icons = "emoji" } }]]), 1)
end)
