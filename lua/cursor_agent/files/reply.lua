-- The editor's replies to an agent's requests.

local bridge = require("cursor_agent.bridge")

local M = {}

---@param request integer
---@param reply cursor_agent.EditorReply
function M.send(request, reply)
  local ready = bridge.is_loaded()
  if ready then
    bridge.reply(request, reply)
  end
end

---What the library needs to know to read or write a file as Neovim would.
---@param request integer
function M.leave_to_disk(request)
  M.send(request, { ok = true, disk = true, encodings = vim.split(vim.o.fileencodings, ",", { plain = true }) })
end

---@param request integer
---@param problem string
function M.refuse(request, problem)
  M.send(request, { ok = false, error = problem })
end

return M
