-- The library inside Neovim: loaded from anywhere, and never the reason that Neovim ends.

local T = require("harness")

---Holds one short conversation: whatever loaded the library, it must work afterwards.
---@param child harness.Child
local function converse(child)
  child:wait_turns(1)
  T.eq(child:texts("agent"), { "hello to you" })
  -- A state left behind by a dead coroutine shows when garbage is collected and when Neovim leaves.
  child:lua("collectgarbage() collectgarbage()")
  T.eq(child:quit("qall!"), { code = 0, signal = 0 })
end

local function hello()
  return T.agent({ turns = { { { text = "hello to you" } } } })
end

T.case("the first use may come from a coroutine that dies", function(child)
  child:use(hello())
  child:lua([[
    coroutine.wrap(function() require("cursor_agent").prompt("hello") end)()
    for _ = 1, 3 do collectgarbage() end
  ]])
  converse(child)
end)

T.case("the first use may come from an autocommand", function(child)
  child:use(hello())
  child:lua([[
    vim.api.nvim_create_autocmd("BufEnter", {
      once = true,
      callback = function() require("cursor_agent").prompt("hello") end,
    })
  ]])
  child:cmd("edit other.txt")
  converse(child)
end)

T.case("the first use may come from a mapping", function(child)
  child:use(hello())
  child:lua([[vim.keymap.set("n", "gp", function() require("cursor_agent").prompt("hello") end)]])
  child:keys("gp")
  converse(child)
end)

T.case("the first use may come from a mapping that is an expression", function(child)
  child:use(hello())
  child:lua([[
    vim.keymap.set("n", "gp", function()
      vim.schedule(function() require("cursor_agent").prompt("hello") end)
      return ""
    end, { expr = true })
  ]])
  child:keys("gp")
  converse(child)
end)

T.case("the first use may come from the command", function(child)
  child:use(hello())
  child:keys(":CursorAgent prompt hello<CR>")
  converse(child)
end)

T.case("the first use may come from a timer", function(child)
  child:use(hello())
  child:lua([[vim.defer_fn(function() require("cursor_agent").prompt("hello") end, 1)]])
  converse(child)
end)

