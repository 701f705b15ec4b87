from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, capacity, profile
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.problems import ProfileError
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.topologies import TOPOLOGIES

PROFILES = Path(__file__).resolve().parents[3] / "config_examples"


def problems(tmp_path: Path, text: str, cluster: str = "ostest") -> list[str]:
    path = tmp_path / "p.yml"
    path.write_text(text)
    with pytest.raises(ProfileError) as caught:
        profile.load(path, None, cluster)
    return [str(problem).replace(str(path), "p.yml") for problem in caught.value.problems]


def test_the_schema_reports_everything_at_once(tmp_path: Path) -> None:
    text = """\
topolgy: sno
stack: ipv5
master: {vcpu: 2, memory_mib: lots}
nodes: {master-0: {nics: {en0: {}}}}
network: {bridge: waytoolongbridgename, ipv4: 192.168.111.5/24}
settings: {REBOOT_DELAY_SECOND: 5}
installer: {ssh_key_file: ''}
extra_networks: [{ipv4: 10.0.0.0/24}]
"""
    found = problems(tmp_path, text)
    assert sorted(found) == sorted(
        [
            "p.yml:1:1: topolgy: unknown field; did you mean `topology`?",
            "p.yml:2:1: stack is 'ipv5': did you mean ipv6? must be one of ipv4, ipv6, dualstack, v6v4",
            "p.yml:3:10: master.vcpu: unknown field; did you mean `vcpus`?",
            "p.yml:3:19: master.memory_mib is 'lots': must be an integer",
            "p.yml:4:27: nodes.master-0.nics.en0: must be the name of an interface: eth0, bond0, or with a VLAN eth0.100, ...",
            "p.yml:5:11: network.bridge is 'waytoolongbridgename': must be the name of a bridge: at most 15 characters of "
            "letters, digits, `_`, `.` and `-`",
            "p.yml:5:41: network.ipv4 is '192.168.111.5/24': must be a network in CIDR form without host bits, such as "
            "192.168.111.0/24",
            "p.yml:6:12: settings.REBOOT_DELAY_SECOND: unknown field; did you mean `REBOOT_DELAY_SECONDS`?",
            "p.yml:7:13: installer.ssh_key_file is '': must be a path from the root, from home or from the folder of the profile, "
            "such as ~/.ssh/id_rsa.pub or manifests",
            "p.yml: extra_networks.0.name: is missing: must be the name of a bridge: at most 15 characters of letters, digits, `_`, `.` and `-`",
        ]
    )


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a: [b\nc: d", "p.yml:2:2: not valid YAML: did not find expected ',' or ']'"),
        ("topology: sno\ntopology: ha\n", "p.yml:2:1: topology: is a duplicate; remove one"),
        ("1: 2\n", "p.yml:1:1: 1: unknown field; there are"),
        ("- sno\n", "p.yml: a profile is a mapping of fields, such as `topology: sno`"),
        ("topology: {}\n", "p.yml:1:1: topology is {}: must be one of sno,"),
        (
            "master: {count: 2}\n",
            "p.yml:1:10: master.count is 2: two masters need one arbiter (topology tna) or fencing",
        ),
        ("master: {count: 6}\n", "p.yml:1:10: master.count is 6: must be from 1 to 5 with topology sno"),
        ("worker: {count: 1}\n", "p.yml:1:10: worker.count is 1: a single node has no workers"),
        (
            "topology: ha\narbiter: {count: 1}\n",
            "p.yml:2:11: arbiter.count is 1: an arbiter requires 2 masters, not 3",
        ),
        (
            "topology: tnf\narbiter: {count: 1}\n",
            "p.yml:2:11: arbiter.count is 1: must be 0 with topology tnf",
        ),
        (
            "platform: baremetal\n",
            "p.yml:1:1: platform is 'baremetal': Only platform none and external supports 1 ControlPlane and 0 Compute nodes",
        ),
        (
            "platform: vsphere\n",
            "p.yml:1:1: platform is 'vsphere': Only platform none and external supports 1 ControlPlane and 0 Compute nodes",
        ),
        (
            "installer: {network_type: Calico}\n",
            "p.yml:1:13: installer.network_type is 'Calico': Only OVNKubernetes network type is allowed for",
        ),
        (
            "topology: ha\nplatform: nutanix\n",
            "p.yml: installer.install_config: platform.nutanix.prismCentral.endpoint.address: must specify the Prism",
        ),
        (
            'topology: ha\nplatform: nutanix\nrelease: {profile: "4.18"}\ninstaller: {install_config: {platform: {nutanix: {a: b}}}}\n',
            "p.yml:2:1: platform is 'nutanix': is not one of the agent-based installer of 4.18",
        ),
        (
            "external: {platform_name: oci}\n",
            "p.yml:1:12: external.platform_name is 'oci': requires `platform: external`, not none",
        ),
        (
            'platform: external\nexternal: {platform_name: oci, cloud_controller_manager: "None"}\n',
            "p.yml:2:32: external.cloud_controller_manager is 'None': When using external oci platform, "
            "platform.external.cloudControllerManager must be set to External",
        ),
        (
            'platform: external\nrelease: {profile: "4.14"}\n',
            "p.yml: external.platform_name is 'agentlab': Unsupported value: supported values: \"oci\"",
        ),
        (
            "platform: external\nboot: {mode: cdrom}\n",
            "p.yml:2:8: boot.mode is 'cdrom': loads nothing from the network, and the image of platform external",
        ),
        (
            "installer: {hosts_in: install-config}\n",
            "p.yml:1:13: installer.hosts_in is 'install-config': requires `platform: baremetal`",
        ),
        (
            'topology: ha\ninstaller: {hosts_in: install-config}\nrelease: {profile: "4.14"}\n',
            "p.yml:2:13: installer.hosts_in is 'install-config': are ignored by the agent-based installer of 4.14",
        ),
        (
            "release: {payload: ocp}\n",
            "p.yml: release.image: a real payload requires the pullspec of its release image",
        ),
        (
            "release: {image: quay.io/a/b}\n",
            "p.yml:1:11: release.image is 'quay.io/a/b': a release image requires `payload: ocp` or `payload: okd`",
        ),
        (
            "release: {version: 4.18.1}\n",
            "p.yml:1:11: release.version is '4.18.1': is not a version of the lab payload: must be like 4.22.0-lab, of one of 4.14, ",
        ),
        (
            "release: {version: 4.13.0-lab}\n",
            "p.yml:1:11: release.version is '4.13.0-lab': is not a version of the lab payload",
        ),
        (
            "release: {payload: okd, version: 4.20.0}\n",
            "p.yml:1:25: release.version is '4.20.0': is a version of OpenShift Container Platform, which requires `payload: ocp`",
        ),
        (
            "release: {payload: okd, version: '4.20', image: quay.io/okd/scos-release:4.20.0-okd-scos.13}\n",
            "p.yml:1:25: release.version is '4.20': is not a version of OKD",
        ),
        (
            "release: {payload: ocp, version: 4.20.0-okd-scos.13}\n",
            "p.yml:1:25: release.version is '4.20.0-okd-scos.13': is a version of OKD, which requires `payload: okd`",
        ),
        (
            "release: {payload: okd, image: registry.ci.openshift.org/origin/release-scos@sha256:" + "0" * 64 + "}\n",
            "p.yml: installer.pull_secret_file: requires a file with an entry for registry.ci.openshift.org: without mirrors "
            "only quay.io needs none",
        ),
        (
            "hypervisor: {kind: ssh}\n",
            "p.yml: hypervisor.host: a hypervisor of `kind: ssh` requires its name or address",
        ),
        ("nodes: {mastr-0: {vcpus: 1}}\n", "p.yml:1:9: nodes.mastr-0: no node has this name; did you mean master-0?"),
        (
            "nodes: {master-0: {nics: {eth1: {mac: '00:00:00:00:00:01'}}}}\n",
            "p.yml:1:27: nodes.master-0.nics.eth1: there is no such interface; there are eth0",
        ),
        (
            "topology: compact\nnodes:\n  master-0: {nics: {eth0: {mac: '00:00:00:00:00:01'}}}\n"
            "  master-1: {nics: {eth0: {mac: '00:00:00:00:00:01'}}}\n",
            "p.yml:4:28: nodes.master-1.nics.eth0.mac is '00:00:00:00:00:01': is already used by nodes.master-0.nics.eth0.mac",
        ),
        (
            "network: {ipv4: 10.128.1.0/24}\n",
            "p.yml:1:11: network.ipv4 is '10.128.1.0/24': overlaps with installer.cluster_network.ipv4.0.cidr (10.128.0.0/14)",
        ),
        ("arch: aarch64\n", "p.yml:1:1: arch is 'aarch64': must be x86_64"),
        (
            "faults: [{kind: unsigned_image}]\nrelease: {payload: okd, version: 4.20.0-okd-scos.13}\n",
            "p.yml:1:11: faults.0.kind is 'unsigned_image': requires `release: {payload: lab}`: only its images are known to have no",
        ),
        ("network: {ipv4: 100.64.3.0/24}\n", "overlaps with 100.64.0.0/16, which OVN-Kubernetes reserves"),
        ("network: {ipv4: 'fd00::/64'}\n", "p.yml:1:11: network.ipv4 is 'fd00::/64': must be an IPv4 network"),
        (
            "network: {ipv4: 192.168.111.0/27}\n",
            "p.yml:1:11: network.ipv4 is '192.168.111.0/27': is too small: addresses up to offset 60 are used",
        ),
        (
            "topology: compact\nnetwork: {offsets: {api: 30}}\n",
            "p.yml:2:21: network.offsets.api is 30: is in the DHCP range, 20 to 60",
        ),
        (
            "topology: compact\naddressing: static\nnetwork: {offsets: {api: 81}}\n",
            "p.yml:3:21: network.offsets.api is 81: is the address of a node: nodes have the offsets 80 to 82",
        ),
        (
            "topology: compact\nvips: {api: [10.0.0.1]}\n",
            "p.yml:2:14: vips.api.0 is '10.0.0.1': is outside of its network, 192.168.111.0/24",
        ),
        (
            "topology: compact\nstack: dualstack\nvips: {api: [192.168.111.9]}\n",
            "p.yml:3:8: vips.api is ['192.168.111.9']: must be one IPv4 and one IPv6 address, in this order",
        ),
        (
            "topology: compact\nvips: {api: [192.168.111.1]}\n",
            "p.yml:2:14: vips.api.0 is '192.168.111.1': is the address of the gateway; choose another",
        ),
        (
            "nodes: {master-0: {nics: {eth0: {addresses: [192.168.1.1]}}}}\n",
            "p.yml:1:46: nodes.master-0.nics.eth0.addresses.0 is '192.168.1.1': is outside of its network",
        ),
        ("services: {http: {port: 5000}}\n", "services.http.port is '5000': is already used by services.registry.port"),
        ("extra_networks: [{name: ostestbm, ipv4: 10.9.0.0/24}]\n", "is already used by network.bridge"),
        ("extra_networks: [{name: more}]\n", "p.yml:1:18: extra_networks.0: needs `ipv4`, `ipv6` or both"),
        ("faults: {}\n", "p.yml:1:1: faults is {}: must be a list"),
    ],
)
def test_one_problem(tmp_path: Path, text: str, wanted: str) -> None:
    assert any(wanted in found for found in problems(tmp_path, text)), problems(tmp_path, text)


