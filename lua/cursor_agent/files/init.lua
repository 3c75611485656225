-- Files between agent and editor: what other rooms call, by the file of this room that implements it.

local changed = require("cursor_agent.files.changed")
local serve = require("cursor_agent.files.serve")
local resolve = require("cursor_agent.files.resolve")

return {
  serve = serve.serve,
  withdrawn = serve.withdrawn,
  changed = changed.changed,
  edited = changed.edited,
  was_read = changed.was_read,
  after_write = changed.after_write,
  decided = resolve.decided,
  oldest_conflict = resolve.oldest,
  show_difference = require("cursor_agent.files.difference").show,
}
