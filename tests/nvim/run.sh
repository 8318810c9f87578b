#!/usr/bin/env bash
# Tests of the Neovim plugin: style, types of settings, behaviour against a scripted server, whole runs with the
# real binary, and what a terminal shows. Ends with `N passed, N failed`.
#
#   bash tests/nvim/run.sh [NAME]     only the specs whose file name contains NAME
#
# Needs NVIM, STYLUA and CODEINTERP_BIN in the environment; tests/run sets them.
set -uo pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
cd "$ROOT" || exit 2
filter="${1-}"
passed=0 failed=0

for part in NVIM STYLUA CODEINTERP_BIN; do
  if [ -z "${!part-}" ] || [ ! -x "${!part}" ]; then
    echo "tests/nvim: $part names no program; run the suite by: bash tests/run --install --only nvim"
    echo "0 passed, 1 failed"
    exit 1
  fi
done

if [ -z "$filter" ]; then
  if "$STYLUA" --check editors/nvim tests/nvim; then
    passed=$((passed + 1))
  else
    echo "FAILED  the Lua code is formatted (stylua)"
    failed=$((failed + 1))
  fi
fi

# Whole runs use both sandboxes; preparing them is no part of what is tested here, and quick when they are there.
if ! bash tests/setup/provision.sh >/dev/null; then
  echo "FAILED  the sandboxes are ready (tests/setup/provision.sh)"
  failed=$((failed + 1))
fi

results="$(mktemp)"
trap 'rm -f "$results"' EXIT
"$NVIM" -l tests/nvim/run.lua "$results" "$filter"
read -r lua_passed lua_failed <"$results"
passed=$((passed + ${lua_passed:-0})) failed=$((failed + ${lua_failed:-1}))

if [ -z "$filter" ] || [ "$filter" = screen ]; then
  bash tests/nvim/screen.sh >"$results"
  cat "$results" | sed '$d'
  read -r screen_passed _ screen_failed _ < <(tail -n 1 "$results")
  passed=$((passed + ${screen_passed:-0})) failed=$((failed + ${screen_failed:-1}))
fi

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
