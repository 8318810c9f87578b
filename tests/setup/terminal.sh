#!/usr/bin/env bash
# tmux, which plays the terminal in tests of screens.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

case "${1:-install}" in
check)
  command -v tmux >/dev/null || missing "tmux"
  ;;
install)
  command -v tmux >/dev/null || apt_install tmux
  put_env TMUX_BIN "$(command -v tmux)"
  say "$(tmux -V) is $(command -v tmux)"
  ;;
*) die "use: $0 [install|check]" ;;
esac
