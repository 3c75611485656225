-- What the bench plays: one scenario of the scripted agent for each way a chat can grow large.

local M = {}

---@class bench.Scenario
---@field name string
---@field scenario table as `cursor-agent-demo play` reads it
---@field load string? a past session to go on with, instead of a prompt
---@field lines integer the buffer has at least this many lines at the end
---@field file { name: string, text: string }? open beside the chat
---@field hunks integer? it ends when this many are shown in that file; the plain client has none
---@field typed boolean? the file has unsaved text when it is changed
---@field chats integer? how many chats play it at once; the plain client has one
---@field alone boolean? the plain client has no such thing
---@field chunks integer? how many chunks of text it has
---@field shell string? a command whose output is shown; the limit is `cat` reading it

local WORDS = vim.split(
  "the parser reads a `list` of items and **each** of them ends with a comma unless it is the last one of its kind",
  " "
)

---@param count integer
---@return string
local function paragraph(count)
  local words = {}
  for i = 1, count do
    words[i] = WORDS[(i * 7) % #WORDS + 1]
  end
  return table.concat(words, " ")
end

---20,000 chunks of a word or two, in paragraphs and code blocks.
---@return bench.Scenario
local function chunks()
  return {
    name = "20,000 chunks of text",
    chunks = 20000,
    lines = 1000,
    scenario = {
      turns = {
        {
          {
            ["repeat"] = {
              times = 200,
              steps = {
                { text = "## A heading\n\n" },
                { chunks = { count = 78, text = "word **${n}** ", single_writes = true } },
                { text = "\n\n```lua\n" },
                {
                  chunks = { count = 18, text = "local v${n} = f(${n}) -- a comment\n", single_writes = true },
                },
                { text = "```\n\n" },
              },
            },
          },
        },
      },
    },
  }
end

---500 tool calls with 20 lines of output each, every second one an edit.
---@return bench.Scenario
local function tools()
  local steps = {}
  for i = 1, 500 do
    local id = "t" .. i
    local edit = i % 2 == 0
    local lines = {}
    for k = 1, 20 do
      lines[k] = ("line %d of call %d, \27[32mgreen\27[0m"):format(k, i)
    end
    local text = table.concat(lines, "\n")
    steps[#steps + 1] = {
      update = {
        sessionUpdate = "tool_call",
        toolCallId = id,
        title = "Tool " .. i,
        kind = edit and "edit" or "execute",
        status = "pending",
      },
    }
    steps[#steps + 1] = {
      update = {
        sessionUpdate = "tool_call_update",
        toolCallId = id,
        status = "completed",
        content = {
          edit and {
            type = "diff",
            path = ("${cwd}/f%d.lua"):format(i),
            oldText = "local a = 1\n",
            newText = "local a = 2\n" .. text:gsub("\27%[%d*m", "") .. "\n",
          } or { type = "content", content = { type = "text", text = text } },
        },
      },
    }
  end
  return { name = "500 tool calls of 20 lines", lines = 5000, scenario = { turns = { steps } } }
end

---One command whose output is sent whole again each time it has grown by a line.
---@return bench.Scenario
local function cumulative()
  local steps = {
    {
      update = {
        sessionUpdate = "tool_call",
        toolCallId = "t",
        title = "`make`",
        kind = "execute",
        status = "in_progress",
      },
    },
  }
  local lines = {}
  for i = 1, 1000 do
    lines[i] = ("[%d/1000] compiling unit %d"):format(i, i)
    steps[#steps + 1] = {
      update = {
        sessionUpdate = "tool_call_update",
        toolCallId = "t",
        content = { { type = "content", content = { type = "text", text = table.concat(lines, "\n") } } },
      },
    }
  end
  return { name = "1,000 cumulative updates of one call", lines = 10, scenario = { turns = { steps } } }
end

---@return bench.Scenario
local function long_line()
  return {
    name = "one line of 5 MB",
    lines = 1000,
    scenario = {
      turns = {
        { { big_text = { text = "0123456789 ", times = math.floor(5 * 1024 * 1024 / 11) } }, { text = "\nend\n" } },
      },
    },
  }
end

---A past session of 10,000 entries.
---@return bench.Scenario
function M.reload()
  local updates = {}
  local function add(kind, text)
    updates[#updates + 1] = { sessionUpdate = kind, content = { type = "text", text = text } }
  end
  for i = 1, 2000 do
    add("user_message_chunk", ("Question %d: %s"):format(i, paragraph(12)))
    add("agent_thought_chunk", paragraph(30))
    updates[#updates + 1] = {
      sessionUpdate = "tool_call",
      toolCallId = "r" .. i,
      title = "Read file " .. i,
      kind = "read",
      status = "completed",
      content = { { type = "content", content = { type = "text", text = "one\ntwo\nthree" } } },
    }
    add("agent_message_chunk", ("Answer %d.\n\n%s\n\n```lua\nlocal x = %d\n```\n"):format(i, paragraph(40), i))
    updates[#updates + 1] = {
      sessionUpdate = "tool_call",
      toolCallId = "e" .. i,
      title = "Edit file " .. i,
      kind = "edit",
      status = "completed",
      content = {
        { type = "diff", path = ("${cwd}/f%d.lua"):format(i), oldText = "local a = 1\n", newText = "local a = 2\n" },
      },
    }
  end
  return {
    name = "reload of 10,000 entries",
    lines = 20000,
    load = "past",
    scenario = { sessions = { { sessionId = "past", title = "Long", updates = updates } } },
  }
end

---Code in languages that have not been seen before: with a parser of Neovim's own, and by Vim's syntax files.
---@return bench.Scenario
local function first_code()
  local steps = {}
  for lang, line in pairs({
    c = "static int f(const char *s) { return s[0] == 'x' ? 1 : 0; } /* ${n} */\n",
    vim = "let s:list = filter(copy(a:items), { _, v -> v > ${n} })\n",
    lua = "local f = function(x) return x .. '${n}' end\n",
    python = "def f(x: int) -> str: return f'{x} ${n}'  # a comment\n",
    rust = "let x: Vec<&str> = items.iter().map(|i| i.name()).collect(); // ${n}\n",
    typescript = "const f = async (x: number): Promise<string> => `${x} ${n}`;\n",
  }) do
    vim.list_extend(steps, {
      { text = ("\n```%s\n"):format(lang) },
      { chunks = { count = 30, text = line } },
      { text = "```\n" },
      { wait_ms = 400 },
    })
  end
  return { name = "the first code in six languages", lines = 180, scenario = { turns = { steps } } }
end

---A permission for an edit of 400 lines, in a language without a parser.
---@return bench.Scenario
local function long_diff()
  local old, new = {}, {}
  for i = 1, 400 do
    old[i] = ("  def method_%d(x) = @items.fetch(x, :none).to_s + 'old %d'"):format(i, i)
    new[i] = ('  def method_%d(x) = @items.fetch(x, :none).to_s + "new #{x} %d"'):format(i, i)
  end
  local call = {
    toolCallId = "t",
    title = "Edit list.rb",
    kind = "edit",
    content = {
      {
        type = "diff",
        path = "${cwd}/list.rb",
        oldText = table.concat(old, "\n"),
        newText = table.concat(new, "\n"),
      },
    },
  }
  return {
    name = "a permission for an edit of 400 lines",
    lines = 10,
    scenario = { turns = { { { permission = { toolCall = call } }, { text = "Done.\n" } } } },
  }
end

---A thousand places of an open file of 100,000 lines, changed on disk: shown as hunks. Lines are typed into it or not.
---@param typed boolean
---@return bench.Scenario
local function hunks(typed)
  local old, new = {}, {}
  for i = 1, 100000 do
    old[i] = ("line %d of the file, as it was"):format(i)
    new[i] = i % 100 == 50 and ("line %d of the file, as it is"):format(i) or old[i]
  end
  local call = { toolCallId = "t", title = "Edit big.txt", kind = "edit", status = "completed" }
  call.sessionUpdate, call.locations = "tool_call", { { path = "${cwd}/big.txt" } }
  return {
    name = "1,000 hunks in 100,000 lines" .. (typed and ", typed in" or ""),
    lines = 100000,
    file = { name = "big.txt", text = table.concat(old, "\n") .. "\n" },
    hunks = 1000,
    typed = typed,
    scenario = {
      turns = {
        {
          { write_file = { path = "big.txt", text = table.concat(new, "\n") .. "\n" } },
          { update = call },
        },
      },
    },
  }
end

---Text of one shape, in chunks of a few words.
---@param name string
---@param count integer
---@param text string
---@param head? string what comes first
---@return bench.Scenario
local function shape(name, count, text, head)
  local steps = {
    { text = head or "begin\n\n" },
    { chunks = { count = count, text = text, single_writes = true } },
    { text = "\nend\n" },
  }
  return { name = name, lines = 2, chunks = count, scenario = { turns = { steps } } }
end

---Chunks of a few words in lines of 300 characters, without an empty line.
---@param thousands integer
---@return bench.Scenario
local function long_lines(thousands)
  local lines = math.floor(thousands * 50)
  local line = {
    { chunks = { count = 19, text = "word **${n}** and ", single_writes = true } },
    { text = "end\n" },
  }
  return {
    name = ("%d,000 chunks, 300 a line"):format(thousands),
    lines = lines,
    chunks = math.floor(thousands * 1000),
    scenario = { turns = { { { ["repeat"] = { times = lines, steps = line } } } } },
  }
end

---A command that Neovim runs for the agent, with 20 MB of output.
---@return bench.Scenario
local function command_output()
  local shell = "seq 1 2700000"
  local call =
    { sessionUpdate = "tool_call", toolCallId = "t", title = shell, kind = "execute", status = "in_progress" }
  call.content = { { type = "terminal", terminalId = "term-1" } }
  local terminal = { sessionId = "${session}", terminalId = "term-1" }
  return {
    name = "20 MB of a command's output",
    lines = 3,
    alone = true,
    shell = shell,
    scenario = {
      turns = {
        {
          {
            request = {
              method = "terminal/create",
              params = {
                sessionId = "${session}",
                command = "sh",
                args = { "-c", shell },
                outputByteLimit = 1024 * 1024,
              },
            },
          },
          { update = call },
          { request = { method = "terminal/wait_for_exit", params = terminal } },
        },
      },
    },
  }
end

---The shapes that text of agents has, each hard for some client: one paragraph without end, long lines without a blank one,
---lists in lists, tables, code.
---@return bench.Scenario[]
local function shapes()
  local line = ("a line of **text** with `code` in it, "):rep(7):sub(1, 298)
  local nested = {}
  for depth = 0, 5 do
    nested[#nested + 1] = ("  "):rep(depth) .. "- item **${n}** at depth " .. depth .. "\n"
  end
  local fences = {}
  for _, lang in ipairs({ "lua", "c", "python", "rust", "typescript", "sh" }) do
    fences[#fences + 1] = { text = ("\n```%s\n"):format(lang) }
    fences[#fences + 1] = { chunks = { count = 500, text = "local value_${n} = call(${n}, 'text')\n" } }
    fences[#fences + 1] = { text = "```\n" }
  end
  return {
    shape("one paragraph, 20,000 chunks", 20000, "word **${n}** and "),
    long_lines(20),
    long_lines(100),
    shape("20,000 lines of 300 characters", 20000, line .. "\n"),
    shape("100,000 lines of 300 characters", 100000, line .. "\n"),
    shape("nested lists, 3,000 times six", 3000, table.concat(nested)),
    shape(
      "a table of 5,000 rows",
      5000,
      "| row ${n} | a cell with **bold** | `code ${n}` | 日本 |\n",
      "| row | text | code | wide |\n|---|---|---|--:|\n"
    ),
    { name = "code in six languages, 3,000 lines", lines = 3000, scenario = { turns = { fences } } },
  }
end

---Five chats that stream at once, one of them in sight.
---@return bench.Scenario
local function five_chats()
  local one = chunks()
  one.name, one.chats = "five chats, 20,000 chunks each", 5
  return one
end

---@return bench.Scenario[]
function M.all()
  local all = { chunks() }
  vim.list_extend(all, shapes())
  all[#all + 1] = five_chats()
  return vim.list_extend(all, M.rest())
end

---@return bench.Scenario[]
function M.rest()
  return {
    tools(),
    cumulative(),
    command_output(),
    long_line(),
    M.reload(),
    first_code(),
    long_diff(),
    hunks(false),
    hunks(true),
  }
end

return M
