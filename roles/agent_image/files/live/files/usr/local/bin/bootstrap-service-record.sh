#!/usr/bin/env bash
# To be sourced: records the phases of a service in /var/log/openshift/<service>.json, a list of entries with timestamp, phase and result,
# for later log collection.

SERVICE_RECORD_FILE="/var/log/openshift/${SERVICE_NAME:-$(basename "$0" .sh)}.json"

# record PHASE [RESULT [MESSAGE]]
_record() {
    local entries='[]'
    mkdir -p "${SERVICE_RECORD_FILE%/*}"
    if [[ -s $SERVICE_RECORD_FILE ]]; then
        entries=$(<"$SERVICE_RECORD_FILE")
    fi
    jq --arg time "$(date -u +%Y-%m-%dT%H:%M:%SZ)" --arg phase "$1" --arg stage "${STAGE_NAME:-}" \
        --arg result "${2:-}" --arg message "${3:-}" \
        '. + [{timestamp: $time, phase: $phase, stage: $stage, result: $result, errorMessage: $message}
              | with_entries(select(.value != ""))]' <<< "$entries" > "$SERVICE_RECORD_FILE.new"
    mv "$SERVICE_RECORD_FILE.new" "$SERVICE_RECORD_FILE"
}

record_service_start() {
    _record "service start"
    trap 'record_service_stop $?' EXIT
}

# record_service_stop STATUS
record_service_stop() {
    if [[ $1 -eq 0 ]]; then
        _record "service end" success
    else
        _record "service end" failure "exit status $1"
    fi
}

# record_service_stage_start NAME
record_service_stage_start() {
    STAGE_NAME=$1
    _record "stage start"
}

record_service_stage_success() {
    _record "stage end" success
    STAGE_NAME=
}

record_service_stage_failure() {
    _record "stage end" failure "${1:-}"
    STAGE_NAME=
}
