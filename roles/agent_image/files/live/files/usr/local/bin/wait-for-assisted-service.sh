#!/usr/bin/env bash
# Waits until the assisted service answers.
set -uo pipefail

# shellcheck source=/dev/null
. /usr/local/bin/common.sh

said=
until curl_assisted_service /infra-envs GET --fail --output /dev/null 2> /dev/null; do
    if [[ -z $said ]]; then
        echo "Waiting for the assisted service at ${SERVICE_BASE_URL}"
        said=yes
    fi
    sleep 5
done
echo "The assisted service is ready"
