-- Installing the library: what is there, the release's file, cargo, and the message when nothing works.

local T = require("harness")
local Http = require("harness.http")
local Plugin = require("harness.plugin")

local CURL = vim.fn.exepath("curl")
local WGET = vim.fn.exepath("wget")

-- Builds nothing: puts the files that are built already where cargo would.
local CARGO = ([[#!/bin/sh
while [ $# -gt 0 ]; do
  [ "$1" = --target-dir ] && target=$2
  shift
done
echo "   Compiling cursor-agent-nvim" >&2
/bin/mkdir -p "$target/release"
/bin/cp '%s/lib/cursor_agent.so' "$target/release/libcursor_agent.so"
/bin/cp '%s/lib/cursor-agent-demo' "$target/release/cursor-agent-demo"
/bin/cp '%s/lib/cursor-agent-acp' "$target/release/cursor-agent-acp"
/bin/cp '%s/lib/cursor-agent-cloud' "$target/release/cursor-agent-cloud"
/bin/cp '%s/lib/cursor-agent-mcp' "$target/release/cursor-agent-mcp"
/bin/cp '%s/lib/cursor-agent-connect' "$target/release/cursor-agent-connect"
]]):format(T.root, T.root, T.root, T.root, T.root, T.root)

---@param name string
---@param run fun(child: harness.Child, plugin: harness.Plugin)
local function case(name, run)
  T.case(name, function(child)
    local plugin = Plugin.copy(child)
    Plugin.programs(child, {})
    run(child, plugin)
    -- Whatever happened, nothing half-done stays behind.
    for file in vim.fs.dir(plugin.root .. "/lib") do
      T.ok(not vim.startswith(file, ".new-"), "left behind: " .. file)
    end
  end)
end

---Serves a release: the files as they are, or as `change` makes them.
---@param files table<string, string>
---@param change? fun(asset: string, body: string): harness.Answer?
---@return harness.Http
local function serve(child, plugin, files, change)
  local version = plugin:read("Cargo.toml"):match('\nversion = "([^"]+)"')
  local server = Http.serve(function(path)
    local asset = path:match("^/v" .. vim.pesc(version) .. "/([^/]+)$")
    local body = asset and files[asset]
    if not asset or not body then
      return { status = 404 }
    end
    return change and change(asset, body) or { body = body }
  end)
  child:lua("vim.env.CURSOR_AGENT_RELEASES = ...", server.url .. "/")
  return server
end

---Whether the copy's library is the one that was built.
---@param plugin harness.Plugin
local function expect_installed(plugin)
  for _, name in ipairs({
    "cursor_agent.so",
    "cursor-agent-demo",
    "cursor-agent-acp",
    "cursor-agent-cloud",
    "cursor-agent-mcp",
    "cursor-agent-connect",
  }) do
    local file = assert(io.open(T.root .. "/lib/" .. name, "rb"))
    T.ok(file:read("*a") == plugin:read("lib/" .. name), name .. " is not the file that was built")
    file:close()
  end
end

---@param child harness.Child
---@param text string
local function expect_message(child, text)
  child:wait(function()
    return child:messages():find(text, 1, true)
  end, ("the message %q"):format(text))
end

case("a library that is built for this version is kept", function(child, plugin)
  plugin:install_built()
  local before = plugin:inode("lib/cursor_agent.so")
  local result = plugin:build(child)
  T.ok(result.ok, result.error)
  T.eq(result.said, { "the library is already up to date" })
  T.eq(plugin:inode("lib/cursor_agent.so"), before)
end)

case("the release's files are downloaded, checked, tried and installed", function(child, plugin)
  Plugin.programs(child, { curl = CURL })
  local files = plugin:release_files(child)
  plugin:write_checksums(files)
  local server = serve(child, plugin, files)
  local result = plugin:build(child)
  server:close()
  T.ok(result.ok, result.error)
  T.eq(#server.asked, vim.tbl_count(files))
  T.contains(table.concat(result.said, "\n"), "downloading cursor_agent-")
  T.eq(result.said[#result.said], "the prebuilt library is installed")
  expect_installed(plugin)
  -- The second run finds it.
  T.eq(plugin:build(child).said, { "the library is already up to date" })
end)

if WGET ~= "" then
  case("wget serves where curl is not", function(child, plugin)
    Plugin.programs(child, { wget = WGET })
    local files = plugin:release_files(child)
    plugin:write_checksums(files)
    local server = serve(child, plugin, files)
    local result = plugin:build(child)
    server:close()
    T.ok(result.ok, result.error)
    expect_installed(plugin)
  end)
end

case("redirects are followed", function(child, plugin)
  Plugin.programs(child, { curl = CURL })
  local files = plugin:release_files(child)
  plugin:write_checksums(files)
  local store = Http.serve(function(path)
    return { body = files[path:sub(2)] }
  end)
  local server = serve(child, plugin, files, function(asset)
    return { status = 302, location = store.url .. "/" .. asset }
  end)
  local result = plugin:build(child)
  server:close()
  store:close()
  T.ok(result.ok, result.error)
  expect_installed(plugin)
end)

---The ways a download can fail, with the message. cargo is missing: both reasons must be in the message.
local WRONG = {
  {
    name = "a truncated file",
    change = function(_, body)
      return { body = body:sub(1, 100000), length = #body }
    end,
    says = "bytes",
  },
  {
    name = "a file cut short by its server",
    change = function(_, body)
      return { body = body:sub(1, -2) }
    end,
    says = "is not the file of the release: its SHA-256 is",
  },
  {
    name = "a tampered file",
    change = function(_, body)
      return { body = body:sub(1, 5000) .. "\0\1" .. body:sub(5003) }
    end,
    says = "is not the file of the release: its SHA-256 is",
  },
  {
    name = "a file that is missing",
    change = function()
      return { status = 404 }
    end,
    says = "404",
  },
}

for _, wrong in ipairs(WRONG) do
  case(wrong.name .. " is refused, and what was there stays", function(child, plugin)
    Plugin.programs(child, { curl = CURL })
    plugin:write("lib/cursor_agent.so", "an older library")
    local files = plugin:release_files(child)
    plugin:write_checksums(files)
    local server = serve(child, plugin, files, wrong.change)
    local result = plugin:build(child)
    server:close()
    T.eq(result.ok, false)
    T.contains(result.error, wrong.says)
    T.contains(result.error, "cargo is not installed")
    T.contains(result.error, "rustup.rs")
    T.eq(plugin:read("lib/cursor_agent.so"), "an older library")
  end)
end

case("a file that is listed but does not load is refused", function(child, plugin)
  Plugin.programs(child, { curl = CURL })
  local files = plugin:release_files(child)
  for asset in pairs(files) do
    files[asset] = "\127ELF of another machine"
  end
  plugin:write_checksums(files)
  local server = serve(child, plugin, files)
  local result = plugin:build(child)
  server:close()
  T.eq(result.ok, false)
  T.contains(result.error, "The prebuilt library: it does not load")
  T.eq(plugin:inode("lib/cursor_agent.so"), nil)
end)

case("a release without this platform is not asked for", function(child, plugin)
  Plugin.programs(child, { curl = CURL })
  local files = plugin:release_files(child)
  plugin:write_checksums({ ["cursor_agent-riscv64gc-unknown-linux-gnu.so"] = "x" })
  local server = serve(child, plugin, files)
  local result = plugin:build(child)
  server:close()
  T.eq(result.ok, false)
  T.eq(server.asked, {})
  T.contains(result.error, "has no cursor_agent-")
end)

case("sources that changed since the release are not served by it", function(child, plugin)
  Plugin.programs(child, { curl = CURL })
  local files = plugin:release_files(child)
  plugin:write_checksums(files)
  plugin:write("src/lib.rs", "// changed\n")
  local server = serve(child, plugin, files)
  local result = plugin:build(child)
  server:close()
  T.eq(result.ok, false)
  T.eq(server.asked, {})
  T.contains(result.error, "was built from different sources")
end)

case("an address without TLS is refused", function(child, plugin)
  Plugin.programs(child, { curl = CURL })
  plugin:write_checksums(plugin:release_files(child))
  child:lua("vim.env.CURSOR_AGENT_RELEASES = 'http://mirror.example'")
  local result = plugin:build(child)
  T.eq(result.ok, false)
  T.contains(result.error, "is not an https address")
end)

case("without a release and cargo, one message names both and what to do", function(child, plugin)
  Plugin.programs(child, { curl = CURL })
  local result = plugin:build(child)
  T.eq(result.ok, false)
  T.contains(result.error, "The prebuilt library: these sources are not from a release")
  T.contains(result.error, "cargo build: cargo is not installed")
  T.contains(result.error, "install Rust (https://rustup.rs), then run `:CursorAgent build`")
end)

case("without curl and wget, cargo builds it", function(child, plugin)
  Plugin.programs(child, { cargo = CARGO })
  plugin:write_checksums(plugin:release_files(child))
  local result = plugin:build(child)
  T.ok(result.ok, result.error)
  T.eq(result.said[#result.said], "the library is built")
  expect_installed(plugin)
end)

case("what cargo says when it fails is in the message", function(child, plugin)
  Plugin.programs(child, { cargo = "#!/bin/sh\necho 'error: rustc 1.91 is needed, this is 1.60' >&2\nexit 101\n" })
  local result = plugin:build(child)
  T.eq(result.ok, false)
  T.contains(result.error, "it failed with code 101")
  T.contains(result.error, "error: rustc 1.91 is needed, this is 1.60")
end)

case("cargo is found in its own directory", function(child, plugin)
  Plugin.programs(child, {})
  vim.fn.mkdir(child.dir .. "/cargo/bin", "p")
  plugin:write("cargo", CARGO)
  assert(vim.uv.fs_rename(plugin.root .. "/cargo", child.dir .. "/cargo/bin/cargo"))
  assert(vim.uv.fs_chmod(child.dir .. "/cargo/bin/cargo", 493))
  child:lua("vim.env.CARGO_HOME = ...", child.dir .. "/cargo")
  local result = plugin:build(child)
  T.ok(result.ok, result.error)
  expect_installed(plugin)
end)

---Makes the copy one for which the library that was built is the wrong one.
local UNFIT = {
  version = { "Cargo.toml", '\nversion = "', '\nversion = "9.', "it is version" },
  interface = { "lua/cursor_agent/bridge/native.lua", "ABI = ", "ABI = 9", "its interface is version" },
}
for what, edit in pairs(UNFIT) do
  case(("a library of another %s is neither kept nor installed"):format(what), function(child, plugin)
    plugin:install_built()
    Plugin.programs(child, { cargo = CARGO })
    plugin:edit(edit[1], edit[2], edit[3])
    local before = plugin:inode("lib/cursor_agent.so")
    local result = plugin:build(child)
    T.eq(result.ok, false)
    T.contains(result.error, "The existing library: " .. edit[4])
    T.contains(result.error, "cargo build: " .. edit[4])
    T.eq(plugin:inode("lib/cursor_agent.so"), before)
  end)
end

case("a library built from other sources is rebuilt, beside the one in use", function(child, plugin)
  plugin:install_built()
  Plugin.programs(child, { cargo = CARGO })
  T.ok(plugin:build(child).ok)
  plugin:write("lib/built-from", "other\n")
  local before = plugin:inode("lib/cursor_agent.so")
  child:lua(
    [[
    _G.entry = assert(package.loadlib(... .. "/lib/cursor_agent.so", "luaopen_cursor_agent"))
    vim.cmd.lua("_G.entry()")
    package.loaded.cursor_agent_native.start({ on_wake = function() end })
  ]],
    plugin.root
  )
  local result = plugin:build(child)
  T.ok(result.ok, result.error)
  T.eq(result.said[#result.said], "the library is built")
  T.ok(plugin:inode("lib/cursor_agent.so") ~= before, "the file in use was written to")
  -- The Neovim that has the old one loaded goes on with it.
  T.eq(child:lua("return package.loaded.cursor_agent_native.pending()"), {})
end)

case("a directory that cannot be written to is named", function(child, plugin)
  plugin:write("lib", "a file in the way")
  local result = plugin:build(child)
  os.remove(plugin.root .. "/lib")
  T.eq(result.ok, false)
  T.contains(result.error, "/lib cannot be written to")
end)

case("build.lua works outside a coroutine, too", function(child, plugin)
  Plugin.programs(child, { cargo = CARGO })
  child:lua("dofile(...)", plugin.root .. "/build.lua")
  expect_installed(plugin)
  T.contains(child:messages(), "cursor-agent: the library is built")
end)

case("build.lua works by itself, and its exit code tells", function(child, plugin)
  plugin:install_built()
  local run =
    child:lua("return vim.system({ vim.v.progpath, '--clean', '-l', ... }):wait()", plugin.root .. "/build.lua")
  T.eq(run.code, 0)
  T.contains(run.stderr .. run.stdout, "the library is already up to date")
  os.remove(plugin.root .. "/lib/cursor_agent.so")
  run = child:lua("return vim.system({ vim.v.progpath, '--clean', '-l', ... }):wait()", plugin.root .. "/build.lua")
  T.eq(run.code, 1)
  T.contains(run.stderr, "cargo is not installed")
end)

case(":CursorAgent build installs the library, and the chat then works in the same Neovim", function(child, plugin)
  Plugin.programs(child, { cargo = CARGO })
  plugin:load(child)
  child:keys(":CursorAgent<CR>")
  expect_message(child, "is not built")
  expect_message(child, ":CursorAgent build")
  child:keys(":CursorAgent build<CR>")
  expect_message(child, "the library is built")
  expect_installed(plugin)
  child:use(T.agent({ turns = { { { text = "first words" } } } }))
  child:prompt("hello")
  child:wait_turns(1)
  T.eq(child:texts("agent"), { "first words" })
end)

case(":CursorAgent build says when a new Neovim is needed, and what it does not know", function(child, plugin)
  Plugin.programs(child, { cargo = CARGO })
  plugin:install_built()
  plugin:load(child)
  child:keys(":CursorAgent build<CR>")
  expect_message(child, "already up to date")
  T.ok(child:lua("return require('cursor_agent.bridge.native').get() ~= nil"))
  local before = plugin:inode("lib/cursor_agent.so")
  child:keys(":CursorAgent build cargo<CR>")
  expect_message(child, "restart Neovim to use it")
  T.ok(plugin:inode("lib/cursor_agent.so") ~= before, "the file in use was written to")
  child:keys(":CursorAgent build by-magic<CR>")
  expect_message(child, 'unknown method "by-magic"')
  T.eq(child:lua("return vim.fn.getcompletion('CursorAgent build ', 'cmdline')"), { "prebuilt", "cargo" })
end)

---A cargo whose longest step prints nothing until a file is there.
local QUIET_CARGO = [[#!/bin/sh
echo "   Compiling cursor-agent-nvim v0.1.0" >&2
while [ ! -e go-on ]; do /bin/sleep 0.05; done
]] .. CARGO:gsub("^#![^\n]*\n", "")

case("a build that prints nothing is heard of all the same, in lazy.nvim's coroutine", function(child, plugin)
  Plugin.programs(child, { cargo = QUIET_CARGO })
  child:lua("_G.thread, _G.said = coroutine.create(assert(loadfile(... .. '/build.lua'))), {}", plugin.root)
  local function step()
    child:lua([[
      for _ = 1, 10 do
        if coroutine.status(_G.thread) == "suspended" then
          local ok, value = coroutine.resume(_G.thread)
          _G.said[#_G.said + 1] = (not ok or type(value) == "string") and value or nil
        end
      end
    ]])
  end
  child:wait(function()
    step()
    local seconds = {}
    for _, text in ipairs(child:lua("return _G.said")) do
      seconds[#seconds + 1] = text:match("^cargo: Compiling cursor%-agent%-nvim.*%((%d+) s%)$")
    end
    return #seconds >= 2 and tonumber(seconds[2]) > tonumber(seconds[1])
  end, "two words about the same step")
  vim.fn.writefile({}, plugin.root .. "/go-on")
  child:wait(function()
    step()
    return child:lua("return coroutine.status(_G.thread)") == "dead"
  end, "the end")
  T.eq(child:lua("return _G.said[#_G.said]"), "the library is built")
  expect_installed(plugin)
end)

case("a build that prints nothing is heard of where the manager waits: vim.pack, mini.deps", function(child, plugin)
  Plugin.programs(child, { cargo = QUIET_CARGO })
  -- The plugin was in use before it was updated.
  child:lua("vim.g.cursor_agent_started = true")
  child:lua_later("dofile(... .. '/build.lua')", plugin.root)
  child:wait_screen("Compiling cursor-agent-nvim")
  child:wait(function()
    return tonumber(table.concat(child.screen_state:lines(), "\n"):match("nvim v0.1.0 %((%d+) s%)") or 0) >= 3
  end, "the time to go on")
  vim.fn.writefile({}, plugin.root .. "/go-on")
  child:wait_screen("the library is built; restart Neovim to use it")
  T.eq(child:api("nvim_get_mode").blocking, false)
end)

case("an abort ends the build and its programs", function(child, plugin)
  Plugin.programs(child, { cargo = "#!/bin/sh\necho $$ >cargo.pid\nexec /bin/sleep 1000\n" })
  child:lua(
    [[
    _G.thread = coroutine.create(assert(loadfile(... .. "/build.lua")))
  ]],
    plugin.root
  )
  child:wait(function()
    child:lua("coroutine.resume(_G.thread)")
    return plugin:inode("cargo.pid") and plugin:read("cargo.pid") ~= ""
  end, "cargo to run")
  local pid = tonumber(vim.trim(plugin:read("cargo.pid"))) --[[@as integer]]
  T.eq(child:lua("return { coroutine.resume(_G.thread, 'abort') }"), { false, "aborted" })
  child:wait(function()
    return not T.alive(pid)
  end, "cargo to end")
end)

T.case("the names of the sources are the same in the shell and in Lua", function(child)
  local shell = vim.system({ T.root .. "/scripts/source-id" }, { text = true }):wait()
  local lua = child:lua(
    [[
    return require("cursor_agent.install.release").source_id(...)
  ]],
    T.root
  )
  T.eq(lua, vim.trim(shell.stdout or ""))
end)

T.case("SHA-256 is right, on bytes of all kinds and lengths", function(child)
  local file = child.dir .. "/bytes"
  local text = {}
  for i = 0, 70000 do
    text[#text + 1] = string.char((i * 7 + math.floor(i / 251)) % 256)
  end
  for _, length in ipairs({ 0, 1, 55, 56, 63, 64, 65, 119, 120, 4096, 70001 }) do
    local out = assert(io.open(file, "wb"))
    out:write(table.concat(text, "", 1, length))
    out:close()
    local tool = vim.fn.executable("sha256sum") == 1 and { "sha256sum", file } or { "shasum", "-a", "256", file }
    local expected = vim.system(tool, { text = true }):wait()
    local actual = child:lua(
      [[
      local bytes = require("cursor_agent.install.release").read((...))
      return require("cursor_agent.install.sha256").hex(bytes)
    ]],
      file
    )
    T.eq(actual, (expected.stdout or ""):match("^%x+"), length .. " bytes")
  end
end)
