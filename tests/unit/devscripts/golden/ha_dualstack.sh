# Configuration of dev-scripts, written by agentlab from a profile.
# No counterpart: release.payload: dev-scripts installs a real release: set OPENSHIFT_RELEASE_IMAGE and CI_TOKEN
export AGENT_E2E_TEST_SCENARIO=HA_IPV4V6_DHCP  # topology, stack, addressing
