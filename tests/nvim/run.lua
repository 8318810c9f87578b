-- Runs each spec in a Neovim of its own: `nvim -l tests/nvim/run.lua RESULTS [FILTER]`.
-- Writes "PASSED FAILED" to the file RESULTS.
local results, filter = arg[1], arg[2] or ''
local root = vim.fs.dirname(vim.fs.dirname(vim.fs.dirname(vim.fs.abspath(arg[0]))))

--- Longest time for one spec; those with the real binary start a dozen kernels.
local LIMIT_MS = 480000

local passed, failed = 0, 0
local specs = vim.fn.glob(root .. '/tests/nvim/spec/*_spec.lua', true, true)
for _, spec in ipairs(specs) do
  if spec:find(filter, 1, true) then
    local home = vim.fn.tempname()
    vim.fn.mkdir(home, 'p')
    local counts = home .. '/counts'
    local child = vim
      .system({
        vim.v.progpath,
        '--headless',
        '--clean',
        '-n',
        '--cmd',
        'set runtimepath^=' .. root .. '/editors/nvim',
        '-c',
        'luafile ' .. root .. '/tests/nvim/support/child.lua',
      }, {
        cwd = home,
        timeout = LIMIT_MS,
        text = true,
        env = {
          XDG_CONFIG_HOME = home .. '/config',
          XDG_STATE_HOME = home .. '/state',
          XDG_DATA_HOME = home .. '/data',
          CODEINTERP_TEST_ROOT = root,
          CODEINTERP_TEST_SPEC = spec,
          CODEINTERP_TEST_COUNTS = counts,
        },
      })
      :wait()
    local written = vim.fn.filereadable(counts) == 1 and vim.fn.readfile(counts)[1] or ''
    local spec_passed, spec_failed = written:match('^(%d+) (%d+)$')
    if not spec_passed then
      spec_passed, spec_failed = 0, 1
      print(('FAILED  %s did not come to its end (exit %d)'):format(vim.fs.basename(spec), child.code))
      print((child.stdout or '') .. (child.stderr or ''))
    elseif tonumber(spec_failed) > 0 then
      print((child.stdout or '') .. (child.stderr or ''))
    end
    passed, failed = passed + tonumber(spec_passed), failed + tonumber(spec_failed)
    print(
      ('%-16s %3d passed %3d failed'):format(
        vim.fs.basename(spec):gsub('_spec.lua', ''),
        spec_passed,
        spec_failed
      )
    )
    vim.fn.delete(home, 'rf')
  end
end
vim.fn.writefile({ ('%d %d'):format(passed, failed) }, results)
