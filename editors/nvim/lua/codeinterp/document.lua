--- Buffers of the server's virtual documents: filled when they are read, and brought up to date while a run
--- streams, in place, so that cursors, folds and marks stay where they are.
local client = require('codeinterp.client')
local config = require('codeinterp.config')
local ui = require('codeinterp.ui')
local uris = require('codeinterp.uri')

local M = {}

local METHOD = 'workspace/textDocumentContent'

--- Longest time to be late with news about a document that changes all the time, in milliseconds.
local REFRESH_DELAY_MS = 50

--- Buffers whose text is being asked for; `again` when there was news meanwhile.
---@type table<integer, { again: boolean }>
local refreshing = {}

--- The buffer of a document, if there is one.
---@param uri string
---@return integer?
function M.buffer(uri)
  local name = uris.buffer_name(uri)
  for _, bufnr in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_get_name(bufnr) == name then
      return bufnr
    end
  end
end

--- Text of a response, in lines, or why there is none.
---@param response { err: lsp.ResponseError?, result: any }?
---@return string[]?
---@return string? why
local function lines_of(response)
  if not response then
    return nil, 'the language server did not answer in time'
  end
  if response.err then
    return nil, client.message(response.err)
  end
  local text = type(response.result) == 'table' and response.result.text
  if type(text) ~= 'string' then
    return nil, 'the language server does not know this document'
  end
  local lines = vim.split(text:gsub('\r\n?', '\n'), '\n', { plain = true })
  if #lines > 1 and lines[#lines] == '' then
    table.remove(lines)
  end
  return lines
end

--- Puts `lines` into a buffer, touching only what is different.
---@param bufnr integer
---@param lines string[]
local function put(bufnr, lines)
  local old = vim.api.nvim_buf_get_lines(bufnr, 0, -1, false)
  local hunks = vim.diff(table.concat(old, '\n') .. '\n', table.concat(lines, '\n') .. '\n', {
    result_type = 'indices',
  })
  ---@cast hunks integer[][]
  vim.bo[bufnr].modifiable = true
  for i = #hunks, 1, -1 do
    local start, count, new_start, new_count = unpack(hunks[i])
    -- With nothing removed, `start` is the line before the place.
    local first = count == 0 and start or start - 1
    vim.api.nvim_buf_set_lines(
      bufnr,
      first,
      first + count,
      false,
      vim.list_slice(lines, new_start, new_start + new_count - 1)
    )
  end
  vim.bo[bufnr].modifiable = false
  vim.bo[bufnr].modified = false
end

---@param name string
---@return string
local function filetype_of(name)
  local parsed = uris.parse(name)
  if parsed and parsed.kind == 'report' then
    return 'markdown'
  elseif parsed and parsed.kind == 'step' then
    return 'python'
  end
  return parsed and vim.filetype.match({ filename = parsed.name }) or 'text'
end

--- Fills a buffer that is being read: the handler of `BufReadCmd`.
---@param bufnr integer
---@param name string
function M.read(bufnr, name)
  local uri = uris.from_buffer_name(name)
  if vim.api.nvim_buf_get_name(bufnr) ~= uris.buffer_name(uri) then
    vim.api.nvim_buf_set_name(bufnr, uris.buffer_name(uri))
  end
  local parsed = uris.parse(uri)
  local options = vim.bo[bufnr]
  options.buftype = 'nofile'
  options.swapfile = false
  options.undolevels = -1
  options.modeline = false

  local server = client.ready({ bufnr = bufnr, run = parsed and parsed.run })
  local lines, why ---@type string[]?, string?
  if server then
    lines, why = lines_of(server:request_sync(METHOD, { uri = uri }, config.get().timeout_ms, bufnr))
  else
    why = 'the language server is not running'
  end
  if why then
    ui.warn(('%s: %s'):format(uri, why))
  end
  put(bufnr, lines or { '(' .. ui.one_line(why) .. ')' })
  options.filetype = filetype_of(uri)
  if parsed and parsed.kind == 'report' then
    require('codeinterp.report').prepare(bufnr)
  end
end

---@param bufnr integer
local function fetch(bufnr)
  local uri = uris.from_buffer_name(vim.api.nvim_buf_get_name(bufnr))
  local parsed = uris.parse(uri)
  local server = client.find(bufnr, parsed and parsed.run)
  if not server then
    refreshing[bufnr] = nil
    return
  end
  refreshing[bufnr] = { again = false }
  local sent = server:request(METHOD, { uri = uri }, function(err, result)
    local state = refreshing[bufnr]
    refreshing[bufnr] = nil
    if not vim.api.nvim_buf_is_loaded(bufnr) then
      return
    end
    -- An error here changes nothing: what the buffer shows is still the last known text.
    local lines = lines_of({ err = err, result = result })
    if lines then
      put(bufnr, lines)
      if parsed and parsed.kind == 'report' then
        require('codeinterp.report').decorate(bufnr)
      end
      vim.api.nvim_exec_autocmds(
        'User',
        { pattern = 'CodeInterpDocument', modeline = false, data = { buf = bufnr } }
      )
    end
    if state and state.again then
      M.refresh(uri)
    end
  end, bufnr)
  if not sent then
    refreshing[bufnr] = nil
  end
end

--- Brings the buffer of a document up to date, if there is one. Any number of calls in a short time, and while
--- an answer is awaited, make one more request.
---@param uri string?
---@param at_once boolean? do not wait for more news: there will be none
function M.refresh(uri, at_once)
  if not uris.is_document(uri) then
    return
  end
  ---@cast uri string
  local bufnr = M.buffer(uri)
  if not bufnr or not vim.api.nvim_buf_is_loaded(bufnr) then
    return
  end
  if refreshing[bufnr] then
    refreshing[bufnr].again = true
    return
  end
  refreshing[bufnr] = { again = false }
  vim.defer_fn(function()
    if vim.api.nvim_buf_is_loaded(bufnr) then
      fetch(bufnr)
    else
      refreshing[bufnr] = nil
    end
  end, at_once and 0 or REFRESH_DELAY_MS)
end

return M