def test_checks_report_everything_at_once(tmp_path: Path) -> None:
    text = "network: {ipv4: 192.168.111.0/27}\nrelease: {payload: ocp}\nnodes: {nobody: {}}\n"
    assert len(problems(tmp_path, text, "a-very-long-name")) == 5


def test_one_report_has_what_the_schema_and_what_the_checks_find(tmp_path: Path) -> None:
    text = """\
platfrm: none
topology: compact
topology: compact
vips: {api: [10.0.0.1], ingress: [192.168.111.9]}
master: {memory_mib: lots}
services: {http: {port: 5000}}
"""
    assert problems(tmp_path, text, "a-very-long-name") == [
        "p.yml:1:1: platfrm: unknown field; did you mean `platform`?",
        "p.yml:3:1: topology: is a duplicate; remove one",
        "p.yml:4:14: vips.api.0 is '10.0.0.1': is outside of its network, 192.168.111.0/24",
        "p.yml:5:10: master.memory_mib is 'lots': must be an integer",
        "p.yml:6:19: services.http.port is '5000': is already used by services.registry.port; each must be unique",
        "p.yml: network.bridge is 'a-very-long-namebm': the name of a bridge has at most 15 characters, this has 18; "
        "choose a shorter cluster name, or set `network.bridge`",
    ]


