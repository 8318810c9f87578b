local harness = require('harness')
local scripted = require('scripted')
local test, equal, contains, eventually = harness.test, harness.equal, harness.contains, harness.eventually

local REPORT = 'codeinterp:/runs/r1/report.md'
local TEXT = table.concat({
  '# Why did March drop?', -- 1
  '',
  'March is at **2**, see ![chart 1](artifacts/chart%201.png) and [totals](artifacts/all%20totals%20%23100%25.csv).', -- 3
  '',
  '## Steps',
  '',
  '### Step 1', -- 7
  '',
  '```python',
  '# Step 9 is a comment', -- 10
  'print(1)',
  '```',
  '',
  '### Step 2', -- 14
  '<summary>code and output · 0.12 s</summary>',
  'text [code](steps/2.py) [away](https://example.org/x) [other](codeinterp:/runs/r2/report.md)', -- 16
  '',
  '## Files', -- 18
  '',
  '- made by [step 2](#step-2)', -- 20
}, '\n')

---@return Scripted
---@return integer bufnr of the data file
local function start()
  local server = scripted.new({
    documents = {
      [REPORT] = TEXT,
      ['codeinterp:/runs/r2/report.md'] = '# Other',
      ['codeinterp:/runs/r1/steps/1.py'] = 'print(1)',
      ['codeinterp:/runs/r1/steps/2.py'] = 'print(2)',
      ['codeinterp:/runs/r1/artifacts/all%20totals%20%23100%25.csv'] = 'a,b\n1,2',
    },
    runs = {
      {
        run = 'r1',
        status = 'completed',
        question = 'why?',
        uri = 'file:///tmp/sales.csv',
        document = REPORT,
        artifacts = {
          { name = 'chart 1.png', mime = 'image/png', path = harness.file('chart 1.png', { 'png' }) },
          { name = 'all totals #100%.csv', mime = 'text/csv', path = harness.file('totals.csv', { 'a,b' }) },
          { name = 'page.html', mime = 'text/html', path = harness.file('page.html', { '<p>' }) },
        },
      },
    },
  })
  server:serve()
  return server, scripted.open(harness.file('sales.csv', { 'a' }))
end

local function go_to_report()
  require('codeinterp.report').open(REPORT, { focus = true })
end

---@param lnum integer
---@param text string? put the cursor on it
local function cursor(lnum, text)
  local line = vim.fn.getline(lnum)
  vim.api.nvim_win_set_cursor(0, { lnum, text and assert(line:find(text, 1, true)) - 1 or 0 })
end

for layout, where in pairs({ vsplit = 'row', split = 'col' }) do
  test(('the layout %s opens beside the file'):format(layout), function()
    vim.g.codeinterp = { report = { layout = layout } }
    local _, bufnr = start()
    require('codeinterp.report').open(REPORT)
    equal(bufnr, vim.api.nvim_get_current_buf())
    equal(where, vim.fn.winlayout()[1])
  end)
end

