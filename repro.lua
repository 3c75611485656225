-- A minimal setup for reproducing a problem: `nvim --clean -u repro.lua`. It writes only to ./.repro.

local here = vim.fn.fnamemodify(".repro", ":p")
for _, kind in ipairs({ "config", "data", "state", "cache" }) do
  vim.fn.setenv(("XDG_%s_HOME"):format(kind:upper()), vim.fs.joinpath(here, kind))
end

-- The plugin checkout this file is in, or a fresh clone.
local plugin = vim.fs.dirname(vim.fn.fnamemodify(assert(debug.getinfo(1, "S")).source:sub(2), ":p"))
if not vim.uv.fs_stat(plugin .. "/lua/cursor_agent") then
  plugin = vim.fs.joinpath(here, "cursor-agent.nvim")
  if not vim.uv.fs_stat(plugin) then
    local url = "https://github.com/cursor-agent/cursor-agent.nvim"
    local cloned = vim.system({ "git", "clone", "--filter=blob:none", url, plugin }):wait()
    assert(cloned.code == 0, cloned.stderr)
  end
end
dofile(plugin .. "/build.lua")
vim.opt.runtimepath:prepend(plugin)

-- Add other relevant plugins here, cloned and prepended the same way.

require("cursor_agent").setup({
  agent = "demo", -- needs no account; use your own if the problem needs it
})
