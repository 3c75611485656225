-- Checks how the Lua modules depend on each other: `nvim --clean -l scripts/rooms.lua`. Prints what is wrong, and fails.
--
-- A module depends on every module it names in its code, at the top or inside a function: `require` there only puts it off.

local ROOT = "cursor_agent"

---Rooms that know only these. All others may know each other, and nothing below knows the top (`TOP`).
local MAY_KNOW = {
  bridge = {},
  render = {},
  colour = { "bridge", "notify", "render" },
  window = { "bridge", "chat.registry", "colour", "config", "keys", "notify", "render" },
  keys = { "bridge", "chat.registry", "colour", "config", "notify", "render", "window" },
}

---What joins everything: no room may know it.
local TOP = { "", "parts", "actions", "command", "health" }

---Modules whose names may stand outside `bridge/`: those that hold the library are not among them.
local OPEN_BRIDGE = { [""] = true, buffer_names = true, clock = true, events = true, paths = true, redact = true }

---@type table<string, string> module (without the root) to path
local modules = {}
for path in vim.fs.dir("lua/" .. ROOT, { depth = 9 }) do
  if path:sub(-4) == ".lua" then
    modules[path:sub(1, -5):gsub("/", "."):gsub("%.?init$", "")] = ("lua/%s/%s"):format(ROOT, path)
  end
end

local problems = {} ---@type string[]
local function complain(text, ...)
  problems[#problems + 1] = text:format(...)
end

---@param module string
---@return string
local function room_of(module)
  return module:match("^([^.]+)%.") or module
end

---@param module string
---@return string
local function full(module)
  return module == "" and ROOT or ROOT .. "." .. module
end

---@type table<string, table<string, integer>> by module: what it names, and in which line first
local edges = {}
for module, path in pairs(modules) do
  local names, number = {}, 0
  for line in io.lines(path) do
    number = number + 1
    local code = not line:find("^%s*%-%-") and line or ""
    for name in code:gmatch("[\"']" .. ROOT .. "%.([%w_.]+)[\"']") do
      if modules[name] and name ~= module then
        names[name] = names[name] or number
      end
    end
    -- The bare name is also the name of other things, and stands in messages.
    local before = code:match("^(.-)require%(?[\"']" .. ROOT .. "[\"']")
    if before and select(2, before:gsub("'", "")) % 2 == 0 and module ~= "" then
      names[""] = names[""] or number
    end
    if not module:find("^bridge") and module ~= "install.probe" and code:find("cursor_agent_native", 1, true) then
      complain("%s:%d: only bridge/ may hold the library; call it as `bridge.name(…)`", path, number)
    end
  end
  edges[module] = names
end

for module, names in pairs(edges) do
  local room = room_of(module)
  for name, line in pairs(names) do
    local at = ("%s:%d"):format(modules[module], line)
    local theirs = room_of(name)
    local inner = name:match("^bridge%.?(.*)$")
    if inner and room ~= "bridge" and not OPEN_BRIDGE[inner] then
      complain("%s: %s is for bridge/ alone; call the library as `bridge.name(…)`", at, full(name))
    end
    if vim.list_contains(TOP, name) and not vim.list_contains(TOP, module) then
      complain("%s: no room may know %s; subscribe in parts.lua, or move what is needed into a room", at, full(name))
    end
    local allowed = MAY_KNOW[room]
    if
      allowed
      and theirs ~= room
      and not vim.list_contains(allowed, theirs)
      and not vim.list_contains(allowed, name)
    then
      complain("%s: %s/ may not know %s (MAY_KNOW in scripts/rooms.lua)", at, room, full(name))
    end
  end
end

-- Cycles: a walk that meets a module it is still inside of has gone in a circle.
local state, path = {}, {} ---@type table<string, "open"|"done">, string[]

---@param module string
local function visit(module)
  state[module] = "open"
  path[#path + 1] = module
  for name in vim.spairs(edges[module]) do
    if state[name] == "open" then
      local round = { full(name) } ---@type string[] backwards
      for i = #path, 1, -1 do
        table.insert(round, 1, full(path[i]))
        if path[i] == name then
          break
        end
      end
      complain("a require cycle: %s", table.concat(round, " -> "))
    elseif not state[name] then
      visit(name)
    end
  end
  path[#path] = nil
  state[module] = "done"
end
for module in vim.spairs(edges) do
  if not state[module] then
    visit(module)
  end
end

-- The map that init.lua opens with has every room and everything at the top, and nothing else.
local map = assert(io.open(modules[""])):read("*a"):match("^(.-)\nrequire")
for name, kind in vim.fs.dir("lua/" .. ROOT) do
  local entry = kind == "directory" and name .. "/" or name:gsub("%.lua$", "")
  if not map:find("  " .. entry .. "  ", 1, true) then
    complain("%s: the map it opens with does not have `%s`", modules[""], entry)
  end
end
for room in map:gmatch("\n%-%-   ([%w_]+/)") do
  if not vim.uv.fs_stat(("lua/%s/%s"):format(ROOT, room)) then
    complain("%s: the map it opens with has `%s`, which does not exist", modules[""], room)
  end
end

for module, file in vim.spairs(modules) do
  local first = assert(io.open(file)):read("*l") or ""
  if not first:find("^%-%-%-?[ @]") then
    complain("%s: the first line says what the file is for", file)
  end
  if module:find("util") or module:find("helper") then
    complain("%s: name the file after what it does", file)
  end
end

table.sort(problems)
for _, problem in ipairs(problems) do
  io.stdout:write(problem, "\n")
end
os.exit(#problems == 0 and 0 or 1)
