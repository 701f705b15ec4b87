#!/usr/bin/env bash
# Keeps the console of the rendezvous host up to date: services that are not running, host configurations that cannot be applied, the UI's URL.
set -uo pipefail

# shellcheck source=/dev/null
. /usr/local/bin/issue_status.sh
# shellcheck source=/dev/null
. /etc/assisted/rendezvous-host.env

services=(assisted-service-pod assisted-service-db assisted-service agent-register-infraenv apply-host-config)
if [[ -f /etc/assisted/add-nodes.env ]]; then
    services+=(agent-import-cluster agent-add-node)
elif [[ ! -f /etc/assisted/interactive-ui ]]; then
    services+=(agent-register-cluster start-cluster-installation)
fi
failures=/var/run/agent-installer/host-config-failures

while true; do
    mapfile -t states < <(systemctl is-active "${services[@]/%/.service}")
    idle=()
    for index in "${!services[@]}"; do
        [[ ${states[index]:-} == active ]] || idle+=("${services[index]}.service (${states[index]:-unknown})")
    done
    if (( ${#idle[@]} )); then
        {
            printf '\\e{yellow}Waiting for services:\\e{reset}\n'
            printf '  %s\n' "${idle[@]}"
        } | set_issue 70_agent-services
    else
        clear_issue 70_agent-services
    fi

    if [[ -s $failures ]]; then
        {
            printf '\\e{lightred}Installation cannot proceed, these hosts do not match their configuration:\\e{reset}\n'
            sed 's/^/  /' "$failures"
        } | set_issue 80_host-config
    else
        clear_issue 80_host-config
    fi

    if [[ -f /etc/assisted/interactive-ui ]]; then
        if curl --silent --fail --max-time 5 --output /dev/null "${AIUI_URL:-http://localhost:3001/}"; then
            printf '\\e{lightgreen}Continue the installation at %s\\e{reset}\n' "${AIUI_URL:-}" | set_issue 90_ui-availability
        else
            printf '\\e{yellow}The web interface is starting.\\e{reset}\n' | set_issue 90_ui-availability
        fi
    fi
    sleep 10
done
