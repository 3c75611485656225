-- git, in the background: what is checked out here, and what a cloud agent has pushed. A dirty tree is never touched.

local M = {}

---@class (exact) cursor_agent.cloud.Place
---@field root string
---@field remote string its name
---@field url string without credentials, as a cloud agent is told it
---@field branch string?
---@field pushed boolean
---@field ahead integer commits that were not pushed
---@field dirty boolean

---@param cwd string
---@param args string[]
---@param callback fun(out: string?, why: string)
local function git(cwd, args, callback)
  local command = vim.list_extend({ "git", "-C", cwd }, args)
  local env = { GIT_TERMINAL_PROMPT = "0", GIT_OPTIONAL_LOCKS = "0" }
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
    git(root, { "remote" }, function(remotes)
      local names = vim.split(vim.trim(remotes or ""), "\n", { trimempty = true })
      local remote = vim.list_contains(names, "origin") and "origin" or names[1]
      if not remote then
        callback(nil, "this repository has no remote: a cloud agent works on what was pushed")
        return
      end
      git(root, { "remote", "get-url", remote }, function(url)
        git(root, { "symbolic-ref", "--short", "-q", "HEAD" }, function(branch)
          local name = branch and vim.trim(branch) or nil
          local tracking = ("refs/remotes/%s/%s"):format(remote, name or "HEAD")
          git(root, { "rev-list", "--count", tracking .. "..HEAD" }, function(ahead)
            git(root, { "status", "--porcelain" }, function(status)
              callback({
                root = root,
                remote = remote,
                url = M.web_url(url or ""),
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

---What is not committed, as a diff.
---@param root string
---@param callback fun(diff: string)
function M.uncommitted(root, callback)
  git(root, { "diff", "HEAD", "--no-color", "--no-ext-diff" }, function(diff)
    callback(diff or "")
  end)
end

---The clone of an agent's repository that Neovim is in.
---@param row cursor_agent.cloud.Row
---@param callback fun(place: cursor_agent.cloud.Place?, why: string?)
local function clone_of(row, callback)
  if not row.branch then
    callback(nil, ("“%s” has pushed no branch yet"):format(row.name))
    return
  end
  M.place(vim.fn.getcwd(), function(place, why)
    if not place then
      callback(nil, why)
    elseif M.web_url(row.repo_url or ""):lower() ~= place.url:lower() then
      callback(
        nil,
        ("“%s” works on %s, and this is %s: open Neovim in a clone of it"):format(row.name, row.repo, place.url)
      )
    else
      callback(place)
    end
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

---The changes of an agent against what it started from.
---@param row cursor_agent.cloud.Row
---@param callback fun(diff: string?, why: string?)
function M.diff(row, callback)
  clone_of(row, function(place, why)
    if not place then
      callback(nil, why)
      return
    end
    fetch(place, row.branch --[[@as string]], function(ok, problem)
      if not ok then
        callback(nil, ("the branch %s cannot be fetched: %s"):format(row.branch, problem))
        return
      end
      local head = ("refs/remotes/%s/%s"):format(place.remote, row.branch)
      local function compare(base)
        git(place.root, { "diff", "--no-color", "--no-ext-diff", base .. "..." .. head }, function(diff, trouble)
          callback(diff, trouble)
        end)
      end
      if not row.ref then
        compare(("refs/remotes/%s/HEAD"):format(place.remote))
        return
      end
      fetch(place, row.ref, function(has_base)
        -- A tag or a commit is not fetched like a branch.
        compare(has_base and ("refs/remotes/%s/%s"):format(place.remote, row.ref) or row.ref)
      end)
    end)
  end)
end

---@param root string
---@return string? name of a buffer of this tree that is not saved
local function unsaved(root)
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    local name = vim.api.nvim_buf_get_name(buf)
    if vim.bo[buf].modified and vim.bo[buf].buftype == "" and vim.startswith(name, root .. "/") then
      return vim.fn.fnamemodify(name, ":.")
    end
  end
end

---Checks the branch of an agent out, unless something here is not committed or not saved.
---@param row cursor_agent.cloud.Row
---@param callback fun(branch: string?, why: string?)
function M.checkout(row, callback)
  clone_of(row, function(place, why)
    if not place then
      callback(nil, why)
      return
    end
    fetch(place, row.branch --[[@as string]], function(ok, problem)
      if not ok then
        callback(nil, ("the branch %s cannot be fetched: %s"):format(row.branch, problem))
        return
      end
      -- Looked at last: a fetch may take a while.
      git(place.root, { "status", "--porcelain" }, function(status)
        local open = unsaved(place.root)
        if open then
          callback(nil, ("%s is not saved: nothing was checked out"):format(open))
          return
        elseif vim.trim(status or "x") ~= "" then
          callback(nil, "there are changes that are not committed: nothing was checked out. Commit or stash them first")
          return
        end
        local head = ("refs/remotes/%s/%s"):format(place.remote, row.branch)
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
              git(place.root, { "merge", "--ff-only", head }, done)
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
  end)
end

return M
