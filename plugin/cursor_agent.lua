-- Defines `:CursorAgent` and the `<Plug>(cursor-agent-…)` mappings; everything behind them loads on first use.

if vim.g.loaded_cursor_agent then
  return
end
vim.g.loaded_cursor_agent = true

vim.api.nvim_create_user_command("CursorAgent", function(args)
  require("cursor_agent.command").run(args)
end, {
  nargs = "*",
  range = true,
  bang = true,
  desc = "Chat with an agent: toggles the chat, or runs a subcommand",
  complete = function(lead, line, pos)
    return require("cursor_agent.command").complete(lead, line, pos)
  end,
})

-- The names are repeated here so that mapping them costs no `require`; a test compares them with `actions.lua`.
for name, modes in pairs({
  ["accept"] = "n",
  ["add-context"] = "nx",
  ["cancel"] = "n",
  ["close"] = "n",
  ["cycle-mode"] = "n",
  ["decisions"] = "n",
  ["export"] = "n",
  ["focus"] = "n",
  ["log"] = "n",
  ["mode"] = "n",
  ["model"] = "n",
  ["new"] = "n",
  ["open"] = "n",
  ["option"] = "n",
  ["prompt"] = "nx",
  ["queue"] = "n",
  ["reject"] = "n",
  ["restart"] = "n",
  ["sessions"] = "n",
  ["stop"] = "n",
  ["todos"] = "n",
  ["toggle"] = "n",
}) do
  for mode in modes:gmatch(".") do
    vim.keymap.set(mode, ("<Plug>(cursor-agent-%s)"):format(name), function()
      require("cursor_agent.actions").run(name)
    end, { desc = "cursor-agent: " .. name:gsub("%-", " ") })
  end
end

-- A chat that `:mksession` wrote down has no session behind it any more: its windows are closed again.
vim.api.nvim_create_autocmd("SessionLoadPost", {
  group = vim.api.nvim_create_augroup("cursor_agent_session", {}),
  desc = "cursor-agent: drop chat windows of a former Neovim",
  callback = function()
    for _, buf in ipairs(vim.api.nvim_list_bufs()) do
      if vim.api.nvim_buf_get_name(buf):find("^cursor%-agent://") then
        require("cursor_agent.window").forget(buf)
      end
    end
  end,
})
