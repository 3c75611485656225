-- `:checkhealth cursor_agent`: what is missing or wrong, and the step that mends it.

local M = {}

local health = vim.health

local function check_neovim()
  health.start("Neovim")
  local version = vim.fn.matchstr(vim.fn.execute("version"), "NVIM v\\zs\\S*")
  if vim.fn.has("nvim-0.10") == 1 then
    health.ok("Neovim " .. version)
  else
    health.error("Neovim " .. version .. " is too old", "Install 0.10 or newer.")
  end
  if jit then
    health.ok(jit.version)
  else
    health.error("Neovim is built without LuaJIT", "The library needs LuaJIT.")
  end
  for _, lang in ipairs({ "markdown", "markdown_inline" }) do
    if require("cursor_agent.syntax").available(lang) then
      health.ok(("tree-sitter parser for %s"):format(lang))
    else
      health.warn(
        ("no tree-sitter parser for %s: the chat is plain text"):format(lang),
        "It comes with Neovim; nvim-treesitter installs it too."
      )
    end
  end
end

local function check_library()
  health.start("Library")
  local native = require("cursor_agent.native")
  local library, why = native.get()
  if library then
    health.ok(("%s, version %s, interface %d"):format(native.library_path(), library.version, library.abi))
  else
    health.error(why or "it could not be loaded", ":CursorAgent build")
  end
  health.info("log: " .. native.log_path())
  health.info("drafts and history: " .. require("cursor_agent.store").dir())
end

local function check_options()
  health.start("Options")
  local config = require("cursor_agent.config")
  config.get()
  if #config.problems == 0 then
    health.ok("no unknown or wrong options")
  end
  for _, problem in ipairs(config.problems) do
    health.warn(problem)
  end
end

local function check_agents()
  health.start("Agents")
  local config = require("cursor_agent.config")
  local chosen = config.get().agent
  for _, name in ipairs(config.agent_names()) do
    local agent = config.agent(name) --[[@as cursor_agent.Agent]]
    local spec = require("cursor_agent.presets").spec(name, agent)
    local line = ("%s: `%s`"):format(name, table.concat(spec.command, " "))
    if vim.fn.executable(spec.command[1]) == 1 then
      health.ok(line .. (name == chosen and ", used for new chats" or ""))
    elseif name == chosen then
      health.error(line .. " is not found", agent.install_hint or "Install it, or choose another `agent`.")
    else
      health.info(line .. " is not installed")
    end
  end
end

local function check_chats()
  health.start("Chats")
  local all = require("cursor_agent.chats").all()
  if #all == 0 then
    health.info("none yet")
  end
  for _, chat in ipairs(all) do
    local line = ("%d: %s in %s, %s"):format(chat.key, chat.agent, chat.cwd, chat.status.state)
    if chat.status.error then
      health.error(line .. "\n" .. chat.status.error, ":CursorAgent restart tries again.")
    else
      health.ok(line)
    end
  end
end

function M.check()
  check_neovim()
  check_library()
  check_options()
  check_agents()
  check_chats()
end

return M
