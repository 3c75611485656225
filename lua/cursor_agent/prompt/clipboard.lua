-- An image on the clipboard: read asynchronously by the system's program for that.

local format = require("cursor_agent.render.format")

local M = {}

---Larger images are not attached: no model takes them, and encoding them would be noticeable.
M.MOST_BYTES = 20 * 1024 * 1024

---Give up on a program after this long: another application has to hand over the image.
local WAIT_MS = 5000

---@type { mime: string, magic: string, at: integer }[] how images begin
local FORMATS = {
  { mime = "image/png", magic = "\137PNG\r\n\26\n", at = 1 },
  { mime = "image/jpeg", magic = "\255\216\255", at = 1 },
  { mime = "image/gif", magic = "GIF8", at = 1 },
  { mime = "image/webp", magic = "WEBP", at = 9 },
}

---The type of an image by its bytes; nil if it is not one.
---@param bytes string
---@return string?
function M.mime(bytes)
  for _, one in ipairs(FORMATS) do
    if bytes:sub(one.at, one.at + #one.magic - 1) == one.magic then
      return one.mime
    end
  end
end

---@param name string
---@return string
local function too_large(name)
  return ("%s is larger than %s: it was not attached"):format(name, format.bytes(M.MOST_BYTES))
end

M.too_large = too_large

---@class (exact) cursor_agent.clipboard.Image
---@field bytes string
---@field mime string

---@alias cursor_agent.clipboard.Done fun(image: cursor_agent.clipboard.Image?, why: string?, final: boolean?)

---Runs a program and calls back with its output.
---@param command string[]
---@param done fun(bytes: string?, why: string?, final: boolean?, late: boolean?)
local function run(command, done)
  local chunks, size, process = {}, 0, nil ---@type string[], integer, vim.SystemObj?
  local ok, problem = pcall(function()
    process = vim.system(
      command,
      {
        timeout = WAIT_MS,
        stdout = function(_, data)
          size = size + #(data or "")
          if size > M.MOST_BYTES then
            chunks = {}
            if process then
              process:kill("sigkill")
            end
          elseif data then
            chunks[#chunks + 1] = data
          end
        end,
      },
      vim.schedule_wrap(function(result)
        if size > M.MOST_BYTES then
          done(nil, too_large("the image on the clipboard"), true)
        elseif result.code == 0 and result.signal == 0 then
          done(table.concat(chunks))
        else
          local said = format.first_line(vim.trim(result.stderr or ""), 120)
          local late = result.code == 124
          if late then
            said = ("it took more than %d s"):format(WAIT_MS / 1000)
          end
          done(nil, said ~= "" and said or ("exit %d"):format(result.code), false, late)
        end
      end)
    )
  end)
  if not ok then
    done(nil, format.first_line(tostring(problem), 120))
  end
end

---Reads an image from a program that takes a type: PNG, or else the first supported type it lists.
---@param ask fun(mime: string): string[]
---@param list string[]
---@return fun(done: cursor_agent.clipboard.Done)
local function by_type(ask, list)
  return function(done)
    run(ask("image/png"), function(bytes, why, final, late)
      if final or late or bytes and M.mime(bytes) then
        done(bytes and { bytes = bytes, mime = M.mime(bytes) }, why, final)
        return
      end
      run(list, function(types)
        local other ---@type string?
        for name in (types or ""):gmatch("[^\r\n]+") do
          for _, one in ipairs(FORMATS) do
            other = other or name == one.mime and one.mime ~= "image/png" and name or nil
          end
        end
        if not other then
          done(nil, why)
          return
        end
        run(ask(other), function(data, problem, last)
          local mime = data and M.mime(data)
          done(mime and { bytes = data, mime = mime } or nil, problem, last)
        end)
      end)
    end)
  end
end

---Reads a PNG from a program that prints one.
---@param command string[]
---@param decode? fun(text: string): string
---@return fun(done: cursor_agent.clipboard.Done)
local function as_png(command, decode)
  return function(done)
    run(command, function(bytes, why, final)
      local data = bytes and decode and decode(bytes) or bytes
      local mime = data and M.mime(data)
      done(mime and { bytes = data, mime = mime } or nil, why, final)
    end)
  end
end

---AppleScript prints data as `«data PNGf89504E47…»`.
---@param text string
---@return string
local function from_hex(text)
  local hex = text:match("PNGf(%x+)") or ""
  return (
    hex:gsub("%x%x", function(byte)
      return string.char(tonumber(byte, 16) --[[@as integer]])
    end)
  )
end

---@class (exact) cursor_agent.clipboard.Reader
---@field name string the program
---@field here fun(): boolean whether it is meant for this system
---@field read fun(done: cursor_agent.clipboard.Done)

---@type cursor_agent.clipboard.Reader[]
local READERS = {
  {
    name = "wl-paste",
    here = function()
      return vim.env.WAYLAND_DISPLAY ~= nil
    end,
    read = by_type(function(mime)
      return { "wl-paste", "--no-newline", "--type", mime }
    end, { "wl-paste", "--list-types" }),
  },
  {
    name = "xclip",
    here = function()
      return vim.env.DISPLAY ~= nil
    end,
    read = by_type(function(mime)
      return { "xclip", "-selection", "clipboard", "-t", mime, "-o" }
    end, { "xclip", "-selection", "clipboard", "-t", "TARGETS", "-o" }),
  },
  {
    name = "pngpaste",
    here = function()
      return vim.fn.has("mac") == 1
    end,
    read = as_png({ "pngpaste", "-" }),
  },
  {
    name = "osascript",
    here = function()
      return vim.fn.has("mac") == 1
    end,
    read = as_png({ "osascript", "-e", "the clipboard as «class PNGf»" }, from_hex),
  },
}

---The available programs, those made for this system first.
---@return cursor_agent.clipboard.Reader[]
local function readers()
  local fit, rest = {}, {} ---@type cursor_agent.clipboard.Reader[], cursor_agent.clipboard.Reader[]
  for _, reader in ipairs(READERS) do
    if vim.fn.executable(reader.name) == 1 then
      table.insert(reader.here() and fit or rest, reader)
    end
  end
  return vim.list_extend(fit, rest)
end

---Reads the image on the clipboard, and calls back with it or with why there is none.
---@param done fun(image: cursor_agent.clipboard.Image?, why: string?)
function M.read(done)
  local list = readers()
  if #list == 0 then
    return done(nil, "install wl-paste, xclip, pngpaste or osascript to attach an image from the clipboard")
  end
  local said = {} ---@type string[]
  local function try(i)
    local reader = list[i]
    if not reader then
      local reasons = #said > 0 and (" (%s)"):format(table.concat(said, "; ")) or ""
      return done(nil, "no image on the clipboard" .. reasons)
    end
    reader.read(function(image, why, final)
      if image or final then
        return done(image, why)
      end
      if why then
        said[#said + 1] = ("%s: %s"):format(reader.name, why)
      end
      try(i + 1)
    end)
  end
  try(1)
end

---@param label string
---@param image cursor_agent.clipboard.Image
---@return cursor_agent.Block[]
local function blocks(label, image)
  return { { type = "image", label = label, data = vim.base64.encode(image.bytes), mime = image.mime } }
end

---The image that will be on the clipboard when the prompt is sent.
---@return cursor_agent.context.Item
function M.mention()
  local image ---@type cursor_agent.clipboard.Image?
  return {
    label = "@clipboard",
    waits_for = "the clipboard",
    prepare = function(done)
      M.read(function(read, why)
        image = read
        done(why)
      end)
    end,
    blocks = function()
      if not image then
        return nil, "no image on the clipboard"
      end
      return blocks(("img clipboard (%s)"):format(format.bytes(#image.bytes)), image)
    end,
  }
end

---How many images each prompt has been given.
---@type table<cursor_agent.Prompt, integer>
local numbers = setmetatable({}, { __mode = "k" })

---Attaches the image that is on the clipboard now.
---@param chat cursor_agent.Chat
---@return boolean
function M.attach(chat)
  local notify = require("cursor_agent.notify")
  M.read(function(image, why)
    if not image then
      return notify.notify(why or "no image on the clipboard", "error")
    elseif not vim.api.nvim_buf_is_loaded(chat.prompt.buf) then
      return
    end
    numbers[chat.prompt] = (numbers[chat.prompt] or 0) + 1
    local label = ("img clipboard %d (%s)"):format(numbers[chat.prompt], format.bytes(#image.bytes))
    chat.prompt:attach({
      label = label,
      blocks = function()
        return blocks(label, image)
      end,
    })
    notify.notify(label .. " is attached to the next prompt")
  end)
  return true
end

return M
