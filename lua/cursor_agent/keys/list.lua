-- All actions: the name and purpose of each, and its keys in each kind of buffer. `actions.lua` implements them.

local kinds = require("cursor_agent.keys.kinds")

---@alias cursor_agent.BufferKind "chat"|"prompt"|"queue"|"permission"|"question"|"conflict"|"plan-card"|"plan"|"todos"|"log"|"reader"|"subagent"|"review"|"mcp"|"cloud"|"code"|"waiting"|"global"

---@class (exact) cursor_agent.Action
---@field name string
---@field desc string
---@field keys? table<cursor_agent.BufferKind, string[]> its keys unless `keymaps` says otherwise; "waiting": in every buffer while a
---decision is on the screen; "global": in every buffer, after the prefix `keymaps.global`
---@field shared? boolean its keys are the same in every buffer of the plugin
---@field modes? table<cursor_agent.BufferKind, string[]> where they work; default Normal mode
---@field expr? fun(lhs: string): boolean|string whether the key triggers this action here; or the keys it stands for
---@field interrupts? boolean its key is CTRL-C, which interrupts a busy Neovim and with it any `<Cmd>` that the key stands for

---Rows of the cursor's line up to the cursor, and in total.
---@return integer
---@return integer
local function rows_of_line()
  local row = vim.api.nvim_win_get_cursor(0)[1] - 1
  local here = vim.fn.virtcol(".") --[[@as integer]]
  local past = vim.fn.virtcol("$") --[[@as integer]]
  local vcol = math.floor(math.max(math.min(here, past - 1), 1))
  local upto = vim.api.nvim_win_text_height(0, { start_row = row, end_row = row, end_vcol = vcol }).all
  return upto, vim.api.nvim_win_text_height(0, { start_row = row, end_row = row }).all
end

---Whether `<Up>` triggers the action: on the first row of the text. Within a wrapped line it moves to the row above.
---@return boolean|string
local function on_first_row()
  if vim.api.nvim_win_get_cursor(0)[1] > 1 or vim.fn.pumvisible() == 1 then
    return false
  end
  return rows_of_line() == 1 or "<Cmd>normal! gk<CR>"
end

---The same for `<Down>`.
---@return boolean|string
local function on_last_row()
  if vim.api.nvim_win_get_cursor(0)[1] < vim.api.nvim_buf_line_count(0) or vim.fn.pumvisible() == 1 then
    return false
  end
  local upto, all = rows_of_line()
  return upto == all or "<Cmd>normal! gj<CR>"
end

---The same key in every buffer of the plugin.
---@param lhs string
---@param more? table<cursor_agent.BufferKind, string[]>
---@return table<cursor_agent.BufferKind, string[]>
local function everywhere(lhs, more)
  local keys = {} ---@type table<cursor_agent.BufferKind, string[]>
  for _, kind in ipairs(kinds) do
    keys[kind] = { lhs }
  end
  return vim.tbl_extend("force", keys, more or {})
end

