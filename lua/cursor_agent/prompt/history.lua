-- The prompts sent before, for each directory, with the pastes whose labels are in them.

local config = require("cursor_agent.config")
local labels = require("cursor_agent.prompt.paste")
local store = require("cursor_agent.files.store")

local M = {}

---@class (exact) cursor_agent.history.Entry
---@field text string
---@field pastes table<string, string>? by label: the name its text is stored under

---@param entry string|cursor_agent.history.Entry without pastes, just its text
---@return cursor_agent.history.Entry
local function whole(entry)
  return type(entry) == "string" and { text = entry } or entry --[[@as cursor_agent.history.Entry]]
end

---Identifies a prompt: the same paste may have a different number in another chat.
---@param entry cursor_agent.history.Entry
---@return string
local function essence(entry)
  return (entry.text:gsub(labels.LABEL, entry.pastes or {}))
end

---@param cwd string
---@return cursor_agent.history.Entry[] newest last
function M.list(cwd)
  local all = store.read("history") ---@type table<string, (string|cursor_agent.history.Entry)[]>
  return vim.tbl_map(whole, all[cwd] or {})
end

---Remembers a prompt as the newest.
---@param cwd string
---@param text string
---@param pastes cursor_agent.context.Item[] those whose labels are in it
---@return cursor_agent.history.Entry[] newest last
function M.add(cwd, text, pastes)
  local entry = { text = text } ---@type cursor_agent.history.Entry
  for _, paste in ipairs(pastes) do
    entry.pastes = entry.pastes or {}
    entry.pastes[paste.label] = store.keep_text(assert(paste.text))
  end
  local size = config.get().prompt.history_size
  store.update("history", function(all)
    local list = vim.tbl_filter(function(other)
      return essence(whole(other)) ~= essence(entry)
    end, all[cwd] or {})
    list[#list + 1] = entry.pastes and entry or text
    all[cwd] = vim.list_slice(list, math.max(#list - size + 1, 1))
  end)
  local list = M.list(cwd)
  if not list[#list] or essence(list[#list]) ~= essence(entry) then
    -- It could not be stored, so keep it until Neovim exits.
    list[#list + 1] = entry
  end
  return list
end

---The text of an entry, with its pastes relabelled for this prompt.
---@param entry cursor_agent.history.Entry
---@param label_of fun(text: string): string
---@return string
function M.recall(entry, label_of)
  return (
    entry.text:gsub(labels.LABEL, function(label)
      local name = entry.pastes and entry.pastes[label]
      if not name then
        return nil
      end
      local text = store.kept_text(name)
      return text and label_of(text) or label:sub(1, -2) .. ", no longer kept]"
    end)
  )
end

return M
