-- Files of every kind that an agent changed, by a command or by edits it tells of afterwards, with git and without: each comes
-- back byte for byte.

local T = require("harness")

---@class review_kinds.Kind
---@field [1] string? its bytes before; nothing: there is none
---@field [2] string? and after
---@field mode [integer, integer]? before and after
---@field link [string, string]? where it leads, before and after

---@type table<string, review_kinds.Kind>
local KINDS = {
  ["created.txt"] = { nil, "new\n" },
  ["created-empty.txt"] = { nil, "" },
  ["deleted.txt"] = { "one\ntwo\n", nil },
  ["deleted-binary"] = { "\0\1\2\255", nil },
  ["moved-from.txt"] = { "moved\nlines\n", nil },
  ["moved-to.txt"] = { nil, "moved\nlines\n" },
  ["binary"] = { "\127ELF\0\1\n\0\255\254", "\127ELF\0\2\n\n\0" },
  ["turned-binary"] = { "text\n", "text\0\n" },
  ["latin1.txt"] = { "caf\233\nna\239ve\n", "caf\233\nNA\207VE\nmore\n" },
  ["utf16le.txt"] = { "\255\254a\0\n\0b\0\n\0", "\255\254a\0\n\0B\0\n\0" },
  ["utf16be.txt"] = { "\254\255\0a\0\n\0b\0\n", "\254\255\0a\0\n\0B\0\n" },
  ["bom.txt"] = { "\239\187\191one\ntwo\n", "\239\187\191one\n2\n" },
  ["bom-lost.txt"] = { "\239\187\191one\ntwo\n", "one\ntwo\n" },
  ["crlf.txt"] = { "one\r\ntwo\r\n", "one\r\n2\r\nthree\r\n" },
  ["crlf-lost.txt"] = { "one\r\ntwo\r\n", "one\ntwo\n" },
  ["mixed.txt"] = { "one\r\ntwo\nthree\r\n", "one\r\n2\nthree\r\n" },
  ["no-eol.txt"] = { "one\ntwo", "one\n2" },
  ["eol-added.txt"] = { "one\ntwo", "one\ntwo\n" },
  ["eol-lost.txt"] = { "one\ntwo\n", "one\ntwo" },
  ["emptied.txt"] = { "one\ntwo\n", "" },
  ["filled.txt"] = { "", "one\n" },
  ["script.sh"] = { "#!/bin/sh\necho\n", "#!/bin/sh\nexit\n", mode = { 493, 420 } },
  ["only-mode.sh"] = { "#!/bin/sh\n", "#!/bin/sh\n", mode = { 493, 420 } },
  ["group.sh"] = { "#!/bin/sh\necho\n", "#!/bin/sh\nexit\n", mode = { 509, 436 } },
  ["group.txt"] = { "one\n", "two\n", mode = { 436, 436 } },
  ["only-own.txt"] = { "one\n", "two\n", mode = { 384, 384 } },
  ["link"] = { link = { "target.txt", "crlf.txt" } },
  ["sub/deep/new.txt"] = { nil, "new\nfile\n" },
  ["spaces and \195\188.txt"] = { "\195\188\n", "\195\188\nx\n" },
  ["cr.txt"] = { "a\rb\rc\r", "a\rB\rc\r" },
  ["other-encoding.txt"] = { "caf\195\169\n", "caf\233\n" },
}

