-- The buffers of a chat: how each is made, and what becomes of one that is unloaded.

local M = {}

---@param key cursor_agent.Key
---@param kind "chat"|"prompt"
---@return integer
function M.make(key, kind)
  local buf = vim.api.nvim_create_buf(false, true)
  vim.b[buf].cursor_agent_key = key
  vim.api.nvim_buf_set_name(buf, ("cursor-agent://%d/%s"):format(key, kind))
  local bo = vim.bo[buf]
  bo.bufhidden = "hide"
  bo.swapfile = false
  bo.buflisted = false
  vim.api.nvim_create_autocmd("BufUnload", {
    buffer = buf,
    desc = "cursor-agent: a buffer of a chat without its text is of no use, opening the chat makes a new one",
    callback = vim.schedule_wrap(function()
      if vim.api.nvim_buf_is_valid(buf) and vim.v.exiting == vim.NIL then
        pcall(vim.api.nvim_buf_delete, buf, { force = true })
      end
    end),
  })
  return buf
end

---Whether a buffer of a chat is gone, text and all. One that was only unloaded goes as well.
---@param buf integer
---@return boolean
function M.is_gone(buf)
  if vim.api.nvim_buf_is_loaded(buf) then
    return false
  end
  if vim.api.nvim_buf_is_valid(buf) then
    pcall(vim.api.nvim_buf_delete, buf, { force = true })
  end
  return true
end

return M
