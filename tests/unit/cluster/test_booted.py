"""How machines were booted: records as a lab has them, and records of a machine that was booted otherwise.

Kernel arguments, disks, names of time servers and lines of the BMCs' log are those of labs that were installed in machines.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.cluster import booted
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, phases, profile
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.modes import MODES
from ansible_collections.agentlab.ocp.plugins.module_utils.vocabulary import RunFile

GIB = 1 << 30
ISO = "BOOT_IMAGE=/images/pxeboot/vmlinuz coreos.liveiso=lab-os-4.22.0 ignition.firstboot ignition.platform.id=metal\n"
FETCHED = (
    "agent.x86_64-vmlinuz initrd=initrd coreos.live.rootfs_url=http://192.168.111.1:8089/agent.x86_64-rootfs.img\n"
)
SCSI = {"name": "sda", "drive_type": "HDD", "size_bytes": 20 * GIB, "is_installation_media": None}
DRIVE = {"name": "sr0", "drive_type": "ODD", "size_bytes": 174794752, "is_installation_media": True, "removable": True}
STICK = {"name": "sdb", "drive_type": "HDD", "size_bytes": 174794752, "is_installation_media": True, "removable": True}
LUN = {"name": "sda", "drive_type": "iSCSI", "size_bytes": 20 * GIB}
SEEN: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "CD": (ISO, [SCSI, DRIVE]),
    "2 CDs": (ISO, [SCSI, DRIVE, {**DRIVE, "name": "sr1"}]),
    "USB stick": (ISO, [SCSI, STICK]),
    "network": (FETCHED, [SCSI]),
    "CD without a root file system": (FETCHED, [SCSI, DRIVE]),
    "LUN": (FETCHED, [LUN]),
}
OF_MODE = {
    "redfish": "CD", "cdrom": "CD", "interactive": "CD", "config-image": "2 CDs", "usb": "USB stick", "pxe": "network",
    "minimal": "CD without a root file system", "iscsi": "LUN",
}  # fmt: skip
LINE = (
    '192.168.111.1 - - [28/Nov/2026 06:41:49] "\x1b[35m\x1b[1mPOST /redfish/v1/Systems/{}/VirtualMedia/Cd/Actions/'
    'VirtualMedia.{} HTTP/1.1\x1b[0m" {} -\n'
)
INSERTED = time.mktime((2026, 11, 28, 6, 41, 49, 0, 0, -1))


def planned(given: Mapping[str, Any], tmp_path: Path) -> Any:
    made: Any = build.build(profile.complete({"topology": "sno", **given}), "ostest")
    made["services"]["directory"] = str(tmp_path / "services")
    return made


def record(plan: Any, run_dir: Path, seen: str, *sources: str) -> None:
    """Write what the service had of the hosts, each booted from the same; `sources`: names of their time servers."""
    line, disks = SEEN[seen]
    inventory = {"boot": {"command_line": line}, "disks": disks}
    hosts = [
        {
            "inventory": json.dumps({**inventory, "interfaces": [{"mac_address": nic["mac"]} for nic in node["nics"]]}),
            "ntp_sources": json.dumps([{"source_name": name, "source_state": "synced"} for name in sources]),
        }
        for node in phases.installed_nodes(plan)
    ]
    (run_dir / "logs").mkdir(exist_ok=True)
    (run_dir / RunFile.LAST_CLUSTER).write_text(json.dumps({"hosts": [*hosts, {"inventory": ""}, {}]}))


def log(plan: Any, *lines: str) -> None:
    path = Path(plan["services"]["directory"]) / "bmc/log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(" * Debug mode: off\n" + "".join(lines))


def virsh(command: Sequence[str]) -> str:
    raise FileNotFoundError(command[0])


def found(plan: Any, run_dir: Path, subject: str) -> list[tuple[bool, str, str]]:
    made = [one for one in booted.findings(plan, run_dir, virsh) if one.subject.startswith(subject)]
    return [(one.ok, one.expected, one.found) for one in made]


def test_the_modes_are_those_of_the_stage_boot() -> None:
    assert OF_MODE.keys() == {name for name, mode in MODES.items() if mode.boots}


@pytest.mark.parametrize("mode", OF_MODE)
def test_modes_are_distinguished(mode: str, tmp_path: Path) -> None:
    plan = planned({"boot": {"mode": mode}, "master": {"firmware": "bios"}}, tmp_path)
    by_bmc = mode in ("redfish", "minimal", "interactive")
    reported = LINE.format(plan["nodes"][0]["uuid"], "InsertMedia", 204)
    own, other = (reported, "") if by_bmc else ("", reported)
    for seen in SEEN:
        record(plan, tmp_path, seen)
        log(plan, own)
        assert [one[0] for one in found(plan, tmp_path, "boot of master-0")] == [seen == OF_MODE[mode]]
        log(plan, other)
        assert [one[0] for one in found(plan, tmp_path, "boot of")] == [False]


def test_a_cd_that_the_bmc_inserted_after_all(tmp_path: Path) -> None:
    """The mode `cdrom` that silently did what `redfish` does passed every job."""
    plan = planned({"boot": {"mode": "cdrom"}}, tmp_path)
    uuid = plan["nodes"][0]["uuid"]
    record(plan, tmp_path, "CD")
    refused, taken = LINE.format(uuid, "InsertMedia", 500), LINE.format(uuid, "EjectMedia", 204)
    log(plan, LINE.format("another", "InsertMedia", 204), refused, taken)
    expected = "CD; its BMC inserted nothing"
    assert found(plan, tmp_path, "boot of") == [(True, expected, expected)]
    log(plan, LINE.format(uuid, "InsertMedia", 204))
    assert found(plan, tmp_path, "boot of") == [(False, expected, "CD; inserted by its BMC")]
    # That was an earlier deployment, from an image before this one.
    image = tmp_path / plan["boot"]["image"]
    image.touch()
    os.utime(image, (INSERTED + 60, INSERTED + 60))
    assert found(plan, tmp_path, "boot of") == [(True, expected, expected)]
    os.utime(image, (INSERTED - 60, INSERTED - 60))
    assert not found(plan, tmp_path, "boot of")[0][0]


@pytest.mark.parametrize(
    "text", [None, "", "{}", "[]", '{"hosts": [1]}', '{"hosts": [{"inventory": "{"}]}', '{"hosts": null}', '{"hosts": [{"inventory": "[]"}]}']
)  # fmt: skip
def test_what_is_not_recorded_is_left_out(text: str | None, tmp_path: Path) -> None:
    plan = planned({}, tmp_path)
    if text is not None:
        (tmp_path / "logs").mkdir()
        (tmp_path / RunFile.LAST_CLUSTER).write_text(text)
    assert list(booted.findings(plan, tmp_path, virsh)) == []
    log(plan, LINE.format(plan["nodes"][0]["uuid"], "InsertMedia", 204))
    assert found(plan, tmp_path, "") == [(True, "inserted by its BMC", "inserted by its BMC")]


def test_machines_without_a_record(tmp_path: Path) -> None:
    """Day-2 nodes are not in it, nor is an existing machine in the log of the lab's BMCs; who boots by hand needs neither."""
    plan = planned({"topology": "compact", "worker": {"count": 1}, "nodes": {"worker-0": {"day2": True}}}, tmp_path)
    record(plan, tmp_path, "CD")
    log(plan, *(LINE.format(node["uuid"], "InsertMedia", 204) for node in plan["nodes"]))
    *masters, worker = found(plan, tmp_path, "boot of")
    assert {one[1:] for one in masters} == {("CD; inserted by its BMC",) * 2} and worker[1:] == (
        "inserted by its BMC",
    ) * 2
    plan["nodes"][0]["bare_metal"] = True
    assert found(plan, tmp_path, "boot of master-0") == [(True, "CD", "CD")]
    plan["boot"]["mode"] = "manual"
    assert found(plan, tmp_path, "boot of") == []


