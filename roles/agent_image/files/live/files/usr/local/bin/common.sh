#!/usr/bin/env bash
# To be sourced, with SERVICE_BASE_URL and USER_AUTH_TOKEN in the environment: requests to the assisted service.
# Release 4.17 calls the token AGENT_AUTH_TOKEN; releases before it have none.

# curl_assisted_service ENDPOINT [METHOD [CURL ARGUMENT...]]: ENDPOINT is below /v2 and starts with a slash.
curl_assisted_service() {
    local endpoint=$1 method=${2:-GET}
    shift $(( $# > 1 ? 2 : 1 ))
    curl --silent --show-error --max-time 60 --request "$method" \
        --header "Authorization: ${USER_AUTH_TOKEN:-${AGENT_AUTH_TOKEN:-}}" --header 'Accept: application/json' \
        "$@" "${SERVICE_BASE_URL}api/assisted-install/v2${endpoint}"
}
