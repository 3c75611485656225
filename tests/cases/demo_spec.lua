-- `make demo` without a terminal.

local T = require("harness")

T.case("one turn is played and printed", function(child)
  local ended ---@type vim.SystemCompleted?
  vim.system(
    { T.root .. "/scripts/demo" },
    { env = { NVIM = vim.v.progpath, TMPDIR = child.dir }, stdin = "", text = true },
    function(result)
      ended = result
    end
  )
  ---@type vim.SystemCompleted
  local demo = child:wait(function()
    return ended
  end, "the demo to end", 40000)
  T.eq(demo.code, 0, demo.stderr)
  T.eq(demo.stderr, "")
  T.contains(demo.stdout, "── user\n")
  T.contains(demo.stdout, "I'm the **demo agent**")
  T.contains(demo.stdout, "── tool\nRead src/greet.lua")
  T.eq(vim.fn.glob(child.dir .. "/cursor-agent-demo.*"), "", "its scratch directory is gone")
end)
