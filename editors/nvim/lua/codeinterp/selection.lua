--- What part of a buffer a command is about, as a range of the protocol.
local M = {}

---@param bufnr integer
---@param line integer from 0
---@return string
local function line_at(bufnr, line)
  return vim.api.nvim_buf_get_lines(bufnr, line, line + 1, false)[1] or ''
end

---@param bufnr integer
---@param line integer from 0
---@param byte integer
---@param encoding 'utf-8'|'utf-16'|'utf-32'
---@return lsp.Position
local function position(bufnr, line, byte, encoding)
  local text = line_at(bufnr, line)
  return { line = line, character = vim.str_utfindex(text, encoding, math.min(byte, #text), false) }
end

--- Whole lines.
---@param bufnr integer
---@param first integer from 1
---@param last integer from 1, inclusive
---@param encoding 'utf-8'|'utf-16'|'utf-32'
---@return lsp.Range
function M.lines(bufnr, first, last, encoding)
  return {
    start = { line = first - 1, character = 0 },
    ['end'] = position(bufnr, last - 1, #line_at(bufnr, last - 1), encoding),
  }
end

--- The lines of a command. When they are those of a characterwise selection, only what was selected.
---@param bufnr integer
---@param call codeinterp.Call
---@param encoding 'utf-8'|'utf-16'|'utf-32'
---@return lsp.Range
function M.of_call(bufnr, call, encoding)
  local start, stop = vim.fn.getpos("'<"), vim.fn.getpos("'>")
  local characterwise = vim.fn.visualmode() == 'v' and start[2] == call.line1 and stop[2] == call.line2
  if call.range ~= 2 or not characterwise then
    return M.lines(bufnr, call.line1, call.line2, encoding)
  end
  local last = line_at(bufnr, stop[2] - 1)
  -- The mark is on the first byte of the last character, and far beyond the line's end for `$`.
  local after = math.min(stop[3], #last)
  if vim.o.selection ~= 'exclusive' and after > 0 then
    after = after + vim.str_utf_end(last, after)
  elseif vim.o.selection == 'exclusive' then
    after = math.max(0, after - 1)
  end
  return {
    start = position(bufnr, start[2] - 1, start[3] - 1, encoding),
    ['end'] = position(bufnr, stop[2] - 1, after, encoding),
  }
end

---@param lines string[]
---@param lnum integer
---@return integer? first
---@return integer? last
local function fenced_block(lines, lnum)
  local open ---@type { lnum: integer, fence: string, python: boolean }?
  for i, line in ipairs(lines) do
    local fence, info = line:match('^%s*(```+)%s*{?%.?(%a*)')
    if not fence then
      fence, info = line:match('^%s*(~~~+)%s*{?%.?(%a*)')
    end
    if fence and not open then
      open = { lnum = i, fence = fence, python = info == 'python' or info == 'py' }
    elseif fence and open and vim.startswith(fence, open.fence) and info == '' then
      if lnum >= open.lnum and lnum <= i then
        if open.python and i > open.lnum + 1 then
          return open.lnum + 1, i - 1
        end
        return nil
      end
      open = nil
    end
  end
end

---@param lines string[]
---@param lnum integer
---@return integer first
---@return integer last
local function cell(lines, lnum)
  local first, last = 1, #lines
  for i = lnum, 1, -1 do
    if lines[i]:match('^#%s*%%%%') then
      first = i + 1
      break
    end
  end
  for i = lnum + 1, #lines do
    if lines[i]:match('^#%s*%%%%') then
      last = i - 1
      break
    end
  end
  return first, last
end

--- The lines to run when the user selected none: the fenced Python block of a Markdown file, the `# %%` cell of a
--- Python file.
---@param bufnr integer
---@param lnum integer from 1
---@return integer? first from 1; nil when there is nothing to run here
---@return integer? last inclusive
function M.block(bufnr, lnum)
  local lines = vim.api.nvim_buf_get_lines(bufnr, 0, -1, false)
  local filetype = vim.bo[bufnr].filetype
  if filetype == 'markdown' or filetype == 'quarto' or filetype == 'rmd' then
    return fenced_block(lines, lnum)
  elseif filetype == 'python' then
    local first, last = cell(lines, lnum)
    if first <= last then
      return first, last
    end
  end
end

return M
