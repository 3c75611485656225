-- An extension of lualine: `require("lualine").setup({ extensions = { "cursor_agent" } })`. In the chat the statusline has the
-- chat's title and the winbar is the plugin's own.

local function title()
  local chat = require("cursor_agent.chat.registry").of_buffer(vim.api.nvim_get_current_buf())
  local text = chat and require("cursor_agent.chat.titles").of(chat) or "cursor-agent"
  return require("cursor_agent.render.format").bar_text(text)
end

local function bar()
  return require("cursor_agent.chat.winbar").chat()
end

local function prompt_keys()
  local chat = require("cursor_agent.chat.registry").of_buffer(vim.api.nvim_get_current_buf())
  if not chat or vim.bo.filetype ~= "cursoragent-prompt" then
    return ""
  end
  -- Half of the line is the title's.
  local room = math.floor(vim.api.nvim_win_get_width(0) / 2)
  return require("cursor_agent.render.format").bar_text(require("cursor_agent.prompt.bar").hints(chat, room))
end

local sections = { lualine_a = { title }, lualine_z = { prompt_keys } }
local winbar = {
  lualine_c = {
    {
      bar,
      cond = function()
        return vim.bo.filetype == "cursoragent"
      end,
    },
  },
}

return {
  filetypes = { "cursoragent", "cursoragent-prompt" },
  sections = sections,
  inactive_sections = sections,
  winbar = winbar,
  inactive_winbar = winbar,
}
