-- Files an agent changes on disk: Neovim asks nothing about them, and unsaved text stays whatever key comes next.

local T = require("harness")
local files = require("harness.file")

local put, get = files.write, files.read

local TEXT = table.concat(vim.fn.map(vim.fn.range(1, 30), "'line ' . v:val"), "\n") .. "\n"
local OPTS = { width = 120, height = 30, files = { ["a.txt"] = TEXT, ["other.txt"] = TEXT } }

---@param from string
---@param to string
---@param text string?
---@return string
local function replaced(from, to, text)
  return ((text or TEXT):gsub(vim.pesc(from) .. "\n", to .. "\n"))
end

---What the user typed in the second line, and what the agent wrote in the twentieth.
local BOTH = replaced("line 2", "mine", replaced("line 20", "theirs"))

---@param nvim harness.Child
---@param name string
---@return string
local function in_buffer(nvim, name)
  local lines = nvim:lua("return vim.api.nvim_buf_get_lines(vim.fn.bufnr(...), 0, -1, false)", name)
  return table.concat(lines, "\n") .. "\n"
end

---Ways in which Neovim comes to look at the time of a file.
local LOOKS = {
  focus = function(nvim)
    nvim:api("nvim_ui_set_focus", true)
  end,
  checktime = function(nvim)
    nvim:keys(":checktime<CR>")
  end,
  -- As Neovim 0.13 does by a watcher, and many configurations by an autocommand.
  checktime_of_one = function(nvim)
    nvim:lua("vim.schedule(function() vim.cmd('checktime ' .. vim.fn.bufnr('a.txt')) end)")
  end,
  entering = function(nvim)
    nvim:keys(":hide edit other.txt<CR>:buffer a.txt<CR>")
  end,
  autocommands = function(nvim)
    nvim:cmd("autocmd FocusGained,WinEnter,BufEnter * checktime")
    -- None of these keys answers a dialog.
    nvim:keys("<C-w>s<C-w>w<C-w>c")
    nvim:api("nvim_ui_set_focus", true)
  end,
  inserting = function(nvim)
    nvim:keys("i")
    nvim:api("nvim_ui_set_focus", true)
    nvim:lua("vim.schedule(function() vim.cmd.checktime() end)")
    nvim:keys("L<BS><Esc>")
  end,
}

---Waits until there is no dialog, and types what would answer one.
---@param nvim harness.Child
local function answer_dialog(nvim)
  nvim:keys("L")
  nvim:keys("a<Esc>")
  nvim:wait("vim.api.nvim_get_mode().mode == 'n' and not vim.api.nvim_get_mode().blocking", "normal mode")
end

---@param path string
---@return table
local function report(path)
  return {
    update = {
      sessionUpdate = "tool_call",
      toolCallId = "e",
      title = "Edit",
      kind = "edit",
      status = "completed",
      locations = { { path = "${cwd}/" .. path } },
    },
  }
end

