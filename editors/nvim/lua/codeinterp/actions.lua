--- Starting runs and opening their reports: shared by the command, the lenses and the code actions.
local client = require('codeinterp.client')
local runs = require('codeinterp.runs')
local ui = require('codeinterp.ui')
local uris = require('codeinterp.uri')

local M = {}

--- Commands that can do nothing without a question.
---@type table<string, boolean>
local NEEDS_QUESTION = { askSelection = true, followUp = true }

---@param server vim.lsp.Client
---@param command string
---@param argument table<string, any>
local function execute(server, command, argument)
  client.execute(server, command, argument, function(started)
    if type(started) ~= 'table' or type(started.run) ~= 'string' then
      ui.error(('the language server did not start a run for `%s`'):format(command))
      return
    end
    -- The events of a short run may be here before this answer.
    runs.note({
      run = started.run,
      document = started.document,
      client_id = server.id,
      question = argument.question,
      uri = argument.uri or (runs.get(argument.run) or {}).uri,
    })
    require('codeinterp.report').open(started.document)
  end)
end

--- Has the server start a run, and opens its report.
---@param server vim.lsp.Client
---@param command string one of `analyzeFile`, `askSelection`, `runSelection`, `followUp`, `rerun`
---@param argument table<string, any>
function M.start(server, command, argument)
  if NEEDS_QUESTION[command] and not argument.question then
    ui.input({ prompt = 'Question: ' }, function(question)
      execute(server, command, vim.tbl_extend('force', argument, { question = question }))
    end)
  else
    execute(server, command, argument)
  end
end

--- Opens the report of a run, whatever the layout says about opening by itself.
---@param run string?
---@param options { focus?: boolean }
function M.open_report(run, options)
  if not run then
    ui.notify('Nothing has been asked yet; `:CodeInterp runs` lists earlier runs')
    return
  end
  local known = runs.get(run)
  local document = known and known.document ~= '' and known.document or uris.document(run, 'report.md')
  require('codeinterp.report').open(document, { focus = options.focus, force = true })
end

return M
