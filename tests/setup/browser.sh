#!/usr/bin/env bash
# Chromium, and playwright-core to drive it (its own browser download is not used).
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

version=1.65.1
folder="$CACHE/playwright"
here="$(dirname "${BASH_SOURCE[0]}")"

chromium() { command -v chromium || command -v chromium-browser || command -v google-chrome; }
ready() { [ "$(cat "$folder/.stamp" 2>/dev/null)" = "$version" ]; }

case "${1:-install}" in
check)
  chromium >/dev/null || missing "Chromium"
  ready || missing "playwright-core"
  ;;
install)
  # The fonts make screenshots with Chinese text readable.
  chromium >/dev/null || apt_install chromium fonts-wqy-microhei
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
  put_env CHROMIUM "$(chromium)"
  put_env PLAYWRIGHT "$folder/node_modules/playwright-core"
  say "$("$(chromium)" --version 2>/dev/null), driven by playwright-core $version in $folder"
  ;;
*) die "use: $0 [install|check]" ;;
esac
