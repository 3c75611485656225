-- Plans, exports and saved logs on a full disk: said, nothing half written, what was there before still there.

local T = require("harness")
local small_disk = require("harness.small_disk")
local files = require("harness.file")

local read = files.peek

local BIG = ("one two three four five six seven\n"):rep(6000)

T.case("a plan that does not fit is not accepted, and the old one stays", { width = 100 }, function(nvim)
  local dir = nvim.work .. "/small"
  small_disk(nvim, dir, function(fill)
    vim.fn.writefile({ "an older plan" }, dir .. "/big.md")
    local plan = { toolCallId = "p", name = "Big", overview = "o", plan = BIG, todos = {} }
    local agent = T.agent({ turns = { {}, { { request = { method = "cursor/create_plan", params = plan } } } } })
    nvim:use(agent, { plan = { directory = dir } })
    nvim:lua("require('cursor_agent.decide').SETTLE_MS = 0")
    nvim:prompt("warm up", { open = false })
    nvim:wait_turns(1)
    fill()
    nvim:prompt("go", { open = false })
    nvim:wait("#require('cursor_agent').pending() == 1", "the plan")
    local ok, why = unpack(nvim:lua("return { require('cursor_agent').accept() }"), 1, 2)
    T.ok(not ok or ok == vim.NIL, "it is not accepted")
    T.contains(why or nvim:messages(), "the plan could not be saved")
    T.eq(nvim:lua("return #require('cursor_agent').pending()"), 1, "it can still be decided")
    T.eq(#agent:answers("cursor/create_plan"), 0)
    T.eq(vim.fn.readdir(dir), { "big.md" })
    T.eq(read(dir .. "/big.md"), "an older plan\n")
  end)
end)

T.case("an export and a saved log that do not fit are no files", { width = 100 }, function(nvim)
  local dir = nvim.work .. "/small"
  small_disk(nvim, dir, function(fill)
    nvim:use(T.agent({ turns = { { { text = BIG } } } }))
    nvim:prompt("go")
    nvim:wait_turns(1)
    fill()
    T.contains(nvim:cmd("CursorAgent export small/chat.md"), "could not save the export")
    T.contains(nvim:cmd("CursorAgent log save small/log.jsonl"), "could not save the log")
    T.eq(vim.fn.readdir(dir), {})
  end)
end)
