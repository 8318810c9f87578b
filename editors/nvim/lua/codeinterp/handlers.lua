--- What the server may ask of this editor, and the commands behind its lenses, hints and code actions.
---
--- Each handler loads what it needs when it is called: this table is built before the server starts.
local M = {}

---@type table<string, lsp.Handler>
M.handlers = {}

M.handlers['codeinterp/runChanged'] = function(_, params, context)
  require('codeinterp.runs').changed(params, context.client_id)
end

M.handlers['workspace/textDocumentContent/refresh'] = function(_, params)
  require('codeinterp.document').refresh(type(params) == 'table' and params.uri or nil)
  return vim.NIL
end

M.handlers['workspace/inlayHint/refresh'] = function(err, _, context)
  vim.lsp.inlay_hint.on_refresh(err, nil, context)
  require('codeinterp.attach').refresh(context.client_id)
  return vim.NIL
end

M.handlers['workspace/codeLens/refresh'] = function(_, _, context)
  require('codeinterp.attach').refresh(context.client_id)
  return vim.NIL
end

M.handlers['window/showMessage'] = function(_, params)
  local levels = { vim.log.levels.ERROR, vim.log.levels.WARN, vim.log.levels.INFO, vim.log.levels.DEBUG }
  require('codeinterp.ui').notify(
    'CodeInterp: ' .. tostring(params.message),
    levels[params.type] or vim.log.levels.INFO
  )
end

---@param uri string
---@return string? mime
local function image_type(uri)
  local extension = uri:match('%.(%a+)$')
  local types = { png = 'png', jpg = 'jpeg', jpeg = 'jpeg', gif = 'gif', webp = 'webp', svg = 'svg+xml' }
  local found = extension and types[extension:lower()]
  return found and 'image/' .. found or nil
end

M.handlers['window/showDocument'] = function(err, params, context)
  local uri = tostring(params.uri)
  if require('codeinterp.uri').is_document(uri) then
    require('codeinterp.report').open(uri, { focus = params.takeFocus or nil })
    return { success = true }
  end
  local image = uri:match('^file:') and image_type(uri)
  if image then
    require('codeinterp.images').show(vim.uri_to_fname(uri), { mime = image })
    return { success = true }
  end
  if params.external then
    -- A page that a cell has written, or an address: never opened without a question.
    local ui = require('codeinterp.ui')
    ui.confirm(('Open %s outside of Neovim?'):format(ui.one_line(uri, 120)), 'Open', function()
      vim.ui.open(uri:match('^file:') and vim.uri_to_fname(uri) or uri)
    end)
    return { success = true }
  end
  return vim.lsp.handlers['window/showDocument'](err, params, context)
end

---@type table<string, fun(command: lsp.Command, context: table)>
M.commands = {}

-- Commands that start a run come back here, so that its report opens and a missing question is asked for.
for _, name in ipairs({ 'analyzeFile', 'askSelection', 'runSelection', 'followUp', 'rerun' }) do
  M.commands['codeinterp.' .. name] = function(command, context)
    local client = vim.lsp.get_client_by_id(context.client_id)
    if client then
      require('codeinterp.actions').start(client, name, (command.arguments or {})[1] or {})
    end
  end
end

M.commands['codeinterp.openReport'] = function(command, context)
  local argument = (command.arguments or {})[1] or {}
  require('codeinterp.actions').open_report(
    argument.run or require('codeinterp.runs').current(context.bufnr or 0),
    {
      focus = true,
    }
  )
end

M.commands['codeinterp.openArtifact'] = function(command)
  local argument = (command.arguments or {})[1] or {}
  require('codeinterp.artifacts').open(argument.run, argument.name)
end

return M
