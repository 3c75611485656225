-- Hands live chats over when the plugin is reloaded (`:Lazy reload`): the library and its agents stay, the Lua code is
-- replaced.

local bridge = require("cursor_agent.bridge")
local chats = require("cursor_agent.chat.registry")
local layout = require("cursor_agent.chat.layout")
local window = require("cursor_agent.window.quiet")

local M = {}

---Where the data is kept meanwhile: not a module of the plugin, so that it survives their unloading.
local NAME = "cursor_agent_handover"

---@class (exact) cursor_agent.handover.Chat
---@field key cursor_agent.Key
---@field agent string
---@field cwd string
---@field text string the text in its prompt
---@field attached cursor_agent.context.Item[]
---@field tabs integer[] tab pages it is shown in
---@field about integer[] tab pages whose chat it is, shown or not
---@field inside boolean the user is in it

---@class (exact) cursor_agent.handover.Given
---@field chats cursor_agent.handover.Chat[]
---@field touched string[] files agents have changed

---Detaches everything that calls the code about to be unloaded, and keeps what the new code needs.
function M.give()
  if not bridge.is_loaded() then
    return
  end
  -- Stop streaming first: changes drained from here on would never reach the screen.
  bridge.stop_draining()
  local list = {} ---@type cursor_agent.handover.Chat[]
  local here = chats.of_buffer(vim.api.nvim_get_current_buf())
  for _, chat in ipairs(chats.all()) do
    local tabs = {} ---@type integer[]
    for _, tab in ipairs(vim.api.nvim_list_tabpages()) do
      if layout.chat_window(chat, tab) then
        tabs[#tabs + 1] = tab
      end
    end
    list[#list + 1] = {
      key = chat.key,
      agent = chat.agent,
      cwd = chat.cwd,
      text = chat.prompt:text(),
      attached = chat.prompt.attached,
      tabs = tabs,
      about = chats.tabs(chat),
      inside = chat == here,
    }
    chat.prompt:save_draft()
  end
  local given = { chats = list, touched = require("cursor_agent.files.watch").give() } ---@type cursor_agent.handover.Given
  package.loaded[NAME] = given
  pcall(require("cursor_agent.decide.card").close)
  for _, chat in ipairs(chats.all()) do
    local bufs = { chat.buf, chat.prompt.buf }
    for _, view in ipairs(require("cursor_agent.chat.transcript").views(chat)) do
      bufs[#bufs + 1] = view.buf
    end
    layout.close_all(chat)
    chats.remove(chat)
    for _, buf in ipairs(bufs) do
      pcall(vim.api.nvim_buf_delete, buf, { force = true })
    end
  end
  -- Autocommands of the old code. The one that ends the agents when Neovim exits stays.
  local groups = {} ---@type table<string, boolean>
  for _, autocmd in ipairs(vim.api.nvim_get_autocmds({})) do
    local group = tostring(autocmd.group_name)
    if vim.startswith(group, "cursor_agent") and not vim.endswith(group, "_native") then
      groups[group] = true
    end
  end
  for group in pairs(groups) do
    pcall(vim.api.nvim_del_augroup_by_name, group)
  end
end

---Whether chats are waiting to be taken over.
---@return boolean
function M.is_waiting()
  return package.loaded[NAME] ~= nil
end

---Takes over the chats: restores each one's buffers, windows and decisions.
function M.take()
  local all = package.loaded[NAME] ---@type cursor_agent.handover.Given?
  package.loaded[NAME] = nil
  if not all or not bridge.load() then
    return
  end
  require("cursor_agent.files.watch").take(all.touched)
  local list = all.chats
  local back = vim.api.nvim_get_current_tabpage()
  local inside ---@type cursor_agent.Chat?
  for _, given in ipairs(list) do
    local chat = require("cursor_agent.chat").adopt(given.key, given.agent, given.cwd)
    if chat then
      chat.prompt.attached = given.attached
      chat.prompt:set_text(given.text)
      for _, tab in ipairs(given.tabs) do
        if vim.api.nvim_tabpage_is_valid(tab) then
          window.despite_autocommands(vim.api.nvim_set_current_tabpage, tab)
          layout.open(chat)
        end
      end
      inside = given.inside and chat or inside
    end
  end
  if vim.api.nvim_tabpage_is_valid(back) then
    window.despite_autocommands(vim.api.nvim_set_current_tabpage, back)
  end
  for _, given in ipairs(list) do
    local chat = chats.get(given.key)
    for _, tab in ipairs(chat and given.about or {}) do
      chats.use(chat --[[@as cursor_agent.Chat]], tab)
    end
  end
  if inside and layout.prompt_window(inside) then
    vim.api.nvim_set_current_win(assert(layout.prompt_window(inside)))
  end
  for _, given in ipairs(list) do
    for _, decision in ipairs(bridge.pending(given.key) or {}) do
      require("cursor_agent.bridge.events").emit("decision", decision)
    end
  end
  -- The library's last wake-up went to the old code, and it sends no other until it has been drained.
  bridge.drain_now()
end

return M
