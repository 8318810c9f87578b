--- `:checkhealth codeinterp`.
local M = {}

local health = vim.health

--- Longest time that `codeinterp doctor` may take.
local DOCTOR_TIMEOUT_MS = 30000

---@param arguments string[]
---@param timeout_ms integer
---@return vim.SystemCompleted?
local function run(arguments, timeout_ms)
  local ok, process = pcall(vim.system, arguments, { text = true, timeout = timeout_ms })
  return ok and process:wait() or nil
end

local function check_settings()
  health.start('Settings')
  local problems = require('codeinterp.config').problems()
  for _, problem in ipairs(problems) do
    health.error(problem, 'See :help codeinterp-settings')
  end
  if #problems == 0 then
    health.ok('every setting is of the right kind')
  end
  if vim.lsp.is_enabled('codeinterp') then
    health.ok('data files get the server by themselves')
  else
    health.info("data files get no server by themselves: vim.lsp.enable('codeinterp') is not called")
  end
end

---@return string? binary that can be started
local function check_binary()
  health.start('Server')
  local client = require('codeinterp.client')
  local missing = client.missing()
  if missing then
    health.error(missing, {
      'cargo install --path . in a clone of the project puts the binary into ~/.cargo/bin',
      "or name it: vim.g.codeinterp = { cmd = { '/path/to/codeinterp', 'lsp' } }",
    })
    return nil
  end
  local set = vim.lsp.config['codeinterp'].cmd
  local binary = (type(set) == 'table' and set or client.command())[1]
  local result = run({ binary, '--version' }, 5000)
  local version = result and result.code == 0 and (result.stdout or ''):match('(%d+%.%d+%.%d+%S*)')
  if not version then
    health.error(('`%s --version` did not work'):format(binary), 'Is it the codeinterp binary?')
    return nil
  end
  health.ok(('codeinterp %s is %s'):format(version, vim.fn.exepath(binary)))
  local installed = client.installed().version
  if installed and installed ~= version then
    health.warn(
      ('this plugin came with codeinterp %s'):format(installed),
      'Run `codeinterp editor nvim` again: it writes the plugin that fits the binary'
    )
  end
  return binary
end

local function check_clients()
  local clients = require('codeinterp.client').all()
  if #clients == 0 then
    health.info('not running; it starts with the first data file or question')
  end
  for _, client in ipairs(clients) do
    local buffers = vim.tbl_count(client.attached_buffers)
    health.ok(('running for %s, attached to %d buffers'):format(client.root_dir or 'no folder', buffers))
  end
end

--- What `codeinterp doctor` finds: whether code can run here, and each thing that it looked at.
---@param binary string
local function check_doctor(binary)
  health.start('Sandbox and model')
  local given = vim.lsp.config['codeinterp'].init_options --[[@as table<string, any>?]]
  local settings = vim.json.encode(require('codeinterp.config').initialization_options(given))
  local result = run({ binary, 'doctor', '--format', 'json', '--settings', settings }, DOCTOR_TIMEOUT_MS)
  local ok, diagnosis = pcall(vim.json.decode, result and result.stdout or '')
  if not ok or type(diagnosis) ~= 'table' or type(diagnosis.checks) ~= 'table' then
    health.warn('`codeinterp doctor` gave no answer', 'Run it in a terminal to see why')
    return
  end
  local one_line = require('codeinterp.ui').one_line
  if diagnosis.ready then
    health.ok(one_line(diagnosis.sandbox))
  else
    health.error('no sandbox works here: ' .. one_line(diagnosis.sandbox))
  end
  for _, check in ipairs(diagnosis.checks) do
    local text = ('%s, %s: %s'):format(one_line(check.area), one_line(check.name), one_line(check.detail))
    if check.ok == true then
      health.ok(text)
    else
      -- One backend of several may be missing without any harm.
      local say = diagnosis.ready and health.info or health.error
      say(text .. (check.hint ~= '' and ('\n' .. one_line(check.hint)) or ''))
    end
  end
end

local function check_editor()
  health.start('Editor')
  if vim.fn.has('nvim-0.11') == 1 then
    local version = vim.version() ---@type table
    health.ok(('Neovim %d.%d.%d'):format(version.major, version.minor, version.patch))
  else
    health.error('Neovim is too old', 'codeinterp needs 0.11 or newer')
  end
  if pcall(vim.treesitter.language.inspect, 'markdown') then
    health.ok('reports are highlighted by the markdown parser')
  else
    health.warn(
      'there is no markdown parser: reports are shown plainly',
      'Neovim brings it; is the installation whole?'
    )
  end
  local backend = require('codeinterp.images').inline_backend('chart.png')
  if backend then
    health.ok('charts are shown in Neovim by ' .. backend)
  else
    health.info(
      'charts are shown by the viewer of the system; snacks.nvim or image.nvim would show them here'
    )
  end
  local opener = vim.iter({ 'xdg-open', 'open', 'wslview', 'explorer.exe' }):find(function(name)
    return vim.fn.executable(name) == 1
  end)
  if opener then
    health.ok('vim.ui.open has a viewer: ' .. opener)
  elseif not backend then
    health.warn(
      'no viewer for charts was found',
      'Install xdg-utils, or snacks.nvim in a terminal with graphics'
    )
  end
end

--- Called by `:checkhealth`.
function M.check()
  check_editor()
  check_settings()
  local binary = check_binary()
  check_clients()
  if binary then
    check_doctor(binary)
  end
end

return M