@pytest.mark.parametrize("mode", ["redfish", "minimal"])
def test_images_of_platform_external_are_minimal(mode: str, tmp_path: Path) -> None:
    """A whole ISO passed, too: the check took one for the other on this platform."""
    given = {"platform": "external", "external": {"platform_name": "lab"}, "boot": {"mode": mode}}
    plan = planned(given, tmp_path)
    for seen in SEEN:
        record(plan, tmp_path, seen)
        assert found(plan, tmp_path, "boot of")[0][0] == (seen == "CD without a root file system")
    record(plan, tmp_path, "CD")
    assert found(plan, tmp_path, "boot of") == [(False, "CD without a root file system", "CD")]


def test_the_flow_ipi_boots_no_agent(tmp_path: Path) -> None:
    plan: Any = build.build(profile.complete({"flow": "ipi", "topology": "compact"}), "ostest")
    log({"services": {"directory": tmp_path / "services"}})
    plan["services"]["directory"] = str(tmp_path / "services")
    assert list(booted.findings(plan, tmp_path, virsh)) == []


CD_XML = "<disk device='cdrom'>{}<target bus='scsi'/></disk>"
DOMAIN = "<domain><devices><disk device='disk'><source file='/pool/x'/><target bus='scsi'/></disk>{}</devices></domain>"


