-- The keys that answer a decision from any window, Insert mode included. They are mapped only while a decision is
-- shown.
--
-- They are mapped in the current buffer, so that they override whatever is mapped there; the old mappings are restored.

local keymaps = require("cursor_agent.keys")

local M = {}

local GROUP = vim.api.nvim_create_augroup("cursor_agent_chords", {})

---@class (exact) cursor_agent.decide.Chord
---@field mode string
---@field lhs string
---@field run fun()
---@field before table? the buffer's own mapping, to be restored

---@type table<integer, cursor_agent.decide.Chord[]> by buffer
local mapped = {}

local on = false

---@param buf integer
---@param mode string
---@param lhs string
---@return table<string, any> as `maparg()` returns it; empty if the buffer has none of its own
local function own_map(buf, mode, lhs)
  local found = vim.api.nvim_buf_call(buf, function()
    return vim.fn.maparg(lhs, mode, false, true)
  end)
  return found.buffer == 1 and found or {}
end

---@param buf integer
local function map(buf)
  if mapped[buf] or vim.fn.getcmdwintype() ~= "" then
    return
  end
  local chords = {} ---@type cursor_agent.decide.Chord[]
  for action, lhs in keymaps.each("waiting") do
    local function run()
      keymaps.run(action.name, lhs)
    end
    for _, mode in ipairs(keymaps.modes(action, "waiting")) do
      local before = own_map(buf, mode, lhs)
      chords[#chords + 1] = { mode = mode, lhs = lhs, run = run, before = next(before) and before or nil }
      vim.keymap.set(mode, lhs, run, { buffer = buf, nowait = true, desc = "cursor-agent: " .. action.desc })
    end
  end
  mapped[buf] = chords
end

---@param buf integer
local function unmap(buf)
  for _, chord in ipairs(mapped[buf]) do
    -- A mapping made since then is not ours to remove.
    if vim.api.nvim_buf_is_valid(buf) and own_map(buf, chord.mode, chord.lhs).callback == chord.run then
      vim.keymap.del(chord.mode, chord.lhs, { buffer = buf })
      if chord.before then
        vim.api.nvim_buf_call(buf, function()
          vim.fn.mapset(chord.mode, false, chord.before)
        end)
      end
    end
  end
  mapped[buf] = nil
end

---@return boolean
function M.are_on()
  return on
end

---Maps the keys, or removes them.
---@param wanted boolean
function M.set(wanted)
  if wanted == on then
    return
  end
  on = wanted
  if not on then
    vim.api.nvim_clear_autocmds({ group = GROUP })
    for _, buf in ipairs(vim.tbl_keys(mapped)) do
      unmap(buf)
    end
    return
  end
  require("cursor_agent.decide.held").release()
  map(vim.api.nvim_get_current_buf())
  vim.api.nvim_create_autocmd("BufEnter", {
    group = GROUP,
    desc = "cursor-agent: map the answer keys in each buffer",
    callback = function(event)
      map(event.buf)
    end,
  })
  vim.api.nvim_create_autocmd("BufDelete", {
    group = GROUP,
    desc = "cursor-agent: forget the keys of a deleted buffer",
    callback = function(event)
      mapped[event.buf] = nil
    end,
  })
end

return M
