# Configuration of dev-scripts, written by agentlab from a profile.
# No counterpart: stack: scenarios of dev-scripts have IPv4 first
# No counterpart: release.payload: dev-scripts installs a real release: set OPENSHIFT_RELEASE_IMAGE and CI_TOKEN
# No counterpart: network.mtu: dev-scripts has no variable for it
# No counterpart: extra_networks.0.interface: dev-scripts has no variable for it
# No counterpart: extra_networks.0.mtu: dev-scripts has no variable for it
# No counterpart: extra_networks.0.vlan: dev-scripts has no variable for it
# No counterpart: extra_networks.1.mtu: dev-scripts has no variable for it
# No counterpart: bonds: dev-scripts has no variable for it
# No counterpart: network.interface: dev-scripts has no variable for it
# No counterpart: network.vlan: dev-scripts has no variable for it
# No counterpart: network.routes: dev-scripts has no variable for it
export AGENT_E2E_TEST_SCENARIO=SNO_IPV4V6  # topology, stack, addressing
export STORAGE0_NETWORK_SUBNET_V4=192.168.221.0/24  # extra_networks.0.ipv4
export BACKUP0_NETWORK_SUBNET_V4=192.168.222.0/24  # extra_networks.1.ipv4
export EXTRA_NETWORK_NAMES='storage0 backup0'  # extra_networks
