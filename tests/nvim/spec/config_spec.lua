local harness = require('harness')
local test, equal, contains = harness.test, harness.equal, harness.contains

test('without any settings the defaults hold', function()
  equal(require('codeinterp.config').defaults, require('codeinterp.config').get())
end)

test('settings come from vim.g.codeinterp, and setup wins over them', function()
  vim.g.codeinterp = { report = { layout = 'tab' }, notify = false }
  require('codeinterp').setup({ report = { layout = 'float' } })
  local config = require('codeinterp.config').get()
  equal('float', config.report.layout)
  equal(0.5, config.report.size)
  equal(false, config.notify)
end)

test('a wrong setting counts as not set and is named', function()
  vim.g.codeinterp = { report = { layout = 'sideways', size = 'big' }, colour = 'red', hints = true }
  local config = require('codeinterp.config')
  equal('vsplit', config.get().report.layout)
  equal(0.5, config.get().report.size)
  local problems = table.concat(config.problems(), '\n')
  contains(problems, '`report.layout`')
  contains(problems, 'float')
  contains(problems, '`report.size`')
  contains(problems, '`colour`')
  contains(problems, '`hints`')
end)

test('setup after the server was enabled changes the file types it is attached to', function()
  vim.lsp.enable('codeinterp')
  equal(false, vim.list_contains(vim.lsp.config.codeinterp.filetypes, 'python'))
  require('codeinterp').setup({ cells = true })
  equal(true, vim.list_contains(vim.lsp.config.codeinterp.filetypes, 'python'))
  vim.lsp.enable('codeinterp', false)
end)

test('init_options of vim.lsp.config reach the server beside the settings', function()
  vim.g.codeinterp = { settings = { model = 'playbook', agent = { maxSteps = 3 } } }
  equal(
    { model = 'playbook', agent = { maxSteps = 5 }, virtualDocuments = true, runEvents = true, cells = false },
    require('codeinterp.config').initialization_options({ agent = { maxSteps = 5 } })
  )
end)
