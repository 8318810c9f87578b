#!/usr/bin/env bash
# A Python with exactly the locked packages of the sandbox, and pytest, for the
# tests of the code that runs inside the sandbox.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

folder="$CACHE/profiler-python"
requirements="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/src/sandbox/image/requirements"

# Locked where a lock exists; both sets, since the profiler uses readers of the full one.
sources() {
  local set
  for set in core full; do
    if [ -f "$requirements/$set.lock" ]; then printf '%s\n' "$requirements/$set.lock"; else printf '%s\n' "$requirements/$set.in"; fi
  done
}

stamp() {
  python3 -VV
  # shellcheck disable=SC2046
  cat $(sources)
}

current() { venv_ready "$folder" && [ "$(cat "$folder/.requirements" 2>/dev/null)" = "$(stamp)" ]; }

case "${1:-install}" in
check)
  current || missing "the Python with the sandbox's packages"
  ;;
install)
  if ! current; then
    arguments=()
    for file in $(sources); do arguments+=(-r "$file"); done
    rm -rf "$folder"
    venv "$folder" pytest==9.0.*
    log_run "$folder/bin/python" -m pip install -q "${arguments[@]}"
    stamp >"$folder/.requirements"
  fi
  put_env PROFILER_PYTHON "$folder/bin/python"
  say "$("$folder/bin/python" --version) with the sandbox's packages in $folder"
  ;;
*) die "use: $0 [install|check]" ;;
esac
