-- git, in the background: what is checked out here, and what a cloud agent has pushed. A dirty tree is never touched.

local M = {}

---@class (exact) cursor_agent.cloud.Place
---@field root string
---@field remote string its name
---@field url string without credentials, as it is sent to a cloud agent
---@field remotes table<string, string[]> by name: their addresses, as written and as git rewrites them
---@field branch string?
---@field pushed boolean
---@field ahead integer commits that were not pushed
---@field dirty boolean

---@param cwd string
---@param args string[]
---@param callback fun(out: string?, why: string)
---@param index? string another index than the repository's
local function git(cwd, args, callback, index)
  local command = vim.list_extend({ "git", "-C", cwd }, args)
  local env = { GIT_TERMINAL_PROMPT = "0", GIT_OPTIONAL_LOCKS = "0" } ---@type table<string, string>
  if index then
    env.GIT_INDEX_FILE = index
  end
  local ok, problem = pcall(vim.system, command, { text = true, env = env, timeout = 120000 }, function(result)
    vim.schedule(function()
      local why = vim.trim(result.stderr or "")
      callback(result.code == 0 and result.stdout or nil, why)
    end)
  end)
  if not ok then
    callback(nil, "git is not on your PATH (" .. tostring(problem) .. ")")
  end
end

---The address of a repository, whatever form a remote has. Credentials are left out.
---@param remote string
---@return string
function M.web_url(remote)
  local bare = vim.trim(remote):gsub("/+$", ""):gsub("%.git$", "")
  local scheme, rest = bare:match("^(%a+)://(.*)$")
  if rest and (scheme == "https" or scheme == "http" or scheme == "ssh" or scheme == "git") then
    -- Without who and without the port.
    return "https://" .. rest:gsub("^[^/]*@", ""):gsub("^([^/:]*):%d+", "%1")
  elseif scheme then
    return (bare:gsub("^file://", ""))
  end
  local host, path = bare:match("^([^/:]+):(.*)$")
  if host and path then
    return "https://" .. host:gsub("^.*@", "") .. "/" .. path:gsub("^/+", "")
  end
  return bare
end