---Runs in the child: the files as they are to be, and as they are.
local WORLD = [[
  local kinds = ...
  local function path(name)
    return vim.fs.joinpath(_G.work, name)
  end
  _G.work = vim.uv.cwd()

  function _G.put(which)
    for name, kind in pairs(kinds) do
      local bytes = kind.bytes[which]
      if kind.link then
        os.remove(path(name))
        assert(vim.uv.fs_symlink(kind.link[which], path(name)))
      elseif bytes == nil or bytes == vim.NIL then
        os.remove(path(name))
      else
        local file = assert(io.open(path(name), "wb"))
        file:write(bytes)
        file:close()
        if kind.mode then
          assert(vim.uv.fs_chmod(path(name), kind.mode[which]))
        end
      end
    end
  end

  -- The first of what is not as it was.
  function _G.differs(which)
    for name, kind in vim.spairs(kinds) do
      local stat = vim.uv.fs_lstat(path(name))
      if kind.link then
        local leads = vim.uv.fs_readlink(path(name))
        if leads ~= kind.link[which] then
          return ("%s leads to %s"):format(name, leads)
        end
      else
        local file = io.open(path(name), "rb")
        local bytes = file and file:read("*a")
        if file then
          file:close()
        end
        local wanted = kind.bytes[which]
        if wanted == vim.NIL then
          wanted = nil
        end
        if bytes ~= wanted then
          return ("%s: %s, not %s"):format(name, vim.inspect(bytes), vim.inspect(wanted))
        elseif kind.mode and bit.band(stat.mode, 511) ~= kind.mode[which] then
          return ("%s: mode %o"):format(name, stat.mode)
        end
      end
    end
    return ""
  end

  local files = require("cursor_agent.files")
  local serve = files.serve
  files.serve = function(request, what, ...)
    if what.path:find("/gate$") then
      _G.gate = request
    else
      serve(request, what, ...)
    end
  end
]]

local names = vim.tbl_keys(KINDS)
table.sort(names)

---What the agent says it did to a file, after it did it.
---@param name string
---@param how "locations"|"diffs" as most agents do, or as Cursor does
---@return table
local function edit(name, how)
  local kind, path = KINDS[name], "${cwd}/" .. name
  local update = {
    sessionUpdate = "tool_call",
    toolCallId = name,
    title = "Edit",
    kind = not kind[2] and not kind.link and "delete" or "edit",
    status = "completed",
  }
  local new = kind[2]
  if how == "diffs" and new and not new:find("[\128-\255%z]") then
    -- That of a new file is not well formed.
    local made = { oldText = "-- /dev/null", newText = ("++ b/%s\n%s"):format(name, new) }
    local diff = kind[1] and { oldText = kind[1], newText = new } or made
    update.content = { vim.tbl_extend("error", { type = "diff", path = path }, diff) }
  else
    update.locations = { { path = path } }
  end
  return { update = update }
end

