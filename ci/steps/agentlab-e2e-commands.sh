#!/usr/bin/env bash
# Step of an OpenShift CI workflow. AGENTLAB_JOB is a job of ci/jobs.yml; ARTIFACT_DIR and SHARED_DIR are the system's.
set -euo pipefail

cd "${AGENTLAB_CHECKOUT:-/go/src/github.com/agentlab/ocp}"
exec ci/run-job "${AGENTLAB_JOB:?name a job of ci/jobs.yml}"
