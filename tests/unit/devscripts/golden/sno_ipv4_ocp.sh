# Configuration of dev-scripts, written by agentlab from a profile.
export AGENT_E2E_TEST_SCENARIO=SNO_IPV4_DHCP  # topology, stack, addressing
export OPENSHIFT_RELEASE_IMAGE=quay.io/openshift-release-dev/ocp-release:4.20.0-x86_64  # release.image
export OPENSHIFT_VERSION=4.20.0  # release.version
export PERSONAL_PULL_SECRET="$HOME"/.config/agentlab/pull-secret.json  # installer.pull_secret_file
