-- Whole runs with the real binary: language server, built-in analyst, a real sandbox, a real Python kernel.
local harness = require('harness')
local test, equal, contains, eventually = harness.test, harness.equal, harness.contains, harness.eventually

--- A sandbox starts, and the first cell imports the data stack, on a machine that is busy with other tests.
local RUN_MS = 120000

---@return string path
local function sales()
  local lines = { 'month,region,units,price' }
  for month = 1, 12 do
    for _, region in ipairs({ 'north', 'south', 'west' }) do
      local units = month == 3 and 4 or 20 + month * (#region - 3)
      table.insert(lines, ('2025-%02d,%s,%d,%.2f'):format(month, region, units, 9.5 + month / 10))
    end
  end
  table.insert(lines, '2025-12,east,,11.00')
  return harness.file('Umsätze 2025.csv', lines)
end

---@param backend string
---@param more table? settings of the plugin
local function start(backend, more)
  vim.g.codeinterp = vim.tbl_extend('force', {
    cmd = { vim.env.CODEINTERP_BIN, 'lsp' },
    settings = { model = 'playbook', sandbox = { backend = backend } },
  }, more or {})
  vim.lsp.config.codeinterp = {}
  vim.lsp.enable('codeinterp')
  vim.cmd.edit(vim.fn.fnameescape(sales()))
  eventually('the server is attached', function()
    return vim.lsp.get_clients({ bufnr = 0, name = 'codeinterp' })[1]
  end)
end

--- Waits for the end of the latest run.
---@return codeinterp.Run
local function ended()
  local runs = require('codeinterp.runs')
  return eventually('the run has ended', function()
    local run = runs.get(runs.ids()[1])
    return run and runs.is_final(run.status) and run
  end, RUN_MS)
end

---@param run codeinterp.Run
---@return string
local function report_of(run)
  local bufnr = eventually('the report is there', function()
    return require('codeinterp.document').buffer(run.document)
  end)
  -- The last refresh may still be on its way.
  eventually('the report is whole', function()
    return not table.concat(harness.lines(bufnr), '\n'):find('Running …', 1, true)
  end)
  return table.concat(harness.lines(bufnr), '\n')
end

--- Identities of all processes below one, by default this one: number and time of start, since numbers are
--- given again.
---@param root integer?
---@return table<string, true>
local function descendants(root)
  local children = {} ---@type table<string, string[]>
  local started = {} ---@type table<string, string>
  for pid in vim.fs.dir('/proc') do
    local file = pid:match('^%d+$') and io.open('/proc/' .. pid .. '/stat')
    local stat = file and file:read('*a')
    if file then
      file:close()
    end
    -- The name, in parentheses, may hold anything.
    local fields = stat and vim.split(stat:match('.*%) (.*)$') or '', ' ')
    if fields and fields[2] then
      children[fields[2]] = children[fields[2]] or {}
      table.insert(children[fields[2]], pid)
      started[pid] = fields[20]
    end
  end
  local found, queue = {}, { tostring(root or vim.fn.getpid()) }
  while #queue > 0 do
    for _, pid in ipairs(children[table.remove(queue)] or {}) do
      found[pid .. '@' .. started[pid]] = true
      table.insert(queue, pid)
    end
  end
  return found
end

--- Waits until none of these processes is there any more.
---@param processes table<string, true>
local function all_end(processes)
  eventually('all processes have ended', function()
    for identity in pairs(processes) do
      local pid, start = identity:match('^(%d+)@(.*)$')
      local file = io.open('/proc/' .. pid .. '/stat')
      local stat = file and file:read('*a') or ''
      if file then
        file:close()
      end
      local fields = vim.split(stat:match('.*%) (.*)$') or '', ' ')
      -- A zombie holds nothing; whoever inherited it collects it.
      if fields[20] == start and fields[1] ~= 'Z' then
        return false
      end
    end
    return true
  end, 15000)
end

for _, backend in ipairs({ 'process', 'docker' }) do
  test(
    ('a file is analysed in the %s sandbox: report, charts, results on its lines'):format(backend),
    function()
      start(backend)
      local source = vim.api.nvim_get_current_buf()
      vim.cmd('CodeInterp! analyze')
      local run = ended()
      equal('completed', run.status, vim.inspect(harness.notifications))
      equal(source, vim.api.nvim_get_current_buf())

      local report = report_of(run)
      contains(report, '### Step 1')
      contains(report, 'playbook')
      contains(report, '](artifacts/')

      local namespace = vim.api.nvim_get_namespaces()['codeinterp.hints']
      eventually('results stand on the lines', function()
        for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(source, namespace, 0, -1, { details = true })) do
          for _, chunk in ipairs(mark[4].virt_text) do
            if chunk[1]:match('report') or chunk[1]:match('chart') then
              return true
            end
          end
        end
      end)

      local charts = vim.tbl_filter(
        require('codeinterp.artifacts').is_chart,
        require('codeinterp.artifacts').of_sync(run.run)
      )
      equal(true, #charts > 0)
      vim.cmd('CodeInterp chart ' .. vim.fn.escape(charts[1].name, ' \\'))
      local opened = eventually('the viewer gets a picture', function()
        return harness.opened[1]
      end)
      equal('\137PNG', vim.fn.readblob(opened, 0, 4):gsub('', ''))

      vim.cmd('CodeInterp followup how many rows are there?')
      eventually('the second run has begun', function()
        return #require('codeinterp.runs').ids() == 2
      end)
      equal('completed', ended().status, vim.inspect(harness.notifications))

      vim.cmd('CodeInterp variables')
      eventually('the kernel kept its variables', function()
        return table.concat(harness.lines(), '\n'):find('DataFrame', 1, true)
      end, RUN_MS)
    end
  )

  test(
    ('cancelling ends endless code in the %s sandbox, and nothing is left after stopping'):format(backend),
    function()
      start(backend)
      vim.cmd.edit(harness.file('loop.py', { 'while True:', '    pass' }))
      vim.cmd('%CodeInterp run')
      eventually('the code runs', function()
        local run = require('codeinterp.runs').active()[1]
        return run and run.status == 'running' and run.step == 1
      end, RUN_MS)
      equal(true, require('codeinterp').status():find('step 1', 1, true) ~= nil)
      vim.cmd('CodeInterp cancel')
      equal('cancelled', ended().status)

      local processes = descendants()
      equal(true, vim.tbl_count(processes) > 0)
      vim.cmd('CodeInterp! stop')
      all_end(processes)
    end
  )
end

test('when Neovim is killed, server, sandbox and kernel end with it', function()
  local loop = harness.file('loop.py', { 'while True:', '    pass' })
  local script = harness.file('killed.lua', {
    'vim.g.codeinterp = {',
    "  cmd = { vim.env.CODEINTERP_BIN, 'lsp' },",
    "  settings = { sandbox = { backend = 'process' } },",
    '}',
    "vim.api.nvim_create_autocmd('User', {",
    "  pattern = 'CodeInterpRunChanged',",
    '  callback = function(event)',
    '    if event.data.step == 1 then',
    "      vim.fn.writefile({}, 'running')",
    '    end',
    '  end,',
    '})',
    ("vim.cmd.edit('%s')"):format(loop),
    "vim.cmd('%CodeInterp run')",
  })
  local runtime = vim.env.CODEINTERP_TEST_ROOT .. '/editors/nvim'
  local victim = vim.system({
    vim.v.progpath,
    '--headless',
    '--clean',
    '-n',
    '--cmd',
    'set runtimepath^=' .. runtime,
    '-c',
    'luafile ' .. script,
  })
  local ran = vim.wait(RUN_MS, function()
    return vim.fn.filereadable('running') == 1
  end, 20)
  local processes = descendants(victim.pid)
  -- First of all: a test that fails must leave nothing behind either.
  victim:kill('sigkill')
  equal(true, ran, 'the code runs')
  -- At least the server, the supervisor and the kernel.
  equal(true, vim.tbl_count(processes) >= 3, vim.inspect(processes))
  all_end(processes)
end)

test('what is unsaved is what is analysed', function()
  start('process')
  vim.api.nvim_buf_set_lines(0, 1, -1, false, { '2025-01,north,7,1.00', '2025-02,north,8,1.00' })
  vim.cmd('CodeInterp ask how many rows are there?')
  local run = ended()
  equal('completed', run.status, vim.inspect(harness.notifications))
  contains(report_of(run), '2 rows')
end)

test(
  'a cell of a Python file is run by its lens, its result stands at its end, and names are hovered',
  function()
    start('process', { cells = true })
    vim.cmd.edit(
      harness.file('cells.py', { '# %% first', 'answer = 6 * 7', 'answer', '', '# %% second', 'pass' })
    )
    local bufnr = vim.api.nvim_get_current_buf()
    eventually('the lenses are drawn', function()
      return #vim.lsp.codelens.get(bufnr) >= 2
    end)
    vim.cmd('1')
    harness.answers = { 'Run in sandbox' }
    vim.lsp.codelens.run()
    equal({ 'Run in sandbox', 'Ask' }, harness.questions[1].items)
    equal('completed', ended().status, vim.inspect(harness.notifications))
    local namespace = vim.api.nvim_get_namespaces()['codeinterp.hints']
    eventually('the value stands at the end of the cell', function()
      return vim
        .iter(vim.api.nvim_buf_get_extmarks(bufnr, namespace, 0, -1, { details = true }))
        :any(function(mark)
          return mark[2] >= 2 and mark[2] <= 3 and vim.inspect(mark[4].virt_text):find('42', 1, true)
        end)
    end)
    vim.api.nvim_win_set_cursor(0, { 2, 2 })
    local client = vim.lsp.get_clients({ bufnr = bufnr, name = 'codeinterp' })[1]
    local hover = client:request_sync(
      'textDocument/hover',
      vim.lsp.util.make_position_params(0, client.offset_encoding),
      10000,
      bufnr
    )
    contains(vim.inspect(hover and hover.result), '42')
  end
)

test('hovering a value of a table tells about its column', function()
  start('process')
  vim.api.nvim_win_set_cursor(0, { 3, 15 })
  local client = vim.lsp.get_clients({ bufnr = 0, name = 'codeinterp' })[1]
  local hover = client:request_sync(
    'textDocument/hover',
    vim.lsp.util.make_position_params(0, client.offset_encoding),
    10000,
    0
  )
  contains(vim.inspect(hover and hover.result), 'units')
end)

test('a preset of the code actions runs, and its report opens', function()
  start('process')
  local bufnr = vim.api.nvim_get_current_buf()
  harness.answers = { 'Profile' }
  vim.lsp.buf.code_action()
  eventually('the actions are offered', function()
    return harness.questions[1]
  end)
  contains(table.concat(harness.questions[1].items, '\n'), 'Plot what matters')
  harness.answers = {}
  vim.lsp.buf.code_action({
    apply = true,
    filter = function(action)
      return action.title == 'Profile'
    end,
  })
  equal('completed', ended().status, vim.inspect(harness.notifications))
  equal(bufnr, vim.api.nvim_get_current_buf())
  equal(2, #vim.api.nvim_list_wins())
end)

test('code runs only after a yes where the settings ask for one', function()
  start(
    'process',
    { settings = { model = 'playbook', sandbox = { backend = 'process' }, agent = { confirm = 'always' } } }
  )
  harness.answers = { 'Stop' }
  vim.cmd('CodeInterp ask how many rows are there?')
  local run = ended()
  contains(harness.questions[1].prompt, 'import')
  equal({ 'Run', 'Stop' }, harness.questions[1].items)
  equal(true, run.status ~= 'completed', run.status)
  equal(nil, report_of(run):find('### Step 1', 1, true))
end)

test('the file that the run is exported to is a notebook', function()
  start('process')
  vim.cmd('CodeInterp ask how many rows are there?')
  ended()
  vim.cmd('CodeInterp export notebook rows.ipynb')
  eventually('it is written', function()
    return vim.fn.filereadable('rows.ipynb') == 1
  end)
  local notebook = vim.json.decode(table.concat(vim.fn.readfile('rows.ipynb'), '\n'))
  equal(4, notebook.nbformat)
end)

test('the plugin that the binary carries works as the help says', function()
  local written = vim.system({ vim.env.CODEINTERP_BIN, 'editor', 'nvim' }, { text = true }):wait()
  equal(0, written.code, written.stderr)
  local folder = vim.trim(written.stdout)
  local source = sales()
  local result = vim
    .system({
      vim.v.progpath,
      '--headless',
      '--clean',
      '-n',
      '--cmd',
      'set runtimepath^=' .. folder,
      '-c',
      "lua vim.lsp.enable('codeinterp')",
      '-c',
      'edit ' .. vim.fn.fnameescape(source),
      '-c',
      'lua vim.wait(10000, function() return #vim.lsp.get_clients({ bufnr = 0 }) == 1 end, 10)',
      '-c',
      'lua io.stdout:write(vim.lsp.get_clients({ bufnr = 0 })[1].server_info.version)',
      '-c',
      'help :CodeInterp',
      '-c',
      'qall!',
    }, { text = true })
    :wait()
  equal(0, result.code)
  contains(result.stdout, require('codeinterp.client').installed().version or '0.')
  equal('', vim.trim(result.stderr))
end)
