#!/usr/bin/env bash
# Starts the installation of this host as a node of an existing cluster.
set -euo pipefail

# shellcheck source=/dev/null
. /usr/local/bin/common.sh
# shellcheck source=/dev/null
. /usr/local/bin/issue_status.sh

host_id=
until [[ -n $host_id ]]; do
    host_id=$(curl_assisted_service "/infra-envs/$INFRA_ENV_ID/hosts" GET --fail 2> /dev/null \
        | jq -r 'first(.[] | select(.status == "known") | .id) // empty') || host_id=
    [[ -n $host_id ]] || sleep 10
done

code=$(curl_assisted_service "/infra-envs/$INFRA_ENV_ID/hosts/$host_id/actions/install" POST \
    --output /run/add-node.reply --write-out '%{http_code}')
if [[ $code != 202 ]]; then
    echo "The service refused to install host $host_id ($code): $(cat /run/add-node.reply)" >&2
    printf '\\e{lightred}This host can not be installed: the service answered %s.\\e{reset}\n' "$code" | set_issue 90_add-node
    exit 1
fi
echo "The installation of host $host_id is started"
printf '\\e{lightgreen}This host is being installed.\\e{reset}\n' | set_issue 90_add-node
