#!/usr/bin/env bash
# Podman's Docker-compatible service, with storage of its own beside whatever
# else Podman holds on this machine. `start` and `stop` run the service.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

here="$(dirname "${BASH_SOURCE[0]}")"
# Not in the cache folder: layers of images are no files to be copied elsewhere.
storage="${PODMAN_STORAGE:-/var/tmp/codeinterp-podman}"
socket="$storage/podman.sock"
pidfile="$CACHE/podman.pid"
base="codeinterp-testbed-base:bookworm"

export CONTAINERS_CONF="$storage/containers.conf"
podman_here() { podman --root "$storage/root" --runroot "$storage/run" "$@"; }

configure() {
  [ "$(id -u)" = 0 ] || die "needs root: its storage and control groups are the machine's"
  mkdir -p "$storage"
  {
    # Podman asks for more open files than some machines allow.
    printf '[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]\n'
    # crun refuses the mixed hierarchy of older systems.
    if [ "$(stat -fc %T /sys/fs/cgroup)" != cgroup2fs ]; then
      printf '[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\n'
    else
      printf '[engine]\ncgroup_manager = "cgroupfs"\n'
    fi
  } >"$CONTAINERS_CONF"
}

answers() { curl -fsS --max-time 5 --unix-socket "$socket" http://podman/_ping; }

start() {
  answers >/dev/null 2>&1 && return
  configure
  rm -f "$socket"
  spawn "$pidfile" "$LOGS/podman.log" podman --root "$storage/root" --runroot "$storage/run" system service --time=0 "unix://$socket"
  wait_for 30 answers || { tail -n 20 "$LOGS/podman.log" >&2; die "Podman's service did not answer within 30 s"; }
}

case "${1:-install}" in
check)
  command -v podman >/dev/null || missing "podman"
  [ -f "$CONTAINERS_CONF" ] && podman_here image exists "$base" || missing "the base image in Podman's storage"
  ;;
install)
  # Its init for containers is a package of its own on Debian.
  command -v podman >/dev/null && [ -n "$(find /usr/libexec/podman /usr/lib/podman /usr/bin -name catatonit 2>/dev/null)" ] || apt_install podman catatonit
  command -v curl >/dev/null || apt_install curl
  command -v runc >/dev/null || command -v crun >/dev/null || apt_install runc
  configure
  bash "$here/base-image.sh" install >/dev/null
  podman_here image exists "$base" || log_run bash -c "docker save '$base' | podman --root '$storage/root' --runroot '$storage/run' load"
  put_env CODEINTERP_TEST_PODMAN "unix://$socket"
  say "$(podman --version), with $base in $storage"
  ;;
start) start ;;
stop) stop_spawned "$pidfile" ;;
*) die "use: $0 [install|check|start|stop]" ;;
esac