@pytest.mark.parametrize(
    ("wrong", "hidden"),
    [
        (
            "network: {ipv4: 10.9.0.1/24}",
            "vips: {api: [10.9.0.5]}\ntopology: compact",
        ),  # the network of the address is unknown
        ("stak: ipv6", "network: {ipv4: 192.168.111.0/28}"),  # nor which family was meant
        ("topology: compct", "nodes: {master-2: {}}"),  # nor how many nodes
        ("extra_networks: [{ipv4: 10.9.0.0/24}]", "nodes: {master-0: {nics: {eth1: {}}}}"),
    ],
)
def test_nothing_is_reported_that_only_follows(tmp_path: Path, wrong: str, hidden: str) -> None:
    text = hidden if hidden.startswith(wrong[:8]) else f"{wrong}\n{hidden}\n"
    assert len(problems(tmp_path, text)) == 1


def test_a_wrong_field_of_one_node_hides_nothing_of_others(tmp_path: Path) -> None:
    """The node that is not there was reported when the field of the other one was right."""
    text = "topology: ha\nnodes: {master-0: {memory_mib: lots}, worker-7: {nics: {eth9: {}}}}\n"
    assert [line.partition(": ")[2].partition(":")[0] for line in problems(tmp_path, text)] == [
        "nodes.master-0.memory_mib is 'lots'",
        "nodes.worker-7",
        "nodes.worker-7.nics.eth9",
    ]


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        (
            "faults: [{kind: pause, node: master-0, when: boot, seconds: lots},\n {kind: pause, node: master-0, when: boot, "
            "seconds: 3},\n {kind: pause},\n {kind: pause, node: worker-9, when: boot, seconds: 3}]",
            ["faults.0.seconds", "faults.3.node", "faults.2.node"],
        ),
        (
            "faults: [{kind: pause, node: master-0, node: master-1, when: boot, seconds: 3},\n"
            " {kind: pause, node: worker-9, when: boot, seconds: 3}]",
            ["faults.0.node", "faults.1.node"],
        ),
        (
            "hypervisor: {kind: sandbox}\nsnapshots: [boot, ready, ready]",
            ["snapshots.0", "snapshots.2"],
        ),
        (
            "network: {routes: [{destination: 10.1.0.0/16, next_hop: here},\n"
            " {destination: 10.2.0.0/16, next_hop: 10.9.9.9}]}",
            ["network.routes.0.next_hop", "network.routes.1.next_hop"],
        ),
    ],
)
def test_a_wrong_entry_of_a_list_hides_nothing_of_others(tmp_path: Path, text: str, fields: list[str]) -> None:
    """The other entries were not checked, as the whole list was taken for unknown; they keep their numbers."""
    found = [line.partition(": ")[2].partition(" is ")[0].partition(":")[0] for line in problems(tmp_path, text)]
    assert list(dict.fromkeys(found)) == fields


