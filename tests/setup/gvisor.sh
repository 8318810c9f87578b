#!/usr/bin/env bash
# gVisor's runsc as an OCI runtime of the Docker engine: Debian trixie's package,
# unpacked into the cache, and named in the engine's configuration, which the
# engine reads again without a restart. Containers that run are not touched.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

here="$(dirname "${BASH_SOURCE[0]}")"
runsc="$CACHE/gvisor/runsc"
configuration="${DOCKER_CONFIGURATION:-/etc/docker/daemon.json}"

known() { docker info --format '{{json .Runtimes}}' | grep -q '"runsc"'; }

# fetch: the package of a newer Debian than this machine's may be, with package lists of its own beside the machine's.
fetch() {
  command -v apt-get >/dev/null || die "needs apt-get to download Debian's package of gVisor"
  command -v dpkg-deb >/dev/null || die "needs dpkg-deb to unpack Debian's package of gVisor"
  [ -f /usr/share/keyrings/debian-archive-keyring.gpg ] || apt_install debian-archive-keyring
  local apt mirror options
  apt="$(mktemp -d "$CACHE/gvisor.XXXXXX")"
  mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/unpacked"
  mirror="$(sed -n 's/^URIs: *\(http[^ ]*\/debian\/*\)$/\1/p' /etc/apt/sources.list.d/debian.sources 2>/dev/null | head -n 1 || true)"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] ${mirror:-http://deb.debian.org/debian} trixie main" >"$apt/sources.list"
  options=(-o "Dir::State::lists=$apt/lists" -o "Dir::Cache=$apt/cache" -o "Dir::Etc::sourcelist=$apt/sources.list"
    -o Dir::Etc::sourceparts=/dev/null -o APT::Get::List-Cleanup=0 -o APT::Sandbox::User=root)
  log_run apt-get "${options[@]}" -q update
  (cd "$apt" && log_run apt-get "${options[@]}" -q download runsc)
  log_run dpkg-deb -x "$apt"/runsc_*.deb "$apt/unpacked"
  mkdir -p "$(dirname "$runsc")"
  mv "$apt/unpacked/usr/bin/runsc" "$runsc"
  rm -rf "$apt"
}

# tell_engine: add the runtime to whatever the configuration holds. The sandbox has
# no network, and runsc is told so: it then makes none, where it may not either.
tell_engine() {
  [ "$(id -u)" = 0 ] || die "only root can add a runtime to $configuration"
  mkdir -p "$(dirname "$configuration")"
  python3 - "$configuration" "$runsc" <<'EOF'
import json, os, sys

path, runsc = sys.argv[1:]
settings = json.load(open(path)) if os.path.exists(path) and os.path.getsize(path) else {}
settings.setdefault("runtimes", {})["runsc"] = {"path": runsc, "runtimeArgs": ["--network=none"]}
with open(path + ".new", "w") as file:
    json.dump(settings, file, indent=2)
    file.write("\n")
os.replace(path + ".new", path)
EOF
  local engine
  engine="$(cat /var/run/docker.pid 2>/dev/null)" && [ "$(cat "/proc/$engine/comm" 2>/dev/null)" = dockerd ] ||
    die "the engine is no dockerd of this machine; name $runsc as the runtime 'runsc' in its configuration"
  kill -HUP "$engine"
  wait_for 10 known || die "the engine did not take the runtime of $configuration"
}

case "${1:-install}" in
check)
  [ -x "$runsc" ] || missing "gVisor's runsc"
  known || missing "the runtime runsc of the Docker engine"
  ;;
install)
  bash "$here/docker.sh" install >/dev/null
  [ -x "$runsc" ] || fetch
  known || tell_engine
  say "$("$runsc" --version | head -n 1) is the runtime runsc of the engine"
  ;;
*) die "use: $0 [install|check]" ;;
esac
