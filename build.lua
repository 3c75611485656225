-- Installs the library; plugin managers run this after an install or an update.
--
-- lazy.nvim runs it in a coroutine. Elsewhere: `nvim -l build.lua`, or `dofile` with its path.

local here = assert(debug.getinfo(1, "S")).source --[[@as string]]
local root = vim.fs.dirname(vim.fn.fnamemodify(here:sub(2), ":p"))

-- The plugin may not be on the runtimepath yet, or another version of it may be, so load these files by path.
local names = {} ---@type string[]
local function take(name, path)
  names[#names + 1] = name
  package.loaded[name] = nil
  package.preload[name] = loadfile(root .. "/lua/cursor_agent/" .. path)
end
take("cursor_agent.files.private", "files/private.lua")
for file in vim.fs.dir(root .. "/lua/cursor_agent/install") do
  take("cursor_agent.install." .. file:gsub("%.lua$", ""), "install/" .. file)
end
local steps = require("cursor_agent.install.steps")
local task = require("cursor_agent.install.task")
for _, name in ipairs(names) do
  package.preload[name] = nil
end

local function run()
  -- True after an update in a Neovim that has already used the previous version.
  return steps.success(steps.install(root), vim.g.cursor_agent_started == true)
end

if task.inside() then
  task.say(run())
else
  local function say(message)
    vim.notify("cursor-agent: " .. message, vim.log.levels.INFO, { title = "cursor-agent" })
    vim.cmd.redraw()
  end
  say(task.blocking(run, say))
end
