#!/usr/bin/env bash
# Collects what the leased host knows of the cluster.
set -o nounset -o errexit -o pipefail

dir=${AGENTLAB_HOST_DIR}
# shellcheck source=/dev/null
source "${SHARED_DIR}/packet-conf.sh"
remote=(ssh "${SSHOPTS[@]}" "root@${IP}")

host() {
    "${remote[@]}" "$@"
}

fetch() {
    host "tar -cz -C $(printf %q "${dir}/$1") ." | tar -xz --no-same-owner --no-same-permissions -C "$2"
}

gather=(timeout --kill-after=1m 15m bin/agentlab ci gather --cluster "${AGENTLAB_CLUSTER}")
gather+=(--artifacts "${dir}/gathered" --shared "${dir}/shared")
if [[ "${AGENTLAB_DESTROY}" == true ]]; then
    gather+=(--destroy)
fi
if [[ -n "${AGENTLAB_ARTIFACTS_URL}" ]]; then
    gather+=(--artifacts-url "${AGENTLAB_ARTIFACTS_URL}")
fi
status=0
host "cd $(printf %q "${dir}") && AGENTLAB_RUNS=$(printf %q "${dir}/runs") $(printf '%q ' "${gather[@]}")" < /dev/null || status=$?
fetch shared "${SHARED_DIR}"
fetch gathered "${ARTIFACT_DIR}"
exit "${status}"
