-- The card of a decision: it lives in the chat's column, wraps at words, counts what is out of sight, and shows the keys that work.

local T = require("harness")

---@param command string
---@param more? table of the tool call
---@return table step
local function asks(command, more)
  local call = { toolCallId = command:sub(1, 20), title = "`" .. command .. "`", kind = "execute", status = "pending" }
  return { permission = { toolCall = vim.tbl_extend("force", call, more or {}) } }
end

---The floats on the screen: where they are, their borders included.
---@param nvim harness.Child
---@return { top: integer, bottom: integer, left: integer, right: integer }[]
local function floats(nvim)
  return nvim:lua([[
    local found = {}
    for _, win in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
      local config = vim.api.nvim_win_get_config(win)
      if config.relative ~= "" then
        local edge = config.border and config.border ~= "none" and 2 or 0
        local row, col = unpack(vim.api.nvim_win_get_position(win))
        table.insert(found, { top = row, bottom = row + config.height + edge, left = col, right = col + config.width + edge })
      end
    end
    return found
  ]])
end

---@param nvim harness.Child
---@return { top: integer, bottom: integer, left: integer, right: integer }
local function column(nvim)
  return nvim:lua([[
    local chat = require("cursor_agent.chat.registry").current()
    local layout = require("cursor_agent.chat.layout")
    local win, prompt = layout.chat_window(chat), layout.prompt_window(chat)
    local row, col = unpack(vim.api.nvim_win_get_position(win))
    local bottom = vim.api.nvim_win_get_position(prompt)[1]
    return { top = row, bottom = bottom, left = col, right = col + vim.api.nvim_win_get_width(win) }
  ]])
end

