local harness = require('harness')
local scripted = require('scripted')
local test, equal, contains = harness.test, harness.equal, harness.contains

---@param line string
---@return string[]
local function complete(line)
  return vim.fn.getcompletion(line, 'cmdline')
end

test('starting Neovim loads nothing of the plugin', function()
  for _, name in ipairs(harness.loaded_at_start) do
    equal(nil, name:match('^codeinterp'))
  end
  equal(2, vim.fn.exists(':CodeInterp'))
end)

test('every subcommand is completed, and described in the help', function()
  local expected = vim.split(
    'analyze ask cancel chart charts export followup log report rerun restart run runs save status stop variables',
    ' '
  )
  equal(expected, complete('CodeInterp '))
  local help =
    table.concat(vim.fn.readfile(vim.api.nvim_get_runtime_file('doc/codeinterp.txt', false)[1]), '\n')
  for _, name in ipairs(expected) do
    contains(help, ('*:CodeInterp-%s*'):format(name))
  end
end)

test('the help has tags, and every tag that it refers to is there', function()
  local path = vim.api.nvim_get_runtime_file('doc/codeinterp.txt', false)[1]
  vim.fn.mkdir('doc')
  vim.uv.fs_copyfile(path, 'doc/codeinterp.txt')
  vim.cmd.helptags('doc')
  local tags = table.concat(vim.fn.readfile('doc/tags'), '\n')
  for tag in table.concat(vim.fn.readfile(path), '\n'):gmatch('|([%w:-]*[Cc]ode[Ii]nterp[%w:()-]*)|') do
    contains('\n' .. tags, '\n' .. tag .. '\t')
  end
  for _, line in ipairs(vim.fn.readfile(path)) do
    if vim.fn.strdisplaywidth(line) > 79 then
      error('the help has a line wider than 79 columns: ' .. line)
    end
  end
end)

test('every setting is described in the help', function()
  local help =
    table.concat(vim.fn.readfile(vim.api.nvim_get_runtime_file('doc/codeinterp.txt', false)[1]), '\n')
  local function walk(settings, path)
    for key, value in pairs(settings) do
      if type(value) == 'table' and next(value) and not vim.islist(value) then
        walk(value, path .. key .. '.')
      else
        contains(help, ('`%s%s`'):format(path, key))
      end
    end
  end
  walk(require('codeinterp.config').defaults, '')
end)

test('files are completed with the spaces of their names', function()
  harness.file('north sales.csv', { 'a' })
  equal({ 'north\\ sales.csv' }, complete('CodeInterp analyze nor'))
  equal({ 'north\\ sales.csv' }, complete('CodeInterp analyze north\\ s'))
end)

test('charts and files of the current run are completed', function()
  local server = scripted.new({
    runs = {
      {
        run = 'r1',
        status = 'completed',
        question = 'total?',
        document = 'codeinterp:/runs/r1/report.md',
        artifacts = {
          { name = 'chart 1.png', mime = 'image/png', path = '/nowhere/chart 1.png', step = 2 },
          { name = 'totals.csv', mime = 'text/csv', path = '/nowhere/totals.csv', step = 2 },
        },
      },
    },
  })
  server:serve()
  scripted.open(harness.file('sales.csv', { 'a' }))
  server:run_changed('r1', 'completed')
  equal({ 'chart\\ 1.png' }, complete('CodeInterp chart ch'))
  equal({ 'totals.csv' }, complete('CodeInterp save to'))
  equal({ 'r1' }, complete('CodeInterp report '))
  equal({ 'notebook' }, complete('CodeInterp export no'))
end)

test('without a subcommand it asks for one', function()
  harness.answers = { 'nothing like this' }
  vim.cmd('CodeInterp')
  contains(harness.questions[1].items, 'analyze')
end)

test('an unknown subcommand, a needless range and a needless bang are refused with a reason', function()
  vim.cmd('CodeInterp frobnicate')
  contains(harness.last_message(), 'frobnicate')
  contains(harness.last_message(), 'analyze')
  vim.cmd('1CodeInterp status')
  contains(harness.last_message(), 'takes no range')
  vim.cmd('CodeInterp! ask')
  contains(harness.last_message(), 'bang')
end)

test('the mappings call the command, in visual mode with the selection', function()
  local server = scripted.new():serve()
  scripted.open(harness.file('sales.csv', { 'a,b', '1,2', '3,4' }))
  harness.answers = { 'why?' }
  vim.keymap.set('x', 'gA', '<Plug>(codeinterp-ask)')
  vim.api.nvim_feedkeys('2GVjgA', 'xt', false)
  harness.eventually('the selection is asked about', function()
    return server:sent('askSelection')[1]
  end)
  equal(
    { start = { line = 1, character = 0 }, ['end'] = { line = 2, character = 3 } },
    server:sent('askSelection')[1].range
  )
  local count = 0
  for _, mapping in ipairs(vim.api.nvim_get_keymap('n')) do
    count = count + (mapping.lhs:match('^<Plug>%(codeinterp') and 1 or 0)
    equal(nil, not mapping.lhs:match('^<Plug>') and tostring(mapping.rhs):match('CodeInterp') or nil)
  end
  equal(true, count >= 10)
end)