---One turn that waits at a file, and then says what it did.
---@param how "command"|"locations"|"diffs"
---@return table[]
local function turn(how)
  ---@type table[]
  local steps = {
    { request = { method = "fs/read_text_file", params = { sessionId = "${session}", path = "${cwd}/gate" } } },
  }
  if how == "command" then
    steps[#steps + 1] = {
      update = {
        sessionUpdate = "tool_call",
        toolCallId = "run",
        title = "`make`",
        kind = "execute",
        status = "completed",
        rawInput = { command = "make" },
      },
    }
  else
    for _, name in ipairs(names) do
      steps[#steps + 1] = edit(name, how)
    end
  end
  return steps
end

---Names of the files under review, and whether they can be undone.
local FOUND = [[
  return vim.tbl_map(function(file)
    return file.path:sub(#vim.uv.cwd() + 2) .. (file.stuck and " stuck" or "")
  end, require("cursor_agent.bridge").review_files())
]]

---@type table<string, fun(nvim: harness.Child)>
local BACK = {
  ["by keys"] = function(nvim)
    nvim:keys("<Esc>:CursorAgent review<CR>")
    nvim:wait("vim.bo.filetype == 'cursoragent-review'", "the list")
    for left = #names - 1, 0, -1 do
      nvim:keys("ggu")
      nvim:wait(("#require('cursor_agent.bridge').review_files() == %d"):format(left), left .. " left")
    end
  end,
  ["hunk by hunk"] = function(nvim)
    nvim:lua([[
      local agent = require("cursor_agent")
      local all = agent.hunks()
      while #all > 0 do
        local hunk = all[math.ceil(#all / 2)]
        local count, why = agent.undo({ hunk = hunk.id })
        assert(count == 1, vim.inspect({ hunk, why }))
        all = agent.hunks()
      end
    ]])
  end,
  ["by its checkpoint"] = function(nvim)
    local done = nvim:lua("local agent = require('cursor_agent') return agent.restore(agent.checkpoints()[1].id)")
    T.eq({ #done.restored, #done.kept }, { #names, 0 })
  end,
}

---@type { git: "without git"|"with git"|"before the first commit", how: "command"|"locations"|"diffs", open: boolean, back: string }[]
local CASES = {
  { git = "without git", how = "command", open = false, back = "by keys" },
  { git = "without git", how = "command", open = true, back = "by keys" },
  { git = "without git", how = "diffs", open = true, back = "by its checkpoint" },
  { git = "with git", how = "command", open = false, back = "by its checkpoint" },
  { git = "with git", how = "diffs", open = false, back = "hunk by hunk" },
  { git = "with git", how = "locations", open = false, back = "by keys" },
  { git = "with git", how = "command", open = true, back = "by its checkpoint" },
  { git = "before the first commit", how = "command", open = false, back = "hunk by hunk" },
}

for _, case in ipairs(CASES) do
  T.case(
    ("%s, told by %s, %s: comes back byte for byte %s, whatever kind of file it is"):format(
      case.git,
      case.how,
      case.open and "open" or "not open",
      case.back
    ),
    { width = 120, height = 40, files = { gate = "", ["target.txt"] = "target\n" }, deadline_ms = 60000 },
    function(nvim)
      nvim:use(T.agent({ turns = { turn(case.how) } }))
      nvim:lua(
        WORLD,
        vim.tbl_map(function(kind)
          return { bytes = { kind[1] or vim.NIL, kind[2] or vim.NIL }, mode = kind.mode, link = kind.link }
        end, KINDS)
      )
      nvim:lua("vim.fn.mkdir('sub/deep', 'p') _G.put(1)")
      if case.git ~= "without git" then
        nvim:lua("assert(vim.system({ 'git', 'init', '-q' }):wait().code == 0)")
      end
      if case.git == "with git" then
        nvim:lua([[
          for _, args in ipairs({ { "add", "-A" }, { "commit", "-qm", "one" } }) do
            local git = { "git", "-c", "user.name=a", "-c", "user.email=a@b" }
            assert(vim.system(vim.list_extend(git, args)):wait().code == 0)
          end
        ]])
      end
      if case.open then
        for _, name in ipairs(names) do
          if KINDS[name][1] or KINDS[name].link then
            nvim:lua("vim.cmd.edit(vim.fn.fnameescape(...))", name)
          end
        end
      end
      nvim:cmd("CursorAgent")
      nvim:wait_state("idle")
      nvim:prompt("edit it")
      nvim:wait("_G.gate ~= nil", "the turn")
      nvim:lua([[
        _G.put(2)
        require("cursor_agent.bridge").reply(_G.gate, { ok = true, content = "" })
      ]])
      nvim:wait_turns(1)
      nvim:lua(
        ("vim.wait(8000, function() return #require('cursor_agent.bridge').review_files() == %d end)"):format(#names)
      )
      T.eq(nvim:lua(FOUND), names)
      BACK[case.back](nvim)
      T.eq(nvim:lua("return _G.differs(1)"), "")
      T.eq(nvim:lua("return vim.fn.readfile('target.txt')"), { "target" }, "where the link led is not what it was")
      T.eq(nvim:lua("return require('cursor_agent').hunks()"), {})
      T.eq(
        nvim:lua([[
        return vim.tbl_map(vim.api.nvim_buf_get_name, vim.tbl_filter(function(buf)
          return vim.bo[buf].modified and vim.bo[buf].buftype == ""
        end, vim.api.nvim_list_bufs()))
      ]]),
        {}
      )
    end
  )
end
