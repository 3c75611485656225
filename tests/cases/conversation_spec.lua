-- A conversation from the first prompt on: streaming, cancelling, going on.

local T = require("harness")

local ASK = {
  permission = { toolCall = { toolCallId = "call-1", title = "`true`", kind = "execute", status = "pending" } },
  ["then"] = { ["allow-once"] = { { text = "the second part." } } },
}

T.case("an answer streams in while its turn runs", function(child)
  -- The question holds the turn open, so that what is seen before its answer came before the turn's end.
  local agent = T.agent({ turns = { { { text = "The **first** part, " }, ASK } } })
  child:use(agent)
  child:prompt("hello")
  child:wait(function()
    return #child:lua("return require('cursor_agent').pending()") == 1
  end, "the question")
  T.eq(child:texts("agent"), { "The **first** part, " })
  T.eq(child:status().state, "waiting")
  T.eq(#child:events("CursorAgentTurnEnd"), 0)
  child:wait_screen("first")

  child:lua("require('cursor_agent').answer(require('cursor_agent').pending()[1].id, { option = 'allow-once' })")
  T.eq(child:wait_turns(1).stop_reason, "end_turn")
  child:wait_screen("the second part.")
  T.eq(child:status().state, "idle")
  T.eq(table.concat(child:texts("agent")), "The **first** part, the second part.")
  T.eq(child:texts("user"), { "hello" })
end)

T.case("ten thousand chunks arrive whole and in order", function(child)
  local agent = T.agent({ turns = { { { chunks = { count = 10000, text = "word " } }, { text = "end" } } } })
  child:use(agent)
  child:prompt("talk")
  child:wait_turns(1, 30000)
  T.eq(child:texts("agent"), { ("word "):rep(10000) .. "end" })
  -- The buffer holds what the transcript holds.
  local text = child:wait(function()
    local lines = child:lua([[
      for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
        if vim.bo[buffer].filetype == "cursoragent" then
          return vim.api.nvim_buf_get_lines(buffer, 0, -1, false)
        end
      end
    ]])
    local joined = table.concat(lines, " ")
    return joined:find("word end", 1, true) and joined
  end, "the whole answer in the chat's buffer")
  local _, words = text:gsub("word", "")
  T.eq(words, 10000)
end)

T.case(":CursorAgent cancel ends the turn and keeps the text so far", function(child)
  local agent = T.agent({ turns = { { { text = "I have started" }, { wait_cancel = true } } } })
  child:use(agent)
  child:prompt("go")
  child:wait_screen("I have started")
  child:keys(":CursorAgent cancel<CR>")
  T.eq(child:wait_turns(1).stop_reason, "cancelled")
  T.eq(child:status().state, "idle")
  T.eq(child:texts("agent"), { "I have started" })
  T.eq(#agent:received("session/cancel"), 1)
end)

T.case("a decision that waits is answered as cancelled when the turn is cancelled", function(child)
  local agent = T.agent({ turns = { { ASK } } })
  child:use(agent)
  child:prompt("go")
  child:wait_state("waiting")
  child:cmd("CursorAgent cancel")
  T.eq(child:wait_turns(1).stop_reason, "cancelled")
  T.eq(child:lua("return #require('cursor_agent').pending()"), 0)
  local answers = agent:answers("session/request_permission")
  T.eq(#answers, 1)
  T.eq(answers[1].result, { outcome = { outcome = "cancelled" } })
end)

T.case("a second prompt goes on in the same session, after a cancelled one too", function(child)
  local agent =
    T.agent({ turns = { { { text = "one" } }, { { text = "two" }, { wait_cancel = true } }, { { text = "three" } } } })
  child:use(agent)
  child:prompt("first")
  child:wait_turns(1)
  child:prompt("second")
  child:wait_screen("two")
  child:cmd("CursorAgent cancel")
  child:wait_turns(2)
  child:prompt("third")
  child:wait_turns(3)
  T.eq(child:texts("user"), { "first", "second", "third" })
  T.eq(child:texts("agent"), { "one", "two", "three" })
  T.eq(#agent:received("initialize"), 1)
  T.eq(#agent:received("session/new"), 1)
  local prompts = agent:received("session/prompt")
  T.eq(#prompts, 3)
  T.eq(prompts[2].params.sessionId, prompts[1].params.sessionId)
  T.eq(prompts[3].params.prompt[1], { type = "text", text = "third" })
end)

T.case("a prompt sent while a turn runs waits for it", function(child)
  local agent = T.agent({ turns = { { { text = "one" }, ASK }, { { text = "two" } } } })
  child:use(agent)
  child:prompt("first")
  child:wait_state("waiting")
  child:prompt("second")
  T.eq(child:status().queued, 1)
  T.eq(#agent:received("session/prompt"), 1)
  child:lua("require('cursor_agent').accept()")
  child:wait_turns(2)
  T.eq(child:status().queued, 0)
  T.eq(child:texts("user"), { "first", "second" })
end)

T.case("what comes while changes are dealt with one at a time is not left behind", function(child)
  local steps = {}
  for i = 1, 4 do
    local call = { sessionUpdate = "tool_call", toolCallId = "t" .. i, title = "Call " .. i, status = "completed" }
    steps[i] = { update = call }
  end
  vim.list_extend(steps, { { expect = "session/set_mode" }, { text = "The end." } })
  child:use(T.agent({ turns = { steps } }))
  child:cmd("CursorAgent")
  child:wait_state("idle")
  child:lua([[
    -- By this clock each change takes longer than the editor may be kept.
    local now = vim.uv.hrtime()
    vim.uv.hrtime = function()
      now = now + 1e9
      return now
    end
    local function wait_entries(count)
      while #require("cursor_agent").transcript() < count do
        vim.uv.sleep(1)
      end
    end
    -- The calls are taken in one piece; before the first of them is dealt with, the turn has gone on and ended.
    local library = assert(require("cursor_agent.bridge.native").get())
    local drain = library.drain
    library.drain = function(...)
      if #require("cursor_agent").transcript() == 0 then
        -- Something else has come: an empty chat looks for the last one.
        return drain(...)
      end
      library.drain = drain
      wait_entries(5)
      local taken, more = drain(1e6)
      require("cursor_agent").set_mode("plan")
      wait_entries(6)
      -- Longer than a frame: the wake-up for the rest is there, too, before it can be of use.
      vim.uv.sleep(100)
      return taken, more
    end
  ]])
  child:keys("go<C-s>")
  child:wait_turns(1)
  child:wait_screen("The end.")
  child:wait("require('cursor_agent.colour.painter').idle()", "the colours")
end)

T.case("nothing is spawned before the first use", function(child)
  local agent = T.agent({})
  child:use(agent)
  child:cmd("edit note.txt")
  T.eq(#T.processes(), 1)
  T.eq(agent:log(), {})
  T.eq(child:lua("return require('cursor_agent').status().state"), "stopped")
end)

for _, width in ipairs({ 80, 120 }) do
  local files = { ["src/parser.lua"] = "local M = {}\n\nfunction M.list()\n  return {}\nend\n\nreturn M\n" }
  local opts = { width = width, files = files, args = { "src/parser.lua" } }
  T.case(("what a person sees after a prompt typed by hand, %d columns"):format(width), opts, function(child)
    local agent = T.agent({
      turns = {
        {
          { text = "## A plan\n\nThe **list** comes first:\n\n" },
          { text = "- read it\n- write it\n\n```lua\nlocal list = {}\n```\n" },
        },
      },
    })
    child:use(agent)
    child:keys(":CursorAgent<CR>")
    child:wait_state("idle")
    child:keys("Make the parser accept<CR>trailing commas<C-s>")
    child:wait_turns(1)
    child:keys("<Esc>")
    T.eq(
      agent:received("session/prompt")[1].params.prompt[1],
      { type = "text", text = "Make the parser accept\ntrailing commas" }
    )
    child:wait_screen("• write it")
    child:expect_screen(("conversation-%d"):format(width))
  end)
end
