-- Loads the library, once, on Neovim's main Lua state, and starts and stops its runtime.

local paths = require("cursor_agent.bridge.paths")

local M = {}

---The ABI version this Lua code expects; a library with another one is refused with a message.
local ABI = 7

---How long running turns get at exit before the agents are killed.
local SHUTDOWN_GRACE_MS = 300

local loaded ---@type cursor_agent.Native?
local failure ---@type string?
local opened = false -- a library was opened, suitable or not: Lua cannot open another one of this name

---Called when there is something to drain.
function M.on_wake() end

---Called once the library is loaded, before it is used.
function M.on_loaded() end

---@return cursor_agent.Native?, string?
local function open_library()
  local path = paths.library()
  local rebuild = "`:CursorAgent build` installs it; `:checkhealth cursor_agent` shows more."
  if not vim.uv.fs_stat(path) then
    return nil, ("run `:CursorAgent build`: the library is not built\n  %s\n  %s"):format(path, rebuild)
  end
  local entry, why = package.loadlib(path, "luaopen_cursor_agent")
  if not entry then
    return nil, ("run `:CursorAgent build`: the library could not be loaded\n  %s\n  %s"):format(why, rebuild)
  end
  opened = true
  local reason = entry()
  local native = package.loaded["cursor_agent_native"] ---@type cursor_agent.Native?
  if type(native) ~= "table" then
    return nil, ("the library could not start: %s\n  %s"):format(tostring(reason), rebuild)
  end
  if native.abi ~= ABI then
    local speaks = ("its interface is version %s, the plugin needs %d\n  %s"):format(tostring(native.abi), ABI, path)
    if vim.g.cursor_agent_started then
      -- The plugin was updated and reloaded; a library in use cannot be unloaded from a running Neovim.
      return nil, "restart Neovim: it still uses the library of the previous version: " .. speaks
    end
    return nil, ("run `:CursorAgent build`: the library is stale: %s\n  %s"):format(speaks, rebuild)
  end
  return native
end

---The library that an earlier load of the plugin started in this Neovim.
---@return cursor_agent.Native?
local function running()
  local native = package.loaded["cursor_agent_native"] ---@type cursor_agent.Native?
  return type(native) == "table" and native.abi == ABI and vim.g.cursor_agent_started and native or nil
end

---Runs on the main state; called only by `get`, through `:lua`.
function M.load_on_main_state()
  local before = running()
  if before then
    opened, loaded = true, before
    M.on_loaded()
    return
  end
  local ok, native, why = pcall(open_library)
  if not ok then
    native, why = nil, tostring(native)
  end
  if not native then
    failure = why
    return
  end
  local started, problem = pcall(native.start, {
    on_wake = vim.schedule_wrap(function()
      -- Looked up on each call: the library outlives a reload of the plugin, and keeps calling this.
      require("cursor_agent.bridge.native").on_wake()
    end),
    log_path = paths.log(),
  })
  if not started then
    failure = "the library could not start: " .. tostring(problem)
    return
  end
  loaded = native
  vim.g.cursor_agent_started = true
  M.on_loaded()
  vim.api.nvim_create_autocmd("VimLeavePre", {
    group = vim.api.nvim_create_augroup("cursor_agent_native", {}),
    desc = "cursor-agent: stop the agents",
    callback = function()
      native.shutdown(SHUTDOWN_GRACE_MS)
    end,
  })
end

---The library; loads it on first use. A failure is remembered and not retried.
---@return cursor_agent.Native?, string?
function M.get()
  if loaded then
    return loaded
  end
  if failure then
    return nil, failure
  end
  if vim.in_fast_event() then
    return nil, "the library is not loaded yet and cannot be loaded in a fast event; use vim.schedule()"
  end
  -- A library first opened from a coroutine keeps that coroutine's state, which dies: SIGSEGV later. `:lua` always
  -- runs on the main state.
  vim.cmd.lua("require('cursor_agent.bridge.native').load_on_main_state()")
  return loaded, failure
end

---Forgets a failure after the library was installed.
---@return boolean whether the next use may succeed; otherwise Neovim must be restarted
function M.forget_failure()
  if not opened then
    failure = nil
  end
  return failure == nil and loaded == nil
end

---The library if it has been loaded; never loads it.
---@return cursor_agent.Native?
function M.peek()
  return loaded
end

---Why loading failed, if it did.
---@return string?
function M.failure()
  return failure
end

return M
