-- Passes the user's rules to the library, and rejects requests that cannot be asked because there is no UI.

local config = require("cursor_agent.config")
local bridge = require("cursor_agent.bridge")
local events = require("cursor_agent.bridge.events")

local M = {}

---Without a UI, a script has this long to answer.
M.UNATTENDED_MS = 5000

---Used if any rule is wrong: then everything asks.
local ASK_ALL = { { action = "ask", name = "ask for everything: a rule has a mistake" } }

---Passes on the effective rules.
function M.push()
  local ready = bridge.is_loaded()
  if not ready then
    return
  end
  local options = config.get()
  local spec = {
    rules = config.has_wrong_rules() and ASK_ALL or options.policy,
    roots = vim.tbl_map(vim.fs.normalize, options.workspace.roots),
    home = vim.uv.os_homedir() or "",
  }
  local done, why = bridge.set_policy(spec)
  if not done then
    spec.rules = ASK_ALL
    bridge.set_policy(spec)
    require("cursor_agent.notify").notify(
      ("option `policy`: %s\n  until this is fixed, every request needs your approval"):format(why),
      "warn"
    )
  end
end

---The library is loaded: pass it the rules, now and whenever they change.
function M.on_loaded()
  M.push()
  events.on("configured", "cursor_agent.decide.rules", "push")
end

---Whether a question can reach the user or a script.
---@return boolean
local function is_attended()
  local listeners = vim.api.nvim_get_autocmds({ event = "User", pattern = "CursorAgentDecision" })
  return #vim.api.nvim_list_uis() > 0 or #listeners > 0
end

---Rejects what an agent wants to do through the editor if there is no UI to ask on.
---@param decision cursor_agent.Decision
---@param queue { waits: (fun(id: integer): boolean), answer: fun(id: integer, answer: table) }
function M.guard(decision, queue)
  if not decision.by_editor or is_attended() then
    return
  end
  vim.defer_fn(function()
    if queue.waits(decision.id) and not is_attended() then
      queue.answer(decision.id, { reject = true, reason = "Neovim has no UI to ask the user" })
    end
  end, M.UNATTENDED_MS)
end

return M
