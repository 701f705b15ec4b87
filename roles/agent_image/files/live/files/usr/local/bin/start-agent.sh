#!/usr/bin/env bash
# Starts the agent as soon as the assisted service knows the infra-env of this cluster.
set -euo pipefail

# shellcheck source=/dev/null
. /usr/local/bin/common.sh

echo "Waiting for the infra-env at ${SERVICE_BASE_URL}"
infra_env_id=
told=
while true; do
    answer=$(curl_assisted_service /infra-envs GET --write-out '\n%{http_code}' 2> /dev/null) || answer=
    status=${answer##*$'\n'}
    if [[ $status == 200 ]]; then
        infra_env_id=$(jq -r '.[0].id // empty' <<< "${answer%$'\n'*}") || infra_env_id=
        [[ -z $infra_env_id ]] || break
        sleep 2  # it may be there soon
        continue
    elif [[ $status == 401 && -z $told ]]; then
        told=yes
        echo "${SERVICE_BASE_URL} refuses the token of this host: HTTP 401 $(jq -r '.message // empty' <<< "${answer%$'\n'*}")"
    fi
    sleep 5
done
echo "The infra-env is $infra_env_id"

exec /usr/local/bin/agent --url "$SERVICE_BASE_URL" --infra-env-id "$infra_env_id" \
    --agent-version "$(cat /run/agent-image)" --insecure=true
