#!/usr/bin/env bash
# Chromium, and playwright-core to drive it (its own browser download is not used).
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

version=1.65.1
folder="$CACHE/playwright"
here="$(dirname "${BASH_SOURCE[0]}")"

browser_path() { type -P chromium || type -P chromium-browser || type -P google-chrome; }
ready() { [ "$(cat "$folder/.stamp" 2>/dev/null)" = "$version" ]; }

case "${1:-install}" in
check)
  browser_path >/dev/null || missing "Chromium"
  ready || missing "playwright-core"
  ;;
install)
  # The fonts make screenshots with Chinese text readable.
  browser_path >/dev/null || apt_install chromium fonts-wqy-microhei
  if ! ready; then
    bash "$here/node.sh" install >/dev/null
    # shellcheck disable=SC1090
    . "$ENV_FILE"
    rm -rf "$folder"
    mkdir -p "$folder"
    echo '{"private":true}' >"$folder/package.json"
    (cd "$folder" && PATH="$NODE_BIN:$PATH" log_run npm install --ignore-scripts --no-audit --no-fund "playwright-core@$version")
    echo "$version" >"$folder/.stamp"
  fi
  put_env CHROMIUM "$(browser_path)"
  put_env PLAYWRIGHT "$folder/node_modules/playwright-core"
  say "$("$(browser_path)" --version 2>/dev/null), driven by playwright-core $version in $folder"
  ;;
*) die "use: $0 [install|check]" ;;
esac
