-- Binds a typed answer to the decision that was on the screen when typing began.
--
-- `:CursorAgent accept` takes a second to type, and meanwhile another decision may replace the one it was meant
-- for. A call from a script is meant for whatever is open, and is not held back.

local bridge = require("cursor_agent.bridge")

local M = {}

local NS = vim.api.nvim_create_namespace("cursor_agent_typed")

---@type { id: integer?, revision: integer?, all: table<integer, integer> }? what waited when the command line was
---entered: the one on the screen, and the revision of each
local entered

---@type { id: integer?, revision: integer?, all: table<integer, integer> }? the same, while the typed command runs
local began

local by_key = false -- the code running now was triggered by a key
local watching = false

---Watches keys while a decision is open, to recognize mappings that answer.
---@param on boolean
function M.watch(on)
  if on == watching then
    return
  end
  watching = on
  if not on then
    vim.on_key(nil, NS)
    return
  end
  vim.on_key(function()
    if not by_key then
      by_key = true
      vim.schedule(function()
        by_key = false
      end)
    end
  end, NS)
end

---What is on the screen, else the oldest open decision. The queue replaces this when the first decision loads it.
---@return cursor_agent.Decision?
function M.current()
  return bridge.is_loaded() and bridge.pending()[1] or nil
end

---All that wait. The queue replaces this too.
---@return cursor_agent.Decision[]
function M.all()
  return bridge.is_loaded() and bridge.pending() or {}
end

---Watches the command line; called when a chat starts.
function M.setup()
  local group = vim.api.nvim_create_augroup("cursor_agent_typed", {})
  vim.api.nvim_create_autocmd({ "CmdlineEnter", "CmdwinEnter" }, {
    group = group,
    desc = "cursor-agent: remember the decision shown while a command is typed",
    callback = function()
      local decision = M.current()
      entered = { id = decision and decision.id, revision = decision and decision.revision, all = {} }
      for _, waiting in ipairs(M.all()) do
        entered.all[waiting.id] = waiting.revision
      end
    end,
  })
  vim.api.nvim_create_autocmd("CmdlineLeave", {
    group = group,
    desc = "cursor-agent: forget that decision after the command",
    callback = function()
      -- Until now, what ran was a script's: it is not held back by what is being typed.
      began, entered = entered, nil
      local left = began
      vim.schedule(function()
        if began == left then
          began = nil
        end
      end)
    end,
  })
end

---Whether the code that runs now was typed on the command line.
---@return boolean
function M.is_typing()
  return began ~= nil
end

---Whether the user has seen what is about to be answered.
---@param decision cursor_agent.Decision
---@param settled boolean it has been on the screen for a moment
---@return boolean, string?
function M.saw(decision, settled)
  if began and began.id == nil then
    return false, "a decision came up while you typed; nothing was answered"
  elseif began and (began.id ~= decision.id or began.revision ~= decision.revision) then
    return false, "another decision came up while you typed; nothing was answered"
  elseif not began and by_key and not settled then
    return false, "this decision has only just come up; nothing was answered"
  end
  return true
end

---The same for an answer that names its decision: a typed one must have waited, as it is, when typing began.
---@param decision cursor_agent.Decision
---@param settled boolean it has been on the screen for a moment, or is not on it
---@return boolean, string?
function M.saw_this(decision, settled)
  if began and began.all[decision.id] == nil then
    return false, "a decision came up while you typed; nothing was answered"
  elseif began and began.all[decision.id] ~= decision.revision then
    return false, "the call changed while you typed; nothing was answered"
  elseif not began and by_key and not settled then
    return false, "this decision has only just come up; nothing was answered"
  end
  return true
end

return M
