# Shared by the part scripts of this folder; sourced, never run.
#
# Every script of this folder brings one real part that the tests need. All of
# them follow the same manner:
#
#   bash tests/setup/PART.sh           install the part if it is missing (idempotent)
#   bash tests/setup/PART.sh check     exit 0 if the part is present, else say what is missing
#
# and print one line: what was done and where the part is. Parts that are
# services also know `start` and `stop`; a service that was already running
# before us is used as it is and never stopped.
#
# Parts live in one cache folder outside the repository. `env` in it holds
# one `export NAME=value` a line; tests source it (or read it) to find parts.

set -euo pipefail

CACHE="${CODEINTERP_TESTBED:-${XDG_CACHE_HOME:-$HOME/.cache}/codeinterp-testbed}"
ENV_FILE="$CACHE/env"
LOGS="$CACHE/logs"
mkdir -p "$CACHE" "$LOGS"
PART="$(basename "${BASH_SOURCE[1]:-$0}" .sh)"

# Only with these are other people's caches and prompts out of the way.
export DEBIAN_FRONTEND=noninteractive PIP_NO_INPUT=1 PIP_DISABLE_PIP_VERSION_CHECK=1

say() { printf '%s: %s\n' "$PART" "$*"; }

die() {
  printf '%s: %s\n' "$PART" "$*" >&2
  exit 1
}

# missing WHAT: the sentence of a failed `check`, with the command that mends it.
missing() { die "$* is missing; install it with: bash tests/setup/$PART.sh"; }

# log_run COMMAND...: run quietly, keep the output, show its end when it fails.
log_run() {
  local log="$LOGS/$PART.log"
  if ! "$@" </dev/null >>"$log" 2>&1; then
    tail -n 30 "$log" >&2
    die "this failed: $*; the whole log is $log"
  fi
}

# put_env NAME VALUE: record where a part is. Scripts run side by side, hence the lock.
put_env() {
  (
    flock 9
    touch "$ENV_FILE"
    grep -v "^export $1=" "$ENV_FILE" >"$ENV_FILE.new" || true
    printf 'export %s=%q\n' "$1" "$2" >>"$ENV_FILE.new"
    mv "$ENV_FILE.new" "$ENV_FILE"
  ) 9>"$CACHE/env.lock"
}

# apt_install PACKAGE...: Debian packages that are not there yet.
apt_install() {
  local wanted=() package
  for package in "$@"; do
    [[ "$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null)" == *'ok installed'* ]] || wanted+=("$package")
  done
  [ ${#wanted[@]} -eq 0 ] && return
  command -v apt-get >/dev/null || die "needs these Debian packages, and there is no apt-get: ${wanted[*]}"
  local sudo=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || die "needs root to install: ${wanted[*]}"
    sudo=(sudo -n --preserve-env=DEBIAN_FRONTEND)
  fi
  (
    flock 9 # apt has one lock of its own and fails instead of waiting for it
    # A fresh machine has no package lists, an old one stale ones: ask once a day.
    if [ -z "$(find "$CACHE/apt-updated" -mtime -1 2>/dev/null)" ]; then
      log_run "${sudo[@]}" apt-get update -q
      touch "$CACHE/apt-updated"
    fi
    log_run "${sudo[@]}" apt-get install -y -q --no-install-recommends "${wanted[@]}"
  ) 9>"$CACHE/apt.lock"
}

# venv FOLDER REQUIREMENT...: a Python environment with exactly these requirements;
# rebuilt when the list or the Python changes.
venv() {
  local folder="$1" stamp
  shift
  command -v python3 >/dev/null || apt_install python3 python3-venv
  stamp="$(python3 -VV) $*"
  if [ -x "$folder/bin/python" ] && [ "$(cat "$folder/.stamp" 2>/dev/null)" = "$stamp" ]; then
    return
  fi
  rm -rf "$folder"
  python3 -c 'import ensurepip, venv' 2>/dev/null || apt_install python3 python3-venv
  log_run python3 -m venv "$folder"
  log_run "$folder/bin/python" -m pip install -q "$@"
  printf '%s\n' "$stamp" >"$folder/.stamp"
}

# venv_ready FOLDER: was the environment finished?
venv_ready() { [ -x "$1/bin/python" ] && [ -f "$1/.stamp" ]; }

# wait_for SECONDS COMMAND...: until the command succeeds.
wait_for() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$deadline" ] || return 1
    sleep 0.1
  done
}

# spawn PIDFILE LOG COMMAND...: start a service that outlives this script and
# holds none of our descriptors, so that a pipe reading our output still ends.
spawn() {
  local pidfile="$1" log="$2"
  shift 2
  setsid "$@" </dev/null >"$log" 2>&1 &
  # The start time tells our process from a later one with the same number.
  printf '%s %s\n' "$!" "$(start_time "$!")" >"$pidfile"
}

start_time() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; }

# stop_spawned PIDFILE: end what spawn started, and only that.
stop_spawned() {
  local pidfile="$1" pid started
  [ -f "$pidfile" ] || return 0
  read -r pid started <"$pidfile" || true
  rm -f "$pidfile"
  [ -n "${pid:-}" ] && [ "$(start_time "$pid")" = "${started:-none}" ] || return 0
  kill "$pid" 2>/dev/null || return 0
  wait_for 20 bash -c "! kill -0 $pid" || kill -9 "$pid" 2>/dev/null || true
}
