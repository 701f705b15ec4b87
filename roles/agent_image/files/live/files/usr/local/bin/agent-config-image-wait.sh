#!/usr/bin/env bash
# Requests the config image on the console until the configuration exists.
set -euo pipefail

# shellcheck source=/dev/null
. /usr/local/bin/issue_status.sh

while [[ ! -f /etc/assisted/rendezvous-host.env ]]; do
    printf '\\e{yellow}Please attach the config image (agentconfig.noarch.iso) of the cluster.\\e{reset}\n' \
        | set_issue 80_config-image
    sleep 10
done
clear_issue 80_config-image
