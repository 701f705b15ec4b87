#!/usr/bin/env bash
# Writes the pullspecs of the installer's own containers for the units that run them.
set -euo pipefail

/usr/local/bin/release-image-download.sh
# shellcheck source=/dev/null
. /usr/local/bin/release-image.sh

target=/usr/local/share/assisted-service/agent-images.env
service=$(image_for agent-installer-api-server)
{
    echo "SERVICE_IMAGE=$service"
    echo "CONTROLLER_IMAGE=$(image_for agent-installer-csr-approver)"
    echo "INSTALLER_IMAGE=$(image_for agent-installer-orchestrator)"
    echo "AGENT_DOCKER_IMAGE=$(image_for agent-installer-node-agent)"
    # Not every release has these two.
    echo "AGENT_INSTALLER_UTILS_IMAGE=$(image_for agent-installer-utils || true)"
    echo "INSTALLER_UI_IMAGE=$(image_for agent-installer-ui || true)"
} > "$target.new"
mv "$target.new" "$target"

# The database and the service start from it, with a timeout that is too short for downloads.
pull_image "$service"
