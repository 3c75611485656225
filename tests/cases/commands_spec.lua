-- A command in a text of the chat: its colon is on the row of its name, at every width.

local T = require("harness")

---The rows of the chat that end with the colon of the command on the next one.
---@param nvim harness.Child
---@return string[]
local function parted(nvim)
  local screen, found = nvim:screen(), {}
  for i = 1, #screen - 1 do
    local above, below = screen[i]:match("│(.*)$") or "", screen[i + 1]:match("│(.*)$") or ""
    if above:find(":%s*$") and below:find("^%s*%a") then
      found[#found + 1] = above .. "/" .. below
    end
  end
  return found
end

---@param nvim harness.Child
local function check_widths(nvim)
  for width = 60, 200, 7 do
    nvim:api("nvim_ui_try_resize", width, 40)
    nvim:wait("vim.o.columns == " .. width, "the new width")
    nvim:wait(function()
      nvim:cmd("redraw")
      return #parted(nvim) == 0
    end, ("each colon on the row of its command, not %s at %d columns"):format(vim.inspect(parted(nvim)), width))
  end
end

local SENTENCE =
  "You can review it with `:CursorAgent review`, change the mode (:CursorAgent mode plan) or read :help index now."

T.case("at every width, however the text came, also in a prompt", { width = 100, height = 40 }, function(nvim)
  local turn = {} ---@type table[]
  for i = 1, 9 do
    turn[#turn + 1] = { text = ("ab "):rep(i) .. SENTENCE .. "\n\n" }
  end
  local streamed = {} ---@type table[]
  for piece in ("- item: " .. SENTENCE .. "\n"):gmatch("..?.?") do
    streamed[#streamed + 1] = { text = piece }
  end
  nvim:use(T.agent({ turns = { turn, streamed } }))
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  nvim:keys(SENTENCE .. "<C-s>")
  nvim:wait_turns(1)
  check_widths(nvim)
  nvim:keys(SENTENCE .. "<C-s>")
  nvim:wait_turns(2)
  check_widths(nvim)
  -- What is yanked is what was said.
  nvim:keys("<Esc><C-w>k")
  nvim:wait("vim.bo.filetype == 'cursoragent'", "the chat")
  nvim:keys("G?- item<CR>yy")
  nvim:wait(("vim.trim(vim.fn.getreg('\"')) == %q"):format("- item: " .. SENTENCE), "the line as it is")
end)

T.case("at the end of a chat that is followed nothing is hidden", { width = 100, height = 24 }, function(nvim)
  local turn = {} ---@type table[]
  for i = 1, 30 do
    turn[#turn + 1] = { text = ("ab "):rep(i % 9) .. SENTENCE .. "\n\n" }
  end
  turn[#turn + 1] = { text = "The end." }
  nvim:use(T.agent({ turns = { turn } }))
  nvim:prompt("go")
  nvim:wait_turns(1)
  nvim:wait_screen("The end.")
  T.eq(parted(nvim), {})
end)
