--- Subcommands that start runs and end them.
local actions = require('codeinterp.actions')
local client = require('codeinterp.client')
local config = require('codeinterp.config')
local runs = require('codeinterp.runs')
local selection = require('codeinterp.selection')
local ui = require('codeinterp.ui')
local uris = require('codeinterp.uri')

local M = {}

--- Extensions of data files: true for text, false for formats whose buffer is not what is in the file.
---@type table<string, boolean>
local DATA = {
  csv = true,
  tsv = true,
  json = true,
  jsonl = true,
  xlsx = false,
  xls = false,
  parquet = false,
}

--- Most files offered, and most folders deep that they are looked for.
local OFFERED, DEEP = 200, 4

--- Whether a name is that of a data file, and then whether its text is in its buffer.
---@param name string
---@return boolean? text
local function data_text(name)
  return DATA[(name:match('%.(%w+)$') or ''):lower()]
end

---@param path string
---@return string absolute
local function absolute(path)
  return vim.fs.normalize(vim.fs.abspath(path))
end

--- Does the buffer show a file that can be asked about?
---@param bufnr integer
---@return boolean
local function has_file(bufnr)
  return vim.bo[bufnr].buftype == '' and vim.api.nvim_buf_get_name(bufnr) ~= ''
end

--- Does the buffer belong to a data file, though it may show something else, as plugins for archives do?
---@param bufnr integer
---@return boolean
local function has_data_file(bufnr)
  local name = vim.api.nvim_buf_get_name(bufnr)
  return data_text(name) ~= nil and vim.fn.filereadable(name) == 1
end

--- Is the file of a buffer analysed as it is on the disk, since its text is not in the buffer, or is too long?
---@param bufnr integer
---@return boolean
local function is_read_from_disk(bufnr)
  local binary = has_data_file(bufnr) and data_text(vim.api.nvim_buf_get_name(bufnr)) == false
  return binary or (has_file(bufnr) and client.is_large(bufnr))
end

---@param callback fun(paths: string[])
local function choose_file(callback)
  local found = {} ---@type string[]
  for name, kind in
    vim.fs.dir('.', {
      depth = DEEP,
      skip = function(folder)
        return not vim.fs.basename(folder):match('^%.') and folder ~= 'node_modules' and folder ~= 'target'
      end,
    })
  do
    if kind == 'file' and data_text(name) ~= nil then
      table.insert(found, name)
      if #found == OFFERED then
        break
      end
    end
  end
  if #found == 0 then
    ui.warn('no data files here. Name one: `:CodeInterp analyze FILE`')
    return
  end
  table.sort(found)
  ui.select(found, {
    prompt = 'Analyse',
    always = true,
    format = function(item)
      return item
    end,
  }, function(choice)
    callback({ absolute(choice) })
  end)
end

---@param paths string[] absolute
---@param question string?
local function analyze_paths(paths, question)
  local bufnr = vim.fn.bufnr('^' .. vim.fn.escape(paths[1], '\\^$.*~[]{},?') .. '$')
  local open = bufnr > 0
    and vim.api.nvim_buf_is_loaded(bufnr)
    and data_text(paths[1]) ~= false
    and not client.is_large(bufnr)
  local server = client.ready({ bufnr = open and bufnr or nil, attach = open, path = paths[1] })
  if not server then
    return
  end
  local all = vim.tbl_map(vim.uri_from_fname, paths)
  actions.start(server, 'analyzeFile', {
    uri = all[1],
    files = #all > 1 and vim.list_slice(all, 2) or nil,
    question = question,
  })
end

---@param paths string[] absolute
---@param question string
---@param silent boolean do not show the question before it runs
local function analyze_with(paths, question, silent)
  if question ~= '' then
    analyze_paths(paths, question)
  elseif silent then
    analyze_paths(paths, config.get().question)
  else
    local name = #paths == 1 and vim.fs.basename(paths[1]) or ('%d files'):format(#paths)
    ui.input(
      { prompt = ('Question about %s: '):format(name), default = config.get().question },
      function(answer)
        analyze_paths(paths, answer)
      end
    )
  end
end

--- `analyze [FILE…] [QUESTION]`: words that name files are files, the rest is the question.
---@param call codeinterp.Call
function M.analyze(call)
  local paths = {} ---@type string[]
  local words = {} ---@type string[]
  for _, word in ipairs(call.fargs) do
    local path = absolute(word)
    if #words == 0 and vim.fn.filereadable(path) == 1 then
      table.insert(paths, path)
    elseif #words == 0 and data_text(word) ~= nil then
      ui.error(('there is no file `%s` in %s'):format(word, vim.fn.getcwd()))
      return
    else
      table.insert(words, word)
    end
  end
  local question = table.concat(words, ' ')
  local bufnr = vim.api.nvim_get_current_buf()
  if #paths > 0 then
    analyze_with(paths, question, call.bang)
  elseif has_file(bufnr) or has_data_file(bufnr) then
    analyze_with({ vim.api.nvim_buf_get_name(bufnr) }, question, call.bang)
  else
    choose_file(function(chosen)
      analyze_with(chosen, question, call.bang)
    end)
  end
