--- Settings: the defaults, `vim.g.codeinterp` and `setup{}`, in this order.
--- May be loaded by anything; loads nothing of the plugin.
local M = {}

---@alias codeinterp.Layout 'split'|'vsplit'|'tab'|'float'|'none'

---@class codeinterp.ReportConfig
---@field layout codeinterp.Layout Where a report opens; `none` leaves that to `:CodeInterp report`.
---@field size number Height or width of the window: below 1 a share of the editor, else lines or columns.
---@field focus boolean Move the cursor into the report when it opens.
---@field folded boolean Open reports with their steps folded.

---@class codeinterp.HintsConfig
---@field enabled boolean Draw results on the lines that were asked about.
---@field position 'eol'|'right_align'|'below' Where on the line.
---@field prefix string What stands before a result.

---@class codeinterp.ChartConfig
---@field backend 'auto'|'snacks'|'image.nvim'|'external' What shows a chart.

---@class codeinterp.Config
---@field cmd string[]? The server's command line; the default is `codeinterp lsp`.
---@field filetypes string[] File types that the server is attached to.
---@field cells boolean Attach to Python and Markdown too, for their cells.
---@field report codeinterp.ReportConfig
---@field hints codeinterp.HintsConfig
---@field chart codeinterp.ChartConfig
---@field max_bytes integer Files larger than this get no server by themselves.
---@field codelens boolean Show code lenses that run an analysis.
---@field notify boolean Say by `vim.notify` when a run ends.
---@field question string The question offered by `:CodeInterp analyze`.
---@field timeout_ms integer How long a buffer waits for its text.
---@field settings table<string, any> The server's own settings, see |codeinterp-server-settings|.

---@type codeinterp.Config
M.defaults = {
  cmd = nil,
  filetypes = {
    'csv',
    'tsv',
    'json',
    'jsonl',
    -- what plugins for tables make of csv
    'csv_semicolon',
    'csv_pipe',
    'csv_whitespace',
    'rfc_csv',
    'rfc_semicolon',
  },
  cells = false,
  max_bytes = 64 * 1024 * 1024,
  report = { layout = 'vsplit', size = 0.5, focus = false, folded = false },
  hints = { enabled = true, position = 'eol', prefix = '» ' },
  chart = { backend = 'auto' },
  codelens = true,
  notify = true,
  question = 'What is in this data, and what stands out? Draw the charts that show it.',
  timeout_ms = 5000,
  settings = {},
}

--- Values a setting is limited to.
---@type table<string, string[]>
local choices = {
  ['report.layout'] = { 'split', 'vsplit', 'tab', 'float', 'none' },
  ['hints.position'] = { 'eol', 'right_align', 'below' },
  ['chart.backend'] = { 'auto', 'snacks', 'image.nvim', 'external' },
}

---@type table<string, any>
local from_setup = {}
---@type codeinterp.Config?
local resolved
---@type string[]
local problems = {}

--- Takes from `given` what is of the right kind, and notes what is not.
---@param defaults table<string, any>
---@param given table<string, any>
---@param path string
---@param into string[] problems found
---@return table<string, any>
local function merge(defaults, given, path, into)
  local result = vim.deepcopy(defaults)
  for key, value in pairs(given) do
    local name = path .. tostring(key)
    local default = defaults[key]
    local expected = name == 'cmd' and 'table' or type(default)
    if default == nil and name ~= 'cmd' then
      table.insert(into, ('`%s` is not a setting'):format(name))
    elseif type(value) ~= expected then
      table.insert(into, ('`%s` is a %s and should be a %s'):format(name, type(value), expected))
    elseif choices[name] and not vim.list_contains(choices[name], value) then
      local allowed = table.concat(choices[name], ', ')
      table.insert(into, ('`%s` is %s and should be one of: %s'):format(name, vim.inspect(value), allowed))
    elseif name == 'settings' or name == 'cmd' or name == 'filetypes' then
      result[key] = vim.deepcopy(value)
    elseif expected == 'table' then
      result[key] = merge(default, value, name .. '.', into)
    else
      result[key] = value
    end
  end
  return result
end

--- The settings in force. A setting of the wrong kind counts as not set; `problems()` names it.
---@return codeinterp.Config
function M.get()
  if resolved then
    return resolved
  end
  local found = {} ---@type string[]
  local result = M.defaults ---@type table<string, any>
  local global = vim.g.codeinterp
  if type(global) == 'function' then
    global = global()
  end
  for _, given in ipairs({ global or {}, from_setup }) do
    if type(given) == 'table' then
      result = merge(result, given, '', found)
    else
      table.insert(found, ('`vim.g.codeinterp` is a %s and should be a table'):format(type(given)))
    end
  end
  ---@cast result codeinterp.Config
  resolved, problems = result, found
  return result
end

--- What is wrong with the settings, one sentence each.
---@return string[]
function M.problems()
  M.get()
  return problems
end

--- Settings that win over `vim.g.codeinterp`.
---@param options table<string, any>?
function M.set(options)
  from_setup = options or {}
  M.reload()
end

--- Reads the settings again when they are next asked for.
function M.reload()
  resolved = nil
  -- Has Neovim read `lsp/codeinterp.lua` again: its list of file types comes from here.
  vim.lsp.config('codeinterp', {})
end

--- The file types that the server is attached to.
---@return string[]
function M.filetypes()
  local config = M.get()
  local filetypes = vim.deepcopy(config.filetypes)
  if config.cells then
    vim.list_extend(filetypes, { 'python', 'markdown' })
  end
  return filetypes
end

--- What the server is told when it starts: the user's settings and what this client can do.
---@param given table<string, any>? from `init_options` of `vim.lsp.config`
---@return table<string, any>
function M.initialization_options(given)
  local own = { virtualDocuments = true, runEvents = true, cells = M.get().cells }
  return vim.tbl_deep_extend('force', {}, M.get().settings, given or {}, own) --[[@as table<string, any>]]
end

return M
