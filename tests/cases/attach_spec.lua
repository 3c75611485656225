-- What else can be attached: the quickfix list, a terminal's output, images, symbols of a language server, web addresses.

local T = require("harness")
local files = require("harness.file")

local write = files.write

local OPTS = { width = 120, height = 30, files = { ["a.lua"] = "local M = {}\nreturn M\n" } }

---A PNG of this many bytes, according to its header.
---@param bytes integer?
---@return string
local function png(bytes)
  return "\137PNG\r\n\26\n" .. ("\1"):rep((bytes or 64) - 8)
end

---Programs of the case's own, which are then the only ones there are beside what they need.
---@param nvim harness.Child
---@param programs table<string, string[]>
local function programs_are(nvim, programs)
  local bin = nvim.dir .. "/bin"
  vim.fn.delete(bin, "rf")
  vim.fn.mkdir(bin, "p")
  for _, name in ipairs({ "sh", "cat", "head", "sleep" }) do
    vim.uv.fs_symlink(vim.fn.exepath(name), bin .. "/" .. name)
  end
  for name, lines in pairs(programs) do
    write(bin .. "/" .. name, "#!/bin/sh\n" .. table.concat(lines, "\n") .. "\n")
    vim.fn.setfperm(bin .. "/" .. name, "rwxr-xr-x")
  end
  nvim:lua("vim.env.PATH = ...", bin)
end

---@param nvim harness.Child
---@return harness.Agent
local function start(nvim)
  local turns = {} ---@type table[]
  for i = 1, 8 do
    turns[i] = { { text = ("Answer %d."):format(i) } }
  end
  local agent = T.agent({ turns = turns })
  nvim:use(agent)
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  return agent
end

---@param agent harness.Agent
---@param number integer
---@return table[]
local function sent(agent, number)
  return agent:received("session/prompt")[number].params.prompt
end

---What the last prompt shows beside its text.
---@param nvim harness.Child
---@return string[]
local function shown(nvim)
  return nvim:lua([[
    local user
    for _, entry in ipairs(require("cursor_agent").transcript()) do
      user = entry.kind == "user" and entry or user
    end
    return user.context
  ]])
end

---@param nvim harness.Child
---@return string
local function prompt_text(nvim)
  return nvim:lua("return require('cursor_agent.chat.registry').current().prompt:text()")
end

---Waits for a message. In Insert mode Neovim writes its own over it, so it is looked for where messages are kept.
---@param nvim harness.Child
---@param text string
local function wait_said(nvim, text)
  nvim:wait(function()
    return nvim:messages():find(text, 1, true)
  end, ("the message %q"):format(text))
end

T.case("a block that is none is refused with a message, and raises nothing", OPTS, function(nvim)
  local agent = start(nvim)
  local function prompt(block)
    return nvim:lua([[return { pcall(require("cursor_agent").prompt, "look", { context = { ... } }) }]], block)
  end
  local function refused(block, why)
    local ok, number, message = unpack(prompt(block), 1, 3)
    T.eq({ ok, number }, { true, vim.NIL })
    T.contains(message, why)
  end
  refused({ type = "nonsense", text = "x" }, "unknown variant `nonsense`, expected one of `text`, `file`")
  refused({ type = "text", text = "x", nonsense = true }, "unknown field `nonsense`")
  refused({ type = "text", text = { "x" } }, "not a prompt: ")
  refused({ text = "x" }, "context[1]: expected a mention or a block")
  T.eq(prompt({ type = "text", text = "a block" }), { true, 1 })
  nvim:wait_state("idle")
  T.eq(sent(agent, 1)[2].text, "a block")
end)

T.case("@quickfix attaches the list, and says what of a long one was cut", OPTS, function(nvim)
  local agent = start(nvim)
  nvim:keys("why @quickfix<C-s>")
  wait_said(nvim, "the quickfix list is empty")
  T.eq(prompt_text(nvim), "why @quickfix")
  nvim:lua([[
    vim.fn.setqflist({}, " ", { title = "make", items = {
      { filename = "a.lua", lnum = 2, col = 3, type = "E", text = "no such\n  name" },
      { text = "make: *** [all] Error 2" },
    } })
  ]])
  nvim:keys("<C-s>")
  nvim:wait_turns(1)
  T.eq(
    sent(agent, 1)[2].text,
    "Quickfix list of the editor (make):\n```\na.lua:2:3: error: no such name\nmake: *** [all] Error 2\n```"
  )
  T.eq(shown(nvim), { "@quickfix (2 entries)" })
  nvim:lua([[
    local items = {}
    for i = 1, 1200 do items[i] = { filename = "a.lua", lnum = i, text = "entry " .. i } end
    vim.fn.setqflist({}, " ", { items = items })
  ]])
  nvim:keys("<Esc>:CursorAgent context quickfix<CR>")
  nvim:wait_screen("@quickfix (first 500 of 1,200 entries) ×")
  -- Taken when it was attached.
  nvim:lua("vim.fn.setqflist({}, 'r')")
  nvim:keys("ifix<C-s>")
  nvim:wait_turns(2)
  local text = sent(agent, 2)[2].text
  T.contains(text, "first 500 of 1,200 entries")
  T.contains(text, "entry 500\n")
  T.ok(not text:find("entry 501", 1, true))
end)

