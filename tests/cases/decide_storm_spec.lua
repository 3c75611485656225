-- A storm: a hundred decisions at once over five sessions, half of them taken back, one session cancelled in the middle.

local T = require("harness")

local SESSIONS = 5
local EACH = 20
local CANCELLED = 3
local METHOD = "session/request_permission"

---The turn of one session: it asks for everything at once, takes every other one back, and waits for all answers.
---@param session integer
---@return table[] steps
local function storm(session)
  local steps = {}
  for i = 1, EACH do
    local call = { toolCallId = ("c%d"):format(i), title = ("`run %d.%d`"):format(session, i), kind = "execute" }
    steps[#steps + 1] = { permission = { toolCall = call }, wait = false, name = "p" .. i }
  end
  steps[#steps + 1] = { expect = "session/set_mode" }
  for i = 2, EACH, 2 do
    steps[#steps + 1] = { withdraw = "p" .. i }
  end
  for i = 1, EACH do
    steps[#steps + 1] = { join = "p" .. i }
  end
  return steps
end

T.case(
  "a hundred decisions over five sessions are each answered once",
  { width = 100, deadline_ms = 120000 },
  function(nvim)
    local agents, options = {}, {}
    for session = 1, SESSIONS do
      agents[session] = T.agent({ turns = { storm(session) } })
      options["storm" .. session] = agents[session].options
    end
    nvim:use(agents[1], { agents = options, attention = { notify = false } })
    nvim:lua("require('cursor_agent.decide').SETTLE_MS = 0")
    -- Keys come here as fast as from one held down.
    nvim:lua("require('cursor_agent.decide.held').FIRST_REPEAT_MS = 0")
    local keys = nvim:lua(
      [[
      local api, keys = require("cursor_agent"), {}
      for session = 1, ... do
        keys[session] = assert(api.new({ agent = "storm" .. session, open = false }))
        assert(api.prompt("go", { session = keys[session], open = false }))
      end
      return keys
    ]],
      SESSIONS
    )
    nvim:wait_screen(("1 of %d"):format(SESSIONS * EACH), 30000)
    nvim:wait("#require('cursor_agent.bridge.native').peek().pending() == 100", "all of them to wait")

    -- Some by key, in the order they came, while the agents take back what they asked and one turn is cancelled.
    nvim:keys(":CursorAgent decisions<CR>")
    nvim:wait("vim.bo.filetype == 'cursoragent-decision'", "the card")
    for session = 1, SESSIONS do
      nvim:lua("assert(require('cursor_agent').set_mode('plan', ...))", keys[session])
    end
    nvim:wait("#require('cursor_agent.bridge.native').peek().pending() < 100", "the first to be taken back")
    -- Fewer than one session keeps, whichever asked first: something is left there to be cancelled.
    for i = 1, 8 do
      nvim:keys(i % 3 == 0 and "r" or "a")
    end
    nvim:lua("assert(require('cursor_agent').cancel(...))", keys[CANCELLED])
    nvim:wait(function()
      local left = nvim:lua("return #require('cursor_agent.bridge.native').peek().pending()")
      if left > 0 and nvim:lua("return vim.bo.filetype") == "cursoragent-decision" then
        nvim:keys(left % 2 == 0 and "a" or "r")
      elseif left > 0 then
        nvim:cmd("silent! CursorAgent decisions")
      end
      return left == 0
    end, "everything to be answered", 60000)
    nvim:wait_turns(SESSIONS, 30000)
    nvim:wait("vim.bo.filetype == '' and #vim.api.nvim_list_wins() == 1", "the card to go, and the focus to come back")

    local by_outcome = {}
    for session, agent in ipairs(agents) do
      local asked, answered = {}, {}
      for _, entry in ipairs(agent:log()) do
        local out, received = entry.out, entry["in"]
        if out and out.method == METHOD then
          asked[#asked + 1] = out.id
        elseif received and not received.method and received.id ~= nil then
          answered[received.id] = (answered[received.id] or 0) + 1
          local outcome = received.result and received.result.outcome
          local name = outcome and (outcome.optionId or outcome.outcome) or tostring(received.error.code)
          by_outcome[name] = (by_outcome[name] or 0) + 1
        end
      end
      T.eq(#asked, EACH, "asked by agent " .. session)
      for _, id in ipairs(asked) do
        T.eq(answered[id], 1, ("answers of agent %d to request %s"):format(session, tostring(id)))
      end
      if session ~= CANCELLED then
        -- There the turn is over when the last answers come, so the agent no longer waits for them.
        T.eq(#agent:notes("stray answer"), 0)
      end
      T.eq(#agent:notes("unanswered"), 0)
    end
    local total = 0
    for _, count in pairs(by_outcome) do
      total = total + count
    end
    T.eq(total, SESSIONS * EACH)
    -- Which of them a key reached before they were taken back depends on the moment; that there are all kinds does not.
    for _, name in ipairs({ "allow-once", "-32800", "cancelled" }) do
      T.ok((by_outcome[name] or 0) > 0, ("none was %s: %s"):format(name, vim.inspect(by_outcome)))
    end
    T.eq(nvim:lua("return require('cursor_agent.bridge.native').peek().pending()"), {})
  end
)
