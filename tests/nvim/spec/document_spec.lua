local harness = require('harness')
local scripted = require('scripted')
local test, equal, contains, eventually = harness.test, harness.equal, harness.contains, harness.eventually

local REPORT = 'codeinterp:/runs/r1/report.md'

---@param server Scripted
---@return integer bufnr of the report, in the current window
local function open_report(server)
  server:serve()
  scripted.open(harness.file('sales.csv', { 'a' }))
  vim.cmd.edit('codeinterp:///runs/r1/report.md')
  return vim.api.nvim_get_current_buf()
end

test('a document is there as soon as its buffer is open, and it is not a file', function()
  local server = scripted.new({ documents = { [REPORT] = '# A\r\n\r\ntext\r\n' } })
  local bufnr = open_report(server)
  equal({ '# A', '', 'text' }, harness.lines(bufnr))
  equal('nofile', vim.bo[bufnr].buftype)
  equal(false, vim.bo[bufnr].modifiable)
  equal(false, vim.bo[bufnr].modified)
  equal({ { uri = REPORT } }, server:sent('workspace/textDocumentContent'))
end)

test('one slash after the scheme names the same buffer', function()
  local server = scripted.new():serve()
  scripted.open(harness.file('sales.csv', { 'a' }))
  vim.cmd.edit('codeinterp:/runs/r1/report.md')
  equal('codeinterp:///runs/r1/report.md', vim.api.nvim_buf_get_name(0))
  equal({ '# Report' }, harness.lines())
  equal(REPORT, server:sent('workspace/textDocumentContent')[1].uri)
end)

test('the code of a step is a Python buffer', function()
  local server = scripted.new({ documents = { ['codeinterp:/runs/r1/steps/2.py'] = 'print(1)\n' } })
  server:serve()
  scripted.open(harness.file('sales.csv', { 'a' }))
  vim.cmd.edit('codeinterp:///runs/r1/steps/2.py')
  equal('python', vim.bo.filetype)
  equal({ 'print(1)' }, harness.lines())
end)

test('a document that the server does not know is said to be unknown', function()
  local server = scripted.new()
  open_report(server)
  vim.cmd.edit('codeinterp:///runs/../../etc/passwd')
  contains(harness.last_message(), 'no such document')
  contains(harness.lines(), 'no such document')
end)

test('a server that does not answer leaves a buffer that says so', function()
  vim.g.codeinterp = { timeout_ms = 50 }
  local server = scripted.new({ silent = { ['workspace/textDocumentContent'] = true } })
  open_report(server)
  contains(harness.lines(), 'did not answer in time')
end)

test('a document is read again by :edit', function()
  local server = scripted.new()
  local bufnr = open_report(server)
  server.documents[REPORT] = '# New\n'
  vim.cmd.edit()
  equal({ '# New' }, harness.lines(bufnr))
end)

test('a report grows while the run streams, and cursor, view and marks stay on their text', function()
  local before = {}
  for i = 1, 60 do
    table.insert(before, 'line ' .. i)
  end
  local server = scripted.new({ documents = { [REPORT] = table.concat(before, '\n') } })
  local bufnr = open_report(server)
  vim.api.nvim_win_set_cursor(0, { 30, 3 })
  local namespace = vim.api.nvim_create_namespace('test')
  local mark = vim.api.nvim_buf_set_extmark(bufnr, namespace, 29, 0, {})
  server.documents[REPORT] = '# Answer\n\n' .. table.concat(before, '\n') .. '\nline 61'
  equal(vim.NIL, server:request('workspace/textDocumentContent/refresh', { uri = REPORT }))
  eventually('the new text is shown', function()
    return harness.lines(bufnr)[1] == '# Answer'
  end)
  equal('line 61', harness.lines(bufnr)[63])
  equal({ 32, 3 }, vim.api.nvim_win_get_cursor(0))
  equal({ 31, 0 }, vim.api.nvim_buf_get_extmark_by_id(bufnr, namespace, mark, {}))
  equal(false, vim.bo[bufnr].modified)
end)

test('many refreshes in a short time are few requests, and the last text wins', function()
  local server = scripted.new()
  local bufnr = open_report(server)
  for i = 1, 200 do
    server.documents[REPORT] = ('text %d\n'):format(i)
    server:request('workspace/textDocumentContent/refresh', { uri = REPORT })
  end
  eventually('the last text is shown', function()
    return harness.lines(bufnr)[1] == 'text 200'
  end)
  equal(true, #server:sent('workspace/textDocumentContent') < 10)
end)

test('lines are replaced, added and removed in place', function()
  local server = scripted.new({ documents = { [REPORT] = 'a\nb\nc\nd\n' } })
  local bufnr = open_report(server)
  for _, text in ipairs({ 'a\nX\nc\n', '', 'one', 'zero\none\ntwo\n', 'two\n\n\nzero\n', '# end' }) do
    server.documents[REPORT] = text
    server:request('workspace/textDocumentContent/refresh', { uri = REPORT })
    local expected = vim.split(text, '\n')
    if #expected > 1 and expected[#expected] == '' then
      table.remove(expected)
    end
    eventually('the text is ' .. vim.inspect(text), function()
      return vim.deep_equal(expected, harness.lines(bufnr))
    end)
  end
end)

test('an error while a run streams leaves the text as it is', function()
  local server = scripted.new()
  local bufnr = open_report(server)
  server.documents[REPORT] = nil
  server:request('workspace/textDocumentContent/refresh', { uri = REPORT })
  eventually('the text was asked for again', function()
    return #server:sent('workspace/textDocumentContent') == 2
  end)
  equal({ '# Report' }, harness.lines(bufnr))
end)

test('a refresh of what is not shown, or is no document, asks for nothing', function()
  local server = scripted.new()
  open_report(server)
  equal(
    vim.NIL,
    server:request('workspace/textDocumentContent/refresh', { uri = 'codeinterp:/runs/r9/report.md' })
  )
  equal(vim.NIL, server:request('workspace/textDocumentContent/refresh', { uri = 'file:///etc/passwd' }))
  equal(vim.NIL, server:request('workspace/textDocumentContent/refresh', nil))
  equal(1, #server:sent('workspace/textDocumentContent'))
end)

test('showDocument of the server opens a report and leaves the cursor where it is', function()
  local server = scripted.new():serve()
  local bufnr = scripted.open(harness.file('sales.csv', { 'a' }))
  equal({ success = true }, server:request('window/showDocument', { uri = REPORT, takeFocus = false }))
  equal(bufnr, vim.api.nvim_get_current_buf())
  equal(2, #vim.api.nvim_list_wins())
  server:request('window/showDocument', { uri = REPORT, takeFocus = true })
  equal('codeinterp:///runs/r1/report.md', vim.api.nvim_buf_get_name(0))
end)