T.case("a line that is too long alone is cut in whole characters", OPTS, function(nvim)
  local agent = start(nvim)
  nvim:lua("vim.fn.setqflist({}, ' ', { items = { { text = ('é'):rep(50000) } } })")
  nvim:keys("see @quickfix<C-s>")
  nvim:wait_turns(1)
  T.eq(shown(nvim), { "@quickfix (first 64 KB of 98 KB)" })
  local text = sent(agent, 1)[2].text
  T.ok(#text < 66000 and not text:find("\239\191\189", 1, true))
end)

T.case("@terminal attaches the last output of a terminal", OPTS, function(nvim)
  local agent = start(nvim)
  nvim:keys("why @terminal<C-s>")
  wait_said(nvim, "no terminal in this Neovim")
  nvim:lua([[
    vim.cmd("tabnew")
    _G.term = vim.api.nvim_get_current_buf()
    vim.bo.scrollback = 5000
    vim.fn.termopen({ "sh", "-c", "i=0; while [ $i -lt 700 ]; do i=$((i+1)); echo line $i; done; echo 'it failed'; cat" })
  ]])
  nvim:wait(
    "table.concat(vim.api.nvim_buf_get_lines(_G.term, 0, -1, false), '\\n'):find('it failed', 1, true) ~= nil",
    "the output"
  )
  nvim:cmd("tabprevious")
  nvim:prompt("why @terminal")
  nvim:wait_turns(1)
  local label = shown(nvim)[1]
  T.contains(label, "@terminal (last 500 of 70")
  local text = sent(agent, 1)[2].text
  T.contains(text, "line 700\nit failed\n```")
  T.ok(not text:find("line 200\n", 1, true))
end)

---How each program is asked for an image, and what it prints for one.
local READERS = {
  ["wl-paste"] = {
    'case "$*" in',
    '  "--no-newline --type image/png") cat "$IMAGE" ;;',
    "  *) exit 1 ;;",
    "esac",
  },
  xclip = {
    'case "$*" in',
    '  "-selection clipboard -t image/png -o") cat "$IMAGE" ;;',
    "  *) exit 1 ;;",
    "esac",
  },
  pngpaste = { '[ "$*" = - ] && cat "$IMAGE"' },
  osascript = {
    '[ "$1" = -e ] && [ "$2" = "the clipboard as «class PNGf»" ] || exit 1',
    'printf "«data PNGf%s»\\n" "$HEX"',
  },
}

for name, lines in vim.spairs(READERS) do
  T.case(("an image on the clipboard is attached through %s"):format(name), OPTS, function(nvim)
    local agent = start(nvim)
    write(nvim.dir .. "/image.png", png(3000))
    nvim:lua("vim.env.IMAGE = ...", nvim.dir .. "/image.png")
    nvim:lua("vim.env.HEX = ...", (png(3000):gsub(".", function(char)
      return ("%02X"):format(char:byte())
    end)))
    programs_are(nvim, { [name] = lines })
    nvim:keys("see<M-v>")
    nvim:wait_screen("img clipboard 1 (3 KB) ×")
    nvim:keys("<C-s>")
    nvim:wait_turns(1)
    local block = sent(agent, 1)[2]
    T.eq({ block.type, block.mimeType, block.data }, { "image", "image/png", vim.base64.encode(png(3000)) })
    -- Another one on the clipboard is another attachment; by a mention it is the one there when the prompt is sent.
    write(nvim.dir .. "/image.png", png(5000))
    nvim:lua("vim.env.HEX = ...", (png(5000):gsub(".", function(char)
      return ("%02X"):format(char:byte())
    end)))
    nvim:keys("and @clipboard <C-s>")
    nvim:wait_turns(2)
    T.eq(#sent(agent, 2)[2].data, #vim.base64.encode(png(5000)))
    T.eq(shown(nvim), { "img clipboard (5 KB)" })
  end)
end

T.case("a clipboard with a JPEG, with text, too large or without a program", OPTS, function(nvim)
  local agent = start(nvim)
  write(nvim.dir .. "/image.jpg", "\255\216\255\224" .. ("\1"):rep(2000))
  nvim:lua("vim.env.IMAGE = ...", nvim.dir .. "/image.jpg")
  local by_type = {
    'case "$*" in',
    "  --list-types) echo text/html; echo image/jpeg ;;",
    '  "--no-newline --type image/jpeg") cat "$IMAGE" ;;',
    '  *) echo "Clipboard content is not available as requested type" >&2; exit 1 ;;',
    "esac",
  }
  programs_are(nvim, { ["wl-paste"] = by_type })
  nvim:keys("see<M-v>")
  nvim:wait_screen("img clipboard 1 (2 KB) ×")
  nvim:keys("<C-s>")
  nvim:wait_turns(1)
  T.eq(sent(agent, 1)[2].mimeType, "image/jpeg")

  programs_are(nvim, { xclip = { 'echo "Error: target image/png not available" >&2; exit 1' } })
  nvim:keys("<M-v>")
  wait_said(nvim, "no image on the clipboard (xclip: Error: target image/png not available)")

  programs_are(nvim, { pngpaste = { "echo plain text" } })
  nvim:keys("hello @clipboard<C-s>")
  wait_said(nvim, "no image on the clipboard")
  nvim:wait(function()
    return prompt_text(nvim) == "hello @clipboard"
  end, "the prompt to come back")

  programs_are(nvim, { pngpaste = { "head -c 30000000 /dev/zero" } })
  nvim:keys("<Esc>:messages clear<CR>:CursorAgent context clipboard<CR>")
  wait_said(nvim, "the image on the clipboard is larger than 20.0 MB: it was not attached")

  programs_are(nvim, {})
  nvim:keys("<Esc>:CursorAgent context clipboard<CR>")
  wait_said(nvim, "install wl-paste, xclip, pngpaste or osascript to attach an image from the clipboard")
end)

T.case("a clipboard that does not answer keeps nothing from being typed", OPTS, function(nvim)
  start(nvim)
  programs_are(nvim, { ["wl-paste"] = { "exec sleep 60" } })
  nvim:keys("see @clipboard <C-s>")
  nvim:wait_screen("waiting for the clipboard")
  nvim:keys("a draft")
  nvim:wait_screen("a draft")
  wait_said(nvim, "it took more than 5 s")
  wait_said(nvim, "the unsent prompt is in the history")
end)

T.case("images dropped or pasted as paths are attached, and undo makes them text again", OPTS, function(nvim)
  local agent = start(nvim)
  write(nvim.work .. "/shots/one.png", png())
  write(nvim.dir .. "/My shot.png", png(100))
  write(nvim.dir .. "/it's.png", png(100))
  local function drop(text)
    nvim:keys("<Esc>ggdGi")
    nvim:wait("vim.fn.mode() == 'i'")
    nvim:api("nvim_paste", text, true, -1)
  end
  ---@param text string
  ---@param expected string
  local function becomes(text, expected)
    drop(text)
    nvim:wait(function()
      return prompt_text(nvim) == expected
    end, expected)
  end
  local spaced = "@{" .. nvim.dir .. "/My shot.png}"
  becomes(nvim.work .. "/shots/one.png", "@shots/one.png")
  becomes("shots/one.png", "@shots/one.png")
  becomes(nvim.dir .. "/My\\ shot.png ", spaced .. " ")
  becomes("'" .. nvim.dir .. "/My shot.png' ", spaced .. " ")
  becomes(nvim.dir .. "/My shot.png", spaced)
  becomes("file://" .. nvim.dir .. "/My%20shot.png", spaced)
  becomes("'" .. nvim.dir .. "/it'\\''s.png' shots/one.png", "@" .. nvim.dir .. "/it's.png @shots/one.png")
  wait_said(nvim, "2 images are attached to the prompt; u undoes that")
  nvim:keys(" what?<C-s>")
  nvim:wait_turns(1)
  T.eq(
    vim.tbl_map(function(block)
      return block.type
    end, sent(agent, 1)),
    { "text", "image", "image" }
  )
  T.contains(sent(agent, 1)[2].uri, "/it's.png")
  -- Undo brings back what was pasted, and it stays.
  drop("shots/one.png")
  nvim:wait(function()
    return prompt_text(nvim) == "@shots/one.png"
  end, "the mention")
  nvim:keys("<Esc>u")
  nvim:wait(function()
    return prompt_text(nvim) == "shots/one.png"
  end, "the path")
  -- What names no image, or no file, is text.
  for _, text in ipairs({ "shots/two.png", "a.lua", "see shots/one.png", "'unclosed.png" }) do
    drop(text)
    nvim:keys("!")
    nvim:wait(function()
      return prompt_text(nvim) == text .. "!"
    end, text)
  end
end)

T.case("an image too large names its limit, and the prompt stays", OPTS, function(nvim)
  local agent = start(nvim)
  local file = assert(io.open(nvim.work .. "/big.png", "wb"))
  file:seek("set", 21 * 1024 * 1024)
  file:write("x")
  file:close()
  nvim:keys("see @big.png<C-s>")
  wait_said(nvim, "big.png is larger than 20.0 MB: it was not attached")
  T.eq(prompt_text(nvim), "see @big.png")
  T.eq(#agent:received("session/prompt"), 0)
end)

---A language server inside the child Neovim.
local SERVER = [[
  local delay = ...
  local function answer(method, params)
    if method == "initialize" then
      return { capabilities = { documentSymbolProvider = true, workspaceSymbolProvider = true } }
    elseif method == "textDocument/documentSymbol" then
      local function range(first, last)
        return { start = { line = first, character = 0 }, ["end"] = { line = last, character = 3 } }
      end
      return {
        { name = "M", kind = 5, range = range(0, 1), selectionRange = range(0, 0), children = {
          { name = "deep", kind = 12, range = range(1, 1), selectionRange = range(1, 1) },
        } },
        { name = "long", kind = 12, range = range(0, 1999), selectionRange = range(0, 0) },
      }
    elseif method == "workspace/symbol" and params.query == "far" then
      return { { name = "far", kind = 12, location = {
        uri = vim.uri_from_fname(vim.fn.getcwd() .. "/b.lua"),
        range = { start = { line = 0, character = 0 }, ["end"] = { line = 1, character = 0 } },
      } } }
    end
    return {}
  end
  vim.lsp.start({
    name = "fake",
    root_dir = vim.fn.getcwd(),
    cmd = function()
      local closing = false
      return {
        request = function(method, params, callback)
          vim.defer_fn(function() callback(nil, answer(method, params)) end, method == "initialize" and 0 or delay)
          return true, 1
        end,
        notify = function() return true end,
        is_closing = function() return closing end,
        terminate = function() closing = true end,
      }
    end,
  })
]]

T.case("@symbol: attaches what a language server knows, here or elsewhere in the workspace", {
  width = 120,
  height = 30,
  files = { ["a.lua"] = ("one\n"):rep(2000), ["b.lua"] = "far away\nnot this\n" },
}, function(nvim)
  nvim:cmd("edit a.lua")
  nvim:lua(SERVER, 0)
  nvim:wait("#vim.lsp.get_clients({ method = 'textDocument/documentSymbol' }) == 1", "the language server")
  local agent = start(nvim)
  nvim:keys("@symbol:M")
  nvim:wait_screen("@symbol:M.deep")
  nvim:keys(".deep @symbol:far<C-e> why<C-s>")
  nvim:wait_turns(1)
  T.eq(sent(agent, 1)[2].text, "M.deep, lines 2-2 of a.lua:\n```lua\none\n```")
  T.eq(sent(agent, 1)[3].text, "far, lines 1-1 of b.lua:\n```lua\nfar away\n```")
  nvim:keys("@symbol:long <C-e>why<C-s>")
  nvim:wait_turns(2)
  T.eq(shown(nvim), { "@symbol:long (first 500 of 2,000 lines)" })
  nvim:keys("@symbol:nowhere <C-e>why<C-s>")
  wait_said(nvim, "no symbol nowhere: no language server knows it")
  nvim:wait(function()
    return prompt_text(nvim):find("@symbol:nowhere", 1, true) ~= nil
  end, "the prompt to come back")
end)

T.case("a language server that does not answer keeps nothing from being typed", OPTS, function(nvim)
  nvim:cmd("edit a.lua")
  nvim:lua(SERVER, 60000)
  nvim:wait("#vim.lsp.get_clients({ method = 'textDocument/documentSymbol' }) == 1", "the language server")
  start(nvim)
  -- What waits for a language server waits in this.
  nvim:lua([[
    local wait = vim.wait
    vim.wait = function(...)
      _G.waited = debug.traceback()
      return wait(...)
    end
  ]])
  nvim:keys("see @symbol:x and more")
  nvim:wait_screen("see @symbol:x and more")
  T.eq(nvim:lua("return _G.waited"), nil)
end)

T.case("an address is attached as a link, and nothing is fetched", OPTS, function(nvim)
  local agent = start(nvim)
  nvim:keys("see @https://example.org/a?b=c#d, and @http://example.org/@x.<C-s>")
  nvim:wait_turns(1)
  local prompt = sent(agent, 1)
  T.eq(prompt[2].type, "resource_link")
  T.eq({ prompt[2].uri, prompt[3].uri }, { "https://example.org/a?b=c#d", "http://example.org/@x" })
  T.eq(shown(nvim), { "@https://example.org/a?b=c#d", "@http://example.org/@x" })
  nvim:prompt("and", { context = { "https://example.org/" } })
  nvim:wait_turns(2)
  T.eq(sent(agent, 2)[2].uri, "https://example.org/")
  nvim:lua_later("vim.cmd('stopinsert | CursorAgent context https://example.org/' .. ('x'):rep(3000))")
  wait_said(nvim, "at most 2 KB can be attached")
end)
