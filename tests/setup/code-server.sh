#!/usr/bin/env bash
# Today's VS Code in the browser: code-server from npm, on Node 24. Its install
# script would download prebuilt parts, so they are built here one at a time.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

version=4.139.1
folder="$CACHE/code-server"
root="$folder/node_modules/code-server"
entry="$root/out/node/entry.js"
here="$(dirname "${BASH_SOURCE[0]}")"

ready() { [ -f "$entry" ] && [ "$(cat "$folder/.stamp" 2>/dev/null)" = "$version" ]; }

npm_in() { # FOLDER ARGUMENTS...
  (cd "$1" && shift && log_run npm "$@" --no-audit --no-fund --loglevel=error)
}

# Some of the modules say that they failed and still work, or are wanted on
# other systems only; the start of the server is what decides.
rebuild() { # FOLDER MODULE
  (cd "$1" && npm rebuild "$2" --foreground-scripts </dev/null >>"$LOGS/$PART.log" 2>&1) ||
    echo "rebuilding $2 failed" >>"$LOGS/$PART.log"
}

install() {
  bash "$here/node.sh" install >/dev/null
  # shellcheck disable=SC1090
  . "$ENV_FILE"
  export PATH="$NODE_BIN:$PATH"
  # The headers to build against come with the wheel.
  export npm_config_nodedir="$NODE_HOME"
  apt_install build-essential pkg-config libkrb5-dev curl
  renice -n 10 $$ >/dev/null
  rm -rf "$folder"
  mkdir -p "$folder"
  echo '{"private":true}' >"$folder/package.json"
  npm_in "$folder" install --ignore-scripts --save-exact "code-server@$version"
  npm_in "$root/lib/vscode" install --omit=dev --ignore-scripts
  npm_in "$root/lib/vscode/extensions" install --omit=dev --ignore-scripts
  local module
  for module in @vscode/spdlog node-pty @vscode/native-watchdog @parcel/watcher kerberos \
    @vscode/deviceid @vscode/sqlite3 @vscode/fs-copyfile; do
    rebuild "$root/lib/vscode" "$module"
  done
  rebuild "$folder" argon2
  ln -sfn node_modules "$root/lib/vscode/node_modules.asar"
  starts || die "code-server $version was installed and does not start; the log is $LOGS/$PART.log"
  echo "$version" >"$folder/.stamp"
}

# Does a server of ours come up on some free port and answer?
starts() {
  local scratch port pidfile ok=0
  scratch="$(mktemp -d)"
  pidfile="$scratch/pid"
  port="$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')"
  spawn "$pidfile" "$scratch/log" node "$entry" --auth none --bind-addr "127.0.0.1:$port" \
    --user-data-dir "$scratch/data" --extensions-dir "$scratch/extensions" \
    --disable-telemetry --disable-update-check --disable-workspace-trust
  wait_for 60 curl -sf --noproxy 127.0.0.1 -L "http://127.0.0.1:$port/" || ok=1
  stop_spawned "$pidfile"
  [ "$ok" = 0 ] || cat "$scratch/log" >>"$LOGS/$PART.log"
  rm -rf "$scratch"
  return "$ok"
}

case "${1:-install}" in
check)
  ready || missing "code-server $version (VS Code in the browser)"
  ;;
install)
  ready || install
  put_env CODE_SERVER_ENTRY "$entry"
  say "VS Code $(sed -n 's/^  "version": "\(.*\)",$/\1/p' "$root/lib/vscode/package.json" | head -n 1) (code-server $version): node $entry"
  ;;
*) die "use: $0 [install|check]" ;;
esac
