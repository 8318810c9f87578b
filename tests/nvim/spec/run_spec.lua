local harness = require('harness')
local scripted = require('scripted')
local test, equal, contains, eventually = harness.test, harness.equal, harness.contains, harness.eventually

local function sales()
  return harness.file('sales.csv', { 'month,total', 'Feb,10', 'März,2', '😀 x,3' })
end

---@param server Scripted
---@param name string
---@return table argument of the last command of this name
local function last(server, name)
  return eventually(name .. ' is sent', function()
    local all = server:sent(name)
    return all[#all]
  end)
end

test('the server is told what this editor can do, and the settings of the user', function()
  vim.g.codeinterp = { settings = { model = 'playbook', sandbox = { backend = 'process' } } }
  local server = scripted.new():serve()
  scripted.open(sales())
  local options = server:sent('initialize')[1].initializationOptions
  equal(true, options.virtualDocuments)
  equal(true, options.runEvents)
  equal('playbook', options.model)
  equal('process', options.sandbox.backend)
end)

test('opening a data file attaches the server, a source file does not', function()
  scripted.new():serve()
  scripted.open(sales())
  vim.cmd.edit(harness.file('main.py', { 'print(1)' }))
  equal(0, #vim.lsp.get_clients({ bufnr = 0 }))
end)

test('a package.json is no data file, orders.json is one', function()
  scripted.new():serve()
  vim.cmd.edit(harness.file('package.json', { '{}' }))
  equal(0, #vim.lsp.get_clients({ bufnr = 0 }))
  scripted.open(harness.file('orders.json', { '[]' }))
end)

test('Python files are attached when the user opts in', function()
  vim.g.codeinterp = { cells = true }
  scripted.new():serve()
  scripted.open(harness.file('cells.py', { 'print(1)' }))
end)

test('analyze asks with a question that it shows, and opens the report without taking the cursor', function()
  local server = scripted.new():serve()
  local bufnr = scripted.open(sales())
  harness.answers = { 'DEFAULT' }
  vim.cmd('CodeInterp analyze')
  local argument = last(server, 'analyzeFile')
  contains(harness.questions[1].prompt, 'sales.csv')
  equal(harness.questions[1].default, argument.question)
  equal(vim.uri_from_bufnr(bufnr), argument.uri)
  eventually('the report is shown', function()
    return #vim.api.nvim_list_wins() == 2
  end)
  equal(bufnr, vim.api.nvim_get_current_buf())
  local report = vim.fn.bufnr('codeinterp:///runs/r1/report.md')
  equal({ '# Report' }, harness.lines(report))
  equal('markdown', vim.bo[report].filetype)
end)

test('analyze with a bang asks nothing', function()
  local server = scripted.new():serve()
  scripted.open(sales())
  vim.cmd('CodeInterp! analyze')
  last(server, 'analyzeFile')
  equal({}, harness.questions)
end)

test('giving up a question starts nothing', function()
  local server = scripted.new():serve()
  scripted.open(sales())
  vim.cmd('CodeInterp analyze')
  equal(1, #harness.questions)
  equal({}, server:sent('analyzeFile'))
end)

test('analyze takes files, with spaces in their names too, and a question', function()
  local server = scripted.new():serve()
  local first, second = sales(), harness.file('north 100%.csv', { 'a' })
  vim.cmd([[CodeInterp analyze sales.csv north\ 100%.csv which one sells more?]])
  local argument = last(server, 'analyzeFile')
  equal(vim.uri_from_fname(first), argument.uri)
  equal({ vim.uri_from_fname(second) }, argument.files)
  equal('which one sells more?', argument.question)
end)

test('a file that is not there is said, not taken for a question', function()
  scripted.new():serve()
  vim.cmd('CodeInterp analyze nowhere.csv')
  contains(harness.last_message(), 'nowhere.csv')
  equal({}, vim.lsp.get_clients())
end)

test('analyze offers the data files of the folder where the buffer is none', function()
  local server = scripted.new():serve()
  sales()
  harness.answers = { 'sales.csv', 'DEFAULT' }
  vim.cmd.enew()
  vim.cmd('CodeInterp analyze')
  contains(last(server, 'analyzeFile').uri, 'sales.csv')
end)

test('a file that is too large is analysed from the disk, without sending its text', function()
  vim.g.codeinterp = { max_bytes = 10 }
  local server = scripted.new():serve()
  vim.cmd.edit(sales())
  vim.cmd('CodeInterp ask total?')
  equal('total?', last(server, 'analyzeFile').question)
  vim.cmd('CodeInterp! analyze')
  eventually('it is analysed', function()
    return #server:sent('analyzeFile') == 2
  end)
  equal({}, server:sent('textDocument/didOpen'))
end)

test('a workbook is analysed from its file, whatever its buffer shows', function()
  local server = scripted.new():serve()
  local path = harness.file('book.xlsx', { 'PK' })
  vim.cmd.edit(path)
  vim.cmd('CodeInterp ask how many sheets?')
  equal({ uri = vim.uri_from_fname(path), question = 'how many sheets?' }, last(server, 'analyzeFile'))
  equal({}, server:sent('textDocument/didOpen'))
end)

test('a linewise range asks about whole lines', function()
  local server = scripted.new():serve()
  scripted.open(sales())
  vim.cmd('2,3CodeInterp ask why did March drop?')
  local argument = last(server, 'askSelection')
  equal('why did March drop?', argument.question)
  equal({ start = { line = 1, character = 0 }, ['end'] = { line = 2, character = 6 } }, argument.range)
end)

test('a selection of characters asks about these, counted in the encoding of the server', function()
  local server = scripted.new():serve()
  scripted.open(sales())
  vim.cmd.normal({ '4Gv2l\27', bang = true })
  vim.cmd("'<,'>CodeInterp ask what is this?")
  equal(
    { start = { line = 3, character = 0 }, ['end'] = { line = 3, character = 4 } },
    last(server, 'askSelection').range
  )
end)

test('ask without a range is about the file, and asks for the question', function()
  local server = scripted.new():serve()
  scripted.open(sales())
  harness.answers = { 'which month is best?' }
  vim.cmd('CodeInterp ask')
  equal('which month is best?', last(server, 'analyzeFile').question)
end)

test('a selection in a file of any kind can be asked about', function()
  local server = scripted.new():serve()
  vim.cmd.edit(harness.file('server.log', { 'GET / 200', 'GET /x 500' }))
  vim.cmd('%CodeInterp ask how many errors?')
  last(server, 'askSelection')
  contains(server:sent('textDocument/didOpen')[1].textDocument.text, 'GET /x 500')
end)

test('run sends the fenced block under the cursor, without its fences', function()
  local server = scripted.new():serve()
  vim.cmd.edit(harness.file('notes.md', { '# n', '```python', 'x = 1', 'x', '```', 'text' }))
  vim.cmd('3')
  vim.cmd('CodeInterp run')
  equal(
    { start = { line = 2, character = 0 }, ['end'] = { line = 3, character = 1 } },
    last(server, 'runSelection').range
  )
end)

test('run sends the cell under the cursor', function()
  local server = scripted.new():serve()
  vim.cmd.edit(harness.file('cells.py', { '# %%', 'a = 1', '# %% second', 'b = 2', 'b' }))
  vim.cmd('4')
  vim.cmd('CodeInterp run')
  equal(
    { start = { line = 3, character = 0 }, ['end'] = { line = 4, character = 1 } },
    last(server, 'runSelection').range
  )
end)

test('run outside of a cell says what to do', function()
  scripted.new():serve()
  scripted.open(sales())
  vim.cmd('CodeInterp run')
  contains(harness.last_message(), 'Select the code')
end)

test('follow-ups, reruns and cancelling go to the latest run of the file', function()
  local server = scripted.new():serve()
  scripted.open(sales())
  vim.cmd('CodeInterp ask total?')
  eventually('the report is shown', function()
    return #vim.api.nvim_list_wins() == 2
  end)
  vim.cmd('CodeInterp followup and by month?')
  equal({ run = 'r1', question = 'and by month?' }, last(server, 'followUp'))
  vim.cmd('CodeInterp rerun')
  equal({ run = 'r1' }, last(server, 'rerun'))
  vim.cmd('CodeInterp cancel')
  equal({ run = 'r1' }, last(server, 'cancel'))
end)

test('asking in a report is a follow-up', function()
  local server = scripted.new():serve()
  scripted.open(sales())
  vim.cmd('CodeInterp ask total?')
  eventually('the report is shown', function()
    return #vim.api.nvim_list_wins() == 2
  end)
  vim.cmd('CodeInterp! report')
  vim.cmd('CodeInterp ask and by month?')
  equal({ run = 'r1', question = 'and by month?' }, last(server, 'followUp'))
end)

test('an error of the server is shown with what to do about it', function()
  scripted
    .new({
      commands = {
        analyzeFile = function()
          return nil,
            {
              code = -32000,
              message = 'no sandbox works here.',
              data = { hint = 'Run codeinterp doctor.' },
            }
        end,
      },
    })
    :serve()
  scripted.open(sales())
  vim.cmd('CodeInterp ask total?')
  eventually('the error is shown', function()
    return harness.last_message():find('no sandbox works here. Run codeinterp doctor.', 1, true)
  end)
end)

test('a missing binary is named, with what to do', function()
  vim.g.codeinterp = { cmd = { 'no-such-codeinterp', 'lsp' } }
  vim.lsp.config.codeinterp = {}
  vim.cmd.edit(sales())
  vim.cmd('CodeInterp ask total?')
  contains(harness.last_message(), 'no-such-codeinterp')
  contains(harness.last_message(), ':checkhealth')
end)

test('lenses start runs, and their report opens', function()
  local server = scripted.new({
    lenses = {
      {
        range = { start = { line = 0, character = 0 }, ['end'] = { line = 0, character = 0 } },
        command = {
          title = 'Profile',
          command = 'codeinterp.analyzeFile',
          arguments = { { uri = 'file:///x.csv' } },
        },
      },
    },
  })
  server:serve()
  local bufnr = scripted.open(sales())
  eventually('the lens is drawn', function()
    return #vim.lsp.codelens.get(bufnr) == 1
  end)
  vim.lsp.codelens.run()
  equal({ uri = 'file:///x.csv' }, last(server, 'analyzeFile'))
  eventually('the report is shown', function()
    return #vim.api.nvim_list_wins() == 2
  end)
end)

test('a lens without a question asks for it', function()
  local server = scripted.new():serve()
  scripted.open(sales())
  harness.answers = { 'why?' }
  local client = vim.lsp.get_clients({ name = 'codeinterp' })[1]
  client:exec_cmd({
    title = 'Ask…',
    command = 'codeinterp.askSelection',
    arguments = { { uri = 'file:///x.csv' } },
  })
  equal('why?', last(server, 'askSelection').question)
end)