for name, look in vim.spairs(LOOKS) do
  for _, autoread in ipairs({ "autoread", "noautoread" }) do
    T.case(("no dialog after an agent's report: %s, %s"):format(name, autoread), OPTS, function(nvim)
      local agent = T.agent({
        profile = "plain",
        turns = { { { write_file = { path = "a.txt", text = replaced("line 20", "theirs") } }, report("a.txt") } },
      })
      nvim:use(agent)
      nvim:cmd("set " .. autoread)
      nvim:cmd("edit a.txt")
      nvim:keys("2GSmine<Esc>")
      nvim:prompt("edit", { open = false })
      nvim:wait_turns(1)
      nvim:wait(function()
        return in_buffer(nvim, "a.txt") == BOTH
      end, "both in the buffer")
      T.eq(nvim:lua("return { vim.bo.modified, #require('cursor_agent.files.conflicts').list }"), { true, 0 })
      -- Again, after the report: it need not be the agent's, and then the user decides.
      put(nvim.work .. "/a.txt", replaced("line 20", "theirs again"))
      look(nvim)
      answer_dialog(nvim)
      local merged = replaced("theirs", "theirs again", BOTH)
      nvim:wait(function()
        local waiting =
          nvim:lua("return (require('cursor_agent.files.conflicts').list[1] or { theirs = {} }).theirs[20]")
        return in_buffer(nvim, "a.txt") == (waiting == "theirs again" and BOTH or merged)
      end, "a conflict, or both in the buffer where the review took it for the agent's")
      T.eq(nvim:lua("return vim.bo.modified"), true)
      T.eq(get(nvim.work .. "/a.txt"), replaced("line 20", "theirs again"))
      T.eq(nvim:messages():match("W1%d:[^\n]*"), nil)
    end)

    T.case(("no dialog before an agent's report: %s, %s"):format(name, autoread), OPTS, function(nvim)
      local agent = T.agent({
        profile = "plain",
        turns = {
          {
            { request = { method = "fs/read_text_file", params = { sessionId = "${session}", path = "${cwd}/no" } } },
            { wait_cancel = true },
          },
        },
      })
      nvim:use(agent)
      nvim:cmd("set " .. autoread)
      nvim:cmd("edit other.txt")
      nvim:cmd("edit a.txt")
      nvim:keys("2GSmine<Esc>")
      nvim:prompt("edit", { open = false })
      nvim:wait(function()
        return #agent:answers("fs/read_text_file") == 1
      end, "the turn")
      put(nvim.work .. "/a.txt", replaced("line 20", "theirs"))
      put(nvim.work .. "/other.txt", replaced("line 5", "other"))
      look(nvim)
      answer_dialog(nvim)
      nvim:wait(function()
        return in_buffer(nvim, "a.txt") == BOTH
      end, "both in the buffer")
      nvim:lua("require('cursor_agent.files').edited(vim.fn.fnamemodify('a.txt', ':p'))")
      T.eq(in_buffer(nvim, "a.txt"), BOTH, "the report says nothing new")
      T.eq(nvim:lua("return { vim.bo.modified, #require('cursor_agent.files.conflicts').list }"), { true, 0 })
      -- One without unsaved text follows, at the end of the turn at the latest.
      nvim:cmd("CursorAgent cancel")
      nvim:wait_turns(1)
      nvim:wait(function()
        return in_buffer(nvim, "other.txt") == replaced("line 5", "other")
      end, "the other file")
      T.eq(nvim:lua("return vim.bo[vim.fn.bufnr('other.txt')].modified"), false)
      T.eq(nvim:messages():match("W1%d:[^\n]*"), nil)
    end)
  end
end

---@param nvim harness.Child
---@param path string
---@param options table?
local function write_unsaid(nvim, path, options)
  put(path, TEXT)
  nvim:use(T.agent({ profile = "plain", turns = { { { text = "At work." }, { wait_cancel = true } } } }), options)
  nvim:cmd("edit " .. path)
  nvim:keys("2GSmine<Esc>")
  nvim:prompt("edit", { open = false })
  nvim:wait("require('cursor_agent').status().state == 'running'", "the turn")
  put(path, replaced("line 20", "theirs"))
  for _, look in vim.spairs(LOOKS) do
    look(nvim)
    answer_dialog(nvim)
  end
end

T.case("no dialog about a file in a root beside the workspace that was changed before a report", OPTS, function(nvim)
  local dir = vim.fs.dirname(nvim.work) .. "/root"
  vim.fn.mkdir(dir)
  write_unsaid(nvim, dir .. "/a.txt", { workspace = { roots = { dir } } })
  nvim:wait(function()
    return in_buffer(nvim, "root/a.txt") == BOTH
  end, "both in the buffer")
  T.eq(nvim:messages():match("W1%d:[^\n]*"), nil)
end)

T.case("no dialog about a file outside the workspace: unsaved text stays, and the user decides", OPTS, function(nvim)
  local path = vim.fs.dirname(nvim.work) .. "/a.txt"
  write_unsaid(nvim, path)
  nvim:wait("#require('cursor_agent.files.conflicts').list == 1", "the conflict")
  T.eq(in_buffer(nvim, path), replaced("line 2", "mine"))
  -- The agent says that it was its doing: then both are put together.
  nvim:lua("require('cursor_agent.files').edited(...)", path)
  T.eq(in_buffer(nvim, path), BOTH)
  T.eq(nvim:lua("return #require('cursor_agent.files.conflicts').list"), 0)
  nvim:cmd("CursorAgent cancel")
  nvim:wait_turns(1)
  put(path, replaced("line 20", "later"))
  nvim:keys(":checktime<CR>")
  answer_dialog(nvim)
  T.eq(in_buffer(nvim, path), BOTH)
  T.eq(nvim:messages():match("W1%d:[^\n]*"), nil)
end)