---The remotes of a repository. An address may be written one way and rewritten by `url.….insteadOf` to another: both are its.
---@param root string
---@param callback fun(remotes: table<string, string[]>, names: string[])
local function remotes_of(root, callback)
  git(root, { "config", "--get-regexp", "^remote\\..*\\.url$" }, function(written)
    git(root, { "remote", "-v" }, function(used)
      local remotes, names = {}, {} ---@type table<string, string[]>, string[]
      local function add(name, address)
        if not remotes[name] then
          remotes[name] = {}
          names[#names + 1] = name
        end
        local url = M.web_url(address)
        if not vim.list_contains(remotes[name], url) then
          table.insert(remotes[name], url)
        end
      end
      for name, address in (used or ""):gmatch("([^\t\n]+)\t([^\n]-) %(fetch%)") do
        add(name, address)
      end
      for name, address in (written or ""):gmatch("remote%.([^\n]-)%.url ([^\n]+)") do
        add(name, address)
      end
      callback(remotes, names)
    end)
  end)
end

---@param urls string[]
---@return string that on the web, where there is one
local function on_the_web(urls)
  for _, url in ipairs(urls) do
    if vim.startswith(url, "https://") then
      return url
    end
  end
  return urls[1] or ""
end

---@param cwd string
---@param callback fun(place: cursor_agent.cloud.Place?, why: string?)
function M.place(cwd, callback)
  git(cwd, { "rev-parse", "--show-toplevel" }, function(root, why)
    if not root then
      callback(
        nil,
        why:find("not a git repository") and ("%s is not in a git repository"):format(vim.fn.fnamemodify(cwd, ":~"))
          or why
      )
      return
    end
    root = vim.trim(root)
    remotes_of(root, function(remotes, names)
      git(root, { "symbolic-ref", "--short", "-q", "HEAD" }, function(branch)
        local name = branch and vim.trim(branch) or nil
        git(root, { "config", "--get", ("branch.%s.remote"):format(name or "") }, function(tracked)
          local followed = vim.trim(tracked or "")
          local remote = remotes[followed] and followed or remotes.origin and "origin" or names[1]
          if not remote then
            callback(nil, "this repository has no remote: cloud agents work on what was pushed")
            return
          end
          local tracking = ("refs/remotes/%s/%s"):format(remote, name or "HEAD")
          git(root, { "rev-list", "--count", tracking .. "..HEAD" }, function(ahead)
            git(root, { "status", "--porcelain" }, function(status)
              callback({
                root = root,
                remote = remote,
                url = on_the_web(remotes[remote]),
                remotes = remotes,
                branch = name,
                pushed = ahead ~= nil,
                ahead = tonumber(vim.trim(ahead or "")) or 0,
                dirty = vim.trim(status or "") ~= "",
              })
            end)
          end)
        end)
      end)
    end)
  end)
end

---What is not committed, as a diff: new files too, unless git ignores them.
---@param root string
---@param callback fun(diff: string)
function M.uncommitted(root, callback)
  ---@param index string?
  local function compare(index)
    -- A log or a dump is only named, not shown.
    local command = { "-c", "core.bigFileThreshold=1m", "diff", "HEAD", "--no-color", "--no-ext-diff" }
    git(root, command, function(diff)
      if index then
        vim.uv.fs_unlink(index)
      end
      callback(diff or "")
    end, index)
  end
  -- New files are noted in a copy of the index: the user's own stays as it is.
  git(root, { "rev-parse", "--path-format=absolute", "--git-path", "index" }, function(own)
    local index = vim.fn.tempname()
    local function copied(problem)
      if problem then
        compare()
        return
      end
      git(root, { "add", "--intent-to-add", "--all", "." }, function()
        compare(index)
      end, index)
    end
    vim.uv.fs_copyfile(vim.trim(own or ""), index, {}, vim.schedule_wrap(copied))
  end)
end

---Whether git can take a name that came from elsewhere: never as an option, never as more than one name.
---@param name string
---@return boolean
local function is_ref(name)
  return name:find("^[^-%s%c~^:?*%[\\][^%s%c~^:?*%[\\]*$") ~= nil and not name:find("..", 1, true)
end

---The clone of an agent's repository that Neovim is in.
---@param row cursor_agent.cloud.Row
---@param callback fun(place: cursor_agent.cloud.Place?, why: string?)
local function clone_of(row, callback)
  if not row.branch then
    callback(nil, ("“%s” has not pushed a branch yet"):format(row.name))
    return
  end
  for _, name in ipairs({ row.branch, row.ref }) do
    if not is_ref(name) then
      callback(nil, ("`%s` is not a valid git ref; nothing was fetched"):format(name))
      return
    end
  end
  if require("cursor_agent.cloud.client").is_demo() then
    require("cursor_agent.cloud.demo").clone(git, row, callback)
    return
  end
  M.place(require("cursor_agent.chat.workspace").root(), function(place, why)
    if not place then
      callback(nil, why)
      return
    end
    local wanted = M.web_url(row.repo_url or ""):lower()
    for name, urls in vim.spairs(place.remotes) do
      for _, url in ipairs(urls) do
        if url:lower() == wanted then
          place.remote = name
          callback(place)
          return
        end
      end
    end
    callback(
      nil,
      ("“%s” works on %s, but this is %s; open Neovim in a clone of that repository"):format(
        row.name,
        row.repo or "no repository",
        place.url
      )
    )
  end)
end

---@param place cursor_agent.cloud.Place
---@param branch string
---@param callback fun(ok: boolean, why: string)
local function fetch(place, branch, callback)
  local spec = ("+refs/heads/%s:refs/remotes/%s/%s"):format(branch, place.remote, branch)
  git(place.root, { "fetch", "--no-tags", place.remote, spec }, function(out, why)
    callback(out ~= nil, why)
  end)
end

---Fetches the branch of an agent into a clone of its repository.
---@param row cursor_agent.cloud.Row
---@param callback fun(nothing: nil, why: string?) where that cannot be done
---@param use fun(place: cursor_agent.cloud.Place, head: string) the branch as it was fetched
local function with_branch(row, callback, use)
  clone_of(row, function(place, why)
    if not place then
      callback(nil, why)
      return
    end
    fetch(place, row.branch --[[@as string]], function(ok, problem)
      if not ok then
        callback(nil, ("could not fetch the branch %s: %s"):format(row.branch, problem))
        return
      end
      use(place, ("refs/remotes/%s/%s"):format(place.remote, row.branch))
    end)
  end)
end

---The changes of an agent against what it started from.
---@param row cursor_agent.cloud.Row
---@param callback fun(diff: string?, why: string?)
function M.diff(row, callback)
  with_branch(row, callback, function(place, head)
    local function compare(base)
      git(place.root, { "diff", "--no-color", "--no-ext-diff", base .. "..." .. head }, function(diff, trouble)
        callback(diff, trouble)
      end)
    end
    -- Without a ref it began at the default branch. A tag or a commit is not fetched like a branch.
    local function by_name(name)
      git(place.root, { "fetch", "--no-tags", place.remote, name }, function(out)
        git(place.root, { "rev-parse", "--verify", "--quiet", "FETCH_HEAD" }, function(commit)
          compare(out and commit and vim.trim(commit) or name)
        end)
      end)
    end
    if not row.ref then
      by_name("HEAD")
      return
    end
    fetch(place, row.ref, function(is_branch)
      if is_branch then
        compare(("refs/remotes/%s/%s"):format(place.remote, row.ref))
      else
        by_name(row.ref)
      end
    end)
  end)
end

---@param root string
---@return string? name of a buffer of this tree that is not saved
function M.unsaved(root)
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    local name = vim.api.nvim_buf_get_name(buf)
    if vim.bo[buf].modified and vim.bo[buf].buftype == "" and name ~= "" then
      -- git says where the tree really is; a buffer may have another way there. A new file has only a directory.
      local dir = vim.uv.fs_realpath(vim.fs.dirname(name)) or vim.fs.dirname(name)
      local real = vim.uv.fs_realpath(name) or vim.fs.joinpath(dir, vim.fs.basename(name))
      if vim.startswith(name, root .. "/") or vim.startswith(real, root .. "/") then
        return vim.fn.fnamemodify(name, ":.")
      end
    end
  end
end

---Checks the branch of an agent out, unless something here is not committed or not saved.
---@param row cursor_agent.cloud.Row
---@param callback fun(branch: string?, why: string?)
function M.checkout(row, callback)
  with_branch(row, callback, function(place, head)
    -- Looked at last: a fetch may take a while.
    git(place.root, { "status", "--porcelain" }, function(status)
      local open = M.unsaved(place.root)
      if open then
        callback(nil, ("%s has unsaved changes; nothing was checked out"):format(open))
        return
      elseif vim.trim(status or "x") ~= "" then
        callback(nil, "there are uncommitted changes; nothing was checked out. Commit or stash them first")
        return
      end
      git(place.root, { "show-ref", "--verify", "--quiet", "refs/heads/" .. row.branch }, function(exists)
        local function done(out, trouble)
          if not out then
            callback(nil, trouble)
            return
          end
          vim.cmd.checktime()
          callback(row.branch)
        end
        if exists then
          git(place.root, {
            "switch",
            row.branch --[[@as string]],
          }, function(out, trouble)
            if not out then
              callback(nil, trouble)
              return
            end
            git(place.root, { "merge", "--ff-only", head }, function(merged)
              vim.cmd.checktime()
              local own = "checked out your local %s: it has commits of its own, so the agent's were not merged"
              callback(merged and row.branch or nil, own:format(row.branch))
            end)
          end)
        else
          git(place.root, {
            "switch",
            "-c",
            row.branch --[[@as string]],
            "--track",
            place.remote .. "/" .. row.branch,
          }, done)
        end
      end)
    end)
  end)
end

return M
