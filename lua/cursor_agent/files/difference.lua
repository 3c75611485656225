-- Shows the user's text and the agent's side by side, in their own tab page.

local buffer_names = require("cursor_agent.bridge.buffer_names")

local M = {}

---Shows the user's text and the agent's side by side in their own tab page.
---@param conflict cursor_agent.Conflict
---@return integer? buf the agent's
---@return integer? win the user's
function M.show(conflict)
  if not pcall(vim.api.nvim_command, "tab sbuffer " .. conflict.buf) then
    return nil
  end
  local mine = vim.api.nvim_get_current_win()
  vim.cmd("diffthis")
  local theirs = vim.api.nvim_create_buf(false, true)
  local parsers = require("cursor_agent.colour.parsers")
  parsers.fence(theirs, parsers.language_of(vim.bo[conflict.buf].filetype))
  vim.api.nvim_buf_set_lines(theirs, 0, -1, false, conflict.theirs)
  vim.bo[theirs].bufhidden = "wipe"
  vim.bo[theirs].filetype = vim.bo[conflict.buf].filetype
  vim.bo[theirs].modifiable = false
  vim.api.nvim_buf_set_name(theirs, buffer_names.of(("theirs/%d/%s"):format(theirs, vim.fs.basename(conflict.path))))
  vim.api.nvim_open_win(theirs, true, { split = "right", win = mine })
  vim.cmd("diffthis")
  vim.api.nvim_create_autocmd("BufWipeout", {
    buffer = theirs,
    once = true,
    desc = "cursor-agent: clean up when the diff is closed",
    callback = vim.schedule_wrap(function()
      if vim.api.nvim_win_is_valid(mine) and vim.api.nvim_win_get_buf(mine) == conflict.buf then
        vim.api.nvim_win_call(mine, function()
          vim.cmd("diffoff")
        end)
        -- The text stays, in a hidden buffer if it is shown nowhere else.
        pcall(vim.api.nvim_win_close, mine, true)
      end
    end),
  })
  return theirs, mine
end

return M
