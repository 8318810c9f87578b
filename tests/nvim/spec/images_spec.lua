-- Charts inside of Neovim. Neither image plugin draws without a terminal with graphics, so stand-ins with their
-- interface record what they are asked for.
local harness = require('harness')
local scripted = require('scripted')
local test, equal, contains, eventually = harness.test, harness.equal, harness.contains, harness.eventually

--- A run with a chart; `:CodeInterp chart` is asked for it.
---@param name string
local function ask_for_chart(name)
  local server = scripted.new({
    runs = {
      {
        run = 'r1',
        status = 'completed',
        document = 'codeinterp:/runs/r1/report.md',
        artifacts = {
          { name = 'chart 1.png', mime = 'image/png', path = harness.file('chart 1.png', { 'png' }) },
          { name = 'drawing.svg', mime = 'image/svg+xml', path = harness.file('drawing.svg', { '<svg/>' }) },
        },
      },
    },
  })
  server:serve()
  scripted.open(harness.file('sales.csv', { 'a' }))
  server:run_changed('r1', 'completed')
  vim.cmd('CodeInterp chart ' .. vim.fn.escape(name, ' '))
end

--- snacks.nvim, as far as its image module is used.
---@param attach fun(bufnr: integer, options: { src: string })
local function snacks(attach)
  package.loaded['snacks.image'] = {
    supports = function()
      return true
    end,
    buf = { attach = attach },
  }
end

--- image.nvim; until it is set up its functions raise an error.
---@param asked table[] what it was asked for
---@param set_up boolean
local function image_nvim(asked, set_up)
  package.loaded['image'] = {
    get_images = function()
      return set_up and {} or error('image.nvim is not setup')
    end,
    from_file = function(path, options)
      table.insert(asked, { path = path, buffer = options.buffer, window = options.window })
      return {
        render = function()
          asked[#asked].rendered = true
        end,
      }
    end,
  }
end

local function uninstall()
  package.loaded['snacks.image'] = nil
  package.loaded['image'] = nil
end

test('a chart is shown in Neovim where snacks.nvim can', function()
  local shown ---@type string?
  snacks(function(_, options)
    shown = options.src
  end)
  ask_for_chart('chart 1.png')
  eventually('the chart is shown', function()
    return shown
  end)
  uninstall()
  contains(shown, 'chart 1.png')
  equal({}, harness.opened)
  equal(2, #vim.api.nvim_list_wins())
end)

test('a chart is shown in Neovim where image.nvim can, in a window of its own that q closes', function()
  local asked = {}
  image_nvim(asked, true)
  ask_for_chart('chart 1.png')
  eventually('the chart is rendered', function()
    return asked[1] and asked[1].rendered
  end)
  uninstall()
  contains(asked[1].path, 'chart 1.png')
  equal({}, harness.opened)
  equal(asked[1].window, vim.api.nvim_get_current_win())
  equal(asked[1].buffer, vim.api.nvim_win_get_buf(asked[1].window))
  contains(vim.wo[asked[1].window].winbar, 'chart 1.png')
  vim.api.nvim_feedkeys('q', 'xt', false)
  equal(1, #vim.api.nvim_list_wins())
end)

test('of both plugins the one that the settings name is taken', function()
  local asked, snacks_shown = {}, false
  image_nvim(asked, true)
  snacks(function()
    snacks_shown = true
  end)
  vim.g.codeinterp = { chart = { backend = 'image.nvim' } }
  ask_for_chart('chart 1.png')
  eventually('the chart is rendered', function()
    return asked[1] and asked[1].rendered
  end)
  uninstall()
  equal(false, snacks_shown)
end)

test('what image.nvim can not show, and all where it is not set up, goes to the viewer', function()
  local asked = {}
  image_nvim(asked, true)
  harness.answers = { 'Open' }
  ask_for_chart('drawing.svg')
  eventually('the viewer is called', function()
    return harness.opened[1]
  end)
  image_nvim(asked, false)
  vim.cmd([[CodeInterp chart chart\ 1.png]])
  eventually('the viewer is called', function()
    return harness.opened[2]
  end)
  uninstall()
  equal({}, asked)
end)

test('an image plugin that fails is told, and the viewer takes over', function()
  snacks(function()
    error('no graphics')
  end)
  ask_for_chart('chart 1.png')
  eventually('the viewer is called', function()
    return harness.opened[1]
  end)
  uninstall()
  contains(harness.last_message(), 'no graphics')
  equal(1, #vim.api.nvim_list_wins())
end)
