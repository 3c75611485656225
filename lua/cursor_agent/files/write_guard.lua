-- Decides whether `:w` may write a buffer whose file an agent may have changed, and tells the user if it may not.

local events = require("cursor_agent.bridge.events")
local loaded = require("cursor_agent.files.loaded")
local notify = require("cursor_agent.notify")

local M = {}

---Tells the user why nothing was written, after Neovim's own message: two messages at once wait for a key.
---@param text string
local function tell(text)
  vim.schedule(function()
    notify.notify(text, "error")
  end)
end

---Whether a buffer can be written without overwriting text on disk that is in no buffer. If not, tells the user why.
---@param buf integer
---@param path string
---@param by_agent boolean whether to assume an agent wrote what is on disk
---@return boolean
function M.may_write(buf, path, by_agent)
  local stat = vim.uv.fs_stat(path)
  local known = loaded.known(buf)
  if not stat or not known or known == loaded.state(stat) then
    return true
  end
  local disk = loaded.disk(buf, path)
  local base = disk and loaded.base(buf, disk)
  if
    disk and (loaded.same(loaded.lines(buf), disk.lines) or (base and loaded.equal(base, disk.text) and #base > 0))
  then
    -- It is about to be written, which notifies the review.
    loaded.sync(buf, vim.bo[buf].modified)
    loaded.note(buf, disk)
    return true
  end
  local name = vim.fs.basename(path)
  if not disk then
    tell(("%s has changed on disk and was not written\n  `:w!` overwrites it"):format(name))
    return false
  end
  if base and by_agent and #disk.text <= loaded.LONG_BYTES / 8 then
    events.emit("file changed", buf, { quietly = true })
    if loaded.is_current(buf, path) then
      -- What is written now contains both in full.
      notify.notify(("%s: the agent's changes were merged with yours and saved with them"):format(name))
      return true
    end
  end
  vim.schedule(function()
    if vim.api.nvim_buf_is_loaded(buf) then
      events.emit("file changed", buf, { quietly = true })
    end
  end)
  local text =
    "%s has changed on disk and was not written\n  :CursorAgent conflicts shows the difference; `:w!` overwrites it"
  tell(text:format(name))
  return false
end

return M
