#!/usr/bin/env bash
# Installs a cluster on the leased host. The result of the installation is in install-status.txt whatever ends this step.
set -o nounset -o errexit -o pipefail

# Exit classes of openshift-install: 3 configuration, 4 infrastructure.
class=4
dir=${AGENTLAB_HOST_DIR}
what="the leased host does not answer to ssh"
job=
remote=()

host() {
    "${remote[@]}" "$@"
}

# The same for what is written there. The reason of a failure is the line with the system's error, or else the first one.
reason=$(mktemp)
put() {
    "${remote[@]}" "$@" 2> "${reason}" || { cat "${reason}" >&2; return 1; }
}

# agentlab on the leased host; each argument arrives as it is.
agentlab() {
    host "cd $(printf %q "${dir}") && AGENTLAB_RUNS=$(printf %q "${dir}/runs") $(printf '%q ' "$@")"
}

# Fetch a folder of the leased host, if there is one.
fetch() {
    host "tar -cz -C $(printf %q "${dir}/$1") ." | tar -xz --no-same-owner --no-same-permissions -C "$2"
}

finished() {
    status=$?
    trap - EXIT INT TERM
    set +o errexit
    lines=$(grep -c . "${SHARED_DIR}/install-status.txt" 2>/dev/null || true)
    if [[ ${#remote[@]} != 0 ]]; then
        fetch shared "${SHARED_DIR}"
        fetch artifacts "${ARTIFACT_DIR}"
    fi
    # What failed before agentlab could report it.
    if [[ $(grep -c . "${SHARED_DIR}/install-status.txt" 2>/dev/null || true) == "${lines}" && "${status}" != 0 ]]; then
        if [[ -s "${reason}" ]]; then
            what+=": $(grep -m 1 "No space left on device" "${reason}" || head -n 1 "${reason}")"
        fi
        echo "agentlab-setup: ${what}" | tee "${SHARED_DIR}/install_infrastructure_failure.log" >&2
        echo "${class}" >> "${SHARED_DIR}/install-status.txt"
        status=${class}
    fi
    exit "${status}"
}

# The pod is to end: ask agentlab to, which leaves its results, and fetch them.
stop() {
    trap '' INT TERM
    echo "agentlab-setup: interrupted" >&2
    if [[ -n "${job}" ]]; then
        host "kill -TERM \$(cat $(printf %q "${dir}/pid"))" || true
        wait "${job}" || true
    fi
    exit 1
}

trap finished EXIT
trap stop INT TERM

# shellcheck source=/dev/null
source "${SHARED_DIR}/packet-conf.sh"
remote=(ssh "${SSHOPTS[@]}" "root@${IP}")

what="the sources could not be copied to the leased host"
agentlab_sources=(--exclude=./.git --exclude=./.venv --exclude=./runs --exclude=./artifacts --exclude=./build .)
put "mkdir -p $(printf %q "${dir}")/{shared,artifacts}"
tar -cz "${agentlab_sources[@]}" | put "tar -xz --no-same-owner -C $(printf %q "${dir}")"
if [[ -s "${SHARED_DIR}/install-status.txt" ]]; then
    put "cat > $(printf %q "${dir}/shared/install-status.txt")" < "${SHARED_DIR}/install-status.txt"
fi

what="the packages of a lab could not be installed on the leased host"
agentlab bin/agentlab setup

class=3
profile=${AGENTLAB_PROFILE}
if [[ -n "${DEVSCRIPTS_CONFIG}" ]]; then
    what="DEVSCRIPTS_CONFIG is refused, for the reasons above"
    profile=${dir}/profile.yml
    # Its own setup step begins with these lines; a job's come later and win.
    lines=$'OPENSHIFT_CI=true\nNUM_WORKERS=3\n'
    if [[ "${AGENTLAB_PAYLOAD}" == ocp ]]; then
        lines+="WORKER_MEMORY=16384"$'\n'"OPENSHIFT_RELEASE_IMAGE=${OPENSHIFT_INSTALL_RELEASE_IMAGE}"$'\n'
    fi
    printf '%s\n' "${lines}${DEVSCRIPTS_CONFIG}" | agentlab bin/agentlab import devscripts - --partial -o "${profile}"
elif [[ -z "${profile}" ]]; then
    what="AGENTLAB_PROFILE and DEVSCRIPTS_CONFIG are empty; set one of them"
    exit 1
fi
class=4
what="agentlab on the leased host could not be run, or the host was lost"

run=(bin/agentlab ci run "${profile}" --cluster "${AGENTLAB_CLUSTER}" --keep --artifacts "${dir}/artifacts" --shared "${dir}/shared")
run+=(--set "hypervisor.kind=${AGENTLAB_HYPERVISOR}")
if [[ "${AGENTLAB_PAYLOAD}" == ocp ]]; then
    put "umask 077; cat > $(printf %q "${dir}/pull-secret")" < "${CLUSTER_PROFILE_DIR}/pull-secret"
    run+=(--set release.payload=ocp --set "release.image=${OPENSHIFT_INSTALL_RELEASE_IMAGE}")
    run+=(--set "installer.pull_secret_file=${dir}/pull-secret")
    if [[ "${AGENTLAB_HYPERVISOR}" == sandbox ]]; then
        run+=(--set hypervisor.egress=true)
    fi
fi
# What earlier steps add to the installation, as the steps of dev-scripts take it.
shopt -s nullglob
manifests=("${SHARED_DIR}"/manifest_*.{yaml,yml})
if [[ ${#manifests[@]} != 0 ]]; then
    what="the manifests in SHARED_DIR could not be copied to the leased host"
    put "mkdir -p $(printf %q "${dir}/manifests")"
    tar -cz -C "${SHARED_DIR}" "${manifests[@]##*/}" | put "tar -xz --no-same-owner -C $(printf %q "${dir}/manifests")"
    run+=(--set "installer.manifests_dir=${dir}/manifests")
fi
what="agentlab on the leased host could not be run, or the host was lost"
while IFS= read -r line; do
    if [[ -n "${line}" ]]; then
        run+=(--set "${line}")
    fi
done <<< "${AGENTLAB_CONFIG}"
if [[ -n "${AGENTLAB_STAGES}" ]]; then
    run+=(--stages "${AGENTLAB_STAGES}")
fi
if [[ -n "${AGENTLAB_ARTIFACTS_URL}" ]]; then
    run+=(--artifacts-url "${AGENTLAB_ARTIFACTS_URL}")
fi
address=${IP}
if [[ "${address}" == *:* ]]; then
    address="[${address}]"
fi
run+=(--proxy-url "http://${address}:${AGENTLAB_PROXY_PORT}/")
if [[ "${AGENTLAB_HYPERVISOR}" == sandbox ]]; then
    run+=(--proxy-listen "0.0.0.0:${AGENTLAB_PROXY_PORT}")
fi

# timeout(1) forwards SIGTERM, and agentlab then ends in order.
agentlab sh -c "echo \$\$ > \"\$0/pid\"; exec \"\$@\"" "${dir}" timeout --kill-after=5m "${AGENTLAB_TIMEOUT}" "${run[@]}" < /dev/null &
job=$!
wait "${job}"