---@param nvim harness.Child
local function expect_in_column(nvim)
  local room = column(nvim)
  local list = floats(nvim)
  T.ok(#list >= 2, "a frame and a body")
  local widest = 0
  for _, float in ipairs(list) do
    T.ok(
      float.left >= room.left and float.right <= room.right and float.top >= room.top and float.bottom <= room.bottom,
      ("%s is not within %s"):format(vim.inspect(float), vim.inspect(room))
    )
    widest = math.max(widest, float.right - float.left)
  end
  T.eq(widest, room.right - room.left, "as wide as the column")
end

local LONG =
  "explain integration nocapture parser commas trailing documentation everything and some more words after these"

for _, size in ipairs({ { 80, 24 }, { 120, 36 }, { 200, 50 } }) do
  T.case(
    ("in the chat's column at %d columns, and no code is covered"):format(size[1]),
    { width = size[1], height = size[2], files = { ["a.lua"] = ("line\n"):rep(60) } },
    function(nvim)
      nvim:use(T.agent({ turns = { { asks(LONG) } } }))
      nvim:cmd("edit a.lua")
      nvim:cmd("CursorAgent")
      nvim:wait_state("idle")
      nvim:keys("go<C-s>")
      nvim:wait_screen("asks to run")
      nvim:wait_screen("$ explain")
      expect_in_column(nvim)
      nvim:keys("<Esc><C-w>h")
      nvim:wait("vim.bo.filetype == 'lua'", "the code")
      nvim:keys("G")
      nvim:lua("vim.wait(30)")
      expect_in_column(nvim)
      -- No word of what is asked is broken.
      local screen = table.concat(nvim:screen(), "\n")
      for word in LONG:gmatch("%S+") do
        T.contains(screen, word)
      end
      nvim:keys(":CursorAgent decisions<CR>")
      nvim:wait(function()
        return nvim:in_card()
      end, "the card")
      nvim:wait_screen("a Allow once")
      expect_in_column(nvim)
    end
  )
end

T.case("no chat in view: at the bottom right, no wider than it has to be", { width = 120, height = 30 }, function(nvim)
  nvim:use(T.agent({ turns = { { asks("ls") } } }))
  nvim:prompt("go", { open = false })
  nvim:wait_screen("$ ls")
  for _, float in ipairs(floats(nvim)) do
    T.ok(float.right - float.left <= 84, "no wider than its text")
  end
  local frame = floats(nvim)[1]
  for _, float in ipairs(floats(nvim)) do
    frame = float.right > frame.right and float or frame
  end
  T.eq(frame.right, 120)
  -- The chat comes into view: the card goes there.
  nvim:cmd("CursorAgent")
  nvim:wait(function()
    return pcall(expect_in_column, nvim)
  end, "the card in the column")
end)

---The number of the last line of a numbered text that is on the screen, and what the card says is below.
---@param nvim harness.Child
---@return number? last
---@return number said
local function seen(nvim)
  local last, said = nil, 0 ---@type number?, number
  for _, line in ipairs(nvim:screen()) do
    last = tonumber(line:match("number (%d+)")) or last
    said = tonumber(line:match("↓ (%d+) more line")) or said
  end
  return last, said
end

for _, size in ipairs({ { 80, 24 }, { 120, 40 } }) do
  T.case(
    ("what is out of sight is counted truly, wherever it is scrolled to, at %d columns"):format(size[1]),
    { width = size[1], height = size[2] },
    function(nvim)
      local lines = {}
      for i = 1, 100 do
        lines[i] = "echo number " .. i
      end
      nvim:use(T.agent({ turns = { { asks(table.concat(lines, "\n")) } } }))
      nvim:cmd("CursorAgent")
      nvim:wait_state("idle")
      nvim:keys("go<C-s><Esc>")
      nvim:wait_screen("number 1")
      -- The line below the command says where it runs; it may wrap.
      local function check(where)
        local last, said = seen(nvim)
        local rest = nvim:lua([[
          local card = require("cursor_agent.decide.card").window()
          return vim.api.nvim_win_text_height(card, { start_row = 100 }).all
        ]])
        T.eq(said, 100 - (last or 0) + rest, where)
      end
      nvim:wait_screen("more line")
      check("waiting")
      nvim:keys("gd")
      nvim:wait(function()
        return nvim:in_card()
      end, "the card")
      nvim:wait_screen("a Allow once")
      check("entered")
      for _, keys in ipairs({ "<C-e>", "<C-d>", "<C-e><C-e>", "<C-y>", "gg", ":50<CR>zt" }) do
        nvim:keys(keys)
        nvim:lua("vim.wait(20)")
        check("after " .. keys)
      end
      nvim:keys("G")
      nvim:wait_screen_without("more line")
      nvim:keys("gg")
      nvim:wait_screen("more line")
      nvim:api("nvim_ui_try_resize", size[1] + 20, size[2] + 6)
      nvim:wait("vim.o.columns == " .. (size[1] + 20), "the new size")
      nvim:lua("vim.wait(50)")
      check("resized")
    end
  )
end

T.case("the footer shows the keys that work here and now", { width = 120, height = 30 }, function(nvim)
  nvim:use(T.agent({ turns = { { asks("ls") } } }))
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  nvim:keys("go<C-s>")
  nvim:wait_screen("<M-y> allow · <M-n> reject")
  nvim:wait_screen("a Allow once")
  nvim:keys("<Esc>")
  nvim:wait_screen("<M-y> allow · <M-n> reject · gd more")
  nvim:keys("gd")
  nvim:wait_screen("a Allow once")
  nvim:wait_screen("e reject with a reason")
  nvim:wait_screen_without("gd more")
  nvim:wait_card()
  nvim:keys("<Esc>")
  nvim:wait_screen("gd more")
end)

T.case("the footer follows the mode, and what the user has mapped", { width = 200, height = 30 }, function(nvim)
  nvim:use(T.agent({ turns = { { asks("ls") } } }), {
    keymaps = { waiting = { accept = { "<F5>", "<M-y>" } }, prompt = { decisions = "<F6>" }, global = "<Leader>a" },
  })
  nvim:lua("vim.keymap.set('x', '<F9>', '<Plug>(cursor-agent-reject)')")
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  nvim:keys("go<C-s>some words")
  nvim:wait_screen("<F5> allow · <M-n> reject · :CursorAgent decisions")
  nvim:keys("<Esc>")
  nvim:wait_screen("<F5> allow · <M-n> reject · <F6> more")
  -- In Visual mode the key that enters the card is not mapped.
  nvim:keys("v")
  nvim:wait_screen("<F5> allow · <F9> reject · :CursorAgent decisions")
  nvim:keys("<C-g>")
  nvim:wait_screen("── :CursorAgent decisions ╯")
  nvim:keys("<Esc>R")
  nvim:wait_screen("<F5> allow · <M-n> reject · :CursorAgent decisions")
  nvim:keys("<Esc>")
  nvim:wait_screen("<F6> more")
  nvim:keys("<C-w>h")
  nvim:wait_screen("<F5> allow · <M-n> reject · <Leader>ad more")
  nvim:cmd("terminal cat")
  nvim:keys("i")
  nvim:wait("vim.fn.mode() == 't'", "the terminal")
  nvim:wait_screen("── :CursorAgent decisions ╯")
  nvim:keys("<C-\\><C-n>")
  nvim:wait_screen("<F5> allow · <M-n> reject")
end)

T.case("another chat that asks is named, also where the column is narrow", { width = 80, height = 30 }, function(nvim)
  local agent = T.agent({
    turns = { { { update = { sessionUpdate = "session_info_update", title = "Fix the parser" } }, asks("ls") } },
  })
  nvim:use(agent)
  nvim:prompt("go", { open = false })
  nvim:wait_screen("$ ls")
  T.eq(nvim:sees('chat "Fix the parser"'), false, "there is no other")
  nvim:lua("require('cursor_agent').new({ enter = true })")
  nvim:wait_screen('chat "Fix the parser"')
  expect_in_column(nvim)
end)

T.case("a chat made in the background asks in the column of the one on the screen", { width = 100 }, function(nvim)
  nvim:use(T.agent({ turns = { { { text = "Hello.\n" } }, { asks("ls") } } }))
  nvim:prompt("one")
  nvim:wait_screen("Hello.")
  nvim:lua([[
    local agent = require("cursor_agent")
    agent.prompt("two", { session = agent.new({ open = false }), open = false })
  ]])
  nvim:wait_screen("$ ls")
  nvim:wait_screen('chat "two"')
  nvim:wait_screen("│╭ test asks to run a command")
end)