end

--- Asks for a question unless there is one.
---@param given string
---@param about string
---@param callback fun(question: string)
local function with_question(given, about, callback)
  if given ~= '' then
    callback(given)
  else
    ui.input({ prompt = ('Question about %s: '):format(about) }, callback)
  end
end

--- `[RANGE]ask [QUESTION]`: about the selection, else about the whole file.
---@param call codeinterp.Call
function M.ask(call)
  local bufnr = vim.api.nvim_get_current_buf()
  if uris.run_of_buffer(bufnr) then
    M.followup(call)
    return
  elseif call.range == 0 and is_read_from_disk(bufnr) then
    with_question(call.args, uris.short(vim.uri_from_bufnr(bufnr)), function(question)
      analyze_paths({ vim.api.nvim_buf_get_name(bufnr) }, question)
    end)
    return
  elseif not has_file(bufnr) then
    ui.warn('this buffer has no file to ask about. Name one: `:CodeInterp analyze FILE`')
    return
  end
  local server = client.ready({ bufnr = bufnr, attach = true })
  if not server then
    return
  end
  local uri = vim.uri_from_bufnr(bufnr)
  -- The marks of the selection are read before the question: answering it may move them.
  local range = call.range > 0 and selection.of_call(bufnr, call, server.offset_encoding) or nil
  local about = range and 'the selection' or uris.short(uri)
  with_question(call.args, about, function(question)
    if range then
      actions.start(server, 'askSelection', { uri = uri, range = range, question = question })
    else
      actions.start(server, 'analyzeFile', { uri = uri, question = question })
    end
  end)
end

--- `[RANGE]run`: runs Python of the buffer, without a model.
---@param call codeinterp.Call
function M.run(call)
  local bufnr = vim.api.nvim_get_current_buf()
  if not has_file(bufnr) then
    ui.warn('this buffer has no file; write it first')
    return
  end
  local server = client.ready({ bufnr = bufnr, attach = true })
  if not server then
    return
  end
  local range ---@type lsp.Range
  if call.range > 0 then
    range = selection.of_call(bufnr, call, server.offset_encoding)
  elseif call.bang then
    range = selection.lines(bufnr, 1, vim.api.nvim_buf_line_count(bufnr), server.offset_encoding)
  else
    local first, last = selection.block(bufnr, vim.api.nvim_win_get_cursor(0)[1])
    if not first or not last then
      ui.warn("the cursor is in no Python cell. Select the code to run: `:'<,'>CodeInterp run`")
      return
    end
    range = selection.lines(bufnr, first, last, server.offset_encoding)
  end
  actions.start(server, 'runSelection', { uri = vim.uri_from_bufnr(bufnr), range = range })
end

---@param named string?
---@return string? run
---@return vim.lsp.Client? server
local function run_and_server(named)
  local run = named or runs.current(vim.api.nvim_get_current_buf())
  if not run then
    ui.notify('Nothing has been asked yet; `:CodeInterp runs` lists earlier runs')
    return nil
  end
  return run, client.ready({ run = run })
end

---@param call codeinterp.Call
function M.followup(call)
  local run, server = run_and_server()
  if run and server then
    with_question(call.args, 'this run', function(question)
      actions.start(server, 'followUp', { run = run, question = question })
    end)
  end
end

---@param call codeinterp.Call
function M.rerun(call)
  local run, server = run_and_server(call.fargs[1])
  if run and server then
    actions.start(server, 'rerun', { run = run })
  end
end

--- `cancel [RUN]`; with a bang all runs of all servers.
---@param call codeinterp.Call
function M.cancel(call)
  local named = call.fargs[1]
  local bufnr = vim.api.nvim_get_current_buf()
  local function cancel(server, argument)
    client.execute(server, 'cancel', argument, function(result)
      local cancelled = type(result) == 'table' and result.cancelled or {}
      if #cancelled == 0 then
        ui.notify('Nothing to cancel')
      end
    end)
  end
  if call.bang then
    for _, server in ipairs(client.all()) do
      cancel(server, {})
    end
    return
  end
  local current = runs.get(runs.current(bufnr))
  local run = named or (current and not runs.is_final(current.status) and current.run) or nil
  if not run then
    local active = runs.active()
    run = active[#active] and active[#active].run
  end
  local server = run and client.find(bufnr, run)
  if server then
    cancel(server, { run = run })
  else
    ui.notify('Nothing to cancel')
  end
end

return M