T.case("a new file that an agent makes on disk is not loaded over what was typed", OPTS, function(nvim)
  local agent = T.agent({
    profile = "plain",
    turns = { { { write_file = { path = "new.txt", text = "theirs\n" } }, { wait_cancel = true } } },
  })
  nvim:use(agent)
  nvim:cmd("edit new.txt")
  nvim:keys("imine<Esc>")
  nvim:prompt("edit", { open = false })
  nvim:wait(function()
    return vim.uv.fs_stat(nvim.work .. "/new.txt")
  end, "the file")
  nvim:api("nvim_ui_set_focus", true)
  answer_dialog(nvim)
  nvim:keys(":checktime<CR>")
  answer_dialog(nvim)
  T.eq(in_buffer(nvim, "new.txt"), "mine\n")
  nvim:wait("#require('cursor_agent.files.conflicts').list == 1", "the conflict")
  nvim:keys(":write<CR>")
  nvim:wait_screen("new.txt has changed on disk and was not written")
  T.eq(get(nvim.work .. "/new.txt"), "theirs\n")
  T.eq(nvim:lua("return vim.bo.modified"), true)
  nvim:keys(":write!<CR>")
  nvim:wait(function()
    return get(nvim.work .. "/new.txt") == "mine\n"
  end, "it to be written")
  T.eq(nvim:lua("return #require('cursor_agent.files.conflicts').list"), 0)
  nvim:cmd("CursorAgent cancel")
  nvim:wait_turns(1)
end)

---Ends the turn, and lets the agent go on when the user next sets a mode.
---@param steps table[]
---@return harness.Agent
local function goes_on(steps)
  local all = { { stop = "end_turn" }, { expect = "session/set_mode" } }
  return T.agent({ on = { ["session/prompt"] = { vim.list_extend(all, steps) } } })
end

T.case("a file an agent makes after its turn is not loaded over what was typed", OPTS, function(nvim)
  nvim:use(goes_on({ { write_file = { path = "new.txt", text = "theirs\n" } }, report("new.txt") }))
  nvim:prompt("edit", { open = false })
  nvim:wait_turns(1)
  nvim:cmd("edit new.txt")
  nvim:keys("imine<Esc>")
  nvim:lua("require('cursor_agent').set_mode('ask')")
  nvim:wait("#require('cursor_agent.files.conflicts').list == 1", "the conflict")
  for _, name in ipairs({ "focus", "checktime" }) do
    LOOKS[name](nvim)
    answer_dialog(nvim)
  end
  T.eq(in_buffer(nvim, "new.txt"), "mine\n")
  T.eq(nvim:messages():match("W1%d:[^\n]*"), nil)
end)

T.case("no dialog about what an agent's command changes after the turn; the user decides", OPTS, function(nvim)
  local script = "while [ ! -e go ]; do sleep 0.02; done; sed -i 's/^line 20$/theirs/' a.txt; while :; do sleep 1; done"
  local create = { sessionId = "${session}", command = "sh", args = { "-c", script } }
  nvim:use(T.agent({ turns = { { { request = { method = "terminal/create", params = create } } }, {} } }))
  nvim:cmd("edit a.txt")
  nvim:keys("2GSmine<Esc>")
  nvim:prompt("run", { open = false })
  nvim:wait_turns(1)
  put(nvim.work .. "/go", "")
  nvim:wait(function()
    return get(nvim.work .. "/a.txt") == replaced("line 20", "theirs")
  end, "the change")
  for _, look in vim.spairs(LOOKS) do
    look(nvim)
    answer_dialog(nvim)
  end
  T.eq(in_buffer(nvim, "a.txt"), replaced("line 2", "mine"))
  nvim:wait("#require('cursor_agent.files.conflicts').list == 1", "the conflict")
  T.eq(nvim:messages():match("W1%d:[^\n]*"), nil)
end)

for _, choice in ipairs({ "ask", "reload" }) do
  T.case(("a later autocommand that says %s is not the last word"):format(choice), OPTS, function(nvim)
    nvim:use(T.agent({ profile = "plain", turns = { { report("a.txt") } } }))
    nvim:cmd("edit a.txt")
    nvim:keys("2GSmine<Esc>")
    nvim:prompt("edit", { open = false })
    nvim:wait_turns(1)
    for name, look in vim.spairs(LOOKS) do
      nvim:cmd(("autocmd FileChangedShell *.txt let v:fcs_choice = '%s'"):format(choice))
      put(nvim.work .. "/a.txt", replaced("line 20", name))
      look(nvim)
      answer_dialog(nvim)
      T.eq(in_buffer(nvim, "a.txt"), replaced("line 2", "mine"), name)
    end
    T.eq(nvim:messages():match("W1%d:[^\n]*"), nil)
  end)
end

