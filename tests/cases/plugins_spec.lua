-- Other plugins, by stand-ins that do what the real ones do at the point that matters, and what agents send for other clients.

local T = require("harness")

---nvim-notify: `vim.notify` is a table that can be called.
local NVIM_NOTIFY = [[
  _G.told = {}
  vim.notify = setmetatable({}, {
    __call = function(_, message, level, opts)
      table.insert(_G.told, { message, level, opts.title })
    end,
  })
]]

T.case("nvim-notify's callable table gets the messages of commands and of the library", { width = 100 }, function(nvim)
  local ask = { permission = { toolCall = { toolCallId = "make", title = "`make`", kind = "execute" } } }
  nvim:use(T.agent({ turns = { { ask } } }))
  nvim:lua(NVIM_NOTIFY)
  nvim:keys(":CursorAgent frobnicate<CR>")
  nvim:wait("#_G.told == 1", "the message of a command")
  local told = nvim:lua("return _G.told[1]")
  T.contains(told[1], "cursor-agent: unknown subcommand `frobnicate`")
  T.eq({ told[2], told[3] }, { vim.log.levels.ERROR, "cursor-agent" })
  -- While changes are taken out of the library.
  nvim:prompt("go", { open = false })
  nvim:wait("#_G.told == 2", "the decision")
  T.contains(nvim:lua("return _G.told[2][1]"), "test asks to run a command: make")
  T.eq(nvim:api("nvim_get_mode").blocking, false)
  T.eq(nvim:messages(), "")
end)

---What else takes the place of `vim.notify`: each keeps what it was told in `_G.told`.
local REPLACEMENTS = {
  ["mini.notify, a function that Neovim wrapped"] = [[vim.notify = vim.schedule_wrap(tell)]],
  ["noice, a function"] = [[vim.notify = function(...) tell(...) end]],
  ["snacks, a table with a metatable of its own"] = [[
    local M = setmetatable({}, { __call = function(self, ...) return self.notify(...) end })
    M.notify = tell
    vim.notify = M
  ]],
}

for name, code in vim.spairs(REPLACEMENTS) do
  T.case("messages go to whatever vim.notify is at that time: " .. name, { width = 100 }, function(nvim)
    -- Neovim's own first: the plugin comes later.
    nvim:keys(":CursorAgent frobnicate<CR>")
    nvim:wait_screen("unknown subcommand `frobnicate`")
    nvim:cmd("messages clear")
    nvim:lua([[
        _G.told = {}
        local function tell(message, level, opts)
          table.insert(_G.told, { message, level, opts and opts.title })
        end
      ]] .. code)
    nvim:keys(":CursorAgent frobnicate<CR>")
    nvim:wait("#_G.told == 1", "the message")
    T.contains(nvim:lua("return _G.told[1][1]"), "unknown subcommand `frobnicate`")
    T.eq(nvim:lua("return _G.told[1][2]"), vim.log.levels.ERROR)
    T.eq(nvim:messages(), "")
  end)
end

T.case("a vim.notify that raises loses no message and stops nothing", { width = 100 }, function(nvim)
  nvim:use(T.agent({ turns = { { { text = "Hello." } } } }))
  nvim:lua("vim.notify = function() error('not now') end")
  nvim:keys(":CursorAgent frobnicate<CR>")
  nvim:wait_screen("unknown subcommand `frobnicate`")
  nvim:prompt("go", { open = false })
  nvim:wait_turns(1)
  nvim:wait(function()
    return nvim:messages():find("test is done", 1, true) or nvim:messages():find("finished", 1, true)
  end, "the end of the turn to be told")
  T.ok(not nvim:messages():find("not now", 1, true), nvim:messages())
end)

T.case("notifications that are not known are in the log and not in the chat", { width = 100 }, function(nvim)
  nvim:use(T.agent({
    turns = {
      {
        { notify = { method = "_qwen/notify", params = { sessionId = "${session}", text = "for its own client" } } },
        { notify = { method = "cursor/sparkle", params = { sessionId = "${session}" } } },
        { notify = { method = "_vendor/thing", params = vim.empty_dict() } },
        { text = "Hello." },
      },
    },
  }))
  nvim:prompt("go")
  nvim:wait_turns(1)
  nvim:wait_screen("Hello.")
  T.eq(nvim:texts("notice"), {})
  nvim:keys("<Esc>:CursorAgent log<CR>")
  for _, method in ipairs({ "_qwen/notify", "cursor/sparkle", "_vendor/thing" }) do
    nvim:wait(function()
      return table.concat(nvim:api("nvim_buf_get_lines", 0, 0, -1, false), "\n"):find(method, 1, true)
    end, method .. " in the log")
  end
end)
