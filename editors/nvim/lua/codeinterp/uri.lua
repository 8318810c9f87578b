--- Names of the server's virtual documents: `codeinterp:/runs/<run>/report.md`, `…/steps/<n>.py`,
--- `…/artifacts/<name>`.
local M = {}

---@class codeinterp.DocumentName
---@field run string
---@field kind 'report'|'step'|'artifact'
---@field name string path below the run, decoded

--- Is this a name or a URI of a virtual document?
---@param uri string?
---@return boolean
function M.is_document(uri)
  return type(uri) == 'string' and uri:match('^codeinterp:/') ~= nil
end

--- The URI as the server writes it: one slash after the scheme.
---@param uri string
---@return string
function M.canonical(uri)
  return (uri:gsub('^codeinterp:/+', 'codeinterp:/'))
end

--- The name a buffer gets. Neovim takes only names with `://` for URLs; any other it would make a path.
---@param uri string
---@return string
function M.buffer_name(uri)
  return (uri:gsub('^codeinterp:/+', 'codeinterp:///'))
end

--- The URI in a name that Neovim has taken for a relative path, such as `/home/me/codeinterp:/runs/…`.
---@param name string
---@return string
function M.from_buffer_name(name)
  return M.canonical(name:match('codeinterp:/.*$') or name)
end

---@param uri string?
---@return codeinterp.DocumentName?
function M.parse(uri)
  if type(uri) ~= 'string' then
    return nil
  end
  local run, rest = M.canonical(uri):match('^codeinterp:/runs/([^/]+)/(.+)$')
  if not run or not rest then
    return nil
  end
  local decoded = vim.uri_decode(rest)
  if rest == 'report.md' then
    return { run = run, kind = 'report', name = rest }
  elseif rest:match('^steps/%d+%.py$') then
    return { run = run, kind = 'step', name = rest }
  elseif rest:match('^artifacts/[^/]+$') then
    return { run = run, kind = 'artifact', name = decoded:sub(#'artifacts/' + 1) }
  end
  return nil
end

---@param run string
---@param path string below the run, not encoded
---@return string
function M.document(run, path)
  return ('codeinterp:/runs/%s/%s'):format(run, vim.uri_encode(path, 'rfc3986'):gsub('%%2F', '/'))
end

--- The run whose document a buffer shows.
---@param bufnr integer
---@return string?
function M.run_of_buffer(bufnr)
  local parsed = M.parse(vim.api.nvim_buf_get_name(bufnr))
  return parsed and parsed.run or nil
end

--- A short name for a file or document.
---@param uri string?
---@return string
function M.short(uri)
  if type(uri) ~= 'string' then
    return ''
  end
  return vim.fs.basename(vim.uri_decode(uri)) or ''
end

return M
