--- Subcommands about the kernel, the sandbox and the server.
local client = require('codeinterp.client')
local ui = require('codeinterp.ui')
local uris = require('codeinterp.uri')

local M = {}

--- How long a server may take to end by itself.
local STOP_TIMEOUT_MS = 3000

--- The workspace is told to the server by a file in it.
---@return table<string, any>
local function workspace_argument()
  local bufnr = vim.api.nvim_get_current_buf()
  local name = vim.api.nvim_buf_get_name(bufnr)
  return { uri = vim.bo[bufnr].buftype == '' and name ~= '' and vim.uri_from_bufnr(bufnr) or nil }
end

---@return vim.lsp.Client?
local function server_of_buffer()
  local bufnr = vim.api.nvim_get_current_buf()
  return client.find(bufnr, uris.run_of_buffer(bufnr))
end

---@param shape any
---@return string
local function shape_of(shape)
  if type(shape) == 'table' then
    return table.concat(vim.tbl_map(tostring, shape), ' × ')
  end
  return (shape == nil or shape == vim.NIL) and '' or ui.one_line(shape, 30)
end

---@param variable codeinterp.Variable
local function show_variable(variable)
  local lines = vim.split(variable.repr or '', '\n', { plain = true })
  for i, line in ipairs(lines) do
    -- One line at a time, so that the layout stays.
    local indent = line:match('^ *')
    lines[i] = indent .. ui.one_line(line, 400)
  end
  ui.float(lines, { title = ('%s: %s'):format(variable.name, variable.type), syntax = 'python' })
end

--- `variables [NAME]`: the kernel's variables, or the value of one.
---@param call codeinterp.Call
function M.variables(call)
  local server = server_of_buffer()
  if not server then
    ui.notify('No kernel runs: nothing has been asked yet')
    return
  end
  local argument = workspace_argument()
  argument.name = call.fargs[1]
  client.execute(server, 'variables', argument, function(listed)
    ---@cast listed codeinterp.Variable[]
    if type(listed) ~= 'table' or #listed == 0 then
      ui.notify(
        call.fargs[1] and ('There is no variable `%s`'):format(call.fargs[1]) or 'The kernel has no variables'
      )
      return
    end
    if call.fargs[1] then
      show_variable(listed[1])
      return
    end
    local rows = { { 'name', 'type', 'shape', 'size', 'value' } }
    for _, variable in ipairs(listed) do
      table.insert(rows, {
        ui.one_line(variable.name, 40),
        ui.one_line(variable.type, 40),
        shape_of(variable.shape),
        ui.size(variable.bytes),
        ui.one_line(variable.repr, 80),
      })
    end
    local bufnr = ui.float(ui.table(rows), { title = 'Variables' })
    for _, key in ipairs({ '<CR>', 'K' }) do
      vim.keymap.set('n', key, function()
        local variable = listed[vim.api.nvim_win_get_cursor(0)[1] - 1]
        if variable then
          vim.cmd.close()
          M.variables({
            fargs = { variable.name },
            args = variable.name,
            bang = false,
            range = 0,
            line1 = 1,
            line2 = 1,
          })
        end
      end, { buffer = bufnr, desc = 'Show the value' })
    end
  end)
end

--- Ends the servers and starts them again for the buffers that they were attached to.
local function restart_servers()
  local buffers = {} ---@type table<integer, true>
  local ending = client.all()
  for _, server in ipairs(ending) do
    buffers = vim.tbl_extend('force', buffers, server.attached_buffers)
    server:stop()
  end
  local function all_ended()
    return #vim.lsp.get_clients({ name = 'codeinterp' }) == 0
  end
  if not vim.wait(STOP_TIMEOUT_MS, all_ended, 10) then
    for _, server in ipairs(ending) do
      server:stop(true)
    end
    vim.wait(STOP_TIMEOUT_MS, all_ended, 10)
  end
  for bufnr in pairs(buffers) do
    if vim.api.nvim_buf_is_loaded(bufnr) then
      client.ready({ bufnr = bufnr, attach = true })
    end
  end
end

--- `restart`: a new kernel; with a bang a new server.
---@param call codeinterp.Call
function M.restart(call)
  local server = server_of_buffer()
  if call.bang then
    restart_servers()
  elseif server then
    client.execute(server, 'restartKernel', workspace_argument(), function()
      ui.notify('CodeInterp: the kernel was restarted; its variables are gone')
    end)
  else
    ui.notify('No kernel runs: nothing has been asked yet')
  end
end

--- `stop`: ends the sandbox; with a bang the server too.
---@param call codeinterp.Call
function M.stop(call)
  if call.bang then
    for _, server in ipairs(client.all()) do
      server:stop()
    end
    return
  end
  local server = server_of_buffer()
  if not server then
    ui.notify('No sandbox runs')
    return
  end
  client.execute(server, 'stopSandbox', workspace_argument(), function()
    ui.notify('CodeInterp: the sandbox was stopped; the next question starts a new one')
  end)
end

---@param status codeinterp.ServerStatus
---@return string[]
local function status_lines(status)
  local lines = {
    ('version  %s'):format(ui.one_line(status.version)),
    ('model    %s'):format(ui.one_line(status.model)),
    '',
  }
  local rows = { { 'workspace', 'backend', 'state', 'kernel', 'memory', 'cpu', 'runs' } }
  for _, workspace in ipairs(status.workspaces or {}) do
    local runs = workspace.runs
    table.insert(rows, {
      uris.short(workspace.uri),
      ui.one_line(workspace.backend, 20),
      ui.one_line(workspace.state, 20),
      ui.one_line(workspace.kernel, 20),
      ui.size(workspace.memory_bytes),
      type(workspace.cpu_percent) == 'number' and ('%.0f %%'):format(workspace.cpu_percent) or '',
      tostring(type(runs) == 'table' and #runs or runs or 0),
    })
  end
  if #rows > 1 then
    vim.list_extend(lines, ui.table(rows))
  else
    table.insert(lines, 'no workspace folder is open, and nothing was asked yet')
  end
  return lines
end

---@param _ codeinterp.Call
function M.status(_)
  local server = server_of_buffer() or client.ready({})
  if server then
    client.execute(server, 'status', {}, function(status)
      ui.float(status_lines(status), { title = 'CodeInterp' })
    end)
  end
end

--- `log`: what the server wrote on its error output, and Neovim about the connection.
---@param _ codeinterp.Call
function M.log(_)
  local path = vim.lsp.log.get_filename()
  vim.cmd.tabedit(vim.fn.fnameescape(path))
  vim.bo.readonly = true
  vim.cmd.normal({ 'G', bang = true })
end

return M
