--- The language server: where its binary is, which client serves a buffer, and asking it for things.
local config = require('codeinterp.config')
local ui = require('codeinterp.ui')

local M = {}

--- Longest time that a server may take from its start to its first answer.
local START_TIMEOUT_MS = 10000

--- A folder with one of these is a workspace.
local ROOT_MARKERS = { '.git', '.hg', '.jj', 'pyproject.toml', 'Cargo.toml', 'package.json' }

--- JSON that holds a tool's settings, not data.
local SETTINGS_FILES = {
  '^%.',
  '^package%.json$',
  '^package%-lock%.json$',
  '^composer%.json$',
  '^tsconfig.*%.json$',
  '^jsconfig.*%.json$',
  'rc%.json$',
  '%.config%.json$',
  '%.schema%.json$',
}

--- Facts about the installation that `codeinterp editor nvim` leaves beside the plugin.
---@return { binary?: string, version?: string }
function M.installed()
  local ok, facts = pcall(require, 'codeinterp.installed')
  return ok and type(facts) == 'table' and facts or {}
end

--- The command line of the server. The binary on the `PATH` wins unless another one wrote this plugin.
---@return string[]
function M.command()
  local chosen = config.get().cmd
  if chosen then
    return chosen
  end
  local binary = M.installed().binary
  if binary and vim.fn.executable(binary) == 1 then
    return { binary, 'lsp' }
  end
  return { 'codeinterp', 'lsp' }
end

--- Starts the server: the `cmd` of `lsp/codeinterp.lua`.
---@param dispatchers vim.lsp.rpc.Dispatchers
---@param client_config vim.lsp.ClientConfig
---@return vim.lsp.rpc.PublicClient
function M.spawn(dispatchers, client_config)
  return vim.lsp.rpc.start(M.command(), dispatchers, {
    cwd = client_config.cmd_cwd,
    env = client_config.cmd_env,
    detached = client_config.detached,
  })
end

--- Why the server can't be started, or nil.
---@return string?
function M.missing()
  local set = vim.lsp.config['codeinterp'].cmd
  if type(set) == 'function' and set ~= M.spawn then
    return nil -- the user starts the server in a way of their own
  end
  local command = type(set) == 'table' and set or M.command()
  if vim.fn.executable(command[1]) == 1 then
    return nil
  end
  return ('`%s` is not an executable program. Install the codeinterp binary, or set `cmd` in '):format(
    command[1]
  ) .. '`vim.g.codeinterp`; `:checkhealth codeinterp` tells more.'
end

--- The workspace that a file belongs to.
---@param path string absolute
---@return string
function M.root(path)
  local marked = vim.fs.root(path, ROOT_MARKERS)
  if marked then
    return marked
  end
  local cwd = vim.fn.getcwd()
  local folder = vim.fs.dirname(path)
  return vim.fs.relpath(cwd, folder) and cwd or folder
end

---@param bufnr integer
---@return string
local function root_of_buffer(bufnr)
  local name = vim.api.nvim_buf_get_name(bufnr)
  if name == '' or vim.bo[bufnr].buftype ~= '' then
    return vim.fs.root(vim.fn.getcwd(), ROOT_MARKERS) or vim.fn.getcwd()
  end
  return M.root(name)
end

--- Is the text of a buffer too much to be sent with each opening? Its file is analysed all the same.
---@param bufnr integer
---@return boolean
function M.is_large(bufnr)
  local stat = vim.uv.fs_stat(vim.api.nvim_buf_get_name(bufnr))
  return stat ~= nil and stat.size > config.get().max_bytes
end

--- Decides for `vim.lsp.enable` whether a buffer gets the server.
---@param bufnr integer
---@param on_dir fun(root: string)
function M.decide_root(bufnr, on_dir)
  local name = vim.fs.basename(vim.api.nvim_buf_get_name(bufnr))
  if vim.bo[bufnr].filetype == 'json' then
    for _, pattern in ipairs(SETTINGS_FILES) do
      if name:match(pattern) then
        return
      end
    end
  end
  if M.is_large(bufnr) then
    return
  end
  local why = M.missing()
  if why then
    vim.notify_once('CodeInterp: ' .. why, vim.log.levels.WARN)
    return
  end
  on_dir(root_of_buffer(bufnr))
end

