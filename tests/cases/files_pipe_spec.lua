-- Pipes where a file was, or is expected: nothing the editor does with them waits, and no text is lost.

local T = require("harness")

local TEXT = table.concat(vim.fn.map(vim.fn.range(1, 30), "'line ' . v:val"), "\n") .. "\n"
local OPTS = { width = 120, height = 30, files = { ["a.txt"] = TEXT, ["other.txt"] = "other\n" } }

---@param path string
local function make_pipe(path)
  vim.uv.fs_unlink(path)
  T.eq(vim.system({ "mkfifo", path }):wait().code, 0)
end

---@param nvim harness.Child
---@return string
local function in_buffer(nvim)
  return table.concat(nvim:lua("return vim.api.nvim_buf_get_lines(vim.fn.bufnr('a.txt'), 0, -1, false)"), "\n") .. "\n"
end

---Opens a file, starts a turn that stays open, and puts a pipe in the file's place before the agent says a word.
---@param nvim harness.Child
---@param before fun()? with the file open
local function start(nvim, before)
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
  nvim:cmd("set autoread hidden")
  nvim:cmd("edit other.txt")
  nvim:cmd("edit a.txt")
  if before then
    before()
  end
  nvim:prompt("go", { open = false })
  nvim:wait(function()
    return #agent:answers("fs/read_text_file") == 1
  end, "the turn")
  make_pipe(nvim.work .. "/a.txt")
end

---What has Neovim look at the file again, each by itself. Typed, as a user would: a call would wait for the answer.
local LOOKS = {
  ["checktime"] = { keys = ":checktime<CR>" },
  ["focus"] = {
    act = function(nvim)
      nvim:api("nvim_ui_set_focus", true)
    end,
  },
  ["edit"] = { keys = ":edit<CR>" },
  ["edit!"] = { keys = "2GSmine<Esc>:edit!<CR>", text = (TEXT:gsub("line 2\n", "mine\n", 1)), modified = true },
  ["entering"] = {
    before = function(nvim)
      nvim:cmd("edit other.txt")
    end,
    keys = ":buffer a.txt<CR>",
  },
  ["entering what was unloaded"] = {
    before = function(nvim)
      nvim:cmd("edit other.txt")
      nvim:cmd("bunload a.txt")
    end,
    keys = ":buffer a.txt<CR>",
    unloaded = true,
  },
  ["opening it for the first time"] = {
    before = function(nvim)
      nvim:cmd("edit other.txt")
      nvim:cmd("bwipeout a.txt")
    end,
    keys = ":edit a.txt<CR>",
    unloaded = true,
  },
  ["bufdo"] = { keys = ":bufdo checktime<CR>:buffer a.txt<CR>" },
}

for name, look in vim.spairs(LOOKS) do
  T.case("a file that became a pipe during a turn: " .. name, OPTS, function(nvim)
    start(nvim, function()
      if look.before then
        look.before(nvim)
      end
    end)
    if look.act then
      look.act(nvim)
    else
      nvim:keys(look.keys)
    end
    nvim:wait("vim.api.nvim_get_mode().mode == 'n' and vim.fn.bufnr('a.txt') > 0", "the editor")
    nvim:wait("vim.fn.execute('messages'):find('regular file', 1, true) ~= nil", "the message")
    if not look.unloaded then
      T.eq(in_buffer(nvim), look.text or TEXT)
      T.eq(nvim:lua("return vim.bo[vim.fn.bufnr('a.txt')].modified"), look.modified or false)
    end
    T.eq(nvim:messages():match("W1%d:[^\n]*"), nil)
    -- A file again: it is shown.
    assert(vim.uv.fs_unlink(nvim.work .. "/a.txt"))
    vim.fn.writefile({ "again" }, nvim.work .. "/a.txt")
    nvim:keys(":buffer a.txt<CR>:edit!<CR>")
    nvim:wait(function()
      return in_buffer(nvim) == "again\n"
    end, "the file")
    T.eq(nvim:lua("return vim.bo[vim.fn.bufnr('a.txt')].modified"), false)
    nvim:keys("Smine<Esc>:write<CR>")
    nvim:wait(function()
      return vim.fn.readfile(nvim.work .. "/a.txt")[1] == "mine"
    end, "it to be written")
    T.eq(nvim:lua("return vim.bo[vim.fn.bufnr('other.txt')].autoread"), false, "Neovim reads nothing by itself")
    nvim:cmd("CursorAgent cancel")
    nvim:wait_turns(1)
    nvim:wait("vim.bo[vim.fn.bufnr('other.txt')].autoread == nil", "the option as it was")
  end)
end

for _, command in ipairs({ "write", "write!", "wall", "wall!", "update" }) do
  T.case((":%s does not wait for a reader of what became a pipe"):format(command), OPTS, function(nvim)
    start(nvim, function()
      nvim:keys("2GSmine<Esc>")
    end)
    nvim:keys((":%s<CR>"):format(command))
    nvim:wait("vim.fn.execute('messages'):find('regular file', 1, true) ~= nil", "the message")
    nvim:wait("vim.api.nvim_get_mode().mode == 'n'", "the editor")
    T.eq(nvim:lua("return { vim.bo.modified, vim.fn.getline(2) }"), { true, "mine" })
    nvim:keys(":write saved.txt<CR>")
    nvim:wait(function()
      return vim.uv.fs_stat(nvim.work .. "/saved.txt")
    end, "a copy")
    nvim:cmd("CursorAgent cancel")
    nvim:wait_turns(1)
  end)
end

T.case("a pipe that a prompt or the chat names is not opened", OPTS, function(nvim)
  local agent = T.agent({ turns = { { { text = "See a.txt:2 there." } }, {}, {} } })
  nvim:use(agent)
  nvim:lua("_G.told = {} vim.notify = function(text) table.insert(_G.told, text) end")
  for _, name in ipairs({ "x.png", "a.txt" }) do
    vim.fn.mkdir(vim.fs.dirname(nvim.work .. "/" .. name), "p")
    make_pipe(nvim.work .. "/" .. name)
  end
  nvim:prompt("go")
  nvim:wait_turns(1)
  nvim:wait_screen("See a.txt")
  nvim:cmd("wincmd l")
  nvim:keys("gg/a.txt<CR><CR>")
  nvim:wait("table.concat(_G.told, '\\n'):find('a.txt is not a regular file', 1, true) ~= nil", "the message")
  for _, mention in ipairs({ "@x.png", "@a.txt:1-2", "@a.txt" }) do
    nvim:lua("pcall(require('cursor_agent').prompt, ...)", "look at " .. mention)
  end
  nvim:wait("vim.api.nvim_get_mode().mode == 'n'", "the editor")
end)
