#!/usr/bin/env bash
# Starts the installation once all hosts are ready, and again if the cluster falls back to ready.
set -euo pipefail

# shellcheck source=/dev/null
. /usr/local/bin/common.sh
# shellcheck source=/dev/null
. /usr/local/bin/issue_status.sh
# shellcheck source=/dev/null
. /usr/local/share/start-cluster/start-cluster.env

required=$(( REQUIRED_MASTER_NODES + ${REQUIRED_ARBITER_NODES:-0} + REQUIRED_WORKER_NODES ))
issue=90_start-install

# The first cluster's FIELD, or nothing.
cluster() {
    curl_assisted_service /clusters GET --fail 2> /dev/null | jq -r ".[0].$1 // empty" || true
}

echo "Waiting for the cluster to be registered"
cluster_id=$(cluster id)
until [[ -n $cluster_id ]]; do
    sleep 2
    cluster_id=$(cluster id)
done

echo "Waiting for $required hosts: $REQUIRED_MASTER_NODES masters, ${REQUIRED_ARBITER_NODES:-0} arbiters, $REQUIRED_WORKER_NODES workers"
known=
while true; do
    now=$(curl_assisted_service "/infra-envs/$INFRA_ENV_ID/hosts" GET --fail 2> /dev/null \
        | jq '[.[] | select(.status == "known")] | length') || now=0
    if [[ $now != "$known" ]]; then
        known=$now
        echo "$known of $required hosts are ready"
        printf '\\e{yellow}Waiting for all hosts: %s of %s are ready.\\e{reset}\n' "$known" "$required" | set_issue "$issue"
    fi
    [[ $known -ne $required ]] || break
    sleep 10
done
printf '\\e{lightgreen}All %s hosts are ready, the installation starts.\\e{reset}\n' "$required" | set_issue "$issue"

status=
until [[ $status == installed ]]; do
    now=$(cluster status)
    if [[ -n $now && $now != "$status" ]]; then
        status=$now
        echo "The cluster is $status"
    fi
    if [[ $now == ready ]]; then
        code=$(curl_assisted_service "/clusters/$cluster_id/actions/install" POST \
            --output /run/start-cluster-installation.reply --write-out '%{http_code}') || code=none
        if [[ $code == 202 ]]; then
            echo "The installation is started"
            printf '\\e{lightgreen}Cluster installation in progress.\\e{reset}\n' | set_issue "$issue"
        else
            echo "The service refused to start the installation ($code): $(cat /run/start-cluster-installation.reply)" >&2
        fi
    fi
    sleep 5
done
clear_issue "$issue"
