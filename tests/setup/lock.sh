#!/usr/bin/env bash
# Locks the sandbox's Python packages again: core.in and full.in to core.txt and
# full.txt, and the sizes of their downloads to sizes.toml. Run by hand after a
# change of the .in files or to take newer versions (lock.sh --upgrade).
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
cd "$here/../../src/sandbox/image/requirements"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

venv "$work/venv" uv packaging 'tomli; python_version < "3.11"'
compile=("$work/venv/bin/uv" pip compile --quiet --universal --python-version 3.10 --only-binary :all: --no-header --no-annotate "$@")
for set in core full; do
  "${compile[@]}" --generate-hashes --no-emit-index-url "$set.in" -o "$set.txt"
  "${compile[@]}" --format pylock.toml "$set.in" -o "$work/pylock.$set.toml"
done
"$work/venv/bin/python" "$here/lock_sizes.py" "$work/pylock.core.toml" "$work/pylock.full.toml" >sizes.toml
