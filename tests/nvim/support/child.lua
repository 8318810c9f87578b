-- Runs one spec and leaves its counts; started by run.lua.
local loaded_at_start = vim.tbl_keys(package.loaded)
local root = vim.env.CODEINTERP_TEST_ROOT
package.path = root .. '/tests/nvim/support/?.lua;' .. package.path
local support = require('harness')

support.loaded_at_start = loaded_at_start
local loaded, why = pcall(dofile, vim.env.CODEINTERP_TEST_SPEC)
if not loaded then
  io.stderr:write(tostring(why) .. '\n')
  vim.cmd('cquit 3')
end
local passed, failed = support.run()
vim.fn.writefile({ ('%d %d'):format(passed, failed) }, vim.env.CODEINTERP_TEST_COUNTS)
vim.cmd(failed == 0 and 'qall!' or 'cquit 1')