@pytest.mark.parametrize(
    ("mode", "when", "inactive", "live", "media"),
    [
        ("cdrom", "on_rebooting", "", "", "none"),
        ("cdrom", "on_rebooting", "<source/>", "", "none"),
        ("cdrom", "on_rebooting", "<source file='/iso'/>", "", "/iso"),
        ("cdrom", "on_rebooting", "", "<source file='/iso'/>", "/iso"),
        ("redfish", "after", "", "<source file='/iso'/>", "none"),
        ("redfish", "after", "<source file='/iso'/>", "<source file='/iso'/>", "/iso"),
    ],
)
def test_the_medium_is_taken_out(mode: str, when: str, inactive: str, live: str, media: str, tmp_path: Path) -> None:
    plan = planned({"boot": {"mode": mode, "eject": when}}, tmp_path)

    def ask(command: list[str]) -> str:
        assert command[:2] == ["virsh", "dumpxml"] and command[-1] == "ostest_master_0"
        return DOMAIN.format(CD_XML.format(inactive if "--inactive" in command else live))

    [one] = booted.findings(plan, tmp_path, ask)
    assert (one.subject, one.expected, one.found) == ("medium of master-0", "none", media)


def test_a_stick_is_taken_out(tmp_path: Path) -> None:
    plan = planned({"boot": {"mode": "usb", "eject": "after"}}, tmp_path)
    stick = "<disk device='disk'><source file='/iso'/><target bus='usb'/></disk>"
    for there, media in ((stick, "/iso"), ("", "none")):
        [one] = booted.findings(plan, tmp_path, lambda command, there=there: DOMAIN.format(there))
        assert (one.ok, one.found) == (media == "none", media)


def test_media_that_are_not_known(tmp_path: Path) -> None:
    plan = planned({"boot": {"eject": "after"}}, tmp_path)

    def refuse(command: list[str]) -> str:
        raise OSError("error: failed to get domain")

    [one] = booted.findings(plan, tmp_path, refuse)
    assert (one.ok, one.found) == (False, "unknown: error: failed to get domain")
    [one] = booted.findings(plan, tmp_path, lambda command: "<")
    assert one.found.startswith("unknown: ")
    assert list(booted.findings(plan, tmp_path, virsh)) == [], "this is not the hypervisor"
    plan["hypervisor"]["kind"] = "ssh"
    assert list(booted.findings(plan, tmp_path, refuse)) == []


