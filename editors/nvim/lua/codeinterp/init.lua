--- The functions of the plugin that are meant for a user's own configuration.
local M = {}

--- Optional: changes settings, like `vim.g.codeinterp` (see |codeinterp-settings|).
---@param options table<string, any>?
function M.setup(options)
  require('codeinterp.config').set(options)
end

--- What runs right now, for a statusline; empty when nothing does.
---
--- `%{v:lua.require'codeinterp'.status()}` shows it in 'statusline'.
---@return string
function M.status()
  return require('codeinterp.runs').status()
end

--- The file of an image in a report, for plugins that draw images inside Markdown.
---
--- Give it to snacks.nvim as `image.resolve`; it answers nil for everything that is not a report.
---@param file string name of the Markdown buffer
---@param source string what the image link says
---@return string? path
function M.resolve_image(file, source)
  return require('codeinterp.artifacts').resolve_image(file, source)
end

return M
