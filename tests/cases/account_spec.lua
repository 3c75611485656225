-- Logging out, deleting and loading a past session: asked of the agent of the chat one is in.

local T = require("harness")

T.case("an agent that offers them is asked, and the answer is shown", { width = 120 }, function(nvim)
  local agent = T.agent({ profile = "plain", on = { ["session/delete"] = { { reply = vim.empty_dict() } } } })
  nvim:use(agent)
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  nvim:keys("<Esc>:CursorAgent delete old-session<CR>")
  nvim:wait_screen("Permanently delete session old-session?")
  nvim:keys("y")
  nvim:wait_screen("deleted session old-session")
  T.eq(agent:received("session/delete")[1].params, { sessionId = "old-session" })
  nvim:keys(":CursorAgent logout<CR>")
  nvim:wait_screen("logged out of test")
  T.eq(#agent:received("logout"), 1)
end)

T.case("a session that is not there is named with the agent's own words", { width = 120 }, function(nvim)
  nvim:use(T.agent({ profile = "plain" }))
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  nvim:keys("<Esc>:CursorAgent delete old-session<CR>")
  nvim:wait_screen("Permanently delete session old-session?")
  nvim:keys("y")
  nvim:wait_screen("could not delete session old-session: Session not found")
end)

T.case("an agent that does not offer them is not asked", { width = 120 }, function(nvim)
  local agent = T.agent({ profile = "cursor" })
  nvim:use(agent)
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  nvim:keys("<Esc>:CursorAgent logout<CR>")
  nvim:wait_screen("test cannot log out")
  nvim:keys(":CursorAgent! delete x<CR>")
  nvim:wait_screen("test cannot delete a session")
  nvim:keys(":CursorAgent delete<CR>")
  nvim:wait_screen("`delete` needs a session")
  T.eq(#agent:received("logout") + #agent:received("session/delete"), 0)
end)

T.case("a past session is loaded from the agent of the chat one is in", { width = 120 }, function(nvim)
  local agent = T.agent({ profile = "cursor" })
  nvim:use(agent, { agent = "demo" })
  nvim:cmd("CursorAgent new test")
  nvim:wait_state("idle")
  nvim:keys("<Esc>:CursorAgent load old-session<CR>")
  nvim:wait(function()
    return #agent:received("session/load") == 1
  end, "the agent to be asked")
end)

T.case(
  "an agent that does not list its sessions is named, and a late answer still counts",
  { width = 120 },
  function(nvim)
    nvim:use(T.agent({
      profile = "plain",
      sessions = { { sessionId = "old-1", title = "An old talk" } },
      on = { ["session/list"] = { { wait_ms = 1500 }, { profile = true } } },
    }))
    nvim:lua("require('cursor_agent.notify').SLOW_MS = 1000")
    nvim:cmd("CursorAgent")
    nvim:wait_state("idle")
    nvim:keys("<Esc>:CursorAgent sessions<CR>")
    nvim:wait_screen("test has not answered session/list for 1 s: still waiting")
    nvim:wait_screen("An old talk")
  end
)
