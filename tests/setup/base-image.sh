#!/usr/bin/env bash
# A base image made without any image registry: a minimal Debian with Python,
# by debootstrap, imported into the engine as codeinterp-testbed-base:RELEASE.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

release=bookworm
image="codeinterp-testbed-base:$release"
packages=python3,python3-venv,ca-certificates
tarball="$CACHE/base-$release.tar"

here="$(dirname "${BASH_SOURCE[0]}")"

present() { docker image inspect "$image"; }

make_tarball() {
  [ "$(id -u)" = 0 ] || die "debootstrap needs root"
  apt_install debootstrap debian-archive-keyring
  local root
  root="$(mktemp -d "$CACHE/base.XXXXXX")"
  # The mirror of this machine's own package source, where it names one.
  local mirror
  mirror="$(sed -n 's/^URIs: *\(http[^ ]*\/debian\/*\)$/\1/p; s/^deb \(\[[^]]*\] \)\{0,1\}\(http[^ ]*\/debian\/*\) .*/\2/p' \
    /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list 2>/dev/null | head -n 1 || true)"
  log_run debootstrap --variant=minbase --include="$packages" "$release" "$root" ${mirror:+"$mirror"}
  rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/*
  tar -C "$root" --numeric-owner -cf "$tarball.new" .
  mv "$tarball.new" "$tarball"
  rm -rf --one-file-system "$root"
}

case "${1:-install}" in
check)
  present >/dev/null 2>&1 || missing "the image $image"
  ;;
install)
  bash "$here/docker.sh" install >/dev/null
  if ! present >/dev/null 2>&1; then
    [ -f "$tarball" ] || make_tarball
    log_run docker import --change 'CMD ["/bin/sh"]' "$tarball" "$image"
  fi
  put_env CODEINTERP_SANDBOX_BASE "$image"
  say "$image, $(docker image inspect --format '{{.Size}}' "$image" | awk '{ printf "%d MB", $1 / 1e6 }')"
  ;;
*) die "use: $0 [install|check]" ;;
esac