@pytest.mark.parametrize("mode", OF_MODE)
def test_a_medium_that_is_to_stay(mode: str, tmp_path: Path) -> None:
    """Modes without a medium have none to lose."""
    plan = planned({"boot": {"mode": mode}, "master": {"firmware": "bios"}}, tmp_path)
    assert "eject" not in plan["boot"]
    for source in ("<source file='/iso'/>", ""):
        made = list(
            booted.findings(plan, tmp_path, lambda command, source=source: DOMAIN.format(CD_XML.format(source)))
        )
        there = "inserted" if source else "none"
        wanted = [] if mode in ("pxe", "iscsi") else [("medium of master-0", "inserted", there)]
        assert [(one.subject, one.expected, one.found) for one in made] == wanted


def test_a_medium_that_a_fault_ejects(tmp_path: Path) -> None:
    plan = planned({"faults": [{"kind": "eject", "node": "master-0", "when": "known"}]}, tmp_path)
    assert list(booted.findings(plan, tmp_path, lambda command: DOMAIN.format(""))) == []


def test_a_command_that_fails(tmp_path: Path) -> None:
    assert booted.run(["echo", "x"]) == "x\n"
    with pytest.raises(OSError, match="exit status 1"):
        booted.run(["false"])
    with pytest.raises(FileNotFoundError):
        booted.run([str(tmp_path / "none")])


@pytest.mark.parametrize(
    ("given", "asked", "wrong"),
    [
        (None, ["_gateway"], None),
        (None, ["192.168.111.1"], None),
        (None, ["virthost.ostest.test.metalkube.org"], None),
        (None, ["_gateway", "pool.example.com"], None),
        (None, [], "none"),
        (None, ["pool.example.com"], "pool.example.com"),
        (["192.0.2.1"], ["192.0.2.1"], None),
        (["192.0.2.1"], ["clock.example.com"], None),  # by reverse lookup
        (["192.0.2.1"], ["_gateway"], "192.168.111.1"),
        (["192.0.2.1", "192.0.2.2"], ["192.0.2.1"], "192.0.2.1"),
        (["192.0.2.1", "192.168.111.1"], ["clock.example.com"], "clock.example.com"),
        ([], ["_gateway"], ""),
    ],
)
def test_time_servers(given: list[str] | None, asked: list[str], wrong: str | None, tmp_path: Path) -> None:
    plan = planned({"installer": {"ntp_sources": given}}, tmp_path)
    record(plan, tmp_path, "CD", *asked)
    servers = ", ".join(plan["installer"]["ntp_sources"])
    expected = [] if given == [] else [(wrong is None, servers, servers if wrong is None else wrong)]
    assert found(plan, tmp_path, "time servers of master-0") == expected


def test_time_servers_that_agent_config_has(tmp_path: Path) -> None:
    plan = planned({"installer": {"agent_config": {"additionalNTPSources": ["192.0.2.1"]}}}, tmp_path)
    record(plan, tmp_path, "CD", "_gateway")
    assert found(plan, tmp_path, "time") == [(False, "192.0.2.1", "192.168.111.1")]


@pytest.mark.parametrize("stack", ["ipv6", "dualstack"])
def test_names_of_a_lab_with_ipv6(stack: str, tmp_path: Path) -> None:
    plan = planned({"stack": stack}, tmp_path)
    for name in ("_gateway", "virthost.ostest.test.metalkube.org"):
        record(plan, tmp_path, "CD", name)
        assert [one[0] for one in found(plan, tmp_path, "time")] == [True]


@pytest.mark.parametrize("text", ["", "{", "{}", "[1]", "null"])
def test_time_servers_that_no_agent_reported(text: str, tmp_path: Path) -> None:
    plan = planned({}, tmp_path)
    record(plan, tmp_path, "CD", "_gateway")
    path = tmp_path / RunFile.LAST_CLUSTER
    hosts = json.loads(path.read_text())["hosts"]
    path.write_text(json.dumps({"hosts": [{**host, "ntp_sources": text} for host in hosts]}))
    assert found(plan, tmp_path, "time") in ([], [(False, "192.168.111.1", "none")])
