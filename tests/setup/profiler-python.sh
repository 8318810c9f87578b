#!/usr/bin/env bash
# A Python with exactly the locked packages of the sandbox, and pytest, for the
# tests of the code that runs inside the sandbox.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

folder="$CACHE/profiler-python"
requirements="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/src/sandbox/image/requirements"

# Both sets, since the profiler uses readers of the full one.
sources() { printf '%s\n' "$requirements/core.txt" "$requirements/full.txt"; }

stamp() {
  python3 -VV
  # shellcheck disable=SC2046
  cat $(sources) 2>/dev/null || true
}

current() { venv_ready "$folder" && [ "$(cat "$folder/.requirements" 2>/dev/null)" = "$(stamp)" ]; }

case "${1:-install}" in
check)
  current || missing "the Python with the sandbox's packages"
  ;;
install)
  if ! current; then
    [ -f "$requirements/core.txt" ] || die "there is no $requirements/core.txt"
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