test('the layout tab opens a tab page and stays in this one', function()
  vim.g.codeinterp = { report = { layout = 'tab' } }
  local _, bufnr = start()
  require('codeinterp.report').open(REPORT)
  require('codeinterp.report').open(REPORT)
  equal(2, #vim.api.nvim_list_tabpages())
  equal(bufnr, vim.api.nvim_get_current_buf())
end)

test('the layout float opens over the file', function()
  vim.g.codeinterp = { report = { layout = 'float', focus = true } }
  start()
  require('codeinterp.report').open(REPORT)
  equal('editor', vim.api.nvim_win_get_config(0).relative)
  vim.api.nvim_feedkeys('q', 'xt', false)
  equal(1, #vim.api.nvim_list_wins())
end)

test('the layout none opens nothing by itself, and :CodeInterp report does', function()
  vim.g.codeinterp = { report = { layout = 'none' } }
  local server = start()
  require('codeinterp.report').open(REPORT)
  equal(1, #vim.api.nvim_list_wins())
  server:run_changed('r1', 'completed')
  vim.cmd('CodeInterp report')
  equal(2, #vim.api.nvim_list_wins())
end)

test('reports share one window, which is not taken for anything else', function()
  start()
  local report = require('codeinterp.report')
  report.open(REPORT)
  report.open('codeinterp:/runs/r2/report.md')
  equal(2, #vim.api.nvim_list_wins())
  vim.cmd.wincmd('l')
  equal({ '# Other' }, harness.lines())
  vim.cmd.edit(harness.file('notes.txt', { 'mine' }))
  report.open(REPORT)
  equal(3, #vim.api.nvim_list_wins())
end)

test('a report is folded by steps, and a comment in code is no heading', function()
  start()
  go_to_report()
  equal('expr', vim.wo.foldmethod)
  local levels = {}
  for lnum = 1, vim.api.nvim_buf_line_count(0) do
    levels[lnum] = vim.fn.foldlevel(lnum)
  end
  equal({ 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0 }, levels)
  equal(-1, vim.fn.foldclosed(7))
  vim.cmd.normal({ 'zM', bang = true })
  equal(7, vim.fn.foldclosed(10))
  equal(13, vim.fn.foldclosedend(10))
  equal(14, vim.fn.foldclosed(16))
end)

test('tags for browsers and escapes are concealed outside of code, and charts are marked', function()
  local server = start()
  server.documents[REPORT] = table.concat({
    '![chart](artifacts/a.png)',
    '<details>',
    '<summary>code · 1 s</summary>',
    '```text',
    '<details>',
    '```',
    '</details>',
    [[33\.3\% in \\ all]],
    '```text',
    [[33\.3]],
    '```',
  }, '\n')
  go_to_report()
  local namespace = vim.api.nvim_get_namespaces()['codeinterp.report']
  local marks = {}
  for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, namespace, 0, -1, { details = true })) do
    table.insert(
      marks,
      { mark[2], mark[3], mark[4].conceal or mark[4].conceal_lines or mark[4].virt_text[1][1] }
    )
  end
  equal({
    { 0, 0, '[chart] ' },
    { 1, 0, '' },
    { 2, 0, '' },
    { 2, 20, '' },
    { 6, 0, '' },
    { 7, 2, '' },
    { 7, 5, '' },
    { 7, 11, '' },
  }, marks)
end)

test('a folded step tells how it went', function()
  start()
  go_to_report()
  vim.cmd.normal({ 'zM', bang = true })
  equal('▸ Step 1 (7 lines)', vim.fn.foldtextresult(7))
  equal('▸ Step 2 · 0.12 s (4 lines)', vim.fn.foldtextresult(14))
end)

test('<CR> on a link to a step goes there', function()
  start()
  go_to_report()
  cursor(20, 'step 2')
  vim.api.nvim_feedkeys('\r', 'xt', false)
  equal(14, vim.api.nvim_win_get_cursor(0)[1])
end)

test('reports open with their steps folded where this is set', function()
  vim.g.codeinterp = { report = { folded = true } }
  start()
  go_to_report()
  equal(7, vim.fn.foldclosed(8))
end)

test('<CR> on a chart opens the chart', function()
  start()
  go_to_report()
  cursor(3, 'chart 1')
  vim.api.nvim_feedkeys('\r', 'xt', false)
  eventually('the viewer is called', function()
    return harness.opened[1]
  end)
  contains(harness.opened[1], 'chart 1.png')
end)

test('K on a table opens it as a buffer', function()
  start()
  go_to_report()
  cursor(3, 'totals')
  vim.api.nvim_feedkeys('K', 'xt', false)
  eventually('the table is shown', function()
    return vim.api.nvim_buf_get_name(0) == 'codeinterp:///runs/r1/artifacts/all%20totals%20%23100%25.csv'
  end)
  equal({ 'a,b', '1,2' }, harness.lines())
  equal('csv', vim.bo.filetype)
end)

test('<CR> in a step opens its code', function()
  start()
  go_to_report()
  cursor(10)
  vim.api.nvim_feedkeys('\r', 'xt', false)
  equal('codeinterp:///runs/r1/steps/1.py', vim.api.nvim_buf_get_name(0))
  equal({ 'print(1)' }, harness.lines())
end)

test('<CR> on a link goes nowhere outside of the run', function()
  start()
  go_to_report()
  cursor(16, 'away')
  vim.api.nvim_feedkeys('\r', 'xt', false)
  -- the line's own link is opened instead
  equal('codeinterp:///runs/r1/steps/2.py', vim.api.nvim_buf_get_name(0))
  local links = require('codeinterp.links')
  for _, target in ipairs({
    'https://example.org/x.png',
    'file:///etc/passwd',
    '/etc/passwd',
    '../r2/report.md',
    'artifacts/../../x',
    'codeinterp:/runs/r2/report.md',
    '#heading',
    'command:x',
  }) do
    equal(nil, links.resolve(target, 'r1'), target)
  end
  equal('a b.png', links.resolve('artifacts/a%20b.png', 'r1').name)
end)

test('<CR> on plain text says that there is nothing', function()
  start()
  go_to_report()
  cursor(1)
  vim.api.nvim_feedkeys('\r', 'xt', false)
  contains(harness.last_message(), 'No chart or step here')
end)

test('charts are chosen from a list', function()
  local server = start()
  server:run_changed('r1', 'completed')
  harness.answers = { 'chart 1.png' }
  vim.cmd('CodeInterp charts')
  eventually('the viewer is called', function()
    return harness.opened[1]
  end)
  equal({ 'chart 1.png', 'all totals #100%.csv', 'page.html' }, harness.questions[1].items)
end)

test('a page that a cell has written is opened only after a question', function()
  local server = start()
  server:run_changed('r1', 'completed')
  vim.cmd('CodeInterp chart page.html')
  eventually('the question is asked', function()
    return harness.questions[1]
  end)
  equal({}, harness.opened)
  harness.answers = { 'Open' }
  vim.cmd('CodeInterp chart page.html')
  eventually('the viewer is called', function()
    return harness.opened[1]
  end)
end)

test('a chart whose file is gone, and one that never was, are told', function()
  local server = start()
  server:run_changed('r1', 'completed')
  vim.fn.delete('chart 1.png')
  vim.cmd([[CodeInterp chart chart\ 1.png]])
  eventually('it is told', function()
    return harness.last_message():find('gone', 1, true)
  end)
  vim.cmd('CodeInterp chart nothing.png')
  eventually('it is told', function()
    return harness.last_message():find('no artifact named nothing.png', 1, true)
  end)
end)

test('image plugins find the file of an image in a report', function()
  local server = start()
  server:run_changed('r1', 'completed')
  local resolve = require('codeinterp').resolve_image
  contains(resolve('codeinterp:///runs/r1/report.md', 'artifacts/chart%201.png'), '/chart 1.png')
  equal(nil, resolve('codeinterp:///runs/r1/report.md', 'https://example.org/x.png'))
  equal(nil, resolve('/home/me/notes.md', 'artifacts/chart%201.png'))
end)

test('a run is exported, in the format and to the file that were chosen', function()
  local server = start()
  local exported = {}
  server.commands.export = function(argument)
    table.insert(exported, argument)
    return { path = argument.path }
  end
  server:run_changed('r1', 'completed', { uri = 'file:///tmp/sales.csv' })
  harness.answers = { 'script', 'DEFAULT' }
  vim.cmd('CodeInterp export')
  eventually('it is told', function()
    return harness.last_message():find('wrote', 1, true)
  end)
  vim.cmd('CodeInterp! export notebook out/x.ipynb')
  eventually('it is exported again', function()
    return #exported == 2
  end)
  local here = vim.fn.getcwd()
  equal({
    { run = 'r1', to = 'script', path = here .. '/sales.py', overwrite = false },
    { run = 'r1', to = 'notebook', path = here .. '/out/x.ipynb', overwrite = true },
  }, exported)
  vim.cmd('CodeInterp export pdf')
  contains(harness.last_message(), 'notebook, script, markdown')
end)

test('a chart is saved under the name that was chosen', function()
  local server = start()
  server.commands.saveArtifact = function(argument)
    return { path = argument.to }
  end
  server:run_changed('r1', 'completed')
  harness.answers = { 'chart 1.png', 'mine.png' }
  vim.cmd('CodeInterp save')
  eventually('it is saved', function()
    return server:sent('saveArtifact')[1]
  end)
  equal(
    { run = 'r1', name = 'chart 1.png', to = vim.fn.getcwd() .. '/mine.png', overwrite = false },
    server:sent('saveArtifact')[1]
  )
end)

test('earlier runs are listed, and the chosen report is gone to', function()
  start()
  harness.answers = { 1 }
  vim.cmd('CodeInterp runs')
  eventually('the report is shown', function()
    return vim.api.nvim_buf_get_name(0) == 'codeinterp:///runs/r1/report.md'
  end)
  contains(harness.questions[1].items[1], 'why?')
end)

test('before anything was asked the commands about runs say so', function()
  scripted.new():serve()
  vim.cmd.enew()
  for _, command in ipairs({ 'report', 'charts', 'chart', 'export', 'save', 'followup x', 'rerun' }) do
    vim.cmd('CodeInterp ' .. command)
    contains(harness.last_message(), 'Nothing has been asked yet')
  end
end)