---In the order `g?` lists them.
---@type cursor_agent.Action[]
return {
  {
    name = "send",
    desc = "Send the prompt, or queue it while a turn runs",
    keys = { prompt = { "<CR>", "<C-s>" } },
    modes = { prompt = { "n", "i" } },
    expr = function(lhs)
      if lhs ~= "<CR>" or vim.api.nvim_get_mode().mode:sub(1, 1) ~= "i" then
        return true
      end
      if vim.fn.pumvisible() == 0 then
        return false
      end
      return vim.fn.complete_info({ "selected" }).selected >= 0 and "<C-y>" or "<C-e><CR>"
    end,
  },
  {
    name = "send-now",
    desc = "Stop the turn and send the prompt, or the first queued one",
    keys = { chat = { "<M-s>" }, prompt = { "<M-s>" } },
    modes = { prompt = { "n", "i" } },
  },
  {
    name = "cancel",
    desc = "Stop the turn",
    keys = { chat = { "<C-c>" }, prompt = { "<C-c>" }, subagent = { "<C-c>" }, global = { "s" } },
    modes = { prompt = { "n", "i" } },
    interrupts = true,
    expr = function()
      -- With nothing to stop it leaves Insert mode as usual. Neovim 0.12's own CTRL-C leaves `-- INSERT --` on the
      -- screen.
      local typing = vim.api.nvim_get_mode().mode:sub(1, 1) == "i"
      return not typing or require("cursor_agent.chat.registry").is_busy() or "<Esc>"
    end,
  },
  {
    name = "retry",
    desc = "Send the last prompt again",
    keys = { chat = { "R" } },
  },
  {
    name = "focus",
    desc = "Go to the prompt",
    keys = { chat = { "i", "a", "I", "A" } },
  },
  {
    name = "follow",
    desc = "Open the subagent, fold, file, line, link or output under the cursor",
    keys = { chat = { "<CR>" }, subagent = { "<CR>" } },
  },
  {
    name = "open-outside",
    desc = "Open the image, file or link under the cursor outside Neovim",
    keys = everywhere("gx", { question = {} }),
    shared = true,
  },
  {
    name = "file",
    desc = "Open the file under the cursor",
    keys = { chat = { "gf" }, prompt = { "gf" }, subagent = { "gf" } },
  },
  {
    name = "subagent",
    desc = "Show the subagent under the cursor in its own buffer",
    keys = { chat = { "gS" }, subagent = { "gS" } },
  },
  {
    name = "output",
    desc = "Show the full output or diff of the tool call",
    keys = { chat = { "o" }, subagent = { "o" } },
  },
  {
    name = "explain",
    desc = "Show details of the entry: times, raw input and output",
    keys = { chat = { "K" }, subagent = { "K" } },
  },
  {
    name = "next-turn",
    desc = "Next turn",
    keys = { chat = { "]]" } },
  },
  {
    name = "prev-turn",
    desc = "Previous turn",
    keys = { chat = { "[[" } },
  },
  {
    name = "next-tool",
    desc = "Next tool call",
    keys = { chat = { "]t" }, subagent = { "]t" } },
  },
  {
    name = "prev-tool",
    desc = "Previous tool call",
    keys = { chat = { "[t" }, subagent = { "[t" } },
  },
  {
    name = "yank-code",
    desc = "Yank the code block",
    keys = { chat = { "gy" }, subagent = { "gy" } },
  },
  {
    name = "apply-code",
    desc = "Insert the code block below the cursor in the code window",
    keys = { chat = { "gp" }, subagent = { "gp" } },
  },
  {
    name = "history-prev",
    desc = "Older prompt, on the first line",
    keys = { prompt = { "<Up>" } },
    modes = { prompt = { "n", "i" } },
    expr = on_first_row,
  },
  {
    name = "history-next",
    desc = "Newer prompt, on the last line",
    keys = { prompt = { "<Down>" } },
    modes = { prompt = { "n", "i" } },
    expr = on_last_row,
  },
  {
    name = "save-unsaved",
    desc = "Save the modified buffers of the workspace",
    keys = { chat = { "gs" }, prompt = { "gs" } },
  },
  {
    name = "attach-unsaved",
    desc = "Attach the text of modified buffers",
    keys = { chat = { "ga" }, prompt = { "ga" } },
  },
  {
    name = "attach-image",
    desc = "Attach the image on the clipboard",
    keys = { prompt = { "<M-v>" } },
    modes = { prompt = { "n", "i" } },
  },
  {
    name = "detach",
    desc = "Remove an attachment",
    keys = { chat = { "gX" }, prompt = { "gX" } },
  },
  {
    name = "cycle-mode",
    desc = "Next mode of the agent",
    keys = { chat = { "<S-Tab>" }, prompt = { "<S-Tab>" } },
    modes = { prompt = { "n", "i" } },
    expr = function()
      return vim.fn.pumvisible() == 0
    end,
  },
  {
    name = "mode",
    desc = "Choose the mode",
    keys = { chat = { "gm" }, prompt = { "gm" } },
  },
  {
    name = "model",
    desc = "Choose the model",
    keys = { chat = { "gM" }, prompt = { "gM" } },
  },
  {
    name = "option",
    desc = "Choose one of the agent's options",
    keys = everywhere("gO"),
    shared = true,
  },
  {
    name = "queue",
    desc = "List the queued prompts",
    keys = everywhere("gQ"),
    shared = true,
  },
  {
    name = "accept",
    desc = "Allow once, or accept",
    keys = { waiting = { "<M-y>" }, global = { "y" } },
    modes = { waiting = { "n", "x", "i" } },
  },
  {
    name = "reject",
    desc = "Reject, or skip the question",
    keys = { waiting = { "<M-n>" }, global = { "n" } },
    modes = { waiting = { "n", "x", "i" } },
  },
  {
    name = "decisions",
    desc = "Go to the decision's card",
    keys = { chat = { "gd" }, prompt = { "gd" }, subagent = { "gd" }, global = { "d" } },
  },
  {
    name = "todos",
    desc = "Show or hide the todos",
    keys = everywhere("gl", { global = { "t" } }),
    shared = true,
  },
  {
    name = "toggle",
    desc = "Open or close the chat",
    keys = { global = { "a" } },
  },
  {
    name = "open",
    desc = "Open the chat",
  },
  {
    name = "close",
    desc = "Close the chat; the session keeps running",
    keys = { chat = { "q" } },
  },
  {
    name = "new",
    desc = "Start a new chat",
    keys = everywhere("gn", { global = { "N" } }),
    shared = true,
  },
  {
    name = "prompt",
    desc = "Open the prompt; from Visual mode with the selection attached",
    keys = { global = { "p" } },
    modes = { global = { "n", "x" } },
  },
  {
    name = "add-context",
    desc = "Attach the file, or from Visual mode the selection, to the next prompt",
  },
  {
    name = "stop",
    desc = "End the agent's process; the transcript stays",
  },
  {
    name = "restart",
    desc = "Restart the agent and continue the session",
  },
  {
    name = "sessions",
    desc = "List the chats, live and past, and switch to one",
    keys = everywhere("gc", { global = { "c" } }),
    shared = true,
  },
  {
    name = "next-waiting",
    desc = "Go to the next chat that needs an answer",
    keys = { chat = { "gw" }, prompt = { "gw" }, global = { "w" } },
  },
  {
    name = "resume",
    desc = "Continue the last chat in this directory",
    keys = { chat = { "gr" }, prompt = { "gr" }, global = { "." } },
  },
  {
    name = "login",
    desc = "Log in to the agent in a terminal",
  },
  {
    name = "export",
    desc = "Show the conversation as markdown",
  },
  {
    name = "log",
    desc = "Show the messages exchanged with the agent",
  },
  {
    name = "queue-edit",
    desc = "Edit the queued prompt in the prompt window",
    keys = { queue = { "<CR>" } },
  },
  {
    name = "queue-remove",
    desc = "Remove the prompt from the queue",
    keys = { queue = { "dd" } },
  },
  {
    name = "queue-up",
    desc = "Move the prompt up",
    keys = { queue = { "K" } },
  },
  {
    name = "queue-down",
    desc = "Move the prompt down",
    keys = { queue = { "J" } },
  },
  {
    name = "queue-send-now",
    desc = "Stop the turn and send the prompt now",
    keys = { queue = { "<C-s>" } },
  },
  {
    name = "queue-close",
    desc = "Close the list",
    keys = { queue = { "q" } },
  },
  {
    name = "allow-once",
    desc = "Allow once",
    keys = { permission = { "a" } },
  },
  {
    name = "allow-always",
    desc = "Allow always",
    keys = { permission = { "A" } },
  },
  {
    name = "reject-once",
    desc = "Reject",
    keys = { permission = { "r" } },
  },
  {
    name = "reject-always",
    desc = "Reject always",
    keys = { permission = { "R" } },
  },
  {
    name = "choose-number",
    desc = "Choose by number",
    keys = {
      permission = { "1", "2", "3", "4", "5", "6", "7", "8", "9" },
      question = { "1", "2", "3", "4", "5", "6", "7", "8", "9" },
      conflict = { "1", "2", "3" },
    },
  },
  {
    name = "reject-with-message",
    desc = "Reject with a reason, sent as the next prompt",
    keys = { permission = { "e" } },
  },
  {
    name = "decision-details",
    desc = "Show the whole diff, both texts or all details in a tab",
    keys = { permission = { "d" }, conflict = { "d" } },
  },
  {
    name = "question-choose",
    desc = "Choose the option, or type an answer",
    keys = { question = { "<Space>" } },
  },
  {
    name = "question-answer",
    desc = "Answer all questions",
    keys = { question = { "<CR>" } },
  },
  {
    name = "open-address",
    desc = "Open the page",
    keys = { question = { "o", "gx" } },
  },
  {
    name = "question-skip",
    desc = "Skip the questions, with a reason",
    keys = { question = { "s" } },
  },
  {
    name = "question-cancel",
    desc = "Answer as cancelled",
    keys = { question = { "C" } },
  },
  {
    name = "conflict-mine",
    desc = "Keep your unsaved text",
    keys = { conflict = { "m" } },
  },
  {
    name = "conflict-theirs",
    desc = "Take the agent's text; yours stays in the undo history",
    keys = { conflict = { "t" } },
  },
  {
    name = "conflict-both",
    desc = "Put both texts into the buffer, with conflict markers",
    keys = { conflict = { "b" } },
  },
  {
    name = "conflict-cancel",
    desc = "Answer as cancelled: nothing is written",
    keys = { conflict = { "C" } },
  },
  {
    name = "plan-open",
    desc = "Read and edit the plan",
    keys = { ["plan-card"] = { "<CR>" } },
  },
  {
    name = "plan-accept",
    desc = "Accept the plan as it is in the buffer",
    keys = { plan = { "gA" }, ["plan-card"] = { "gA" } },
  },
  {
    name = "plan-reject",
    desc = "Reject the plan with a reason",
    keys = { plan = { "gR" }, ["plan-card"] = { "gR" } },
  },
  {
    name = "plan-cancel",
    desc = "Answer the plan as cancelled",
    keys = { plan = { "gC" }, ["plan-card"] = { "gC" } },
  },
  {
    name = "next-decision",
    desc = "Next decision",
    keys = { permission = { "<Tab>" }, question = { "<Tab>" }, conflict = { "<Tab>" }, ["plan-card"] = { "<Tab>" } },
  },
  {
    name = "previous-decision",
    desc = "Previous decision",
    keys = {
      permission = { "<S-Tab>" },
      question = { "<S-Tab>" },
      conflict = { "<S-Tab>" },
      ["plan-card"] = { "<S-Tab>" },
    },
  },
  {
    name = "decision-later",
    desc = "Decide later",
    keys = { permission = { "q" }, question = { "q" }, conflict = { "q" }, ["plan-card"] = { "q" }, plan = { "q" } },
  },
  {
    name = "decision-leave",
    desc = "Go back to the previous window",
    keys = { permission = { "<Esc>" }, question = { "<Esc>" }, conflict = { "<Esc>" }, ["plan-card"] = { "<Esc>" } },
  },
  {
    name = "todos-follow",
    desc = "Go to the plan, or to the todos in the chat",
    keys = { todos = { "<CR>" } },
  },
  {
    name = "todos-close",
    desc = "Close the todos",
    keys = { todos = { "q" } },
  },
  {
    name = "log-message",
    desc = "Show the whole message",
    keys = { log = { "<CR>" } },
  },
  {
    name = "log-filter",
    desc = "Show the messages of one method",
    keys = { log = { "f" } },
  },
  {
    name = "log-save",
    desc = "Save the log without secrets",
    keys = { log = { "s" } },
  },
  {
    name = "log-refresh",
    desc = "Refresh the log",
    keys = { log = { "r" } },
  },
  {
    name = "reader-close",
    desc = "Close the window and go back",
    keys = { log = { "q" }, reader = { "q" }, subagent = { "q" }, mcp = { "q" } },
  },
  {
    name = "hunk-next",
    desc = "Go to the next undecided change, in this file or another",
    keys = { code = { "]h" } },
  },
  {
    name = "hunk-prev",
    desc = "Go to the previous undecided change",
    keys = { code = { "[h" } },
  },
  {
    name = "hunk-keep",
    desc = "Keep the change under the cursor, or the selected ones",
    keys = { code = { "<M-k>" } },
    modes = { code = { "n", "x" } },
  },
  {
    name = "hunk-undo",
    desc = "Undo the change under the cursor, or the selected ones",
    keys = { code = { "<M-u>" } },
    modes = { code = { "n", "x" } },
  },
  {
    name = "file-keep",
    desc = "Keep all changes in this file",
  },
  {
    name = "file-undo",
    desc = "Undo all changes in this file",
  },
  {
    name = "turn-keep",
    desc = "Keep all changes of the last turn",
  },
  {
    name = "turn-undo",
    desc = "Undo all changes of the last turn",
  },
  {
    name = "keep-all",
    desc = "Keep all undecided changes",
  },
  {
    name = "undo-all",
    desc = "Undo all undecided changes",
  },
  {
    name = "comment",
    desc = "Comment on the line, change or selection in the next prompt",
    keys = { code = { "<M-c>" } },
    modes = { code = { "n", "x" } },
  },
  {
    name = "follow-agent",
    desc = "Start or stop showing what the agent reads and edits in another window",
  },
  {
    name = "go-back",
    desc = "Restore the files from before the prompt under the cursor",
    keys = { chat = { "gu" } },
  },
  {
    name = "review",
    desc = "List the undecided changes for review",
    keys = everywhere("gh", { global = { "r" } }),
    shared = true,
  },
  {
    name = "checkpoints",
    desc = "Restore the files from before a prompt",
  },
  {
    name = "review-follow",
    desc = "Go to the change",
    keys = { review = { "<CR>" } },
  },
  {
    name = "review-keep",
    desc = "Keep the change, or the file",
    -- Not `k`: moving up with it would decide.
    keys = { review = { "a", "<M-k>" } },
  },
  {
    name = "review-undo",
    desc = "Undo the change, or the file",
    keys = { review = { "u", "<M-u>" } },
  },
  {
    name = "review-comment",
    desc = "Comment on the change in the next prompt",
    keys = { review = { "c", "<M-c>" } },
  },
  {
    name = "review-close",
    desc = "Close the list",
    keys = { review = { "q" } },
  },
  {
    name = "mcp",
    desc = "List the MCP servers",
  },
  {
    name = "mcp-open",
    desc = "Open the server in its file",
    keys = { mcp = { "<CR>" } },
  },
  {
    name = "mcp-enable",
    desc = "Enable and approve the server",
    keys = { mcp = { "e" } },
  },
  {
    name = "mcp-disable",
    desc = "Disable the server",
    keys = { mcp = { "d" } },
  },
  {
    name = "mcp-login",
    desc = "Log in to the server",
    keys = { mcp = { "L" } },
  },
  {
    name = "mcp-tools",
    desc = "Show or hide the server's tools",
    keys = { mcp = { "t" } },
  },
  {
    name = "mcp-edit",
    desc = "Edit the project's mcp.json",
    keys = { mcp = { "E" } },
  },
  {
    name = "mcp-edit-user",
    desc = "Edit the user's mcp.json",
    keys = { mcp = { "U" } },
  },
  {
    name = "mcp-refresh",
    desc = "Refresh the list",
    keys = { mcp = { "R" } },
  },
  {
    name = "cloud",
    desc = "List the cloud agents",
  },
  {
    name = "cloud-open",
    desc = "Open the agent's conversation",
    keys = { cloud = { "<CR>" } },
  },
  {
    name = "cloud-follow-up",
    desc = "Send the agent a follow-up",
    keys = { cloud = { "f" } },
  },
  {
    name = "cloud-stop",
    desc = "Stop the agent",
    keys = { cloud = { "x" } },
  },
  {
    name = "cloud-browse",
    desc = "Open the agent's pull request or page in the browser",
    keys = { cloud = { "p" } },
  },
  {
    name = "cloud-diff",
    desc = "Show the agent's changes against its base",
    keys = { cloud = { "d" } },
  },
  {
    name = "cloud-checkout",
    desc = "Check out the agent's branch",
    keys = { cloud = { "c" } },
  },
  {
    name = "cloud-artifacts",
    desc = "Download one of the agent's artifacts",
    keys = { cloud = { "a" } },
  },
  {
    name = "cloud-usage",
    desc = "Show the agent's tokens and cost",
    keys = { cloud = { "u" } },
  },
  {
    name = "cloud-archive",
    desc = "Archive or unarchive the agent",
    keys = { cloud = { "A" } },
  },
  {
    name = "cloud-delete",
    desc = "Permanently delete the agent, after asking",
    keys = { cloud = { "D" } },
  },
  {
    name = "cloud-new",
    desc = "Start an agent",
    keys = { cloud = { "n" } },
  },
  {
    name = "cloud-state",
    desc = "Filter by state",
    keys = { cloud = { "s" } },
  },
  {
    name = "cloud-repo",
    desc = "Filter by repository",
    keys = { cloud = { "r" } },
  },
  {
    name = "cloud-text",
    desc = "Filter by text",
    keys = { cloud = { "t" } },
  },
  {
    name = "cloud-all",
    desc = "Clear the filter",
    keys = { cloud = { "<BS>" } },
  },
  {
    name = "cloud-archived",
    desc = "Show or hide archived agents",
    keys = { cloud = { "z" } },
  },
  {
    name = "cloud-refresh",
    desc = "Refresh the list",
    keys = { cloud = { "R" } },
  },
  {
    name = "cloud-close",
    desc = "Close the dashboard",
    keys = { cloud = { "q" } },
  },
  {
    name = "help",
    desc = "List the keys",
    keys = everywhere("g?"),
    shared = true,
  },
}
