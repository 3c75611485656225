-- What makes a release and what installs it agree: the names of files, the list of checksums, the notes.

local T = require("harness")
local Plugin = require("harness.plugin")

---@param path string
---@return string
local function read(path)
  local file = assert(io.open(T.root .. "/" .. path, "rb"))
  local text = file:read("*a")
  file:close()
  return text
end

---@param name string
---@param ... string
---@return vim.SystemCompleted
local function script(name, ...)
  return vim.system({ T.root .. "/scripts/" .. name, ... }, { text = true }):wait()
end

T.case("every platform the installer can name is built by the release, under the name it asks for", function(child)
  local workflow = read(".github/workflows/release.yml")
  local named = child:lua([[
    local platform = require("cursor_agent.install.platform")
    local triples = {}
    for _, arch in ipairs({ "x86_64", "aarch64" }) do
      for _, system in ipairs({ "unknown-linux-gnu", "unknown-linux-musl", "apple-darwin" }) do
        triples[arch .. "-" .. system] = platform.files(arch .. "-" .. system)
      end
    end
    return { here = platform.triple(), triples = triples }
  ]])
  T.ok(named.triples[named.here], named.here .. " is not among the platforms of a release")
  for triple, files in pairs(named.triples) do
    T.contains(workflow, triple)
    -- As scripts/build-release calls them.
    local suffix = triple:find("darwin") and "dylib" or "so"
    T.eq(files[1].asset, ("cursor_agent-%s.%s"):format(triple, suffix))
    T.eq(files[1].built, "libcursor_agent." .. suffix)
    T.eq(files[2].asset, "cursor-agent-demo-" .. triple)
    T.eq(files[3].asset, "cursor-agent-acp-" .. triple)
    T.eq(files[4].asset, "cursor-agent-cloud-" .. triple)
    T.eq(files[5].asset, "cursor-agent-mcp-" .. triple)
    T.eq(files[6].asset, "cursor-agent-connect-" .. triple)
  end
  local build = read("scripts/build-release")
  T.contains(build, '"$dir/cursor_agent-$target.$suffix"')
  T.contains(build, '"$dir/cursor-agent-demo-$target"')
  T.contains(build, '"$dir/cursor-agent-acp-$target"')
  T.contains(build, '"$dir/cursor-agent-cloud-$target"')
  T.contains(build, '"$dir/cursor-agent-mcp-$target"')
  T.contains(build, '"$dir/cursor-agent-connect-$target"')
end)

T.case("the list of checksums that a release writes is the one that is read", function(child)
  local dir = child.dir .. "/release"
  vim.fn.mkdir(dir, "p")
  local files = {
    ["cursor_agent-x.so"] = "library",
    ["cursor-agent-demo-x"] = "program",
    ["cursor-agent-acp-x"] = "adapter",
    ["cursor-agent-cloud-x"] = "cloud",
    ["cursor-agent-mcp-x"] = "server",
    ["cursor-agent-connect-x"] = "connect",
    other = "no",
  }
  for name, text in pairs(files) do
    local file = assert(io.open(dir .. "/" .. name, "wb"))
    file:write(text)
    file:close()
  end
  local written = script("release-checksums", dir)
  T.eq(written.code, 0, written.stderr)
  local list = child:lua(
    [[
      local root, text = ...
      vim.fn.writefile(vim.split(text, "\n"), root .. "/checksums.txt")
      return require("cursor_agent.install.release").checksums(root)
    ]],
    dir,
    written.stdout
  )
  T.eq(list.version, read("Cargo.toml"):match('\nversion = "([^"]+)"'))
  T.eq(list.source, vim.trim(script("source-id").stdout or ""))
  T.eq(list.files, {
    ["cursor_agent-x.so"] = vim.fn.sha256("library"),
    ["cursor-agent-demo-x"] = vim.fn.sha256("program"),
    ["cursor-agent-acp-x"] = vim.fn.sha256("adapter"),
    ["cursor-agent-cloud-x"] = vim.fn.sha256("cloud"),
    ["cursor-agent-mcp-x"] = vim.fn.sha256("server"),
    ["cursor-agent-connect-x"] = vim.fn.sha256("connect"),
  })
end)

T.case("the notes of a release are its section of the changelog", function()
  local notes = script("release-notes", "Unreleased")
  T.eq(notes.code, 0, notes.stderr)
  T.ok(not (notes.stdout or ""):find("\n## ", 1, true), "the notes go on into another section")
  T.contains(notes.stdout, "- ")
  T.eq(script("release-notes", "99.0.0").code, 1)
end)

T.case("the list in these sources is of this version, or empty", function(child)
  local list = child:lua("return require('cursor_agent.install.release').checksums(...)", T.root)
  if next(list.files) then
    T.eq(list.version, read("Cargo.toml"):match('\nversion = "([^"]+)"'))
  end
end)

T.case("repro.lua shows the plugin with nothing of the user's", function(child)
  local plugin = Plugin.copy(child)
  plugin:install_built()
  plugin:write("repro.lua", read("repro.lua"))
  local run = child:lua(
    [[
      local show = "+lua io.stdout:write(require('cursor_agent.config').get().agent, ' ', vim.fn.stdpath('data'), ' ', "
        .. "vim.fn.exists(':CursorAgent'))"
      return vim.system({ vim.v.progpath, "--clean", "--headless", "-u", ... .. "/repro.lua", show, "+qall" }):wait()
    ]],
    plugin.root
  )
  T.eq(run.code, 0, run.stderr)
  T.contains(run.stdout, "demo " .. child.work .. "/.repro/data/nvim 2")
end)
