"""What a profile lays over the installer's files, and a node's nmstate of its own, are refused where they contradict it: one message each."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils import contradictions
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import profile
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.problems import ProfileError

ROOT = Path(__file__).resolve().parents[3]
ETH = (
    "{name: eth0, type: ethernet, state: up, ipv4: {enabled: true, address: [{ip: 192.168.111.80, prefix-length: 24}]}}"
)
VIA = "{destination: 0.0.0.0/0, next-hop-address: 192.168.111.1, next-hop-interface: eth0}"
TWO = "extra_networks: [{name: a, ipv4: 10.9.0.0/24}]\n"
SECOND = "{name: eth1, type: ethernet, state: up, ipv4: {enabled: true, address: [{ip: 10.9.0.80, prefix-length: 24}]}}"
STATIC = "addressing: static\n"
VLAN = ETH.replace("eth0, type: ethernet", "eth0.5, type: vlan, vlan: {base-iface: eth0, id: 5}")
BONDED = ETH.replace(
    "eth0, type: ethernet", "bond0, type: bond, link-aggregation: {mode: active-backup, port: [eth0, eth1]}"
)
NONE = "topology: compact\nplatform: none\nsegments: {edge0: {ipv4: 192.168.112.0/24}}\nworker: {count: 1, segment: edge0}\n"
REFUSED = "openshift-install refuses it: "


def state(*interfaces: str, routes: str = "", more: str = "") -> str:
    """A profile whose only node has an nmstate of its own."""
    return f"{more}nodes: {{master-0: {{network_config: {{interfaces: [{', '.join(interfaces)}], routes: {{config: [{routes}]}}}}}}}}\n"


def bond(mode: str, *ports: str) -> str:
    return f"{{name: bond0, type: bond, state: up, link-aggregation: {{mode: {mode}, port: [{', '.join(ports)}]}}}}"


def laid(text: str, more: str = "") -> str:
    return f"{more}installer: {{install_config: {{{text}}}}}\n"


def agent(text: str, more: str = "") -> str:
    return f"{more}installer: {{agent_config: {{{text}}}}}\n"


def pods(text: str, before: str = "", more: str = "") -> str:
    return f"{before}installer: {{{more}cluster_network: {{{text}}}}}\n"


def plan_of(text: str, folder: Path) -> Any:
    (folder / "p.yml").write_text(text)
    return contradictions.prepare(folder / "run", str(folder / "p.yml"), None, "ostest", refuse=False)[0]


def problem(text: str, folder: Path) -> str:
    """Return the only problem of a profile."""
    with pytest.raises(ProfileError) as caught:
        plan_of(text, folder)
    found = [str(one).replace(str(folder / "p.yml"), "p.yml") for one in caught.value.problems]
    assert len(found) == 1, found
    assert not (folder / "run").exists()
    return found[0]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        # nmstate
        (state(ETH, SECOND, routes=f"{VIA}, {VIA.replace('eth0', 'eth1')}", more=TWO),
         "nodes.master-0.network_config.routes.config.1.next-hop-interface is 'eth1': is a second IPv4 default route, next to that over eth0: "
         "remove one, or give them different metrics"),
        (state(ETH, SECOND, routes="{destination: '::/0', next-hop-interface: eth0}, {destination: '::/0', next-hop-interface: eth1, table-id: 254}", more=TWO)
         .replace("ipv4: {", "ipv6: {enabled: true, dhcp: true, autoconf: true}, ipv4: {"), "is a second IPv6 default route, next to that over eth0"),
        (state(bond("active-backup", "eth8", "eth9")),
         "nodes.master-0.network_config.interfaces.0.link-aggregation.port.0 is 'eth8': there is no such NIC: master-0 has eth0, not eth8, eth9"),
        (state(ETH, SECOND), "nodes.master-0.network_config.interfaces.1.name is 'eth1': there is no such NIC: master-0 has eth0"),
        (state("{name: v, type: vlan, state: up, vlan: {id: 5, base-iface: eth7}}"),
         "nodes.master-0.network_config.interfaces.0.vlan.base-iface is 'eth7': there is no such NIC: master-0 has eth0"),
        (state(ETH, routes=VIA.replace("interface: eth0", "interface: eth3")), "routes.config.0.next-hop-interface is 'eth3': there is no such NIC"),
        (state(bond("active-backup", "eno1", "eno2")),
         "p.yml:1:20: nodes.master-0.network_config: has the Ethernet interfaces eno1, eno2, and master-0 has fewer NICs: eth0"),
        (state(bond("nosuch", "eth0")),
         f"p.yml:1:20: nodes.master-0.network_config: {REFUSED}failed to execute 'nmstatectl gc', error: InvalidArgument: "
         "interface bond0.link-aggregation.mode: unknown variant `nosuch`"),
        ("nodes: {master-0: {network_config: {routes: {config: []}}}}\n",
         f"nodes.master-0.network_config: {REFUSED}nmstate generated an empty NetworkManager config file content"),
        (state(VLAN, VLAN.replace("eth0.5", "mine"), more=STATIC),
         "interfaces.1.vlan.id is 5: is already the VLAN id of eth0.5 on eth0; each on one parent must be unique"),
        # nmstate and the plan
        (state(ETH.replace("192.168.111.80", "10.9.9.9"), more=STATIC),
         "p.yml:2:20: nodes.master-0.network_config: gives master-0 neither 192.168.111.80, its address by the plan, nor DHCP: add that, or set "
         "`nodes.master-0.nics.eth0.addresses`"),
        (state(ETH), "p.yml:1:20: nodes.master-0.network_config: gives master-0 neither 192.168.111.20, its address by the plan, nor DHCP"),
        (state("{name: eth0, type: ethernet, state: up, ipv4: {enabled: false}, ipv6: {enabled: false}}"), "gives master-0 neither 192.168.111.20"),
        (state(ETH.replace("enabled: true, ", ""), more=STATIC), "gives master-0 neither 192.168.111.80"),
        (state(ETH, more=STATIC + "stack: dualstack\n"), "gives master-0 neither fd2e:6f44:5dd8:c956::50, its address by the plan, nor DHCP"),
        (state(VLAN, more=STATIC),
         "p.yml:2:20: nodes.master-0.network_config: has the address of master-0 at eth0.5, and the lab has the machine network untagged: see"),
        (state(ETH, more=STATIC + "network: {vlan: 7}\n"), "at eth0, and the lab has the machine network as VLAN 7: see `network.vlan`"),
        (state(BONDED, more=STATIC + TWO),
         "nodes.master-0.network_config.interfaces.0.name is 'bond0': is a bond of eth0, eth1, between which the lab has none: see `bonds` of the profile"),
        (state(BONDED, more=STATIC + "bonds: {bond0: {mode: 802.3ad, nics: [eth0, eth1]}}\nnetwork: {interface: bond0}\n"),
         "interfaces.0.link-aggregation.mode is 'active-backup': must be 802.3ad, as in `bonds`"),
        # install-config
        (laid("controlPlane: {fencing: {credentials: []}}", "topology: tnf\n"),
         f"p.yml:2:55: installer.install_config.controlPlane.fencing.credentials is []: {REFUSED}controlPlane.fencing.credentials: Forbidden: "
         "there should be exactly two fencing credentials to support the two node cluster, instead 0 credentials were found"),
        (laid("networking: {clusterNetwork: [{cidr: 10.128.0.0/14, hostPrefix: 8}]}"),
         f"installer.install_config.networking.clusterNetwork.0.hostPrefix is 8: {REFUSED}networking.clusterNetwork[0].hostPrefix: Invalid value: 8: "),
        (laid("networking: {clusterNetwork: [{cidr: 10.128.0.0/20, hostPrefix: 23}]}", "topology: ha\nworker: {count: 6}\n"),
         "installer.install_config.networking.clusterNetwork.0: openshift-install refuses it: spec.networking.clusterNetwork[0]: Invalid value: "
         '"10.128.0.0/20": prefix length 20 not large enough to accommodate 9 hosts with hostPrefix length 23'),
        (laid("platfrom: {}"),
         f"p.yml:1:30: installer.install_config.platfrom: {REFUSED}failed to create install config: failed to parse first occurrence of unknown field: "
         'failed to unmarshal install-config.yaml: error unmarshaling JSON: while decoding JSON: json: unknown field "platfrom" (platfrom)'),
        (laid("fips: maybe"), f"installer.install_config.fips is 'maybe': {REFUSED}failed to create install config: failed to unmarshal"),
        (laid("networking: {machineNetwork: [{cidr: 10.0.0.0/24}]}"),
         "p.yml:1:43: installer.install_config.networking.machineNetwork is ['10.0.0.0/24']: holds no address of a node, such as 192.168.111.20 of master-0: "
         "the nodes are in 192.168.111.0/24"),
        (laid("networking: {machineNetwork: [{cidr: 10.0.0.0/24}]}", "topology: compact\n"), "machineNetwork is ['10.0.0.0/24']: holds no address of a node"),
        (laid("proxy: {httpProxy: 'http://192.0.2.1:3128'}", "network: {connection: proxied}\n"),
         "p.yml:2:38: installer.install_config.proxy.httpProxy is 'http://192.0.2.1:3128': contradicts `network.connection: proxied`, whose only proxy is "
         "http://192.168.111.1:3128: remove one of them"),
        (laid("proxy: {httpsProxy: 'http://u:secret9@proxy.example.com:3128'}", "network: {connection: proxied}\n"),
         "installer.install_config.proxy.httpsProxy is 'http://u:REDACTED@proxy.example.com:3128': contradicts `network.connection: proxied`"),
        (laid("featureSet: TechPreviewNoUpgrade", "release: {version: 4.18.0-lab}\n"),
         f"installer.install_config.featureSet is 'TechPreviewNoUpgrade': {REFUSED}FeatureSet: Unsupported value: "
         '"TechPreviewNoUpgrade": supported values: ""'),
        # What the lab has made by a field of its own
        (laid("baseDomain: other.example.com"),
         "p.yml:1:30: installer.install_config.baseDomain is 'other.example.com': contradicts the plan, which has test.metalkube.org: "
         "set `base_domain` of the profile instead"),
        (laid("metadata: {name: other}"),
         "installer.install_config.metadata.name is 'other': contradicts the plan, which has ostest: set the cluster's name, `--cluster`, instead"),
        (laid("controlPlane: {replicas: 5}", "topology: compact\n"),
         "installer.install_config.controlPlane.replicas is 5: contradicts the plan, which has 3: set `master.count` of the profile instead"),
        (laid("compute: [{name: worker, replicas: 3}]", "topology: compact\n"),
         "p.yml:2:55: installer.install_config.compute.0.replicas is 3: contradicts the plan, which has 0: set `worker.count` of the profile instead"),
        (laid("fips: true"), "p.yml:1:30: installer.install_config.fips is True: contradicts the plan, which has false: set `installer.fips` of the profile"),
        ("topology: compact\ninstaller: {hosts_in: install-config, agent_config: {hosts: [{hostname: a}]}}\n",
         "p.yml:2:54: installer.agent_config.hosts: contradicts `installer.hosts_in: install-config`, whose hosts the installer then ignores"),
        (agent("rendezvousIP: 192.168.111.23", "topology: ha\n"),
         "p.yml:2:28: installer.agent_config.rendezvousIP is '192.168.111.23': is the address of worker-0, role worker: must be that of a node of the "
         "control plane, such as 192.168.111.20"),
        # What install-config.yaml follows from
        ("topology: tna\nplatform: vsphere\n",
         f"p.yml:2:1: platform is 'vsphere': {REFUSED}arbiter.platform: Unsupported value: \"vsphere\": supported values: \"baremetal\", \"external\""),
        ("topology: tnf\nplatform: vsphere\n", f"p.yml:2:1: platform is 'vsphere': {REFUSED}controlPlane.fencing: Forbidden: fencing is only supported on"),
        (pods("ipv4: [{cidr: 10.128.0.0/23, host_prefix: 24}]", "topology: 5control\n"),
         f"p.yml:2:39: installer.cluster_network.ipv4.0.cidr is '10.128.0.0/23': {REFUSED}spec.networking.clusterNetwork[0]: Invalid value: "
         '"10.128.0.0/23": prefix length 23 not large enough to accommodate 5 hosts with hostPrefix length 24'),
        (pods("ipv4: [{cidr: 10.128.0.0/20, host_prefix: 23}]", "topology: ha\nworker: {count: 6}\n"), "not large enough to accommodate 9 hosts"),
        (pods("ipv4: [{cidr: 10.128.0.0/14, host_prefix: 30}]"),
         f"p.yml:1:60: installer.cluster_network.ipv4.0.host_prefix is 30: {REFUSED}spec.networking.clusterNetwork[0].hostPrefix: Invalid value: 30: "
         "must be at most 25"),
        (pods("ipv6: [{cidr: 'fd01::/48', host_prefix: 120}]", "stack: v6v4\n"),
         f"installer.cluster_network.ipv6.0.host_prefix is 120: {REFUSED}networking.clusterNetwork[0].hostPrefix: Invalid value: 120: cluster network "
         "host subnetwork prefix must be 64 for IPv6 networks"),
        (pods("ipv4: [{cidr: 10.128.0.0/16, host_prefix: 23}, {cidr: 10.130.0.0/16, host_prefix: 24}]", "stack: v6v4\n"),
         f"installer.cluster_network.ipv4.1.host_prefix is 24: {REFUSED}networking.clusterNetwork[2].hostPrefix: Invalid value: 24: cluster network "
         "host subnetwork prefix must be the same value for IPv4 networks"),
        ("stack: ipv6\ninstaller: {service_network: {ipv6: 'fd02::/64'}}\n",
         f"installer.service_network.ipv6 is 'fd02::/64': {REFUSED}networking.serviceNetwork[0]: Invalid value: \"fd02::/64\": subnet size for IPv6"),
        ("installer: {image_digest_sources: [{source: 'registry.example.com/x:tag', mirrors: [quay.io/a/b]}]}\n",
         f"p.yml:1:36: installer.image_digest_sources.0: {REFUSED}imageDigestSources[0].source: Invalid value: "),
        (pods("ipv4: [{cidr: 10.128.0.0/14, host_prefix: 30}]", more="install_config: {networking: {machineNetwork: [{cidr: 192.168.111.0/24}]}}, "),
         "installer.cluster_network.ipv4.0.host_prefix is 30: "),
        # agent-config
        (agent("rendezvousIP: not-an-ip"),
         f"p.yml:1:28: installer.agent_config.rendezvousIP is 'not-an-ip': {REFUSED}rendezvousIP: Invalid value: "
         '"not-an-ip": "not-an-ip" is not a valid IP'),
        (agent("rendezvousIP: 192.168.112.80", NONE),
         "p.yml:5:28: installer.agent_config.rendezvousIP is '192.168.112.80': is not in a network of master-0, the rendezvous host, which is in "
         "192.168.111.0/24, but in edge0 (192.168.112.0/24): its address is 192.168.111.20"),
        (agent("rendezvousIP: 'fd00::1'"), "installer.agent_config.rendezvousIP is 'fd00::1': is not in a network of master-0"),
        (agent("hosts: [{hostname: a, role: boss, interfaces: [{name: eth0, macAddress: '52:54:00:00:00:80'}]}]"),
         f"installer.agent_config.hosts.0.role is 'boss': {REFUSED}hosts[0].role: Unsupported value: \"boss\": supported values: "),
        (agent("rendezvousIP: 192.168.111.80, nosuch: 1", "addressing: static\n"),
         "installer.agent_config.nosuch is 1: openshift-install refuses it: failed to unmarshal"),
        # The release
        ("topology: tna\nrelease: {version: 4.15.0-lab}\n", "p.yml:1:1: topology is 'tna': requires a release from 4.20 on, not 4.15"),
        ("topology: tna\nrelease: {version: 4.19.0-lab}\n", "topology is 'tna': requires a release from 4.20 on, not 4.19"),
        ("topology: tnf\nrelease: {version: 4.15.0-lab}\n", "topology is 'tnf': requires a release from 4.22 on, not 4.15"),
        ("topology: tnf\nrelease: {version: 4.21.0-lab}\n",
         "topology is 'tnf': requires a release from 4.22 on, not 4.21, or `installer.install_config.featureSet: TechPreviewNoUpgrade`"),
        ("master: {count: 2}\narbiter: {count: 1}\ntopology: compact\nrelease: {version: 4.17.0-lab}\n",
         "p.yml:2:11: arbiter.count is 1: requires a release from 4.20 on, not 4.17"),
        ("topology: 5control\nrelease: {version: 4.17.0-lab}\n", "topology is '5control': requires a release from 4.18 on, not 4.17"),
    ],
)  # fmt: skip
def test_what_contradicts_is_refused(text: str, wanted: str, tmp_path: Path) -> None:
    assert wanted in problem(text, tmp_path)


OWN = "release: {version: 4.15.0-lab, installer: {git: 'https://example.com/installer'}}\n"


@pytest.mark.parametrize(
    "text",
    [
        state(ETH, routes=VIA, more=STATIC),
        state(ETH, SECOND, routes=f"{VIA}, {VIA.replace('eth0}', 'eth1, metric: 200}')}", more=STATIC + TWO),
        state(ETH, SECOND, routes=f"{VIA}, {VIA.replace('eth0}', 'eth1, table-id: 100}')}", more=STATIC + TWO),
        state(ETH.replace("eth0", "br0").replace("ethernet", "linux-bridge, bridge: {port: [{name: eth0}]}"), more=STATIC),
        state(VLAN, more=STATIC + "network: {vlan: 5}\n"),
        state(BONDED, more=STATIC + "bonds: {bond0: {mode: active-backup, nics: [eth0, eth1]}}\nnetwork: {interface: bond0}\n"),
        state(ETH, more="stack: ipv4\n").replace("master-0: {", "master-0: {nics: {eth0: {addresses: [192.168.111.80]}}, "),
        state("{name: eno1, type: ethernet, state: up, ipv4: {enabled: true, dhcp: true}}"),
        state(ETH.replace("eth0", "mine, identifier: mac-address, mac-address: '52:54:00:00:00:80'"), more=STATIC),
        # The fault of the job fault-rendezvous: an address of the network that no node has.
        agent("rendezvousIP: 192.168.111.99"),
        agent("rendezvousIP: 10.9.0.20", TWO),
        laid("networking: {machineNetwork: [{cidr: 192.168.111.0/26}, {cidr: 10.8.0.0/24}]}"),
        laid("proxy: {httpProxy: 'http://192.168.111.1:3128', httpsProxy: 'http://192.168.111.1:3128/'}", "network: {connection: proxied}\n"),
        laid("featureSet: TechPreviewNoUpgrade", "topology: tnf\nrelease: {version: 4.20.0-lab}\n"),
        laid("featureSet: OKD", "release: {payload: okd, version: 4.22.0-okd-scos.1}\n"),
        laid("fips: true", "installer: {fips: true}\n").replace("installer: {fips: true}\ninstaller: {", "installer: {fips: true, "),
        pods("ipv4: [{cidr: 10.128.0.0/16, host_prefix: 24}]", "topology: ha\n"), "topology: compact\nplatform: vsphere\n",
        laid("baseDomain: test.metalkube.org, metadata: {name: ostest}, controlPlane: {replicas: 1}, compute: [{name: worker, replicas: 0}]"),
        # An installer of the user may know more.
        laid("nosuch: 1", OWN), laid("controlPlane: {fencing: {credentials: []}}", OWN + "topology: tnf\n"), OWN + "topology: tna\n",
        OWN + pods("ipv4: [{cidr: 10.128.0.0/14, host_prefix: 30}]"),
    ],
)  # fmt: skip
def test_what_may_be_meant_is_accepted(text: str, tmp_path: Path) -> None:
    assert plan_of(text, tmp_path)["nodes"]


def test_the_nmstate_is_checked_for_an_installer_of_the_user(tmp_path: Path) -> None:
    assert "unknown variant `nosuch`" in problem(OWN + state(bond("nosuch", "eth0")), tmp_path)


def test_an_existing_machine_may_have_more_nics(tmp_path: Path) -> None:
    text = state(bond("active-backup", "eth8", "eth9")).replace("master-0: {", "master-0: {bare_metal: true, ")
    (tmp_path / "p.yml").write_text(text)
    with pytest.raises(ProfileError) as caught:
        profile.load(tmp_path / "p.yml")
    assert "no such NIC" not in str(caught.value)


def test_a_secret_is_not_shown(tmp_path: Path) -> None:
    reported = problem(laid("pullSecret: 'not json, but secret9secret'"), tmp_path)
    assert "installer.install_config.pullSecret" in reported and "secret9secret" not in reported


def test_every_caller_refuses(tmp_path: Path) -> None:
    """The verbs, and the module that a playbook runs first."""
    (tmp_path / "p.yml").write_text(agent("rendezvousIP: not-an-ip"))
    command = [sys.executable, "-m", "ansible_collections.agentlab.ocp.plugins.module_utils.cli"]
    done = subprocess.run(
        [*command, "plan", str(tmp_path / "p.yml"), "--write"],
        env={"AGENTLAB_RUNS": str(tmp_path / "runs"), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2 and "is not a valid IP" in done.stderr and not (tmp_path / "runs").exists()
    for name in (
        "plugins/modules/plan.py",
        "plugins/module_utils/cli/lab.py",
        "plugins/module_utils/cli/plan.py",
        "plugins/module_utils/cli/day2.py",
    ):
        text = (ROOT / name).read_text()
        assert "contradictions.prepare(" in text and "rundir.prepare(" not in text


def test_a_usual_profile_needs_no_installer() -> None:
    script = (
        "import sys\n"
        "from ansible_collections.agentlab.ocp.plugins.module_utils.cli import __main__, plan\n"
        "plan.main(['sno_ipv4', '--cluster', 'nosuchcluster'])\n"
        "print([name for name in sys.modules if 'module_utils.installer' in name or 'module_utils.nmstate' in name], file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
