-- The buffers of a chat: how each is created, and what happens when one is unloaded.

local buffer_names = require("cursor_agent.bridge.buffer_names")

local M = {}

---Renames a buffer. Neovim keeps the old name as an unloaded buffer, which is deleted here.
---@param buf integer
---@param name string
---@return boolean renamed
function M.rename(buf, name)
  local before = vim.api.nvim_buf_get_name(buf)
  -- While the text is locked (evaluating an expression, say), names are locked too.
  if not pcall(vim.api.nvim_buf_set_name, buf, name) then
    return false
  end
  for _, other in ipairs(vim.api.nvim_list_bufs()) do
    if other ~= buf and before ~= "" and vim.api.nvim_buf_get_name(other) == before then
      pcall(vim.api.nvim_buf_delete, other, { force = true })
    end
  end
  return true
end

---The part of a name that does not depend on the chat's title.
---@param name string
---@return string?
function M.stem(name)
  return (buffer_names.rest(name) or ""):match("^%d+/%a+")
end

---Names a buffer of a chat after the chat's title.
---@param buf integer
---@param key cursor_agent.Key
---@param kind "chat"|"prompt"
---@param title string?
---@return boolean renamed
function M.name(buf, key, kind, title)
  if not vim.api.nvim_buf_is_valid(buf) then
    return false
  end
  -- Tab lines show the last path component, so a slash in a title must not look like a path separator.
  local about = title and ": " .. title:gsub("/", "∕") or ""
  local name = buffer_names.of(("%d/%s%s"):format(key, kind, about))
  return vim.api.nvim_buf_get_name(buf) ~= name and M.rename(buf, name)
end

---Variables other plugins check before they animate scrolling or draw in a buffer: with those, streamed text would stop
---following its end, and each step would cost time.
local LEFT_ALONE = {
  snacks_scroll = false,
  snacks_animate = false,
  snacks_indent = false,
  snacks_words = false,
  minianimate_disable = true,
  miniindentscope_disable = true,
  minicursorword_disable = true,
}

---@param key cursor_agent.Key
---@param kind "chat"|"prompt"
---@return integer
function M.make(key, kind)
  local buf = vim.api.nvim_create_buf(false, true)
  vim.b[buf].cursor_agent_key = key
  M.name(buf, key, kind)
  for name, value in pairs(LEFT_ALONE) do
    vim.b[buf][name] = value
  end
  local bo = vim.bo[buf]
  bo.bufhidden = "hide"
  -- `nvim -M` and `:set nomodifiable` are meant for files.
  bo.modifiable = true
  bo.swapfile = false
  bo.buflisted = false
  vim.api.nvim_create_autocmd("BufUnload", {
    buffer = buf,
    desc = "cursor-agent: wipe an unloaded chat buffer",
    callback = vim.schedule_wrap(function()
      if vim.api.nvim_buf_is_valid(buf) and vim.v.exiting == vim.NIL then
        pcall(vim.api.nvim_buf_delete, buf, { force = true })
      end
    end),
  })
  return buf
end

---Whether a chat's buffer is gone. Deletes one that was only unloaded, as its text is lost too.
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
