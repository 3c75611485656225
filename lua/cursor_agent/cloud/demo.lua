-- The demo's repositories: what its agents would have pushed, as real clones in a directory that goes with Neovim.

local M = {}

local FILE = "src/parser.rs"
local BEFORE = { "fn list(&mut self) -> Result<Vec<Expr>> {", "    let item = self.expr()?;", "}" }
local AFTER = { BEFORE[1], BEFORE[2], "    self.eat(Token::Comma);", BEFORE[3] }

-- Nothing of the user's own settings is asked for: no key, no hook, no template.
local OWN = {
  "-c",
  "user.name=Demo",
  "-c",
  "user.email=demo@example.org",
  "-c",
  "commit.gpgSign=false",
  "-c",
  "core.hooksPath=/dev/null",
}

---@type table<string, string> the clone of each repository
local clones = {}
---@type table<string, boolean> repository and branch, once pushed
local pushed = {}

---@alias cursor_agent.cloud.Git fun(cwd: string, args: string[], callback: fun(out: string?, why: string))

---Does one step after another. A step is the arguments of git, or a function.
---@param git cursor_agent.cloud.Git
---@param cwd string
---@param steps (string[]|fun())[]
---@param done fun(why: string?)
local function run(git, cwd, steps, done)
  local function next_step(i)
    local step = steps[i]
    if not step then
      done()
    elseif type(step) == "function" then
      step()
      next_step(i + 1)
    else
      git(cwd, vim.list_extend(vim.list_slice(OWN), step), function(out, why)
        if out then
          next_step(i + 1)
        else
          done(why)
        end
      end)
    end
  end
  next_step(1)
end

---The clone of an agent's repository, with the agent's branch on its remote.
---@param git cursor_agent.cloud.Git
---@param row cursor_agent.cloud.Row
---@param callback fun(place: cursor_agent.cloud.Place?, why: string?)
function M.clone(git, row, callback)
  local url = row.repo_url or ""
  local root = clones[url]
  local steps = {} ---@type (string[]|fun())[]
  local function write(dir, lines)
    return function()
      vim.fn.writefile(lines, vim.fs.joinpath(dir, FILE))
    end
  end
  if not root then
    local dir = vim.fn.tempname()
    root = vim.fs.joinpath(dir, "clone")
    vim.fn.mkdir(vim.fs.joinpath(root, vim.fs.dirname(FILE)), "p")
    root = vim.uv.fs_realpath(root) or root
    local remote = vim.fs.joinpath(vim.fs.dirname(root), "remote.git")
    vim.list_extend(steps, {
      { "init", "--quiet", "--template=", "--bare", remote },
      { "init", "--quiet", "--template=" },
      -- Not `init -b`, which older ones of git do not know.
      { "symbolic-ref", "HEAD", "refs/heads/main" },
      { "remote", "add", "origin", remote },
      write(root, BEFORE),
      { "add", "." },
      { "commit", "--quiet", "-m", "Parse lists" },
      { "push", "--quiet", "origin", "main" },
    })
  end
  local name = url .. " " .. row.branch
  if not pushed[name] then
    -- In a tree of its own: the branch of another agent may be checked out in the clone.
    local agent = vim.fs.joinpath(vim.fs.dirname(root), "agent")
    vim.list_extend(steps, {
      { "worktree", "add", "--quiet", "--detach", agent, "main" },
      write(agent, AFTER),
      { "-C", agent, "commit", "--quiet", "-am", row.name },
      { "-C", agent, "push", "--quiet", "origin", "HEAD:refs/heads/" .. row.branch },
      { "worktree", "remove", "--force", agent },
    })
  end
  run(git, root, steps, function(why)
    if why then
      callback(nil, why)
      return
    end
    clones[url], pushed[name] = root, true
    callback({
      root = root,
      remote = "origin",
      url = url,
      remotes = { origin = { url } },
      branch = "main",
      pushed = true,
      ahead = 0,
      dirty = false,
    })
  end)
end

return M
