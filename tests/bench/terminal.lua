-- One program in a terminal of its own (a pty of 160 by 48), as a person runs it; what it draws is read and counted.

local uv = vim.uv

---@class bench.Terminal
---@field private job integer
---@field private code integer?
---@field private seen integer how often the watched text was drawn
---@field private seen_at integer when it was drawn last, in ns
---@field private rest string
---@field private watched string?
---@field bytes integer how much was drawn
local Terminal = {}
Terminal.__index = Terminal

---@param command string[]
---@param opts { env: table<string, string>, cwd: string }
---@return bench.Terminal
function Terminal.start(command, opts)
  local self = setmetatable({ seen = 0, seen_at = 0, rest = "", bytes = 0 }, Terminal)
  self.job = vim.fn.jobstart(command, {
    pty = true,
    width = 160,
    height = 48,
    clear_env = true,
    env = opts.env,
    cwd = opts.cwd,
    on_stdout = function(_, data)
      self:draw(table.concat(data, "\n"))
    end,
    on_exit = function(_, code)
      self.code = code
    end,
  })
  assert(self.job > 0, "the terminal does not start")
  return self
end

---@private
---@param data string
function Terminal:draw(data)
  self.bytes = self.bytes + #data
  if not self.watched then
    return
  end
  -- A character may come in two pieces.
  local text = self.rest .. data
  local from = 1
  while true do
    local _, last = text:find(self.watched, from, true)
    if not last then
      break
    end
    self.seen, self.seen_at, from = self.seen + 1, uv.hrtime(), last + 1
  end
  self.rest = text:sub(math.max(from, #text - #self.watched + 2))
end

---@param keys string
function Terminal:type(keys)
  vim.fn.chansend(self.job, keys)
end

---How long it takes until a typed character is drawn, in ms; nil when it is not within a second.
---@param character string one that nothing else draws
---@return number?
function Terminal:echo(character)
  self.watched, self.rest = character, ""
  local before, typed = self.seen, uv.hrtime()
  self:type(character)
  local drawn = vim.wait(1000, function()
    return self.seen > before
  end, 1)
  return drawn and (self.seen_at - typed) / 1e6 or nil
end

---@param ms integer
---@return integer? code
function Terminal:wait_exit(ms)
  vim.wait(ms, function()
    return self.code ~= nil
  end, 20)
  return self.code
end

function Terminal:stop()
  vim.fn.jobstop(self.job)
  self:wait_exit(5000)
end

return Terminal
