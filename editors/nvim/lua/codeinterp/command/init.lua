--- `:CodeInterp`: its subcommands and their completion. Each subcommand loads its module when it is used.
local ui = require('codeinterp.ui')

local M = {}

---@param module string below `codeinterp.command`
---@param name string
---@return fun(call: codeinterp.Call)
local function lazy(module, name)
  return function(call)
    require('codeinterp.command.' .. module)[name](call)
  end
end

---@param name string of a function in `codeinterp.command.complete`
---@return fun(lead: string, words: string[]): string[]
local function completed_by(name)
  return function(lead, words)
    local complete = require('codeinterp.command.complete')[name] --[[@as fun(lead: string, words: string[]): string[] ]]
    return complete(lead, words)
  end
end

---@type table<string, codeinterp.Subcommand>
M.subcommands = {
  analyze = { impl = lazy('ask', 'analyze'), complete = completed_by('files'), bang = true },
  ask = { impl = lazy('ask', 'ask'), range = true },
  run = { impl = lazy('ask', 'run'), range = true, bang = true },
  followup = { impl = lazy('ask', 'followup') },
  rerun = { impl = lazy('ask', 'rerun'), complete = completed_by('runs') },
  cancel = { impl = lazy('ask', 'cancel'), complete = completed_by('active_runs'), bang = true },
  report = { impl = lazy('results', 'report'), complete = completed_by('runs'), bang = true },
  charts = { impl = lazy('results', 'charts'), complete = completed_by('runs'), bang = true },
  chart = { impl = lazy('results', 'chart'), complete = completed_by('charts'), bang = true },
  export = { impl = lazy('results', 'export'), complete = completed_by('export'), bang = true },
  save = { impl = lazy('results', 'save'), complete = completed_by('save'), bang = true },
  runs = { impl = lazy('results', 'runs') },
  variables = { impl = lazy('kernel', 'variables'), complete = completed_by('variables') },
  restart = { impl = lazy('kernel', 'restart'), bang = true },
  stop = { impl = lazy('kernel', 'stop'), bang = true },
  status = { impl = lazy('kernel', 'status') },
  log = { impl = lazy('kernel', 'log') },
}

---@return string[]
local function names()
  local all = vim.tbl_keys(M.subcommands)
  table.sort(all)
  return all
end

---@param options vim.api.keyset.create_user_command.command_args
function M.run(options)
  local name = options.fargs[1]
  if not name then
    ui.select(names(), {
      prompt = 'CodeInterp',
      format = function(item)
        return item
      end,
    }, function(choice)
      M.run(vim.tbl_extend('force', options, { args = choice, fargs = { choice } }))
    end)
    return
  end
  local subcommand = M.subcommands[name]
  if not subcommand then
    ui.error(('there is no subcommand `%s`; there are %s'):format(name, table.concat(names(), ', ')))
    return
  end
  if options.range > 0 and not subcommand.range then
    ui.error(('`%s` takes no range'):format(name))
    return
  end
  if options.bang and not subcommand.bang then
    ui.error(('`%s` has no form with a bang'):format(name))
    return
  end
  subcommand.impl({
    args = vim.trim((options.args:gsub('^%s*%S+', '', 1))),
    fargs = vim.list_slice(options.fargs, 2),
    bang = options.bang,
    range = options.range,
    line1 = options.line1,
    line2 = options.line2,
  })
end

--- Candidates for the word before the cursor.
---@param lead string
---@param line string
---@param position integer
---@return string[]
function M.complete(lead, line, position)
  local typed = line:sub(1, position)
  -- What stands before the command is a range; a backslash keeps a space inside a word.
  local after = typed:match('CodeInterp!?%s+(.*)$')
  if not after then
    return {}
  end
  local words = {} ---@type string[]
  for word in (after:gsub('\\ ', '\0')):gmatch('%S+') do
    table.insert(words, (word:gsub('%z', ' ')))
  end
  if #words == 0 or (#words == 1 and not after:match('[^\\]%s$')) then
    return vim.tbl_filter(function(name)
      return vim.startswith(name, lead)
    end, names())
  end
  local subcommand = M.subcommands[words[1]]
  if not subcommand or not subcommand.complete then
    return {}
  end
  table.remove(words, 1)
  if lead ~= '' then
    table.remove(words)
  end
  -- Neovim filters nothing here and takes the candidates as they will stand on the command line.
  local plain = lead:gsub('\\(.)', '%1')
  local candidates = {}
  for _, candidate in ipairs(subcommand.complete(plain, words)) do
    if vim.startswith(candidate, plain) then
      table.insert(candidates, (candidate:gsub('([\\ ])', '\\%1')))
    end
  end
  return candidates
end

return M
