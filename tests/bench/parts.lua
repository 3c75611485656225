-- What parts beside the stream cost: the first chat, stored conversations, the search in them, cloud agents, the library.

local Cloud = require("harness.cloud")

local M = {}

---@class bench.Part
---@field name string
---@field client string which part of `measure.lua` runs it
---@field fill { scenario: table, chats: integer }? conversations to have in the store before
---@field load string? the one that is loaded
---@field lines integer
---@field agents integer? of a fake of the cloud API
---@field limit { name: string, ms: fun(place: bench.Place): number }? what cannot be beaten

---@class bench.Place
---@field data string where Neovim keeps its data
---@field root string the plugin
---@field url string? of the fake

---A word that occurs once in each stored conversation.
M.NEEDLE = "haystackneedle"

local CHATS, CHAT_BYTES = 100, 1024 * 1024

---@param command string[]
---@return number ms
local function time_of(command)
  local started = vim.uv.hrtime()
  vim.system(command, { text = true }):wait()
  return (vim.uv.hrtime() - started) / 1e6
end

---Asks for every page of agents, one after the other.
---@param url string
---@return number ms
local function fetch_pages(url)
  local host, port = assert(url:match("^http://([^:/]+):(%d+)"))
  local started, cursor = vim.uv.hrtime(), nil ---@type integer, string?
  repeat
    local tcp, answer, ended = assert(vim.uv.new_tcp()), "", false
    local lines = {
      ("GET /v1/agents?limit=50%s HTTP/1.1"):format(cursor and "&cursor=" .. cursor or ""),
      ("Host: %s:%s"):format(host, port),
      "Authorization: Bearer key_fake",
    }
    tcp:connect(host, assert(tonumber(port)) --[[@as integer]], function()
      tcp:write(table.concat(lines, "\r\n") .. "\r\n\r\n")
      tcp:read_start(function(_, data)
        answer = answer .. (data or "")
        local head, body = answer:match("^(.-)\r\n\r\n(.*)$")
        local length = head and tonumber(head:match("[Cc]ontent%-[Ll]ength: (%d+)"))
        ended = data == nil or (length ~= nil and #body >= length)
      end)
    end)
    vim.wait(10000, function()
      return ended
    end, 1)
    tcp:close()
    cursor = answer:match('"nextCursor":"([^"]+)"')
  until not cursor
  return (vim.uv.hrtime() - started) / 1e6
end

---Conversations of 1 MB, each with the word at its end.
---@return table scenario
local function stored_scenario()
  local text = ("A line of an answer that was **stored**, with `code` in it, number ${n}.\n"):rep(20)
  local turn = { { chunks = { count = math.floor(CHAT_BYTES / #text), text = text } }, { text = M.NEEDLE .. "\n" } }
  local turns = {}
  for i = 1, CHATS do
    turns[i] = turn
  end
  return { turns = turns }
end

---@param reload bench.Scenario a past session of very many entries
---@return bench.Part[]
function M.all(reload)
  return {
    { name = "the first :CursorAgent", client = "open", lines = 1 },
    {
      name = "10,000 stored entries",
      client = "recall",
      fill = { scenario = reload.scenario, chats = 1 },
      load = reload.load,
      lines = reload.lines,
    },
    {
      name = "a search in 100 MB",
      client = "search",
      fill = { scenario = stored_scenario(), chats = CHATS },
      lines = 1,
      limit = {
        name = "grep",
        ms = function(place)
          return time_of({ "grep", "-rF", M.NEEDLE, place.data })
        end,
      },
    },
    {
      name = "1,000 cloud agents, all pages",
      client = "cloud",
      agents = 1000,
      lines = 1000,
      limit = {
        name = "the pages alone",
        ms = function(place)
          return fetch_pages(assert(place.url))
        end,
      },
    },
    {
      name = "loading the library",
      client = "library",
      lines = 1,
      limit = {
        name = "cat",
        ms = function(place)
          return time_of({ "sh", "-c", 'cat "$1" >/dev/null', "sh", place.root .. "/lib/cursor_agent.so" })
        end,
      },
    },
  }
end

---@param root string
---@param part bench.Part
---@return harness.Cloud?
function M.cloud(root, part)
  return part.agents and Cloud.start(root, { "--agents", tostring(part.agents) }) or nil
end

return M
