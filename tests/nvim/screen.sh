#!/usr/bin/env bash
# What a person sees: Neovim in a terminal (tmux), the plugin installed as the README says, a real run.
# Prints `N passed, N failed`. With SCREENS=FOLDER the screens are kept there as text.
set -uo pipefail

folder="$(mktemp -d)"
socket="codeinterp-nvim-$$"
screens="${SCREENS:-$folder}"
passed=0 failed=0
tmux="${TMUX_BIN:-tmux}"

finish() {
  "$tmux" -L "$socket" kill-server 2>/dev/null
  rm -rf "$folder"
}
trap finish EXIT

export XDG_STATE_HOME="$folder/state" XDG_CONFIG_HOME="$folder/config" XDG_DATA_HOME="$folder/data"
mkdir -p "$folder/config/nvim" "$folder/shop"
{
  echo month,region,units,price
  for month in 01 02 03 04 05 06; do
    for region in north south west; do
      units=$((10#$month * 7 + ${#region} * 3))
      [ "$month" = 03 ] && units=3
      echo "2025-$month,$region,$units,$((10#$month + 8)).50"
    done
  done
} >"$folder/shop/sales.csv"

cat >"$folder/config/nvim/init.lua" <<LUA
local plugin = vim.fn.system({ '$CODEINTERP_BIN', 'editor', 'nvim' })
vim.opt.runtimepath:prepend(vim.trim(plugin))
vim.g.codeinterp = { settings = { model = 'playbook', sandbox = { backend = 'process' } } }
vim.lsp.enable('codeinterp')
vim.o.statusline = "%f%=%{v:lua.require'codeinterp'.status()}"
vim.o.swapfile = false
-- The terminal's tests wait for these instead of looking at the clock.
vim.api.nvim_create_autocmd('User', {
  pattern = { 'CodeInterpRunChanged', 'CodeInterpDocument' },
  callback = function(event)
    local final = { completed = true, incomplete = true, failed = true }
    _G.ended = _G.ended or (event.data.run and final[event.data.status])
    if _G.ended then
      vim.schedule(function()
        vim.fn.system({ '$tmux', '-L', '$socket', 'wait-for', '-S', 'ended' })
      end)
    end
  end,
})
LUA

type_keys() { "$tmux" -L "$socket" send-keys -t nvim "$@"; }
capture() { "$tmux" -L "$socket" capture-pane -p -t nvim >"$screens/$1.txt"; }

# shows SCREEN TEXT WHAT: waits until the screen shows a text; the screen is kept as SCREEN.
shows() {
  local tries=0
  while [ "$tries" -lt 300 ]; do
    capture "$1"
    if grep -qE -- "$2" "$screens/$1.txt"; then
      passed=$((passed + 1))
      return 0
    fi
    tries=$((tries + 1))
    sleep 0.1
  done
  failed=$((failed + 1))
  echo "FAILED  $3; the screen shows:"
  cat "$screens/$1.txt"
  return 1
}

"$tmux" -L "$socket" -f /dev/null new-session -d -s nvim -x 130 -y 36 -c "$folder/shop" \
  "$NVIM sales.csv; $tmux -L $socket wait-for -S closed"

shows opened '» .*4 cols' 'the first line of the table says what it is'
shows opened 'Profile|Analy|Plot|Ask' 'a lens offers an analysis'
type_keys ':CodeInterp analyze' Enter
shows question 'Question about sales.csv:' 'the question is shown before it runs'
type_keys Enter
timeout 180 "$tmux" -L "$socket" wait-for ended
shows report '# .*data.*stands out' 'the report opens beside the file'
shows report 'chart 1' 'the results stand on the line'
shows report '18 rows' 'the answer is the first thing in the report'
type_keys C-w l ':/^### Step 1' Enter
shows steps 'Step 1' 'the steps are in the report'
type_keys 'zM' Enter
type_keys ':qall!' Enter
timeout 30 "$tmux" -L "$socket" wait-for closed && passed=$((passed + 1)) || failed=$((failed + 1))

echo "screen           $passed passed $failed failed"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
