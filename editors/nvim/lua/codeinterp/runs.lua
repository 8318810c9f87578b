--- What this editor knows about the runs: filled by the server's events, read by the statusline, by completion
--- and by every command that means "the latest run".
local config = require('codeinterp.config')
local ui = require('codeinterp.ui')

local M = {}

--- Runs remembered here; older ones are still found by `:CodeInterp runs`.
local REMEMBERED = 200

---@type table<codeinterp.Status, boolean>
local FINAL = { completed = true, incomplete = true, failed = true, cancelled = true }

---@type table<string, codeinterp.Run>
local by_id = {}
--- Ids, the oldest first.
---@type string[]
local order = {}

--- What the server says that it is doing, by client: building an image, waiting for a model.
---@type table<integer, string>
local doing = {}

vim.api.nvim_create_autocmd('LspProgress', {
  group = vim.api.nvim_create_augroup('codeinterp.runs', {}),
  callback = function(event)
    local value = event.data.params.value
    local client = vim.lsp.get_client_by_id(event.data.client_id)
    if client and client.name == 'codeinterp' and type(value) == 'table' then
      doing[client.id] = value.kind ~= 'end' and value.message or nil
      vim.cmd.redrawstatus({ bang = true })
    end
  end,
})

---@param status codeinterp.Status
---@return boolean
function M.is_final(status)
  return FINAL[status] == true
end

---@param run string?
---@return codeinterp.Run?
function M.get(run)
  return run and by_id[run] or nil
end

--- Takes note of a run, or of news about it.
---@param changes table<string, any> at least `run` and `client_id`
---@return codeinterp.Run
function M.note(changes)
  local run = by_id[changes.run]
  if not run then
    run = { run = changes.run, status = 'queued', document = '', client_id = changes.client_id }
    by_id[changes.run] = run
    table.insert(order, changes.run)
    if #order > REMEMBERED then
      by_id[table.remove(order, 1)] = nil
    end
  end
  for key, value in pairs(changes) do
    if value ~= vim.NIL then
      run[key] = value
    end
  end
  return run
end

--- Ids of the known runs, the latest first.
---@return string[]
function M.ids()
  local ids = {}
  for i = #order, 1, -1 do
    table.insert(ids, order[i])
  end
  return ids
end

--- Runs that have not ended, the oldest first.
---@return codeinterp.Run[]
function M.active()
  local active = {}
  for _, id in ipairs(order) do
    if not FINAL[by_id[id].status] then
      table.insert(active, by_id[id])
    end
  end
  return active
end

--- The run that a command without a run is about: the one whose document is shown, else the latest about this
--- file, be it one of an earlier server, else the latest of all.
---@param bufnr integer
---@return string?
function M.current(bufnr)
  local shown = require('codeinterp.uri').run_of_buffer(bufnr)
  if shown then
    return shown
  end
  local uri = vim.uri_from_bufnr(bufnr)
  for i = #order, 1, -1 do
    if by_id[order[i]].uri == uri then
      return order[i]
    end
  end
  return require('codeinterp.hints').newest_run(bufnr) or order[#order]
end

---@type table<codeinterp.Status, { text: string, level: integer }>
local ENDINGS = {
  completed = { text = 'done', level = vim.log.levels.INFO },
  incomplete = { text = 'stopped at a limit; the report has what is known', level = vim.log.levels.WARN },
  failed = { text = 'failed; the report says why', level = vim.log.levels.ERROR },
  cancelled = { text = 'cancelled', level = vim.log.levels.INFO },
}

---@param run codeinterp.Run
---@return string
local function title(run)
  local name = require('codeinterp.uri').short(run.uri)
  return name ~= '' and name or run.run
end

--- Takes an event of the server, and tells those who show something of the run.
---@param params codeinterp.RunChanged
---@param client_id integer
function M.changed(params, client_id)
  if type(params) ~= 'table' or type(params.run) ~= 'string' then
    return
  end
  local before = by_id[params.run] and by_id[params.run].status
  local run = M.note(vim.tbl_extend('force', params, { client_id = client_id }))
  require('codeinterp.document').refresh(run.document, FINAL[run.status])
  if FINAL[run.status] and before ~= run.status then
    require('codeinterp.attach').refresh(client_id)
    if config.get().notify then
      local ending = ENDINGS[run.status]
      ui.notify(('CodeInterp: %s: %s'):format(title(run), ending.text), ending.level)
    end
  end
  vim.api.nvim_exec_autocmds(
    'User',
    { pattern = 'CodeInterpRunChanged', modeline = false, data = vim.deepcopy(run) }
  )
  vim.cmd.redrawstatus({ bang = true })
end

--- Runs of a server that has ended have ended with it.
---@param client_id integer
function M.client_gone(client_id)
  for _, run in ipairs(M.active()) do
    if run.client_id == client_id then
      run.status = 'cancelled'
    end
  end
  vim.cmd.redrawstatus({ bang = true })
end

--- One short phrase about what runs, without a `%`, so that a statusline can't take it for an item.
---@return string
function M.status()
  local active = M.active()
  local run = active[#active]
  if not run then
    return ''
  end
  local step = tonumber(run.step) or 0
  local text = step > 0 and run.status ~= 'queued' and ('step %d'):format(step) or run.status
  if run.status == 'running' and doing[run.client_id] then
    text = ui.one_line(doing[run.client_id], 60)
  end
  local more = #active > 1 and (' (+%d)'):format(#active - 1) or ''
  return (('CodeInterp: %s %s%s'):format(ui.one_line(title(run), 40), text, more):gsub('%%', ''))
end

return M
