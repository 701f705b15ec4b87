#!/usr/bin/env bash
# Installs the text interface of the release into /usr/local/bin.
set -euo pipefail

/usr/local/bin/release-image-download.sh
# shellcheck source=/dev/null
. /usr/local/bin/release-image.sh

image=$(image_for agent-installer-utils)
pull_image "$image"
mount=$(podman image mount "$image")
trap 'podman image unmount "$image" > /dev/null' EXIT
shopt -s nullglob  # the libraries are only in a release whose agent-tui needs them
install -m 0555 "$mount/usr/bin/agent-tui" "$mount"/usr/lib64/libnmstate.so.* /usr/local/bin/
restorecon /usr/local/bin/agent-tui /usr/local/bin/libnmstate.so.* || true
