-- Keeps a key that has just decided and is still held down from deciding the next thing, and from acting on what was
-- below the decision.
--
-- A keyboard repeats a held key after an initial delay, then quickly. A single repeat looks like a second key press, so
-- the first one is held back until it is known whether another follows: if so the key is held down, else it is passed
-- on.

local M = {}

---The same key this soon was not pressed on purpose.
M.BOUNCE_MS = 150
---Keyboards begin to repeat a key within this time.
M.FIRST_REPEAT_MS = 700
---And continue to repeat it within this time.
M.NEXT_REPEAT_MS = 100

---How often to poll for a key meanwhile.
local LOOK_MS = 5

local MODES = { "n", "i" }

local NS = vim.api.nvim_create_namespace("cursor_agent_held")

local decided ---@type { lhs: string, at: integer }? the key that decided last
local end_guard = function() end -- for the guarded key

---The last key of a mapping, which is the one held down: `A` of `gA`.
---@param lhs string
---@return string
local function last_key(lhs)
  return lhs:match("<[^<>]+>$") or vim.fn.strcharpart(lhs, vim.fn.strchars(lhs) - 1)
end

---Whether a key is next in the typeahead, or is typed within this time.
---@param raw string
---@param ms integer
---@return boolean
local function comes(raw, ms)
  vim.wait(ms, function()
    return vim.fn.getchar(1) ~= 0
  end, LOOK_MS)
  local next_one = vim.fn.getchar(1)
  return (type(next_one) == "number" and vim.fn.nr2char(next_one) or next_one) == raw
end

---Drops a key for as long as it repeats.
---@param raw string
local function swallow(raw)
  while comes(raw, M.NEXT_REPEAT_MS) do
    vim.fn.getchar(0)
  end
end

---Maps a key in the current buffer, and returns a function that undoes it.
---@param key string
---@param run fun()
---@return fun() undo
local function take(key, run)
  local buf = vim.api.nvim_get_current_buf()
  local before = {} ---@type table<string, vim.api.keyset.get_keymap>
  for _, mode in ipairs(MODES) do
    local map = vim.fn.maparg(key, mode, false, true)
    before[mode] = map.buffer == 1 and map or nil
    vim.keymap.set(
      mode,
      key,
      run,
      { buffer = buf, nowait = true, desc = "cursor-agent: ignore a key that is held down" }
    )
  end
  return function()
    -- An unloaded buffer keeps its mappings.
    if not vim.api.nvim_buf_is_valid(buf) then
      return
    end
    vim.api.nvim_buf_call(buf, function()
      for _, mode in ipairs(MODES) do
        pcall(vim.keymap.del, mode, key, { buffer = buf })
        if before[mode] then
          vim.fn.mapset(mode, false, before[mode])
        end
      end
    end)
  end
end

---What was typed before a key: its register and count.
---@return string
local function prefix()
  if vim.api.nvim_get_mode().mode:sub(1, 1) ~= "n" then
    return ""
  end
  local clipboard = vim.o.clipboard
  local usual = clipboard:find("unnamedplus", 1, true) and "+" or clipboard:find("unnamed", 1, true) and "*" or '"'
  local register = vim.v.register ~= usual and '"' .. vim.v.register or ""
  return register .. (vim.v.count > 0 and vim.v.count or "")
end

---Stops guarding a key: something else handles it now.
function M.release()
  end_guard()
end

---Records a key that has just decided.
---@param lhs string
function M.note(lhs)
  decided = { lhs = lhs, at = vim.uv.now() }
end

---Whether a key is the one that decided last, still held down. If so, it is dropped until it is released.
---@param lhs string
---@return boolean
function M.is_held(lhs)
  local raw = vim.keycode(last_key(lhs))
  local soon = decided and decided.lhs == lhs and vim.uv.now() - decided.at < M.FIRST_REPEAT_MS
  if not soon or not comes(raw, M.NEXT_REPEAT_MS) then
    return false
  end
  swallow(raw)
  return true
end

---Guards a key that has just closed a decision.
---@param lhs string
function M.guard(lhs)
  end_guard()
  local key = last_key(lhs)
  local raw = vim.keycode(key)
  local since = vim.uv.now()
  local over = false
  local typed ---@type string? what the last key was on the keyboard
  vim.on_key(function(_, keys)
    typed = keys
  end, NS)
  local undo = take(key, function()
    local before = prefix()
    end_guard()
    if typed ~= raw or vim.fn.reg_recording() ~= "" then
      -- It comes from a macro or a mapping, or is being recorded into a macro, which has it by now.
      vim.api.nvim_feedkeys(before .. raw, "mi", false)
    elseif vim.uv.now() - since < M.BOUNCE_MS or comes(raw, M.NEXT_REPEAT_MS) then
      swallow(raw)
    else
      vim.api.nvim_feedkeys(before .. raw, "mit", false)
    end
  end)
  local function finish()
    if not over then
      over = true
      vim.on_key(nil, NS)
      undo()
    end
  end
  end_guard = finish
  vim.defer_fn(finish, M.FIRST_REPEAT_MS)
end

return M
