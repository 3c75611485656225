-- Describes how an agent is signed in: with a key, a token or a login, and what its status command says.

local bridge = require("cursor_agent.bridge")
local config = require("cursor_agent.config")
local redact = require("cursor_agent.bridge.redact")

local M = {}

---@param given cursor_agent.SignIn
---@param name string of the agent
---@param agent cursor_agent.Agent
---@return string
function M.describe(given, name, agent)
  local source ---@type string
  if given.place == "arguments" then
    -- The option comes last: what follows one is taken for its secret.
    source = ("`agents.%s.command` has `%s`"):format(name, given.name)
  elseif given.place == "options" then
    local option = given.kind == "key" and "api_key" or "auth_token"
    source = agent[option] and ("`agents.%s.%s`"):format(name, option)
      or ("`agents.%s.env.%s`"):format(name, given.name)
  else
    source = given.name .. " in Neovim's environment"
  end
  return ("signed in with a %s: %s"):format(given.kind, source)
end

---The key or token Cursor is started with, if any.
---@param name string
---@param agent cursor_agent.Agent
---@param spec cursor_agent.OpenSpec
---@return cursor_agent.SignIn?
function M.given(name, agent, spec)
  local ready = bridge.load()
  if not ready or not (config.is_cursor(name) or agent.cursor) then
    return nil
  end
  return bridge.sign_in(spec)
end

---Whether a status command says that the user is not logged in.
---@param said string
---@return boolean
function M.is_signed_out(said)
  said = said:lower()
  return (said:find("not logged in", 1, true) or said:find("unauthenticated", 1, true)) ~= nil
end

---What the status command says besides a key, explained if the two seem to disagree.
---@param command string[]
---@param said string?
---@param given cursor_agent.SignIn
---@return string
function M.beside(command, said, given)
  local line = said and said:match("%S[^\n]*")
  if not line then
    return ("`%s` did not answer"):format(redact.command(command))
  end
  local text = ("`%s` says: %s"):format(redact.command(command), line)
  if
    M.is_signed_out(said --[[@as string]])
  then
    text = ("%s (it only reports logins; the %s works without one)"):format(text, given.kind)
  end
  return text
end

return M
