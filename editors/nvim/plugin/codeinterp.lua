-- Runs at every start of Neovim: it defines the command, the mappings and the buffers of `codeinterp:`, and
-- loads nothing.
if vim.g.loaded_codeinterp then
  return
end
vim.g.loaded_codeinterp = true

if vim.fn.has('nvim-0.11') == 0 then
  vim.notify('codeinterp needs Neovim 0.11 or newer.', vim.log.levels.ERROR)
  return
end

vim.api.nvim_create_user_command('CodeInterp', function(opts)
  require('codeinterp.command').run(opts)
end, {
  nargs = '*',
  range = true,
  bang = true,
  desc = 'Analyse data with Python in a sandbox',
  complete = function(lead, line, position)
    return require('codeinterp.command').complete(lead, line, position)
  end,
})

vim.api.nvim_create_autocmd('BufReadCmd', {
  group = vim.api.nvim_create_augroup('codeinterp.document', {}),
  pattern = { 'codeinterp:/*', '*/codeinterp:/*' },
  desc = 'Fill a codeinterp: buffer from the language server',
  callback = function(event)
    require('codeinterp.document').read(event.buf, event.match)
  end,
})

for name, highlight in pairs({
  CodeInterpHint = 'LspInlayHint',
  CodeInterpHintLink = 'Special',
}) do
  vim.api.nvim_set_hl(0, name, { link = highlight, default = true })
end

---@param modes string|string[]
---@param name string
---@param right string|function
---@param desc string
local function plug(modes, name, right, desc)
  vim.keymap.set(modes, ('<Plug>(codeinterp-%s)'):format(name), right, { desc = 'CodeInterp: ' .. desc })
end

plug('n', 'analyze', '<Cmd>CodeInterp analyze<CR>', 'analyse this file')
plug('n', 'ask', '<Cmd>CodeInterp ask<CR>', 'ask about this file')
-- `:` and not `<Cmd>` in visual mode: only leaving it sets the marks of the selection.
plug('x', 'ask', ':CodeInterp ask<CR>', 'ask about the selection')
plug('n', 'run', '<Cmd>CodeInterp run<CR>', 'run the cell under the cursor')
plug('x', 'run', ':CodeInterp run<CR>', 'run the selection')
plug('n', 'followup', '<Cmd>CodeInterp followup<CR>', 'ask a follow-up question')
plug('n', 'rerun', '<Cmd>CodeInterp rerun<CR>', 'run the code again on the data as it is now')
plug('n', 'cancel', '<Cmd>CodeInterp cancel<CR>', 'cancel the run')
plug('n', 'report', '<Cmd>CodeInterp! report<CR>', 'go to the report')
plug('n', 'chart', '<Cmd>CodeInterp chart<CR>', 'open the chart of this line')
plug('n', 'charts', '<Cmd>CodeInterp charts<CR>', 'choose a chart')
plug('n', 'runs', '<Cmd>CodeInterp runs<CR>', 'choose an earlier run')
plug('n', 'variables', '<Cmd>CodeInterp variables<CR>', 'list the variables of the kernel')
plug('n', 'lens', function()
  vim.lsp.codelens.run()
end, 'run the code lens of this line')
plug('n', 'open', function()
  require('codeinterp.report').follow()
end, 'open what the cursor is on in a report')
