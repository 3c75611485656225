-- The workspace's unsaved text, which an agent that reads the disk does not see: saved or attached on request.

local conflicts = require("cursor_agent.files.conflicts")
local context = require("cursor_agent.prompt.context")
local notify = require("cursor_agent.notify")

---@class (partial) cursor_agent.Prompt
local Prompt = {}

---Larger modified buffers are not attached as text: no agent could read that much.
local UNSAVED_BYTES = 10 * 1024 * 1024

---Modified buffers of the workspace: an agent that reads the disk does not see what is in them.
---@return integer[]
function Prompt:unsaved()
  local found = {} ---@type integer[]
  local root = self.chat.cwd .. "/"
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buf) and vim.bo[buf].modified and vim.bo[buf].buftype == "" then
      if vim.api.nvim_buf_get_name(buf):sub(1, #root) == root then
        found[#found + 1] = buf
      end
    end
  end
  return found
end

---@return boolean?, string?
function Prompt:save_unsaved()
  local failed = {} ---@type string[]
  for _, buf in ipairs(self:unsaved()) do
    if conflicts.has(buf) then
      -- Neovim would ask in the middle of this whether to overwrite what the agent wrote.
      local name = vim.fs.basename(vim.api.nvim_buf_get_name(buf))
      failed[#failed + 1] = ("%s was changed by the agent too: :CursorAgent conflicts"):format(name)
    else
      local ok, why = pcall(vim.api.nvim_buf_call, buf, function()
        vim.cmd("silent update")
      end)
      if not ok then
        local stopped = tostring(why):find("Keyboard interrupt", 1, true)
        local name = vim.fs.basename(vim.api.nvim_buf_get_name(buf))
        failed[#failed + 1] = stopped and ("%s was changed on disk: :CursorAgent conflicts"):format(name)
          or tostring(why):gsub("^.-(E%d+:)", "%1")
      end
    end
  end
  self:refresh()
  if #failed > 0 then
    return nil, table.concat(failed, "\n")
  end
  return true
end

---The text of the modified buffers, as attachments. Tells the user about those that are too large.
---@private
---@return cursor_agent.context.Item[]
function Prompt:unsaved_items()
  local items, large = {}, {} ---@type cursor_agent.context.Item[], string[]
  for _, buf in ipairs(self:unsaved()) do
    if vim.api.nvim_buf_get_offset(buf, vim.api.nvim_buf_line_count(buf)) > UNSAVED_BYTES then
      large[#large + 1] = vim.fs.basename(vim.api.nvim_buf_get_name(buf))
    else
      items[#items + 1] = context.unsaved(buf, self.chat.cwd)
    end
  end
  if #large > 0 then
    notify.notify(("too large to attach: %s (gs saves)"):format(table.concat(large, ", ")), "warn")
  end
  return items
end

function Prompt:attach_unsaved()
  for _, item in ipairs(self:unsaved_items()) do
    self:attach(item)
  end
end

return Prompt
