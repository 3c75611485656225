-- Completion plugins in the prompt: those that accept sources get ours, the others are kept out.

local M = {}

local FILETYPE = "cursoragent-prompt"
local SOURCE = "cursor_agent"
local BLINK_MODULE = "cursor_agent.completion.blink"

---Ranks ours above blink.cmp's buffer, path and snippet items.
local SCORE_OFFSET = 100

---@type table<string, string> plugins that did not take our source, and why: theirs is not asked for again
M.refused = {}

---@param value any
---@return any
local function resolved(value)
  if type(value) == "function" then
    return value()
  end
  return value
end

local blink_registered = false

---blink.cmp asks these sources only where ours has nothing: after `/`, no root directory below the slash commands.
---@param _ table the context
---@param enabled string[] ids of the sources of the buffer
---@return string[]
local function fallbacks(_, enabled)
  return vim.tbl_filter(function(id)
    return id ~= SOURCE
  end, enabled)
end

---Whether blink.cmp was set up. Being loaded is not enough: language server configs load it for its capabilities.
---@param config table?
---@return boolean
local function blink_runs(config)
  return config == nil or vim.fn.hlexists("BlinkCmpMenu") == 1 or package.loaded["blink.cmp.completion"] ~= nil
end

---The id of our source in blink.cmp, from its options or a previous registration.
---@param config table?
---@return string?
local function blink_id(config)
  local providers = config and config.sources.providers or {}
  for name, provider in pairs(providers) do
    if provider.module == BLINK_MODULE then
      return name
    end
  end
  return providers[SOURCE] and SOURCE or nil
end

---Whether blink.cmp completes in the current buffer.
---@return boolean
local function blink()
  local cmp = package.loaded["blink.cmp"]
  local config = package.loaded["blink.cmp.config"] --[[@as table?]]
  if type(cmp) ~= "table" or not blink_runs(config) then
    return false
  end
  if not blink_registered then
    local id = blink_id(config)
    if not id then
      local provider = { name = "agent", module = BLINK_MODULE, score_offset = SCORE_OFFSET, fallbacks = fallbacks }
      cmp.add_source_provider(SOURCE, provider)
    end
    cmp.add_filetype_source(FILETYPE, id or SOURCE)
    blink_registered = true
  end
  if vim.fn.reg_recording() ~= "" or vim.fn.reg_executing() ~= "" then
    -- It turns itself off in macros, which is its decision.
    return true
  elseif cmp.is_enabled then
    -- Since version 2 the options alone do not tell.
    return cmp.is_enabled() and true or false
  elseif config and config.enabled ~= nil then
    return resolved(config.enabled) and true or false
  end
  return vim.b.completion ~= false
end

---@param sources table[]?
---@return boolean
local function has_ours(sources)
  for _, source in ipairs(sources or {}) do
    if source.name == SOURCE then
      return true
    end
  end
  return false
end

---Whether nvim-cmp completes in the current buffer.
---@return boolean
local function nvim_cmp()
  local cmp = package.loaded["cmp"]
  if type(cmp) ~= "table" or not cmp.register_source then
    return false
  end
  local current = cmp.get_config() --[[@as table]]
  if current.enabled ~= nil and not resolved(current.enabled) then
    return false
  end
  if not has_ours(cmp.get_registered_sources()) then
    cmp.register_source(SOURCE, require("cursor_agent.completion.cmp").new())
  end
  if not has_ours(current.sources) then
    -- nvim-cmp shows the first group that has items: ours after `/` and `@`, the user's everywhere else.
    local sources = { { name = SOURCE, group_index = 1 } }
    for _, source in ipairs(current.sources or {}) do
      sources[#sources + 1] = vim.tbl_extend("force", {}, source, { group_index = (source.group_index or 1) + 1 })
    end
    cmp.setup.buffer({ sources = sources })
  end
  return true
end

local PLUGINS = { { name = "blink.cmp", serves = blink }, { name = "nvim-cmp", serves = nvim_cmp } }

---Whether a plugin completes in the current prompt, with our source: then its menu and keys are used.
---@return boolean
function M.serve()
  for _, plugin in ipairs(PLUGINS) do
    if not M.refused[plugin.name] then
      local ok, serves = pcall(plugin.serves)
      if not ok then
        M.refused[plugin.name] = tostring(serves)
      elseif serves then
        return true
      end
    end
  end
  return false
end

---Keeps plugins out of a prompt that accept no source and would offer words from other buffers.
---@param buf integer
function M.keep_out(buf)
  if vim.b[buf].minicompletion_disable == nil then
    vim.b[buf].minicompletion_disable = true
  end
  if vim.fn.exists("+autocomplete") == 1 then
    vim.api.nvim_set_option_value("autocomplete", false, { buf = buf })
  end
end

return M
