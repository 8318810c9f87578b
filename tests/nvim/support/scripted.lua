--- A language server inside of Neovim that answers as a test tells it to. For the protocol on the wire and for
--- what the real server does there are the specs that start the real binary.
local M = {}

--- Requests that the client has not seen the answer of yet.
M.pending = 0

---@class Scripted
---@field received { method: string, params: any }[] requests and notifications, in order
---@field documents table<string, string> text of the virtual documents, by URI
---@field runs table[] what `codeinterp.listRuns` answers
---@field hints lsp.InlayHint[]
---@field lenses lsp.CodeLens[]
---@field commands table<string, fun(argument: table): any, table?> answers of commands: result, or nil and an error
---@field silent table<string, boolean> methods that are not answered
---@field dispatchers vim.lsp.rpc.Dispatchers
---@field client_id integer
local Scripted = {}
Scripted.__index = Scripted

local CAPABILITIES = {
  positionEncoding = 'utf-16',
  textDocumentSync = { openClose = true, change = 2 },
  inlayHintProvider = true,
  codeLensProvider = { resolveProvider = false },
  executeCommandProvider = { commands = {} },
  workspace = { textDocumentContent = { schemes = { 'codeinterp' } } },
}

--- Parameters of what was received by a method, or of a command, in order.
---@param method string
---@return any[]
function Scripted:sent(method)
  local found = {}
  for _, message in ipairs(self.received) do
    if message.method == method then
      table.insert(found, message.params == nil and vim.NIL or message.params)
    elseif
      message.method == 'workspace/executeCommand' and message.params.command == 'codeinterp.' .. method
    then
      table.insert(found, message.params.arguments[1])
    end
  end
  return found
end

--- Sends a notification to the client.
---@param method string
---@param params any
function Scripted:notify(method, params)
  self.dispatchers.notification(method, params)
end

--- Sends a request to the client and returns its answer.
---@param method string
---@param params any
---@return any
function Scripted:request(method, params)
  return (self.dispatchers.server_request(method, params))
end

--- Tells the client that a run has changed, as the real server does.
---@param run string
---@param status string
---@param more table?
function Scripted:run_changed(run, status, more)
  self:notify(
    'codeinterp/runChanged',
    vim.tbl_extend('force', {
      run = run,
      status = status,
      step = 1,
      uri = vim.NIL,
      document = ('codeinterp:/runs/%s/report.md'):format(run),
    }, more or {})
  )
end

---@param method string
---@param params any
---@return any result
---@return table? err
function Scripted:answer(method, params)
  if method == 'initialize' then
    return { capabilities = self.capabilities, serverInfo = { name = 'codeinterp', version = '0.1.0' } }
  elseif method == 'workspace/textDocumentContent' then
    local text = self.documents[params.uri]
    if text then
      return { text = text }
    end
    return nil, { code = -32602, message = 'there is no such document' }
  elseif method == 'textDocument/inlayHint' then
    return vim.deepcopy(self.hints)
  elseif method == 'textDocument/codeLens' then
    return vim.deepcopy(self.lenses)
  elseif method == 'workspace/executeCommand' then
    local name = params.command:gsub('^codeinterp%.', '')
    local command = self.commands[name]
    if command then
      return command(params.arguments[1])
    end
    return nil, { code = -32601, message = 'unknown command ' .. name }
  end
  return vim.NIL
end

---@param run string
---@return fun(): table
local function starts(run)
  return function()
    return { run = run, document = ('codeinterp:/runs/%s/report.md'):format(run) }
  end
end

--- A server whose first run is `r1`, with a report of one line.
---@param fields table?
---@return Scripted
function M.new(fields)
  local self = setmetatable({
    received = {},
    capabilities = CAPABILITIES,
    documents = { ['codeinterp:/runs/r1/report.md'] = '# Report\n' },
    runs = {},
    hints = {},
    lenses = {},
    silent = {},
    commands = {},
  }, Scripted)
  for _, name in ipairs({ 'analyzeFile', 'askSelection', 'runSelection', 'followUp', 'rerun' }) do
    self.commands[name] = starts('r1')
  end
  self.commands.listRuns = function()
    return self.runs
  end
  self.commands.cancel = function(argument)
    return { cancelled = { argument.run } }
  end
  for key, value in pairs(fields or {}) do
    self[key] = value
  end
  return self
end

--- Makes this the server that the plugin starts, as a user would.
---@return Scripted
function Scripted:serve()
  vim.lsp.config('codeinterp', {
    cmd = function(dispatchers)
      self.dispatchers = dispatchers
      local closing, last = false, 0
      local function stop()
        if not closing then
          closing = true
          dispatchers.on_exit(0, 0)
        end
      end
      return {
        request = function(method, params, callback, notify_reply)
          last = last + 1
          local id = last
          table.insert(self.received, { method = method, params = vim.deepcopy(params) })
          if not self.silent[method] then
            M.pending = M.pending + 1
            vim.schedule(function()
              if notify_reply then
                notify_reply(id)
              end
              local result, err = self:answer(method, params)
              local ok, why = pcall(callback, err, result)
              M.pending = M.pending - 1
              if not ok then
                table.insert(require('harness').errors, why)
              end
            end)
          end
          return true, id
        end,
        notify = function(method, params)
          table.insert(self.received, { method = method, params = vim.deepcopy(params) })
          if method == 'exit' then
            stop()
          end
          return true
        end,
        is_closing = function()
          return closing
        end,
        terminate = stop,
      }
    end,
  })
  vim.lsp.enable('codeinterp')
  return self
end

--- Opens a file and waits until the server is attached to it.
---@param path string
---@return integer bufnr
function M.open(path)
  vim.cmd.edit(vim.fn.fnameescape(path))
  local bufnr = vim.api.nvim_get_current_buf()
  require('harness').eventually('the server is attached', function()
    local client = vim.lsp.get_clients({ name = 'codeinterp', bufnr = bufnr })[1]
    return client and client.attached_buffers[bufnr]
  end)
  return bufnr
end

return M
