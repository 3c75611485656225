-- Images dropped on the prompt or pasted as a path: the path becomes a mention, which attaches the image.

local context = require("cursor_agent.prompt.context")
local notify = require("cursor_agent.notify")

local M = {}

local NS = vim.api.nvim_create_namespace("cursor_agent_dropped")

---A longer text is not a list of dropped files.
local MOST_BYTES = 8 * 1024

---The shortest path of an image.
local LEAST_BYTES = 5

---Decodes how a terminal inserts a dropped file: quoted, with backslashes, or as a URL.
---@param word string
---@return string
local function plain(word)
  if word:find("^file://") then
    local ok, path = pcall(vim.uri_to_fname, word)
    return ok and path or word
  end
  return word
end

---The words of a text as a shell reads them.
---@param text string
---@return string[]
local function words(text)
  local list, word, at = {}, nil, 1 ---@type string[], string?, integer
  while at <= #text do
    local char = text:sub(at, at)
    local quoted = char:match("[\"']") and text:match("^([^" .. char .. "]*)" .. char, at + 1)
    if quoted then
      word = (word or "") .. quoted
      at = at + #quoted + 2
    elseif char == "\\" and at < #text then
      word = (word or "") .. text:sub(at + 1, at + 1)
      at = at + 2
    elseif char:match("%s") then
      list[#list + 1] = word
      word = nil
      at = at + 1
    else
      word = (word or "") .. char
      at = at + 1
    end
  end
  list[#list + 1] = word
  return list
end

---The possible paths in a text: all of it as one, or each of its words.
---@param text string
---@return string[][]
local function readings(text)
  local whole = vim.trim(text)
  local list = { { plain(whole) } }
  local split = vim.tbl_map(plain, words(whole)) ---@type string[]
  if #split > 0 and (#split > 1 or split[1] ~= list[1][1]) then
    list[#list + 1] = split
  end
  return vim.tbl_filter(function(paths)
    for _, path in ipairs(paths) do
      if not context.image_type(path) or path:find("[\n}]") or path:find("^@") then
        return false
      end
    end
    return true
  end, list)
end

---Checks asynchronously whether all of these are files.
---@param paths string[]
---@param cwd string
---@param done fun(are: boolean)
local function all_files(paths, cwd, done)
  local function look(i)
    if not paths[i] then
      return done(true)
    end
    local path = vim.fs.normalize(paths[i])
    local full = path:sub(1, 1) == "/" and path or vim.fs.joinpath(cwd, path)
    vim.uv.fs_stat(
      full,
      vim.schedule_wrap(function(_, stat)
        if not stat or stat.type ~= "file" then
          return done(false)
        end
        look(i + 1)
      end)
    )
  end
  look(1)
end

---Replaces a text that was inserted into the prompt with mentions of the images it names.
---@param prompt cursor_agent.Prompt
---@param mark integer an extmark over the text
---@param text string
local function look(prompt, mark, text)
  local list = readings(text)
  local function forget()
    pcall(vim.api.nvim_buf_del_extmark, prompt.buf, NS, mark)
  end
  local function try(i)
    local paths = list[i]
    if not paths then
      return forget()
    end
    all_files(paths, prompt.chat.cwd, function(are)
      if not vim.api.nvim_buf_is_loaded(prompt.buf) then
        return
      elseif not are then
        return try(i + 1)
      end
      local place = vim.api.nvim_buf_get_extmark_by_id(prompt.buf, NS, mark, { details = true })
      local row, col, details = place[1], place[2], place[3]
      forget()
      local end_row, end_col = (details or {}).end_row, (details or {}).end_col
      if not row or not end_row or not end_col then
        return
      end
      local now = vim.api.nvim_buf_get_text(prompt.buf, row, col, end_row, end_col, {})
      if table.concat(now, "\n") ~= text then
        return
      end
      local cwd = prompt.chat.cwd .. "/"
      local names = vim.tbl_map(function(path)
        path = vim.fs.normalize(path)
        return context.mention(path:sub(1, #cwd) == cwd and path:sub(#cwd + 1) or path)
      end, paths) ---@type string[]
      local lead, trail = text:match("^%s*"), text:match("%s*$")
      local replaced = lead .. table.concat(names, " ") .. trail
      local before = vim.api.nvim_buf_get_text(prompt.buf, row, 0, row, col, {})[1]
      if before:match("%S$") and lead == "" then
        replaced = " " .. replaced
      end
      -- Undo brings the path back as it was pasted.
      vim.bo[prompt.buf].undolevels = vim.bo[prompt.buf].undolevels
      prompt.setting = true
      vim.api.nvim_buf_set_text(prompt.buf, row, col, end_row, end_col, vim.split(replaced, "\n"))
      prompt.setting = false
      for _, win in ipairs(vim.fn.win_findbuf(prompt.buf)) do
        local at = vim.api.nvim_win_get_cursor(win)
        if at[1] == row + 1 and not replaced:find("\n", 1, true) then
          vim.api.nvim_win_set_cursor(win, { row + 1, col + #replaced })
        end
      end
      prompt:refresh()
      local said = #names == 1 and "the image is" or ("%d images are"):format(#names)
      notify.notify(said .. " attached to the prompt; u undoes that")
    end)
  end
  try(1)
end

---Checks text that is inserted into a prompt in one piece. A key types one character; anything longer was pasted or
---dropped.
---@param prompt cursor_agent.Prompt
---@param row integer
---@param col integer
---@param rows integer number of added rows
---@param last_col integer
---@param bytes integer
function M.on_put(prompt, row, col, rows, last_col, bytes)
  if bytes < LEAST_BYTES or bytes > MOST_BYTES then
    return
  end
  vim.schedule(function()
    if not vim.api.nvim_buf_is_loaded(prompt.buf) then
      return
    end
    local tree = vim.api.nvim_buf_call(prompt.buf, vim.fn.undotree)
    if tree.seq_cur ~= tree.seq_last then
      -- Undo brought it back: the user wants it as text.
      return
    end
    local end_row, end_col = row + rows, rows == 0 and col + last_col or last_col
    local ok, lines = pcall(vim.api.nvim_buf_get_text, prompt.buf, row, col, end_row, end_col, {})
    local text = ok and table.concat(lines, "\n") or ""
    if #text ~= bytes or #readings(text) == 0 then
      return
    end
    local mark = vim.api.nvim_buf_set_extmark(prompt.buf, NS, row, col, { end_row = end_row, end_col = end_col })
    look(prompt, mark, text)
  end)
end

return M
