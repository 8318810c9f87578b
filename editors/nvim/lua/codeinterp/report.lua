--- Windows of reports, and what is special about their buffers: folds, mappings, following links.
local config = require('codeinterp.config')
local links = require('codeinterp.links')
local ui = require('codeinterp.ui')
local uris = require('codeinterp.uri')

local M = {}

--- Marks the window that reports share in a tab page.
local WINDOW_MARK = 'codeinterp_report'

local FOLDEXPR = "v:lua.require'codeinterp.report'.foldexpr(v:lnum)"

--- How far below its heading the summary of a step is looked for, in lines.
local SUMMARY_WITHIN = 40

local namespace = vim.api.nvim_create_namespace('codeinterp.report')

--- Steps of a report by buffer, computed once for each state of its text.
---@type table<integer, { tick: integer, steps: (integer|false)[] }>
local steps_of = {}

---@param bufnr integer
---@return (integer|false)[]
local function steps(bufnr)
  local tick = vim.api.nvim_buf_get_changedtick(bufnr)
  local known = steps_of[bufnr]
  if not known or known.tick ~= tick then
    known = { tick = tick, steps = links.steps(vim.api.nvim_buf_get_lines(bufnr, 0, -1, false)) }
    steps_of[bufnr] = known
  end
  return known.steps
end

--- 'foldexpr' of a report: one fold a step.
---@param lnum integer
---@return string
function M.foldexpr(lnum)
  local all = steps(vim.api.nvim_get_current_buf())
  local step = all[lnum]
  if not step then
    return '0'
  end
  return all[lnum - 1] ~= step and '>1' or '1'
end

--- 'foldtext' of a report.
---@return string
function M.foldtext()
  local title = vim.fn.getline(vim.v.foldstart):gsub('^#+%s*', '')
  -- How the step went stands in its summary, after what can be unfolded.
  for lnum = vim.v.foldstart + 1, math.min(vim.v.foldend, vim.v.foldstart + SUMMARY_WITHIN) do
    local outcome = vim.fn.getline(lnum):match('^<summary>.* · (.-)</summary>')
    if outcome then
      title = ('%s · %s'):format(title, outcome)
      break
    end
  end
  return ('▸ %s (%d lines)'):format(title, vim.v.foldend - vim.v.foldstart + 1)
end

