-- The kinds of buffers that the plugin makes, as far as keys tell them apart, in the order they are listed.

---@type cursor_agent.BufferKind[]
return {
  "chat",
  "prompt",
  "queue",
  "permission",
  "question",
  "conflict",
  "plan-card",
  "plan",
  "todos",
  "log",
  "reader",
  "subagent",
  "review",
  "mcp",
  "cloud",
}
