#!/usr/bin/env bash
# Runs a job of ci/jobs.yml in this pod.
set -o nounset -o errexit -o pipefail

cd "${AGENTLAB_CHECKOUT}"
bin/agentlab setup >&2
exec bin/agentlab ci run "${AGENTLAB_JOB}" --cluster ci