T.case("no dialog after the plugin was reloaded, nor about a buffer loaded without autocommands", OPTS, function(nvim)
  local agent = T.agent({ profile = "plain", turns = { { report("a.txt") }, { { wait_cancel = true } } } })
  nvim:use(agent)
  nvim:cmd("edit a.txt")
  nvim:keys("2GSmine<Esc>")
  nvim:prompt("edit", { open = false })
  nvim:wait_turns(1)
  nvim:lua(
    [[
      local root, options = ...
      require("cursor_agent").deactivate()
      for name in pairs(package.loaded) do
        if name == "cursor_agent" or vim.startswith(name, "cursor_agent.") then
          package.loaded[name] = nil
        end
      end
      vim.g.loaded_cursor_agent = nil
      vim.cmd.source(root .. "/plugin/cursor_agent.lua")
      require("cursor_agent").setup({ agent = "test", agents = { test = options } })
    ]],
    T.root,
    agent.options
  )
  put(nvim.work .. "/a.txt", replaced("line 20", "theirs"))
  for _, look in vim.spairs(LOOKS) do
    look(nvim)
    answer_dialog(nvim)
  end
  T.eq(in_buffer(nvim, "a.txt"), replaced("line 2", "mine"))
  nvim:prompt("again", { open = false })
  nvim:wait_state("running")
  put(nvim.work .. "/third.txt", TEXT)
  nvim:cmd("hide noautocmd edit third.txt")
  nvim:keys("2GSmine<Esc>")
  put(nvim.work .. "/third.txt", replaced("line 20", "theirs"))
  nvim:keys(":checktime<CR>")
  answer_dialog(nvim)
  -- Merged, if its old text was known by then.
  T.contains(in_buffer(nvim, "third.txt"), "line 1\nmine\nline 3\n")
  T.eq(nvim:messages():match("W1%d:[^\n]*"), nil)
end)

for _, command in ipairs({ "write", "wall", "update" }) do
  T.case((":%s writes what an agent wrote meanwhile as well"):format(command), OPTS, function(nvim)
    nvim:use(T.agent({
      profile = "plain",
      turns = { { { write_file = { path = "a.txt", text = replaced("line 20", "theirs") } }, { wait_cancel = true } } },
    }))
    nvim:cmd("edit a.txt")
    nvim:keys("2GSmine<Esc>")
    nvim:prompt("edit", { open = false })
    nvim:wait(function()
      return get(nvim.work .. "/a.txt") ~= TEXT
    end, "the change")
    nvim:keys((":%s<CR>"):format(command))
    nvim:wait(function()
      return get(nvim.work .. "/a.txt") == BOTH
    end, "both on disk")
    T.eq(in_buffer(nvim, "a.txt"), BOTH)
    T.eq(nvim:lua("return { vim.bo.modified, #require('cursor_agent.files.conflicts').list }"), { false, 0 })
    nvim:cmd("CursorAgent cancel")
    nvim:wait_turns(1)
    T.eq(nvim:messages():match("W1%d:[^\n]*"), nil)
  end)
end

T.case(":w asks nothing where an agent has written the same lines, and :w! writes", OPTS, function(nvim)
  local agent = T.agent({
    profile = "plain",
    turns = { { { write_file = { path = "a.txt", text = replaced("line 2", "theirs") } }, { wait_cancel = true } } },
  })
  nvim:use(agent)
  nvim:cmd("edit a.txt")
  nvim:keys("2GSmine<Esc>")
  nvim:prompt("edit", { open = false })
  nvim:wait(function()
    return get(nvim.work .. "/a.txt") ~= TEXT
  end, "the change")
  nvim:keys(":write<CR>")
  nvim:wait_screen("a.txt has changed on disk and was not written")
  nvim:keys("y")
  nvim:keys("<Esc>")
  T.eq(get(nvim.work .. "/a.txt"), replaced("line 2", "theirs"))
  T.eq(in_buffer(nvim, "a.txt"), replaced("line 2", "mine"))
  T.eq(nvim:lua("return vim.bo.modified"), true)
  nvim:keys(":write b.txt<CR>")
  nvim:wait(function()
    return vim.uv.fs_stat(nvim.work .. "/b.txt") and get(nvim.work .. "/b.txt") == replaced("line 2", "mine")
  end, "the other file")
  nvim:keys(":write!<CR>")
  nvim:wait(function()
    return get(nvim.work .. "/a.txt") == replaced("line 2", "mine")
  end, "it to be written")
  T.eq(nvim:lua("return { vim.bo.modified, #require('cursor_agent.files.conflicts').list }"), { false, 0 })
  nvim:keys("3GSmore<Esc>:write<CR>")
  nvim:wait(function()
    return get(nvim.work .. "/a.txt"):find("more", 1, true)
  end, "it to be written without a question")
  nvim:cmd("CursorAgent cancel")
  nvim:wait_turns(1)
end)

