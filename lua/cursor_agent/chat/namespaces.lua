-- The namespaces of the marks in a chat buffer.

return {
  entry = vim.api.nvim_create_namespace("cursor_agent_entry"),
  mark = vim.api.nvim_create_namespace("cursor_agent_mark"),
  syntax = vim.api.nvim_create_namespace("cursor_agent_syntax"),
  aside = vim.api.nvim_create_namespace("cursor_agent_aside"),
  wrapped = vim.api.nvim_create_namespace("cursor_agent_wrapped"),
  thought = vim.api.nvim_create_namespace("cursor_agent_thought"),
}
