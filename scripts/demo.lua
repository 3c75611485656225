-- The demo's init file: the plugin on the demo agent; with a user interface the chat opens, headless one turn is played.

vim.opt.runtimepath:prepend(assert(vim.env.CURSOR_AGENT_ROOT))
vim.g.mapleader = " "
require("cursor_agent").setup({ agent = "demo", cloud = { url = "demo" } })

local TURN_MS = 60000
local PROMPT = "Show me what you can do in this project."

---Allows what is asked, takes the first answer of every question, accepts every plan.
---@param decision { id: integer, kind: string, options: { id: string, kind: string }[]?, questions: table[]? }
local function decide(decision)
  local agent = require("cursor_agent")
  if decision.kind == "permission" then
    for _, option in ipairs(decision.options or {}) do
      if option.kind == "allow_once" then
        return agent.answer(decision.id, { option = option.id })
      end
    end
    return agent.answer(decision.id, { cancel = true })
  elseif decision.kind == "question" then
    local answers = {}
    for _, question in ipairs(decision.questions or {}) do
      answers[question.id] = { question.options[1].id }
    end
    return agent.answer(decision.id, { answers = answers })
  end
  return agent.answer(decision.id, { accept = true })
end

---Plays one turn and prints the conversation.
---@return integer exit code
local function play()
  local agent = require("cursor_agent")
  local ended ---@type { stop_reason: string?, error: string? }?
  vim.api.nvim_create_autocmd("User", {
    pattern = "CursorAgentTurnEnd",
    callback = function(event)
      ended = event.data
    end,
  })
  local sent, problem = agent.prompt(PROMPT)
  if not sent then
    io.stderr:write("demo: ", tostring(problem), "\n")
    return 1
  end
  local answered = {}
  vim.wait(TURN_MS, function()
    for _, decision in ipairs(agent.pending() or {}) do
      if not answered[decision.id] then
        answered[decision.id] = true
        decide(decision)
      end
    end
    return ended ~= nil or agent.status().state == "failed"
  end, 50)
  for _, entry in ipairs(agent.transcript() or {}) do
    io.stdout:write(("── %s\n%s\n\n"):format(entry.kind, vim.trim(entry.text)))
  end
  if not ended or ended.error then
    io.stderr:write("demo: ", ended and ended.error or agent.status().error or "the turn did not end", "\n")
    return 1
  end
  return 0
end

vim.api.nvim_create_autocmd("VimEnter", {
  once = true,
  callback = vim.schedule_wrap(function()
    if #vim.api.nvim_list_uis() > 0 then
      require("cursor_agent").open()
      return
    end
    local ok, code = xpcall(play, debug.traceback)
    if not ok then
      io.stderr:write("demo: ", tostring(code), "\n")
    end
    vim.cmd.cquit({ count = ok and code or 1, bang = true })
  end),
})
