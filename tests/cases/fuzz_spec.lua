-- Terminal output of any shape, for half a second; `make fuzz` takes longer. The parsers have `parsers`.

local T = require("harness")

T.case("terminal output of any shape becomes plain lines with spans inside them", {}, function()
  local done = vim
    .system({ vim.v.progpath, "--clean", "--headless", "-l", T.root .. "/tests/fuzz/ansi.lua" }, {
      env = { FUZZ_ROOT = T.root },
      text = true,
    })
    :wait()
  T.eq(done.code, 0, done.stderr)
end)
