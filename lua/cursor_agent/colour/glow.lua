-- Lets lines stand out for a moment, less and less: what was just written.

local M = {}

local NS = vim.api.nvim_create_namespace("cursor_agent_glow")

---How long it takes, in how many steps.
local FADE_MS, STEPS = 1600, 8

---@class (exact) cursor_agent.glow.Glow
---@field buf integer
---@field marks integer[]
---@field step integer
---@field timer uv.uv_timer_t

---@type table<integer, cursor_agent.glow.Glow> by buffer
local glows = {}

---@param name string
---@return integer?
local function ground(name)
  return vim.api.nvim_get_hl(0, { name = name, link = false }).bg
end

---Defines the groups from one that is seen to one that is not.
local function define()
  local from, to = ground("CursorAgentFollow"), ground("Normal")
  for step = 1, STEPS do
    local share = (step - 1) / STEPS
    local bg = from and to and require("cursor_agent.colour.diff").mix(from, to, share) or from
    local cterm = vim.api.nvim_get_hl(0, { name = "CursorAgentFollow", link = false }).ctermbg
    -- A terminal without true colours has no shades: half the time, then none.
    vim.api.nvim_set_hl(0, "CursorAgentFollow" .. step, { bg = bg, ctermbg = step <= STEPS / 2 and cterm or nil })
  end
end

---@param glow cursor_agent.glow.Glow
local function paint(glow)
  for _, id in ipairs(glow.marks) do
    local at = vim.api.nvim_buf_get_extmark_by_id(glow.buf, NS, id, {})
    if at[1] then
      vim.api.nvim_buf_set_extmark(glow.buf, NS, at[1], 0, {
        id = id,
        line_hl_group = "CursorAgentFollow" .. glow.step,
        priority = 30,
      })
    end
  end
end

---Ends it, in a buffer or in all.
---@param buf integer?
function M.stop(buf)
  for of, glow in pairs(glows) do
    if not buf or of == buf then
      glows[of] = nil
      glow.timer:stop()
      if not glow.timer:is_closing() then
        glow.timer:close()
      end
      if vim.api.nvim_buf_is_valid(of) then
        vim.api.nvim_buf_clear_namespace(of, NS, 0, -1)
      end
    end
  end
end

---Lets lines of a buffer stand out.
---@param buf integer
---@param ranges [integer, integer][] first and last lines, from 1
---@param most integer lines in all
function M.start(buf, ranges, most)
  M.stop(buf)
  define()
  local count = vim.api.nvim_buf_line_count(buf)
  local marks = {} ---@type integer[]
  for _, range in ipairs(ranges) do
    for line = math.max(range[1], 1), math.min(range[2], count) do
      if #marks < most then
        marks[#marks + 1] = vim.api.nvim_buf_set_extmark(buf, NS, line - 1, 0, {
          line_hl_group = "CursorAgentFollow1",
          priority = 30,
        })
      end
    end
  end
  if #marks == 0 then
    return
  end
  local timer = assert(vim.uv.new_timer())
  local glow = { buf = buf, marks = marks, step = 1, timer = timer } ---@type cursor_agent.glow.Glow
  glows[buf] = glow
  local every = math.floor(FADE_MS / STEPS)
  timer:start(
    every,
    every,
    vim.schedule_wrap(function()
      if glows[buf] ~= glow then
        return
      end
      glow.step = glow.step + 1
      if glow.step > STEPS or not vim.api.nvim_buf_is_loaded(buf) then
        M.stop(buf)
      else
        paint(glow)
      end
    end)
  )
end

return M
