-- Puts the library into `lib/`: the one that is there when it fits, the release's, or one built with cargo.

local download = require("cursor_agent.install.download")
local platform = require("cursor_agent.install.platform")
local private = require("cursor_agent.files.private")
local release = require("cursor_agent.install.release")
local sha256 = require("cursor_agent.install.sha256")
local task = require("cursor_agent.install.task")

local M = {}

-- Names the sources the files in `lib/` were built from.
local STAMP = "built-from"
-- What is being installed lies beside what may be in use, under such names.
local UNFINISHED = ".new-"
local STALE_S = 3600
local PROBE_MS = 20000
local BUILD_MS = 30 * 60 * 1000
-- The mode 0700: only the user may touch what Neovim loads.
local EXECUTABLE = 448
-- Lines of a failed build that reach the message.
local TAIL_LINES = 6

---@class (exact) cursor_agent.install.Wanted
---@field root string the plugin's directory
---@field version string
---@field abi integer
---@field source string? id of the library's sources
---@field triple string? of this platform
---@field no_triple string? why there is none

---@alias cursor_agent.install.Way "kept"|"prebuilt"|"cargo"

---@param text string
---@return string
local function tail(text)
  local lines = vim.split(vim.trim(text), "\n")
  return table.concat(lines, "\n    ", math.max(1, #lines - TAIL_LINES + 1))
end

---Loads a library in another Neovim and compares what it says of itself.
---@param wanted cursor_agent.install.Wanted
---@param path string
---@return boolean fits, string? problem
local function try(wanted, path)
  local script = wanted.root .. "/lua/cursor_agent/install/probe.lua"
  -- stylua: ignore
  local output, broken = task.run(
    { vim.v.progpath, "--clean", "--headless", "-n", "-l", script, path },
    { timeout_ms = PROBE_MS }
  )
  if not output then
    return false, "it does not load: " .. broken
  elseif output.code ~= 0 then
    local said = vim.trim(output.stderr)
    return false, "it does not load: " .. (said ~= "" and tail(said) or "code " .. output.code)
  end
  local ok, found = pcall(vim.json.decode, output.stdout)
  if not ok or type(found) ~= "table" then
    return false, "unexpected output when loading it: " .. vim.inspect(output.stdout:sub(1, 200))
  elseif found.abi ~= wanted.abi then
    return false, ("its interface is version %s, the plugin needs %d"):format(tostring(found.abi), wanted.abi)
  elseif found.version ~= wanted.version then
    return false, ("it is version %s, the plugin is %s"):format(tostring(found.version), wanted.version)
  end
  return true
end

---Where a file is put until it has been tried.
---@param wanted cursor_agent.install.Wanted
---@param name string
---@return string
local function unfinished(wanted, name)
  return ("%s/lib/%s%d-%s"):format(wanted.root, UNFINISHED, vim.uv.os_getpid(), name)
end

---Takes over files that lie beside: tries the library, then renames. A Neovim that has the old one loaded keeps it.
---@param wanted cursor_agent.install.Wanted
---@param files cursor_agent.install.File[]
---@return boolean ok, string? problem
local function adopt(wanted, files)
  for _, file in ipairs(files) do
    assert(vim.uv.fs_chmod(unfinished(wanted, file.name), EXECUTABLE))
  end
  local fits, problem = try(wanted, unfinished(wanted, files[1].name))
  if not fits then
    return false, problem
  end
  local stamp = wanted.root .. "/lib/" .. STAMP
  vim.uv.fs_unlink(stamp)
  -- The library last: while it is the old one, everything is as it was.
  for i = #files, 1, -1 do
    local name = files[i].name
    local renamed, why = vim.uv.fs_rename(unfinished(wanted, name), wanted.root .. "/lib/" .. name)
    if not renamed then
      return false, why
    end
  end
  if wanted.source then
    private.replace(stamp, wanted.source .. "\n")
  end
  return true
end

---@type table<cursor_agent.install.Way, fun(wanted: cursor_agent.install.Wanted): boolean, string?>
local ways = {}

function ways.kept(wanted)
  local library = wanted.root .. "/lib/cursor_agent.so"
  if not vim.uv.fs_stat(library) then
    return false, "nothing is built yet"
  end
  for _, program in ipairs(platform.programs) do
    if vim.fn.executable(wanted.root .. "/lib/" .. program.name) == 0 then
      return false, ("the companion program %s is missing"):format(program.name)
    end
  end
  local built_from = release.read(wanted.root .. "/lib/" .. STAMP)
  if built_from and wanted.source and vim.trim(built_from) ~= wanted.source then
    return false, "it was built from different sources"
  end
  return try(wanted, library)
end

function ways.prebuilt(wanted)
  local list = release.checksums(wanted.root)
  if not next(list.files) then
    return false, "these sources are not from a release"
  elseif list.version ~= wanted.version or (wanted.source and list.source ~= wanted.source) then
    return false, ("release %s was built from different sources"):format(tostring(list.version))
  elseif not wanted.triple then
    return false, wanted.no_triple
  end
  local files = platform.files(wanted.triple)
  for _, file in ipairs(files) do
    if not list.files[file.asset] then
      return false, ("release %s has no %s"):format(list.version, file.asset)
    end
  end
  for _, file in ipairs(files) do
    task.say(("downloading %s"):format(file.asset))
    local path = unfinished(wanted, file.name)
    -- There before the download: it keeps its mode.
    local ok, problem = private.create(path, "")
    if ok then
      ok, problem = download.fetch(release.url(wanted.version, file.asset), path)
    end
    if not ok then
      return false, problem
    end
    local sum = sha256.hex(release.read(path) or "", task.breathe)
    if sum ~= list.files[file.asset] then
      return false,
        ("%s is not the file of the release: its SHA-256 is %s, expected %s"):format(
          file.asset,
          sum,
          list.files[file.asset]
        )
    end
  end
  task.say("trying the library")
  return adopt(wanted, files)
end

---A build that prints nothing is heard of this often.
M.QUIET_MS = 2000

---As much of what cargo prints as stands in one line of a small terminal.
local MOST_PROGRESS = 50

---@return string?
local function find_cargo()
  if vim.fn.executable("cargo") == 1 then
    return "cargo"
  end
  -- An editor started from a desktop may not have it on its PATH.
  local own = vim.fs.joinpath(vim.env.CARGO_HOME or vim.fs.normalize("~/.cargo"), "bin", "cargo")
  return vim.fn.executable(own) == 1 and own or nil
end

function ways.cargo(wanted)
  if not wanted.source then
    return false, "the library's sources are missing"
  end
  local cargo = find_cargo()
  if not cargo then
    return false, "cargo is not installed"
  end
  local target = wanted.root .. "/target"
  task.say("building with cargo, which takes a minute or two")
  local started = vim.uv.now()
  local spoke, said = started, ""
  local command = { cargo, "build", "--release", "--locked", "--target-dir", target, "-p", "cursor-agent-nvim" }
  for _, program in ipairs(platform.programs) do
    vim.list_extend(command, { "-p", program.package })
  end
  local output, broken = task.run(command, {
    cwd = wanted.root,
    timeout_ms = BUILD_MS,
    -- The longest step says nothing for a minute: then it is the time that shows that it goes on.
    on_wait = function(line)
      local now = vim.uv.now()
      if now - spoke > (line ~= said and 1000 or M.QUIET_MS) then
        spoke, said = now, line
        local step = line ~= "" and line:sub(1, MOST_PROGRESS) or "building"
        task.say(("cargo: %s (%d s)"):format(step, (now - started) / 1000))
      end
    end,
  })
  if not output then
    return false, broken
  elseif output.code ~= 0 then
    return false, ("it failed with code %d:\n    %s"):format(output.code, tail(output.stderr))
  end
  local files = platform.files(wanted.triple or (jit.os == "OSX" and "darwin" or ""))
  for _, file in ipairs(files) do
    local built = target .. "/release/" .. file.built
    local bytes = release.read(built)
    if not bytes then
      return false, built .. " cannot be read"
    end
    local copied, why = private.create(unfinished(wanted, file.name), bytes)
    if not copied then
      return false, why
    end
  end
  task.say("trying the library")
  return adopt(wanted, files)
end

---Removes what this installation, or one that was killed, left unfinished.
---@param root string
local function tidy(root)
  local own = ("%s%d-"):format(UNFINISHED, vim.uv.os_getpid())
  for name in vim.fs.dir(root .. "/lib") do
    local path = root .. "/lib/" .. name
    if vim.startswith(name, UNFINISHED) then
      local stat = vim.uv.fs_stat(path)
      if vim.startswith(name, own) or (stat and os.time() - stat.mtime.sec > STALE_S) then
        vim.uv.fs_unlink(path)
      end
    end
  end
end

---@param root string
---@return cursor_agent.install.Wanted
local function wanted_for(root)
  local version, abi = release.version(root), release.abi(root)
  if not version or not abi then
    error(("%s does not look like the plugin: it has no version"):format(root), 0)
  end
  local triple, no_triple = platform.triple()
  return {
    root = root,
    version = version,
    abi = abi,
    source = release.source_id(root),
    triple = triple,
    no_triple = no_triple,
  }
end

local LABELS = { kept = "The existing library", prebuilt = "The prebuilt library", cargo = "cargo build" }

---Installs the library by the first way that works. Runs in a coroutine; see `task.lua`.
---@param root string the plugin's directory
---@param only? cursor_agent.install.Way[] the ways to try, in order
---@return cursor_agent.install.Way how
function M.install(root, only)
  private.make_dir(root .. "/lib")
  local writable = vim.fn.filewritable(root .. "/lib") == 2
  local wanted = wanted_for(root)
  local reasons = {} ---@type string[]
  for _, way in ipairs(only or { "kept", "prebuilt", "cargo" }) do
    local ok, why
    if way ~= "kept" and not writable then
      ok, why = false, root .. "/lib cannot be written to"
    else
      -- `pcall` so that what lies unfinished goes away whatever happened.
      local ran, result, problem = pcall(ways[way], wanted)
      pcall(tidy, root)
      if not ran then
        error(result, 0)
      end
      ok, why = result, problem
    end
    if ok then
      return way
    end
    reasons[#reasons + 1] = ("%s: %s"):format(LABELS[way], why or "it gave no reason")
  end
  error(
    ("cursor-agent.nvim could not install its library.\n  %s\n"):format(table.concat(reasons, "\n  "))
      .. "  What to do: install Rust (https://rustup.rs), then run `:CursorAgent build`"
      .. " (or `make` in "
      .. root
      .. "). `:checkhealth cursor_agent` shows more.",
    0
  )
end

local SUCCESS = {
  kept = "the library is already up to date",
  prebuilt = "the prebuilt library is installed",
  cargo = "the library is built",
}

---What a person reads when it went well.
---@param how cursor_agent.install.Way
---@param in_use boolean another library is loaded in this Neovim, and stays
---@return string
function M.success(how, in_use)
  return SUCCESS[how] .. (in_use and how ~= "kept" and "; restart Neovim to use it" or "")
end

return M
