#!/usr/bin/env bash
# Starts the agent as soon as the assisted service knows the infra-env of this cluster.
set -euo pipefail

# shellcheck source=/dev/null
. /usr/local/bin/common.sh

echo "Waiting for the infra-env at ${SERVICE_BASE_URL}"
infra_env_id=
until [[ -n $infra_env_id ]]; do
    infra_env_id=$(curl_assisted_service /infra-envs GET --fail 2> /dev/null | jq -r '.[0].id // empty') || infra_env_id=
    [[ -n $infra_env_id ]] || sleep 5
done
echo "The infra-env is $infra_env_id"

exec /usr/local/bin/agent --url "$SERVICE_BASE_URL" --infra-env-id "$infra_env_id" \
    --agent-version "$(cat /run/agent-image)" --insecure=true