--- Makes the text of a report read well: tags that only browsers understand and the backslashes of escapes are
--- concealed, and a chart says how it is opened.
---@param bufnr integer
function M.decorate(bufnr)
  vim.api.nvim_buf_clear_namespace(bufnr, namespace, 0, -1)
  local lines = vim.api.nvim_buf_get_lines(bufnr, 0, -1, false)
  local inside = links.in_code(lines)
  ---@param row integer
  ---@param first integer
  ---@param last integer
  local function conceal(row, first, last)
    vim.api.nvim_buf_set_extmark(bufnr, namespace, row, first, { end_col = last, conceal = '' })
  end
  for i, line in ipairs(lines) do
    local summary = not inside[i] and line:match('^<summary>(.*)</summary>$')
    if summary then
      conceal(i - 1, 0, #'<summary>')
      conceal(i - 1, #'<summary>' + #summary, #line)
    elseif not inside[i] and (line == '<details>' or line == '</details>') then
      vim.api.nvim_buf_set_extmark(bufnr, namespace, i - 1, 0, { conceal_lines = '' })
    elseif not inside[i] and line:match('^!%[') then
      vim.api.nvim_buf_set_extmark(bufnr, namespace, i - 1, 0, {
        virt_text = { { '[chart] ', 'CodeInterpHintLink' } },
        virt_text_pos = 'inline',
      })
    end
    if not inside[i] then
      -- A backslash before a mark of punctuation is Markdown's way to mean just that mark.
      local at = line:find('\\%p', 1)
      while at do
        conceal(i - 1, at - 1, at)
        at = line:find('\\%p', at + 2)
      end
    end
  end
end

--- Gives a window the options of a report, once: setting them anew computes all folds anew.
---@param window integer
local function dress(window)
  local options = vim.wo[window][0]
  if options.foldexpr == FOLDEXPR then
    return
  end
  options.wrap = true
  options.linebreak = true
  options.number = false
  options.relativenumber = false
  options.signcolumn = 'no'
  options.spell = false
  options.conceallevel = 2
  options.concealcursor = 'nc'
  options.foldexpr = FOLDEXPR
  options.foldmethod = 'expr'
  options.foldtext = "v:lua.require'codeinterp.report'.foldtext()"
  options.foldlevel = config.get().report.folded and 0 or 99
end

--- Gives the buffer of a report its mappings, and each window that shows it its options.
---@param bufnr integer
function M.prepare(bufnr)
  pcall(vim.treesitter.start, bufnr, 'markdown')
  M.decorate(bufnr)
  for _, key in ipairs({ '<CR>', 'K' }) do
    vim.keymap.set('n', key, M.follow, { buffer = bufnr, desc = 'CodeInterp: open chart or step' })
  end
  local group = vim.api.nvim_create_augroup('codeinterp.report.' .. bufnr, {})
  vim.api.nvim_create_autocmd('BufWinEnter', {
    group = group,
    buffer = bufnr,
    callback = function()
      dress(vim.api.nvim_get_current_win())
    end,
  })
  vim.api.nvim_create_autocmd('BufWipeout', {
    group = group,
    buffer = bufnr,
    callback = function()
      steps_of[bufnr] = nil
      vim.api.nvim_del_augroup_by_id(group)
    end,
  })
  for _, window in ipairs(vim.fn.win_findbuf(bufnr)) do
    dress(window)
  end
end

---@param share number
---@param whole integer
---@return integer
local function measure(share, whole)
  local size = share < 1 and math.floor(whole * share) or math.floor(share)
  return math.max(1, math.min(size, whole))
end

---@param bufnr integer
---@param layout codeinterp.Layout
---@return integer window
local function open_window(bufnr, layout)
  local size = config.get().report.size
  if layout == 'tab' then
    local before = vim.api.nvim_get_current_tabpage()
    vim.cmd('tab sbuffer ' .. bufnr)
    local window = vim.api.nvim_get_current_win()
    vim.api.nvim_set_current_tabpage(before)
    return window
  elseif layout == 'float' then
    local width = measure(0.8, vim.o.columns)
    local height = measure(0.8, vim.o.lines - 2)
    local window = vim.api.nvim_open_win(bufnr, false, {
      relative = 'editor',
      width = width,
      height = height,
      row = math.floor((vim.o.lines - height) / 2) - 1,
      col = math.floor((vim.o.columns - width) / 2),
      border = 'rounded',
    })
    vim.keymap.set('n', 'q', function()
      pcall(vim.api.nvim_win_close, window, false)
    end, { buffer = bufnr, desc = 'Close the report' })
    return window
  elseif layout == 'split' then
    return vim.api.nvim_open_win(bufnr, false, {
      split = 'below',
      win = 0,
      height = measure(size, vim.o.lines - 2),
    })
  end
  return vim.api.nvim_open_win(
    bufnr,
    false,
    { split = 'right', win = 0, width = measure(size, vim.o.columns) }
  )
end

--- The window of this tab page that reports are shown in.
---@param bufnr integer
---@return integer?
local function report_window(bufnr)
  local shared ---@type integer?
  for _, window in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
    if vim.api.nvim_win_get_buf(window) == bufnr then
      return window
    elseif
      vim.w[window][WINDOW_MARK]
      and uris.is_document(vim.api.nvim_buf_get_name(vim.api.nvim_win_get_buf(window)))
    then
      shared = window
    end
  end
  return shared
end

--- A window in another tab page that shows the buffer.
---@param bufnr integer
---@return integer?
local function window_elsewhere(bufnr)
  return vim.fn.win_findbuf(bufnr)[1]
end

--- Shows a report, or another document of a run, in the window that reports share. The cursor stays where it is
--- unless `focus` is set.
---@param document string URI
---@param options { focus?: boolean, force?: boolean }? `force` opens it even with the layout `none`
function M.open(document, options)
  options = options or {}
  local settings = config.get().report
  local focus = options.focus == nil and settings.focus or options.focus
  if settings.layout == 'none' and not options.force then
    return
  end
  local name = uris.is_document(document) and uris.buffer_name(document) or vim.uri_to_fname(document)
  local bufnr = vim.fn.bufadd(name)
  vim.bo[bufnr].buflisted = true
  vim.fn.bufload(bufnr)

  local window = report_window(bufnr) or (settings.layout == 'tab' and window_elsewhere(bufnr))
  if not window then
    window = open_window(bufnr, settings.layout)
    vim.w[window][WINDOW_MARK] = true
  elseif vim.api.nvim_win_get_buf(window) ~= bufnr then
    vim.api.nvim_win_set_buf(window, bufnr)
  end
  local parsed = uris.parse(document)
  if parsed and parsed.kind == 'report' then
    dress(window)
  end
  if focus then
    vim.api.nvim_set_current_win(window)
  end
end

--- Shows a document in a window of its own, and goes there.
---@param document string URI
function M.split(document)
  -- By number: a name on a command line would have to be escaped, and differently for each character.
  local bufnr = vim.fn.bufadd(uris.buffer_name(document))
  vim.bo[bufnr].buflisted = true
  vim.cmd.sbuffer(bufnr)
end

--- Puts the cursor on the heading of a step.
---@param bufnr integer
---@param step integer
---@return boolean found
local function go_to_step(bufnr, step)
  for lnum, found in ipairs(steps(bufnr)) do
    if found == step then
      vim.cmd("normal! m'")
      vim.api.nvim_win_set_cursor(0, { lnum, 0 })
      vim.cmd('normal! zv')
      return true
    end
  end
  return false
end

--- Opens what the cursor is on: a chart, a step's code, another document of the run.
function M.follow()
  local bufnr = vim.api.nvim_get_current_buf()
  local run = uris.run_of_buffer(bufnr)
  if not run then
    ui.warn('this is not a report')
    return
  end
  local cursor = vim.api.nvim_win_get_cursor(0)
  local found = links.at(bufnr, run, cursor[1], cursor[2])
  if not found or found.kind == 'step' then
    local step = links.anchor(vim.api.nvim_get_current_line(), cursor[2])
    if step and go_to_step(bufnr, step) then
      return
    end
  end
  if not found then
    ui.notify('No chart or step here')
  elseif found.kind == 'artifact' then
    require('codeinterp.artifacts').open(run, found.name)
  else
    M.split(uris.document(run, found.name))
  end
end

return M
