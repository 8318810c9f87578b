#!/usr/bin/env bash
# Emacs with eglot, one more LSP client that is not ours. Emacs 28 of Debian 12
# has no eglot yet; its package comes from Debian too.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

has_eglot() { emacs --batch --eval "(progn (package-initialize) (require 'eglot))"; }

case "${1:-install}" in
check)
  command -v emacs >/dev/null || missing "Emacs"
  has_eglot >/dev/null 2>&1 || missing "eglot for Emacs"
  ;;
install)
  command -v emacs >/dev/null || apt_install emacs-nox
  has_eglot >/dev/null 2>&1 || apt_install elpa-eglot
  has_eglot >/dev/null 2>&1 || die "Emacs is there, but (require 'eglot) fails"
  put_env EMACS "$(command -v emacs)"
  say "$(emacs --version | head -n 1) with eglot is $(command -v emacs)"
  ;;
*) die "use: $0 [install|check]" ;;
esac
