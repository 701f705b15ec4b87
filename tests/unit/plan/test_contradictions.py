"""What a profile contradicts itself in is refused before anything is created: one message, with the field and what would be right."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.plan.refused import problem

BOND = "bonds: {bond0: {mode: 802.3ad, nics: [eth0, eth1]}}\n"
ON = BOND + "network: {interface: bond0, vlan: 100}\n"
NONE = "topology: compact\nplatform: none\n"
SLAAC = "stack: ipv6\naddressing: slaac\n"
EDGE = "segments: {edge0: {ipv4: 192.168.112.0/24}}\n"
WORKER = "worker: {count: 1, segment: edge0}\n"
BALANCER = "installer: {install_config: {platform: {baremetal: {loadBalancer: {type: UserManaged}}}}}\n"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        # Bonds, VLANs, MTUs and routes
        ("bonds: {bond0: {mode: lacp, nics: [eth0, eth1]}}\nnetwork: {interface: bond0}\n",
         "p.yml:1:17: bonds.bond0.mode is 'lacp': must be one of active-backup, balance-xor, 802.3ad"),
        ("bonds: {bond0: {mode: balance-rr, nics: [eth0, eth1]}}\nnetwork: {interface: bond0}\n",
         "p.yml:1:17: bonds.bond0.mode is 'balance-rr': did you mean balance-xor? must be one of"),
        ("bonds: {team0: {mode: 802.3ad, nics: [eth0, eth1]}}\n",
         "p.yml:1:9: bonds.team0: must be the name of a bond: bond0, bond1, ..."),
        ("bonds: {bond0: {nics: [eth0, eth1]}}\nnetwork: {interface: bond0}\n", "bonds.bond0.mode: is missing: must be one of active-backup"),
        (BOND, "p.yml:1:9: bonds.bond0: no network is on it; set `network.interface: bond0`"),
        ("bonds: {bond0: {mode: 802.3ad, nics: [eth0]}}\nnetwork: {interface: bond0}\n",
         "p.yml:1:32: bonds.bond0.nics is ['eth0']: must be at least two NICs, such as [eth0, eth1]"),
        ("bonds: {bond0: {mode: 802.3ad, nics: [eth0, eth0]}}\nnetwork: {interface: bond0}\n",
         "bonds.bond0.nics.1 is 'eth0': is already in bond0; a NIC is in one bond, once"),
        ("bonds: {bond0: {mode: 802.3ad, nics: [eth0, eth5]}}\nnetwork: {interface: bond0}\n",
         "p.yml:1:45: bonds.bond0.nics.1 is 'eth5': there is no such NIC: NICs are numbered without a gap, and no network or bond has eth1"),
        (BOND + "network: {interface: eth1}\n",
         "p.yml:2:11: network.interface is 'eth1': is a NIC of bond0: must be bond0, or another NIC"),
        ("network: {interface: bond0}\n",
         "p.yml:1:11: network.interface is 'bond0': there is no such bond; there is none; define it in `bonds`"),
        ("network: {interface: eth3}\n", "network.interface is 'eth3': there is no such NIC: NICs are numbered without a gap"),
        ("network: {vlan: 4095}\n", "p.yml:1:11: network.vlan is 4095: must be from 1 to 4094"),
        ("network: {vlan: 0}\n", "p.yml:1:11: network.vlan is 0: must be from 1 to 4094"),
        (ON + "extra_networks: [{name: a, ipv4: 10.9.0.0/24, interface: bond0, vlan: 100}]\n",
         "p.yml:3:65: extra_networks.0.vlan is 100: is already the VLAN id of network on bond0; each on one parent must be unique"),
        ("extra_networks: [{name: a, ipv4: 10.9.0.0/24, interface: eth0}]\nnetwork: {interface: eth0}\n",
         "extra_networks.0.interface is 'eth0': already carries network untagged; set `vlan`"),
        ("network: {interface: eth0}\nextra_networks: [{name: a, ipv4: 10.9.0.0/24, interface: eth0, vlan: 5, mtu: 9000}]\n",
         "p.yml:2:73: extra_networks.0.mtu is 9000: must be at most 1500, the MTU of eth0, on which eth0.5 is"),
        # SLAAC
        ("addressing: slaac\n", "p.yml:1:1: addressing is 'slaac': requires a stack with IPv6, not ipv4: IPv4 has no SLAAC"),
        (SLAAC + "network: {ipv6: 'fd00:9::/120'}\n",
         "p.yml:3:11: network.ipv6 is 'fd00:9::/120': must be a /64 with `addressing: slaac`: interface identifiers have 64 bits"),
        (SLAAC + "extra_networks: [{name: a, ipv6: 'fd00:9::/112'}]\n", "extra_networks.0.ipv6 is 'fd00:9::/112': must be a /64 with"),
        (SLAAC + BOND + "network: {interface: bond0}\n",
         "p.yml:3:1: bonds is ['bond0']: requires nmstate, which has no SLAAC without DHCPv6; use dhcp or static addressing"),
        (SLAAC + "network: {vlan: 5}\n", "p.yml:3:11: network.vlan is 5: requires nmstate, which has no SLAAC"),
        (SLAAC + "network: {routes: [{destination: 'fd09::/64'}]}\n", "network.routes is [{'destination': 'fd09::/64'}]: requires nmstate"),
        (SLAAC + "network: {mtu: 9000}\n", "network.mtu is 9000: requires nmstate, which has no SLAAC"),
        (SLAAC + "boot: {mode: pxe}\n",
         "p.yml:2:1: addressing is 'slaac': must be dhcp or static: machines boot from the network by DHCPv6"),
        (SLAAC + "nodes: {master-0: {addressing: dhcp}}\n",
         "p.yml:3:20: nodes.master-0.addressing is 'dhcp': must be static, or as the cluster: slaac has no DHCPv6"),
        (SLAAC + "nodes: {master-0: {nics: {eth0: {addresses: ['fd2e:6f44:5dd8:c956::7']}}}}\n",
         "nodes.master-0.nics.eth0.addresses is ['fd2e:6f44:5dd8:c956::7']: follow from the MAC with `addressing: slaac`; leave them out"),
        ("network: {mtu: 900}\n", "network.mtu is 900: must be from 1280 to 9216"),
        ("network: {routes: [{destination: 0.0.0.0/0}]}\n", "network.routes.0.destination is '0.0.0.0/0': is a second default gateway"),
        ("extra_networks: [{name: a, ipv4: 10.9.0.0/24, routes: [{destination: 0.0.0.0/0, next_hop: 10.9.0.7}]}]\n",
         "p.yml:1:57: extra_networks.0.routes.0.destination is '0.0.0.0/0': is a second default gateway: the machine network's gateway is the default one"),
        ("network: {routes: [{destination: 10.9.0.0/16, next_hop: 10.0.0.1}]}\n",
         "p.yml:1:47: network.routes.0.next_hop is '10.0.0.1': is outside of its network, 192.168.111.0/24"),
        ("network: {routes: [{destination: 10.9.0.0/16, next_hop: 'fd00::1'}]}\n",
         "network.routes.0.next_hop is 'fd00::1': must be an IPv4 address, as the destination 10.9.0.0/16"),
        ("network: {routes: [{destination: 'fd09::/64'}]}\n",
         "network.routes.0.destination is 'fd09::/64': is IPv6, and this network has no IPv6 addresses"),
        ("network: {routes: [{destination: 10.9.0.5/16}]}\n", "must be a network in CIDR form without host bits"),
        ("network: {routes: [{}]}\n", "network.routes.0.destination: is missing"),
        ("network: {routes: [{destination: 192.168.111.0/24}]}\n", "is network, in which the nodes are themselves"),
        ("network: {routes: [{destination: 10.9.0.0/16}, {destination: 10.9.0.0/16, next_hop: 192.168.111.9}]}\n",
         "network.routes.1.destination is '10.9.0.0/16': is already a destination of network.routes.0; remove one"),
        (ON + "hypervisor: {kind: local}\n", "bonds: bonds require `hypervisor: {kind: sandbox}`, whose switch knows them, not local"),
        ("network: {vlan: 5}\nhypervisor: {kind: local}\n",
         "p.yml:1:11: network.vlan is 5: VLANs require `hypervisor: {kind: sandbox}`"),
        (ON + "boot: {mode: pxe}\n", "boot.mode is 'pxe': loads files before the network is configured, and bonds are below"),
        ("topology: compact\nnetwork: {vlan: 5}\nfaults: [{kind: arp_one_way, node: master-1, peer: master-0}]\n",
         "faults.0.kind is 'arp_one_way': requires NICs without VLANs"),
        (ON + "nodes: {master-0: {nics: {eth0: {addresses: [192.168.111.90]}}}}\n",
         "nodes.master-0.nics.eth0.addresses is ['192.168.111.90']: are those of a bond or a VLAN on it; there are bond0.100"),
        (ON + "nodes: {master-0: {nics: {bond0.100: {mac: '00:00:00:00:00:01'}}}}\n",
         "nodes.master-0.nics.bond0.100.mac is '00:00:00:00:00:01': follows from its NIC"),
        (ON + "nodes: {master-0: {nics: {bond0.7: {}}}}\n",
         "nodes.master-0.nics.bond0.7: there is no such interface; there are eth0, eth1, bond0.100"),
        ("stack: v4v6\n", "stack is 'v4v6': must be one of ipv4, ipv6, dualstack, v6v4"),
        # Segments
        ("topology: compact\nplatform: none\nworker: {count: 1, segment: edge0}\n",
         "p.yml:3:20: worker.segment is 'edge0': there is no such segment; there is none; define it in `segments`"),
        (NONE + EDGE, "p.yml:3:12: segments.edge0: no node is in it; set `worker.segment: edge0`, or that of a node"),
        (NONE + EDGE + WORKER + "nodes: {master-0: {segment: edge0}}\n",
         "p.yml:5:20: nodes.master-0.segment is 'edge0': must be null: master-0 is the rendezvous host"),
        (NONE + EDGE + WORKER + "nodes: {master-1: {segment: edge0}}\n",
         "nodes.master-1.segment is 'edge0': must be null: only workers are in other segments than the machine network, not role master"),
        (NONE + EDGE + WORKER + "master: {segment: edge0}\n", "master.segment is 'edge0': must be null: master-0 is the rendezvous host"),
        ("topology: compact\n" + EDGE + WORKER, "segments.edge0: requires `platform: none`, or a load balancer of your own"),
        ("topology: compact\nstack: dualstack\nsegments: {edge0: {ipv4: 192.168.112.0/24, ipv6: 'fd00:112::/120'}}\n" + WORKER + BALANCER,
         "p.yml:2:1: stack is 'dualstack': must be ipv4 or ipv6: a dual-stack cluster has one machine network for each family"),
        ("topology: compact\nrelease: {version: 4.18.1-lab}\n" + EDGE + WORKER + BALANCER, "segments.edge0: requires a release from 4.21 on, not 4.18"),
        (NONE + "stack: ipv6\n" + EDGE + WORKER, "segments.edge0.ipv6: is missing: `stack: ipv6` requires a network such as `ipv6: fd2e"),
        (NONE + EDGE + WORKER + "hypervisor: {kind: local}\n", "segments.edge0: requires `hypervisor: {kind: sandbox}`, which routes between segments"),
        (NONE + EDGE + WORKER + "network: {vlan: 5}\n", "segments.edge0: requires a machine network without bonds and VLANs"),
        (NONE + "segments: {edge0: {ipv4: 192.168.111.128/25}}\n" + WORKER,
         "segments.edge0.ipv4 is '192.168.111.128/25': overlaps with network.ipv4 (192.168.111.0/24); choose another range"),
        (NONE + "segments: {ostestbm: {ipv4: 192.168.112.0/24}}\nworker: {count: 1, segment: ostestbm}\n",
         "segments.ostestbm is 'ostestbm': is already used by network.bridge; each must be unique"),
        (NONE + EDGE + WORKER + "nodes: {worker-0: {nics: {eth0: {addresses: [192.168.111.90]}}}}\n",
         "nodes.worker-0.nics.eth0.addresses.0 is '192.168.111.90': is outside of its network, 192.168.112.0/24"),
        # BMCs, proxies, nodes of day 2
        ("topology: tnf\nnodes: {master-1: {bmc: {address: 'redfish+https://192.0.2.7/redfish/v1/Systems/1', username: root}}}\n",
         "nodes.master-1.bmc.password: is missing: topology tnf fences nodes by their BMCs, and redfish+https://192.0.2.7"),
        ("topology: tnf\nnodes: {master-1: {bmc: {address: 'redfish+https://192.0.2.7/redfish/v1/Systems/1', password: x}}}\n",
         "nodes.master-1.bmc.username: is missing: topology tnf fences nodes by their BMCs"),
        # Load balancers
        (NONE + "services: {http: {port: 443}}\n", "services.http.port is 443: is one of the load balancer's: choose another one"),
        (NONE + "services: {registry: {port: 22623}}\n", "services.registry.port is 22623: is one of the load balancer's"),
        (NONE + "hypervisor: {kind: local}\n",
         "platform is 'none': requires `hypervisor: {kind: sandbox}`, which has a load balancer, one of `machines`, or `vips` of one of your own"),
        (NONE + BALANCER,
         'installer.install_config.platform: must only specify a single type of platform; cannot use both "none" and "baremetal"'),
        ("platform: none\n" + BALANCER, 'must only specify a single type of platform; cannot use both "none" and "baremetal"'),
        ("stack: ipv6\ninstaller: {install_config: {proxy: {httpProxy: 'http://192.0.2.1:3128'}}}\n",
         "installer.install_config.proxy.httpProxy is 'http://192.0.2.1:3128': must have an IPv6 address, or a name"),
        ("installer: {install_config: {proxy: {httpsProxy: 'http://[fd00::1]:3128'}}}\n",
         "installer.install_config.proxy.httpsProxy is 'http://[fd00::1]:3128': must have an IPv4 address, or a name"),
        ("network: {connection: disconnected}\nhypervisor: {egress: true}\n",
         "network.connection is 'disconnected': contradicts `hypervisor.egress: true`: remove one of them"),
        ("network: {connection: proxied, nat: true}\n", "network.nat is True: must be false: with `network.connection: proxied`"),
        ("topology: ha\nnodes: {master-2: {day2: true}}\nmaster: {count: 4}\n",
         "nodes.master-2.day2 is True: must be false: only workers join an installed cluster, not role master"),
        ("topology: sno\nworker: {count: 1}\n", "worker.count is 1: a single node has no workers: must be 0, or 3 masters"),
        ("topology: compact\nmaster: {count: 2}\n", "master.count is 2: two masters need one arbiter (topology tna) or fencing (topology tnf)"),
        ("stack: ipv6\nhypervisor: {route: true}\n", "hypervisor.route is True: a route supports IPv4 addresses only"),
        ("topology: compact\ninstaller: {fencing_by: macAddress}\n",
         "installer.fencing_by is 'macAddress': requires a topology with fencing: tnf"),
        ("platform: baremetal\n", "Only platform none and external supports 1 ControlPlane and 0 Compute nodes"),
    ],
)  # fmt: skip
def test_contradictions_are_refused(text: str, wanted: str, tmp_path: Path) -> None:
    assert wanted in problem(text, tmp_path)
