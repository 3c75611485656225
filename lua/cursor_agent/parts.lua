-- Joins the parts: which of them hears of which event, and in which order.
--
-- Whatever is used first (`init`, a command, a key, a completion source, `:checkhealth`) loads this file. It loads no part:
-- each is loaded by the first event that concerns it. This is the only file that may name any part there is.

local events = require("cursor_agent.bridge.events")
local on = events.on

local M = {}

-- A key was pressed.
on("action", "cursor_agent.actions", "run")

-- The library is there.
on("loaded", "cursor_agent.review", "on_loaded")
on("loaded", "cursor_agent.chat.past", "on_loaded")
on("loaded", "cursor_agent.decide.rules", "on_loaded")

-- What the library tells (`bridge/drain.lua` has the arguments).
on("append", "cursor_agent.chat.updates", "on_append")
on("entry", "cursor_agent.chat.updates", "on_entry")
on("status", "cursor_agent.chat.updates", "on_status")
on("decision", "cursor_agent.decide", "on_decision")
on("decided", "cursor_agent.decide", "on_decided")
on("editor", "cursor_agent.chat.follow_agent", "on_request")
on("editor", "cursor_agent.files", "serve")
on("withdrawn", "cursor_agent.files", "withdrawn")
on("edited", "cursor_agent.files", "edited")
on("reviewed", "cursor_agent.review", "on_reviewed")
on("notify", "cursor_agent.notify", "notify")
on("drained", "cursor_agent.chat.updates", "on_drained")

-- What the program for cloud agents tells.
on("cloud rows", "cursor_agent.cloud.dashboard", "on_rows")
on("cloud asked", "cursor_agent.cloud.dashboard", "on_asked")
on("cloud ended", "cursor_agent.cloud.dashboard", "on_ended")
on("cloud lost", "cursor_agent.cloud.watch", "lost")
on("cloud gone", "cursor_agent.cloud.watch", "gone")
on("cloud watched", "cursor_agent.chat.statusline", "set_cloud")

-- An mcp.json was saved.
on("mcp saved", "cursor_agent.mcp", "changed")

-- A chat was made.
on("chat started", "cursor_agent.decide.attention", "setup")
on("chat started", "cursor_agent.decide.typed", "setup")
on("chat started", "cursor_agent.chat.mksession", "setup")
on("chat started", "cursor_agent.chat.foreign", "setup")
on("chat started", "cursor_agent.agents.approval", "tell_once")
on("chat started", "cursor_agent.chat.welcome", "on_started")

-- There is more than one chat: a card says which of them asks.
on("another chat", "cursor_agent.decide", "redraw")

-- An entry of a chat is new, or has changed.
on("chat entry", "cursor_agent.chat.titles", "on_entry")
on("chat entry", "cursor_agent.chat.welcome", "on_entry")
on("chat entry", "cursor_agent.chat.follow_agent", "on_entry")
on("chat entry", "cursor_agent.chat.image", "on_entry")

-- A chat has another status.
on("chat status", "cursor_agent.chat.titles", "on_status")
on("chat status", "cursor_agent.agents.failure", "on_status")
on("chat status", "cursor_agent.files.watch", "on_status")
on("chat status", "cursor_agent.chat.rows", "on_status")
on("chat status", "cursor_agent.chat.winbar", "on_status")
on("chat status", "cursor_agent.chat.welcome", "on_status")
on("chat status", "cursor_agent.chat.progress", "on_status")
on("chat status", "cursor_agent.prompt", "on_status")
on("chat status", "cursor_agent.prompt.queue", "refresh")

-- A file changed on disk, or was written, while an agent may be changing it.
on("file changed", "cursor_agent.files", "changed")
on("file written", "cursor_agent.files", "after_write")
on("file read", "cursor_agent.files", "was_read")
on("buffer in step", "cursor_agent.review", "changed")
on("conflict changed", "cursor_agent.decide", "redraw")

-- A chat is gone.
on("chat closed", "cursor_agent.files.watch", "on_closed")
on("chat gone", "cursor_agent.chat.winbar", "redraw_others")

events.on_failure = function(event, problem)
  local say = event == "action" and "an action failed: %s"
    or ("could not show a change of kind `%s`: %%s"):format(event)
  require("cursor_agent.notify").once(say:format(problem), "error")
end

---Runs an action by name: what the `<Plug>` mappings and the keys of our buffers do.
---@param name string
---@param lhs? string the key that was pressed
function M.run(name, lhs)
  require("cursor_agent.actions").run(name, lhs)
end

return M
