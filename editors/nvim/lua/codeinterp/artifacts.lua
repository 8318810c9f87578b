--- Charts and other files that a run has made.
local client = require('codeinterp.client')
local ui = require('codeinterp.ui')
local uris = require('codeinterp.uri')

local M = {}

--- How long completion and image plugins wait for the server.
local QUICK_MS = 500

---@param artifact codeinterp.Artifact
---@return boolean
function M.is_chart(artifact)
  local mime = tostring(artifact.mime)
  return mime:match('^image/') ~= nil or mime:match('plotly') ~= nil or mime == 'text/html'
end

---@param listed any the answer of `codeinterp.listRuns`
---@param run string
---@return codeinterp.Artifact[]
local function of_run(listed, run)
  for _, entry in ipairs(type(listed) == 'table' and listed or {}) do
    if entry.run == run then
      return entry.artifacts or {}
    end
  end
  return {}
end

--- The artifacts of a run.
---@param run string
---@param callback fun(artifacts: codeinterp.Artifact[])
function M.of(run, callback)
  local server = client.ready({ run = run })
  if server then
    client.execute(server, 'listRuns', {}, function(listed)
      callback(of_run(listed, run))
    end)
  end
end

--- The same at once, for completion: empty when the server is busy or not there.
---@param run string?
---@return codeinterp.Artifact[]
function M.of_sync(run)
  local server = run and client.find(vim.api.nvim_get_current_buf(), run)
  if not server or not run then
    return {}
  end
  return of_run(client.execute_sync(server, 'listRuns', {}, QUICK_MS), run)
end

---@param artifact codeinterp.Artifact
---@return string
function M.label(artifact)
  local step = artifact.step and (' (step %d)'):format(artifact.step) or ''
  return artifact.name .. step
end

---@param run string
---@param artifact codeinterp.Artifact
---@param external boolean?
local function show(run, artifact, external)
  local mime = tostring(artifact.mime)
  if not external and mime:match('^text/') and mime ~= 'text/html' then
    require('codeinterp.report').split(uris.document(run, 'artifacts/' .. artifact.name))
    return
  end
  require('codeinterp.images').show(artifact.path, { mime = mime, external = external })
end

--- Shows an artifact of a run by name.
---@param run string
---@param name string
---@param external boolean? leave it to the system's viewer
function M.open(run, name, external)
  M.of(run, function(artifacts)
    for _, artifact in ipairs(artifacts) do
      if artifact.name == name then
        show(run, artifact, external)
        return
      end
    end
    ui.error(('run %s has no artifact named %s'):format(run, ui.one_line(name, 80)))
  end)
end

--- Lets the user choose among the artifacts of a run, and shows the choice.
---@param run string
---@param options { external?: boolean, only?: fun(artifact: codeinterp.Artifact): boolean }
function M.choose(run, options)
  M.of(run, function(artifacts)
    local wanted = options.only and vim.tbl_filter(options.only, artifacts) or artifacts
    if #wanted == 0 then
      ui.notify('This run has drawn nothing (yet); `:CodeInterp charts RUN` is about another')
      return
    end
    ui.select(wanted, { prompt = 'Chart', format = M.label }, function(artifact)
      show(run, artifact, options.external)
    end)
  end)
end

---@param file string
---@param source string
---@return string?
function M.resolve_image(file, source)
  local shown = uris.parse(file)
  local target = shown and require('codeinterp.links').resolve(source, shown.run)
  if not target or target.kind ~= 'artifact' then
    return nil
  end
  for _, artifact in ipairs(M.of_sync(target.run)) do
    if artifact.name == target.name then
      return artifact.path
    end
  end
end

return M
