# Configuration of dev-scripts, written by agentlab from a profile.
# No counterpart: stack: scenarios of dev-scripts have IPv4 first
# No counterpart: release.payload: dev-scripts installs a real release: set OPENSHIFT_RELEASE_IMAGE and CI_TOKEN
export AGENT_E2E_TEST_SCENARIO=SNO_IPV4V6  # topology, stack, addressing
