--- What a buffer gets when the server is attached to it: results on its lines, and code lenses.
local config = require('codeinterp.config')
local hints = require('codeinterp.hints')

local M = {}

local LENS = 'textDocument/codeLens'

--- Asks for the lenses of a buffer. Only ours are asked for: those of other servers are the user's own affair.
---@param client vim.lsp.Client
---@param bufnr integer
local function refresh_lenses(client, bufnr)
  if config.get().codelens and client:supports_method(LENS, bufnr) then
    client:request(
      LENS,
      { textDocument = { uri = vim.uri_from_bufnr(bufnr) } },
      vim.lsp.codelens.on_codelens,
      bufnr
    )
  end
end

---@param client vim.lsp.Client
---@param bufnr integer
function M.buffer(client, bufnr)
  hints.attach(client, bufnr)
  refresh_lenses(client, bufnr)
  local group = vim.api.nvim_create_augroup('codeinterp.attach.' .. bufnr, {})
  vim.api.nvim_create_autocmd('LspNotify', {
    group = group,
    buffer = bufnr,
    desc = 'Results follow the text',
    callback = function(event)
      if event.data.client_id == client.id and event.data.method == 'textDocument/didChange' then
        hints.refresh_later(bufnr)
      end
    end,
  })
  vim.api.nvim_create_autocmd({ 'BufWritePost', 'InsertLeave' }, {
    group = group,
    buffer = bufnr,
    desc = 'Lenses follow the text',
    callback = function()
      refresh_lenses(client, bufnr)
    end,
  })
  vim.api.nvim_create_autocmd('LspDetach', {
    group = group,
    buffer = bufnr,
    callback = function(event)
      if event.data.client_id == client.id then
        hints.detach(bufnr)
        vim.api.nvim_del_augroup_by_id(group)
      end
    end,
  })
end

--- Asks again for everything that is drawn in the buffers of a client.
---@param client_id integer
function M.refresh(client_id)
  local client = vim.lsp.get_client_by_id(client_id)
  for bufnr in pairs(client and client.attached_buffers or {}) do
    hints.refresh(bufnr)
    refresh_lenses(client, bufnr)
  end
end

return M
