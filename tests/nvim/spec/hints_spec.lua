local harness = require('harness')
local scripted = require('scripted')
local test, equal, contains, lacks, eventually =
  harness.test, harness.equal, harness.contains, harness.lacks, harness.eventually

---@param line integer
---@param label string|table
---@return lsp.InlayHint
local function hint(line, label)
  return { position = { line = line, character = 0 }, label = label }
end

local CHARTS = {
  {
    value = 'chart 1',
    command = {
      title = '',
      command = 'codeinterp.openArtifact',
      arguments = { { run = 'r1', name = 'a.png' } },
    },
  },
  { value = ' · ' },
  {
    value = 'report',
    command = { title = '', command = 'codeinterp.openReport', arguments = { { run = 'r1' } } },
  },
}

--- Texts drawn by the plugin's own marks, by line.
---@param bufnr integer
---@return table<integer, string>
local function drawn(bufnr)
  local namespace = vim.api.nvim_get_namespaces()['codeinterp.hints']
  local found = {}
  for _, mark in
    ipairs(namespace and vim.api.nvim_buf_get_extmarks(bufnr, namespace, 0, -1, { details = true }) or {})
  do
    local details = mark[4]
    local chunks = details.virt_text or details.virt_lines[1]
    found[mark[2]] = table.concat(vim.tbl_map(function(chunk)
      return chunk[1]
    end, chunks))
  end
  return found
end

---@param hints lsp.InlayHint[]
---@return Scripted
---@return integer bufnr
local function open(hints)
  local server = scripted.new({ hints = hints }):serve()
  return server, scripted.open(harness.file('sales.csv', { 'month,total', 'Feb,10', 'Mar,2' }))
end

---@param bufnr integer
---@param expected table<integer, string>
local function shows(bufnr, expected)
  eventually('the marks are ' .. vim.inspect(expected), function()
    return vim.deep_equal(expected, drawn(bufnr))
  end)
end

test('results stand on their lines, though inlay hints are off', function()
  local _, bufnr = open({ hint(0, '2 cols'), hint(2, CHARTS) })
  shows(bufnr, { [0] = '» 2 cols', [2] = '» chart 1 · report' })
end)

test('with inlay hints on they are not doubled, and they come back when these are off', function()
  local _, bufnr = open({ hint(0, '2 cols') })
  shows(bufnr, { [0] = '» 2 cols' })
  vim.lsp.inlay_hint.enable(true)
  vim.cmd.redraw()
  shows(bufnr, {})
  eventually('Neovim shows the hint itself', function()
    return #vim.lsp.inlay_hint.get({ bufnr = bufnr }) == 1
  end)
  vim.lsp.inlay_hint.enable(false)
  vim.cmd.redraw()
  shows(bufnr, { [0] = '» 2 cols' })
end)

test('with inlay hints on from the start nothing is drawn', function()
  vim.lsp.inlay_hint.enable(true)
  local server, bufnr = open({ hint(0, '2 cols') })
  eventually('hints were asked for', function()
    return #server:sent('textDocument/inlayHint') >= 2
  end)
  equal({}, drawn(bufnr))
end)

test('a run that ends brings its results', function()
  local server, bufnr = open({})
  server.hints = { hint(2, 'chart 1') }
  server:run_changed('r1', 'running')
  server:run_changed('r1', 'completed')
  shows(bufnr, { [2] = '» chart 1' })
end)

test('the server may ask for a refresh', function()
  local server, bufnr = open({})
  server.hints = { hint(1, 'stale') }
  equal(vim.NIL, server:request('workspace/inlayHint/refresh'))
  shows(bufnr, { [1] = '» stale' })
end)

test('after typing the hints are asked for again', function()
  local server, bufnr = open({ hint(0, '2 cols') })
  shows(bufnr, { [0] = '» 2 cols' })
  server.hints = { hint(0, '3 cols') }
  vim.api.nvim_buf_set_lines(bufnr, 0, 1, false, { 'month,total,new' })
  shows(bufnr, { [0] = '» 3 cols' })
end)

test('hints stay on their line while lines are added above', function()
  local _, bufnr = open({ hint(2, 'chart 1') })
  shows(bufnr, { [2] = '» chart 1' })
  vim.api.nvim_buf_set_lines(bufnr, 0, 0, false, { 'new' })
  equal({ [3] = '» chart 1' }, drawn(bufnr))
end)

test('hints behind the end of the file, hostile text and very long text do no harm', function()
  local _, bufnr = open({ hint(99, 'far'), hint(0, 'a\27[31mb\nc\226\128\174d'), hint(1, ('x'):rep(5000)) })
  eventually('hints are drawn', function()
    return drawn(bufnr)[0]
  end)
  equal('» a [31mb cd', drawn(bufnr)[0])
  equal(true, vim.fn.strchars(drawn(bufnr)[1]) < 200)
  equal(nil, drawn(bufnr)[99])
end)

