#!/usr/bin/env bash
# A Docker engine. Where none answers, `dockerd` is started in the background
# (no init system needed) and ended by `stop`. An engine that was there stays.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pidfile="$CACHE/dockerd.pid"

answers() { timeout 10 docker info; }

# forget PIDFILE NAME: remove the file unless a living process of that name has its number (a zombie is dead).
forget() {
  local stat
  [ -f "$1" ] || return 0
  stat="$(cat "/proc/$(cat "$1")/stat" 2>/dev/null)" || true
  case "$stat" in
  *"($2) Z "*) rm -f "$1" ;;
  *"($2) "*) ;;
  *) rm -f "$1" ;;
  esac
}

start() {
  answers >/dev/null 2>&1 && return
  [ "$(id -u)" = 0 ] || die "no Docker engine answers, and only root can start one; start yours and run this again"
  # Left by an engine that was killed; a new one refuses to start beside another
  # process that has got the number since.
  forget /var/run/docker.pid dockerd
  forget /var/run/docker/containerd/containerd.pid containerd
  spawn "$pidfile" "$LOGS/dockerd.log" dockerd
  wait_for 60 answers || { tail -n 20 "$LOGS/dockerd.log" >&2; die "dockerd did not answer within 60 s; its log is $LOGS/dockerd.log"; }
}

case "${1:-install}" in
check)
  command -v docker >/dev/null || missing "the docker command"
  answers >/dev/null 2>&1 || command -v dockerd >/dev/null || missing "a Docker engine"
  ;;
install)
  if ! answers >/dev/null 2>&1; then
    command -v dockerd >/dev/null || apt_install docker.io iptables
    start
  fi
  say "engine $(docker version --format '{{.Server.Version}}') answers on ${DOCKER_HOST:-/var/run/docker.sock}"
  ;;
start) start ;;
stop) stop_spawned "$pidfile" ;;
*) die "use: $0 [install|check|start|stop]" ;;
esac