def test_a_misspelled_word_hides_nothing(tmp_path: Path) -> None:
    text = """\
topolgy: compct
nodes: {worker-7: {}, master-2: {}}
release: {paylod: ocp, image: x}
master: {memry_mib: 1.5, vcpus: 2}
"""
    assert problems(tmp_path, text) == [
        "p.yml:1:1: topolgy: unknown field; did you mean `topology`?",
        f"p.yml:1:1: topolgy is 'compct': did you mean compact? must be one of {', '.join(TOPOLOGIES)}",
        "p.yml:2:9: nodes.worker-7: no node has this name; there are master-0, master-1, master-2; `worker.count: 8` adds it",
        "p.yml:3:11: release.paylod: unknown field; did you mean `payload`?",
        "p.yml:4:10: master.memry_mib: unknown field; did you mean `memory_mib`?",
        "p.yml:4:10: master.memry_mib is 1.5: must be an integer",
        "p.yml: installer.pull_secret_file: a real payload requires a file with the pull secret of its registries",
    ]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("master: {count: 3.0}", "p.yml:1:10: master.count is 3.0: must be an integer"),
        ("master: {vcpus: 2.0}", "p.yml:1:10: master.vcpus is 2.0: must be an integer"),
        ("services: {http: {port: 8e3}}", "p.yml:1:19: services.http.port is 8000.0: must be an integer"),
        ("network: {mtu: .inf}", "p.yml:1:11: network.mtu is inf: must be an integer"),
        ("network: {offsets: {api: .nan}}", "p.yml:1:21: network.offsets.api is nan: must be an integer"),
        ("faults: [{kind: pause, node: master-0, when: boot, seconds: 3.0}]", "p.yml:1:52: faults.0.seconds is 3.0: must be an integer"),
        ("stack: &a [*a]", "p.yml:1:12: not valid YAML: anchor 'a' value contains itself"),
        ("stack: " + "[" * 20000, "p.yml:1:107: not valid YAML: exceeded max depth of 100"),
        ("a: \0", "p.yml:1:4: not valid YAML: control characters are not allowed"),
        ("? {a: b}\n: c", "p.yml:1:3: not valid YAML: invalid map key: a mapping; a key is a string"),
        ("topology: sno\n---\nstack: ipv6", "p.yml:3:1: not valid YAML: expected one document, found another"),
    ],
)  # fmt: skip
def test_values_that_would_be_a_traceback(tmp_path: Path, text: str, wanted: str) -> None:
    assert problems(tmp_path, text)[0].startswith(wanted)


