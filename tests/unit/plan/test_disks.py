"""Host names, disks and root device hints of a profile: what follows from them, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.payload.api_server.client import hints
from ansible_collections.agentlab.ocp.plugins.module_utils.libvirt import domain
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import (
    build,
    configs,
    disks,
    faults,
    injected,
    profile,
    stored,
)
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.problems import ProfileError
from ansible_collections.agentlab.ocp.plugins.module_utils.state.owner import Owner

PROFILES = Path(__file__).resolve().parents[3] / "config_examples"
OWNER = Owner("ostest", "/runs/ostest", 0, "root", "lab", "", "6f0c2f5e-7d0e-4c77-9a51-0f9a3b1f0c11")


def planned(tmp_path: Path, text: str) -> dict[str, Any]:
    path = tmp_path / "p.yml"
    path.write_text(text)
    return build.build(profile.load(path, None, "ostest"), "ostest")


def chosen(node: dict[str, Any]) -> list[str] | None:
    found = disks.matching_disks(node["disks"], node["root_device"], node.get("root_device_hints"))
    return None if found is None else [disk["name"] for disk in found]


def inventory(node: dict[str, Any]) -> list[dict[str, Any]]:
    """The disks of a planned node as an agent on its machine reports them."""
    scsi = [disk for disk in node["disks"] if disk["bus"] == "scsi"]
    return [
        {
            "path": f"/dev/{disk['target']}",
            "name": disk["target"],
            "hctl": f"6:0:0:{scsi.index(disk)}" if disk in scsi else "",
            "model": disk.get("model") or "QEMU_HARDDISK",
            "vendor": disk.get("vendor") or "QEMU",
            "serial": disk["serial"],
            "size_bytes": disk["size_gib"] << 30,
            "wwn": disk.get("wwn") or "",
            "drive_type": "SSD" if disk.get("rotational") is False else "HDD",
            "installation_eligibility": {"eligible": True},
        }
        for disk in node["disks"]
    ]


def test_the_example_has_one_disk_for_the_hints_of_each_node() -> None:
    plan: Any = build.build(profile.load("compact_disks", PROFILES), "ostest")
    assert [node["name"] for node in plan["nodes"]] == ["control-0", "control-1", "control-2"]
    assert plan["rendezvous"]["node"] == "control-0" and stored.findings(plan) == []
    assert [chosen(node) for node in plan["nodes"]] == [
        ["ostest_master_0_5"],
        ["ostest_master_1_2"],
        ["ostest_master_2_2"],
    ]
    made = configs.install_config(plan, pull_secret={"auths": {}}, ssh_key="ssh-rsa x", trust_bundle="")
    hosts = made["platform"]["baremetal"]["hosts"]
    assert [(host["name"], host["role"]) for host in hosts] == [(f"control-{n}", "master") for n in range(3)]
    assert hosts[0]["rootDeviceHints"] == {
        "vendor": "AGENTLAB",
        "model": "FAST",
        "minSizeGigabytes": 20,
        "rotational": False,
    }
    for node, host in zip(plan["nodes"], hosts, strict=True):
        there = hints.disks_accepted(inventory(node), host["rootDeviceHints"])
        assert [disk["serial"] for disk in there] == [
            disk["serial"] for disk in node["disks"] if disk["name"] in (chosen(node) or [])
        ]


@pytest.mark.parametrize("left_out", ["vendor", "model", "min_size_gigabytes", "rotational"])
def test_each_hint_of_the_example_excludes_one_disk(left_out: str) -> None:
    plan: Any = build.build(profile.load("compact_disks", PROFILES), "ostest")
    del plan["nodes"][0]["root_device_hints"][left_out]
    assert len(chosen(plan["nodes"][0]) or []) == 2


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        ("root_device: /dev/sdb", ["ostest_master_0_1"]),
        ("root_device: /dev/vda", ["ostest_master_0_2"]),
        ("root_device: /dev/disk/by-path/pci-0000:03:00.0-scsi-0:0:0:1", None),
        ("root_device_hints: {hctl: '2:0:0:1'}", ["ostest_master_0_1"]),
        ("root_device_hints: {vendor: QEMU, min_size_gigabytes: 22}", ["ostest_master_0_1"]),
        ("root_device_hints: {min_size_gigabytes: 23}", ["ostest_master_0_2"]),
        ("{}", None),
    ],
)
def test_the_disk_that_hints_match(tmp_path: Path, hint: str, expected: list[str] | None) -> None:
    more = "extra_disks: [{size_gib: 21}, {size_gib: 22, bus: virtio}]"
    plan = planned(tmp_path, f"master: {{{more}{'' if hint == '{}' else ', ' + hint}}}")
    assert chosen(plan["nodes"][0]) == expected


def test_a_machine_reports_what_its_profile_has(tmp_path: Path) -> None:
    disk = "{size_gib: 5, vendor: V, model: M, serial: S, wwn: '0x5000c50015ea71ac', rotational: false}"
    node = planned(tmp_path, f"master: {{extra_disks: [{disk}, {{size_gib: 6, rotational: true}}]}}")["nodes"][0]
    tree = domain.render(node, OWNER, pool="p", domain_type="kvm", console=Path("/c"))
    first, second, third = tree.findall("devices/disk")
    assert [first.find(key) for key in ("vendor", "product", "wwn")] == [None] * 3
    assert [second.findtext(key) for key in ("vendor", "product", "serial", "wwn")] == [
        "V",
        "M",
        "S",
        "5000c50015ea71ac",
    ]
    assert [one.find("target").get("rotation_rate") for one in (first, second, third)] == [None, "1", "7200"]


def test_a_wrong_hint_is_a_fault(tmp_path: Path) -> None:
    plan = planned(tmp_path, "topology: compact\nfaults: [{kind: wrong_root_device, node: master-1}]")
    found = [host.get("rootDeviceHints") for host in configs.agent_config(plan)["hosts"]]
    assert found == [None, {"serialNumber": faults.NO_SERIAL}, None]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("master: {root_device_hints: {wwn_with_extension: '0x5000c50015ea71ac'}}",
         "master.root_device_hints.wwn_with_extension is '0x5000c50015ea71ac': WWN extensions are not supported in root device hints"),
        ("master: {root_device_hints: {wwn_vendor_extension: '0x5000c50015ea71ac'}}",
         "WWN vendor extensions are not supported in root device hints"),
        ("master: {root_device_hints: {serial_number: S-1}}",
         "matches no disk of master-0, which has sda (vendor QEMU, model QEMU_HARDDISK, serial "),
        ("master: {root_device_hints: {hctl: '0:0:1:0'}}", "matches no disk of master-0"),
        ("master: {root_device_hints: {hctl: '0:0:0'}}", "must be host, channel, target and LUN, such as 0:0:0:1"),
        ("master: {root_device_hints: {rotational: false}}", "matches no disk of master-0"),
        ("master: {root_device: /dev/sdb}", "p.yml:1:10: master.root_device is '/dev/sdb': matches no disk of master-0"),
        ("nodes: {master-0: {root_device: /dev/sdb}}", "p.yml:1:20: nodes.master-0.root_device is '/dev/sdb': matches no disk of"),
        ("master: {root_device: /dev/sda, disk_bus: virtio}", "matches no disk of master-0, which has vda"),
        ("nodes: {master-0: {root_device_hints: {wwn: '0x5000c50015ea71ac'}}}", "nodes.master-0.root_device_hints is "),
        ("master: {disk_bus: sata, extra_disks: [{size_gib: 5, vendor: V}]}",
         "master.extra_disks.0.vendor is 'V': requires the bus scsi, not sata"),
        ("master: {extra_disks: [{size_gib: 5, bus: virtio, wwn: '0x5000c50015ea71ac'}]}", "requires the bus scsi or sata, not virtio"),
        ("master: {extra_disks: [{size_gib: 5, bus: virtio, rotational: true}]}", "requires the bus scsi or sata, not virtio"),
        ("master: {extra_disks: [{size_gib: 5, serial: S}, {size_gib: 5, serial: S}]}", "extra_disks.1.serial is 'S': is a duplicate"),
        ("master: {extra_disks: [{size_gib: 5, vendor: a vendor}]}", "must be 1 to 8 letters"),
        ("master: {extra_disks: [{size_gib: 5, wwn: 5000c50015ea71ac}]}", "must be 0x and 16 hexadecimal digits"),
        ("topology: ha\nmaster: {name_format: node-%d}\nworker: {name_format: node-%d}",
         "worker.name_format is 'node-%d': node-0 is a name of role master and of worker"),
        ("topology: ha\nmaster: {name_format: worker-%d}", "master.name_format is 'worker-%d': worker-0 is a name of role"),
        ("master: {name_format: control}", "must be a host name with `%d` for the number, once"),
        ("master: {name_format: Control-%d}", "must be a host name with `%d` for the number, once"),
        ("master: {name_format: c-%d-%s}", "must be a host name with `%d` for the number, once"),
        ("master: {name_format: c-%d}\nnodes: {master-0: {tpm: true}}", "no node has this name; there are c-0"),
        ("faults: [{kind: wrong_root_device, node: master-1}]", "did you mean master-0?"),
    ],
)  # fmt: skip
def test_what_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ProfileError) as report:
        planned(tmp_path, text)
    assert message in str(report.value)
    assert len(report.value.problems) == 1


def test_media_are_ejected_at_a_stage_or_after(tmp_path: Path) -> None:
    plan = planned(tmp_path, "topology: compact\nboot: {eject: on_rebooting}")
    assert [(fault["kind"], fault["node"], fault["when"], fault["seconds"]) for fault in injected.of_lab(plan)] == [
        ("eject", f"master-{number}", "Rebooting", None) for number in range(3)
    ]
    assert stored.findings(plan) == [] and plan["faults"] == []
    plan = planned(tmp_path, "boot: {eject: after, mode: usb}")
    assert (plan["boot"]["eject"], injected.of_lab(plan)) == ("after", [])
    assert "eject" not in planned(tmp_path, "boot: {eject: never}")["boot"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("boot: {eject: after, mode: pxe}", "boot.eject is 'after': boot mode pxe has no medium; must be `never`"),
        ("boot: {eject: on_rebooting, mode: manual}", "boot.eject is 'on_rebooting': boot mode manual has no medium"),
        ("boot: {eject: on_rebooting, mode: usb}", "requires a CD: a USB stick is removed after the installation, or never"),
        ("boot: {eject: on_rebooting}\nsnapshots: [ready]", "requires another `boot.eject` than on_rebooting"),
        ("boot: {eject: later}", "must be one of never, on_rebooting, after"),
        ("boot: {mode: pxe}\nfaults: [{kind: slow_media, node: master-0, bytes_per_second: 500000}]",
         "faults.0.kind is 'slow_media': requires a medium: boot mode pxe has none"),
        ("boot: {mode: pxe}\nfaults: [{kind: boot_order, node: master-0}]", "requires a medium: boot mode pxe has none"),
        ("boot: {mode: usb}\nfaults: [{kind: eject, node: master-0}]", "requires a CD: boot mode usb has none"),
        ("faults: [{kind: slow_media, node: master-0}]", "bytes_per_second"),
        ("faults: [{kind: slow_media, node: master-0, bytes_per_second: 1}]", "must be from 1024 to 1000000000"),
    ],
)  # fmt: skip
def test_what_is_refused_of_media(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ProfileError) as report:
        planned(tmp_path, text)
    assert message in str(report.value)
    assert len(report.value.problems) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "master: {secure_boot: true, firmware: bios}",
            "master.secure_boot is True: requires `firmware: uefi`, not bios",
        ),
        (
            "master: {secure_boot: true}\nboot: {mode: pxe}",
            "requires a medium: the program that boots from the network",
        ),
        ("nodes: {master-0: {secure_boot: true, firmware: bios}}", "nodes.master-0.secure_boot is True"),
    ],
)
def test_what_is_refused_of_firmware(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ProfileError) as report:
        planned(tmp_path, text)
    assert message in str(report.value)
    assert len(report.value.problems) == 1


def test_secure_boot_is_of_the_firmware(tmp_path: Path) -> None:
    node = planned(tmp_path, "master: {secure_boot: true}")["nodes"][0]
    tree = domain.render(node, OWNER, pool="p", domain_type="kvm", console=Path("/c"))
    features = [(one.get("name"), one.get("enabled")) for one in tree.findall("os/firmware/feature")]
    assert features == [("secure-boot", "yes"), ("enrolled-keys", "yes")]
    assert tree.find("features/smm").get("state") == "on"
    plain = domain.render(planned(tmp_path, "")["nodes"][0], OWNER, pool="p", domain_type="kvm", console=Path("/c"))
    assert plain.find("os/firmware/feature").get("enabled") == "no" and plain.find("features/smm") is None
