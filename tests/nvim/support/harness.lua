--- The test runner of the specs: collects tests, runs each from the same state, compares, waits for events.
local M = {}

---@type { name: string, run: fun() }[]
local tests = {}

--- What the user was told, and asked, during a test.
---@type { message: string, level: integer }[]
M.notifications = {}

---@type { prompt: string?, items: any[]?, default: string? }[]
M.questions = {}

--- Names of the modules that were loaded before the first test.
---@type string[]
M.loaded_at_start = {}

--- Errors of the plugin in places where no test sees them raised.
---@type string[]
M.errors = {}

--- Answers for `vim.ui.input` and `vim.ui.select`, in order; an answer to a selection is a number or a label.
---@type any[]
M.answers = {}

--- Files and addresses given to the system's viewer.
---@type string[]
M.opened = {}

---@param name string
---@param run fun()
function M.test(name, run)
  table.insert(tests, { name = name, run = run })
end

---@param value any
---@return string
local function inspect(value)
  local text = vim.inspect(value, { depth = 4 })
  return #text > 2000 and text:sub(1, 2000) .. '…' or text
end

---@param expected any
---@param actual any
---@param about string?
function M.equal(expected, actual, about)
  if not vim.deep_equal(expected, actual) then
    local told = about and about .. ': ' or ''
    error(('%sexpected %s, got %s'):format(told, inspect(expected), inspect(actual)), 2)
  end
end

---@param text any
---@param pattern string plain text to be found
function M.contains(text, pattern)
  text = type(text) == 'table' and table.concat(text, '\n') or tostring(text)
  if not text:find(pattern, 1, true) then
    error(('%q is not in:\n%s'):format(pattern, text), 2)
  end
end

---@param text any
---@param pattern string plain text that must not be there
function M.lacks(text, pattern)
  text = type(text) == 'table' and table.concat(text, '\n') or tostring(text)
  if text:find(pattern, 1, true) then
    error(('%q is in:\n%s'):format(pattern, text), 2)
  end
end

--- Lets events happen until `condition` gives something true, and returns that.
---@generic T
---@param what string
---@param condition fun(): T
---@param limit_ms integer?
---@return T
function M.eventually(what, condition, limit_ms)
  local result
  if not vim.wait(limit_ms or 10000, function()
    result = condition()
    return result
  end, 5) then
    error(
      ('never happened: %s\nnotifications: %s\nin the buffer %s:\n%s'):format(
        what,
        inspect(M.notifications),
        vim.api.nvim_buf_get_name(0),
        table.concat(vim.list_slice(M.lines(), 1, 30), '\n')
      ),
      2
    )
  end
  return result
end

--- A file in the test's own folder.
---@param name string
---@param lines string[]
---@return string path
function M.file(name, lines)
  local path = vim.fn.getcwd() .. '/' .. name
  vim.fn.mkdir(vim.fs.dirname(path), 'p')
  vim.fn.writefile(lines, path)
  return path
end

---@param bufnr integer?
---@return string[]
function M.lines(bufnr)
  return vim.api.nvim_buf_get_lines(bufnr or 0, 0, -1, false)
end

--- The last thing that the user was told.
---@return string
function M.last_message()
  local last = M.notifications[#M.notifications]
  return last and last.message or ''
end

local function watch_the_user()
  vim.notify = function(message, level)
    table.insert(M.notifications, { message = message, level = level })
  end
  vim.notify_once = vim.notify
  vim.ui.open = function(path)
    table.insert(M.opened, path)
    return { wait = function() end }
  end
  vim.ui.input = function(options, callback)
    table.insert(M.questions, { prompt = options.prompt, default = options.default })
    local answer = table.remove(M.answers, 1)
    callback(answer == 'DEFAULT' and options.default or answer)
  end
  vim.ui.select = function(items, options, callback)
    local labels = vim.tbl_map(options.format_item or tostring, items)
    table.insert(M.questions, { prompt = options.prompt, items = labels })
    local answer = table.remove(M.answers, 1)
    for i, label in ipairs(labels) do
      if i == answer or label == answer then
        return callback(items[i], i)
      end
    end
    callback(nil)
  end
end

local function clean()
  -- An answer that came later would reach into the next test.
  local scripted = require('scripted')
  M.eventually('all requests are answered', function()
    return scripted.pending == 0
  end)
  for _, client in ipairs(vim.lsp.get_clients()) do
    client:stop(true)
  end
  vim.wait(2000, function()
    return #vim.lsp.get_clients() == 0
  end, 5)
  for _, window in ipairs(vim.api.nvim_list_wins()) do
    if vim.api.nvim_win_get_config(window).relative ~= '' then
      vim.api.nvim_win_close(window, true)
    end
  end
  vim.cmd('silent! tabonly! | silent! only! | enew!')
  for _, bufnr in ipairs(vim.api.nvim_list_bufs()) do
    if bufnr ~= vim.api.nvim_get_current_buf() then
      vim.api.nvim_buf_delete(bufnr, { force = true })
    end
  end
  vim.g.codeinterp = nil
  vim.lsp.inlay_hint.enable(false)
  vim.o.selection = 'inclusive'
  M.notifications, M.questions, M.answers, M.opened, M.errors = {}, {}, {}, {}, {}
  -- Each test meets the plugin as it is right after the start of Neovim.
  for name in pairs(package.loaded) do
    if name:match('^codeinterp') then
      package.loaded[name] = nil
    end
  end
end

--- Runs the collected tests.
---@return integer passed
---@return integer failed
function M.run()
  local passed, failed = 0, 0
  for _, test in ipairs(tests) do
    clean()
    watch_the_user()
    local ok, why = xpcall(test.run, debug.traceback)
    if ok and #M.errors > 0 then
      ok, why = false, table.concat(M.errors, '\n')
    end
    if ok then
      passed = passed + 1
    else
      failed = failed + 1
      print(('FAILED  %s\n%s\n'):format(test.name, why))
    end
  end
  clean()
  return passed, failed
end

return M