def test_one_report_has_what_this_host_lacks(tmp_path: Path) -> None:
    path = tmp_path / "p.yml"
    path.write_text(
        "topology: ha\nstak: ipv6\nmaster: {memory_mib: 1000000}\nnodes: {worker-0: {memory_mib: 3000000}}\n"
    )
    with pytest.raises(ProfileError) as caught:
        profile.load(path, None, "unit", here=True)
    assert [item.field for item in caught.value.problems] == ["stak", "nodes.*.memory_mib"]
    assert caught.value.problems[1].remedy.startswith(
        f"{3 * 1000000 + 3000000 + 2048 + 5 * 150} MiB of memory are required for 5 nodes, "
    )
    path.write_text("hypervisor: {kind: ssh, host: lab.example}\nmaster: {memory_mib: 1000000}\nstak: ipv6\n")
    with pytest.raises(ProfileError) as caught:
        profile.load(path, None, "unit", here=True)
    assert [item.field for item in caught.value.problems] == ["stak"]


def test_a_profile_that_is_not_text(tmp_path: Path) -> None:
    path = tmp_path / "p.yml"
    path.write_bytes(b"topology: \xff\n")
    with pytest.raises(ProfileError, match=r"p\.yml:1:11: not valid YAML: invalid leading UTF-8 octet"):
        profile.load(path)


def test_missing_profile_names_the_nearest() -> None:
    with pytest.raises(ProfileError, match="snoipv4: there is no such profile; did you mean sno_ipv4"):
        profile.load("snoipv4", PROFILES)


def test_a_directory_is_not_a_profile(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match=f"{tmp_path}: is a directory, not a profile"):
        profile.load(tmp_path)


def test_names_are_caseless(tmp_path: Path) -> None:
    path = tmp_path / "p.yml"
    path.write_text("topology: SNOMIN\nstack: IPv6\n")
    assert profile.load(path)["topology"] == "snomin"


def test_scenarios_of_dev_scripts() -> None:
    assert profile.scenario("HA_IPV4V6_DHCP") == {"topology": "ha", "stack": "dualstack", "addressing": "dhcp"}
    assert profile.scenario("4CONTROL_IPV6") == {"topology": "4control", "stack": "ipv6", "addressing": "static"}
    assert profile.scenario("5CONTROL") == {"topology": "5control"}
    assert profile.scenario("ha_ipv4") is None
    assert profile.scenario("XL_IPV4") is None


def test_empty_profile_is_the_default() -> None:
    empty: dict[str, Any] = {}
    assert build.build(profile.complete(empty), "ostest") == build.build(profile.load("sno_ipv4", PROFILES), "ostest")


def test_a_directory_that_qemu_cannot_enter() -> None:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as shut:  # mode 0700, and below directories that are open
        directory = Path(shut, "labs/ostest")
        ((path, value, remedy),) = capacity.closed_directories(directory)
        assert (path, value) == (("hypervisor", "state_dir"), str(directory))
        assert remedy.startswith(
            f"{shut} has mode 0700, so QEMU's user cannot open disks below it; run `chmod o+x {shut}`"
        )
        Path(shut).chmod(0o711)
        assert capacity.closed_directories(directory) == []


def test_capacity() -> None:
    plan = build.build(profile.load("ha_ipv4", PROFILES), "ostest")
    assert set(capacity.measure(Path("/no/such/directory"))) == {"memory_mib", "cpus", "disk_free_gib"}
    enough = {"memory_mib": 16384, "cpus": 2, "disk_free_gib": 30}
    assert capacity.check(plan["nodes"], "lab", "/pool", enough) == []
    little = {"memory_mib": 8192, "cpus": 1, "disk_free_gib": 5}
    lacking = capacity.check(plan["nodes"], "lab", "/pool", little)
    assert [path[-1] for path, __, __ in lacking] == ["memory_mib", "vcpus", "disks"]
    assert "14062 MiB of memory are required for 5 nodes, 8192 are available" in lacking[0][2]
