#!/usr/bin/env bash
# Checks the cluster on the leased host.
set -o nounset -o errexit -o pipefail

dir=${AGENTLAB_HOST_DIR}
if [[ -n "${AGENTLAB_STAGES}" && ",${AGENTLAB_STAGES}," != *,validate,* ]]; then
    echo "agentlab-validate: the stages ${AGENTLAB_STAGES} install no cluster, so there is nothing to check"
    exit 0
fi
# shellcheck source=/dev/null
source "${SHARED_DIR}/packet-conf.sh"
remote=(ssh "${SSHOPTS[@]}" "root@${IP}")

host() {
    "${remote[@]}" "$@"
}

validate=(timeout 15m bin/agentlab ci validate --cluster "${AGENTLAB_CLUSTER}" --artifacts "${dir}/validated")
status=0
host "cd $(printf %q "${dir}") && AGENTLAB_RUNS=$(printf %q "${dir}/runs") $(printf '%q ' "${validate[@]}")" < /dev/null || status=$?
host "tar -cz -C $(printf %q "${dir}/validated") ." | tar -xz --no-same-owner --no-same-permissions -C "${ARTIFACT_DIR}"
exit "${status}"
