-- Images, and rows of the chat that wait: where keys on them lead.

local T = require("harness")

---@param path string
---@param id string
---@return table[] turn
local function drawing(path, id)
  local params = { toolCallId = id, description = "A quiet harbour", filePath = path }
  return { { request = { method = "cursor/generate_image", params = params } } }
end

T.case(
  "an image is shown as a file, and gx opens it outside",
  { width = 100, files = { ["out/harbour.png"] = "png" } },
  function(nvim)
    local path = nvim.work .. "/out/harbour.png"
    local agent = T.agent({ turns = { drawing(path, "i1") } })
    nvim:use(agent)
    nvim:lua("_G.opened = {} vim.ui.open = function(what) table.insert(_G.opened, what) end")
    nvim:cmd("CursorAgent")
    nvim:wait_state("idle")
    nvim:keys("go<C-s><Esc>")
    nvim:wait_turns(1)
    nvim:wait_screen("out/harbour.png")
    T.eq(agent:answers("cursor/generate_image")[1].result, { outcome = { outcome = "generated", filePath = path } })
    nvim:keys("<C-w>k/harbour.png<CR>gx")
    nvim:wait("#_G.opened == 1", "the image to be opened")
    T.eq(nvim:lua("return _G.opened"), { path })
    nvim:keys("gggx")
    nvim:wait_screen("no file or URL under the cursor")
  end
)

T.case(
  "a plugin that draws images is used where it is, and may fail",
  { width = 100, files = { ["a.png"] = "png" } },
  function(nvim)
    local path = nvim.work .. "/a.png"
    nvim:use(T.agent({ turns = { drawing(path, "i1"), drawing(path, "i2"), drawing(path, "i3") } }))
    -- Nothing installed: nothing happens.
    nvim:prompt("plain")
    nvim:wait_turns(1)
    nvim:lua([[
    _G.drawn = {}
    package.loaded["image"] = {
      from_file = function(path, opts)
        return { render = function() table.insert(_G.drawn, { by = "image", path = path, buffer = opts.buffer }) end }
      end,
    }
  ]])
    nvim:prompt("image.nvim")
    nvim:wait_turns(2)
    nvim:wait("#_G.drawn >= 1", "image.nvim to draw")
    T.eq(nvim:lua("return _G.drawn[1].path"), path)
    T.eq(nvim:lua("return vim.bo[_G.drawn[1].buffer].filetype"), "cursoragent")
    nvim:lua([[
    package.loaded["image"] = nil
    package.loaded["snacks"] = { image = { supports_terminal = function() return true end, placement = { new = function(_, path, opts)
      table.insert(_G.drawn, { by = "snacks", path = path, inline = opts.inline })
      error("no graphics here")
    end } } }
  ]])
    nvim:prompt("snacks.nvim")
    nvim:wait_turns(3)
    nvim:wait("_G.drawn[#_G.drawn].by == 'snacks'", "snacks.nvim to be asked")
    T.eq(nvim:lua("return _G.drawn[#_G.drawn].inline"), true)
    nvim:wait_state("idle")
    T.eq(#nvim:texts("user"), 3, "the chat goes on")
  end
)

T.case("Enter on a tool call that waits leads to its decision", { width = 100, height = 30 }, function(nvim)
  local call = { toolCallId = "t1", title = "`make`", kind = "execute" }
  local agent = T.agent({ turns = { { { permission = { toolCall = call } } } } })
  nvim:use(agent)
  nvim:cmd("CursorAgent")
  nvim:wait_state("idle")
  nvim:keys("go<C-s>")
  nvim:wait_screen("needs approval")
  nvim:keys("<Esc><C-w>k")
  nvim:wait("vim.bo.filetype == 'cursoragent'", "the chat")
  nvim:keys("/Run<CR><CR>")
  nvim:wait("vim.bo.filetype == 'cursoragent-decision'", "the card")
  nvim:wait_card()
  nvim:keys("a")
  nvim:wait_turns(1)
  T.eq(agent:answers("session/request_permission")[1].result.outcome.optionId, "allow-once")
end)

T.case(
  "an image among the contents of a tool call is opened outside of Neovim",
  { width = 100, height = 30 },
  function(nvim)
    local image = { type = "image", mimeType = "image/png", data = vim.base64.encode("not really a picture, no") }
    nvim:use(T.agent({
      turns = {
        {
          {
            update = {
              sessionUpdate = "tool_call",
              toolCallId = "i",
              title = "Screenshot",
              status = "completed",
              content = { { type = "content", content = image } },
            },
          },
        },
      },
    }))
    nvim:lua("_G.opened = {} vim.ui.open = function(what) table.insert(_G.opened, what) end")
    nvim:cmd("CursorAgent")
    nvim:wait_state("idle")
    nvim:keys("go<C-s>")
    nvim:wait_turns(1)
    nvim:keys("<Esc>")
    nvim:cmd("wincmd k")
    -- On the call, then on the line of the image.
    nvim:keys("gg]to<CR>")
    nvim:wait_screen("image  image/png · 24 B")
    nvim:keys("j<CR>gx")
    local opened = nvim:wait(function()
      local paths = nvim:lua("return _G.opened")
      return #paths == 3 and paths
    end, "the picture by three keys")
    for _, path in ipairs(opened) do
      T.ok(vim.endswith(path, ".png"), path)
      T.eq(vim.fn.readfile(path), { "not really a picture, no" })
    end
  end
)
