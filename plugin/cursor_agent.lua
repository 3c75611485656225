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
local map = vim.api.nvim_set_keymap
for _, name in ipairs({
  "accept",
  "add-context",
  "allow-always",
  "allow-once",
  "apply-code",
  "attach-unsaved",
  "cancel",
  "choose-number",
  "close",
  "cycle-mode",
  "decision-details",
  "decision-later",
  "decision-leave",
  "decisions",
  "detach",
  "explain",
  "export",
  "file",
  "focus",
  "follow",
  "help",
  "history-next",
  "history-prev",
  "log",
  "log-filter",
  "log-message",
  "log-refresh",
  "log-save",
  "login",
  "mode",
  "model",
  "new",
  "next-decision",
  "next-tool",
  "next-turn",
  "open",
  "open-address",
  "open-outside",
  "option",
  "output",
  "plan-accept",
  "plan-cancel",
  "plan-open",
  "plan-reject",
  "prev-tool",
  "prev-turn",
  "previous-decision",
  "prompt",
  "question-answer",
  "question-cancel",
  "question-choose",
  "question-skip",
  "queue",
  "queue-close",
  "queue-down",
  "queue-edit",
  "queue-remove",
  "queue-send-now",
  "queue-up",
  "reader-close",
  "reject",
  "reject-always",
  "reject-once",
  "reject-with-message",
  "restart",
  "save-unsaved",
  "send",
  "sessions",
  "stop",
  "todos",
  "todos-close",
  "todos-follow",
  "toggle",
  "yank-code",
}) do
  local lhs = "<Plug>(cursor-agent-" .. name .. ")"
  local rhs = "<Cmd>lua require('cursor_agent.actions').run('" .. name .. "')<CR>"
  local opts = { noremap = true, desc = "cursor-agent: " .. name }
  map("", lhs, rhs, opts)
  map("i", lhs, rhs, opts)
end

-- A chat that `:mksession` wrote down comes back where it is still there; else its windows are closed again.
vim.api.nvim_create_autocmd("SessionLoadPost", {
  group = vim.api.nvim_create_augroup("cursor_agent_session", {}),
  desc = "cursor-agent: bring chats back into their windows, and drop windows of a former Neovim",
  -- The windows get the options of a chat by an event of theirs.
  nested = true,
  callback = function()
    for _, buf in ipairs(vim.api.nvim_list_bufs()) do
      if vim.api.nvim_buf_get_name(buf):find("^cursor%-agent://") then
        require("cursor_agent.mksession").loaded()
        return
      end
    end
  end,
})
