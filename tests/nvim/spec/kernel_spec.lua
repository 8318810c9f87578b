local harness = require('harness')
local scripted = require('scripted')
local test, equal, contains, eventually = harness.test, harness.equal, harness.contains, harness.eventually

---@param commands table<string, fun(argument: table): any, table?>
---@return Scripted
local function start(commands)
  local server = scripted.new()
  server.commands = vim.tbl_extend('force', server.commands, commands)
  server:serve()
  scripted.open(harness.file('sales.csv', { 'a' }))
  return server
end

---@return string[]
local function float()
  eventually('a float is open', function()
    return vim.api.nvim_win_get_config(0).relative == 'editor'
  end)
  return harness.lines()
end

local VARIABLES = {
  { name = 'df', type = 'DataFrame', shape = { 3, 2 }, bytes = 1500, repr = '  month total\n0 Feb 10' },
  { name = 'n', type = 'int', repr = '5' },
}

test('variables are listed, and the value of one is shown', function()
  start({
    variables = function(argument)
      return argument.name and { VARIABLES[1] } or VARIABLES
    end,
  })
  vim.cmd('CodeInterp variables')
  local lines = float()
  contains(lines[2], 'df')
  contains(lines[2], '3 × 2')
  contains(lines[2], '1.5 kB')
  vim.cmd('2')
  vim.api.nvim_feedkeys('\r', 'xt', false)
  eventually('the value is shown', function()
    return vim.deep_equal({ '  month total', '0 Feb 10' }, harness.lines())
  end)
  vim.api.nvim_feedkeys('q', 'xt', false)
  equal(1, #vim.api.nvim_list_wins())
end)

test('the status shows version, model and sandboxes', function()
  start({
    status = function()
      return {
        version = '0.1.0',
        model = 'playbook',
        workspaces = {
          {
            uri = 'file:///tmp/shop',
            backend = 'process',
            state = 'running',
            kernel = 'idle',
            memory_bytes = 2e8,
            runs = 2,
          },
        },
      }
    end,
  })
  vim.cmd('CodeInterp status')
  local text = table.concat(float(), '\n')
  for _, part in ipairs({ '0.1.0', 'playbook', 'shop', 'process', 'idle', '200 MB' }) do
    contains(text, part)
  end
end)

test('restarting and stopping name the workspace, and say what is lost', function()
  local server = start({
    restartKernel = function()
      return vim.empty_dict()
    end,
    stopSandbox = function()
      return vim.empty_dict()
    end,
  })
  local uri = vim.uri_from_bufnr(0)
  vim.cmd('CodeInterp restart')
  eventually('it is told', function()
    return harness.last_message():find('variables are gone', 1, true)
  end)
  vim.cmd('CodeInterp stop')
  eventually('it is told', function()
    return harness.last_message():find('sandbox was stopped', 1, true)
  end)
  equal({ { uri = uri } }, server:sent('restartKernel'))
  equal({ { uri = uri } }, server:sent('stopSandbox'))
end)

test('a new server is attached where the old one was', function()
  local server = start({})
  local before = vim.lsp.get_clients({ bufnr = 0 })[1].id
  vim.cmd('CodeInterp! restart')
  local after = vim.lsp.get_clients({ bufnr = 0, name = 'codeinterp' })[1]
  equal(true, after ~= nil and after.id ~= before)
  equal(2, #server:sent('initialize'))
  equal(1, #server:sent('shutdown'))
end)

test('the log is opened', function()
  start({})
  vim.cmd('CodeInterp log')
  equal(vim.lsp.log.get_filename(), vim.api.nvim_buf_get_name(0))
end)

test('the health check tells about editor, settings, server and sandbox', function()
  vim.g.codeinterp = {
    cmd = { vim.env.CODEINTERP_BIN, 'lsp' },
    colour = 'red',
    settings = { sandbox = { backend = 'process' } },
  }
  vim.lsp.config('codeinterp', { cmd = vim.g.codeinterp.cmd })
  vim.cmd('checkhealth codeinterp')
  local text = table.concat(harness.lines(), '\n')
  for _, part in ipairs({ 'Editor', 'Settings', '`colour` is not a setting', 'Server', 'Sandbox and model' }) do
    contains(text, part)
  end
  contains(text, 'codeinterp 0.')
  contains(text, 'a confined local process, as the settings ask')
end)

test('the health check tells how to get a binary that is missing', function()
  vim.lsp.config('codeinterp', { cmd = { 'no-such-codeinterp' } })
  vim.cmd('checkhealth codeinterp')
  contains(harness.lines(), 'no-such-codeinterp')
  contains(harness.lines(), 'cargo install')
end)
