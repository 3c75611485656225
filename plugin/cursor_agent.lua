-- Defines `:CursorAgent` and the `<Plug>(cursor-agent-…)` mappings; everything behind them loads on first use.

if vim.g.loaded_cursor_agent then
  return
end
vim.g.loaded_cursor_agent = true

if package.loaded["cursor_agent_handover"] then
  -- Reloaded: take over chats that are still alive.
  require("cursor_agent")
end

-- Recorded before 'autochdir' can change it; when the plugin is loaded later, use the shell's PWD.
vim.g.cursor_agent_started_in = vim.v.vim_did_enter == 1 and vim.env.PWD or vim.uv.cwd()

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

-- The names are repeated here so that mapping them needs no `require`; a test compares them with `actions.lua`.
local anywhere = {
  "accept",
  "add-context",
  "allow-always",
  "allow-once",
  "cancel",
  "checkpoints",
  "close",
  "cloud",
  "comment",
  "cycle-mode",
  "decisions",
  "export",
  "file-keep",
  "file-undo",
  "focus",
  "follow",
  "follow-agent",
  "hunk-keep",
  "hunk-next",
  "hunk-prev",
  "hunk-undo",
  "keep-all",
  "log",
  "login",
  "mcp",
  "mode",
  "model",
  "new",
  "next-waiting",
  "open",
  "option",
  "prompt",
  "queue",
  "reject",
  "reject-always",
  "reject-once",
  "reject-with-message",
  "restart",
  "resume",
  "review",
  "send",
  "send-now",
  "sessions",
  "stop",
  "todos",
  "toggle",
  "turn-keep",
  "turn-undo",
  "undo-all",
}

-- Only useful in the plugin's own windows.
local inside = {
  "apply-code",
  "attach-image",
  "attach-unsaved",
  "choose-number",
  "cloud-all",
  "cloud-archive",
  "cloud-archived",
  "cloud-artifacts",
  "cloud-browse",
  "cloud-checkout",
  "cloud-close",
  "cloud-delete",
  "cloud-diff",
  "cloud-follow-up",
  "cloud-new",
  "cloud-open",
  "cloud-refresh",
  "cloud-repo",
  "cloud-state",
  "cloud-stop",
  "cloud-text",
  "cloud-usage",
  "conflict-both",
  "conflict-cancel",
  "conflict-mine",
  "conflict-theirs",
  "decision-details",
  "decision-later",
  "decision-leave",
  "detach",
  "explain",
  "file",
  "go-back",
  "help",
  "history-next",
  "history-prev",
  "log-filter",
  "log-message",
  "log-refresh",
  "log-save",
  "mcp-disable",
  "mcp-edit",
  "mcp-edit-user",
  "mcp-enable",
  "mcp-login",
  "mcp-open",
  "mcp-refresh",
  "mcp-tools",
  "next-decision",
  "next-tool",
  "next-turn",
  "open-address",
  "open-outside",
  "output",
  "plan-accept",
  "plan-cancel",
  "plan-open",
  "plan-reject",
  "prev-tool",
  "prev-turn",
  "previous-decision",
  "question-answer",
  "question-cancel",
  "question-choose",
  "question-skip",
  "queue-close",
  "queue-down",
  "queue-edit",
  "queue-remove",
  "queue-send-now",
  "queue-up",
  "reader-close",
  "retry",
  "review-close",
  "review-comment",
  "review-follow",
  "review-keep",
  "review-undo",
  "save-unsaved",
  "subagent",
  "todos-close",
  "todos-follow",
  "yank-code",
}

---@param mode string
---@param names string[]
local function map(mode, names)
  local opts = { noremap = true, desc = "" }
  for _, name in ipairs(names) do
    opts.desc = "cursor-agent: " .. name:gsub("-", " ")
    local rhs = "<Cmd>lua require('cursor_agent.parts').run('" .. name .. "')<CR>"
    vim.api.nvim_set_keymap(mode, "<Plug>(cursor-agent-" .. name .. ")", rhs, opts)
  end
end

map("", anywhere)
-- No key can be typed before Neovim has started, so keep these out of the startup time.
vim.schedule(function()
  map("", inside)
  map("i", anywhere)
  map("i", inside)
  local own = vim.g.cursor_agent
  if type(own) == "table" and type(own.keymaps) == "table" and own.keymaps.global then
    require("cursor_agent.parts")
    require("cursor_agent.keys.global").apply()
  end
end)

-- A chat saved by `:mksession` comes back if it still exists; otherwise its windows are closed.
vim.api.nvim_create_autocmd("SessionLoadPost", {
  group = vim.api.nvim_create_augroup("cursor_agent_session", {}),
  desc = "cursor-agent: restore the chats of a session file",
  -- Chat windows get their options from an autocommand.
  nested = true,
  callback = function()
    for _, buf in ipairs(vim.api.nvim_list_bufs()) do
      if vim.api.nvim_buf_get_name(buf):find("^cursor%-agent%-term://") then
        require("cursor_agent.chat.mksession").loaded()
        return
      end
    end
  end,
})

-- Records the state of the file a buffer was loaded from or written to, to tell an agent's changes from yours. An
-- agent's change may come before any other part of the plugin is loaded.
vim.api.nvim_create_autocmd({ "BufReadPost", "BufNewFile", "BufWritePost" }, {
  group = vim.api.nvim_create_augroup("cursor_agent_loaded", {}),
  desc = "cursor-agent: record the state of a file",
  callback = function(args)
    if
      vim.bo[args.buf].buftype ~= "" or vim.fn.fnamemodify(args.match, ":p") ~= vim.api.nvim_buf_get_name(args.buf)
    then
      return
    end
    local stat = vim.uv.fs_stat(args.match)
    if not stat then
      vim.b[args.buf].cursor_agent_loaded = "none"
      return
    end
    local m, c = stat.mtime, stat.ctime
    vim.b[args.buf].cursor_agent_loaded = ("%d.%d %d.%d %d %d"):format(
      m.sec,
      m.nsec,
      c.sec,
      c.nsec,
      stat.size,
      stat.ino
    )
  end,
})