test('hints can stand below their line, or be off', function()
  vim.g.codeinterp = { hints = { position = 'below', prefix = '= ' } }
  local _, bufnr = open({ hint(0, '2 cols') })
  shows(bufnr, { [0] = '= 2 cols' })
  vim.g.codeinterp = { hints = { enabled = false } }
  require('codeinterp.config').reload()
  require('codeinterp.hints').refresh(bufnr)
  shows(bufnr, {})
end)

test('the chart of a line is opened by :CodeInterp chart', function()
  local path = harness.file('a.png', { 'png' })
  local server, bufnr = open({ hint(2, CHARTS) })
  server.runs = {
    { run = 'r1', status = 'completed', artifacts = { { name = 'a.png', mime = 'image/png', path = path } } },
  }
  shows(bufnr, { [2] = '» chart 1 · report' })
  vim.cmd('3')
  vim.cmd('CodeInterp chart')
  eventually('the viewer is called', function()
    return harness.opened[1]
  end)
  equal({ path }, harness.opened)
end)

test('commands are about the newest result in the buffer, though an earlier server has found it', function()
  local function report(run)
    return {
      {
        value = 'report',
        command = { title = 'Open', command = 'codeinterp.openReport', arguments = { { run = run } } },
      },
    }
  end
  local server, bufnr =
    open({ hint(0, report('20260101-000001-00000a')), hint(2, report('20260102-000001-00000b')) })
  shows(bufnr, { [0] = '» report', [2] = '» report' })
  vim.cmd('CodeInterp followup and now?')
  eventually('the question goes on from it', function()
    return server:sent('followUp')[1]
  end)
  equal('20260102-000001-00000b', server:sent('followUp')[1].run)
end)

test('marks go when the server goes', function()
  local _, bufnr = open({ hint(0, '2 cols') })
  shows(bufnr, { [0] = '» 2 cols' })
  vim.cmd('CodeInterp! stop')
  shows(bufnr, {})
end)

test('lenses of the server are drawn once, and not when they are off', function()
  vim.g.codeinterp = { codelens = false }
  local server = open({})
  equal({}, server:sent('textDocument/codeLens'))
end)

test('the statusline says what runs, and nothing that a file name could make an item of', function()
  local server = open({})
  equal('', require('codeinterp').status())
  server:run_changed('r1', 'running', { step = 2, uri = 'file:///tmp/100%25{x}.csv' })
  local status = require('codeinterp').status()
  contains(status, 'step 2')
  lacks(status, '%')
  server:run_changed('r2', 'queued')
  contains(require('codeinterp').status(), 'queued')
  contains(require('codeinterp').status(), '+1')
  server:run_changed('r2', 'cancelled')
  server:run_changed('r1', 'completed')
  equal('', require('codeinterp').status())
end)

test('the statusline says what the server is busy with', function()
  local server = open({})
  server:run_changed('r1', 'running', { step = 0 })
  contains(require('codeinterp').status(), 'running')
  server:request('window/workDoneProgress/create', { token = 't' })
  server:notify('$/progress', { token = 't', value = { kind = 'begin', title = 'sales.csv' } })
  server:notify('$/progress', { token = 't', value = { kind = 'report', message = 'building the image' } })
  contains(require('codeinterp').status(), 'building the image')
  server:notify('$/progress', { token = 't', value = { kind = 'end' } })
  lacks(require('codeinterp').status(), 'building the image')
end)

test('the end of a run is said once, with its outcome', function()
  local server = open({})
  for _, status in ipairs({ 'running', 'running', 'failed', 'failed' }) do
    server:run_changed('r1', status, { uri = 'file:///tmp/sales.csv' })
  end
  equal(1, #harness.notifications)
  contains(harness.last_message(), 'sales.csv: failed')
  equal(vim.log.levels.ERROR, harness.notifications[1].level)
end)

test('an event of Neovim tells other plugins about a run', function()
  local server = open({})
  local seen ---@type table?
  vim.api.nvim_create_autocmd('User', {
    pattern = 'CodeInterpRunChanged',
    once = true,
    callback = function(event)
      seen = event.data
    end,
  })
  server:run_changed('r1', 'running', { step = 3 })
  equal({ 'r1', 'running', 3 }, seen and { seen.run, seen.status, seen.step })
end)

test('a run whose server has died does not run for ever', function()
  local server = open({})
  server:run_changed('r1', 'running')
  server.dispatchers.on_exit(1, 9)
  eventually('nothing runs', function()
    return require('codeinterp').status() == ''
  end)
  contains(harness.last_message(), 'signal 9')
end)

test('malformed events are ignored', function()
  local server = open({})
  server:notify('codeinterp/runChanged', { run = 5 })
  server:notify('codeinterp/runChanged', {})
  equal('', require('codeinterp').status())
end)
