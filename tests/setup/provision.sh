#!/usr/bin/env bash
# Makes both sandboxes ready ahead of the tests, by the product's own command:
# the Python environment of the process sandbox, the image of the Docker one, and
# the same image in Podman's storage, built by Podman.
# Not a part with `check`: what exists already is noticed by the product itself.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

: "${CODEINTERP_BIN:?the built codeinterp; tests/run sets it}"

for backend in process docker; do
  began=$SECONDS
  "$CODEINTERP_BIN" sandbox build --sandbox "$backend" </dev/null
  say "the $backend sandbox is ready after $((SECONDS - began)) s"
done

: "${CODEINTERP_TEST_PODMAN:?names the service of Podman; bash tests/setup/podman.sh records it}"
began=$SECONDS
DOCKER_HOST="$CODEINTERP_TEST_PODMAN" "$CODEINTERP_BIN" sandbox build --sandbox docker </dev/null
say "the image in Podman's storage is ready after $((SECONDS - began)) s"
