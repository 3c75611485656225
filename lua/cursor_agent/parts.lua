-- Wires the parts together: which of them handles which event, and in which order.
--
-- Whatever is used first (`init`, a command, a key, a completion source, `:checkhealth`) loads this file. It loads no
-- part itself: the first event a part handles does. Only this file may name every part.

local events = require("cursor_agent.bridge.events")
local on = events.on

local M = {}

-- Key pressed.
on("action", "cursor_agent.actions", "run")

-- Library loaded.
on("loaded", "cursor_agent.review", "on_loaded")
on("loaded", "cursor_agent.chat.past", "on_loaded")
on("loaded", "cursor_agent.decide.rules", "on_loaded")

-- Changes from the library (`bridge/drain.lua` documents the arguments).
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

-- Messages from the cloud agents' companion program.
on("cloud rows", "cursor_agent.cloud.dashboard", "on_rows")
on("cloud asked", "cursor_agent.cloud.dashboard", "on_asked")
on("cloud ended", "cursor_agent.cloud.dashboard", "on_ended")
on("cloud lost", "cursor_agent.cloud.watch", "lost")
on("cloud gone", "cursor_agent.cloud.watch", "gone")
on("cloud watched", "cursor_agent.chat.statusline", "set_cloud")

-- mcp.json saved.
on("mcp saved", "cursor_agent.mcp", "changed")

-- Chat created.
on("chat started", "cursor_agent.decide.attention", "setup")
on("chat started", "cursor_agent.decide.typed", "setup")
on("chat started", "cursor_agent.chat.mksession", "setup")
on("chat started", "cursor_agent.chat.foreign", "setup")
on("chat started", "cursor_agent.agents.approval", "tell_once")
on("chat started", "cursor_agent.chat.welcome", "on_started")
on("chat started", "cursor_agent.chat.tabline", "setup")

-- A second chat exists: cards now say which chat asks.
on("another chat", "cursor_agent.decide", "redraw")

-- Chat entry added or changed.
on("chat entry", "cursor_agent.chat.titles", "on_entry")
on("chat entry", "cursor_agent.chat.welcome", "on_entry")
on("chat entry", "cursor_agent.chat.follow_agent", "on_entry")
on("chat entry", "cursor_agent.chat.image", "on_entry")

-- Chat status changed.
on("chat status", "cursor_agent.chat.titles", "on_status")
on("chat status", "cursor_agent.agents.failure", "on_status")
on("chat status", "cursor_agent.files.watch", "on_status")
on("chat status", "cursor_agent.chat.rows", "on_status")
on("chat status", "cursor_agent.chat.winbar", "on_status")
on("chat status", "cursor_agent.chat.welcome", "on_status")
on("chat status", "cursor_agent.chat.progress", "on_status")
on("chat status", "cursor_agent.prompt", "on_status")
on("chat status", "cursor_agent.prompt.queue", "refresh")

-- File changed on disk, or written, while an agent may be changing it.
on("file changed", "cursor_agent.files", "changed")
on("file written", "cursor_agent.files", "after_write")
on("file read", "cursor_agent.files", "was_read")
on("buffer in step", "cursor_agent.review", "changed")
on("conflict changed", "cursor_agent.decide", "redraw")

-- Chat gone.
on("chat closed", "cursor_agent.files.watch", "on_closed")
on("chat gone", "cursor_agent.chat.winbar", "redraw_others")

events.on_failure = function(event, problem)
  local say = event == "action" and "an action failed: %s"
    or ("could not show a change of kind `%s`: %%s"):format(event)
  require("cursor_agent.notify").once(say:format(problem), "error")
end

---Runs an action by name, for the `<Plug>` mappings and the keys in our buffers.
---@param name string
---@param lhs? string the key that was pressed
function M.run(name, lhs)
  require("cursor_agent.actions").run(name, lhs)
end

return M
