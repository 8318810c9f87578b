--- Shows a picture: in Neovim by snacks.nvim or image.nvim where one of them can, else by the system's viewer.
local config = require('codeinterp.config')
local ui = require('codeinterp.ui')

local M = {}

--- MIME types that a viewer merely draws. Anything else may hold code that a cell has written, and is opened
--- outside of the editor only after a question.
---@type table<string, boolean>
local DRAWN = {
  ['image/png'] = true,
  ['image/jpeg'] = true,
  ['image/gif'] = true,
  ['image/webp'] = true,
  ['image/bmp'] = true,
  ['image/tiff'] = true,
}

---@class codeinterp.ImageBackend
---@field available fun(path: string): boolean
---@field show fun(path: string, bufnr: integer, window: integer)

--- A window for a picture, with a buffer of its own.
---@param path string
---@return integer bufnr
---@return integer window
local function picture_window(path)
  local bufnr = vim.api.nvim_create_buf(false, true)
  vim.bo[bufnr].bufhidden = 'wipe'
  local window = vim.api.nvim_open_win(bufnr, true, { split = 'below', win = 0 })
  vim.wo[window][0].number = false
  vim.wo[window][0].signcolumn = 'no'
  vim.wo[window][0].winbar = ' ' .. ui.one_line(vim.fs.basename(path), 80):gsub('%%', '%%%%')
  vim.keymap.set('n', 'q', '<Cmd>close<CR>', { buffer = bufnr, desc = 'Close the chart' })
  return bufnr, window
end

---@type table<string, codeinterp.ImageBackend>
local backends = {
  snacks = {
    available = function(path)
      local ok, snacks = pcall(require, 'snacks.image')
      return ok and snacks.supports(path)
    end,
    show = function(path, bufnr)
      require('snacks.image').buf.attach(bufnr, { src = path })
    end,
  },
  ['image.nvim'] = {
    available = function(path)
      -- image.nvim raises an error until its own setup has been called.
      local ok, image = pcall(require, 'image')
      return ok and pcall(image.get_images) and path:lower():match('%.%a+$') ~= '.svg'
    end,
    show = function(path, bufnr, window)
      local picture = require('image').from_file(path, { buffer = bufnr, window = window, x = 0, y = 0 })
      if picture then
        picture:render()
      end
    end,
  },
}

--- The backend that draws a picture inside of Neovim here, or nil.
---@param path string
---@return string? name
function M.inline_backend(path)
  local wanted = config.get().chart.backend
  if wanted == 'external' then
    return nil
  end
  for _, name in ipairs(wanted == 'auto' and { 'snacks', 'image.nvim' } or { wanted }) do
    local ok, available = pcall(backends[name].available, path)
    if ok and available then
      return name
    end
  end
end

--- Opens a file with the system's viewer.
---@param path string
local function open_outside(path)
  local process, why = vim.ui.open(path)
  if not process then
    ui.warn(('no viewer was found (%s). The file is %s'):format(why or 'unknown cause', path))
  end
end

---@param path string absolute
---@param options { mime: string, external?: boolean }
function M.show(path, options)
  local stat = type(path) == 'string' and vim.uv.fs_stat(path) or nil
  if not stat or stat.type ~= 'file' then
    ui.error(('the file of this chart is gone: %s'):format(tostring(path)))
    return
  end
  local backend = not options.external and options.mime:match('^image/') and M.inline_backend(path)
  if backend then
    local bufnr, window = picture_window(path)
    local ok, why = pcall(backends[backend].show, path, bufnr, window)
    if ok then
      return
    end
    pcall(vim.api.nvim_win_close, window, true)
    ui.warn(('%s could not show the chart: %s'):format(backend, tostring(why)))
  end
  if DRAWN[options.mime] then
    open_outside(path)
    return
  end
  local question = ('%s was written by code in the sandbox. Open it with the viewer of this system?'):format(
    vim.fs.basename(path)
  )
  ui.confirm(question, 'Open', function()
    open_outside(path)
  end)
end

return M