--- Every running client of ours.
---@return vim.lsp.Client[]
function M.all()
  return vim.tbl_filter(function(client)
    return not client:is_stopped()
  end, vim.lsp.get_clients({ name = 'codeinterp' }))
end

--- The running client that knows a run, else the one of the buffer, else any.
---@param bufnr integer
---@param run string?
---@return vim.lsp.Client?
function M.find(bufnr, run)
  local known = run and require('codeinterp.runs').get(run)
  local client = known and vim.lsp.get_client_by_id(known.client_id)
  if client and not client:is_stopped() then
    return client
  end
  local attached = vim.lsp.get_clients({ name = 'codeinterp', bufnr = bufnr })[1]
  return attached or M.all()[1]
end

---@param client_id integer
---@return vim.lsp.Client? ready
local function wait_until_ready(client_id)
  local client = vim.lsp.get_client_by_id(client_id)
  if not client then
    return nil
  end
  vim.wait(START_TIMEOUT_MS, function()
    return client.initialized or client:is_stopped()
  end, 10)
  return client.initialized and not client:is_stopped() and client or nil
end

--- A client that is ready, started when there is none. Says why when there can't be one.
---@param options { bufnr?: integer, attach?: boolean, path?: string, run?: string }
---@return vim.lsp.Client?
function M.ready(options)
  local bufnr = options.bufnr or vim.api.nvim_get_current_buf()
  if options.run then
    local client = M.find(bufnr, options.run)
    if client then
      return wait_until_ready(client.id)
    end
  end
  local why = M.missing()
  if why then
    ui.error(why)
    return nil
  end
  local start = vim.deepcopy(vim.lsp.config['codeinterp']) --[[@as vim.lsp.Config]]
  start.root_dir = options.path and M.root(options.path) or root_of_buffer(bufnr)
  local client_id = vim.lsp.start(start, {
    bufnr = bufnr,
    attach = options.attach == true and vim.bo[bufnr].buftype == '',
    reuse_client = start.reuse_client,
  })
  local client = client_id and wait_until_ready(client_id)
  if not client then
    ui.error('the language server did not start. `:CodeInterp log` shows what it said.')
  end
  return client
end

--- The message of a failed request.
---@param err lsp.ResponseError|string
---@return string
function M.message(err)
  if type(err) ~= 'table' then
    return tostring(err)
  end
  local hint = type(err.data) == 'table' and type(err.data.hint) == 'string' and err.data.hint or nil
  return hint and ('%s %s'):format(err.message, hint) or tostring(err.message)
end

---@param command string without the `codeinterp.` in front
---@param argument table<string, any>
---@return lsp.ExecuteCommandParams
local function params_of(command, argument)
  return {
    command = 'codeinterp.' .. command,
    arguments = { next(argument) and argument or vim.empty_dict() },
  }
end

--- Has the server execute a command. An error is shown, and `callback` is then not called.
---@param client vim.lsp.Client
---@param command string without the `codeinterp.` in front
---@param argument table<string, any>
---@param callback fun(result: any)?
function M.execute(client, command, argument, callback)
  client:request('workspace/executeCommand', params_of(command, argument), function(err, result)
    if err then
      ui.error(M.message(err))
    elseif callback then
      callback(result)
    end
  end)
end

--- The same, waiting for the answer: for completion and for buffers that are being filled.
---@param client vim.lsp.Client
---@param command string
---@param argument table<string, any>
---@param timeout_ms integer
---@return any result nil on an error and when time ran out
function M.execute_sync(client, command, argument, timeout_ms)
  local response = client:request_sync('workspace/executeCommand', params_of(command, argument), timeout_ms)
  return response and not response.err and response.result or nil
end

--- Notes that a server has ended. An end nobody asked for is said, since its kernel and variables are gone.
---@param code integer
---@param signal integer
---@param client_id integer
function M.exited(code, signal, client_id)
  vim.schedule(function()
    require('codeinterp.runs').client_gone(client_id)
    if code ~= 0 or (signal ~= 0 and signal ~= 15) then
      local cause = signal ~= 0 and ('signal %d'):format(signal) or ('exit code %d'):format(code)
      ui.warn(
        ('the language server ended (%s); variables are lost. `:CodeInterp log` shows what it said.'):format(
          cause
        )
      )
    end
  end)
end

return M
