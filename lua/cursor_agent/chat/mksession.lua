-- Brings chats back into the windows that a `:mksession` file creates for them.

local buffers = require("cursor_agent.chat.buffers")
local chats = require("cursor_agent.chat.registry")
local layout = require("cursor_agent.chat.layout")
local buffer_names = require("cursor_agent.bridge.buffer_names")

local M = {}

---@type table<string, { buf: integer, name: string }> by stem of the name: chat buffers renamed while a session file
---is read
local aside = {}

---Restores the buffers' names.
local function come_back()
  for _, one in pairs(aside) do
    if vim.api.nvim_buf_is_valid(one.buf) then
      buffers.rename(one.buf, one.name)
    end
  end
  -- Cleared last, so that `step_aside` does not see the renames.
  aside = {}
end

---A session file creates an empty buffer under each name it knew, so rename the live chats' buffers out of the way.
function M.step_aside()
  if vim.g.SessionLoad == nil or next(aside) then
    return
  end
  for _, chat in ipairs(chats.all()) do
    for _, buf in ipairs({ chat.buf, chat.prompt.buf }) do
      if vim.api.nvim_buf_is_valid(buf) then
        local name = vim.api.nvim_buf_get_name(buf)
        buffers.rename(buf, name .. ".aside")
        aside[buffers.stem(name) or name] = { buf = buf, name = name }
      end
    end
  end
  -- Nothing else restores the names if reading the file fails half-way.
  vim.schedule(come_back)
end

---After a session file was read: its windows show the live chats; windows of chats that no longer exist are closed.
function M.loaded()
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    local name = vim.api.nvim_buf_get_name(buf)
    if buffer_names.rest(name) and not chats.of_buffer(buf) then
      -- Its title may have been different when the file was written.
      local live = (aside[buffers.stem(name) or name] or {}).buf
      local chat = live and chats.of_buffer(live)
      for _, win in ipairs(chat and vim.fn.win_findbuf(buf) or {}) do
        vim.api.nvim_win_set_buf(win, live)
        chats.use(chat --[[@as cursor_agent.Chat]], vim.api.nvim_win_get_tabpage(win))
      end
      layout.forget(buf)
    end
  end
  come_back()
end

---Watches for session files; called when a chat starts.
function M.setup()
  vim.api.nvim_create_autocmd("BufFilePre", {
    group = vim.api.nvim_create_augroup("cursor_agent_mksession", {}),
    desc = "cursor-agent: name the chat's buffers for :mksession",
    callback = M.step_aside,
  })
end

return M
