--- Candidates for the arguments of `:CodeInterp`. `words` are the arguments before the one being typed.
local artifacts = require('codeinterp.artifacts')
local runs = require('codeinterp.runs')

local M = {}

--- Formats that a run can be exported to.
M.FORMATS = { 'notebook', 'script', 'markdown' }

---@param items codeinterp.Artifact[]
---@return string[]
local function names(items)
  return vim.tbl_map(function(artifact)
    return artifact.name
  end, items)
end

---@return codeinterp.Artifact[]
local function current_artifacts()
  return artifacts.of_sync(runs.current(vim.api.nvim_get_current_buf()))
end

---@param lead string
---@return string[]
function M.files(lead)
  return vim.fn.getcompletion(vim.fn.fnameescape(lead), 'file')
end

---@return string[]
function M.runs()
  return runs.ids()
end

---@return string[]
function M.active_runs()
  return vim.tbl_map(function(run)
    return run.run
  end, runs.active())
end

---@return string[]
function M.charts()
  return names(vim.tbl_filter(artifacts.is_chart, current_artifacts()))
end

---@param lead string
---@param words string[]
---@return string[]
function M.export(lead, words)
  return #words == 0 and M.FORMATS or M.files(lead)
end

---@param lead string
---@param words string[]
---@return string[]
function M.save(lead, words)
  return #words == 0 and names(current_artifacts()) or M.files(lead)
end

---@return string[]
function M.variables()
  local client = require('codeinterp.client')
  local server = client.find(vim.api.nvim_get_current_buf())
  local listed = server and client.execute_sync(server, 'variables', {}, 500)
  local found = {}
  for _, variable in ipairs(type(listed) == 'table' and listed or {}) do
    table.insert(found, variable.name)
  end
  return found
end

return M
