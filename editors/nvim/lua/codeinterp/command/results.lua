--- Subcommands about what runs have brought: reports, charts, exports.
local actions = require('codeinterp.actions')
local artifacts = require('codeinterp.artifacts')
local client = require('codeinterp.client')
local complete = require('codeinterp.command.complete')
local hints = require('codeinterp.hints')
local links = require('codeinterp.links')
local runs = require('codeinterp.runs')
local ui = require('codeinterp.ui')
local uris = require('codeinterp.uri')

local M = {}

---@type table<string, string>
local EXTENSIONS = { notebook = '.ipynb', script = '.py', markdown = '.md' }

---@param named string?
---@return string?
local function run_or_say(named)
  local run = named or runs.current(vim.api.nvim_get_current_buf())
  if not run then
    ui.notify('Nothing has been asked yet; `:CodeInterp runs` lists earlier runs')
  end
  return run
end

---@param path string
---@return string absolute
local function absolute(path)
  return vim.fs.normalize(vim.fs.abspath(path))
end

--- `report [RUN]`; with a bang the cursor goes there.
---@param call codeinterp.Call
function M.report(call)
  local run = run_or_say(call.fargs[1])
  if run then
    actions.open_report(run, { focus = call.bang or nil })
  end
end

--- `charts [RUN]`: chooses among everything that a run has made.
---@param call codeinterp.Call
function M.charts(call)
  local run = run_or_say(call.fargs[1])
  if run then
    artifacts.choose(run, { external = call.bang })
  end
end

--- What `chart` without a name is about: the chart under the cursor of a report, or those in the hints of the line.
---@param bufnr integer
---@return { run: string, name: string }[]
local function charts_here(bufnr)
  local cursor = vim.api.nvim_win_get_cursor(0)
  local shown = uris.run_of_buffer(bufnr)
  if shown then
    local document = links.at(bufnr, shown, cursor[1], cursor[2])
    return document and document.kind == 'artifact' and { { run = shown, name = document.name } } or {}
  end
  local found = {}
  for _, command in ipairs(hints.commands(bufnr, cursor[1] - 1)) do
    local argument = (command.arguments or {})[1]
    if command.command == 'codeinterp.openArtifact' and type(argument) == 'table' then
      table.insert(found, { run = argument.run, name = argument.name })
    end
  end
  return found
end

--- `chart [NAME]`: the named one, else the one of this line, else one of the run's; with a bang outside of Neovim.
---@param call codeinterp.Call
function M.chart(call)
  local bufnr = vim.api.nvim_get_current_buf()
  if call.args ~= '' then
    local run = run_or_say()
    if run then
      artifacts.open(run, table.concat(call.fargs, ' '), call.bang)
    end
    return
  end
  local here = charts_here(bufnr)
  if #here > 0 then
    ui.select(here, {
      prompt = 'Chart',
      format = function(chart)
        return chart.name
      end,
    }, function(chart)
      artifacts.open(chart.run, chart.name, call.bang)
    end)
    return
  end
  local run = run_or_say()
  if run then
    artifacts.choose(run, { external = call.bang, only = artifacts.is_chart })
  end
end

--- `export [FORMAT [PATH]]`; with a bang a file that exists is replaced.
---@param call codeinterp.Call
function M.export(call)
  local run = run_or_say()
  local server = run and client.ready({ run = run })
  if not run or not server then
    return
  end
  local function export(format, path)
    client.execute(server, 'export', {
      run = run,
      to = format,
      path = absolute(path),
      overwrite = call.bang,
    }, function(result)
      ui.notify('CodeInterp: wrote ' .. tostring(result.path))
    end)
  end
  local function with_format(format)
    local path = call.fargs[2]
    if path then
      export(format, path)
      return
    end
    local known = runs.get(run)
    local stem = uris.short(known and known.uri):gsub('%.%w+$', '')
    ui.input({
      prompt = 'Export to: ',
      default = (stem ~= '' and stem or run) .. EXTENSIONS[format],
      completion = 'file',
    }, function(answer)
      export(format, answer)
    end)
  end
  local format = call.fargs[1]
  if not format then
    ui.select(complete.FORMATS, {
      prompt = 'Export as',
      format = function(item)
        return item
      end,
    }, with_format)
  elseif EXTENSIONS[format] then
    with_format(format)
  else
    ui.error(('`%s` is no format; there are %s'):format(format, table.concat(complete.FORMATS, ', ')))
  end
end

--- `save [NAME [PATH]]`: copies a chart or file of the run; with a bang a file that exists is replaced.
---@param call codeinterp.Call
function M.save(call)
  local run = run_or_say()
  local server = run and client.ready({ run = run })
  if not run or not server then
    return
  end
  local function save(name, to)
    client.execute(server, 'saveArtifact', {
      run = run,
      name = name,
      to = absolute(to),
      overwrite = call.bang,
    }, function(result)
      ui.notify('CodeInterp: wrote ' .. tostring(result.path))
    end)
  end
  local function with_name(name)
    local to = call.fargs[2]
    if to then
      save(name, to)
      return
    end
    ui.input({ prompt = 'Save as: ', default = vim.fs.basename(name), completion = 'file' }, function(answer)
      save(name, answer)
    end)
  end
  if call.fargs[1] then
    with_name(call.fargs[1])
    return
  end
  artifacts.of(run, function(all)
    if #all == 0 then
      ui.notify('This run has made no files')
      return
    end
    ui.select(all, { prompt = 'Save', format = artifacts.label }, function(artifact)
      with_name(artifact.name)
    end)
  end)
end

--- `runs`: earlier runs of all workspaces that are open, the latest first.
---@param _ codeinterp.Call
function M.runs(_)
  local server = client.ready({})
  if not server then
    return
  end
  client.execute(server, 'listRuns', {}, function(listed)
    if type(listed) ~= 'table' or #listed == 0 then
      ui.notify('No runs yet')
      return
    end
    ui.select(listed, {
      prompt = 'Runs',
      always = true,
      ---@param entry codeinterp.ListedRun
      format = function(entry)
        return ('%s  %s  %s'):format(entry.status, uris.short(entry.uri), ui.one_line(entry.question, 60))
      end,
    }, function(entry)
      runs.note({
        run = entry.run,
        status = entry.status,
        document = entry.document,
        uri = entry.uri,
        client_id = server.id,
      })
      actions.open_report(entry.run, { focus = true })
    end)
  end)
end

return M
