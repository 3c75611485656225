-- Notifies the user of a decision or the end of a turn while Neovim is unfocused or the chat is hidden.

local chats = require("cursor_agent.chat.registry")
local config = require("cursor_agent.config")
local format = require("cursor_agent.render.format")
local notify = require("cursor_agent.notify")
local titles = require("cursor_agent.chat.titles")

local M = {}

---Desktop notifications show about this much.
local MAX_CHARS = 160

local focused = true
local ready = false
local waiting = {} ---@type string[] what is to be said at the next turn of the loop

---Whether the user is looking at a session.
---@param key cursor_agent.Key
---@return boolean
local function in_view(key)
  local chat = chats.get(key)
  return focused and chat ~= nil and require("cursor_agent.chat.layout").chat_window(chat) ~= nil
end

---The escape sequence that makes a terminal show a notification. The agent chooses the words, so anything that could be
---an escape sequence is removed.
---@param how string
---@param text string
---@param in_tmux boolean
---@return string?
function M.sequence(how, text, in_tmux)
  if how == "bell" then
    return "\7"
  end
  local plain = format.first_line((text:gsub("[%c\127]", " "):gsub("\194[\128-\159]", " ")), MAX_CHARS)
  local sequence
  if how == "osc9" then
    sequence = ("\27]9;%s\7"):format(plain)
  elseif how == "osc777" then
    sequence = ("\27]777;notify;cursor-agent;%s\7"):format((plain:gsub(";", ",")))
  else
    return nil
  end
  -- tmux passes it on only in this wrapper (and with `allow-passthrough` on).
  return in_tmux and ("\27Ptmux;%s\27\\"):format((sequence:gsub("\27", "\27\27"))) or sequence
end

---@param text string
local function send(text)
  local sequence = M.sequence(config.get().attention.terminal, text, (vim.env.TMUX or "") ~= "")
  if not sequence then
    return
  end
  -- Neovim's own process has no terminal: write to stderr, or since 0.12 use the UI's function.
  local ui_send = vim.api["nvim_ui_send"]
  if ui_send then
    pcall(ui_send, sequence)
  else
    pcall(vim.api.nvim_chan_send, vim.v.stderr, sequence)
  end
end

---@param text string
---@param level cursor_agent.Level
local function call(text, level)
  text = require("cursor_agent.bridge.redact").text(text)
  if config.get().attention.notify then
    notify.notify(text, level)
  end
  send(text)
end

---Alerts the user to something that ended or asks in a place they are not looking at.
M.say = call

---A decision needs the user.
---@param decision cursor_agent.Decision
---@param what string what is asked, in brief
function M.decision(decision, what)
  if in_view(decision.key) then
    return
  end
  local chat = chats.get(decision.key)
  if chat and titles.has(chat) then
    local first, rest = what:match("^([^\n]*)(.*)$")
    what = ("%s (%s)%s"):format(first, titles.of(chat), rest)
  end
  waiting[#waiting + 1] = what
  if #waiting > 1 then
    return
  end
  -- Many may arrive at once; one message is enough.
  vim.schedule(function()
    local list = waiting
    waiting = {}
    call(#list == 1 and list[1] or ("%s (%s open)"):format(list[1], format.plural(#list, "decision")), "warn")
  end)
end

---@param data { session_id: string?, stop_reason: string?, error: string?, duration_ms: integer? }
local function turn_ended(data)
  local chat = data.session_id and chats.find(data.session_id)
  if not chat or data.stop_reason == "cancelled" or in_view(chat.key) then
    return
  end
  local status = require("cursor_agent.bridge").status(chat.key)
  if not status or status.state == "running" or status.state == "waiting" then
    -- The next queued prompt is about to be sent.
    return
  end
  local agent = config.agent_title(chat.agent)
  if data.error then
    local about = titles.has(chat) and (" (%s)"):format(titles.of(chat)) or ""
    local text = ("%s failed%s: %s"):format(agent, about, data.error)
    if status.state == "failed" then
      -- A dead process is reported elsewhere already.
      send(text)
    else
      call(text, "error")
    end
    return
  end
  local title = titles.has(chat) and ": " .. titles.of(chat) or ""
  local ms = data.duration_ms or 0
  local took = ms >= format.SHOWN_MS and (" in " .. format.duration(ms)) or ""
  call(("%s finished%s%s"):format(agent, took, title), "info")
end

---Watches the focus and the ends of turns; call once.
function M.setup()
  if ready then
    return
  end
  ready = true
  local group = vim.api.nvim_create_augroup("cursor_agent_attention", {})
  vim.api.nvim_create_autocmd({ "FocusGained", "FocusLost" }, {
    group = group,
    desc = "cursor-agent: track whether Neovim has focus",
    callback = function(event)
      focused = event.event == "FocusGained"
    end,
  })
  vim.api.nvim_create_autocmd("User", {
    group = group,
    pattern = "CursorAgentTurnEnd",
    desc = "cursor-agent: notify when a turn ends out of sight",
    callback = function(event)
      turn_ended(event.data or {})
    end,
  })
end

return M
