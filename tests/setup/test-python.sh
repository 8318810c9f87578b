#!/usr/bin/env bash
# A Python for the end-to-end suites and the benchmarks: pytest, an LSP client
# that is not ours (pytest-lsp over pygls), and ipykernel to be compared with.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

folder="$CACHE/test-python"

case "${1:-install}" in
check)
  venv_ready "$folder" || missing "the Python of the end-to-end tests"
  ;;
install)
  venv "$folder" pytest==9.0.* pytest-lsp==1.0.1 pygls==2.* ipykernel==7.* jupyter_client==8.* nbformat==5.* nbclient==0.10.* numpy pandas==2.3.* matplotlib ruff==0.17.* ty==0.0.*
  put_env TEST_PYTHON "$folder/bin/python"
  say "$("$folder/bin/python" --version) with pytest-lsp and ipykernel in $folder"
  ;;
*) die "use: $0 [install|check]" ;;
esac
