-- What `vim.lsp.enable('codeinterp')` starts. Everything that can be late is late: this file is read when the
-- first data file is opened.
local client = require('codeinterp.client')

---@type vim.lsp.Config
return {
  -- A function rather than a list: the settings may be set after this file was read.
  cmd = client.spawn,
  filetypes = require('codeinterp.config').filetypes(),
  root_dir = client.decide_root,
  -- Neovim has no virtual documents of its own; `BufReadCmd` and the refresh handler below supply them.
  capabilities = {
    workspace = {
      textDocumentContent = { dynamicRegistration = false },
      codeLens = { refreshSupport = true },
    },
  },
  before_init = function(params)
    params.initializationOptions =
      require('codeinterp.config').initialization_options(params.initializationOptions)
  end,
  on_init = function(started)
    started.settings = vim.tbl_deep_extend('keep', started.settings or {}, {
      codeinterp = require('codeinterp.config').get().settings,
    })
  end,
  on_attach = function(attached, bufnr)
    require('codeinterp.attach').buffer(attached, bufnr)
  end,
  on_exit = client.exited,
  handlers = require('codeinterp.handlers').handlers,
  commands = require('codeinterp.handlers').commands,
}
