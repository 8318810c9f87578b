--- Messages, questions and scratch windows. Text that comes from the server is made harmless here: it may carry
--- what a data file or a cell wrote.
local M = {}

--- Longest message and label, in characters.
local LONGEST = 400

--- `text` on one line, without control characters, cut when it is very long.
---@param text any
---@param longest integer? characters
---@return string
function M.one_line(text, longest)
  text = tostring(text == nil and '' or text)
  -- C0, DEL, and C1 in UTF-8; then the controls that reorder text.
  text = text:gsub('[%z\1-\31\127]+', ' '):gsub('\194[\128-\159]', ' ')
  text = text:gsub('\226\128[\142\143\170-\174]', ''):gsub('\226\129[\166-\169]', '')
  text = vim.trim(text)
  longest = longest or LONGEST
  if vim.fn.strchars(text) > longest then
    text = vim.fn.strcharpart(text, 0, longest - 1) .. '…'
  end
  return text
end

---@param message string
---@param level integer? of `vim.log.levels`
function M.notify(message, level)
  vim.notify(M.one_line(message), level or vim.log.levels.INFO, { title = 'CodeInterp' })
end

---@param message string
function M.error(message)
  M.notify('CodeInterp: ' .. message, vim.log.levels.ERROR)
end

---@param message string
function M.warn(message)
  M.notify('CodeInterp: ' .. message, vim.log.levels.WARN)
end

--- Asks for a line of text. `callback` is not called when the user gives up or answers with nothing.
---@param options { prompt: string, default?: string, completion?: string }
---@param callback fun(answer: string)
function M.input(options, callback)
  vim.ui.input(options, function(answer)
    answer = answer and vim.trim(answer) or ''
    if answer ~= '' then
      callback(answer)
    end
  end)
end

--- Lets the user choose; a single item is chosen by itself unless `always` is set.
---@generic T
---@param items T[]
---@param options { prompt: string, format: (fun(item: T): string), always?: boolean }
---@param callback fun(item: T)
function M.select(items, options, callback)
  if #items == 1 and not options.always then
    callback(items[1])
    return
  end
  vim.ui.select(items, {
    prompt = options.prompt,
    format_item = function(item)
      return M.one_line(options.format(item), 120)
    end,
  }, function(choice)
    if choice ~= nil then
      callback(choice)
    end
  end)
end

--- Asks before something that cannot be taken back, or that leaves the editor.
---@param question string
---@param yes string label of the affirmative choice
---@param callback fun()
function M.confirm(question, yes, callback)
  vim.ui.select({ yes, 'Cancel' }, { prompt = M.one_line(question) }, function(choice)
    if choice == yes then
      callback()
    end
  end)
end

--- Shows lines in a small window over the editor; `q` and `<Esc>` close it.
---@param lines string[]
---@param options { title: string, syntax?: string }
---@return integer bufnr
---@return integer window
function M.float(lines, options)
  local bufnr = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_lines(bufnr, 0, -1, false, lines)
  vim.bo[bufnr].bufhidden = 'wipe'
  vim.bo[bufnr].modifiable = false
  -- Not 'filetype': its plugins may start programs, and this is a value, not a file.
  vim.bo[bufnr].syntax = options.syntax or ''
  local widest = vim.api.nvim_strwidth(options.title) + 4
  for _, line in ipairs(lines) do
    widest = math.max(widest, vim.fn.strdisplaywidth(line))
  end
  local width = math.max(20, math.min(widest, vim.o.columns - 8))
  local height = math.max(1, math.min(#lines, vim.o.lines - 8))
  local window = vim.api.nvim_open_win(bufnr, true, {
    relative = 'editor',
    width = width,
    height = height,
    row = math.floor((vim.o.lines - height) / 2) - 1,
    col = math.floor((vim.o.columns - width) / 2),
    style = 'minimal',
    border = 'rounded',
    title = ' ' .. M.one_line(options.title, width) .. ' ',
  })
  vim.wo[window][0].wrap = false
  vim.wo[window][0].cursorline = true
  for _, key in ipairs({ 'q', '<Esc>' }) do
    vim.keymap.set('n', key, '<Cmd>close<CR>', { buffer = bufnr, nowait = true, desc = 'Close' })
  end
  return bufnr, window
end

--- `bytes` as people write it.
---@param bytes number?
---@return string
function M.size(bytes)
  if type(bytes) ~= 'number' then
    return ''
  end
  for _, unit in ipairs({ 'B', 'kB', 'MB', 'GB' }) do
    if bytes < 1000 or unit == 'GB' then
      return (bytes < 10 and unit ~= 'B' and '%.1f %s' or '%.0f %s'):format(bytes, unit)
    end
    bytes = bytes / 1000
  end
  return ''
end

--- Lines of a table whose columns are aligned.
---@param rows string[][] the first one is the header
---@return string[]
function M.table(rows)
  local widths = {} ---@type integer[]
  for _, row in ipairs(rows) do
    for i, cell in ipairs(row) do
      widths[i] = math.max(widths[i] or 0, vim.fn.strdisplaywidth(cell))
    end
  end
  return vim.tbl_map(function(row)
    local cells = {}
    for i, cell in ipairs(row) do
      cells[i] = cell .. (' '):rep(widths[i] - vim.fn.strdisplaywidth(cell))
    end
    return (table.concat(cells, '  '):gsub('%s+$', ''))
  end, rows)
end

return M
