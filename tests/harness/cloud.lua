-- The fake of Cursor's cloud API, for the cases: the real program on loopback, told on its stdin what is to go wrong.

---@class harness.Cloud
---@field url string
---@field private system vim.SystemObj
---@field private out string
local Cloud = {}
Cloud.__index = Cloud

local WAIT_MS = 5000

---@private
---@return string
function Cloud:line()
  local found = vim.wait(WAIT_MS, function()
    return self.out:find("\n", 1, true) ~= nil
  end, 5)
  assert(found, "the fake says nothing")
  local line, rest = self.out:match("^(.-)\n(.*)$")
  self.out = rest or ""
  return line or ""
end

---@param root string
---@param args? string[]
---@return harness.Cloud
function Cloud.start(root, args)
  local self = setmetatable({ out = "" }, Cloud)
  local command = vim.list_extend({ root .. "/lib/cursor-agent-cloud", "fake" }, args or {})
  self.system = vim.system(command, {
    stdin = true,
    stdout = function(_, data)
      self.out = self.out .. (data or "")
    end,
  })
  self.url = self:line()
  return self
end

---Makes faults; says what there is and what was asked.
---@param control? table
---@return { agents: table[], requests: table[] }
function Cloud:tell(control)
  self.system:write(vim.json.encode(control or vim.empty_dict()) .. "\n")
  return vim.json.decode(self:line(), { luanil = { object = true, array = true } })
end

---Ends it.
function Cloud:stop()
  self.system:write(nil)
  self.system:wait(WAIT_MS)
end

return Cloud
