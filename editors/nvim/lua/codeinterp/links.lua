--- What the cursor is on in a report: a chart, a step, another document.
local uris = require('codeinterp.uri')

local M = {}

---@class codeinterp.Link
---@field first integer first byte column, from 0
---@field last integer last byte column, inclusive
---@field text string
---@field target string

--- The links of a line of Markdown, images included.
---@param line string
---@return codeinterp.Link[]
function M.in_line(line)
  local links = {}
  local from = 1
  while true do
    local first, last, text, target = line:find('!?%[([^%]]*)%]%(([^)]+)%)', from)
    if not first or not last or not text or not target then
      return links
    end
    -- `<…>` holds targets with spaces; a title may follow the target.
    target = target:match('^<(.*)>') or target:match('^(%S+)') or target
    table.insert(links, { first = first - 1, last = last - 1, text = text, target = target })
    from = last + 1
  end
end

--- The document that a target means in a report of `run`; nil for anything outside of that run.
---@param target string
---@param run string
---@return codeinterp.DocumentName?
function M.resolve(target, run)
  if uris.is_document(target) then
    local parsed = uris.parse(target)
    return parsed and parsed.run == run and parsed or nil
  end
  if target:match('^%a[%w+.-]*:') or target:match('^[/#]') then
    return nil
  end
  return uris.parse(('codeinterp:/runs/%s/%s'):format(run, (target:gsub('^%./', ''))))
end

--- Number of the step that a heading announces.
---@param line string
---@return integer?
function M.step_of_heading(line)
  local title = line:match('^#+%s+(.*)$')
  if not title then
    return nil
  end
  local number = title:match('^[Ss]tep%s+(%d+)')
    or title:match('^步骤%s*(%d+)')
    or title:match('^第%s*(%d+)%s*步')
  return number and tonumber(number)
end

--- For each line whether it is inside of a code fence, the fence itself included.
---@param lines string[]
---@return boolean[]
function M.in_code(lines)
  local inside = {}
  local fence ---@type string?
  for i, line in ipairs(lines) do
    local marker = line:match('^ ? ? ?(```+)') or line:match('^ ? ? ?(~~~+)')
    inside[i] = fence ~= nil or marker ~= nil
    if fence then
      if marker and vim.startswith(marker, fence) and line:match('^%s*[`~]+%s*$') then
        fence = nil
      end
    else
      fence = marker
    end
  end
  return inside
end

--- The steps of a report: for each line the number of the step that it belongs to, or false. Lines inside code
--- fences are no headings, whatever they look like.
---@param lines string[]
---@return (integer|false)[]
function M.steps(lines)
  local steps = {}
  local current, level = false, 0 ---@type integer|false, integer
  local inside = M.in_code(lines)
  for i, line in ipairs(lines) do
    if not inside[i] then
      local depth = #(line:match('^(#+)%s') or '')
      local step = M.step_of_heading(line)
      if step then
        current, level = step, depth
      elseif depth > 0 and depth <= level then
        current = false
      end
    end
    steps[i] = current
  end
  return steps
end

--- The step that a link of a line leads to within the report, such as `[step 2](#step-2)`: the link under the
--- cursor, else the first of the line.
---@param line string
---@param column integer from 0, of bytes
---@return integer?
function M.anchor(line, column)
  local first ---@type integer?
  for _, link in ipairs(M.in_line(line)) do
    local step = tonumber(link.target:match('^#%D*(%d+)$')) --[[@as integer?]]
    if step and column >= link.first and column <= link.last then
      return step
    end
    first = first or step
  end
  return first
end

--- What line and column of a report mean: the link under the cursor, else a link of the line to something of
--- this run, else the step that the line belongs to. Links within the report are left to `anchor`.
---@param bufnr integer
---@param run string
---@param lnum integer from 1
---@param column integer from 0, of bytes
---@return codeinterp.DocumentName?
function M.at(bufnr, run, lnum, column)
  local lines = vim.api.nvim_buf_get_lines(bufnr, 0, lnum, false)
  local first ---@type codeinterp.DocumentName?
  for _, link in ipairs(M.in_line(lines[lnum] or '')) do
    local document = M.resolve(link.target, run)
    if document and column >= link.first and column <= link.last then
      return document
    end
    first = first or document
  end
  local step = M.steps(lines)[lnum]
  return first or (step and uris.parse(uris.document(run, ('steps/%d.py'):format(step)))) or nil
end

return M