for _, how in ipairs({ "error", "panic", "type" }) do
  T.case(("%s in an exported function leaves Neovim running, with a message"):format(how), function(child)
    local result = child:lua(
      [[
        local native = assert(require("cursor_agent.bridge.native").get())
        local ok, message = pcall(native.test_error, ...)
        return { ok, tostring(message) }
      ]],
      how
    )
    T.eq(result[1], false)
    T.ok(#result[2] > 0)
    -- Without a pcall it is an ordinary error of Lua, shown as such.
    child:keys(":lua require('cursor_agent.bridge.native').get().test_error('" .. how .. "')<CR>")
    child:wait_screen("E5108")
    child:keys("<CR>")
    T.eq(child:lua("return 1 + 1"), 2)
    T.eq(child:quit("qall!"), { code = 0, signal = 0 })
  end)
end

T.case("a wrong argument is an error with a message, for every function", function(child)
  local failures = child:lua([[
    local native = assert(require("cursor_agent.bridge.native").get())
    local failures = {}
    -- These take nothing, so nothing is wrong.
    local skip = { start = true, shutdown = true, review_commits = true, running = true }
    -- `measure` takes a list of paths.
    local right = { measure = "list" }
    -- Right for no function, and what is right for some, as any text may name a file.
    local wrong = { ["function"] = function() end, null = vim.NIL, list = { "list" } }
    local odd = { text = "text", large = 1e300, negative = -1 }
    for name, value in pairs(native) do
      if type(value) == "function" and not skip[name] then
        for kind, argument in pairs(vim.tbl_extend("error", wrong, odd)) do
          local ok, result, why = pcall(value, argument, argument, argument)
          local refused = (not ok and #tostring(result) > 0) or (ok and result == nil and type(why) == "string")
          if wrong[kind] and right[name] ~= kind and not refused then
            failures[#failures + 1] = ("%s accepts a %s"):format(name, kind)
          elseif not ok and tostring(result) == "" then
            failures[#failures + 1] = ("%s says nothing about a %s"):format(name, kind)
          end
        end
        pcall(value)
      end
    end
    table.sort(failures)
    return failures
  ]])
  T.eq(failures, {})
  T.eq(child:lua("return 1 + 1"), 2)
end)

T.case("a table with a field that is not known is refused, for every function that takes one", function(child)
  local accepted = child:lua([[
    local native = assert(require("cursor_agent.bridge.native").get())
    local accepted = {}
    local wrong = { nonsense = true }
    local calls = {
      prompt = { 1, { text = "x", nonsense = true } },
      queue_edit = { 1, 1, { text = "x", nonsense = true } },
      answer = { 1, wrong },
      set_policy = { wrong },
      set_option = { 1, "x", wrong },
      reply = { 1, wrong },
      review_setup = { { max_bytes = 1, max_days = 1, nonsense = true } },
      review_hunks = { wrong },
      review_keep = { wrong },
      review_undo = { wrong },
      restore = { "x", wrong },
    }
    for name, arguments in pairs(calls) do
      local ok, first, second = pcall(native[name], unpack(arguments))
      local message = not ok and tostring(first) or first == nil and second
      if type(message) ~= "string" or message == "" then
        accepted[#accepted + 1] = name
      end
    end
    table.sort(accepted)
    return accepted
  ]])
  T.eq(accepted, {})
end)

---A copy of the plugin whose files a case may change; the child uses it from then on.
---@param child harness.Child
---@return string root
local function copy_plugin(child)
  local copy = child.dir .. "/plugin"
  vim.fn.mkdir(copy)
  for _, part in ipairs({ "lua", "plugin", "lib" }) do
    assert(vim.system({ "cp", "-R", T.root .. "/" .. part, copy .. "/" .. part }):wait().code == 0)
  end
  child:lua("local old, new = ... vim.opt.runtimepath:remove(old) vim.opt.runtimepath:prepend(new)", T.root, copy)
  return copy
end

T.case("a stale library is named, with the command that rebuilds it", { width = 120 }, function(child)
  local copy = copy_plugin(child)
  local path = copy .. "/lua/cursor_agent/bridge/native.lua"
  local source = table.concat(vim.fn.readfile(path), "\n")
  local changed, count = source:gsub("local ABI = %d+", "local ABI = 9999")
  T.eq(count, 1)
  vim.fn.writefile(vim.split(changed, "\n"), path)
  local done, problem = unpack(
    child:lua(
      "return { require('cursor_agent').prompt('hello') or false, select(2, require('cursor_agent').prompt('hello')) }"
    )
  )
  T.eq(done, false)
  T.contains(problem, copy .. "/lib/cursor_agent.so")
  T.contains(problem, ":CursorAgent build")
  T.contains(problem, copy)
  -- What to do comes first: a message is cut at its end.
  T.ok(vim.startswith(problem, "run `:CursorAgent build`"), problem)
end)

T.case("after an update, beside the library of before, the remedy is a new Neovim", { width = 120 }, function(child)
  child:use(T.agent({}))
  child:cmd("CursorAgent")
  child:wait_state("idle")
  local copy = copy_plugin(child)
  local path = copy .. "/lua/cursor_agent/bridge/native.lua"
  local source = table.concat(vim.fn.readfile(path), "\n")
  vim.fn.writefile(vim.split((source:gsub("local ABI = %d+", "local ABI = 9999")), "\n"), path)
  child:lua(
    [[
      require("cursor_agent").deactivate()
      for name in pairs(package.loaded) do
        if name == "cursor_agent" or vim.startswith(name, "cursor_agent.") then
          package.loaded[name] = nil
        end
      end
      vim.g.loaded_cursor_agent = nil
      vim.cmd.source(... .. "/plugin/cursor_agent.lua")
    ]],
    copy
  )
  child:keys("<Esc>:CursorAgent<CR>")
  child:wait_screen("restart Neovim: it still uses the library of the previous version")
end)

T.case("a library that is missing is named, with the command that builds it", function(child)
  local copy = copy_plugin(child)
  os.remove(copy .. "/lib/cursor_agent.so")
  local problem = child:lua("return select(2, require('cursor_agent').prompt('hello'))")
  T.contains(problem, copy .. "/lib/cursor_agent.so")
  T.contains(problem, ":CursorAgent build")
end)

T.case("a file that is no library is named, with the command that builds it", function(child)
  local copy = copy_plugin(child)
  os.remove(copy .. "/lib/cursor_agent.so")
  vim.fn.writefile({ "not a library" }, copy .. "/lib/cursor_agent.so")
  local problem = child:lua("return select(2, require('cursor_agent').prompt('hello'))")
  T.contains(problem, "could not be loaded")
  T.contains(problem, ":CursorAgent build")
end)

T.case("the library has every function its description names, and no other", function(nvim)
  nvim:lua([[require("cursor_agent.bridge.native").get()]])
  local has = nvim:lua([[
    local names = vim.tbl_keys(package.loaded.cursor_agent_native)
    table.sort(names)
    return names
  ]])
  local described, inside = {}, false
  for line in io.lines(T.root .. "/lua/cursor_agent/bridge/types.lua") do
    inside = line:find("class (exact) cursor_agent.Native", 1, true) ~= nil or (inside and line ~= "")
    described[#described + 1] = inside and line:match("^%-%-%-@field (%S+)") or nil
  end
  table.sort(described)
  T.eq(has, described)
end)
