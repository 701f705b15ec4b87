"""The boot mode `iscsi`: what a profile becomes, and what is refused."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.libvirt import domain
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, configs, iscsi, profile
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.modes import MODES
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.problems import ProfileError
from ansible_collections.agentlab.ocp.plugins.module_utils.state.owner import Owner

PROFILES = Path(__file__).resolve().parents[3] / "config_examples"
ON = "topology: ha\nboot: {mode: iscsi}\nmaster: {firmware: bios}\nworker: {firmware: bios}\n"
IQN = "iqn.2024-01.ostest.test.metalkube.org"


def planned(text: str) -> Any:
    return build.build(profile.validated_profile(profile.parse(text, "p.yml"), "ostest"), "ostest")


def test_as_dev_scripts() -> None:
    plan = build.build(profile.load("sno_iscsi", PROFILES), "ostest")
    (node,) = plan["nodes"]
    assert [(one["name"], one["subnets"][0]["cidr"]) for one in plan["networks"]][1:] == [("iscsi", "192.168.145.0/24")]
    assert [(disk["bus"], disk["target"], disk["iqn"]) for disk in node["disks"]] == [
        ("iscsi", "sda", f"{IQN}:master-0")
    ]
    assert plan["services"]["iscsi"] == {"address": "192.168.145.1", "port": 3260, "lun": 1}
    assert plan["boot"]["script_url"] == "http://192.168.145.1:8089/agent.x86_64-iscsi.ipxe"
    assert iscsi.script(plan) == (
        f"#!ipxe\nset initiator-iqn {IQN}:${{hostname}}\nsanboot --keep iscsi:192.168.145.1::3260:1:{IQN}:${{hostname}}\n"
    )
    # iPXE knows its host name by this lease.
    assert [(one["ip"], one["name"]) for one in plan["networks"][1]["reservations"]] == [("192.168.145.20", "master-0")]
    config = configs.agent_config(plan)
    assert (config["minimalISO"], config["bootArtifactsBaseURL"]) == (True, "http://192.168.111.1:8089")


def test_the_network_of_the_profile() -> None:
    plan = planned(ON + "extra_networks: [{name: storage, ipv4: 10.8.0.0/24}, {name: iscsi, ipv4: 10.9.0.0/24}]\n")
    assert [one["name"] for one in plan["networks"]] == ["ostestbm", "storage", "iscsi"]
    assert plan["services"]["iscsi"]["address"] == "10.9.0.1"
    assert [node["disks"][0]["iqn"].partition(":")[2] for node in plan["nodes"]] == [
        node["name"] for node in plan["nodes"]
    ]


def test_two_paths() -> None:
    plan = planned(ON.replace("iscsi}", "iscsi, paths: 2}") + "extra_networks: [{name: storage, ipv4: 10.8.0.0/24}]\n")
    assert [(one["name"], one["subnets"][0]["cidr"]) for one in plan["networks"]][2:] == [
        ("iscsi", "192.168.145.0/24"),
        ("iscsi2", "192.168.146.0/24"),
    ]
    assert plan["services"]["iscsi"]["second"] == "192.168.146.1"
    assert all(len(node["disks"]) == 1 and node["disks"][0]["paths"] == 2 for node in plan["nodes"])
    assert [nic["network"] for nic in plan["nodes"][0]["nics"]] == ["ostestbm", "storage", "iscsi", "iscsi2"]
    assert iscsi.script(plan) == (
        f"#!ipxe\ndhcp net3\nset initiator-iqn {IQN}:${{hostname}}\nsanboot --keep iscsi:192.168.145.1::3260:1:{IQN}:${{hostname}}"
        f" iscsi:192.168.146.1::3260:1:{IQN}:${{hostname}}\n"
    )


@pytest.mark.parametrize(
    "hint",
    [
        "root_device: /dev/dm-0",
        "root_device_hints: {wwn: '0x60000000000000000e00000000010001'}",
        "root_device_hints: {min_size_gigabytes: 20, rotational: false}",
    ],
)
def test_hints_of_a_multipath_device(hint: str) -> None:
    planned(ON.replace("iscsi}", "iscsi, paths: 2}") + f"nodes: {{worker-1: {{{hint}}}}}\n")


def test_a_machine_boots_from_the_network_of_its_lun() -> None:
    node = planned(ON)["nodes"][0]
    tree = domain.render(
        node,
        Owner("ostest", "/runs/ostest", 0, "root", "lab", ""),
        pool="p",
        domain_type="qemu",
        console=Path("/c"),
        medium=MODES["iscsi"].medium,
    )
    assert tree.find("devices/disk") is None and tree.find("os/boot") is None
    ordered = [
        nic.find("source").get("network") for nic in tree.findall("devices/interface") if nic.find("boot") is not None
    ]
    assert ordered == ["iscsi"], ET.tostring(tree, encoding="unicode")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            "release: {version: 4.17.0-lab}\n",
            "boot.mode is 'iscsi': requires a release from 4.18 on, whose live system",
        ),
        ("hypervisor: {kind: local}\n", "boot.mode is 'iscsi': requires `hypervisor: {kind: sandbox}`, not local"),
        ("snapshots: [ready]\n", "snapshots is ['ready']: requires another boot mode than iscsi: LUNs are not saved"),
        ("services: {http: {port: 3260}}\n", "services.http.port is 3260: is that of the iSCSI targets"),
        (
            "faults: [{kind: disk_lost, node: master-1, when: Installing}]\n",
            "is 'disk_lost': requires another boot mode",
        ),
        ("faults: [{kind: boot_order, node: master-1}]\n", "requires a medium: boot mode iscsi has none"),
        ("extra_networks: [{name: iscsi, ipv6: 'fd09::/64'}]\n", "extra_networks.0.ipv4: is required"),
        (
            "extra_networks: [{name: iscsi, ipv4: 10.9.0.0/24, interface: eth1, vlan: 5}]\n",
            "extra_networks.0.vlan is 5: must be left out",
        ),
        (
            "boot: {mode: pxe, paths: 2}\n",
            "boot.paths is 2: requires `mode: iscsi`: the service installs to a multipath",
        ),
        ("boot: {mode: iscsi, paths: 3}\n", "boot.paths is 3: must be from 1 to 2"),
        ("boot: {mode: iscsi, paths: 0}\n", "boot.paths is 0: must be from 1 to 2"),
        (
            "boot: {mode: iscsi, paths: 2}\nextra_networks: [{name: iscsi2, ipv6: 'fd09::/64'}]\n",
            "extra_networks.0.ipv4: is required",
        ),
        (
            "boot: {mode: iscsi, paths: 2}\nnodes: {worker-1: {root_device: /dev/sda}}\n",
            "matches no disk of worker-1, which has dm-0 (20 GiB, multipath)",
        ),
        (
            "boot: {mode: iscsi, paths: 2}\nnodes: {worker-1: {root_device_hints: {vendor: IET}}}\n",
            "matches no disk of worker-1, which has dm-0 (20 GiB, multipath)",
        ),
        ("nodes: {worker-1: {firmware: uefi}}\n", "nodes.worker-1.firmware is 'uefi': must be bios"),
        ("nodes: {worker-1: {extra_disks: [{size_gib: 5}]}}\n", "must be empty: the LUN is the machine's only disk"),
        ("addressing: static\n", "addressing is 'static': must be dhcp"),
        ("nodes: {worker-1: {network_config: {interfaces: []}}}\n", "nodes.worker-1.network_config: must be left out"),
        ("nodes: {worker-1: {day2: true}}\n", "boot.mode is 'iscsi': must be one of redfish, minimal, cdrom, manual"),
        (
            "boot: {mode: iscsi, eject: after}\n",
            "boot.eject is 'after': boot mode iscsi has no medium",
        ),
        (
            "master: {firmware: bios, root_device: /dev/sdb}\n",
            "matches no disk of master-0, which has sda (vendor IET, model VIRTUAL-DISK",
        ),
    ],
)
def test_refused(more: str, message: str) -> None:
    field = more.partition(":")[0]
    kept = "".join(line + "\n" for line in ON.splitlines() if line.partition(":")[0] != field)
    with pytest.raises(ProfileError) as caught:
        planned(kept + more)
    assert message in str(caught.value)
