-- `:CursorAgent review`: every place the agent changed, in the quickfix list.

local T = require("harness")

T.case("lists each changed place and goes to the first", { width = 120, files = { ["a.txt"] = "" } }, function(nvim)
  local old, new = {}, {}
  for i = 1, 30 do
    old[i], new[i] = "line " .. i, "line " .. i
  end
  new[5], new[25] = "five", "twenty-five"
  local text = table.concat(new, "\n") .. "\n"
  nvim:use(T.agent({
    turns = {
      {
        { write_file = { path = "a.txt", text = text } },
        {
          update = {
            sessionUpdate = "tool_call",
            toolCallId = "t1",
            title = "Edit a.txt",
            kind = "edit",
            status = "completed",
            content = { { type = "diff", path = "a.txt", oldText = table.concat(old, "\n") .. "\n", newText = text } },
          },
        },
      },
    },
  }))
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  nvim:keys("<Esc>:CursorAgent review<CR>")
  nvim:wait_screen("has changed no file")
  nvim:prompt("edit it")
  nvim:wait_turns(1)
  nvim:cmd("CursorAgent review")
  local items = nvim:lua([[
    return vim.tbl_map(function(item)
      return { vim.fn.fnamemodify(vim.fn.bufname(item.bufnr), ":t"), item.lnum, item.text }
    end, vim.fn.getqflist())
  ]])
  T.eq(items, { { "a.txt", 5, "+1 −1  five" }, { "a.txt", 25, "+1 −1  twenty-five" } })
  T.eq(nvim:lua("return { vim.fn.expand('%:t'), vim.fn.line('.') }"), { "a.txt", 5 })
  nvim:cmd("cnext")
  T.eq(nvim:lua("return vim.fn.line('.')"), 25)
  nvim:cmd("copen")
  nvim:keys("g?")
  nvim:wait_screen("In the list of changes")
  nvim:wait_screen(":cnext :cprev Next and previous change")
  nvim:keys("q")
  nvim:wait("vim.bo.buftype == 'quickfix'", "the list")
  nvim:lua("vim.fn.setqflist({}, ' ', { title = 'mine', items = { { filename = 'a.txt', lnum = 1 } } })")
  nvim:keys("g?<Esc>")
  T.ok(not nvim:sees("In the list of changes"), "another list is none of ours")
end)
