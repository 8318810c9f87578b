#!/usr/bin/env bash
# StyLua from its npm package, as a command `stylua [--check] PATH...`.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

version=2.5.2
folder="$CACHE/stylua"
command="$folder/stylua"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"

ready() { [ -x "$command" ] && [ "$(cat "$folder/.stamp" 2>/dev/null)" = "$version" ]; }

case "${1:-install}" in
check)
  ready || missing "StyLua"
  ;;
install)
  bash "$here/node.sh" install >/dev/null
  # shellcheck disable=SC1090
  . "$ENV_FILE"
  if ! ready; then
    rm -rf "$folder"
    mkdir -p "$folder"
    echo '{"private":true}' >"$folder/package.json"
    (cd "$folder" && PATH="$NODE_BIN:$PATH" log_run npm install --ignore-scripts --no-audit --no-fund "@johnnymorganz/stylua@$version")
  fi
  # Copied, so that the command outlives the clone that installed it.
  cp "$here/stylua.mjs" "$folder/stylua.mjs"
  printf '#!/bin/sh\nSTYLUA_PACKAGE=%s exec %s %s "$@"\n' "'$folder/node_modules/@johnnymorganz/stylua'" \
    "'$NODE_BIN/node'" "'$folder/stylua.mjs'" >"$command"
  chmod +x "$command"
  echo "$version" >"$folder/.stamp"
  put_env STYLUA "$command"
  say "StyLua $version is $command"
  ;;
*) die "use: $0 [install|check]" ;;
esac