T.case("'autowrite' writes over nothing an agent wrote after its turn, and waits for no key", OPTS, function(nvim)
  local step = { write_file = { path = "a.txt", text = replaced("line 20", "theirs") } }
  nvim:use(T.agent({ profile = "plain", turns = { { step } } }))
  nvim:cmd("set autowrite autoread")
  nvim:cmd("edit a.txt")
  nvim:prompt("edit", { open = false })
  nvim:wait_turns(1)
  nvim:wait("vim.fn.getline(20) == 'theirs'", "the agent's line")
  nvim:keys("2GSmine<Esc>")
  local later = replaced("line 25", "later", replaced("line 20", "theirs"))
  put(nvim.work .. "/a.txt", later)
  nvim:keys(":args a.txt other.txt<CR>")
  nvim:wait_screen("a.txt has changed on disk and was not written")
  T.ok(not nvim:sees("Press ENTER"))
  T.eq(get(nvim.work .. "/a.txt"), later)
  T.eq(in_buffer(nvim, "a.txt"), replaced("line 2", "mine", replaced("line 20", "theirs")))
end)

T.case("of files no agent has touched Neovim and other autocommands speak as ever", OPTS, function(nvim)
  nvim:use(T.agent({ profile = "plain", turns = { { report("a.txt") } } }))
  nvim:cmd("edit a.txt")
  nvim:prompt("edit", { open = false })
  nvim:wait_turns(1)
  nvim:cmd("edit other.txt")
  nvim:keys("2GSmine<Esc>")
  put(nvim.work .. "/other.txt", replaced("line 20", "theirs"))
  nvim:keys(":checktime<CR>")
  nvim:wait_screen("W12: Warning")
  nvim:keys("O")
  nvim:lua([[
    _G.seen = {}
    vim.api.nvim_create_autocmd("FileChangedShell", { pattern = "*.txt", callback = function(args)
      table.insert(_G.seen, vim.v.fcs_reason .. " " .. vim.fs.basename(args.file))
      vim.v.fcs_choice = "reload"
    end })
  ]])
  put(nvim.work .. "/other.txt", replaced("line 20", "theirs once more"))
  nvim:cmd("checktime")
  T.eq(nvim:lua("return _G.seen"), { "conflict other.txt" })
  T.eq(in_buffer(nvim, "other.txt"), replaced("line 20", "theirs once more"))
  T.eq(nvim:lua("return #require('cursor_agent.files.conflicts').list"), 0)
end)

T.case("a file that a command changed during a turn is looked after when the turn is over", OPTS, function(nvim)
  local text = replaced("line 20", "theirs")
  nvim:use(T.agent({ profile = "plain", turns = { { { write_file = { path = "a.txt", text = text } } } } }))
  -- What others say of a file does not bring the dialog back.
  nvim:cmd("autocmd FileChangedShell * let v:fcs_choice = 'ask'")
  nvim:cmd("edit a.txt")
  nvim:keys("2GSmine<Esc>")
  nvim:prompt("edit", { open = false })
  nvim:wait_turns(1)
  nvim:wait(function()
    return in_buffer(nvim, "a.txt") == BOTH
  end, "both in the buffer")
  nvim:keys(":checktime<CR>")
  answer_dialog(nvim)
  put(nvim.work .. "/a.txt", replaced("line 20", "in the background"))
  nvim:api("nvim_ui_set_focus", true)
  answer_dialog(nvim)
  nvim:keys(":checktime<CR>")
  answer_dialog(nvim)
  T.eq(in_buffer(nvim, "a.txt"), BOTH)
  nvim:wait("require('cursor_agent.files.conflicts').list[1].theirs[20] == 'in the background'", "the newest text")
  T.eq(nvim:messages():match("W1%d:[^\n]*"), nil)
end)

T.case("undo after a reload by an agent's change is unsaved text again", OPTS, function(nvim)
  nvim:use(T.agent({
    profile = "plain",
    turns = { { { write_file = { path = "a.txt", text = replaced("line 20", "theirs") } }, report("a.txt") } },
  }))
  nvim:cmd("edit a.txt")
  nvim:prompt("edit", { open = false })
  nvim:wait_turns(1)
  T.eq(in_buffer(nvim, "a.txt"), replaced("line 20", "theirs"))
  nvim:keys("u")
  T.eq(nvim:lua("return vim.bo.modified"), true)
  put(nvim.work .. "/a.txt", replaced("line 21", "more"))
  nvim:lua("require('cursor_agent.files').edited(vim.fn.fnamemodify('a.txt', ':p'))")
  T.eq(in_buffer(nvim, "a.txt"), TEXT, "it is not loaded over")
end)
