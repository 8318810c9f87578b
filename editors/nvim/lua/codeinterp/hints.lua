--- Results on the lines that were asked about. Neovim's inlay hints are off by default, so the plugin asks for
--- the same hints and draws them as extmarks of its own; where a user has inlay hints on, it draws nothing.
local config = require('codeinterp.config')
local ui = require('codeinterp.ui')

local M = {}

local METHOD = 'textDocument/inlayHint'
local namespace = vim.api.nvim_create_namespace('codeinterp.hints')

--- How long typing must pause before hints are asked for again, in milliseconds.
local TYPING_PAUSE_MS = 250

--- Longest result drawn on a line, in characters.
local LONGEST = 120

---@class codeinterp.HintState
---@field client_id integer
---@field hints lsp.InlayHint[]
---@field native boolean were Neovim's own inlay hints on when this was drawn
---@field timer any a timer of libuv, for the pause in typing

---@type table<integer, codeinterp.HintState>
local states = {}

---@param bufnr integer
---@return boolean
local function native_on(bufnr)
  return vim.lsp.inlay_hint.is_enabled({ bufnr = bufnr })
end

---@param label string|lsp.InlayHintLabelPart[]
---@return [string, string][] chunks
local function chunks_of(label)
  if type(label) == 'string' then
    return { { ui.one_line(label, LONGEST), 'CodeInterpHint' } }
  end
  local chunks = {}
  for _, part in ipairs(label) do
    local highlight = part.command and 'CodeInterpHintLink' or 'CodeInterpHint'
    -- The spaces around a separator are the server's; only what lies between may be hostile.
    local before, after = part.value:match('^ *'), part.value:match(' *$')
    table.insert(chunks, { before .. ui.one_line(part.value, LONGEST) .. after, highlight })
  end
  return chunks
end

---@param bufnr integer
local function draw(bufnr)
  local state = states[bufnr]
  if not state or not vim.api.nvim_buf_is_loaded(bufnr) then
    return
  end
  vim.api.nvim_buf_clear_namespace(bufnr, namespace, 0, -1)
  state.native = native_on(bufnr)
  local settings = config.get().hints
  if state.native or not settings.enabled then
    return
  end
  local by_line = {} ---@type table<integer, [string, string][]>
  for _, hint in ipairs(state.hints) do
    local line = hint.position.line
    by_line[line] = by_line[line] or { { settings.prefix, 'CodeInterpHint' } }
    if #by_line[line] > 1 then
      table.insert(by_line[line], { ' · ', 'CodeInterpHint' })
    end
    vim.list_extend(by_line[line], chunks_of(hint.label))
  end
  local last = vim.api.nvim_buf_line_count(bufnr) - 1
  for line, chunks in pairs(by_line) do
    if line <= last then
      local mark = { hl_mode = 'combine' } ---@type vim.api.keyset.set_extmark
      if settings.position == 'below' then
        mark.virt_lines = { chunks }
      else
        mark.virt_text = chunks
        mark.virt_text_pos = settings.position
      end
      vim.api.nvim_buf_set_extmark(bufnr, namespace, line, 0, mark)
    end
  end
end

--- Asks the server for the hints of a buffer and draws them.
---@param bufnr integer
function M.refresh(bufnr)
  local state = states[bufnr]
  local client = state and vim.lsp.get_client_by_id(state.client_id)
  if not client or not vim.api.nvim_buf_is_loaded(bufnr) or not client:supports_method(METHOD, bufnr) then
    return
  end
  local version = vim.lsp.util.buf_versions[bufnr]
  client:request(METHOD, {
    textDocument = { uri = vim.uri_from_bufnr(bufnr) },
    range = {
      start = { line = 0, character = 0 },
      ['end'] = { line = vim.api.nvim_buf_line_count(bufnr), character = 0 },
    },
  }, function(err, result)
    -- Hints of an older text would stand on the wrong lines; a newer request is on its way then.
    if err or states[bufnr] ~= state or vim.lsp.util.buf_versions[bufnr] ~= version then
      return
    end
    state.hints = type(result) == 'table' and result or {}
    draw(bufnr)
  end, bufnr)
end

--- Refreshes once typing pauses.
---@param bufnr integer
function M.refresh_later(bufnr)
  local state = states[bufnr]
  if not state then
    return
  end
  if not state.timer then
    state.timer = vim.uv.new_timer()
  end
  if state.timer then
    state.timer:start(
      TYPING_PAUSE_MS,
      0,
      vim.schedule_wrap(function()
        M.refresh(bufnr)
      end)
    )
  end
end

---@param client vim.lsp.Client
---@param bufnr integer
function M.attach(client, bufnr)
  M.detach(bufnr)
  states[bufnr] = { client_id = client.id, hints = {}, native = native_on(bufnr) }
  M.refresh(bufnr)
end

---@param bufnr integer
function M.detach(bufnr)
  local state = states[bufnr]
  states[bufnr] = nil
  if state and state.timer then
    state.timer:stop()
    state.timer:close()
  end
  if vim.api.nvim_buf_is_loaded(bufnr) then
    vim.api.nvim_buf_clear_namespace(bufnr, namespace, 0, -1)
  end
end

--- Commands behind the hints of a line: what clicking them would do in an editor with a mouse.
---@param bufnr integer
---@param line integer? from 0; none: of all lines
---@return lsp.Command[]
function M.commands(bufnr, line)
  local commands = {}
  local state = states[bufnr]
  for _, hint in ipairs(state and state.hints or {}) do
    if (not line or hint.position.line == line) and type(hint.label) == 'table' then
      for _, part in
        ipairs(hint.label --[[@as lsp.InlayHintLabelPart[] ]])
      do
        if part.command then
          table.insert(commands, part.command)
        end
      end
    end
  end
  return commands
end

--- The newest run whose result stands in a buffer; it may be one of an earlier server.
---@param bufnr integer
---@return string? run
function M.newest_run(bufnr)
  local newest ---@type string?
  for _, command in ipairs(M.commands(bufnr)) do
    local argument = (command.arguments or {})[1]
    local run = type(argument) == 'table' and argument.run
    -- Ids begin with the time.
    if type(run) == 'string' and (not newest or run > newest) then
      newest = run
    end
  end
  return newest
end

-- Nothing says when a user turns inlay hints on or off, but it redraws the window.
vim.api.nvim_set_decoration_provider(namespace, {
  on_win = function(_, _, bufnr)
    local state = states[bufnr]
    if state and state.native ~= native_on(bufnr) then
      vim.schedule(function()
        draw(bufnr)
      end)
    end
    return false
  end,
})

return M
