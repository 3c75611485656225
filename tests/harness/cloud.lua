-- The fake of Cursor's cloud API, for the cases: the real program on loopback, told on its stdin what is to go wrong.

local T = require("harness")

---@class harness.Cloud
---@field url string
---@field private system vim.SystemObj
---@field private out string
local Cloud = {}
Cloud.__index = Cloud

local WAIT_MS = 5000

---How large the editor of a case is, and how long the case may take.
Cloud.OPTS = { width = 120, height = 30, deadline_ms = 90000 }

---A key that is looked for where it must not be.
Cloud.KEY = "key_planted_0123456789abcdef"

---Makes a case's directory a repository with a remote of its own, to which its first commit is pushed.
---@param nvim harness.Child
---@return string remote
function Cloud.clone(nvim)
  local remote = nvim.dir .. "/acme/app.git"
  vim.fn.mkdir(remote, "p")
  T.git(remote, "init", "--quiet", "--bare")
  T.git(nvim.work, "init", "--quiet")
  T.git(nvim.work, "remote", "add", "origin", remote)
  T.git(nvim.work, "add", "a.lua")
  T.git(nvim.work, "commit", "--quiet", "-m", "first")
  T.git(nvim.work, "push", "--quiet", "origin", "HEAD:main")
  return remote
end

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

---What was asked by a method at paths with an ending.
---@param method string
---@param ending string
---@return table[]
function Cloud:asked(method, ending)
  return vim.tbl_filter(function(one)
    return one.method == method and vim.endswith(one.path, ending)
  end, self:tell().requests)
end

---Ends it.
function Cloud:stop()
  self.system:write(nil)
  self.system:wait(WAIT_MS)
end

---Adds a case with a fake of its own, whose only key is `Cloud.KEY`, and the plugin set up for it.
---@param name string
---@param args string[] of the fake
---@param run fun(nvim: harness.Child, cloud: harness.Cloud)
---@param opts? harness.CaseOptions
---@param options? table more of the plugin's options for the cloud
function Cloud.case(name, args, run, opts, options)
  local own = vim.tbl_extend("force", Cloud.OPTS, opts or {})
  T.case(name, own, function(nvim)
    local cloud = Cloud.start(T.root, vim.list_extend({ "--key", Cloud.KEY }, args))
    local spec = vim.tbl_extend("force", { url = cloud.url, api_key = Cloud.KEY }, options or {})
    nvim:use(T.agent({ turns = {} }), { cloud = spec })
    local ok, why = xpcall(run, debug.traceback, nvim, cloud)
    cloud:stop()
    if not ok then
      error(why, 0)
    end
  end)
end

return Cloud
