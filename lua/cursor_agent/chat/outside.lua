-- Opens things outside Neovim: web addresses, and files that are only viewed or played. Anything else an agent names is
-- shown instead: another program might execute it, or act on its address.

local M = {}

---Extensions of files that may be opened: their programs only show or play them.
local ENDINGS = {}
for ending in
  ("png jpg jpeg gif webp bmp tif tiff avif heic ico pdf mp3 wav ogg oga opus flac m4a aac mp4 m4v mov webm mkv avi"):gmatch(
    "%w+"
  )
do
  ENDINGS[ending] = true
end

---The extension for a MIME type; nil if such files are not opened.
---@param mime string?
---@return string?
function M.ending_of(mime)
  local kind = (mime or ""):lower():match("^%a+/([%w.+-]+)") or ""
  local ending = ({ mpeg = "mp3", ["x-wav"] = "wav", wave = "wav", quicktime = "mov", ["x-icon"] = "ico" })[kind]
    or kind
  return ENDINGS[ending] and ending or nil
end

---@param text string
---@return string
local function shown(text)
  return (require("cursor_agent.render.format").first_line(text, 200):gsub("%c", "?"))
end

---@param url string
---@return boolean
local function is_web(url)
  return url:find("^[Hh][Tt][Tt][Pp][Ss]?://[^%s%c/]") ~= nil and not url:find("[%s%c]") and #url <= 8192
end

---@param what string
---@return boolean?, string?
local function open(what)
  local _, problem = vim.ui.open(what)
  if problem then
    return nil, problem
  end
  return true
end

---Opens an address.
---@param url string
---@return boolean?, string?
function M.open_url(url)
  if url:find("^file://") then
    local ok, path = pcall(vim.uri_to_fname, url)
    return M.open_file(ok and path or url)
  elseif not is_web(url) then
    return nil, ("only http and https URLs are opened; this is %s"):format(shown(url))
  end
  return open(url)
end

---@param path string
---@return boolean
local function is_viewable(path)
  return ENDINGS[(path:match("%.(%w+)$") or ""):lower()] == true
end

---Opens a file.
---@param path string absolute
---@return boolean?, string?
function M.open_file(path)
  local stat = not path:find("%z") and vim.uv.fs_stat(path)
  if not stat then
    return nil, ("%s does not exist"):format(shown(path))
  end
  -- A link may have another extension than the file it leads to.
  local real = vim.uv.fs_realpath(path) or ""
  if not is_viewable(path) or not is_viewable(real) or stat.type ~= "file" or path:sub(1, 1) ~= "/" then
    return nil, ("only images, audio, video and PDFs are opened outside Neovim; this is %s"):format(shown(path))
  end
  return open(path)
end

return M
