-- Loads the library in a Neovim of its own and prints what it is: `nvim -l probe.lua PATH`. A crash stays in there.

---@param why any
local function fail(why)
  io.stderr:write(tostring(why), "\n")
  os.exit(1)
end

local entry, why = package.loadlib(arg[1], "luaopen_cursor_agent")
if not entry then
  return fail(why)
end
local reason = entry()
local native = package.loaded["cursor_agent_native"] ---@type cursor_agent.Native?
if not native then
  return fail(reason)
end
-- The runtime starts threads: where that fails, it should not be for the user to find out.
native.start({ on_wake = function() end })
native.shutdown(0)
io.stdout:write(vim.json.encode({ abi = native.abi, version = native.version }))
